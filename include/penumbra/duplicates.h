/* Near-duplicates: pairs of rows of one set whose score reaches a limit, and the groups they form.
 *
 * Scores are those of a symmetric measure as search.h gives them, larger is nearer. Groups are the
 * connected components of the pairs: a chain of near rows is one group even where its ends are far
 * apart. Limits differ by measure: csd of a row with its copy is 1 minus its own uncertainty, not
 * 1, so with csd uncertain rows need a lower limit. The same rows give the same result whatever the
 * number of threads; a NULL ctx means one. docs/numerics.md#near-duplicates
 *
 * To drop duplicates, keep the rows in no group and keep[g] of each group g:
 *     for (size_t g = 0; g < d.n_groups; g++)
 *         for (size_t i = d.offset[g]; i < d.offset[g + 1]; i++)
 *             dropped[d.row[i]] = d.row[i] != d.keep[g]; */
#ifndef PENUMBRA_DUPLICATES_H
#define PENUMBRA_DUPLICATES_H

#include <stddef.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_duplicates_opts {
    pnb_measure measure;           /* MEAN: the cosine. A symmetric one */
    pnb_measure_opts measure_opts; /* of the measure */
    double min_score;              /* pairs with at least this score are near-duplicates. 0.95 */
    size_t max_pairs;              /* up to so many (24 bytes each) all pairs are found. 2e7 */
    size_t max_neighbours;         /* where there are more, only so many nearest of each row. 100 */
    pnb_watch watch;               /* steps are rows; all zero */
} pnb_duplicates_opts;

pnb_duplicates_opts pnb_duplicates_opts_default(void); /* the values that stand beside the fields */

typedef struct pnb_duplicate {
    size_t a, b;  /* rows, a < b */
    double score; /* in f64, at least min_score */
} pnb_duplicate;

typedef struct pnb_duplicates {
    size_t n_pairs;      /* that reach the limit */
    pnb_duplicate *pair; /* [n_pairs] by a, then b */
    size_t n_groups;     /* of two rows or more */
    size_t *offset;      /* [n_groups + 1] into row; larger groups first, then by lowest row */
    size_t *row;         /* rows of each group, ascending */
    size_t *keep;        /* [n_groups] the most certain row of each, the lowest among equals */
    size_t n_cut; /* rows whose list was full at max_neighbours: they may have more; 0 where all
                     pairs were found */
} pnb_duplicates;

/* All pairs of rows with at least the score, grouped. opts NULL: the defaults. `out` need not be
 * initialised and is all zero on failure; free it with pnb_duplicates_reset.
 *   u  [n] uncertainties that decide what to keep; NULL: the lowest row stays
 * Rows that are the same bit for bit are searched once, so that copies cost no time.
 * Memory  O(N + min(pairs, max_pairs + N * max_neighbours)), never N*N; above max_pairs and where a
 *         row has more copies than max_neighbours, one more copy of the other rows
 * Time    O(N^2 D)
 * Errors  SHAPE (no rows), ARG (an asymmetric measure or one that does not fit the family,
 *         min_score NaN, max_neighbours 0), NUMERIC (u NaN, a score that is no number: names the
 *         rows), INTERRUPTED, NOMEM */
pnb_status pnb_duplicates_find(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                               const pnb_duplicates_opts *opts, pnb_duplicates *out,
                               pnb_error *err);
void pnb_duplicates_reset(pnb_duplicates *d); /* frees, all zero afterwards; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
