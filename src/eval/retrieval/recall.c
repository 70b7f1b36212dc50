/* Retrieval figures of one direction and of both: averages of the ranks of ranks.c.
 *
 * Queries without a positive are left out of every average and counted (ECCV-Caption evaluates only
 * its own queries). Median rank as PCME and its predecessors print it: floor(median(rank-1)) + 1.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "eval/retrieval/ranks.h"

static const size_t DEFAULT_K[] = {1, 5, 10};

static pnb_status median_rank(const pnb_ranks *ranks, size_t n_ranked, double *out, pnb_error *err)
{
    int64_t *sorted = pnb__alloc_array(n_ranked, sizeof *sorted);
    if (sorted == NULL)
        return pnb__fail_nomem(err, n_ranked * sizeof *sorted);
    size_t n = 0;
    for (size_t q = 0; q < ranks->n_queries; q++)
        if (ranks->best_rank[q] > 0)
            sorted[n++] = ranks->best_rank[q] - 1;
    qsort(sorted, n, sizeof *sorted, pnb__compare_int64);
    int64_t two_middles = sorted[(n - 1) / 2] + sorted[n / 2];
    *out = floor(0.5 * (double)two_middles) + 1.0;
    pnb__free(sorted);
    return PNB_OK;
}

static pnb_status check_cutoffs(const size_t *k, size_t n_k, pnb_error *err)
{
    if (n_k == 0 || n_k > PNB_MAX_RECALLS)
        return pnb__fail(err, PNB_ARG, "%zu cut-offs k; 1 to %d are possible", n_k,
                         PNB_MAX_RECALLS);
    for (size_t i = 0; i < n_k; i++)
        if (k[i] == 0)
            return pnb__fail(err, PNB_ARG, "cut-off %zu of R@k is 0; it must be at least 1", i);
    return PNB_OK;
}

pnb_status pnb_direction_summarise(const pnb_ranks *ranks, const size_t *k, size_t n_k,
                                   pnb_direction *out, pnb_error *err)
{
    pnb_direction d = {0};
    pnb_status status = check_cutoffs(k, n_k, err);
    if (status != PNB_OK)
        return status;
    for (size_t q = 0; q < ranks->n_queries; q++) {
        if (ranks->best_rank[q] == 0) {
            d.n_skipped++;
            continue;
        }
        d.n_queries++;
        d.mean_rank += (double)ranks->best_rank[q];
        d.r_precision += ranks->r_precision[q];
        d.map_at_r += ranks->map_at_r[q];
        for (size_t i = 0; i < n_k; i++)
            d.recall[i] += (size_t)ranks->best_rank[q] <= k[i];
    }
    if (d.n_queries == 0)
        return pnb__fail(err, PNB_ARG, "none of the %zu queries has a match in the truth",
                         ranks->n_queries);
    double n = (double)d.n_queries;
    d.mean_rank /= n;
    d.r_precision /= n;
    d.map_at_r /= n;
    for (size_t i = 0; i < n_k; i++)
        d.recall[i] /= n;
    status = median_rank(ranks, d.n_queries, &d.median_rank, err);
    if (status == PNB_OK)
        *out = d;
    return status;
}

pnb_status pnb_retrieval_compute(const pnb_ctx *ctx, const pnb_retrieval_job *job,
                                 pnb_retrieval *out, pnb_ranks *forward_ranks,
                                 pnb_ranks *backward_ranks, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const size_t *k = job->k == NULL ? DEFAULT_K : job->k;
    pnb_retrieval r = {.n_k = job->k == NULL ? PNB_COUNT(DEFAULT_K) : job->n_k};
    pnb_ranks forward = {0}, backward = {0};
    pnb_truth *transposed = NULL;
    PNB_TRY(check_cutoffs(k, r.n_k, err));
    memcpy(r.k, k, r.n_k * sizeof *k);
    PNB_TRY(pnb_truth_transpose(&transposed, job->truth, err));
    const pnb__both both = {job->a, job->b, job->truth, transposed, job->opts, job->ranks};
    PNB_TRY(pnb__ranks_both(ctx, &both, &forward, &backward, err));
    PNB_TRY(pnb_direction_summarise(&forward, r.k, r.n_k, &r.forward, err));
    PNB_TRY(pnb_direction_summarise(&backward, r.k, r.n_k, &r.backward, err));
    for (size_t i = 0; i < r.n_k; i++)
        r.rsum += r.forward.recall[i] + r.backward.recall[i];
    *out = r;
    if (forward_ranks != NULL) {
        *forward_ranks = forward;
        forward = (pnb_ranks){0};
    }
    if (backward_ranks != NULL) {
        *backward_ranks = backward;
        backward = (pnb_ranks){0};
    }
done:
    pnb_truth_free(transposed);
    pnb_ranks_reset(&forward);
    pnb_ranks_reset(&backward);
    return status;
}
