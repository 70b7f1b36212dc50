/* Deals a list to ranks and keeps them in step.
 *
 * A rank gets a run of batches that lie beside each other, so that its readers go ahead and its
 * parts are few; what is left over goes one by one, so that no two differ by more than a batch.
 * Nothing here decides a row: batches are the same whoever embeds them (embed_batch.c). */
#include "encode/job/embed_share.h"

#include "base/grow.h"
#include "peers/peers.h"

#define ROUND_S 0.5

pnb_status pnb__embed_gaps(const pnb__embed_part *parts, size_t n_parts, size_t n,
                           pnb__embed_range **out, size_t *n_out, pnb_error *err)
{
    size_t at = 0;
    *out = NULL;
    *n_out = 0;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i <= n_parts && status == PNB_OK; i++) {
        size_t end = i < n_parts ? parts[i].begin : n;
        if (end > at)
            status = PNB_PUSH(*out, *n_out, err, (pnb__embed_range){at, end});
        at = i < n_parts ? parts[i].end : n;
    }
    if (status != PNB_OK) {
        pnb__free(*out);
        *out = NULL;
    }
    return status;
}

static size_t batches_of(const pnb__embed_range *range, size_t batch)
{
    return (range->end - range->begin + batch - 1) / batch;
}

void pnb__embed_deal(pnb__embed_range *ranges, size_t *n, size_t batch, size_t rank, size_t n_ranks)
{
    size_t total = 0, before = 0, kept = 0;
    for (size_t i = 0; i < *n; i++)
        total += batches_of(&ranges[i], batch);
    size_t first = pnb__peers_part_at(total, n_ranks, rank);
    size_t last = pnb__peers_part_at(total, n_ranks, rank + 1);
    for (size_t i = 0; i < *n; i++) {
        pnb__embed_range all = ranges[i];
        size_t its = batches_of(&all, batch);
        size_t from = PNB_MAX(first, before) - before, to = PNB_MIN(last, before + its);
        to = to > before ? to - before : 0;
        if (from < to)
            ranges[kept++] = (pnb__embed_range){all.begin + from * batch,
                                                PNB_MIN(all.begin + to * batch, all.end)};
        before += its;
    }
    *n = kept;
}

/* ---- rounds ---- */

/* What travels. */
typedef struct report {
    uint64_t n_done;
    double seconds; /* of a batch */
    uint64_t stops, has_ended;
} report;

void pnb__embed_rounds_init(pnb__embed_rounds *r, pnb_peers *ranks)
{
    *r = (pnb__embed_rounds){.ranks = ranks, .n_batches = 1, .began_s = pnb__now_s()};
}

bool pnb__embed_rounds_step(pnb__embed_rounds *r)
{
    return ++r->n_since >= r->n_batches && r->ranks != NULL;
}

/* The same on all ranks, since all have the same reports. */
static void plan_round(pnb__embed_rounds *r, const report *all, size_t n_ranks)
{
    double slowest = 0;
    for (size_t p = 0; p < n_ranks; p++)
        slowest = PNB_MAX(slowest, all[p].seconds);
    double wanted = slowest > 0 ? ROUND_S / slowest : 1;
    size_t most = 2 * r->n_batches; /* a first batch that was read already tells little */
    r->n_batches = wanted < 1 ? 1 : wanted < (double)most ? (size_t)wanted : most;
    r->n_since = 0;
    r->began_s = pnb__now_s();
}

pnb_status pnb__embed_rounds_meet(pnb__embed_rounds *r, const pnb__embed_place *mine,
                                  pnb__embed_place *out, pnb_error *err)
{
    size_t n_ranks = pnb_peers_count(r->ranks), *from = NULL;
    report *all = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(all, n_ranks, err));
    PNB_TRY(PNB_ALLOC(from, n_ranks + 1, err));
    for (size_t p = 0; p <= n_ranks; p++)
        from[p] = p * sizeof *all;
    double seconds = (pnb__now_s() - r->began_s) / (double)PNB_MAX(r->n_since, (size_t)1);
    all[pnb_peers_rank(r->ranks)] =
        (report){mine->n_done, mine->has_ended ? 0 : seconds, mine->stops, mine->has_ended};
    PNB_TRY(pnb__peers_gather(r->ranks, all, from, err));
    *out = (pnb__embed_place){.has_ended = true};
    for (size_t p = 0; p < n_ranks; p++) {
        out->n_done += all[p].n_done;
        out->stops = out->stops || all[p].stops != 0;
        out->has_ended = out->has_ended && all[p].has_ended != 0;
    }
    plan_round(r, all, n_ranks);
done:
    pnb__free(all);
    pnb__free(from);
    return status;
}
