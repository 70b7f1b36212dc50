/* What ranks.c, ranks_scan.c and ranks_tasks.c share. */
#ifndef PNB_EVAL_RETRIEVAL_RANKS_H
#define PNB_EVAL_RETRIEVAL_RANKS_H

#include "base/base.h"
#include "index/hits.h"
#include "penumbra/retrieval.h"

pnb_status pnb__ranks_check_truth(const pnb_truth *truth, pnb_error *err);
/* All arrays, for the queries of the truth. */
pnb_status pnb__ranks_alloc(pnb_ranks *out, const pnb_truth *truth, pnb_error *err);
/* Figures of query q from the ranks of its n positives, ascending, from 1; n_outside more positives
 * are in no place of the ranking. */
void pnb__ranks_store(pnb_ranks *out, size_t q, const size_t *rank, size_t n, size_t n_outside);
/* The same and the task's precision. */
void pnb__ranks_store_task(pnb_ranks *out, const pnb_rank_task *task, size_t q, const size_t *rank,
                           size_t n);
pnb_status pnb__ranks_check_tasks(const pnb_rank_task *tasks, size_t n_tasks, pnb_error *err);
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
    pnb_peers *ranks; /* that share the queries, or NULL */
} pnb__both;
pnb_status pnb__ranks_both(const pnb_ctx *ctx, const pnb__both *both, pnb_ranks *forward,
                           pnb_ranks *backward, pnb_error *err);

/* The figures of queries at[p] .. at[p + 1] - 1 of each rank p on all (ranks_share.c). */
typedef struct pnb__ranks_share {
    pnb_peers *ranks;
    size_t *at; /* (n_ranks + 1) */
    size_t begin, end;
} pnb__ranks_share;
pnb_status pnb__ranks_share_init(pnb__ranks_share *s, pnb_peers *ranks, size_t n, pnb_error *err);
void pnb__ranks_share_reset(pnb__ranks_share *s);
pnb_status pnb__ranks_merge(const pnb__ranks_share *s, pnb_ranks *out, pnb_error *err);

/* Tasks on the f64 scores of all pairs of a and b, without bounds. */
pnb_status pnb__ranks_score_all(const pnb_ctx *ctx, const pnb__both *sets,
                                const pnb_rank_task *tasks, size_t n_tasks, pnb_ranks *out,
                                pnb_error *err);

/* Called for each query in turn with its n positives, best first, and their ranks. */
typedef void (*pnb__ranked_fn)(void *user, size_t query, const pnb__hit *positive,
                               const size_t *rank, size_t n);
typedef struct pnb__ranked {
    pnb__ranked_fn fn;
    void *user;
} pnb__ranked;
/* pnb_ranks_compute of a against b under `forward` (backward is not read), telling every rank. */
pnb_status pnb__ranks_tell(const pnb_ctx *ctx, const pnb__both *both, const pnb__ranked *ranked,
                           pnb_ranks *out, pnb_error *err);

#endif
