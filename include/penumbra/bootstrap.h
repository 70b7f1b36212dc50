/* Intervals of a figure by resampling the rows it was computed from.
 *
 * What was sampled together is drawn together: captions of one picture succeed and fail together,
 * and drawn one by one they make intervals far too narrow. Intervals are BCa (Efron 1987), widened
 * for few clusters (Hesterberg 2015); how often they cover is measured in bench/intervals.c.
 *   low, high = quantiles Phi(z0 + (z0 -+ z)/(1 - a (z0 -+ z))) of the resampled values
 *   z = sqrt(G/(G-1)) t_{G-1} of G clusters, z0 the bias and a the skewness of the resamples
 * With fewer than two clusters there is none. They say how much a figure depends on the choice of
 * queries, not of the gallery or of the training seed. Definitions with their sources:
 * docs/numerics.md#intervals. */
#ifndef PENUMBRA_BOOTSTRAP_H
#define PENUMBRA_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A figure of resampled rows: `row` holds n row numbers, each as often as it was drawn. NaN where
 * it is not defined on them. Called from the caller's thread, one resample after the other. */
typedef double (*pnb_statistic_fn)(void *user, const size_t *row, size_t n);

typedef struct pnb_interval {
    double value;     /* of the sample itself, not the mean of the resamples */
    double low, high; /* NaN: the sample says nothing about the spread, as one cluster does */
} pnb_interval;

/* Resample r draws from stream r of `seed`: the same seed gives the same interval everywhere. */
typedef struct pnb_bootstrap_opts {
    size_t n_resamples; /* 1000. 0 means values without intervals, where a function says so */
    double level;       /* share of samples whose interval holds the true figure; 0.95, in (0,1) */
    uint64_t seed;      /* 0 */
    const int64_t *cluster; /* [n] rows of one label, any numbers, are drawn together; NULL: each
                             * row by itself. Not read where values bring their own clusters */
} pnb_bootstrap_opts;

/* The values that stand beside the fields, every row by itself. */
pnb_bootstrap_opts pnb_bootstrap_opts_default(void);

/* A figure of the caller's with its interval, at the cost of n_resamples and at most 100 further
 * calls of `statistic` (the jackknife). Resamples where it is NaN are left out; where all
 * resamples agree the interval is that one value. opts NULL: the defaults.
 * Errors  ARG (n = 0, no resamples, a level outside (0,1)), NUMERIC (every resample was NaN),
 *         NOMEM */
pnb_status pnb_bootstrap(pnb_statistic_fn statistic, void *user, size_t n,
                         const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err);

/* The mean of n values, that of the rows drawn: a large cluster weighs more. Values in [0,1] are
 * taken for shares: at 0 and 1 they get Wilson's interval with one case a cluster.
 * Errors  as pnb_bootstrap, and NUMERIC (a value is not finite: names it) */
pnb_status pnb_bootstrap_mean(const double *values, size_t n, const pnb_bootstrap_opts *opts,
                              pnb_interval *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
