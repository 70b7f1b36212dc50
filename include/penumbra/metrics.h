/* Figures of retrieval and of uncertainty as papers report them, with bootstrap intervals.
 *
 * eval.h has the parts (truth, ranks, bins, statistics); this header has what is made of them:
 * ranks under several truths in one pass, plausible-match R-Precision, selective prediction, the
 * COCO and ECCV-Caption table, intervals and paired tests. All shares are fractions in [0,1].
 * Definitions with their sources: docs/numerics.md#retrieval, #calibration, #intervals. */
#ifndef PENUMBRA_METRICS_H
#define PENUMBRA_METRICS_H

#include "penumbra/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ranks under several truths ---- */
/* One way to judge the same scores; all tasks of a call share one pass over them. */
typedef struct pnb_rank_task {
    const pnb_truth *truth;
    const int32_t *query_fold; /* [n_queries] a query ranks the items of its own fold only */
    const int32_t *item_fold;  /* [n_items]; negative: in no fold. Both NULL: everything */
    const size_t *precision_k; /* n_precision cut-offs */
    size_t n_precision;
    double *precision; /* [n_queries][n_precision] positives among the first k, over k; may be NULL.
                        * Divided by k also where the gallery is smaller, as PCME has it */
} pnb_rank_task;

/* Fills score[0..n_items) of a query; larger is nearer. Called from several threads at once. */
typedef void (*pnb_score_row_fn)(void *user, size_t query, double *score);

/* Ranks of every task into out[n_tasks]. With folds, positives outside the query's fold do not
 * count, and a query whose fold holds no item or no positive has rank 0.
 * Memory  O(pairs + n_items * threads). Ties go to the lower index
 * Errors  ARG (no task, tasks of different size, one fold array of two), NUMERIC (NaN), NOMEM */
pnb_status pnb_ranks_from_rows(const pnb_ctx *ctx, pnb_score_row_fn fn, void *user,
                               const pnb_rank_task *tasks, size_t n_tasks, pnb_ranks *out,
                               pnb_error *err);
/* The same on embeddings, bounds settling most pairs; opts as in pnb_ranks_compute.
 * Memory  O(pairs + N*block), with folds also the rows of one fold.  Errors  also SHAPE */
pnb_status pnb_ranks_compute_tasks(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                   const pnb_gaussians *gallery, const pnb_rank_task *tasks,
                                   size_t n_tasks, const pnb_search_opts *opts, pnb_ranks *out,
                                   pnb_error *err);

/* ---- plausible matches ---- */
#define PNB_MAX_ZETA 7

/* Label vectors of both sides, one byte a label, 0 or 1. */
typedef struct pnb_label_vectors {
    size_t n_queries, n_items, n_labels;
    const uint8_t *query;      /* [n_queries][n_labels] */
    const uint8_t *item;       /* [n_items][n_labels] */
    const int32_t *query_fold; /* [n_queries] 0 .. PNB_COCO_FOLDS-1: a query sees the items of its
                                * own fold only, and each figure is its mean over the folds */
    const int32_t *item_fold;  /* [n_items]; negative: in no fold. Both NULL: everything */
} pnb_label_vectors;
#define PNB_COCO_FOLDS 5

/* An item is plausible for a query when their vectors differ in at most zeta places; R-Precision
 * and R@1 under that truth for zeta = 0..max_zeta, averaged over the queries that have a plausible
 * item, then over zeta.  Source  PCME section 4.2 and its evaluation code (which prints x 100) */
typedef struct pnb_pmrp {
    int max_zeta;
    double r_precision[PNB_MAX_ZETA + 1], recall_1[PNB_MAX_ZETA + 1];
    size_t n_queries[PNB_MAX_ZETA + 1];
    double pmrp, pm_r1;
} pnb_pmrp;

/* per_query [n_queries][max_zeta + 1] receives R-Precision by zeta (NaN without a plausible item)
 * and may be NULL.
 * Errors  ARG (max_zeta outside 0..PNB_MAX_ZETA, a label above 1, nothing plausible, folds of one
 *         side only or beyond PNB_COCO_FOLDS), SHAPE, NUMERIC (NaN score), NOMEM */
pnb_status pnb_pmrp_from_rows(const pnb_ctx *ctx, pnb_score_row_fn fn, void *user,
                              const pnb_label_vectors *labels, int max_zeta, pnb_pmrp *out,
                              double *per_query, pnb_error *err);
typedef struct pnb_pmrp_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_search_opts *opts; /* NULL: defaults */
    const pnb_label_vectors *labels;
    int max_zeta;
} pnb_pmrp_job;
pnb_status pnb_pmrp_compute(const pnb_ctx *ctx, const pnb_pmrp_job *job, pnb_pmrp *out,
                            double *per_query, pnb_error *err);
/* Intervals of r_precision and pmrp over the queries that have a plausible item; each zeta is
 * averaged over those drawn that have one for it, in folds within each. The clusters of opts are
 * not read. 0 resamples: values only.  opts NULL: the defaults.
 * Errors  ARG (max_zeta, no such query, level), NOMEM */
typedef struct pnb_pmrp_values {
    const double *per_query; /* [n_queries][max_zeta + 1] as computed */
    const int32_t *fold;     /* [n_queries] of the labels; NULL: none */
    const int64_t *cluster;  /* [n_queries] drawn together, within a fold; NULL: each by itself */
    size_t n_queries;
    int max_zeta;
} pnb_pmrp_values;
typedef struct pnb_pmrp_intervals {
    pnb_interval r_precision[PNB_MAX_ZETA + 1], pmrp;
} pnb_pmrp_intervals;
pnb_status pnb_pmrp_bootstrap(const pnb_ctx *ctx, const pnb_pmrp_values *values,
                              const pnb_bootstrap_opts *opts, pnb_pmrp_intervals *out,
                              pnb_error *err);

/* ---- selective prediction: answering only where uncertainty is low ---- */
/* Ties in uncertainty are answered in random order: every figure is the mean over their orders. */
typedef struct pnb_selective {
    double error; /* share of wrong answers = risk at full coverage */
    double auroc; /* of uncertainty against error; NaN when all or none are wrong */
    double aurc;  /* mean over n = 1..N of the risk of the n most certain answers */
    double augrc; /* area under coverage -> share of all queries answered wrongly */
} pnb_selective;
/* `correct` in [0,1], u ascending is answered first.  Errors  ARG (n = 0), NUMERIC, NOMEM */
pnb_status pnb_selective_compute(const double *uncertainty, const double *correct, size_t n,
                                 pnb_selective *out, pnb_error *err);
/* Risk of the ceil(n * i / n_points) most certain answers, i = 1..n_points, into both arrays.
 * Errors  ARG (n or n_points 0), NUMERIC, NOMEM */
pnb_status pnb_risk_coverage(const double *uncertainty, const double *correct, size_t n,
                             size_t n_points, double *coverage, double *risk, pnb_error *err);

/* ---- calibration error without its bias ---- */
/* Estimate of E|P(right | confidence) - confidence| and its interval: bins of equal mass, noise
 * taken out of each; 0 where the forecasts are as good as perfect ones. correct[i] in [0,1].
 * Intervals by the clusters of opts; with 0 resamples or one cluster they are NaN.
 * Source  docs/numerics.md#calibration-error.  Errors  ARG (n = 0, level), NUMERIC, NOMEM */
pnb_status pnb_ece_debiased(const double *confidence, const double *correct, size_t n,
                            const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err);

/* ---- means ---- */
/* exp(mean log x) of each row.  Shape x (N,D) -> out (N)
 * Errors  SHAPE (dim 0), NUMERIC (a value that is not finite and above 0: row and column) */
pnb_status pnb_geometric_mean_rows(const double *x, size_t n, size_t dim, double *out,
                                   pnb_error *err);

/* ---- figures of one direction, resampled over queries ---- */
/* X(name, text, sentence) */
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

typedef enum pnb_figure {
#define PNB_FIGURE_ENUM(name, text, sentence) PNB_FIGURE_##name,
    PNB_FIGURE_LIST(PNB_FIGURE_ENUM)
#undef PNB_FIGURE_ENUM
        PNB_N_FIGURES
} pnb_figure;
const char *pnb_figure_name(pnb_figure figure);     /* "unknown" outside the list */
const char *pnb_figure_sentence(pnb_figure figure); /* one line */
/* Whether the figure hangs on an uncertainty that queries are sorted by. */
bool pnb_figure_is_sorted(pnb_figure figure);
/* False for S, R2 and -S R2 of bins and the plug-in ECE: what they are of a sample is far from what
 * they are of many queries, and no interval around them is honest. */
bool pnb_figure_has_interval(pnb_figure figure);

/* What is known of each query that has a positive; arrays of n, all but best_rank may be NULL. */
typedef struct pnb_query_values {
    size_t n;
    const int64_t *best_rank; /* from 1 */
    const double *r_precision, *map_at_r;
    const double *uncertainty; /* the query's, or that of what it found */
    const double *confidence;  /* probability that the first hit is right */
    const int64_t *cluster;    /* queries of one label were sampled together, as captions of one
                                * picture, and are drawn together; NULL: each by itself. A label
                                * means the same in both directions */
} pnb_query_values;

typedef struct pnb_figure_opts {
    const size_t *k; /* n_k cut-offs of the recall; NULL: 1, 5, 10 */
    size_t n_k;
    size_t n_bins;      /* of uncertainty: 10. Fewer queries than bins: one bin a query */
    size_t n_mass_bins; /* of the ECE: 15 */
} pnb_figure_opts;
pnb_figure_opts pnb_figure_opts_default(void);

/* NaN where a figure is not defined: its array is missing, one class only (auroc). S, R2 and -S R2
 * are 0 when R@1 is the same in all bins, as in pnb_uncertainty_calibration. */
typedef struct pnb_figures {
    double recall[PNB_MAX_RECALLS];
    double value[PNB_N_FIGURES];
} pnb_figures;
/* Errors  ARG (no query, rank below 1, bad cut-off or number of bins), NUMERIC, NOMEM */
pnb_status pnb_figures_compute(const pnb_query_values *values, const pnb_figure_opts *opts,
                               pnb_figures *out, pnb_error *err);

/* BCa intervals over resampled clusters of queries (docs/numerics.md#intervals); NaN where a figure
 * has none, with fewer than two clusters, and where all queries agree (but recalls and precisions
 * get Wilson's). `bootstrap` with 0 resamples: values only. Several seeds of one model on the same
 * queries are n_seeds arrays: the figure is their mean, all resampled alike. The result does not
 * depend on the number of threads.  Errors  as pnb_figures_compute; ARG (seeds with different n,
 * level) */
typedef struct pnb_figure_intervals {
    pnb_figures value, low, high;
} pnb_figure_intervals;
pnb_status pnb_figures_bootstrap(const pnb_ctx *ctx, const pnb_query_values *seeds, size_t n_seeds,
                                 const pnb_figure_opts *opts, const pnb_bootstrap_opts *bootstrap,
                                 pnb_figure_intervals *out, pnb_error *err);

/* Paired bootstrap of two models on the same queries in the same order: both are resampled alike.
 * Two-sided p as docs/numerics.md#intervals has it; NaN where a figure has no interval or the
 * difference is not defined, as that of ece_debiased.  Errors  as above */
typedef struct pnb_figure_test {
    pnb_figures difference; /* b - a */
    pnb_figures low, high, p;
} pnb_figure_test;
typedef struct pnb_figure_pair {
    const pnb_query_values *a, *b; /* n_a and n_b seeds */
    size_t n_a, n_b;
} pnb_figure_pair;
pnb_status pnb_figures_compare(const pnb_ctx *ctx, const pnb_figure_pair *pair,
                               const pnb_figure_opts *opts, const pnb_bootstrap_opts *bootstrap,
                               pnb_figure_test *out, pnb_error *err);

/* ---- COCO Caption, CxC, ECCV Caption and PMRP in one table ---- */
/* Truths between pictures and captions; forward is picture -> captions. The two directions are read
 * from files of their own: ECCV's are not transposes of each other. cxc and eccv may be NULL. */
typedef struct pnb_coco_truth {
    const pnb_truth *original_i2t, *original_t2i;
    const pnb_truth *cxc_i2t, *cxc_t2i;
    const pnb_truth *eccv_i2t, *eccv_t2i;
    const int32_t *image_fold, *text_fold; /* folds 0..4 of COCO 1K; NULL: no coco_1k */
} pnb_coco_truth;

/* One figure both ways. */
typedef struct pnb_both_ways {
    double i2t, t2i;
} pnb_both_ways;

/* Names as ECCV Caption's package prints them; r[] is R@1, R@5, R@10. NaN: no truth given. */
typedef struct pnb_coco_figures {
    pnb_both_ways coco_1k_r[3], coco_5k_r[3], cxc_r[3], eccv_r[3];
    pnb_both_ways eccv_map_at_r, eccv_rprecision;
} pnb_coco_figures;

/* Folds of COCO 1K: n_texts / 5 consecutive captions each, in the order given by `order` (row
 * numbers of the captions; NULL: row order), and the pictures they belong to. The remainder of
 * n_texts is in no fold (-1).
 * Errors  ARG (fewer than 5 captions, a picture whose captions lie in two folds, NOMEM */
pnb_status pnb_coco_folds(const pnb_truth *text_to_image, const size_t *order, size_t n_order,
                          int32_t *image_fold, int32_t *text_fold, pnb_error *err);

/* The same by pictures, as a file of Karpathy's split has them: n_order / 5 consecutive pictures
 * each, in the order given by `order` (row numbers), with all captions that belong to them.
 * Errors  ARG (fewer than 5 pictures, a picture that does not exist, a caption of pictures in two
 *         folds) */
pnb_status pnb_coco_folds_by_image(const pnb_truth *image_to_text, const size_t *order,
                                   size_t n_order, int32_t *image_fold, int32_t *text_fold,
                                   pnb_error *err);

/* Rankings of both directions: from embeddings, or from rows of scores. Queries without a positive
 * are left out, but in a fold they would count as a miss: folds hold all captions of a picture. */
pnb_status pnb_coco_compute(const pnb_ctx *ctx, const pnb_gaussians *images,
                            const pnb_gaussians *texts, const pnb_coco_truth *truth,
                            const pnb_search_opts *opts, pnb_coco_figures *out, pnb_error *err);
typedef struct pnb_coco_rows {
    pnb_score_row_fn i2t, t2i;
    void *user;
} pnb_coco_rows;
pnb_status pnb_coco_from_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_figures *out, pnb_error *err);

/* The two steps of the above, for more than the figures: rankings by truth, then what they come
 * to. Memory O(queries). */
typedef enum pnb_coco_kind {
    PNB_COCO_1K,
    PNB_COCO_5K,
    PNB_COCO_CXC,
    PNB_COCO_ECCV,
    PNB_N_COCO_KINDS
} pnb_coco_kind;
typedef struct pnb_coco_side {
    pnb_ranks ranks[PNB_N_COCO_KINDS]; /* n_queries 0: this truth was not given */
    int32_t *fold;                     /* [n_queries] of COCO 1K; NULL without */
    int64_t *cluster; /* [n_queries] drawn together: a picture with its captions, as the original
                       * pairs connect them. May be changed; NULL: each query by itself */
} pnb_coco_side;
typedef struct pnb_coco_ranks {
    pnb_coco_side side[2]; /* image to text, text to image */
} pnb_coco_ranks;
/* The caller frees `out` with pnb_coco_ranks_reset. */
pnb_status pnb_coco_rank(const pnb_ctx *ctx, const pnb_gaussians *images,
                         const pnb_gaussians *texts, const pnb_coco_truth *truth,
                         const pnb_search_opts *opts, pnb_coco_ranks *out, pnb_error *err);
pnb_status pnb_coco_rank_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_ranks *out, pnb_error *err);
void pnb_coco_ranks_reset(pnb_coco_ranks *ranks); /* NULL is fine */
pnb_status pnb_coco_summarise(const pnb_coco_ranks *ranks, pnb_coco_figures *out, pnb_error *err);

/* The figures with intervals over resampled clusters: of each truth the queries that have a
 * positive; of COCO 1K the clusters of each fold are drawn among themselves and the folds averaged.
 * One truth's figures are drawn together, and the two directions apart. The result does not depend
 * on the number of threads. 0 resamples: values only.  opts NULL: the defaults.
 * Errors  ARG (no query with a positive, level), NOMEM */
typedef struct pnb_coco_intervals {
    pnb_coco_figures value, low, high; /* NaN where no truth was given */
} pnb_coco_intervals;
pnb_status pnb_coco_bootstrap(const pnb_ctx *ctx, const pnb_coco_ranks *ranks,
                              const pnb_bootstrap_opts *opts, pnb_coco_intervals *out,
                              pnb_error *err);

/* ---- the sum of all recalls both ways ---- */
/* Seeds of one model by direction, and those of a second that is compared with it. */
typedef struct pnb_rsum_job {
    const pnb_query_values *a[2]; /* [n_a] pictures as queries, captions as queries */
    const pnb_query_values *b[2]; /* [n_b]; n_b 0: one model alone */
    size_t n_a, n_b;
    const size_t *k;
    size_t n_k;
} pnb_rsum_job;

/* RSUM as a fraction (papers print x 100) and its interval; with a second model second minus first,
 * and p of no difference. Clusters are drawn with the queries of both directions, by the labels of
 * the first seeds; without labels the two sides are drawn apart. 0 resamples: values only. */
typedef struct pnb_rsum {
    double value, low, high;
    double std; /* of the first model over its seeds; NaN for one */
    double p;
} pnb_rsum;
/* Errors  ARG (no seeds or cut-offs, other numbers of queries, clusters on one side only), NOMEM */
pnb_status pnb_rsum_bootstrap(const pnb_rsum_job *job, const pnb_bootstrap_opts *opts,
                              pnb_rsum *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
