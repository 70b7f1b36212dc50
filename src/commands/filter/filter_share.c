/* What several processes of one filter share: a run of pairs or pictures each, in the order of
 * ranks.
 * All decide alike from what all know; rank 0 writes. */
#include "commands/filter/filter.h"
#include "peers/peers.h"

void pnb__filter_share(const pnb__filter_run *run, size_t n, size_t at[2])
{
    size_t rank = pnb_peers_rank(run->ranks), count = pnb_peers_count(run->ranks);
    at[0] = pnb__peers_part_at(n, count, rank);
    at[1] = pnb__peers_part_at(n, count, rank + 1);
}

pnb_status pnb__filter_merge(const pnb__filter_run *run, void *data, size_t n, size_t size,
                             pnb_error *err)
{
    return pnb__peers_gather_even(run->ranks, data, n, size, err);
}
