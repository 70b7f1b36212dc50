/* Loops over the process's one thread pool, which is OpenMP's: OpenBLAS is the OpenMP build and
 * shares it, so two pools never fight for the cores.
 *
 * The range is cut into at most n_threads chunks whose borders depend on n, min_chunk and n_threads
 * only, so results that depend on the split are the same in every run. Inside a parallel region,
 * and when one chunk is enough, the loop runs on the calling thread. */
#include <omp.h>

#include "base/base.h"

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

void pnb__parallel_for(const pnb_ctx *ctx, size_t n, size_t min_chunk, pnb__range_fn fn, void *user)
{
    if (n == 0)
        return;
    size_t n_chunks = count_chunks(ctx, n, min_chunk);
    if (n_chunks <= 1 || omp_in_parallel()) {
        fn(user, 0, n, 0);
        return;
    }
    /* A loop over chunks and not one chunk per thread: the runtime may give fewer threads. */
#pragma omp parallel for schedule(static, 1) num_threads((int)n_chunks)
    for (size_t c = 0; c < n_chunks; c++)
        fn(user, chunk_begin(n, n_chunks, c), chunk_begin(n, n_chunks, c + 1), (int)c);
}
