/* Is the general more uncertain than the specific, and does it include it? Shares and means.
 *
 * u is a scalar uncertainty of each row (larger: less certain), a level its place in a hierarchy,
 * 0 the most general; H(1 in 2) is the inclusion hypothesis of prob.h, positive when 1 lies in 2.
 * Shares are fractions in [0,1]. None of these figures shows learned uncertainty by itself: the
 * log-variances of an untrained head order levels too, because captions of different generality
 * differ in their means. Report the same figure of an untrained head beside each. Definitions:
 * docs/numerics.md#hierarchy, docs/numerics.md#length and docs/numerics.md#set-algebra. Ways
 * through a hierarchy: traversal.h; what includes a query: inclusion_search.h. */
#ifndef PENUMBRA_HIERARCHY_H
#define PENUMBRA_HIERARCHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- uncertainty by level ---- */

/* Means of values by group: uncertainty or R-Precision by caption level. Rows with a negative group
 * or a NaN value are left out.
 * Shape   values, group (n) -> mean, count (n_groups); the mean of an empty group is NaN
 * Errors  ARG (a group >= n_groups: names the row) */
pnb_status pnb_mean_by_group(const double *values, const int *group, size_t n, size_t n_groups,
                             double *mean, size_t *count, pnb_error *err);

/* P(u of a row in group a > u of a row in group b) over all pairs, ties count half; 1/2 by chance.
 * Rows of other groups are not looked at.
 * Errors  ARG (a group is empty, a = b), NUMERIC (a value is not finite), NOMEM */
pnb_status pnb_share_group_above(const double *u, const int *group, size_t n, int a, int b,
                                 double *out, pnb_error *err);

/* Share of rows with x[i] > y[i], strictly: masked inputs that are more uncertain than their
 * originals.
 * Errors  ARG (n = 0), NUMERIC (a value is not finite: names the row) */
pnb_status pnb_share_above(const double *x, const double *y, size_t n, double *out, pnb_error *err);

/* Order of levels within each owner (picture): u averaged by (owner, level), compared inside the
 * owner. Level 0 is expected to be the most uncertain. */
typedef struct pnb_level_order {
    size_t n_first_last;           /* owners with captions at both the first and the last level */
    double share_first_above_last; /* of those */
    size_t n_complete;             /* owners with captions at every level */
    double share_in_order; /* of those: u strictly falls from each level to the next; 0 of none */
} pnb_level_order;

/* Rows of a negative level count nowhere, as those whose level is not known.
 * Shape   u, level, owner (n); equal numbers are one owner
 * Errors  ARG (n_levels < 2, a level >= n_levels, no owner has both ends), NUMERIC (u is not
 *         finite), NOMEM */
pnb_status pnb_level_order_compute(const double *u, const int *level, const int64_t *owner,
                                   size_t n, int n_levels, pnb_level_order *out, pnb_error *err);

/* ---- uncertainty by length ---- */

typedef struct pnb_length_bin {
    size_t low, high; /* lengths, both inclusive */
    size_t n;         /* rows in it, at least 1 */
    double mean;      /* of their values */
} pnb_length_bin;

/* Groups values by length (words, tokens): neighbouring lengths are joined until a bin holds its
 * share of the rows that are left; one length is never split. Bins come in ascending order.
 *   bins      n_bins entries, the caller's; *n_out of them are filled
 *   spearman  of length and value over all rows, NaN when all lengths or all values are equal; may
 *             be NULL
 * Errors  ARG (n or n_bins 0), NUMERIC (a value is not finite: names the row), NOMEM
 * Source  ProLIP section 4.3 */
pnb_status pnb_length_bins(const double *values, const size_t *length, size_t n,
                           pnb_length_bin *bins, size_t n_bins, size_t *n_out, double *spearman,
                           pnb_error *err);

/* ---- inclusion, row by row ---- */

/* Share of rows with H(a_i in b_i) > 0: an original in its masked copy.
 *   published  false: the exact form; true: ProLIP's, with opts->inclusion_eps. opts may be NULL
 * Errors  ARG (no rows, a side is points), SHAPE (a and b differ in size or width), NUMERIC, NOMEM
 * Source  ProLIP section 3.3 */
pnb_status pnb_share_included(const pnb_gaussians *a, const pnb_gaussians *b, bool published,
                              const pnb_measure_opts *opts, double *out, pnb_error *err);

/* Two ways to tell from one pair of Gaussians which lies in the other, on pairs where it is known
 * that a_i lies in b_i: H(a in b) > 0, and D(a, b) = KL(a|b) - KL(b|a) < 0,
 * sum_d [sinh r - r + delta^2 (1/v_b - 1/v_a)/2] with r = log v_a - log v_b. Both change their sign
 * with the direction, so one of the two directions passes always, also of strangers: what tells
 * included pairs from those is the size, whence the areas. Shares of n pairs. */
typedef struct pnb_inclusion_contest {
    size_t n;
    double by_h, by_kl;           /* H > 0; D < 0: it says that a lies in b */
    double only_h, only_kl, both; /* one of them does, both do */
    double p;                     /* two-sided sign test of only_h against only_kl, exact; 1: none
                                   * of the pairs is judged differently */
    double h_mean, kl_mean;       /* of H and of D, in nats */
    double h_auroc, kl_auroc; /* P(H of an included pair > H of two strangers), ties half, and the
                               * same of -D; 1/2 by chance, NaN without strangers */
} pnb_inclusion_contest;

/* Row i of a lies in row i of b; row i of `strangers` has nothing to do with row i of a, or NULL.
 * The published form has eps = 0. h and d (a->n) receive H and D of every pair; may be NULL.
 * Errors  ARG (no rows, a side without variances), SHAPE (sizes or widths differ), NUMERIC, NOMEM
 * Source  ProLIP section 3.3 (Figure 3) and appendix A.6 (DKL) */
pnb_status pnb_inclusion_against_kl(const pnb_gaussians *a, const pnb_gaussians *b,
                                    const pnb_gaussians *strangers, bool published, double *h,
                                    double *d, pnb_inclusion_contest *out, pnb_error *err);

/* A mixed picture lies in the intersection of its two sources when it is included in both; a model
 * that takes a mixture for an unclear picture has both sources in the mixture instead. */
typedef struct pnb_mixed_share {
    double in_first, in_second; /* rows with H(mixed in a) > 0, with H(mixed in b) > 0 */
    double in_both;             /* with both */
    double holds_both;          /* with H(a in mixed) > 0 and H(b in mixed) > 0 */
} pnb_mixed_share;

/* Row i of `mixed` was made of row i of a and of row i of b. The published form has eps = 0.
 * Errors  SHAPE (different sizes or widths, no rows), ARG (a side is points), NUMERIC, NOMEM
 * Source  PCME section 4.4 (Figure 8), with ProLIP's inclusion test */
pnb_status pnb_mixed_included(const pnb_gaussians *mixed, const pnb_gaussians *a,
                              const pnb_gaussians *b, bool published, pnb_mixed_share *out,
                              pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
