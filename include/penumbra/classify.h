/* Zero-shot classification: prompts become classes, pictures the nearest class, and both figures.
 *
 * A class is a Gaussian put together from the Gaussians of its prompts ("a photo of a cat", ...):
 * all of them, the certain ones (filters), or each with a weight learned from pictures (BPRW). A
 * picture goes to the class of the best score of a measure, ties to the lower class:
 *   p(c | picture) = softmax_c(scale * score(picture, c)), of match_prob with its logarithm
 * u is the uncertainty of a prompt, larger is less certain; shares are fractions in [0,1]. A NULL
 * ctx means one thread; no result depends on their number. Formulas with their sources:
 * docs/numerics.md#zero-shot and docs/numerics.md#bprw.
 *
 *     pnb_classifier_build(&classes, &prompts, NULL, NULL, &err);    all prompts, equal weights
 *     pnb_classify(ctx, &job, &predictions, &err);                   job.classes: rows of them
 *     pnb_classification_compute(&predictions, labels, 15, &figures, &err);
 */
#ifndef PENUMBRA_CLASSIFY_H
#define PENUMBRA_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- prompts ---- */

/* A view of the prompts of K classes; the arrays must outlive it. */
typedef struct pnb_prompts {
    size_t n_classes, dim; /* K and D */
    const size_t *offset; /* [K + 1]: class c has rows offset[c] .. offset[c + 1] - 1, at least 1 */
    const float *mean;    /* [offset[K]][dim] */
    const float *log_var; /* the same shape; NULL: points, unless `var` is set */
    const float *var;     /* variances in place of log-variances; else NULL */
    const float *kappa;   /* [offset[K]] concentrations on the sphere; NULL: Gaussians and points */
} pnb_prompts;

/* Trace (sum of the variances) of every prompt, 1/kappa on the sphere; points give 0.
 * Shape   out (offset[K])
 * Errors  SHAPE (no class, a class without prompts), NUMERIC (a variance or kappa is not finite) */
pnb_status pnb_prompts_uncertainty(const pnb_prompts *prompts, double *out, pnb_error *err);

/* ---- filters ---- */

/* X(NAME, text, sentence): which prompts of a class count, by u and a number `value`. Comparisons
 * are <=, so ties at a limit stay, but for TOP_K.
 *
 * - CLASS_STD: the standard deviation is the unbiased one; a class of one prompt keeps it.
 * - TOP_K: breaks ties by the lower row, and keeps all where there are fewer.
 * - GLOBAL_TOP, GLOBAL: one limit for all classes, so some keep many prompts and others one. */
#define PNB_PROMPT_FILTER_LIST(X)                                                                  \
    X(NONE, "none", "every prompt")                                                                \
    X(CLASS_STD, "class_std", "u <= mean + value * standard deviation of the class")               \
    X(TOP_K, "top_k", "the `value` most certain prompts of each class")                            \
    X(GLOBAL_TOP, "global_top", "u <= the `value`-th smallest of all prompts")                     \
    X(GLOBAL, "global", "u <= value")

typedef enum pnb_prompt_filter {
#define PNB_PROMPT_FILTER_ENUM(name, text, sentence) PNB_FILTER_PROMPTS_##name,
    PNB_PROMPT_FILTER_LIST(PNB_PROMPT_FILTER_ENUM)
#undef PNB_PROMPT_FILTER_ENUM
        PNB_N_PROMPT_FILTERS /* how many there are */
} pnb_prompt_filter;

/* "class_std"; "unknown" outside the list. */
const char *pnb_prompt_filter_name(pnb_prompt_filter filter);
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_prompt_filter_parse(pnb_prompt_filter *out, const char *name, pnb_error *err);

/* Weight 1/n for the n prompts of a class that are kept, 0 for the others; a class of which nothing
 * would be left keeps its most certain prompts (all that tie).
 * Shape   uncertainty, weight (offset[n_classes])
 * Errors  ARG (value: not finite; no whole number from 1 for top_k and global_top), SHAPE (no
 * class, a class without prompts), NUMERIC (an uncertainty is not finite), NOMEM Source  ProLIP
 * section 3.4 and its released filters */
pnb_status pnb_prompts_filter(pnb_prompt_filter filter, double value, const size_t *offset,
                              size_t n_classes, const double *uncertainty, double *weight,
                              pnb_error *err);
/* TOP_K with a number of its own for every class: the k[c] most certain of class c.
 * Errors  ARG (a k of 0), SHAPE, NUMERIC, NOMEM */
pnb_status pnb_prompts_top_k(const size_t *k, const size_t *offset, size_t n_classes,
                             const double *uncertainty, double *weight, pnb_error *err);

/* ---- classes ---- */

/* Of the weights w_i of a class's prompts, which sum to 1. */
typedef enum pnb_class_variance {
    PNB_CLASS_VARIANCE_MEAN,   /* sum_i w_i var_i: ProLIP's ensembling */
    PNB_CLASS_VARIANCE_SQUARED /* sum_i w_i^2 var_i, the variance of the weighted mean: ProLIP's
                                * BPRW; its paper found it worse for ensembling */
} pnb_class_variance;

typedef struct pnb_classifier_opts {
    bool normalise;              /* means to unit length; ProLIP's released BPRW does not. true */
    pnb_class_variance variance; /* MEAN */
} pnb_classifier_opts;
pnb_classifier_opts pnb_classifier_opts_default(void); /* the values that stand beside the fields */

/* The Gaussian of every class, in f64. */
typedef struct pnb_classifier {
    size_t n_classes, dim; /* K and D */
    double *mean, *var;    /* [K][dim] */
    double *kappa;         /* [K] on the sphere, where var is 0; NULL otherwise */
} pnb_classifier;

/* mean_c = sum_i w_i mean_i, normalised when asked; var_c as opts say. On the sphere kappa_c mean_c
 * = sum_i w_i kappa_i mean_i with a unit mean, whatever opts say: the geometric mean of von
 * Mises-Fisher densities. opts may be NULL. `out` is all zero on failure; free it with
 * pnb_classifier_reset.
 *   weight  (offset[K]), used as it is: sums to 1 within each class. NULL: equal weights
 * Errors  SHAPE (no class, a class without prompts), ARG (a negative weight, or none above 0),
 *         NUMERIC (a mean of length 0 that is to be normalised), NOMEM
 * Source  ProLIP section 4.1; AsymVLM A.2 (sphere) */
pnb_status pnb_classifier_build(pnb_classifier *out, const pnb_prompts *prompts,
                                const double *weight, const pnb_classifier_opts *opts,
                                pnb_error *err);
void pnb_classifier_reset(pnb_classifier *classifier); /* frees the arrays; NULL is fine */

/* ---- mixing weights of fixed Gaussians, by EM ---- */

/* Where the steps start. */
typedef enum pnb_em_prior {
    PNB_EM_INVERSE,    /* first weights ~ 1 / mean variance */
    PNB_EM_INVERSE_SQ, /* ~ 1 / mean of squared variances */
    PNB_EM_INVERSE_5,  /* ~ 1 / mean of fifth powers */
    PNB_EM_UNIFORM     /* all the same */
} pnb_em_prior;

typedef struct pnb_em_opts {
    double alpha;       /* of the symmetric Dirichlet prior: larger is more uniform. 5 */
    double eps;         /* added to every variance. 0.02 */
    double var_scale;   /* variances are multiplied by it first. 1 */
    bool scale_twice;   /* and again after eps, (v s + eps) s, as the released code. false */
    bool one_step_old;  /* the weights before the last step, as the released code returns when it
                         * has converged. false */
    pnb_em_prior prior; /* INVERSE, of the variances as they are given */
    double tolerance;   /* stop when the step's length is below. 1e-12 */
    size_t max_steps;   /* 1000; 0 gives the first weights */
} pnb_em_opts;
pnb_em_opts pnb_em_opts_default(void); /* the values that stand beside the fields */

/* Points, and the Gaussians they are to be explained by; borrowed during the call. */
typedef struct pnb_em_data {
    size_t n_points, n_components, dim;
    const double *points;     /* [n_points][dim] */
    const double *mean, *var; /* [n_components][dim] */
} pnb_em_data;

/* Weights pi of a mixture of the given Gaussians that maximise the posterior of the points:
 *   E  r_pn = pi_n N(x_p; mean_n, var_n) / sum   (sums of exponentials taken safely)
 *   M  pi_n = max(0, sum_p r_pn + alpha - 1), normalised
 * A component that has reached 0 stays there (alpha < 1). Where a variance is 0 throughout a
 * component the first weights are equal. If every component would be 0 the weights stay as they
 * are. Without points (n_points 0) the first weights come back. opts NULL: the defaults.
 *   n_steps  steps that were made, max_steps + 1 where they were not enough; may be NULL
 * Shape   weight (n_components)
 * Errors  SHAPE (no component, dim 0), ARG (alpha <= 0, eps < 0, var_scale <= 0), NUMERIC (names
 *         point or component: not finite, a variance that is not above 0 after eps), NOMEM
 * Source  ProLIP appendix A.5 */
pnb_status pnb_em_mixing_weights(const pnb_em_data *data, const pnb_em_opts *opts, double *weight,
                                 size_t *n_steps, pnb_error *err);

/* ---- Bayesian prompt re-weighting ---- */

typedef struct pnb_bprw_opts {
    pnb_em_opts em;
    size_t n_images;  /* of a class: the nearest ones, or with labels the first ones (0: all). 10 */
    size_t n_samples; /* points drawn from each picture, at least one; 0: floor(100 / its class's
                       * pictures). 10 */
    uint64_t seed;    /* samples are f(seed, row of the picture) */
} pnb_bprw_opts;
pnb_bprw_opts pnb_bprw_opts_default(void);  /* no labels: alpha 5, 10 nearest, 10 samples */
pnb_bprw_opts pnb_bprw_opts_few_shot(void); /* labels: alpha 2, all, floor(100/K) samples */

/* What a caller may want to warn of. */
typedef struct pnb_bprw_summary {
    size_t n_without;     /* classes without a picture: equal weights, what the prior alone says */
    size_t n_unconverged; /* classes that needed more than max_steps */
} pnb_bprw_summary;

/* Weights of the prompts of every class from pictures. Without labels a class takes the pictures
 * whose means are nearest to its ensemble; with labels those of its label (-1: of none). opts NULL:
 * the first or the second of the above, as there are labels; `summary` may be NULL.
 * Shape   weight (offset[K]), labels (images->n) or NULL
 * Errors  SHAPE (widths differ, no pictures, a class without prompts), ARG (label outside -1 ..
 * K-1, no pictures asked for without labels, options of the EM), UNSUPPORTED (prompts or pictures
 *         on the sphere: points are drawn from Gaussians), NUMERIC, NOMEM
 * Source  ProLIP sections 3.4, A.5, C.5 */
pnb_status pnb_bprw(const pnb_ctx *ctx, const pnb_prompts *prompts, const pnb_gaussians *images,
                    const int32_t *labels, const pnb_bprw_opts *opts, double *weight,
                    pnb_bprw_summary *summary, pnb_error *err);

/* ---- predictions ---- */

/* What is classified, into what, by which measure; borrowed during the call. */
typedef struct pnb_classify_job {
    const pnb_rows *images;       /* N */
    const pnb_rows *classes;      /* K */
    const pnb_rows *dummies;      /* prompts that mean "none of these", or NULL */
    const int32_t *labels;        /* (N), -1 unknown; or NULL */
    pnb_measure measure;          /* picture is side 1 */
    const pnb_measure_opts *opts; /* NULL: defaults */
    double scale;                 /* p = softmax(scale * score): 1/temperature, > 0 */
    size_t k;                     /* best classes kept of each picture, at most K */
    double *all_scores;           /* (N, K) filled where not NULL: what scalings are fitted on */
    /* PLAIN, or what is made of the variance of the cosine; the measure must be MEAN then and one
     * side have variances. Scores are such that p = softmax(scale * score) holds for each: with
     * PROBIT the corrected logit over scale, with SAMPLING the logarithm of p over scale */
    pnb_prediction prediction;
    size_t n_draws; /* of SAMPLING: 1 to 100,000 */
    uint64_t seed;  /* draws are f(seed, row of the picture) */
} pnb_classify_job;

typedef struct pnb_predictions {
    size_t n, n_classes, k; /* pictures, K, classes kept of each picture */
    int32_t *top;           /* [n][k] classes, best first, ties to the lower class */
    double *score;          /* [n][k] pnb_measure_score of the pair; of match_prob its logarithm */
    double *probability;    /* [n][k] among the K classes */
    double *log_p_label;    /* [n] log probability of the label, NaN where unknown */
    double *log_odds_dummy; /* [n] scale * (best dummy's score - best class's); NaN without */
} pnb_predictions;

/* Scores every picture against every class. `out` need not be initialised and is all zero on
 * failure; free it with pnb_predictions_reset.
 * Memory  O(N k + block * K), never N * K, but for all_scores
 * Errors  SHAPE (no pictures, no classes, widths differ), ARG (scale, k of 0 or above K, a label
 *         outside -1 .. K - 1: names the picture, a measure that does not fit the families, a
 * prediction without variances, by another measure or, sampled, beside dummies), NUMERIC (a score
 * is not a number: names picture and class), LIMIT (2^31 classes), NOMEM Source ProLIP section 4.1;
 * AsymVLM A.2 for the measures on the sphere */
pnb_status pnb_classify(const pnb_ctx *ctx, const pnb_classify_job *job, pnb_predictions *out,
                        pnb_error *err);
void pnb_predictions_reset(pnb_predictions *p); /* frees the arrays; NULL is fine */

/* ---- figures ---- */

/* Of one class. */
typedef struct pnb_class_figures {
    size_t n, n_predicted, n_correct; /* pictures of the class, called so, both */
    double recall, precision;         /* NaN where the denominator is 0 */
    double p_label;                   /* mean probability given to the class by its pictures */
} pnb_class_figures;

#define PNB_MAX_CONFUSION 4096 /* classes up to which the confusion matrix is kept */

typedef struct pnb_classification {
    size_t n, n_unknown;          /* pictures with a label, and without (left out) */
    size_t n_classes, n_present;  /* classes, and those with at least one picture */
    double acc1, acc5;            /* acc5 is NaN with fewer than 5 classes */
    double mean_per_class_recall; /* over the classes with pictures */
    double ece, mce;              /* of the first class's probability, bins of equal width */
    double nll;                   /* -mean log probability of the label */
    size_t *confusion;            /* [K][K], row: label, column: prediction; NULL when K is above
                                   * PNB_MAX_CONFUSION */
    pnb_class_figures *classes;   /* [K] */
} pnb_classification;

/* Accuracy, calibration and confusion of predictions. Free with pnb_classification_reset; all zero
 * on failure. labels  as given to pnb_classify, -1 unknown n_bins  of the ECE (ece.h); the field
 * takes 15 Errors  ARG (no label known, n_bins outside 1..256, label out of range, k below 5 with 5
 * classes or more), NOMEM */
pnb_status pnb_classification_compute(const pnb_predictions *p, const int32_t *labels,
                                      size_t n_bins, pnb_classification *out, pnb_error *err);
void pnb_classification_reset(pnb_classification *c); /* frees the arrays; NULL is fine */

/* ---- none of the above ---- */

/* X(NAME, text, sentence): how strange a picture is to the classes, larger is stranger.
 *
 * - DUMMY: scale * (score of the best dummy - score of the best class); the natural threshold is 0,
 *   where the dummy is one more class. AsymVLM's; "a photo", "a photo of an object" are dummies.
 * - MARGIN, THRESHOLD: in [0,1], of the probabilities: the baselines.
 * - SCORE: in units of the measure, without comparing classes.
 * - UNCERTAINTY: does not look at the classes at all. */
#define PNB_NONE_RULE_LIST(X)                                                                      \
    X(DUMMY, "dummy", "log odds of the best dummy prompt against the best class")                  \
    X(MARGIN, "margin", "1 - (largest probability - second largest)")                              \
    X(THRESHOLD, "threshold", "1 - largest probability")                                           \
    X(SCORE, "score", "negative score of the best class")                                          \
    X(UNCERTAINTY, "uncertainty", "the picture's own uncertainty")

typedef enum pnb_none_rule {
#define PNB_NONE_RULE_ENUM(name, text, sentence) PNB_NONE_##name,
    PNB_NONE_RULE_LIST(PNB_NONE_RULE_ENUM)
#undef PNB_NONE_RULE_ENUM
        PNB_N_NONE_RULES /* how many there are */
} pnb_none_rule;

const char *pnb_none_rule_name(pnb_none_rule rule); /* "unknown" outside the list */

/* Strangeness of every picture; a picture is called none when it is above the threshold, ties are
 * accepted.
 * Shape   uncertainty (p->n), read by that rule only -> out (p->n)
 * Errors  ARG (dummy without dummies, margin with one class or k = 1, uncertainty missing)
 * Source  AsymVLM section 5.4 */
pnb_status pnb_ood_score(pnb_none_rule rule, const pnb_predictions *p, const double *uncertainty,
                         double *out, pnb_error *err);

/* Smallest threshold at which at most `rate` of these pictures, all of the classes, are called
 * none. The share is exact: 0.1 of 10 pictures is one.
 * Errors  ARG (n = 0, rate outside [0,1]), NUMERIC (a value is not finite), NOMEM */
pnb_status pnb_none_fit_rejected(const double *ood_score, size_t n, double rate, double *threshold,
                                 pnb_error *err);
/* Largest threshold at which at most `rate` of these pictures, none of the classes, are accepted:
 * the false-positive rate where belonging is the positive answer.
 * Errors  as above */
pnb_status pnb_none_fit_accepted(const double *ood_score, size_t n, double rate, double *threshold,
                                 pnb_error *err);

typedef struct pnb_none_figures {
    size_t n_positive, n_negative; /* pictures of the classes, and of none */
    double positive_accuracy;      /* share of positives not called none and classified right */
    double positive_rejected;      /* share of positives called none */
    double negative_accuracy;      /* share of negatives called none */
    double auroc;                  /* of ood_score for being negative */
    double fpr95; /* share of negatives accepted where 95% of the positives are accepted */
} pnb_none_figures;

/* Strangeness of positives, with a flag whether their first class is right, and of negatives.
 * Errors  ARG (one of the two is empty, threshold NaN), NUMERIC (a value is not finite), NOMEM
 * Source  AsymVLM section 5.4 (positive and negative accuracy) */
pnb_status pnb_none_compute(const double *positive, const bool *is_right, size_t n_positive,
                            const double *negative, size_t n_negative, double threshold,
                            pnb_none_figures *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
