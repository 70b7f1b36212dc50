/* Calibration under shift: what probabilities and conformal lists that were fitted on one part of
 * the data are worth on another, and what a few pairs of that part give back.
 *
 * A conformal list holds a match with the probability asked for where queries are drawn as those it
 * was fitted on were. On other styles, fields or captions it need not. Here the same queries are
 * listed by the cut-off that was brought along, and by cut-offs of m of them, drawn anew in every
 * split and judged on the rest. docs/numerics.md#shift
 *
 * Scores are those of search: larger is nearer. Nothing is ranked here; the caller brings every
 * hit of every query and where its first match stands. Split s is the same for all that are given
 * one seed, so that lists and probabilities are fitted on the same queries.
 *
 *     pnb_conformal_cutoff(&fit.conformal, fit.conformal.kind, 0.1, &cutoff, &err);
 *     pnb_shift_brought(&queries, fit.conformal.kind, cutoff, NULL, &brought, &err);
 *     pnb_shift_refitted(&queries, fit.conformal.kind, 0.1, 50, 100, 0, &mended, &err);
 *
 * Source  split-conformal prediction, Vovk et al. 2005; its coverage from above, Lei et al. 2018 */
#ifndef PENUMBRA_SHIFT_H
#define PENUMBRA_SHIFT_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/bootstrap.h"
#include "penumbra/calibrate.h"
#include "penumbra/error.h"
#include "penumbra/scaling.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queries with a match, and all that they can be given. Borrowed during a call. */
typedef struct pnb_shift_queries {
    size_t n, n_gallery;       /* 1 or more each */
    const double *score;       /* (n, n_gallery), each row from the best hit down */
    const size_t *first_match; /* [n] place of the first match in its row, from 0 */
    const int64_t *cluster;    /* [n] queries of one label are resampled together; NULL: each
                                * by itself */
} pnb_shift_queries;

/* Lists of all queries by one way to cut them. */
typedef struct pnb_shift_lists {
    pnb_interval coverage; /* share whose list holds a match. Of a cut-off that was brought along
                            * with its bootstrap interval; of cut-offs of splits the mean over the
                            * splits, low and high their quantiles at 5% and 95% */
    double mean_size;      /* rows of a list */
} pnb_shift_lists;

/* By a cut-off that was fitted elsewhere. boot NULL: the defaults; 0 resamples: no interval.
 * Errors  ARG (no queries, a first match outside), as pnb_bootstrap_mean, NOMEM */
pnb_status pnb_shift_brought(const pnb_shift_queries *q, pnb_conformal_kind kind, double cutoff,
                             const pnb_bootstrap_opts *boot, pnb_shift_lists *out, pnb_error *err);

/* By cut-offs of m queries at the error rate alpha, a new draw in each of n_splits, judged on the
 * n - m others. Where m is too few for alpha the whole gallery is listed.
 * Errors  ARG (m outside 1..n-1, no splits, alpha outside (0,1)), NOMEM */
pnb_status pnb_shift_refitted(const pnb_shift_queries *q, pnb_conformal_kind kind, double alpha,
                              size_t m, size_t n_splits, uint64_t seed, pnb_shift_lists *out,
                              pnb_error *err);

/* How good probabilities that the first hit is right are, over all queries or the mean over splits.
 */
typedef struct pnb_shift_ece {
    double ece, brier;   /* over n_bins bins of equal mass; the mean of (p - [right])^2 */
    double p_mean, rate; /* what was forecast and what happened, on average; in [0,1] */
    size_t n_splits;     /* that could be fitted: with right and wrong first hits; of a fit that was
                          * brought along 1 */
} pnb_shift_ece;

/* By a fit of first hits made elsewhere.
 * Errors  ARG (n_bins), NOMEM */
pnb_status pnb_shift_first_brought(const pnb_shift_queries *q, const pnb_platt *fit, size_t n_bins,
                                   pnb_shift_ece *out, pnb_error *err);
/* By Platt's fit to m first hits, a new draw in each split; NaN where no split could be fitted.
 * Errors  as pnb_shift_refitted */
pnb_status pnb_shift_first_refitted(const pnb_shift_queries *q, size_t m, size_t n_splits,
                                    uint64_t seed, size_t n_bins, pnb_shift_ece *out,
                                    pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
