/* Rows of an embedding set as people see them and as a measure takes them. */
#ifndef PNB_SETS_SET_ROWS_H
#define PNB_SETS_SET_ROWS_H

#include "io/json/json.h"
#include "penumbra/embeddings.h"
#include "penumbra/view.h"

/* Whether the set tells which weights made it and of what. */
bool pnb__set_is_known(const pnb_embeddings *set);
/* Rows for a measure: pnb_view_init, but the means of any family as points where the measure is
 * `mean`. Release with pnb_view_reset. Errors  as pnb_view_init */
pnb_status pnb__set_view(pnb_view *out, const pnb_embeddings *set, pnb_measure measure,
                         pnb_error *err);
/* What to show of a row: its caption, else its path, else its id, else "". */
const char *pnb__set_label(const pnb_embeddings *set, size_t row);
/* Id of a row, "" without one. */
const char *pnb__set_id(const pnb_embeddings *set, size_t row);
/* Further fields of a row, to be given back with json_decref; NULL without any. */
pnb_status pnb__set_extra(json_t **out, const pnb_embeddings *set, size_t row, pnb_error *err);
/* A copy of a text of such fields, as an object's text or NULL; NULL without one. Free with
 * pnb__free.  Errors  NOMEM */
pnb_status pnb__extra_text(char **out, const char *extra, const char *key, pnb_error *err);
/* "level" of a row's extra fields, -1 when there is none. */
pnb_status pnb__row_level(int *level, const pnb_embeddings *set, size_t row, pnb_error *err);

#endif
