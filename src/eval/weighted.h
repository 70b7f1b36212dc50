/* Figures of a weighted sample: what a bootstrap resample is, without copying its rows.
 *
 * A resample holds row i weight[i] times. All walks go over the rows in an order fixed beforehand,
 * so a resample costs O(n) and no sort. weight NULL: every row once. */
#ifndef PNB_EVAL_WEIGHTED_H
#define PNB_EVAL_WEIGHTED_H

#include "base/base.h"
#include "penumbra/metrics.h"

/* ---- selective.c ---- `order` is ascending in uncertainty; total is the sum of the weights. */
typedef struct pnb__answers {
    const size_t *order;
    const double *uncertainty, *correct; /* by row */
    size_t n;
} pnb__answers;
pnb_selective pnb__selective_weighted(const pnb__answers *a, const uint32_t *weight);
/* S, R2 and -S R2 of equal_count or equal_width bins into out[3]; 0 where degenerate. */
pnb_status pnb__calibration_weighted(const pnb__answers *a, const uint32_t *weight,
                                     pnb_binning binning, size_t n_bins, double out[3],
                                     pnb_error *err);

/* ---- forecast.c ---- `order` is ascending in confidence. */
typedef struct pnb__forecasts {
    const size_t *order;
    const double *confidence, *correct;
    size_t n;
} pnb__forecasts;
double pnb__ece_weighted(const pnb__forecasts *f, const uint32_t *weight, size_t n_bins);
#define PNB__CONFIDENCE_FLOOR 1e-7 /* log of a probability is taken after clipping to this */

/* ---- calibration.c ---- Fills s, r2, minus_s_r2 and is_degenerate from the bins. */
pnb_status pnb__calibration_relate(pnb_calibration *c, pnb_error *err);
/* ---- bins.c ---- Bin of a value among n_bins equal intervals of [low, high]. */
size_t pnb__width_bin(double value, double low, double high, size_t n_bins);

static inline size_t pnb__weight(const uint32_t *weight, size_t row)
{
    return weight == NULL ? 1 : weight[row];
}

#endif
