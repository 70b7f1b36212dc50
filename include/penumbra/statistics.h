/* Correlations and ranking statistics of plain arrays, with ties as SciPy and scikit-learn have
 * them.
 *
 * Input that has no answer is an error, never NaN: NaN or infinite values are NUMERIC (the text
 * names the place), too few or constant ones ARG. Formulas: docs/numerics.md#statistics. */
#ifndef PENUMBRA_STATISTICS_H
#define PENUMBRA_STATISTICS_H

#include <stddef.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- correlations ---- of n pairs (x_i, y_i), in [-1,1] */

/* Of the values: sum (x - mean x)(y - mean y) over the root of the two sums of squares.
 * Errors  ARG (n < 2, all x or all y equal), NUMERIC */
pnb_status pnb_pearson(const double *x, const double *y, size_t n, double *out, pnb_error *err);

/* Of the average ranks: whether y rises with x, in whatever form.
 * Errors  as pnb_pearson, NOMEM */
pnb_status pnb_spearman(const double *x, const double *y, size_t n, double *out, pnb_error *err);

/* (C - D)/sqrt((n0 - n1)(n0 - n2)) of C concordant and D discordant pairs of pairs; n0 = n(n-1)/2,
 * n1 and n2 those tied in x and in y. O(n log n).
 * Errors  as pnb_pearson, NOMEM
 * Source  Kendall 1945 (tau-b); Knight 1966 (the way to count) */
pnb_status pnb_kendall_tau_b(const double *x, const double *y, size_t n, double *out,
                             pnb_error *err);

/* Ranks from 1 by value, the smallest first; ties get the average of their places.
 * Shape   x (n) -> rank (n), the caller's      Errors  NUMERIC, NOMEM */
pnb_status pnb_average_ranks(const double *x, size_t n, double *rank, pnb_error *err);

/* ---- two classes ---- score (n), any finite numbers; label (n), 1 positive, 0 negative */

/* Area under the ROC curve: P(score of a positive > score of a negative) + half the ties.
 * Range   [0,1]; 1/2 by chance
 * Errors  ARG (one class only, a label that is not 0 or 1), NUMERIC, NOMEM */
pnb_status pnb_auroc(const double *score, const int *label, size_t n, double *out, pnb_error *err);

/* Area under precision and recall: sum (R_k - R_k-1) P_k over distinct thresholds, the highest
 * first, without interpolation.
 * Range   (0,1]; the share of positives by chance
 * Errors  as pnb_auroc */
pnb_status pnb_average_precision(const double *score, const int *label, size_t n, double *out,
                                 pnb_error *err);

/* ---- means ---- */

/* exp(mean log x) of each row.
 * Shape   x (N,D) -> out (N)
 * Errors  SHAPE (dim 0), NUMERIC (a value that is not finite and above 0: names row and column) */
pnb_status pnb_geometric_mean_rows(const double *x, size_t n, size_t dim, double *out,
                                   pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
