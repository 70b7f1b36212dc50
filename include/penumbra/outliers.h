/* Outliers: rows of a set that stand alone, or that their encoder is unsure of.
 *
 * Scores are those of a symmetric measure as search.h gives them, larger is nearer. A row is never
 * its own neighbour; an exact copy of it is, so a row whose copies are in the set is no outlier:
 * drop near-duplicates first (duplicates.h). The same rows give the same result whatever the number
 * of threads; a NULL ctx means one. docs/numerics.md#outliers
 *
 *     pnb_outliers_opts opts = pnb_outliers_opts_default();
 *     if (pnb_outliers_rank(ctx, &rows, NULL, &opts, &found, &err) == PNB_OK)
 *         ... found.order[0] is furthest out, with found.value[found.order[0]]
 *     pnb_outliers_reset(&found);
 *
 * Source  Ramaswamy, Rastogi and Shim 2000 (k-th neighbour); Angiulli and Pizzuti 2002 (mean) */
#ifndef PENUMBRA_OUTLIERS_H
#define PENUMBRA_OUTLIERS_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text, sentence): what stands first.
 *
 * - KNN: (1/k) times the sum of the scores to the k nearest; a few strays close together still
 *   stand out.
 * - NEAREST: a row that has one other stray beside it is hidden.
 * - KTH: a row is hidden in a group of more than k.
 * - UNCERTAINTY: looks at no other row; u is what pnb_uncertainty_rows gives, or any figure. */
#define PNB_OUTLIER_LIST(X)                                                                        \
    X(KNN, "knn", "lowest mean score to the k nearest other rows")                                 \
    X(NEAREST, "nearest", "lowest score to the nearest other row")                                 \
    X(KTH, "kth", "lowest score to the k-th nearest other row")                                    \
    X(UNCERTAINTY, "uncertainty", "highest uncertainty")

typedef enum pnb_outlier {
#define PNB_OUTLIER_ENUM(name, text, sentence) PNB_OUTLIER_##name,
    PNB_OUTLIER_LIST(PNB_OUTLIER_ENUM)
#undef PNB_OUTLIER_ENUM
        PNB_N_OUTLIERS /* how many there are */
} pnb_outlier;

const char *pnb_outlier_name(pnb_outlier kind); /* "knn"; "unknown" outside the list */

/* How far out a row is, and by what. */
typedef struct pnb_outliers_opts {
    pnb_outlier kind;              /* KNN */
    size_t k;                      /* neighbours, 1 .. n-1; NEAREST takes one anyway. 10 */
    pnb_measure measure;           /* MEAN: the cosine. A symmetric one */
    pnb_measure_opts measure_opts; /* of the measure */
    pnb_watch watch;               /* steps are rows; all zero */
} pnb_outliers_opts;

pnb_outliers_opts pnb_outliers_opts_default(void); /* the values that stand beside the fields */

/* All rows, not only the far ones: how many of `order` count as outliers is the caller's to say, by
 * number or by `value`. */
typedef struct pnb_outliers {
    size_t n;         /* rows */
    size_t *order;    /* [n] rows, the furthest out first; ties to the lower row */
    double *value;    /* [n] by row: the score (low is far out) or the uncertainty (high is) */
    int64_t *nearest; /* [n] by row: its nearest other row; NULL for UNCERTAINTY */
} pnb_outliers;

/* Ranks all rows. opts NULL: the defaults. `out` need not be initialised and is all zero on
 * failure; free it with pnb_outliers_reset.
 *   u  [n], read by UNCERTAINTY only, which reads nothing of the rows but their number; else NULL
 * Time    O(N^2 D), of UNCERTAINTY O(N log N)
 * Memory  O(N) and the neighbours of a block of 1024 rows
 * Errors  ARG (no rows, a kind that does not exist, k outside 1..n-1, u missing, an asymmetric
 *         measure or one that does not fit the family), NUMERIC (u is not finite, a score is no
 *         number: names the row), INTERRUPTED, NOMEM */
pnb_status pnb_outliers_rank(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                             const pnb_outliers_opts *opts, pnb_outliers *out, pnb_error *err);
void pnb_outliers_reset(pnb_outliers *o); /* frees, all zero afterwards; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
