/* The probability that a pair matches, and lists that contain a match at a chosen error rate.
 *
 * A model's own a and b come from training batches, where one pair in the batch size matches; in a
 * gallery other things hold. Here p(match | score) is learned from true pairs that were not trained
 * on. Every fit belongs to the data it was made from: it speaks of that gallery and of queries like
 * those, each with a match somewhere. pnb_match_probability_fit_compute therefore judges it on
 * other queries. Formulas, and what population a probability speaks of:
 * docs/numerics.md#calibrated-probability and docs/numerics.md#conformal. The curves themselves:
 * scaling.h. A NULL ctx means one thread; no result depends on their number. */
#ifndef PENUMBRA_CALIBRATE_H
#define PENUMBRA_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/ece.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/scaling.h"
#include "penumbra/search.h"
#include "penumbra/truth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- conformal lists ---- */

/* X(name, text, sentence): what is compared with the cut-off.
 *
 * - SCORE: suits galleries that grow, for it does not hang on the other rows; may list nothing.
 * - MARGIN: suits queries whose scores differ in level, as those of uncertain queries by csd.
 * - RANK: suits queries that are alike; every list has the same length. */
#define PNB_CONFORMAL_LIST(X)                                                                      \
    X(SCORE, "score", "hits that score at least the cut-off")                                      \
    X(MARGIN, "margin", "hits at most the cut-off below the query's first hit")                    \
    X(RANK, "rank", "the first hits, as many as the cut-off")

typedef enum pnb_conformal_kind {
#define PNB_CONFORMAL_ENUM(name, text, sentence) PNB_CONFORMAL_##name,
    PNB_CONFORMAL_LIST(PNB_CONFORMAL_ENUM)
#undef PNB_CONFORMAL_ENUM
        PNB_N_CONFORMALS /* how many there are */
} pnb_conformal_kind;

const char *pnb_conformal_name(pnb_conformal_kind kind); /* "score"; "unknown" outside the list */
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_conformal_parse(pnb_conformal_kind *out, const char *name, pnb_error *err);

/* The best true match of each calibration query, in its three coordinates, each sorted by itself.
 */
typedef struct pnb_conformal {
    size_t n;                        /* queries, 1 or more */
    double *value[PNB_N_CONFORMALS]; /* [n] ascending: score; first hit's score - it; rank from 1 */
    pnb_conformal_kind kind;         /* the one that gave the smallest lists */
} pnb_conformal;

/* Copies and sorts n triples; kind is SCORE. Free with pnb_conformal_reset.
 * Errors  ARG (n = 0), NUMERIC (not finite, margin < 0, rank < 1), NOMEM */
pnb_status pnb_conformal_create(pnb_conformal *out, const double *score, const double *margin,
                                const double *rank, size_t n, pnb_error *err);
void pnb_conformal_reset(pnb_conformal *c); /* frees the arrays; NULL is fine */

/* The cut-off whose lists miss every match of a new query with probability at most alpha, averaged
 * over calibration sets and queries drawn alike: the ceil((n+1)(1-alpha))-th smallest value (of
 * scores from above). -inf (score) or +inf where n is too small for alpha: the whole gallery then.
 * Range   0 < alpha < 1
 * Errors  ARG (alpha, an empty c, a kind that does not exist)
 * Source  split-conformal prediction, Vovk et al. 2005; quantile with n + 1 */
pnb_status pnb_conformal_cutoff(const pnb_conformal *c, pnb_conformal_kind kind, double alpha,
                                double *out, pnb_error *err);
/* How many leading hits of a query belong to the list.
 * Shape   score (n), best first; not read by RANK
 * Range   0 .. n; 0 where the cut-off is NaN */
size_t pnb_conformal_list(pnb_conformal_kind kind, double cutoff, const double *score, size_t n);

/* ---- the probability that a pair matches ---- */

typedef enum pnb_match_method {
    PNB_MATCH_PLATT,    /* a sigmoid of the score: two numbers, for few queries */
    PNB_MATCH_ISOTONIC, /* any non-decreasing function: for many */
    PNB_MATCH_BOTH      /* both are fitted, and the better one on held-out queries is taken */
} pnb_match_method;

/* What was learned from the true pairs between a set of queries and a gallery. A probability speaks
 * of a pair of a query like those and a row of that gallery, both drawn at random (with `depth`, a
 * row of the query's first hits); among pairs of the same score that share matches. */
typedef struct pnb_match_probability_fit {
    pnb_fit_origin origin;                       /* whose scores; sides are the caller's to fill */
    char gallery[256], queries[256], truth[256]; /* files it was fitted on; "" unknown */
    char gallery_ids_sha256[65];                 /* of the gallery's ids, one a line; "" unknown */
    size_t n_gallery;                            /* rows of the gallery */
    bool has_level; /* captions of one level alone were fitted on: the caller's to fill, as above */
    int level;      /* that level, 0 the most general */
    size_t n_queries, n_matches;  /* fitted on: queries with a match, and their matches */
    size_t depth;                 /* pairs are the first hits, that many a query; 0: all pairs */
    double base_rate;             /* share of matches among the pairs of those queries */
    uint64_t seed;                /* of the split and of the sample of pairs */
    bool has_platt, has_isotonic; /* at least one */
    pnb_platt platt;              /* all pairs of the population, label 1 for a match */
    pnb_isotonic isotonic;        /* the same, fitted to Platt's targets: no p is 0 or 1 */
    pnb_match_method method;      /* PLATT or ISOTONIC: which one gives the probability */
    bool has_first;               /* first hits were right and wrong, and scored accordingly */
    pnb_platt first;              /* probability that a query's first hit matches, by its score */
    pnb_conformal conformal;      /* of at most 10,000 queries, a random part of more */
} pnb_match_probability_fit;

/* Frees the arrays and leaves all zero; NULL is fine. */
void pnb_match_probability_fit_reset(pnb_match_probability_fit *fit);

/* Probability that a pair of this score matches, in [0,1].
 *   n_gallery  rows of the gallery it is from; 0: as many as the fit's. In another one the odds are
 *              scaled by fit->n_gallery / n_gallery, as if there were as many matches among more or
 *              fewer other rows. A fit with `depth` cannot be carried over: NaN */
double pnb_match_probability_fit_apply(const pnb_match_probability_fit *fit, double score,
                                       size_t n_gallery);

/* X(name, text): the estimates of a match's probability that are compared.
 *
 * - BASE_RATE: the share of matches for every pair; what is not better than this is worth nothing.
 * - MODEL: s(a * score + b) with the model's own a and b.
 * - PLATT, ISOTONIC: the two fits.
 * - FIRST: the sigmoid of first hits, judged on first hits alone. */
#define PNB_MATCH_ESTIMATOR_LIST(X)                                                                \
    X(BASE_RATE, "base rate")                                                                      \
    X(MODEL, "model's a, b")                                                                       \
    X(PLATT, "platt")                                                                              \
    X(ISOTONIC, "isotonic")                                                                        \
    X(FIRST, "first hit")

typedef enum pnb_match_estimator {
#define PNB_MATCH_ESTIMATOR_ENUM(name, text) PNB_MATCH_ESTIMATOR_##name,
    PNB_MATCH_ESTIMATOR_LIST(PNB_MATCH_ESTIMATOR_ENUM)
#undef PNB_MATCH_ESTIMATOR_ENUM
        PNB_N_MATCH_ESTIMATORS /* how many there are */
} pnb_match_estimator;

/* "platt"; "unknown" outside. */
const char *pnb_match_estimator_name(pnb_match_estimator estimator);

#define PNB_MAX_ALPHAS 16 /* error rates in one call */
#define PNB_MAX_FOLDS 20  /* parts of a cross-fit */

typedef struct pnb_match_opts {
    pnb_search_opts search;  /* measure and its options; k is ignored */
    pnb_match_method method; /* BOTH */
    size_t depth;            /* 0: fit to all pairs; else to the first `depth` hits of each query */
    double holdout;          /* share of queries kept for the assessment, 0.3 */
    size_t n_folds;          /* 0; from 2 on, in place of holdout: each query is assessed by a fit
                                on the other folds, and the fit that comes back is on all */
    size_t max_pairs;        /* scored pairs kept beside the matches; 2000000 */
    size_t n_bins;           /* of the reliability, 15 */
    double model_a, model_b; /* the model's own, to compare with; NaN: unknown */
    bool model_is_score;     /* false; true: the score is the model's own probability (match_prob),
                              * and model_a and model_b are not read */
    double alpha[PNB_MAX_ALPHAS]; /* error rates to assess; 0.01 0.05 0.1 0.2 */
    size_t n_alphas;              /* 4 */
    uint64_t seed;                /* of the split and of the sample; 0 */
} pnb_match_opts;
pnb_match_opts pnb_match_opts_default(void); /* the values that stand beside the fields */

/* How good one estimate is. Nearly all pairs are wrong and have p near 0, so the ECE of all pairs
 * is at most of the order of the base rate; that of first hits is the one to read. */
typedef struct pnb_match_ece {
    bool is_known;              /* false: the rest is zero */
    pnb_weighted_ece fit, held; /* over pairs: of the queries fitted on, of the others */
    pnb_weighted_ece first;     /* over the first hits of the others */
} pnb_match_ece;

/* What conformal lists at one error rate come to, by kind. */
typedef struct pnb_match_coverage {
    double alpha;                       /* the rate that was asked for */
    double cutoff[PNB_N_CONFORMALS];    /* of the fit that comes back */
    double coverage[PNB_N_CONFORMALS];  /* share of held-out queries whose list has a match */
    double mean_size[PNB_N_CONFORMALS]; /* of their lists; estimated where pairs are sampled */
} pnb_match_coverage;

/* The fit judged on queries it was not made from. */
typedef struct pnb_match_assessment {
    size_t n_fit, n_held;             /* queries with a match; with folds both are all of them */
    size_t n_folds;                   /* 0: a held-out part */
    size_t n_skipped;                 /* queries without one */
    size_t n_fit_pairs, n_held_pairs; /* scored pairs looked at */
    bool is_exact;                    /* those are all pairs; else a weighted sample */
    double held_base_rate;            /* share of matches among the pairs of the others */
    pnb_match_ece estimate[PNB_N_MATCH_ESTIMATORS]; /* over pairs FIRST is unknown */
    pnb_match_coverage at[PNB_MAX_ALPHAS];          /* by error rate, as in the options */
    size_t n_alphas;
} pnb_match_assessment;

/* Two sets and their true pairs, borrowed during the call. */
typedef struct pnb_match_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_truth *truth;     /* queries to rows of the gallery */
    const pnb_match_opts *opts; /* NULL: defaults */
} pnb_match_job;

/* Scores the pairs, splits the queries by seed, fits on one part and assesses on the other. All
 * matches count once; of the others either all, or of each query the first hits and a random
 * sample of the rest, weighted by what they stand for. With BOTH, `method` of the fit is the one
 * with the lower held-out NLL; the conformal kind is the one with the smallest lists at the error
 * rate of `alpha` nearest to 0.1. With folds coverage and sizes are those of the folds' cut-offs,
 * which come from fewer queries than those of the fit.
 * `fit` need not be initialised and is all zero on failure; free it with
 * pnb_match_probability_fit_reset. The sides of its origin, hashes and file names are the caller's
 * to fill in. `assessment` may be NULL.
 * Memory  O(max_pairs + matches + threads * N)
 * Errors  SHAPE (truth and sets differ in size), ARG (fewer than 10 queries with a match, more
 *         folds than half of them, every pair matches, all scores equal, matches do not score
 *         higher, options outside their range), NUMERIC (a score is not finite), LIMIT (2^32
 *         queries), NOMEM */
pnb_status pnb_match_probability_fit_compute(const pnb_ctx *ctx, const pnb_match_job *job,
                                             pnb_match_probability_fit *fit,
                                             pnb_match_assessment *assessment, pnb_error *err);

/* One JSON object (docs/formats.md#calibration), whole or not at all: a reader beside finds the old
 * file or the new one. Files of version 1 are read; modality, family and preprocessing of their
 * sides are unknown.
 * Errors  ARG (nothing fitted), IO, NOMEM */
pnb_status pnb_match_probability_fit_save(const pnb_match_probability_fit *fit, const char *path,
                                          pnb_error *err);
/* Reads one; what loads can be applied. `out` is all zero on failure; free it with
 * pnb_match_probability_fit_reset.
 * Errors  IO, NOT_FOUND, FORMAT (not such a file, numbers outside their range or order), LIMIT (a
 *         file of more than 64 MiB), NOMEM */
pnb_status pnb_match_probability_fit_load(pnb_match_probability_fit *out, const char *path,
                                          pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
