/* How good are probabilities? Calibration error, Brier score and log loss of forecasts against what
 * happened.
 *
 * The expected calibration error cuts forecasts p into bins b and compares what was forecast with
 * what happened in each: ECE = sum_b (n_b/n) |mean of outcomes - mean of p|. It counts noise as
 * error, all the more with many bins: pnb_ece_debiased takes that out. Formulas and sources:
 * docs/numerics.md#statistics and docs/numerics.md#calibration-error. */
#ifndef PENUMBRA_ECE_H
#define PENUMBRA_ECE_H

#include <stddef.h>

#include "penumbra/bootstrap.h"
#include "penumbra/error.h"
#include "penumbra/scaling.h"
#include "penumbra/uncertainty_calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bins of equal width, as the field reports it ---- */

typedef struct pnb_ece {
    double ece, mce; /* expected and maximum |difference| of a bin, in [0,1] */
    double brier;    /* mean of (p - label)^2, in [0,1] */
    double nll;      /* mean of -log p(label) in nats, p clipped to [1e-7, 1 - 1e-7] */
} pnb_ece;

/* Bin k of n_bins is (k/n_bins, (k+1)/n_bins], 0 joins the first; empty bins do not count.
 * Shape   confidence (n) in [0,1], label (n) of 0 and 1
 * Errors  ARG (n = 0, n_bins outside 1..PNB_MAX_BINS, a label), NUMERIC (outside [0,1])
 * Source  Guo et al. 2017 */
pnb_status pnb_ece_compute(const double *confidence, const int *label, size_t n, size_t n_bins,
                           pnb_ece *out, pnb_error *err);

/* ---- without its bias ---- */

/* Estimate of E|P(right | confidence) - confidence| and its interval, both in [0,1]: about n^(1/3)
 * bins of equal mass, the noise of each taken out; 0 where the forecasts are as good as perfect
 * ones. Errors that change sign within a bin are not seen. opts NULL: the defaults; its clusters
 * are those of the rows, and at most 2000 resamples are drawn. With 0 resamples or one cluster the
 * interval is NaN.
 * Shape   confidence, correct (n), both in [0,1]
 * Errors  ARG (n = 0, level), NUMERIC (outside [0,1]), NOMEM
 * Source  Roelofs et al. 2022 (the bias), Carpenter 1999 (the interval) */
pnb_status pnb_ece_debiased(const double *confidence, const double *correct, size_t n,
                            const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err);

/* ---- bins of equal mass, of weighted cases ---- */

typedef struct pnb_ece_bin {
    double weight;                /* share of the population */
    double p_low, p_high, p_mean; /* of its forecasts */
    double rate;                  /* share of label 1 */
} pnb_ece_bin;

typedef struct pnb_weighted_ece {
    size_t n;                      /* cases */
    double base_rate, p_mean;      /* what happened and what was forecast on average */
    double nll;                    /* in nats, p clipped to [1e-12, 1 - 1e-12] */
    double brier;                  /* mean of (p - label)^2 */
    double ece;                    /* sum over bins of weight * |rate - p_mean| */
    size_t n_bins;                 /* that hold cases, all of them */
    pnb_ece_bin bin[PNB_MAX_BINS]; /* ascending in p */
} pnb_weighted_ece;

/* `forecasts->score` is the probability of label 1. A bin ends at the first p at which the weight
 * seen reaches its share, so equal p stay together and there may be fewer bins than asked for:
 * forecasts of rare events crowd near 0, where bins of equal width would be one.
 * Errors  ARG (n = 0, n_bins outside 1..PNB_MAX_BINS, a label), NUMERIC (p outside [0,1], a weight
 *         that is not finite and above 0), NOMEM
 * Source  Nguyen and O'Connor 2015 */
pnb_status pnb_weighted_ece_compute(const pnb_scored *estimates, size_t n_bins,
                                    pnb_weighted_ece *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
