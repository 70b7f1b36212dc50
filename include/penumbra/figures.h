/* All figures of one direction of retrieval from what is known of each query, their intervals, and
 * paired tests of two models.
 *
 * Ranking happened before (retrieval.h). Each query brings the rank of its best match and, where
 * they are known, its precisions, an uncertainty and a probability that its first hit is right; of
 * these come the recalls, the figures of uncertainty (uncertainty_calibration.h, selective.h) and
 * those of probability (ece.h). A NULL ctx means one thread. Shares are fractions in [0,1].
 * Definitions and sources: docs/numerics.md#retrieval, docs/numerics.md#calibration and
 * docs/numerics.md#intervals. */
#ifndef PENUMBRA_FIGURES_H
#define PENUMBRA_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/bootstrap.h"
#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/retrieval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text, sentence): figures beside the recalls. "Right" is a query whose first hit is a
 * positive; n queries, of which m are wrong. Range and what each reads of pnb_query_values:
 *
 * - MEDIAN_RANK, MEAN_RANK: from 1 on, of the ranks, which are always there.
 * - R_PRECISION, MAP_AT_R: in [0,1], means of the arrays of these names.
 * - SPEARMAN_S, R2, MINUS_S_R2: in [-1,1], of u in n_bins bins; S = -1 where R@1 falls from every
 *   bin to the next. The WIDTH_ forms likewise (GroVE, AsymVLM).
 * - QUERY_SPEARMAN: in [-1,1], the same without bins, Pearson of average ranks of u and [right].
 * - AUROC: in [0,1], P(u of a wrong query > u of a right one), ties half; 1/2 by chance.
 * - AURC: (1/n) sum_i E_i/i, E_i the wrong ones among the i most certain (Geifman, El-Yaniv 2017).
 * - AUGRC: (1/n^2) sum_i (E_{i-1} + E_i)/2, at most m/n (Traub et al. 2024).
 * - ECE: in [0,1], sum_b |sum of [right] - p in bin b|/n over n_mass_bins bins of the confidence.
 * - ECE_DEBIASED: in [0,1], see ece.h.
 * - NLPD: -mean log p of what happened, in nats, p clipped to [1e-7, 1 - 1e-7].
 *
 * Equal uncertainties are answered in random order, so that no figure depends on the order of the
 * rows; only in bins ties go by row. */
#define PNB_FIGURE_LIST(X)                                                                         \
    X(MEDIAN_RANK, "median_rank", "floor(median(rank - 1)) + 1 of the best positive")              \
    X(MEAN_RANK, "mean_rank", "mean rank of the best positive")                                    \
    X(R_PRECISION, "r_precision", "share of positives among the first R")                          \
    X(MAP_AT_R, "map_at_r", "mean average precision at R")                                         \
    X(SPEARMAN_S, "spearman_s", "Spearman of bin and R@1, bins of equal count")                    \
    X(R2, "r2", "R2 of the line from bin to R@1, bins of equal count")                             \
    X(MINUS_S_R2, "minus_s_r2", "-S R2, bins of equal count")                                      \
    X(WIDTH_SPEARMAN_S, "width_spearman_s", "Spearman of bin and R@1, bins of equal width")        \
    X(WIDTH_R2, "width_r2", "R2 of the line from bin to R@1, bins of equal width")                 \
    X(WIDTH_MINUS_S_R2, "width_minus_s_r2", "-S R2, bins of equal width")                          \
    X(QUERY_SPEARMAN, "query_spearman", "Spearman of uncertainty and R@1 over single queries")     \
    X(AUROC, "auroc", "AUROC of uncertainty against error of the first hit")                       \
    X(AURC, "aurc", "area under risk and coverage")                                                \
    X(AUGRC, "augrc", "area under generalised risk and coverage")                                  \
    X(ECE, "ece", "calibration error of the first hit's probability, bins of equal mass")          \
    X(ECE_DEBIASED, "ece_debiased", "the same without the noise that bins count as error")         \
    X(NLPD, "nlpd", "negative log probability of what happened to the first hit")

/* PNB_FIGURE_ECE and so on; also the place in pnb_figures.value. */
typedef enum pnb_figure {
#define PNB_FIGURE_ENUM(name, text, sentence) PNB_FIGURE_##name,
    PNB_FIGURE_LIST(PNB_FIGURE_ENUM)
#undef PNB_FIGURE_ENUM
        PNB_N_FIGURES /* how many there are */
} pnb_figure;

/* The key of the figure in result files ("median_rank"); "unknown" outside the list. */
const char *pnb_figure_name(pnb_figure figure);
/* What it is, in one line without its formula; "unknown" outside the list. */
const char *pnb_figure_sentence(pnb_figure figure);
/* Whether the figure hangs on an uncertainty that queries are sorted by: then it is another one for
 * every uncertainty, as the query's own and that of what it found. */
bool pnb_figure_is_sorted(pnb_figure figure);
/* False for S, R2 and -S R2 of bins and the plug-in ECE: what they are of a sample is far from what
 * they are of many queries, and no interval around them is honest. */
bool pnb_figure_has_interval(pnb_figure figure);

/* What is known of each query that has a positive; arrays of n, all but best_rank may be NULL. The
 * arrays of pnb_ranks do as they are where every query has one; else queries whose best_rank is 0
 * are left out first, from all arrays alike. Borrowed during the call. */
typedef struct pnb_query_values {
    size_t n;                  /* 1 to 2^32 - 1 */
    const int64_t *best_rank;  /* rank of the best positive, from 1 */
    const double *r_precision; /* of the query, finite */
    const double *map_at_r;    /* the same */
    const double *uncertainty; /* the query's, or that of what it found; larger is less certain */
    const double *confidence;  /* probability that the first hit is right, in [0,1] */
    const int64_t *cluster;    /* queries of one label were sampled together, as captions of one
                                * picture, and are drawn together; NULL: each by itself. A label
                                * means the same in both directions */
} pnb_query_values;

/* How the figures are taken; the program's own figures have these defaults. */
typedef struct pnb_figure_opts {
    const size_t *k;    /* n_k cut-offs of the recall, from 1 on; NULL: 1, 5, 10 */
    size_t n_k;         /* 1 to PNB_MAX_RECALLS; not read where k is NULL */
    size_t n_bins;      /* of uncertainty: 10. Fewer queries than bins: one bin a query */
    size_t n_mass_bins; /* of the plug-in ECE: 15 */
} pnb_figure_opts;
pnb_figure_opts pnb_figure_opts_default(void); /* the values that stand beside the fields */

/* NaN where a figure is not defined: its array is missing, all or no queries are right (AUROC,
 * QUERY_SPEARMAN), all are equally uncertain (QUERY_SPEARMAN). S, R2 and -S R2 are 0 when R@1 is
 * the same in all bins, as in pnb_uncertainty_calibration. */
typedef struct pnb_figures {
    double recall[PNB_MAX_RECALLS]; /* R@k[i]; NaN from n_k on */
    double value[PNB_N_FIGURES];    /* by pnb_figure */
} pnb_figures;

/* The figures of one sample, without intervals: what pnb_figures_bootstrap gives as the value of
 * one seed. opts NULL: the defaults.
 * Errors  ARG (no query, a rank below 1, a bad cut-off or number of bins), NUMERIC (a value is not
 *         finite, a confidence outside [0,1]), NOMEM */
pnb_status pnb_figures_compute(const pnb_query_values *values, const pnb_figure_opts *opts,
                               pnb_figures *out, pnb_error *err);

/* low and high are NaN where a figure has no interval, with 0 resamples and with fewer than two
 * clusters. Where all resamples agree, recalls and precisions of 0 or 1 have Wilson's interval with
 * a case a cluster; other recalls and precisions, the median rank and differences that one value;
 * all other figures NaN, for nothing is known of their spread. */
typedef struct pnb_figure_intervals {
    pnb_figures value; /* mean over the seeds */
    pnb_figures low;   /* ends of the interval of each */
    pnb_figures high;
} pnb_figure_intervals;

/* BCa intervals over resampled clusters of queries. Several seeds of one model on the same queries
 * are n_seeds arrays: the figure is their mean, all resampled alike by the clusters of the first.
 * ECE_DEBIASED has the interval of pnb_ece_debiased. opts and bootstrap NULL: the defaults; 0
 * resamples: values only. The result does not depend on the number of threads.
 * Errors  as pnb_figures_compute; ARG (no seeds, seeds with different n, level) */
pnb_status pnb_figures_bootstrap(const pnb_ctx *ctx, const pnb_query_values *seeds, size_t n_seeds,
                                 const pnb_figure_opts *opts, const pnb_bootstrap_opts *bootstrap,
                                 pnb_figure_intervals *out, pnb_error *err);

/* p is two-sided, as docs/numerics.md#intervals has it, and not corrected for the number of figures
 * that are looked at. NaN where a figure has no interval or the difference is not defined, as that
 * of ECE_DEBIASED. */
typedef struct pnb_figure_test {
    pnb_figures difference; /* b - a */
    pnb_figures low, high;  /* of the difference, on the resamples that both share */
    pnb_figures p;          /* in (0,1]; small: the models differ */
} pnb_figure_test;
/* Two models; more than one seed of each may be compared, also different numbers of them. */
typedef struct pnb_figure_pair {
    const pnb_query_values *a, *b; /* n_a and n_b seeds */
    size_t n_a, n_b;               /* 1 or more; all with the same n */
} pnb_figure_pair;

/* Paired bootstrap of two models on the same queries in the same order: both are resampled alike,
 * by the clusters of the first seed of a, so that what both find hard does not count. opts and
 * bootstrap NULL: the defaults; with 0 resamples there are differences only. The result does not
 * depend on the number of threads.
 * Errors  as pnb_figures_bootstrap; ARG (no second model) */
pnb_status pnb_figures_compare(const pnb_ctx *ctx, const pnb_figure_pair *pair,
                               const pnb_figure_opts *opts, const pnb_bootstrap_opts *bootstrap,
                               pnb_figure_test *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
