/* int8 and bf16: a scan that reads a quarter or half of the bytes.
 *
 * Rows are kept as the vector of their inner product (product_form.h), as signed bytes with a scale
 * each or in bfloat16, packed as the products of the kernel table read them; terms stay floats. A
 * query takes as many candidates as CANDIDATES says and scores them again in f64 from the rows
 * (which may be a file map larger than memory: only those of candidates are read). What was left
 * out is known to lie below a bound: |copy - row| of the worst row and the query's own rounding.
 * Where the k-th hit lies above it the answer is that of an exact search; the others are counted in
 * hits->n_unsure. */
#include "index/compressed/compressed.h"

#include <math.h>
#include <string.h>

#include "index/heap.h"
#include "index/product_form.h"
#include "index/rescore.h"

enum { PASS_QUERIES = 64 };
#define CANDIDATES(k) (4 * (k) + 64)

/* ---- making ---- */

typedef struct pack_job {
    pnb__compressed *c;
    size_t first, n; /* rows of the block */
    float *rows;     /* [n][D] */
    signed char *bytes;
    float *scale;
    double *gap, *norm; /* [n] */
    bool *bad;          /* [n] */
} pack_job;

static float bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void round_row(pack_job *job, size_t i)
{
    size_t dim = job->c->gallery.dim;
    const float *x = job->rows + i * dim;
    float most = 0;
    double gap = 0, norm = 0;
    for (size_t d = 0; d < dim; d++)
        most = fmaxf(most, fabsf(x[d]));
    float scale = most > 0 ? most / 127.0f : 1.0f;
    for (size_t d = 0; d < dim; d++) {
        double copy;
        if (job->c->is_bf16)
            copy = (double)bf16_of(x[d]);
        else {
            float rounded = rintf(x[d] / scale);
            job->bytes[i * dim + d] = (signed char)rounded;
            copy = (double)scale * (double)rounded;
        }
        gap += (copy - (double)x[d]) * (copy - (double)x[d]);
        norm += copy * copy;
    }
    job->scale[i] = scale;
    job->gap[i] = sqrt(gap);
    job->norm[i] = sqrt(norm);
}

static void fill_rows(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    pack_job *job = user;
    pnb__compressed *c = job->c;
    for (size_t i = begin; i < end; i++) {
        bool ok = true;
        c->term[job->first + i] = (float)pnb__linear_item(
            &c->gallery, c->opts.measure, job->first + i, job->rows + i * c->gallery.dim, &ok);
        job->bad[i] = !ok;
        if (ok)
            round_row(job, i);
    }
}

static pnb_status pack_block(pack_job *job, const pnb_ctx *ctx, pnb__packed *to, pnb_error *err)
{
    const pnb__kernels *k = &job->c->kernels;
    size_t dim = job->c->gallery.dim;
    *to = (pnb__packed){.k = dim,
                        .n = job->n,
                        .levels = PNB__I8_LEVELS_8BIT,
                        .bf16_parts = job->c->is_bf16 ? 1 : 0};
    to->store = job->c->is_bf16 ? PNB__STORE_REAL : PNB__STORE_I8;
    to->bytes = job->c->is_bf16 ? k->gemm_bf16_pack_bytes(dim, job->n, 1)
                                : k->gemm_i8_pack_bytes(dim, job->n);
    to->data = pnb__alloc_large(to->bytes);
    if (to->data == NULL)
        return pnb__fail_nomem(err, to->bytes);
    const pnb__gemm_args args = {
        .trans_b = true, .n = job->n, .k = dim, .ldb = dim, .alpha = 1, .b = job->rows};
    if (job->c->is_bf16)
        k->gemm_bf16_pack(ctx, &args, to);
    else
        k->gemm_i8_pack(ctx, job->bytes, job->scale, to);
    return PNB_OK;
}

static pnb_status take_block(pack_job *job, const pnb_ctx *ctx, pnb_error *err)
{
    pnb__compressed *c = job->c;
    pnb__parallel_for(ctx, job->n, 64, fill_rows, job);
    for (size_t i = 0; i < job->n; i++) {
        if (job->bad[i])
            return pnb__fail(
                err, PNB_NUMERIC,
                "item %zu holds values that are not finite, or beyond single precision",
                job->first + i);
        c->most_gap = fmax(c->most_gap, job->gap[i]);
        c->most_norm = fmax(c->most_norm, job->norm[i]);
        c->most_term = fmax(c->most_term, fabs((double)c->term[job->first + i]));
    }
    return pack_block(job, ctx, &c->blocks[job->first / PNB__COMPRESSED_BLOCK], err);
}

static pnb_status pack_all(pnb__compressed *c, const pnb_ctx *ctx, pnb_error *err)
{
    size_t n = c->gallery.n, block = PNB_MIN(n, (size_t)PNB__COMPRESSED_BLOCK);
    pack_job job = {.c = c};
    pnb_status status;
    c->n_blocks = (n + PNB__COMPRESSED_BLOCK - 1) / PNB__COMPRESSED_BLOCK;
    PNB_TRY(PNB_ALLOC_ZERO(c->blocks, c->n_blocks, err));
    PNB_TRY(PNB_ALLOC(c->term, n, err));
    PNB_TRY(PNB_ALLOC_ROWS(job.rows, block, c->gallery.dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(job.bytes, block, c->gallery.dim, err));
    PNB_TRY(PNB_ALLOC(job.scale, block, err));
    PNB_TRY(PNB_ALLOC(job.gap, block, err));
    PNB_TRY(PNB_ALLOC(job.norm, block, err));
    PNB_TRY(PNB_ALLOC(job.bad, block, err));
    for (job.first = 0; job.first < n; job.first += PNB__COMPRESSED_BLOCK) {
        job.n = PNB_MIN(block, n - job.first);
        PNB_TRY(take_block(&job, ctx, err));
    }
done:
    pnb__free(job.rows);
    pnb__free(job.bytes);
    pnb__free(job.scale);
    pnb__free(job.gap);
    pnb__free(job.norm);
    pnb__free(job.bad);
    return status;
}

static void free_compressed(void *self)
{
    pnb__compressed *c = self;
    for (size_t i = 0; c->blocks != NULL && i < c->n_blocks; i++)
        pnb__free_aligned(c->blocks[i].data);
    pnb__free(c->blocks);
    pnb__free(c->term);
    pnb__free(c);
}

static pnb_status create(bool is_bf16, void **self, const pnb_ctx *ctx,
                         const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_error *err)
{
    pnb__compressed *c = NULL;
    pnb_status status = PNB_ALLOC_ZERO(c, 1, err);
    if (status != PNB_OK)
        return status;
    *c = (pnb__compressed){.is_bf16 = is_bf16, .gallery = *gallery, .opts = *opts};
    c->inner = pnb__index_context(ctx);
    pnb__kernels_fill_host(&c->kernels, &c->inner, PNB__F32);
    status = pack_all(c, ctx, err);
    if (status == PNB_OK)
        *self = c;
    else
        free_compressed(c);
    return status;
}

/* ---- searching ---- */

typedef struct scan_job {
    const pnb__compressed *c;
    const pnb__among *among;
    size_t first, n;      /* queries of the pass */
    float *query, *score; /* [pass][D], [pass][block] */
    void *work;
    size_t block; /* that score holds */
    pnb__heap *heap;
    pnb_hits near; /* candidates of all queries */
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
    size_t kept = job->near.k, dim = c->gallery.dim;
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
            job->near.index[at] = is_there ? job->heap[q].hit[i].index : -1;
            job->near.score[at] = is_there ? job->heap[q].hit[i].score : -(double)INFINITY;
        }
}

static pnb_status alloc_scan(scan_job *job, size_t kept, pnb_error *err)
{
    const pnb__kernels *k = &job->c->kernels;
    size_t n = job->among->queries->n, dim = job->c->gallery.dim;
    size_t most = PNB_MIN(n, (size_t)PASS_QUERIES);
    size_t bytes = job->c->is_bf16 ? k->gemm_bf16_work(most, dim, 1) : k->gemm_i8_work(most, dim);
    pnb_status status;
    job->near = (pnb_hits){.n_queries = n, .k = kept};
    PNB_TRY(PNB_ALLOC_ROWS(job->query, most, dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->score, most, PNB__COMPRESSED_BLOCK, err));
    PNB_TRY(PNB_ALLOC_ZERO(job->heap, most, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->near.index, n, kept, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->near.score, n, kept, err));
    for (size_t q = 0; q < most; q++) {
        job->heap[q].capacity = kept;
        PNB_TRY(PNB_ALLOC(job->heap[q].hit, kept, err));
    }
    job->work = pnb__alloc_aligned(PNB_MAX(bytes, (size_t)64));
    if (job->work == NULL)
        status = pnb__fail_nomem(err, bytes);
done:
    return status;
}

/* ---- what is known of what was left out ---- */

double pnb__compressed_error(const pnb__compressed *c, const float *query)
{
    size_t dim = c->gallery.dim;
    double norm = 0, low = 0, high = 0;
    for (size_t d = 0; d < dim; d++) {
        norm += (double)query[d] * (double)query[d];
        low = fmin(low, (double)query[d]);
        high = fmax(high, (double)query[d]);
    }
    norm = sqrt(norm);
    double own =
        c->is_bf16 ? norm * 0x1p-8 : (high - low) / PNB__I8_LEVELS_8BIT * sqrt((double)dim) * 0.51;
    double rounding = (2 * (double)dim + 16) * 0x1p-24 * norm * (c->most_norm + c->most_gap);
    return norm * c->most_gap + own * c->most_norm + rounding + c->most_term * 0x1p-22;
}

/* Whether none of the rows that are no candidates can be better than the k-th hit. */
static bool is_sure(const scan_job *job, size_t q, const pnb_hits *hits, float *item, float *query)
{
    const pnb__compressed *c = job->c;
    const double *score = job->near.score + q * job->near.k;
    double worst = (double)INFINITY, value;
    int64_t last = hits->index[q * hits->k + hits->k - 1];
    bool ok = true;
    if (job->near.index[q * job->near.k + job->near.k - 1] < 0)
        return true; /* all that may be hits are candidates */
    if (last < 0)
        return false;
    for (size_t i = 0; i < job->near.k; i++)
        worst = fmin(worst, score[i]);
    pnb__linear_query(job->among->queries, c->opts.measure, q, query);
    value = pnb__linear_item(&c->gallery, c->opts.measure, (size_t)last, item, &ok);
    for (size_t d = 0; d < c->gallery.dim; d++)
        value += (double)item[d] * (double)query[d];
    return value > worst + pnb__compressed_error(c, query);
}

static pnb_status count_unsure(const scan_job *job, pnb_hits *hits, pnb_error *err)
{
    size_t dim = job->c->gallery.dim;
    float *rows = NULL;
    pnb_status status = PNB_ALLOC_ROWS(rows, 2, dim, err);
    hits->n_unsure = 0;
    for (size_t q = 0; status == PNB_OK && job->near.k < job->c->gallery.n && q < hits->n_queries;
         q++)
        hits->n_unsure += !is_sure(job, q, hits, rows, rows + dim);
    pnb__free(rows);
    return status;
}

static pnb_status nearest(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                          pnb_hits *hits, pnb_error *err)
{
    const pnb__compressed *c = self;
    const pnb__rescoring again = {among->queries, &c->gallery, &c->opts, among->k};
    scan_job job = {.c = c, .among = among};
    size_t n = among->queries->n, most = PNB_MIN(n, (size_t)PASS_QUERIES);
    pnb_status status;
    PNB_TRY(pnb__linear_check_queries(&c->gallery, among->queries, &c->opts, err));
    PNB_TRY(alloc_scan(&job, PNB_MIN(c->gallery.n, CANDIDATES(among->k)), err));
    for (job.first = 0; job.first < n; job.first += PASS_QUERIES) {
        job.n = PNB_MIN((size_t)PASS_QUERIES, n - job.first);
        scan_pass(&job, ctx);
    }
    PNB_TRY(pnb__rescore(ctx, &again, &job.near, hits, err));
    status = count_unsure(&job, hits, err);
done:
    for (size_t q = 0; job.heap != NULL && q < most; q++)
        pnb__free(job.heap[q].hit);
    pnb__free(job.heap);
    pnb__free(job.query);
    pnb__free(job.score);
    pnb__free_aligned(job.work);
    pnb_hits_reset(&job.near);
    return status;
}

static void describe(const void *self, pnb_index_about *out)
{
    const pnb__compressed *c = self;
    out->bytes = (double)c->gallery.n * sizeof *c->term;
    for (size_t i = 0; i < c->n_blocks; i++)
        out->bytes += (double)c->blocks[i].bytes;
}

/* ---- the two kinds ---- */

static pnb_status check_int8(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                             pnb_error *err)
{
    return pnb__linear_check(gallery, opts, "int8", err);
}

static pnb_status create_int8(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                              const pnb_search_opts *opts, pnb_error *err)
{
    return create(false, self, ctx, gallery, opts, err);
}

static pnb_status check_bf16(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                             pnb_error *err)
{
    return pnb__linear_check(gallery, opts, "bf16", err);
}

static pnb_status create_bf16(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                              const pnb_search_opts *opts, pnb_error *err)
{
    return create(true, self, ctx, gallery, opts, err);
}

const pnb__index_calls pnb__index_int8 = {.name = "int8",
                                          .check = check_int8,
                                          .create = create_int8,
                                          .free = free_compressed,
                                          .nearest = nearest,
                                          .describe = describe};
const pnb__index_calls pnb__index_bf16 = {.name = "bf16",
                                          .check = check_bf16,
                                          .create = create_bf16,
                                          .free = free_compressed,
                                          .nearest = nearest,
                                          .describe = describe};
