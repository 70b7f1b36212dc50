/* How many batches moved a batch norm's running moments: one whole number beside each of them in
 * torch's files, "<norm>.num_batches_tracked". No computation here reads it; it is read, counted in
 * training and written, so that a file has all the keys that torch's strict loading asks for. */
#ifndef PNB_MODELS_KEYS_BATCH_COUNTS_H
#define PNB_MODELS_KEYS_BATCH_COUNTS_H

#include "models/weights/weight_types.h"

/* Is `key` of a file of layout l the count of one of w's batch norms? */
bool pnb__batch_count_is(const pnb__weights *w, const pnb__key_mapping *l, const char *key);
/* Takes the counts that a file has; 0 where it has none, as files before torch 0.4.1.
 * Errors  FORMAT (not one whole number of 0 or more) */
pnb_status pnb__batch_counts_load(pnb__weights *w, const pnb__key_mapping *l,
                                  const pnb__weight_file *file, pnb_error *err);
/* Appends them to views[*n], at most one a weight, to be stored in layout l; they point into w.
 * Names come from `arena`. Errors  NOMEM */
pnb_status pnb__batch_counts_scatter(const pnb__weights *w, const pnb__key_mapping *l,
                                     pnb__arena *arena, pnb_array_view *views, size_t *n,
                                     pnb_error *err);

#endif
