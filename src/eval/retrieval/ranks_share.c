/* Queries shared out to ranks: whose are whose, and the figures of all of them on each.
 *
 * A query's figures depend on itself and the gallery alone, so that they are those of one process
 * whoever computes them. */
#include "eval/retrieval/ranks.h"
#include "peers/peers.h"

pnb_status pnb__ranks_share_init(pnb__ranks_share *s, pnb_peers *ranks, size_t n, pnb_error *err)
{
    size_t count = pnb_peers_count(ranks), rank = pnb_peers_rank(ranks);
    *s = (pnb__ranks_share){.ranks = ranks};
    if (PNB_ALLOC(s->at, count + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t p = 0; p <= count; p++)
        s->at[p] = pnb__peers_part_at(n, count, p);
    s->begin = s->at[rank];
    s->end = s->at[rank + 1];
    return PNB_OK;
}

void pnb__ranks_share_reset(pnb__ranks_share *s)
{
    pnb__free(s->at);
    *s = (pnb__ranks_share){0};
}

pnb_status pnb__ranks_merge(const pnb__ranks_share *s, pnb_ranks *out, pnb_error *err)
{
    void *const arrays[] = {out->best_rank, out->top1, out->top1_score, out->r_precision,
                            out->map_at_r};
    size_t n = s->at[pnb_peers_count(s->ranks)];
    pnb_status status = PNB_OK;
    _Static_assert(sizeof(int64_t) == sizeof(double), "all arrays have values of one size");
    for (size_t i = 0; i < PNB_COUNT(arrays) && status == PNB_OK; i++)
        status = pnb__peers_gather_even(s->ranks, arrays[i], n, sizeof(double), err);
    return status;
}
