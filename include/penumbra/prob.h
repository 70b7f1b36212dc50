/* Distributions on plain arrays: scalar uncertainties and measures between two of them.
 *
 * A Gaussian is a row `mean` (D) and a row `log_var` (D) = natural log of the variances; other
 * families have the parameters of `pnb_rows`. Sums run in f64 whatever the storage; no result
 * depends on a block or a thread. Formulas with their sources: docs/numerics.md#measures. Densities
 * and samples of the families: distributions.h; ranking by a measure: search.h.
 *
 *     pnb_rows a = {.n = 2, .dim = 3, .mean = mean, .log_var = log_var};
 *     double u[2];
 *     status = pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &a, u, &err); */
#ifndef PENUMBRA_PROB_H
#define PENUMBRA_PROB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- safe scalar functions ----
 * Finite for every finite x, full relative precision in the tails: log s(-1000) is -1000 and
 * s(-700) is not 0. */
double pnb_sigmoid(double x);     /* s(x) = 1 / (1 + e^-x) */
double pnb_log_sigmoid(double x); /* log s(x) */
double pnb_softplus(double x);    /* log(1 + e^x) = -log s(-x) */

/* Probability that a pair matches: s(a * similarity + b), a = exp(logit_scale) > 0 and b the
 * model's own. `similarity` is what search returns for mean or csd. It speaks of a batch of
 * training; what a score is worth in a gallery: calibrate.h.
 * Source  ProLIP eq. 2, where the sign of b is a misprint. docs/numerics.md#match-probability */
double pnb_match_probability(double similarity, double a, double b);

/* ---- rows of distributions ---- */

/* A view: nothing is copied, the arrays must outlive it. Name the fields of an initialiser: {.n,
 * .dim, .mean} are points, with .log_var Gaussians; what is left out is NULL. Rows of an embedding
 * set of any family: pnb_view_init in view.h. */
typedef struct pnb_rows {
    size_t n, dim;          /* rows, and D */
    size_t n_embeddings;    /* K of width D / K beside each other in a row (PVSE); 0: one */
    const float *mean;      /* [n][dim]; of unit length where a model made them */
    const float *log_var;   /* [n][dim]; NULL: points (variance zero) or the sphere */
    const float *kappa;     /* [n] concentrations: unit vectors around mean, spread on the sphere */
    bool is_power;          /* with kappa: power spherical, otherwise von Mises-Fisher */
    const float *inv_alpha; /* [n][dim] generalised Gaussian: log_var is then that of its moments */
    const float *beta;      /* [n][dim] */
    const float *epistemic; /* [n][dim] of a generalised Gaussian's variance what is not in the data
                             * but was not learned; NULL: it is not known apart */
} pnb_rows;

/* The same under the name for where only Gaussians and points make sense. */
typedef pnb_rows pnb_gaussians;

/* Told by which parameters are there: "power_spherical", "vmf", "gen_gaussian", "gaussian_diag" or
 * "point". */
const char *pnb_rows_family(const pnb_rows *rows);
/* Rows begin .. begin+n of the view, n rows in all; the caller keeps them within it. */
pnb_rows pnb_rows_slice(const pnb_rows *rows, size_t begin, size_t n);

/* ---- scalar uncertainty of one embedding ---- */
/* X(name, text, of what: VARIANCES, KAPPA, SHAPE (of a generalised Gaussian), its two PARTS or the
 * row's PARTNER, sentence). Larger always means less certain. docs/numerics.md#uncertainty
 *
 * - TRACE: sum_d var_d (ProLIP); half of it is what csd takes away from a row's similarities.
 * - MEAN_VAR: (1/D) sum_d var_d (GroVE, PFE, PCME++).
 * - GEO_STD: exp(mean_d log_var_d / 2) (PCME).
 * - INV_KAPPA: 1/kappa (AsymVLM).
 * - GG_VAR: mean_d alpha^2 Gamma(3/beta)/Gamma(1/beta) (ProbVLM).
 * - ALEATORIC, EPISTEMIC: its two parts, where passes with dropout told them apart: the density's
 *   own variance and that of the passes' means, mean over d. Their sum is GG_VAR.
 * - COSINE: 1 - cos(a, b) of a row and its match, for models without a spread. */
#define PNB_UNCERTAINTY_LIST(X)                                                                    \
    X(TRACE, "trace", VARIANCES, "sum of the variances")                                           \
    X(MEAN_VAR, "mean_var", VARIANCES, "mean of the variances")                                    \
    X(GEO_STD, "geo_std", VARIANCES, "geometric mean of the standard deviations")                  \
    X(INV_KAPPA, "inv_kappa", KAPPA, "1/kappa of a von Mises-Fisher or power spherical embedding") \
    X(GG_VAR, "gg_var", SHAPE, "mean variance of a generalised Gaussian")                          \
    X(ALEATORIC, "aleatoric", PARTS, "mean variance of a generalised Gaussian without epistemic")  \
    X(EPISTEMIC, "epistemic", PARTS, "mean variance of the means over passes with dropout")        \
    X(COSINE, "cosine", PARTNER, "1 - cosine of an embedding and its partner")

typedef enum pnb_uncertainty {
#define PNB_UNCERTAINTY_ENUM(name, text, of, sentence) PNB_UNCERTAINTY_##name,
    PNB_UNCERTAINTY_LIST(PNB_UNCERTAINTY_ENUM)
#undef PNB_UNCERTAINTY_ENUM
        PNB_N_UNCERTAINTIES /* how many there are */
} pnb_uncertainty;

const char *pnb_uncertainty_name(pnb_uncertainty kind); /* "trace"; "unknown" outside the list */
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_uncertainty_parse(pnb_uncertainty *out, const char *name, pnb_error *err);

/* Of every row, by the row's family: trace, mean_var or geo_std of Gaussians (points give 0; a
 * generalised Gaussian has the variances of its moments), inv_kappa on the sphere, gg_var and, of
 * rows with `epistemic`, its parts.
 * Shape   x (N,D) -> out (N)      Range  log_var up to about 700 (the variance must be a double)
 * Errors  ARG (the family has no such uncertainty: the text names those it has), SHAPE (dim 0),
 *         NUMERIC (a row is not finite: the text names it). COSINE is none of a single row: ARG */
pnb_status pnb_uncertainty_rows(pnb_uncertainty kind, const pnb_rows *x, double *out,
                                pnb_error *err);
/* out[i] = 1/kappa[i]. A kappa below the smallest normal float (1.2e-38) counts as that: uniform
 * rows are more uncertain than all others, and finite.  Errors  NUMERIC (negative, not finite) */
pnb_status pnb_uncertainty_inv_kappa(const float *kappa, size_t n, double *out, pnb_error *err);
/* Mean over d of alpha^2 Gamma(3/beta)/Gamma(1/beta).  Shape inv_alpha, beta (N,D) -> out (N)
 * Errors  SHAPE, NUMERIC (inv_alpha or beta <= 0 or not finite, variance beyond a double)
 * Source  ProbVLM */
pnb_status pnb_uncertainty_gg_var(const float *inv_alpha, const float *beta, size_t n, size_t dim,
                                  double *out, pnb_error *err);
/* out[i] = 1 - cos(a_i, b_i); a zero row has cosine 0 with everything.
 * Errors  SHAPE (a and b differ in n or dim), NUMERIC */
pnb_status pnb_uncertainty_cosine(const pnb_gaussians *a, const pnb_gaussians *b, double *out,
                                  pnb_error *err);

/* ---- measures between two distributions 1 and 2 ---- */
/* Values are in nats or squared lengths, summed over d; one line on each: pnb_measure_sentence.
 * mean, avg_l2 and match_prob take every family; vmf, vmf_exact and power_spherical take sets of
 * that family on one side and points on the other (of Gaussians and generalised Gaussians the means
 * are the points, their variances are not read), or that family on both (the mean of the two
 * likelihoods); all others take Gaussians, points and generalised Gaussians by their moments. The
 * list with all properties is src/prob/measures.def; new measures are appended. */
typedef enum pnb_measure {
    PNB_MEASURE_CSD,
    PNB_MEASURE_MEAN,
    PNB_MEASURE_W2,
    PNB_MEASURE_KL,
    PNB_MEASURE_JEFFREYS,
    PNB_MEASURE_JS,
    PNB_MEASURE_ELK,
    PNB_MEASURE_BHATTACHARYYA,
    PNB_MEASURE_INCLUSION,
    PNB_MEASURE_INCLUSION_PUBLISHED,
    PNB_MEASURE_AVG_L2,
    PNB_MEASURE_MATCH_PROB,
    PNB_MEASURE_VMF,
    PNB_MEASURE_VMF_EXACT,
    PNB_MEASURE_POWER_SPHERICAL,
    PNB_MEASURE_MAX_COSINE,
    PNB_N_MEASURES
} pnb_measure;

const char *pnb_measure_name(pnb_measure measure);     /* "csd"; "unknown" outside the list */
const char *pnb_measure_sentence(pnb_measure measure); /* one line for --help */
bool pnb_measure_is_similarity(pnb_measure measure);   /* larger value = nearer */
bool pnb_measure_is_symmetric(pnb_measure measure);    /* false: kl and the two inclusions */
/* Whether the measure is defined between these two families and variances; `b` may be NULL: whether
 * some other side would do.  Errors  ARG: the text names measures that would do */
pnb_status pnb_measure_check_fit(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                                 pnb_error *err);
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_measure_parse(pnb_measure *out, const char *name, pnb_error *err);

/* What is made of logits a cos + b of uncertain embeddings, whose cosine has a mean m and a
 * variance v (Smith et al.; docs/numerics.md#uncertain-cosine). X(NAME, text, sentence)
 * - PROBIT is exact for no softmax; of one logit and two classes it is MacKay's approximation.
 * - SAMPLING takes the cosines as independent Gaussians, as the release does. */
#define PNB_PREDICTION_LIST(X)                                                                     \
    X(PLAIN, "plain", "the score's own logit: variances only as the measure reads them")           \
    X(PROBIT, "probit", "a m / sqrt(1 + pi/8 a^2 v) in its place, by the cosine")                  \
    X(SAMPLING, "sampling", "mean probability over draws of the cosine")
typedef enum pnb_prediction {
#define PNB_PREDICTION_ENUM(name, text, sentence) PNB_PREDICTION_##name,
    PNB_PREDICTION_LIST(PNB_PREDICTION_ENUM)
#undef PNB_PREDICTION_ENUM
        PNB_N_PREDICTIONS
} pnb_prediction;

/* Value of a measure -> score, larger is nearer: similarities stay, csd becomes 1 - csd/2 (for unit
 * means mean1.mean2 - (trace1+trace2)/2, ProLIP's similarity), other distances change sign. */
double pnb_measure_score(pnb_measure measure, double value);

#define PNB_MATCH_FACTOR 2.0 /* s(2*l): see match_factor */

/* Constants of the measures that have any; the others read nothing of it. */
typedef struct pnb_measure_opts {
    double inclusion_eps; /* published form: 1/var is multiplied by e^eps. 0 in evaluation */
    double match_a;       /* match_prob: l = -a * sqrt(||z1-z2||^2 + 1e-6) + b. 5 */
    double match_b;       /* 5 */
    double match_factor;  /* match_prob = mean s(factor * l). 2 as in PCME's code, 1 as printed */
    size_t n_samples;     /* J of avg_l2 and match_prob, 1 to 10,000. 7 */
    uint64_t seed;        /* samples are f(seed, side, row): same rows, same samples */
} pnb_measure_opts;

pnb_measure_opts pnb_measure_opts_default(void); /* the values that stand beside the fields */

/* One pair, written against cancellation and overflow. No checks: NaN in gives NaN out, and a point
 * where variance is needed gives +-inf or NaN. Monte-Carlo measures draw the samples of row1 and
 * row2, as the forms below do, and allocate nothing. opts may be NULL. */
double pnb_measure_pair(pnb_measure measure, const pnb_rows *g1, size_t row1, const pnb_rows *g2,
                        size_t row2, const pnb_measure_opts *opts);

/* Row i against row i.  Shape  a, b (N,D) -> out (N)
 * Errors  SHAPE (sizes or widths differ, dim 0), ARG (family or variances do not fit, n_samples),
 *         NUMERIC (a value is not finite: names the row) */
pnb_status pnb_measure_rows(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                            const pnb_measure_opts *opts, double *out, pnb_error *err);

/* Every row of a against every row of b: values, not scores; working memory O((A+B)*D), never
 * A*B*D.  Shape  a (A,D), b (B,D) -> out (A,B)
 * A value is a function of its two rows, to the bit: equal rows tie whatever block they are in.
 * Errors  SHAPE (widths differ, dim 0), ARG (family or variances do not fit, n_samples), NUMERIC
 *         (a value is not finite: names the pair), NOMEM */
pnb_status pnb_measure_block(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                             const pnb_measure_opts *opts, double *out, pnb_error *err);

/* ---- the inclusion integral itself ---- docs/numerics.md#inclusion
 * log int p1^2 p2 summed over d, in nats. H is the difference of the two directions; use the
 * measure for it, its single sum does not cancel. With l = log var, v = var and delta = mean1 -
 * mean2 */

/*   inc = sum_d [-log 2pi - l1/2 - log(v1 + 2 v2)/2 - delta^2/(v1 + 2 v2)] */
double pnb_inclusion_exact(const double *mean1, const double *log_var1, const double *mean2,
                           const double *log_var2, size_t dim);
/* As ProLIP prints and computes it, where the log-variances are counted twice:
 *   pub = sum_d [-3/2 l1 - l2/2 + log(2)/2 - eps/2 - log(v1 + 2 v2)/2 - e^eps delta^2/(v1 + 2 v2)]
 * Source  ProLIP section 3.3, eq. 3 */
double pnb_inclusion_published(const double *mean1, const double *log_var1, const double *mean2,
                               const double *log_var2, size_t dim, double eps);

#ifdef __cplusplus
}
#endif
#endif
