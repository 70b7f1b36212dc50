/* What a truth file says, before it is joined with the rows of two sets. */
#ifndef PNB_TRUTH_GROUND_TRUTH_H
#define PNB_TRUTH_GROUND_TRUTH_H

#include "base/base.h"
#include "penumbra/truth.h"

#define PNB__NO_OWNER SIZE_MAX
#define PNB__MAX_TRUTH_BYTES ((size_t)1 << 30)

/* Texts are offsets into the pool, 0: none. */
typedef struct pnb__image {
    size_t name[3]; /* strongest first */
    int64_t group;  /* class, -1 none */
} pnb__image;

typedef struct pnb__text_ref {
    size_t owner; /* picture it was written for, or PNB__NO_OWNER */
    size_t place; /* 0, 1, ... among the owner's captions */
    size_t id, text;
    int level; /* -1 unknown */
} pnb__text_ref;

typedef struct pnb__ground_truth {
    pnb__buf pool;
    pnb__image *image;
    size_t n_images;
    pnb__text_ref *text;
    size_t n_texts;
    int64_t *pair; /* [n_pairs][2] picture, caption: matches beside those of owners */
    size_t n_pairs;
} pnb__ground_truth;

void pnb__ground_truth_reset(pnb__ground_truth *c);
/* A text in the pool; 0 and a sticky failure in the pool when out of memory. */
size_t pnb__ground_truth_intern(pnb__ground_truth *c, const char *text, size_t n);
const char *pnb__ground_truth_get(const pnb__ground_truth *c, size_t text); /* "" for 0 */
/* The new one's index is n - 1. Errors  NOMEM */
pnb_status pnb__ground_truth_image(pnb__ground_truth *c, pnb__image image, pnb_error *err);
pnb_status pnb__ground_truth_text(pnb__ground_truth *c, pnb__text_ref text, pnb_error *err);
pnb_status pnb__ground_truth_pair(pnb__ground_truth *c, size_t image, size_t text, pnb_error *err);

/* ---- readers, one a format ---- */
typedef struct pnb__truth_source {
    const char *path;
    const pnb_truth_read_opts *opts;
} pnb__truth_source;
pnb_status pnb__read_truth_json(pnb__ground_truth *c, const pnb__truth_source *s,
                                pnb_truth_format *format, bool *texts_ask, pnb_error *err);
pnb_status pnb__read_truth_tokens(pnb__ground_truth *c, const pnb__truth_source *s, pnb_error *err);
pnb_status pnb__read_truth_precomp(pnb__ground_truth *c, const pnb__truth_source *s,
                                   pnb_error *err);
pnb_status pnb__read_truth_hierarcaps(pnb__ground_truth *c, const pnb__truth_source *s,
                                      pnb_error *err);
pnb_status pnb__read_truth_folders(pnb__ground_truth *c, const pnb__truth_source *s,
                                   pnb_error *err);
pnb_status pnb__read_truth_dataset(pnb__ground_truth *c, const pnb__truth_source *s,
                                   pnb_error *err);
/* Joins rows directly. Pairs: as pnb_truth_load, and where the file speaks of ids that rows carry
 * as "caption_id", a caption of it is every row with that id.  Errors  also LIMIT (more pairs of
 * rows than a GiB holds) */
pnb_status pnb__read_truth_pairs(pnb_truth **out, const char *path, const pnb_truth_rows *queries,
                                 const pnb_truth_rows *items, pnb_error *err);
pnb_status pnb__read_truth_labels(pnb_truth **out, const char *path, const pnb_truth_rows *images,
                                  const pnb_truth_rows *texts, pnb_error *err);

#endif
