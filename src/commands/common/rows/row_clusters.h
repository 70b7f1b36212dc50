/* What rows were sampled together, as a field of their ids file says it. */
#ifndef PNB_COMMANDS_COMMON_ROW_CLUSTERS_H
#define PNB_COMMANDS_COMMON_ROW_CLUSTERS_H

#include "penumbra/embeddings.h"
#include "program/app.h"
#include "program/result_end.h"

enum { PNB__FEW_CLUSTERS = 20 }; /* an interval from fewer is rough */

/* Labels from names: equal names have equal labels, from 0; NULL has -1. *n_labels: how many.
 * Errors  NOMEM */
pnb_status pnb__label_names(char *const *names, size_t n, int64_t *label, size_t *n_labels,
                            pnb_error *err);

/* Value of the field `key` of each row as text into names[set->n], NULL where a row has none; id,
 * path and text are fields too. Texts are to be freed, after a failure too; `names` comes as NULLs.
 * Errors  FORMAT (a value that is neither a text nor a whole number: `path` and row), NOMEM */
pnb_status pnb__row_fields(const pnb_embeddings *set, const char *path, const char *key,
                           char **names, pnb_error *err);

/* Pictures that figures are averaged over, in what they are drawn. */
typedef struct pnb__image_clusters {
    int64_t *label; /* [n] */
    size_t n, n_clusters;
    const char *key;
    char unit[96]; /* "picture", "pictures of one \"scene\"" */
} pnb__image_clusters;

/* Of the rows row[n] of a set: by the field `key`, or with NULL each by itself, which is then
 * called `alone`. Few clusters are warned of. Free with pnb__image_clusters_reset, after a
 * failure too. Errors  NOT_FOUND (a row without the field), FORMAT, NOMEM */
pnb_status pnb__image_clusters_init(pnb__image_clusters *c, pnb__app *app,
                                    const pnb_embeddings *set, const size_t *row, size_t n,
                                    const char *key, const char *alone);
void pnb__image_clusters_reset(pnb__image_clusters *c);
/* The object "resampling": unit, key and number of clusters. */
void pnb__image_clusters_put(const pnb__image_clusters *c, pnb__result *r);

#endif
