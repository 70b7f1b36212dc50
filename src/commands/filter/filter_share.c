/* What several processes of one filter share: a run of pairs or pictures each, in the order of
 * ranks.
 * All decide alike from what all know; rank 0 writes. */
#include "commands/filter/filter.h"
#include "peers/peers.h"

static size_t share_at(const pnb_peers *ranks, size_t n, size_t p)
{
    size_t count = pnb_peers_count(ranks);
    return n / count * p + n % count * p / count;
}

void pnb__filter_share(const pnb__filter_run *run, size_t n, size_t at[2])
{
    size_t rank = pnb_peers_rank(run->ranks);
    at[0] = share_at(run->ranks, n, rank);
    at[1] = share_at(run->ranks, n, rank + 1);
}

pnb_status pnb__filter_merge(const pnb__filter_run *run, void *data, size_t n, size_t size,
                             pnb_error *err)
{
    size_t *from = NULL, count = pnb_peers_count(run->ranks);
    pnb_status status = PNB_ALLOC(from, count + 1, err);
    for (size_t p = 0; status == PNB_OK && p <= count; p++)
        from[p] = share_at(run->ranks, n, p) * size;
    if (status == PNB_OK)
        status = pnb__peers_gather(run->ranks, data, from, err);
    pnb__free(from);
    return status;
}
