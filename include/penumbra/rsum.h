/* RSUM, the sum of all recalls both ways, with its interval and a paired test of two models.
 *
 *   RSUM = sum_k R@k(pictures ask) + sum_k R@k(captions ask), as a fraction; papers print it x 100
 * A query adds the number of cut-offs its best match reaches, so RSUM is the mean of these numbers
 * over the pictures plus their mean over the captions. The value without an interval is also in
 * pnb_retrieval. Definitions: docs/numerics.md#retrieval and docs/numerics.md#intervals. */
#ifndef PENUMBRA_RSUM_H
#define PENUMBRA_RSUM_H

#include <stddef.h>

#include "penumbra/bootstrap.h"
#include "penumbra/error.h"
#include "penumbra/figures.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By direction d: 0 with pictures as queries, 1 with captions. Ranks of the seeds of one model, and
 * of a second one that is compared with it. Of the values only n and best_rank are read, and
 * `cluster` of the first seed of a. */
typedef struct pnb_rsum_job {
    const pnb_query_values *a[2]; /* [n_a] seeds of the model itself */
    const pnb_query_values *b[2]; /* [n_b] those of the second model, of the same queries */
    size_t n_a, n_b;              /* seeds: n_a from 1 on; n_b 0: one model alone */
    const size_t *k;              /* the cut-offs, from 1 on; the field takes 1, 5 and 10 */
    size_t n_k;                   /* 1 or more */
} pnb_rsum_job;

/* The sum and what is known of it. Papers of the field print 100 times `value`. Seeds count with
 * their mean. With a second model everything is of second minus first. */
typedef struct pnb_rsum {
    double value;     /* in [0, 2 n_k], of a difference in [-2 n_k, 2 n_k] */
    double low, high; /* NaN with 0 resamples, or where the clusters are fewer than two */
    double std;       /* of the first model over its seeds (n - 1 below); NaN for one seed */
    double p;         /* two-sided, of no difference; NaN with one model or 0 resamples */
} pnb_rsum;

/* RSUM of one model or the difference of two, on the same queries in the same order. A resample
 * draws clusters with the queries of both directions, a picture with its captions, by labels that
 * mean the same on both sides; without labels the two sides are drawn apart. An RSUM at an end of
 * its range gets Wilson's interval, a difference never. The seed of opts fixes the result; its
 * clusters are not read. 0 resamples: values only. opts NULL: the defaults.
 * Memory  O(queries + resamples), one thread
 * Errors  ARG (no seeds or cut-offs, a cut-off or a rank below 1, seeds or models with other
 *         numbers of queries, clusters on one side only, level), NOMEM */
pnb_status pnb_rsum_bootstrap(const pnb_rsum_job *job, const pnb_bootstrap_opts *opts,
                              pnb_rsum *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
