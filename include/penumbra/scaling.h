/* Scores to probabilities: sigmoid (Platt), isotonic and temperature scaling, how good they are,
 * and a scaling of classification scores on disk.
 *
 * Every fit belongs to the data it was made from: fit on a validation set and judge it on other
 * data. Formulas: docs/numerics.md#calibrated-probability. What a score of retrieval is worth:
 * calibrate.h. */
#ifndef PENUMBRA_SCALING_H
#define PENUMBRA_SCALING_H

#include <stdbool.h>
#include <stddef.h>

#include "penumbra/embeddings.h"
#include "penumbra/error.h"
#include "penumbra/eval.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Platt scaling: p = s(a * score + b) ---- */

/* Cases with a score (any finite number, larger speaks for label 1), a label 0 or 1, and a weight:
 * how many cases of the population the row stands for. The arrays are the caller's. */
typedef struct pnb_scored {
    size_t n;
    const double *score;
    const int *label;
    const double *weight; /* finite and > 0; NULL: 1 each */
} pnb_scored;

typedef struct pnb_platt {
    double a, b;      /* a > 0 */
    bool is_smoothed; /* fitted to Platt's targets instead of 0 and 1 */
} pnb_platt;

/* Weighted maximum likelihood by Newton's method in f64. With `smooth`, and always where a
 * threshold separates the labels (there the likelihood has no maximum), labels 1 and 0 become
 * Platt's targets (P + 1)/(P + 2) and 1/(N + 2) with P and N the weights of the two classes.
 * Errors  ARG (no rows, one class only, all scores equal, a label that is not 0 or 1, or label 1
 *         does not score higher on average: then no a > 0 fits), NUMERIC (a score or weight is
 *         not usable: the text names it)
 * Source  Platt 1999; Lin, Lin and Weng 2007 */
pnb_status pnb_platt_fit(const pnb_scored *data, bool smooth, pnb_platt *out, pnb_error *err);
double pnb_platt_apply(const pnb_platt *fit, double score); /* in (0,1) up to rounding */

/* One fit over all rows and classes, label 1 where the class is the row's (one against the rest).
 * Shape   scores (N,K), label (N)      Range  label in 0..K-1, K >= 2
 * Errors  as pnb_platt_fit, and ARG (a label outside), NOMEM */
pnb_status pnb_platt_fit_classes(const double *scores, const int *label, size_t n, size_t n_classes,
                                 pnb_platt *out, pnb_error *err);

/* ---- temperature scaling: p = softmax(logits / t) ---- */

typedef struct pnb_temperature {
    double t;         /* > 0 */
    bool is_smoothed; /* every label was the largest logit: targets as below */
    size_t n, n_classes;
    double nll_before, nll_after; /* mean over the rows at t = 1 and at t, in nats */
} pnb_temperature;

/* Minimises the mean negative log-likelihood of the labels. Where every label has the largest
 * logit of its row that has no minimum; then the target of the label is (n + 1/K)/(n + 1), that of
 * every other class (1/K)/(n + 1).
 * Shape   logits (N,K), label (N)      Range  label in 0..K-1, K >= 2
 * Errors  ARG (no rows, K < 2, a label outside, logits equal within every row, or labels do not
 *         have more than the average logit: then no t > 0 fits), NUMERIC (a logit is not finite)
 * Source  Guo et al. 2017 */
pnb_status pnb_temperature_fit(const double *logits, const int *label, size_t n, size_t n_classes,
                               pnb_temperature *out, pnb_error *err);
/* Shape   logits (N,K) -> p (N,K), rows sum to 1; p may be logits.  Errors  NUMERIC */
pnb_status pnb_temperature_apply(double t, const double *logits, size_t n, size_t n_classes,
                                 double *p, pnb_error *err);

/* ---- what a fit belongs to ---- */

/* One of the two sets whose scores a fit was made from, or is applied to. Empty: unknown. */
typedef struct pnb_fit_side {
    char modality[16];
    char family[24];
    char weights_sha256[65];
    char preprocess[256];
} pnb_fit_side;
pnb_fit_side pnb_fit_side_of(const pnb_embeddings *set);

/* Scores of a measure between queries and a gallery; of a classification pictures and classes. */
typedef struct pnb_fit_origin {
    bool has_measure; /* false: the measure is unknown */
    pnb_measure measure;
    pnb_measure_opts measure_opts;
    pnb_fit_side queries, gallery;
} pnb_fit_origin;

typedef enum pnb_fit_agreement {
    PNB_FIT_AGREES,
    PNB_FIT_UNKNOWN, /* nothing known differs, and something that must be known is not */
    PNB_FIT_DIFFERS
} pnb_fit_agreement;

/* What the two sides are called in a reason: {"queries", "gallery rows"}. */
typedef struct pnb_fit_words {
    const char *queries, *gallery;
} pnb_fit_words;

/* Whether a fit speaks of the scores it is to be applied to: same measure and constants, and on
 * both sides same modality, family, weights and preprocessing. `why` [size] receives the second
 * half of a sentence ("was fitted on text queries, these are image") unless it agrees. */
pnb_fit_agreement pnb_fit_origin_check(const pnb_fit_origin *made, const pnb_fit_origin *used,
                                       const pnb_fit_words *words, char *why, size_t size);

/* ---- a scaling on disk, for classification scores ---- */

typedef struct pnb_scaling {
    bool has_temperature, has_platt; /* at least one */
    pnb_temperature temperature;
    pnb_platt platt;
    pnb_fit_origin origin; /* queries are the pictures, gallery the classes */
} pnb_scaling;

/* One JSON object (docs/formats.md#calibration), whole or not at all. Files of version 1 are read:
 * they tell measure and weights only.
 * Errors  ARG (holds neither, or a number is outside its range), IO, NOMEM */
pnb_status pnb_scaling_save(const pnb_scaling *scaling, const char *path, pnb_error *err);
/* Errors  IO, NOT_FOUND, FORMAT (not such a file, a number outside its range) */
pnb_status pnb_scaling_load(pnb_scaling *out, const char *path, pnb_error *err);

/* ---- isotonic regression ---- */

/* A non-decreasing function of the score through n knots: between knots linear, beyond the first
 * and last constant. */
typedef struct pnb_isotonic {
    size_t n;
    double *score; /* [n] strictly ascending */
    double *p;     /* [n] non-decreasing, in [0,1] */
} pnb_isotonic;

/* Weighted least squares over all non-decreasing functions, by pooling adjacent violators; equal
 * scores count as one. Each block of equal value gives a knot at its lowest and at its highest
 * score. With `smooth`, p is fitted to Platt's targets instead of 0 and 1, so that no p is 0 or 1.
 * Errors  as pnb_platt_fit, but any order of the classes is accepted (the function may come out
 *         constant), NOMEM */
pnb_status pnb_isotonic_fit(const pnb_scored *data, bool smooth, pnb_isotonic *out, pnb_error *err);
double pnb_isotonic_apply(const pnb_isotonic *fit, double score); /* NaN for NaN */
void pnb_isotonic_reset(pnb_isotonic *fit); /* frees the arrays, all zero; NULL is fine */

/* ---- how good are probabilities? ---- */

typedef struct pnb_ece_bin {
    double weight; /* share of the population */
    double p_low, p_high, p_mean;
    double rate; /* share of label 1 */
} pnb_ece_bin;

typedef struct pnb_weighted_ece {
    size_t n;
    double base_rate, p_mean; /* what happened and what was forecast on average */
    double nll;               /* p clipped to [1e-12, 1 - 1e-12] */
    double brier;
    double ece; /* sum over bins of weight * |rate - p_mean| */
    size_t n_bins;
    pnb_ece_bin bin[PNB_MAX_BINS];
} pnb_weighted_ece;

/* `forecasts->score` is the probability of label 1. Bins of equal mass, ascending in p: a bin ends
 * at the first p at which the weight seen reaches its share, so equal p stay together and there
 * may be fewer bins than asked for.
 * Errors  ARG (n = 0, n_bins outside 1..PNB_MAX_BINS, a label), NUMERIC (p outside [0,1], weight),
 *         NOMEM */
pnb_status pnb_weighted_ece_compute(const pnb_scored *forecasts, size_t n_bins,
                                    pnb_weighted_ece *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
