/* The caption that includes each picture most; see most_including.c. */
#ifndef PNB_EVAL_HIERARCHY_MOST_INCLUDING_H
#define PNB_EVAL_HIERARCHY_MOST_INCLUDING_H

#include "penumbra/traversal.h"

/* index[i], value[i]: best caption of picture i and its score; ties go to the lower index.
 * Errors  NUMERIC (names the pair), NOMEM, and those of pnb_search */
pnb_status pnb__most_including(const pnb_ctx *ctx, const pnb_gaussians *images,
                               const pnb_gaussians *texts, pnb_including by, int64_t *index,
                               double *value, pnb_error *err);

#endif
