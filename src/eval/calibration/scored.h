/* Checks that fits to scored cases have in common. */
#ifndef PNB_EVAL_CALIBRATION_SCORED_H
#define PNB_EVAL_CALIBRATION_SCORED_H

#include "base/base.h"
#include "penumbra/scaling.h"

/* Weights of the two classes and what a fit can be told from. */
typedef struct pnb__scored_sums {
    double weight[2];     /* of label 0 and 1, both > 0 */
    double mean_score[2]; /* weighted */
    double low[2], high[2];
} pnb__scored_sums;

/* Errors  ARG (no rows, one class, a label, all scores equal), NUMERIC (score, weight) */
pnb_status pnb__scored_check(const pnb_scored *data, pnb__scored_sums *out, pnb_error *err);

/* Targets of the labels 0 and 1: themselves, or Platt's, (P + 1)/(P + 2) and 1/(N + 2) with the
 * weights P and N of the classes. */
void pnb__platt_targets(const pnb__scored_sums *sums, bool smooth, double target[2]);

static inline double pnb__scored_weight(const pnb_scored *data, size_t i)
{
    return data->weight != NULL ? data->weight[i] : 1.0;
}

#endif
