/* Figures of a weighted sample: what a bootstrap resample is, without copying its rows.
 *
 * A resample holds row i weight[i] times. All walks go over the rows in an order fixed beforehand,
 * so a resample costs O(n) and no sort. weight NULL: every row once. */
#ifndef PNB_EVAL_WEIGHTED_H
#define PNB_EVAL_WEIGHTED_H

#include "base/base.h"
#include "penumbra/selective.h"

/* ---- selective.c ---- `order` is ascending in uncertainty; total is the sum of the weights. */
typedef struct pnb__answers {
    const size_t *order;
    const double *uncertainty, *correct; /* by row */
    size_t n;
} pnb__answers;
pnb_selective pnb__selective_weighted(const pnb__answers *a, const uint32_t *weight);
/* Spearman of uncertainty and correctness; NaN where either is constant. `correct` is 0 or 1. */
double pnb__query_spearman_weighted(const pnb__answers *a, const uint32_t *weight);

/* ---- ece.c ---- `order` is ascending in confidence. */
typedef struct pnb__ece_cases {
    const size_t *order;
    const double *confidence, *correct;
    size_t n;
} pnb__ece_cases;
/* k with k/n_bins < c <= (k+1)/n_bins, 0 for c = 0. */
size_t pnb__ece_bin(double c, size_t n_bins);
/* ECE over bins of equal mass. */
double pnb__ece_mass(const pnb__ece_cases *f, size_t n_bins);
#define PNB__CONFIDENCE_FLOOR 1e-7 /* log of a probability is taken after clipping to this */

static inline size_t pnb__weight(const uint32_t *weight, size_t row)
{
    return weight == NULL ? 1 : weight[row];
}

#endif
