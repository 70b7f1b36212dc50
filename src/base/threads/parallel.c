/* Loops over the process's one thread pool.
 *
 * A range is cut into at most n_threads chunks whose borders depend on n, min_chunk and n_threads
 * only, so results that depend on the split are the same in every run. Inside a parallel loop, and
 * when one chunk is enough, the loop runs on the calling thread. Pieces are taken one by one as
 * threads come for them, so that nobody waits for a thread whose core is busy with something else:
 * for work whose results do not depend on who did it. */
#include <stdatomic.h>

#include "base/base.h"
#include "base/threads/pool.h"

static size_t count_chunks(const pnb_ctx *ctx, size_t n, size_t min_chunk)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    size_t most = min_chunk > 1 ? n / min_chunk + (n % min_chunk != 0) : n;
    return PNB_MIN(n_threads, most);
}

/* First item of chunk c: the first n % n_chunks chunks are one item longer. */
static size_t chunk_begin(size_t n, size_t n_chunks, size_t c)
{
    return c * (n / n_chunks) + PNB_MIN(c, n % n_chunks);
}

typedef struct loop {
    pnb__range_fn fn;
    void *user;
    size_t n, n_chunks;
    atomic_size_t next; /* of pieces: the first that nobody has taken */
} loop;

static void do_chunk(void *user, int part)
{
    const loop *l = user;
    size_t c = (size_t)part;
    l->fn(l->user, chunk_begin(l->n, l->n_chunks, c), chunk_begin(l->n, l->n_chunks, c + 1), part);
}

void pnb__parallel_for(const pnb_ctx *ctx, size_t n, size_t min_chunk, pnb__range_fn fn, void *user)
{
    if (n == 0)
        return;
    loop l = {.fn = fn, .user = user, .n = n, .n_chunks = count_chunks(ctx, n, min_chunk)};
    if (l.n_chunks <= 1 || pnb__pool_is_inside())
        fn(user, 0, n, 0);
    else
        pnb__pool_run((int)l.n_chunks, do_chunk, &l);
}

static void do_pieces(void *user, int part)
{
    loop *l = user;
    for (size_t i; (i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed)) < l->n;)
        l->fn(l->user, i, i + 1, part);
}

void pnb__parallel_pieces(const pnb_ctx *ctx, size_t n, pnb__range_fn fn, void *user)
{
    if (n == 0)
        return;
    loop l = {.fn = fn, .user = user, .n = n, .n_chunks = count_chunks(ctx, n, 1)};
    if (l.n_chunks <= 1 || pnb__pool_is_inside())
        fn(user, 0, n, 0);
    else
        pnb__pool_run((int)l.n_chunks, do_pieces, &l);
}
