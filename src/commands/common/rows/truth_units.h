/* What was sampled together, as far as the truth tells. */
#ifndef PNB_COMMANDS_COMMON_TRUTH_UNITS_H
#define PNB_COMMANDS_COMMON_TRUTH_UNITS_H

#include "penumbra/truth.h"

/* Labels of the rows of both sides, image_cluster[truth->n_queries], text_cluster[truth->n_items],
 * and in `unit` what a cluster is. `backward` is the transposed truth.  Errors  NOMEM */
pnb_status pnb__truth_units(const pnb_truth *truth, const pnb_truth *backward,
                            int64_t *image_cluster, int64_t *text_cluster, char *unit,
                            size_t unit_bytes, pnb_error *err);

#endif
