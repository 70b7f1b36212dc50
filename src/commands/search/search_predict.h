/* p(match) of hits whose cosine is uncertain. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_PREDICT_H
#define PNB_COMMANDS_SEARCH_SEARCH_PREDICT_H

#include "commands/common/match_probability_use.h"
#include "penumbra/search.h"

typedef struct pnb__search_prediction {
    pnb_prediction prediction;
    size_t n_draws; /* 0: 400 */
    uint64_t seed;
    const pnb_rows *queries, *index;
    const pnb_hits *hits;
    const pnb__match_probability *odds;
    pnb_measure measure;
} pnb__search_prediction;

/* Probability of every hit; free *out with pnb__free. NULL where plain is asked for.
 * Shape   *out (n_queries, k)
 * Errors  ARG (a measure that is no cosine, sets without variances, a calibration or nothing in
 *         place of the model's a and b), NOMEM */
pnb_status pnb__search_predict(const pnb__search_prediction *job, double **out, pnb_error *err);

#endif
