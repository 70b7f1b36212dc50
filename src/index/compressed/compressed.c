/* int8 and bf16: a scan that reads a quarter or half of the bytes.
 *
 * Rows are kept as the vector of their inner product (product_form.h), as signed bytes with a scale
 * each or in bfloat16, packed as the products of the kernel table read them; terms stay floats. A
 * query takes as many candidates as CANDIDATES says and scores them again in f64 from the rows
 * (which may be a file map larger than memory: only those of candidates are read). What was left
 * out is known to lie below a bound: |copy - row| of the worst row and the query's own rounding.
 * Where the k-th hit lies above it the answer is that of an exact search; the others are counted in
 * hits->n_unsure. By the same bound most candidates cannot be hits, and are not scored again.
 *
 * Copies are the kernels' memory: host_scan.c and device_scan.c find candidates, all else is the
 * same. */
#include "index/compressed/compressed.h"

#include <math.h>
#include <string.h>

#include "index/hits.h"
#include "index/product_form.h"
#include "index/rescore.h"
#include "index/some_queries.h"
#include "kernels/bf16.h"

enum { DEVICE_BLOCKS = 8, MANY = 8 /* queries whose scores a device may round */ };
#define DEVICE_SCORES ((size_t)1 << 27) /* 512 MB */
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
    void *staged;       /* where a device reads rows, or bytes and scales behind them; NULL: here */
    size_t staged_bytes;
} pack_job;

static float rounded(float x)
{
    return pnb__bf16_widen(pnb__bf16_of(x));
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
            copy = (double)rounded(x[d]);
        else {
            float level = rintf(x[d] / scale);
            job->bytes[i * dim + d] = (signed char)level;
            copy = (double)scale * (double)level;
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

static size_t up_to_64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* What the kernels pack from, where they can read it. */
static pnb_status stage_block(const pack_job *job, const void **rows, const void **scale,
                              pnb_error *err)
{
    const pnb__kernels *k = &job->c->kernels;
    size_t values = job->n * job->c->gallery.dim, behind = up_to_64(values);
    pnb_status status = PNB_OK;
    *rows = job->c->is_bf16 ? (const void *)job->rows : job->bytes;
    *scale = job->scale;
    if (job->staged == NULL)
        return PNB_OK;
    if (job->c->is_bf16)
        PNB_TRY(k->mem_write(k->ctx, job->staged, job->rows, values * sizeof(float), err));
    else {
        PNB_TRY(k->mem_write(k->ctx, job->staged, job->bytes, values, err));
        *scale = (char *)job->staged + behind;
        PNB_TRY(k->mem_write(k->ctx, (char *)job->staged + behind, job->scale,
                             job->n * sizeof(float), err));
    }
    *rows = job->staged;
done:
    return status;
}

static pnb_status pack_block(const pack_job *job, const pnb_ctx *ctx, pnb__packed *to,
                             pnb_error *err)
{
    const pnb__kernels *k = &job->c->kernels;
    const void *rows, *scale;
    size_t dim = job->c->gallery.dim;
    *to = (pnb__packed){.k = dim,
                        .n = job->n,
                        .levels = PNB__I8_LEVELS_8BIT,
                        .bf16_parts = job->c->is_bf16 ? 1 : 0};
    to->store = job->c->is_bf16 ? PNB__STORE_REAL : PNB__STORE_I8;
    to->bytes = job->c->is_bf16 ? k->gemm_bf16_pack_bytes(dim, job->n, 1)
                                : k->gemm_i8_pack_bytes(dim, job->n);
    pnb_status status = k->mem_alloc(k->ctx, &to->data, to->bytes, err);
    if (status == PNB_OK)
        status = stage_block(job, &rows, &scale, err);
    if (status != PNB_OK)
        return status;
    const pnb__gemm_args args = {
        .trans_b = true, .n = job->n, .k = dim, .ldb = dim, .alpha = 1, .b = rows};
    if (job->c->is_bf16)
        k->gemm_bf16_pack(ctx, &args, to);
    else
        k->gemm_i8_pack(ctx, rows, scale, to);
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
    return pack_block(job, ctx, &c->blocks[job->first / c->block], err);
}

static pnb_status alloc_pack(pack_job *job, size_t block, pnb_error *err)
{
    const pnb__compressed *c = job->c;
    const pnb__kernels *k = &c->kernels;
    size_t dim = c->gallery.dim;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(job->rows, block, dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->bytes, block, dim, err));
    PNB_TRY(PNB_ALLOC(job->scale, block, err));
    PNB_TRY(PNB_ALLOC(job->gap, block, err));
    PNB_TRY(PNB_ALLOC(job->norm, block, err));
    PNB_TRY(PNB_ALLOC(job->bad, block, err));
    if (!c->on_device)
        return PNB_OK;
    job->staged_bytes =
        c->is_bf16 ? block * dim * sizeof(float) : up_to_64(block * dim) + block * sizeof(float);
    status = k->mem_alloc(k->ctx, &job->staged, job->staged_bytes, err);
done:
    return status;
}

static void free_pack(pack_job *job)
{
    const pnb__kernels *k = &job->c->kernels;
    pnb__free(job->rows);
    pnb__free(job->bytes);
    pnb__free(job->scale);
    pnb__free(job->gap);
    pnb__free(job->norm);
    pnb__free(job->bad);
    if (job->staged != NULL)
        k->mem_free(k->ctx, job->staged, job->staged_bytes);
}

static pnb_status place_terms(pnb__compressed *c, pnb_error *err)
{
    const pnb__kernels *k = &c->kernels;
    size_t bytes = c->gallery.n * sizeof *c->term;
    if (!c->on_device)
        return PNB_OK;
    pnb_status status = k->mem_alloc(k->ctx, &c->device_term, bytes, err);
    return status == PNB_OK ? k->mem_write(k->ctx, c->device_term, c->term, bytes, err) : status;
}

static pnb_status pack_all(pnb__compressed *c, const pnb_ctx *ctx, pnb_error *err)
{
    size_t n = c->gallery.n, block = PNB_MIN(n, c->block);
    pack_job job = {.c = c};
    pnb_status status;
    c->n_blocks = (n + c->block - 1) / c->block;
    PNB_TRY(PNB_ALLOC_ZERO(c->blocks, c->n_blocks, err));
    PNB_TRY(PNB_ALLOC(c->term, n, err));
    PNB_TRY(alloc_pack(&job, block, err));
    for (job.first = 0; job.first < n; job.first += c->block) {
        job.n = PNB_MIN(block, n - job.first);
        PNB_TRY(take_block(&job, ctx, err));
    }
    status = place_terms(c, err);
done:
    free_pack(&job);
    return status;
}

static void free_compressed(void *self)
{
    pnb__compressed *c = self;
    const pnb__kernels *k = &c->kernels;
    for (size_t i = 0; c->blocks != NULL && i < c->n_blocks; i++)
        k->mem_free(k->ctx, c->blocks[i].data, c->blocks[i].bytes);
    if (c->device_term != NULL)
        k->mem_free(k->ctx, c->device_term, c->gallery.n * sizeof *c->term);
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
    pnb__kernels_fill(&c->kernels, &c->inner, PNB__F32);
    c->on_device = !c->kernels.host_memory;
    c->device_scores = DEVICE_SCORES;
    c->block = (size_t)PNB__COMPRESSED_BLOCK * (c->on_device ? DEVICE_BLOCKS : 1);
    status = pack_all(c, ctx, err);
    if (status == PNB_OK)
        *self = c;
    else
        free_compressed(c);
    return status;
}

/* ---- what is known of what was left out ---- */

double pnb__compressed_error(const pnb__compressed *c, const float *query)
{
    size_t dim = c->gallery.dim;
    double norm = 0, low = 0, high = 0, lost = 0;
    for (size_t d = 0; d < dim; d++) {
        double x = (double)query[d], rest = x - (double)rounded(query[d]);
        norm += x * x;
        lost += rest * rest;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    norm = sqrt(norm);
    double own = c->is_bf16 ? sqrt(lost) * (1 + 0x1p-40)
                            : (high - low) / PNB__I8_LEVELS_8BIT * sqrt((double)dim) * 0.51;
    double rounding = (2 * (double)dim + 16) * 0x1p-24 * norm * (c->most_norm + c->most_gap);
    return norm * c->most_gap + own * c->most_norm + rounding + c->most_term * 0x1p-22;
}

/* What is known of a query once its candidates are there. */
typedef struct judged {
    double kth, worst; /* scores: the k-th best candidate's and the worst one's */
    double error;      /* of a score, beside the share of it that rounding takes */
    bool is_all;       /* every row that may be a hit is a candidate */
    bool is_unsure;    /* a row that is none might be better than the last hit */
} judged;

typedef struct sure_job {
    const pnb__compressed *c;
    const pnb__among *among;
    const pnb_hits *near, *hits;
    double rounding; /* share of a score that is lost, as scores were rounded; 0: none */
    judged *of;      /* [query] */
    double *some;    /* [thread][near->k] */
    float *rows;     /* [thread][2][D] */
} sure_job;

/* The most and the least that the score of a product may stand for. */
static double most_of(const sure_job *job, const judged *f, double score)
{
    return score + f->error + job->rounding * fabs(score);
}

static double least_of(const sure_job *job, const judged *f, double score)
{
    return score - f->error - job->rounding * fabs(score);
}

/* At least k candidates are as good as the k-th one may be at the least: who cannot be is no hit.
 */
static void drop_hopeless(const sure_job *job, size_t q, double *some, float *query)
{
    size_t kept = job->near->k, n = 0;
    double *score = job->near->score + q * kept;
    int64_t *index = job->near->index + q * kept;
    judged *f = &job->of[q];
    *f = (judged){.kth = -(double)INFINITY, .worst = (double)INFINITY};
    for (size_t i = 0; i < kept; i++)
        if (index[i] >= 0) {
            f->worst = fmin(f->worst, score[i]);
            some[n++] = score[i];
        }
    f->is_all = n < kept || kept >= job->c->gallery.n;
    pnb__linear_query(job->among->queries, job->c->opts.measure, q, query);
    f->error = pnb__compressed_error(job->c, query) + job->rounding * job->c->most_term;
    if (n <= job->among->k)
        return;
    f->kth = pnb__kth_largest(some, n, job->among->k);
    for (size_t i = 0; i < kept; i++)
        if (most_of(job, f, score[i]) < least_of(job, f, f->kth))
            index[i] = -1;
}

static void drop_range(void *user, size_t begin, size_t end, int thread)
{
    const sure_job *job = user;
    size_t dim = job->c->gallery.dim;
    for (size_t q = begin; q < end; q++)
        drop_hopeless(job, q, job->some + (size_t)thread * job->near->k,
                      job->rows + (size_t)thread * 2 * dim);
}

/* Whether none of the rows that are no candidates can be better than the k-th hit: by the scores of
 * copies where they tell, else by the hit's own. rows [2][D] */
static bool is_sure(const sure_job *job, size_t q, float *rows)
{
    const pnb__compressed *c = job->c;
    const judged *f = &job->of[q];
    float *query = rows, *item = rows + c->gallery.dim;
    int64_t last = job->hits->index[(q + 1) * job->hits->k - 1];
    bool ok = true;
    if (f->is_all || least_of(job, f, f->kth) > most_of(job, f, f->worst))
        return true;
    if (last < 0)
        return false;
    pnb__linear_query(job->among->queries, c->opts.measure, q, query);
    double value = pnb__linear_item(&c->gallery, c->opts.measure, (size_t)last, item, &ok);
    for (size_t d = 0; d < c->gallery.dim; d++)
        value += (double)item[d] * (double)query[d];
    return value > most_of(job, f, f->worst);
}

static void sure_range(void *user, size_t begin, size_t end, int thread)
{
    const sure_job *job = user;
    for (size_t q = begin; q < end; q++)
        job->of[q].is_unsure =
            !is_sure(job, q, job->rows + (size_t)thread * 2 * job->c->gallery.dim);
}

static void count_unsure(const sure_job *job, pnb_hits *hits, bool *unsure)
{
    hits->n_unsure = 0;
    for (size_t q = 0; q < hits->n_queries; q++) {
        hits->n_unsure += job->of[q].is_unsure;
        unsure[q] = job->of[q].is_unsure;
    }
}

static pnb_status alloc_sure(sure_job *job, pnb_hits *near, size_t n_threads, size_t kept,
                             pnb_error *err)
{
    size_t n = job->among->queries->n;
    pnb_status status;
    *near = (pnb_hits){.n_queries = n, .k = kept};
    PNB_TRY(PNB_ALLOC_ROWS(near->index, n, kept, err));
    PNB_TRY(PNB_ALLOC_ROWS(near->score, n, kept, err));
    PNB_TRY(PNB_ALLOC(job->of, n, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->some, n_threads, kept, err));
    status = PNB_ALLOC_ROWS(job->rows, 2 * n_threads, job->c->gallery.dim, err);
done:
    return status;
}

/* How a search is made. */
typedef struct effort {
    size_t kept; /* candidates of a query */
    bool rounds; /* their scores, on a device */
} effort;

static pnb_status search(const pnb__compressed *c, const pnb_ctx *ctx, const pnb__among *among,
                         effort how, pnb_hits *hits, bool *unsure, pnb_error *err)
{
    const pnb__rescoring again = {among->queries, &c->gallery, &c->opts, among->k};
    pnb_hits near = {0};
    sure_job job = {.c = c, .among = among, .near = &near, .hits = hits};
    size_t n = among->queries->n;
    pnb_status status;
    job.rounding = how.rounds ? PNB__COMPRESSED_ROUNDING : 0;
    PNB_TRY(alloc_sure(&job, &near, ctx != NULL ? (size_t)ctx->n_threads : 1, how.kept, err));
    if (c->on_device)
        PNB_TRY(pnb__compressed_scan_device(c, among, how.rounds, &near, err));
    else
        PNB_TRY(pnb__compressed_scan_host(c, ctx, among, &near, err));
    pnb__parallel_for(ctx, n, 16, drop_range, &job);
    PNB_TRY(pnb__rescore(ctx, &again, &near, hits, err));
    pnb__parallel_for(ctx, n, 16, sure_range, &job);
    count_unsure(&job, hits, unsure);
done:
    pnb__free(job.of);
    pnb__free(job.some);
    pnb__free(job.rows);
    pnb_hits_reset(&near);
    return status;
}

typedef struct wide_question {
    const pnb__compressed *c;
    const pnb_ctx *ctx;
} wide_question;

/* With all the candidates that a device keeps. */
static pnb_status ask_widely(void *user, const pnb__among *among, pnb_hits *hits, bool *unsure,
                             pnb_error *err)
{
    const wide_question *q = user;
    const effort most = {PNB_MIN(q->c->gallery.n, (size_t)PNB__BEST_MOST), false};
    return search(q->c, q->ctx, among, most, hits, unsure, err);
}

static pnb_status check_k(const pnb__compressed *c, size_t k, pnb_error *err)
{
    if (!c->on_device || k <= PNB__BEST_MOST)
        return PNB_OK;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%zu hits of an index of kind %s: a device keeps at most %d; an exact index "
                     "or the processor takes more",
                     k, c->is_bf16 ? "bf16" : "int8", PNB__BEST_MOST);
}

pnb_status pnb__compressed_nearest(const pnb__compressed *c, const pnb_ctx *ctx,
                                   const pnb__among *among, pnb_hits *hits, bool *unsure,
                                   pnb_error *err)
{
    effort how = {PNB_MIN(c->gallery.n, CANDIDATES(among->k)), false};
    wide_question widely = {c, ctx};
    pnb_status status;
    PNB_TRY(pnb__linear_check_queries(&c->gallery, among->queries, &c->opts, err));
    PNB_TRY(check_k(c, among->k, err));
    if (c->on_device) {
        how.kept = PNB_MIN(how.kept, (size_t)PNB__BEST_MOST);
        how.rounds = c->is_bf16 && c->kernels.halves_gain && among->queries->n >= MANY;
    }
    PNB_TRY(search(c, ctx, among, how, hits, unsure, err));
    if (c->on_device && hits->n_unsure > 0)
        status = pnb__ask_unsure(among, ask_widely, &widely, hits, unsure, err);
done:
    return status;
}

static pnb_status nearest(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                          pnb_hits *hits, pnb_error *err)
{
    bool *unsure = NULL;
    pnb_status status = PNB_ALLOC_ZERO(unsure, among->queries->n + 1, err);
    if (status == PNB_OK)
        status = pnb__compressed_nearest(self, ctx, among, hits, unsure, err);
    pnb__free(unsure);
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
