/* Which rows to label next: the most uncertain, random ones, or a cover of all of them.
 *
 * What a round of active learning trains is not decided here. In all three, taken[i] != 0 says that
 * row i is labelled already and never chosen (NULL: none is), and row[count] is filled with the
 * first choice first. The same rows and seed give the same choice whatever the number of threads.
 * docs/numerics.md#selection */
#ifndef PENUMBRA_SELECTION_H
#define PENUMBRA_SELECTION_H

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

/* The largest u first, equal ones by row. Neighbours that are alike are all chosen; drop
 * near-duplicates before (duplicates.h).
 * Shape   u, taken (n) -> row (count)
 * Errors  ARG (count 0, or more than there are rows left), NUMERIC (u is not finite), NOMEM
 * Source  GroVE section 4.3 adds the 500 most uncertain rows a round */
pnb_status pnb_select_uncertain(const double *u, size_t n, const unsigned char *taken, size_t count,
                                size_t *row, pnb_error *err);

/* Any rows, each choice of `count` equally likely: the baseline for the other two. A larger count
 * with the same seed begins with the same rows.
 * Shape   taken (n) -> row (count)
 * Errors  ARG as above, NOMEM */
pnb_status pnb_select_random(size_t n, const unsigned char *taken, size_t count, uint64_t seed,
                             size_t *row, pnb_error *err);

/* All zero are the defaults: covers the means, from the row that seed 0 draws. */
typedef struct pnb_k_centre_opts {
    bool with_spread; /* distance of (mean, std), the 2-Wasserstein; false: of the means alone */
    uint64_t seed;    /* draws the first row where none is taken */
    pnb_watch watch;  /* steps are choices; all zero */
} pnb_k_centre_opts;

/* Greedy k-centre: always the row furthest from all that is taken or chosen, ties to the lower row.
 *   d(i,j) = |mean_i - mean_j|, or with the spread sqrt(|mean_i - mean_j|^2 + |std_i - std_j|^2)
 * The cover is at most twice as wide as the best one of that many rows. opts NULL: the defaults; a
 * NULL ctx means one thread.
 *   distance  [count], may be NULL: of each choice to what was there before, infinite for the first
 *             one where nothing was; the last is the covering radius before it was chosen
 * Time    O(N * D * (count + taken))      Memory  O(N), with the spread O(N * D)
 * Errors  ARG (count as above, a spread of points), SHAPE (width 0), NUMERIC (a row is not finite:
 *         names it), INTERRUPTED (row and distance hold the choices until then), NOMEM
 * Source  Gonzalez 1985; Sener and Savarese 2018, section 4 (greedy part) */
pnb_status pnb_select_k_centre(const pnb_ctx *ctx, const pnb_gaussians *rows,
                               const unsigned char *taken, size_t count,
                               const pnb_k_centre_opts *opts, size_t *row, double *distance,
                               pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
