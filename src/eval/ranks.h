/* What ranks.c and ranks_scan.c share. */
#ifndef PNB_EVAL_RANKS_H
#define PNB_EVAL_RANKS_H

#include "base/base.h"
#include "index/hits.h"
#include "penumbra/eval.h"

pnb_status pnb__ranks_check_truth(const pnb_truth *truth, pnb_error *err);
/* All arrays, for the queries of the truth. */
pnb_status pnb__ranks_alloc(pnb_ranks *out, const pnb_truth *truth, pnb_error *err);
/* Figures of query q from the ranks of its n positives, ascending, from 1; n_outside more positives
 * are in no place of the ranking. */
void pnb__ranks_store(pnb_ranks *out, size_t q, const size_t *rank, size_t n, size_t n_outside);
/* How many positives of a query the truth names beyond its items. */
size_t pnb__ranks_outside(const pnb_truth *truth, size_t q);
/* First of n sorted positives that `hit` stands before, n if none. */
size_t pnb__ranks_first_behind(const pnb__hit *positive, size_t n, pnb__hit hit);

/* Ranks of both directions; opts are of a against b, the other way asymmetric measures keep the
 * same Gaussian first. One pass serves both where the measure allows it: results are those of
 * pnb_ranks_compute each way.  Errors  as pnb_ranks_compute */
typedef struct pnb__both {
    const pnb_gaussians *a, *b;
    const pnb_truth *forward, *backward; /* backward: transposed */
    const pnb_search_opts *opts;
} pnb__both;
pnb_status pnb__ranks_both(const pnb_ctx *ctx, const pnb__both *both, pnb_ranks *forward,
                           pnb_ranks *backward, pnb_error *err);

#endif
