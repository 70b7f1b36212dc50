/* Candidates on the processor: some queries at a time against a block after the other.
 *
 * A pass of 64 queries reads the copy once; scores of a block stay in the cache, and a heap for
 * each query takes those that beat its worst. */
#include "index/compressed/compressed.h"

#include <math.h>

#include "index/heap.h"
#include "index/product_form.h"

enum { PASS_QUERIES = 64 };

typedef struct scan_job {
    const pnb__compressed *c;
    const pnb__among *among;
    size_t first, n;      /* queries of the pass */
    float *query, *score; /* [pass][D], [pass][block] */
    void *work;
    size_t block; /* that score holds */
    pnb__heap *heap;
    pnb_hits *near; /* candidates of all queries */
} scan_job;

static void keep_best(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    const scan_job *job = user;
    size_t first = job->block * PNB__COMPRESSED_BLOCK, n = job->c->blocks[job->block].n;
    const unsigned char *only = job->among->only;
    for (size_t q = begin; q < end; q++) {
        const float *score = job->score + q * PNB__COMPRESSED_BLOCK;
        pnb__heap *heap = &job->heap[q];
        for (size_t i = 0; i < n; i++) {
            if (heap->n == heap->capacity && (double)score[i] < heap->hit[0].score)
                continue;
            if (only == NULL || only[first + i] != 0)
                pnb__heap_push(heap, (pnb__hit){(double)score[i], (int64_t)(first + i)});
        }
    }
}

static void scan_block(scan_job *job, const pnb_ctx *ctx)
{
    const pnb__compressed *c = job->c;
    const pnb__packed *block = &c->blocks[job->block];
    const pnb__gemm_args args = {.trans_b = true,
                                 .m = job->n,
                                 .n = block->n,
                                 .k = c->gallery.dim,
                                 .lda = c->gallery.dim,
                                 .ldc = PNB__COMPRESSED_BLOCK,
                                 .n_batch = 1,
                                 .alpha = 1,
                                 .act = PNB__IDENTITY,
                                 .a = job->query,
                                 .c = job->score,
                                 .bias = c->term + job->block * PNB__COMPRESSED_BLOCK,
                                 .packed = block,
                                 .work = job->work};
    if (c->is_bf16)
        c->kernels.gemm_bf16(ctx, &args);
    else
        c->kernels.gemm_i8(ctx, &args);
    pnb__parallel_for(ctx, job->n, 1, keep_best, job);
}

static void scan_pass(scan_job *job, const pnb_ctx *ctx)
{
    const pnb__compressed *c = job->c;
    size_t kept = job->near->k, dim = c->gallery.dim;
    for (size_t q = 0; q < job->n; q++) {
        pnb__linear_query(job->among->queries, c->opts.measure, job->first + q,
                          job->query + q * dim);
        job->heap[q].n = 0;
    }
    for (job->block = 0; job->block < c->n_blocks; job->block++)
        scan_block(job, ctx);
    for (size_t q = 0; q < job->n; q++)
        for (size_t i = 0; i < kept; i++) {
            bool is_there = i < job->heap[q].n;
            size_t at = (job->first + q) * kept + i;
            job->near->index[at] = is_there ? job->heap[q].hit[i].index : -1;
            job->near->score[at] = is_there ? job->heap[q].hit[i].score : -(double)INFINITY;
        }
}

static pnb_status alloc_scan(scan_job *job, pnb_error *err)
{
    const pnb__kernels *k = &job->c->kernels;
    size_t dim = job->c->gallery.dim;
    size_t most = PNB_MIN(job->among->queries->n, (size_t)PASS_QUERIES);
    size_t bytes = job->c->is_bf16 ? k->gemm_bf16_work(most, dim, 1) : k->gemm_i8_work(most, dim);
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(job->query, most, dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->score, most, PNB__COMPRESSED_BLOCK, err));
    PNB_TRY(PNB_ALLOC_ZERO(job->heap, most, err));
    for (size_t q = 0; q < most; q++) {
        job->heap[q].capacity = job->near->k;
        PNB_TRY(PNB_ALLOC(job->heap[q].hit, job->near->k, err));
    }
    job->work = pnb__alloc_aligned(PNB_MAX(bytes, (size_t)64));
    if (job->work == NULL)
        status = pnb__fail_nomem(err, bytes);
done:
    return status;
}

pnb_status pnb__compressed_scan_host(const pnb__compressed *c, const pnb_ctx *ctx,
                                     const pnb__among *among, pnb_hits *near, pnb_error *err)
{
    scan_job job = {.c = c, .among = among, .near = near};
    size_t n = among->queries->n, most = PNB_MIN(n, (size_t)PASS_QUERIES);
    pnb_status status = alloc_scan(&job, err);
    for (job.first = 0; status == PNB_OK && job.first < n; job.first += PASS_QUERIES) {
        job.n = PNB_MIN((size_t)PASS_QUERIES, n - job.first);
        scan_pass(&job, ctx);
    }
    for (size_t q = 0; job.heap != NULL && q < most; q++)
        pnb__free(job.heap[q].hit);
    pnb__free(job.heap);
    pnb__free(job.query);
    pnb__free(job.score);
    pnb__free_aligned(job.work);
    return status;
}
