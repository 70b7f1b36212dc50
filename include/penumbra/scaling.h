/* Scores to probabilities: sigmoid (Platt), isotonic and temperature scaling, what a fit belongs
 * to, and a scaling of classification scores on disk.
 *
 * Every fit belongs to the data it was made from: fit on a validation set and judge it on other
 * data (ece.h says how good it is). Fits are deterministic and use one thread. Formulas:
 * docs/numerics.md#calibrated-probability. What a score of retrieval is worth: calibrate.h. */
#ifndef PENUMBRA_SCALING_H
#define PENUMBRA_SCALING_H

#include <stdbool.h>
#include <stddef.h>

#include "penumbra/embeddings.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Platt scaling: p = s(a * score + b) ---- */

/* Cases with a score, a label and a weight: how many cases of the population the row stands for.
 * The arrays are the caller's and are only read. */
typedef struct pnb_scored {
    size_t n;
    const double *score;  /* [n] any finite number, larger speaks for label 1 */
    const int *label;     /* [n] 0 or 1 */
    const double *weight; /* [n] finite and > 0; NULL: 1 each */
} pnb_scored;

typedef struct pnb_platt {
    double a, b;      /* of s(a * score + b); a > 0, both finite */
    bool is_smoothed; /* fitted to Platt's targets instead of 0 and 1 */
} pnb_platt;

/* Weighted maximum likelihood by Newton's method in f64:
 *   minimise sum_i w_i [softplus(z_i) - t_i z_i],  z_i = a score_i + b
 * t is the label; with `smooth`, and always where a threshold separates the labels (there the
 * likelihood has no maximum), it is Platt's target, (P + 1)/(P + 2) for 1 and 1/(N + 2) for 0, P
 * and N the weights of the two classes.
 * Errors  ARG (no rows, one class only, all scores equal, a label that is not 0 or 1, or label 1
 *         does not score higher on average: then no a > 0 fits), NUMERIC (a score or weight is not
 *         usable: names it; the fit does not settle)
 * Source  Platt 1999; Lin, Lin and Weng 2007 */
pnb_status pnb_platt_fit(const pnb_scored *data, bool smooth, pnb_platt *out, pnb_error *err);

/* The probability of label 1, in (0,1) up to rounding; NaN for NaN. */
double pnb_platt_apply(const pnb_platt *fit, double score);

/* One fit over all rows and classes, label 1 where the class is the row's (one against the rest).
 * Shape   scores (N,K), label (N)      Range  label in 0..K-1, K >= 2
 * Errors  as pnb_platt_fit, and ARG (a label outside), NOMEM */
pnb_status pnb_platt_fit_classes(const double *scores, const int *label, size_t n, size_t n_classes,
                                 pnb_platt *out, pnb_error *err);

/* ---- temperature scaling: p = softmax(logits / t) ---- */

typedef struct pnb_temperature {
    double t;          /* > 0 and finite; above 1: the logits were too sure of themselves */
    bool is_smoothed;  /* every label was the largest logit: targets as below */
    size_t n;          /* rows it was fitted on */
    size_t n_classes;  /* K */
    double nll_before; /* mean over the rows of -log p(label) at t = 1, in nats */
    double nll_after;  /* the same at t */
} pnb_temperature;

/* Minimises the mean negative log-likelihood of the labels over 1/t, where it is convex. Where
 * every label has the largest logit of its row there is no minimum; then the target of the label is
 * (n + 1/K)/(n + 1), that of every other class (1/K)/(n + 1).
 * Shape   logits (N,K), label (N)      Range  label in 0..K-1, K >= 2
 * Errors  ARG (no rows, K < 2, a label outside, logits equal within every row, or labels do not
 *         have more than the average logit: then no t > 0 fits), NUMERIC (a logit is not finite:
 *         names it; no t in the range of a double fits)
 * Source  Guo et al. 2017 */
pnb_status pnb_temperature_fit(const double *logits, const int *label, size_t n, size_t n_classes,
                               pnb_temperature *out, pnb_error *err);

/* Shape   logits (N,K) -> p (N,K), rows sum to 1; p may be logits
 * Errors  NUMERIC (t is not above 0 and finite, a logit is not finite: rows before it are done),
 * ARG (K = 0) */
pnb_status pnb_temperature_apply(double t, const double *logits, size_t n, size_t n_classes,
                                 double *p, pnb_error *err);

/* ---- what a fit belongs to ---- */

/* One of the two sets whose scores a fit was made from, or is applied to. Empty: unknown. */
typedef struct pnb_fit_side {
    char modality[16];          /* "image", "text" */
    char family[24];            /* "gaussian_diag", ... */
    char weights_sha256[65];    /* of the model that made the set, 64 hexadecimal digits */
    pnb_adapter_links adapters; /* what its rows went through behind the weights: provenance.h */
    char preprocess[256];       /* text of the preprocessing, as the set has it */
} pnb_fit_side;

/* The side that a set would be. */
pnb_fit_side pnb_fit_side_of(const pnb_embeddings *set);

/* Scores of a measure between queries and a gallery; of a classification pictures and classes. */
typedef struct pnb_fit_origin {
    bool has_measure; /* false: the measure is unknown */
    pnb_measure measure;
    pnb_measure_opts measure_opts; /* compared as far as the measure reads them, but for the seed */
    pnb_fit_side queries, gallery;
} pnb_fit_origin;

typedef enum pnb_fit_agreement {
    PNB_FIT_AGREES,  /* the fit speaks of these scores */
    PNB_FIT_UNKNOWN, /* nothing known differs, and something that must be known is not */
    PNB_FIT_DIFFERS  /* something known of both differs: a reason to refuse */
} pnb_fit_agreement;

/* What the two sides are called in a reason: {"queries", "gallery rows"}. */
typedef struct pnb_fit_words {
    const char *queries, *gallery;
} pnb_fit_words;

/* Whether a fit speaks of the scores it is to be applied to: same measure and constants, and on
 * both sides same modality, family, weights, adapters and preprocessing, the last of which alone
 * may be unknown.
 *   used  its measure is known
 *   why   [size] receives the second half of a sentence ("was fitted on text queries, these are
 *         image") unless it agrees, cut where it is longer */
pnb_fit_agreement pnb_fit_origin_check(const pnb_fit_origin *made, const pnb_fit_origin *used,
                                       const pnb_fit_words *words, char *why, size_t size);

/* ---- a scaling on disk, for classification scores ---- */

typedef struct pnb_scaling {
    bool has_temperature, has_platt; /* at least one */
    pnb_temperature temperature;     /* of the softmax over the classes */
    pnb_platt platt;                 /* of single (picture, class) pairs */
    pnb_fit_origin origin;           /* queries are the pictures, gallery the classes */
} pnb_scaling;

/* One JSON object (docs/formats.md#calibration), whole or not at all. Files of version 1 are read:
 * they tell measure and weights only.
 * Errors  ARG (holds neither, or a number is outside its range), IO, NOMEM */
pnb_status pnb_scaling_save(const pnb_scaling *scaling, const char *path, pnb_error *err);
/* Errors  IO, NOT_FOUND, FORMAT (not such a file, a number outside its range), LIMIT (a file of
 * more than 64 MiB), NOMEM */
pnb_status pnb_scaling_load(pnb_scaling *out, const char *path, pnb_error *err);

/* ---- isotonic regression ---- */

/* A non-decreasing function of the score through n knots: between knots linear, beyond the first
 * and last constant. */
typedef struct pnb_isotonic {
    size_t n;      /* 1 or more, at most 2 a case */
    double *score; /* [n] strictly ascending */
    double *p;     /* [n] non-decreasing, in [0,1] */
} pnb_isotonic;

/* Weighted least squares over all non-decreasing functions, by pooling adjacent violators; equal
 * scores count as one. Each block of equal value gives a knot at its lowest and at its highest
 * score. With `smooth`, p is fitted to Platt's targets instead of 0 and 1, so that no p is 0 or 1.
 * Free with pnb_isotonic_reset.
 * Errors  as pnb_platt_fit, but any order of the classes is accepted (the function may come out
 *         constant), NOMEM
 * Source  Barlow et al. 1972; Zadrozny and Elkan 2002 for probabilities */
pnb_status pnb_isotonic_fit(const pnb_scored *data, bool smooth, pnb_isotonic *out, pnb_error *err);

/* The function of a fit at a score, -inf and inf included; NaN for NaN. */
double pnb_isotonic_apply(const pnb_isotonic *fit, double score);
void pnb_isotonic_reset(pnb_isotonic *fit); /* frees the arrays, all zero; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
