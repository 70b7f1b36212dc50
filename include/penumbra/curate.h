/* Rows of a set: which repeat each other, which stand alone, which to label next.
 *
 * Definitions: docs/numerics.md#near-duplicates, #outliers, #selection. The same input and seed
 * give the same result whatever the number of threads. A NULL ctx means one thread. */
#ifndef PENUMBRA_CURATE_H
#define PENUMBRA_CURATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- near-duplicates ---- */
typedef struct pnb_duplicates_opts {
    pnb_measure measure; /* mean: the cosine. A symmetric one */
    pnb_measure_opts measure_opts;
    double min_score;      /* pairs with at least this score are near-duplicates. 0.95 */
    size_t max_pairs;      /* up to so many (24 bytes each) all pairs are found. 2e7 */
    size_t max_neighbours; /* where there are more, only so many nearest of each row. 100 */
    pnb_watch watch;
} pnb_duplicates_opts;

pnb_duplicates_opts pnb_duplicates_opts_default(void);

typedef struct pnb_duplicate {
    size_t a, b; /* rows, a < b */
    double score;
} pnb_duplicate;

/* Groups are the connected components of the pairs: chains join rows that are not near. */
typedef struct pnb_duplicates {
    size_t n_pairs;
    pnb_duplicate *pair; /* by a, then b */
    size_t n_groups;
    size_t *offset; /* [n_groups + 1] into row; larger groups first, then by lowest row */
    size_t *row;    /* rows of each group, ascending */
    size_t *keep;   /* [n_groups] the most certain row of each, the lowest among equals */
    size_t n_cut;   /* rows whose list was full at max_neighbours: they may have more; 0 where all
                       pairs were found */
} pnb_duplicates;

/* All pairs of rows with at least the score, grouped. u [n] is what `keep` is decided by; NULL: the
 * lowest row stays. Rows that are the same bit for bit are searched once: copies cost no time.
 * Memory  O(N + min(pairs, max_pairs + N * max_neighbours)), never N*N; above max_pairs and where a
 *         row has more copies than max_neighbours, one more copy of the other rows. Time O(N^2 D)
 * Errors  SHAPE, ARG (an asymmetric measure, a limit that is no number), NUMERIC, INTERRUPTED,
 *         NOMEM */
pnb_status pnb_duplicates_find(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                               const pnb_duplicates_opts *opts, pnb_duplicates *out,
                               pnb_error *err);
void pnb_duplicates_reset(pnb_duplicates *d); /* NULL is fine */

/* ---- outliers ---- */
/* X(name, text, sentence) */
#define PNB_OUTLIER_LIST(X)                                                                        \
    X(KNN, "knn", "lowest mean score to the k nearest other rows")                                 \
    X(NEAREST, "nearest", "lowest score to the nearest other row")                                 \
    X(KTH, "kth", "lowest score to the k-th nearest other row")                                    \
    X(UNCERTAINTY, "uncertainty", "highest uncertainty")

typedef enum pnb_outlier {
#define PNB_OUTLIER_ENUM(name, text, sentence) PNB_OUTLIER_##name,
    PNB_OUTLIER_LIST(PNB_OUTLIER_ENUM)
#undef PNB_OUTLIER_ENUM
        PNB_N_OUTLIERS
} pnb_outlier;

const char *pnb_outlier_name(pnb_outlier kind); /* "unknown" outside the list */
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_outlier_parse(pnb_outlier *out, const char *name, pnb_error *err);

typedef struct pnb_outliers_opts {
    pnb_outlier kind;    /* knn */
    size_t k;            /* neighbours; NEAREST takes one whatever it says. 10 */
    pnb_measure measure; /* mean */
    pnb_measure_opts measure_opts;
    pnb_watch watch;
} pnb_outliers_opts;

pnb_outliers_opts pnb_outliers_opts_default(void);

typedef struct pnb_outliers {
    size_t n;
    size_t *order;    /* [n] rows, the furthest out first; ties to the lower row */
    double *value;    /* [n] by row: the score (low is far out) or the uncertainty (high is) */
    int64_t *nearest; /* [n] by row: its nearest other row; NULL for UNCERTAINTY */
} pnb_outliers;

/* u [n] is needed by UNCERTAINTY only, rows by the others.
 * Errors  SHAPE, ARG (k = 0 or k >= n: a row has n - 1 neighbours; u missing), NUMERIC,
 *         INTERRUPTED, NOMEM */
pnb_status pnb_outliers_rank(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                             const pnb_outliers_opts *opts, pnb_outliers *out, pnb_error *err);
void pnb_outliers_reset(pnb_outliers *o); /* NULL is fine */

/* ---- selection for labelling ---- taken[i] != 0: row i is labelled already and never chosen;
 * NULL: none is. Each fills row[count], first choice first.
 * Errors  ARG (count 0, or more than there are rows left), NUMERIC, NOMEM */
pnb_status pnb_select_uncertain(const double *u, size_t n, const unsigned char *taken, size_t count,
                                size_t *row, pnb_error *err);
pnb_status pnb_select_random(size_t n, const unsigned char *taken, size_t count, uint64_t seed,
                             size_t *row, pnb_error *err);

typedef struct pnb_k_centre_opts {
    bool with_spread; /* distance of (mean, std), 2-Wasserstein; false: of the means alone */
    uint64_t seed;    /* draws the first row where none is taken */
    pnb_watch watch;
} pnb_k_centre_opts;

/* Greedy k-centre: always the row furthest from all that is taken or chosen, ties to the lower row.
 * distance [count] (may be NULL): of each choice to what was there before, infinite for the first
 * one where nothing was; the last is the covering radius before it was chosen.
 * Time    O(N * D * (count + taken))
 * Source  Sener and Savarese 2018, section 4 (greedy part); Gonzalez 1985 */
pnb_status pnb_select_k_centre(const pnb_ctx *ctx, const pnb_gaussians *rows,
                               const unsigned char *taken, size_t count,
                               const pnb_k_centre_opts *opts, size_t *row, double *distance,
                               pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
