/* Candidates where the copy lies in memory: threads take pieces of it, each against all queries of
 * a pass.
 *
 * One query is as fast as the copy can be read, if no thread waits for another: pieces are taken as
 * threads come for them, one product each, and their scores stay in the thread's cache. What beats
 * the worst candidate so far, which is read without a lock, goes into the query's one heap; that is
 * rare once the first pieces are done. The heap's order is total, so who came first does not show.
 *
 * A pass of 64 queries reads the copy once. */
#include "index/compressed/compressed.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "index/heap.h"
#include "index/product_form.h"

enum {
    PASS_QUERIES = 64,
    MOST_ROWS = 4096, /* of a piece: rows of queries are rounded anew for each */
    LEAST_ROWS = 512,
    FEWEST_PIECES = 64, /* where they hold LEAST_ROWS: nobody waits long for the last one */
    STRIDE = 64         /* scores that are looked at together */
};
_Static_assert(PNB__COMPRESSED_BLOCK % MOST_ROWS == 0, "no piece lies in two blocks");

/* The candidates of a query. */
typedef struct best {
    pthread_mutex_t lock;
    pnb__heap heap;       /* under it */
    _Atomic(float) limit; /* what is lower is no candidate; it only rises */
} best;

typedef struct scan_job {
    const pnb__compressed *c;
    const pnb__among *among;
    size_t first, n;   /* queries of the pass */
    size_t piece_rows; /* but for the last one */
    size_t n_threads;
    float *query; /* [pass][D] */
    float *score; /* [thread][pass][piece] */
    char *work;   /* [thread] */
    size_t work_bytes;
    best *of; /* [pass] */
    size_t n_of;
    pnb_hits *near; /* candidates of all queries */
} scan_job;

typedef struct piece {
    size_t first, n; /* rows */
} piece;

/* Depends on the number of rows alone: so do the products, and their last bits. */
static size_t rows_of_piece(size_t n)
{
    size_t rows = MOST_ROWS;
    while (rows > LEAST_ROWS && rows * FEWEST_PIECES > n)
        rows /= 2;
    return rows;
}

/* ---- candidates ---- */

/* The next position from i on that may be a candidate; n: none. */
static size_t next_above(const float *score, size_t i, size_t n, float limit)
{
    for (; i + STRIDE <= n; i += STRIDE) {
        int n_below = 0;
        for (size_t j = 0; j < STRIDE; j++)
            n_below += score[i + j] < limit;
        if (n_below < STRIDE) /* also where one is NaN */
            break;
    }
    while (i < n && score[i] < limit)
        i++;
    return i;
}

static size_t next_of(const scan_job *job, piece p, const float *score, size_t i, float limit)
{
    const unsigned char *only = job->among->only;
    i = next_above(score, i, p.n, limit);
    while (only != NULL && i < p.n && only[p.first + i] == 0)
        i = next_above(score, i + 1, p.n, limit);
    return i;
}

static void keep_best(const scan_job *job, piece p, best *of, const float *score)
{
    float limit = atomic_load_explicit(&of->limit, memory_order_relaxed);
    size_t i = next_of(job, p, score, 0, limit);
    if (i == p.n)
        return;
    pthread_mutex_lock(&of->lock);
    for (; i < p.n; i = next_of(job, p, score, i + 1, limit)) {
        pnb__heap_push(&of->heap, (pnb__hit){(double)score[i], (int64_t)(p.first + i)});
        if (of->heap.n == of->heap.capacity)
            limit = (float)of->heap.hit[0].score;
    }
    atomic_store_explicit(&of->limit, limit, memory_order_relaxed);
    pthread_mutex_unlock(&of->lock);
}

/* ---- scores ---- */

static void score_piece(const scan_job *job, piece p, float *score, void *work)
{
    const pnb__compressed *c = job->c;
    const pnb__gemm_args args = {.trans_b = true,
                                 .m = job->n,
                                 .n = p.n,
                                 .k = c->gallery.dim,
                                 .lda = c->gallery.dim,
                                 .ldc = job->piece_rows,
                                 .n_batch = 1,
                                 .alpha = 1,
                                 .act = PNB__IDENTITY,
                                 .a = job->query,
                                 .c = score,
                                 .bias = c->term + p.first,
                                 .packed = &c->blocks[p.first / PNB__COMPRESSED_BLOCK],
                                 .packed_first = p.first % PNB__COMPRESSED_BLOCK,
                                 .work = work};
    if (c->is_bf16)
        c->kernels.gemm_bf16(NULL, &args);
    else
        c->kernels.gemm_i8(NULL, &args);
}

static void scan_pieces(void *user, size_t begin, size_t end, int thread)
{
    const scan_job *job = user;
    size_t most = job->piece_rows, n = job->c->gallery.n;
    float *score = job->score + (size_t)thread * job->n_of * most;
    for (size_t i = begin; i < end; i++) {
        const piece p = {i * most, PNB_MIN(most, n - i * most)};
        score_piece(job, p, score, job->work + (size_t)thread * job->work_bytes);
        for (size_t q = 0; q < job->n; q++)
            keep_best(job, p, &job->of[q], score + q * most);
    }
}

static void scan_pass(scan_job *job, const pnb_ctx *ctx)
{
    const pnb__compressed *c = job->c;
    size_t kept = job->near->k, dim = c->gallery.dim;
    for (size_t q = 0; q < job->n; q++) {
        pnb__linear_query(job->among->queries, c->opts.measure, job->first + q,
                          job->query + q * dim);
        job->of[q].heap.n = 0;
        atomic_init(&job->of[q].limit, -INFINITY);
    }
    pnb__parallel_pieces(ctx, (c->gallery.n + job->piece_rows - 1) / job->piece_rows, scan_pieces,
                         job);
    for (size_t q = 0; q < job->n; q++) {
        const pnb__heap *heap = &job->of[q].heap;
        for (size_t i = 0; i < kept; i++) {
            bool is_there = i < heap->n;
            size_t at = (job->first + q) * kept + i;
            job->near->index[at] = is_there ? heap->hit[i].index : -1;
            job->near->score[at] = is_there ? heap->hit[i].score : -(double)INFINITY;
        }
    }
}

/* ---- its memory ---- */

static pnb_status alloc_scan(scan_job *job, size_t most, pnb_error *err)
{
    const pnb__kernels *k = &job->c->kernels;
    size_t dim = job->c->gallery.dim;
    size_t bytes = job->c->is_bf16 ? k->gemm_bf16_work(most, dim, 1) : k->gemm_i8_work(most, dim);
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(job->query, most, dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->score, job->n_threads * most, job->piece_rows, err));
    PNB_TRY(PNB_ALLOC_ZERO(job->of, most, err));
    for (; job->n_of < most; job->n_of++) {
        best *of = &job->of[job->n_of];
        of->heap.capacity = job->near->k;
        PNB_TRY(PNB_ALLOC(of->heap.hit, job->near->k, err));
        pthread_mutex_init(&of->lock, NULL);
    }
    job->work_bytes = (PNB_MAX(bytes, (size_t)1) + 63) / 64 * 64;
    job->work = pnb__alloc_aligned(job->n_threads * job->work_bytes);
    if (job->work == NULL)
        status = pnb__fail_nomem(err, job->n_threads * job->work_bytes);
done:
    return status;
}

static void free_scan(scan_job *job)
{
    for (size_t q = 0; q < job->n_of; q++) {
        pthread_mutex_destroy(&job->of[q].lock);
        pnb__free(job->of[q].heap.hit);
    }
    pnb__free(job->of);
    pnb__free(job->query);
    pnb__free(job->score);
    pnb__free_aligned(job->work);
}

pnb_status pnb__compressed_scan_host(const pnb__compressed *c, const pnb_ctx *ctx,
                                     const pnb__among *among, pnb_hits *near, pnb_error *err)
{
    scan_job job = {.c = c, .among = among, .near = near};
    size_t n = among->queries->n;
    job.n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    job.piece_rows = rows_of_piece(c->gallery.n);
    pnb_status status = alloc_scan(&job, PNB_MIN(n, (size_t)PASS_QUERIES), err);
    for (job.first = 0; status == PNB_OK && job.first < n; job.first += PASS_QUERIES) {
        job.n = PNB_MIN((size_t)PASS_QUERIES, n - job.first);
        scan_pass(&job, ctx);
    }
    free_scan(&job);
    return status;
}
