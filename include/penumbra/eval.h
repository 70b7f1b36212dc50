/* Evaluation: retrieval figures, calibration of uncertainty, hierarchy checks, statistics, PCA.
 *
 * Shares and recalls are fractions in [0,1]. Definitions, and where published code differs:
 * docs/numerics.md#retrieval and docs/numerics.md#calibration. A NULL ctx means one thread. */
#ifndef PENUMBRA_EVAL_H
#define PENUMBRA_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/search.h"
#include "penumbra/truth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- retrieval ---- */
/* What a ranking says about each query. Queries without a positive have rank 0 and NaN figures. */
typedef struct pnb_ranks {
    size_t n_queries, n_items;
    int64_t *best_rank;  /* [n] rank of the best positive, from 1 */
    int64_t *top1;       /* [n] item ranked first */
    double *top1_score;  /* [n] its score (NaN from pnb_ranks_from_ranking) */
    double *r_precision; /* [n] share of positives among the first R, R = number of positives */
    double *map_at_r;    /* [n] (1/R) sum over positives ranked r <= R of precision at r */
} pnb_ranks;

void pnb_ranks_reset(pnb_ranks *ranks); /* frees the arrays; NULL is fine */

/* Ranks every item for every query by counting; opts->k is ignored.
 * Memory  O(pairs + N*block), never Q*N. Results do not depend on the number of threads
 * Errors  SHAPE (truth and sets differ in size, widths differ), ARG, NUMERIC (NaN score), NOMEM */
pnb_status pnb_ranks_compute(const pnb_ctx *ctx, const pnb_gaussians *queries,
                             const pnb_gaussians *gallery, const pnb_truth *truth,
                             const pnb_search_opts *opts, pnb_ranks *out, pnb_error *err);
/* From a matrix of scores [n_queries][n_items], larger is nearer, ties to the lower index. */
pnb_status pnb_ranks_from_scores(const double *scores, const pnb_truth *truth, pnb_ranks *out,
                                 pnb_error *err);
/* From complete rankings [n_queries][n_items] of item indices, best first.
 * Errors  ARG (a row is not a permutation of the items: the text names it) */
pnb_status pnb_ranks_from_ranking(const int64_t *ranking, const pnb_truth *truth, pnb_ranks *out,
                                  pnb_error *err);

#define PNB_MAX_RECALLS 16

/* Figures of one direction, averaged over the queries that have a positive. */
typedef struct pnb_direction {
    size_t n_queries;               /* averaged over */
    size_t n_skipped;               /* without a positive */
    double recall[PNB_MAX_RECALLS]; /* R@k[i]: share of queries with a positive in the first k */
    double median_rank; /* floor of the median of (rank - 1), plus 1, as the field prints it */
    double mean_rank, r_precision, map_at_r;
} pnb_direction;

typedef struct pnb_retrieval {
    size_t n_k;
    size_t k[PNB_MAX_RECALLS];
    pnb_direction forward;  /* queries to gallery */
    pnb_direction backward; /* gallery to queries */
    double rsum;            /* sum of all recalls both ways, as fractions (papers print x 100) */
} pnb_retrieval;

/* Averages ranks. `k` holds n_k cut-offs; k above the number of items is allowed (recall is 1).
 * Errors  ARG (n_k outside 1..PNB_MAX_RECALLS, a cut-off of 0, no query with a positive) */
pnb_status pnb_direction_summarise(const pnb_ranks *ranks, const size_t *k, size_t n_k,
                                   pnb_direction *out, pnb_error *err);

/* Both directions at once; k NULL means 1, 5, 10. forward_ranks and backward_ranks may be NULL.
 * Both rank by the same pair values: for asymmetric measures a stays Gaussian 1 (with
 * opts->reverse, Gaussian 2).  Errors  as pnb_ranks_compute and pnb_direction_summarise */
typedef struct pnb_retrieval_job {
    const pnb_gaussians *a, *b;
    const pnb_truth *truth;      /* queries = rows of a, items = rows of b */
    const pnb_search_opts *opts; /* NULL: defaults */
    const size_t *k;
    size_t n_k;
} pnb_retrieval_job;
pnb_status pnb_retrieval_compute(const pnb_ctx *ctx, const pnb_retrieval_job *job,
                                 pnb_retrieval *out, pnb_ranks *forward_ranks,
                                 pnb_ranks *backward_ranks, pnb_error *err);

/* ---- calibration: does accuracy fall as uncertainty rises? ---- */
/* X(name, text, sentence) */
#define PNB_BINNING_LIST(X)                                                                        \
    X(EQUAL_COUNT, "equal_count", "floor(n/bins) a bin, the n mod bins most uncertain left out")   \
    X(EQUAL_COUNT_ALL, "equal_count_all", "all items, bin sizes differ by at most one")            \
    X(EQUAL_WIDTH, "equal_width", "equal intervals between the smallest and largest value")        \
    X(GROVE_SAMPLES, "grove_samples", "GroVE's released equal-sample bins, one lost a boundary")   \
    X(GROVE_SPACING, "grove_spacing", "GroVE's released equal-spacing bins, cumulative")

typedef enum pnb_binning {
#define PNB_BINNING_ENUM(name, text, sentence) PNB_BINS_##name,
    PNB_BINNING_LIST(PNB_BINNING_ENUM)
#undef PNB_BINNING_ENUM
        PNB_N_BINNINGS
} pnb_binning;

const char *pnb_binning_name(pnb_binning binning);
pnb_status pnb_binning_parse(pnb_binning *out, const char *name, pnb_error *err);

#define PNB_MAX_BINS 256

/* Items by bin: bin i holds item[offset[i]] .. item[offset[i+1]-1], each in order of uncertainty
 * (ties: lower index first). Both arrays are the caller's: offset n_bins + 1 entries, item n
 * entries (n_bins * n for GROVE_SPACING, whose bins overlap).
 * Errors  ARG (n_bins
 * outside 1..PNB_MAX_BINS, fewer items than bins), NUMERIC (NaN), NOMEM */
pnb_status pnb_bins_assign(pnb_binning binning, const double *uncertainty, size_t n, size_t n_bins,
                           size_t *item, size_t *offset, pnb_error *err);

typedef struct pnb_bin {
    size_t index; /* of the bin among n_bins asked for, 0 = most certain */
    size_t n;
    double u_min, u_max, u_mean;
    double accuracy; /* mean of `correct` over its items */
} pnb_bin;

typedef struct pnb_uncertainty_calibration {
    size_t n_bins; /* bins with items; empty ones are left out */
    pnb_bin bin[PNB_MAX_BINS];
    double s;           /* Spearman(bin index, accuracy); -1: accuracy falls with every bin */
    double r2;          /* of the least-squares line bin index -> accuracy */
    double minus_s_r2;  /* -S * R^2, the figure the papers rank by */
    bool is_degenerate; /* fewer than 2 bins, or accuracy or uncertainty constant: s and r2 are 0
                           by convention */
    size_t n_left_out;  /* items in no bin */
} pnb_uncertainty_calibration;

/* `correct` is 1 where the query's first hit is right (best_rank == 1), any value in [0,1] works.
 * Errors  as pnb_bins_assign, NUMERIC */
pnb_status pnb_uncertainty_calibration_compute(const double *uncertainty, const double *correct,
                                               size_t n, pnb_binning binning, size_t n_bins,
                                               pnb_uncertainty_calibration *out, pnb_error *err);

/* ---- statistics ---- NaN or infinite input is NUMERIC, too few or constant values are ARG */
pnb_status pnb_pearson(const double *x, const double *y, size_t n, double *out, pnb_error *err);
pnb_status pnb_spearman(const double *x, const double *y, size_t n, double *out, pnb_error *err);
pnb_status pnb_kendall_tau_b(const double *x, const double *y, size_t n, double *out,
                             pnb_error *err);
/* Ranks from 1, ties get their average. */
pnb_status pnb_average_ranks(const double *x, size_t n, double *rank, pnb_error *err);
/* Area under the ROC curve: P(score of a positive > score of a negative) + half the ties.
 * label is 0 or 1.  Errors  ARG (one class only) */
pnb_status pnb_auroc(const double *score, const int *label, size_t n, double *out, pnb_error *err);
/* Average precision, sum (R_k - R_k-1) P_k over distinct thresholds. */
pnb_status pnb_average_precision(const double *score, const int *label, size_t n, double *out,
                                 pnb_error *err);

/* Probability forecasts against 0/1 labels. Bin k of n_bins is (k/n, (k+1)/n], 0 joins the first.
 */
typedef struct pnb_ece {
    double ece, mce; /* expected and maximum calibration error */
    double brier;
    double nll; /* confidence clipped to [1e-7, 1 - 1e-7] */
} pnb_ece;
pnb_status pnb_ece_compute(const double *confidence, const int *label, size_t n, size_t n_bins,
                           pnb_ece *out, pnb_error *err);

/* A figure of resampled rows: `row` holds n indices drawn with replacement. */
typedef double (*pnb_statistic_fn)(void *user, const size_t *row, size_t n);
typedef struct pnb_interval {
    double value;     /* of the sample itself */
    double low, high; /* NaN: the sample says nothing about the spread */
} pnb_interval;
typedef struct pnb_bootstrap_opts {
    size_t n_resamples; /* 1000 */
    double level;       /* 0.95 */
    uint64_t seed;
    const int64_t *cluster; /* [n] rows of one label were sampled together and are drawn together,
                             * as captions of one picture; NULL: each row by itself. Where a struct
                             * of values brings its own clusters, this is not read */
} pnb_bootstrap_opts;
pnb_bootstrap_opts pnb_bootstrap_opts_default(void);
/* BCa intervals, widened for few clusters: docs/numerics.md#intervals.
 * Errors  ARG (n = 0, level outside (0,1), no resamples), NUMERIC (every resample was NaN), NOMEM
 */
pnb_status pnb_bootstrap(pnb_statistic_fn statistic, void *user, size_t n,
                         const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err);
pnb_status pnb_bootstrap_mean(const double *values, size_t n, const pnb_bootstrap_opts *opts,
                              pnb_interval *out, pnb_error *err);

/* ---- hierarchy ---- */
/* mean[g] and count[g] over rows with group[i] == g; rows with a negative group or a NaN value are
 * left out; an empty group has mean NaN. Serves uncertainty by caption level and R-Precision by
 * level alike.  Errors  ARG (a group >= n_groups: the text names the row) */
pnb_status pnb_mean_by_group(const double *values, const int *group, size_t n, size_t n_groups,
                             double *mean, size_t *count, pnb_error *err);
/* P(u of a row in group a > u of a row in group b) over all pairs, ties count half.
 * Errors  ARG (a group is empty), NUMERIC, NOMEM */
pnb_status pnb_share_group_above(const double *u, const int *group, size_t n, int a, int b,
                                 double *out, pnb_error *err);
/* Share of rows with x[i] > y[i], strictly (masked more uncertain than the original).
 * Errors  ARG (n = 0), NUMERIC */
pnb_status pnb_share_above(const double *x, const double *y, size_t n, double *out, pnb_error *err);
/* Share of rows with H(a_i in b_i) > 0; `published` takes ProLIP's form with opts->inclusion_eps.
 */
pnb_status pnb_share_included(const pnb_gaussians *a, const pnb_gaussians *b, bool published,
                              const pnb_measure_opts *opts, double *out, pnb_error *err);

/* Order of levels within each owner (picture): u averaged by (owner, level), compared inside the
 * owner. Level 0 is the most general and is expected to be the most uncertain. */
typedef struct pnb_level_order {
    size_t n_first_last;           /* owners with captions at both the first and the last level */
    double share_first_above_last; /* of those */
    size_t n_complete;             /* owners with captions at every level */
    double share_in_order;         /* of those: u strictly falls from each level to the next */
} pnb_level_order;
/* Errors  ARG (n_levels < 2, level outside, no owner has both ends), NUMERIC, NOMEM */
pnb_status pnb_level_order_compute(const double *u, const int *level, const int64_t *owner,
                                   size_t n, int n_levels, pnb_level_order *out, pnb_error *err);

/* ---- PCA to 2-D ---- a linear map, so Gaussians stay Gaussians: docs/numerics.md#pca */
typedef struct pnb_pca {
    size_t dim;
    double *centre;        /* [dim] */
    double *axis;          /* [2][dim], orthonormal, largest |coordinate| of each positive */
    double variance[2];    /* along the axes */
    double total_variance; /* of everything */
} pnb_pca;

#define PNB_PCA_MAX_ROWS 4000 /* of each set are used for fitting, evenly spaced */

/* Axes of the mixture of all Gaussians of `sets` (spread of the means plus mean variances).
 * Errors  SHAPE (widths differ, fewer than 2 rows or dimensions), NUMERIC, NOMEM */
pnb_status pnb_pca_fit(pnb_pca *out, const pnb_gaussians *const *sets, size_t n_sets,
                       pnb_error *err);
void pnb_pca_reset(pnb_pca *pca); /* frees the arrays; NULL is fine */
/* xy [n][2] projected means; cov [n][3] = (xx, xy, yy) of the projected Gaussian, may be NULL.
 * Errors  SHAPE */
pnb_status pnb_pca_project(const pnb_pca *pca, const pnb_gaussians *x, double *xy, double *cov,
                           pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
