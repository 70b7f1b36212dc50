/* Exact top-k: blocks of scores, one bounded heap a query, no matrix of all scores.
 *
 * Work is cut into (query tile) x (gallery chunk); chunks exist only when there are fewer query
 * tiles than threads. Every cut keeps its own heaps and the merge uses the total order of heap.h,
 * so the result does not depend on the cut. Matrix-product scores carry f32 rounding: MARGIN more
 * candidates than asked for are kept, scored again in f64 and only then cut to k. */
#include <math.h>

#include "index/heap.h"
#include "index/scan.h"

#define MARGIN 16

struct pnb_index {
    pnb__scan scan;
};

typedef struct search_job {
    pnb__scan_run run;
    size_t n_tiles, n_chunks; /* of queries and gallery */
    size_t n_kept;            /* candidates of a heap */
    pnb__hit *hit;            /* [chunk][query][n_kept] */
    size_t *n_hits;           /* [chunk][query] */
    pnb_error *error;         /* [thread] */
    pnb_hits *out;
} search_job;

pnb_search_opts pnb_search_opts_default(void)
{
    return (pnb_search_opts){
        .measure = PNB_MEASURE_CSD, .measure_opts = pnb_measure_opts_default(), .k = 10};
}

void pnb_hits_reset(pnb_hits *hits)
{
    if (hits == NULL)
        return;
    pnb__free(hits->index);
    pnb__free(hits->score);
    *hits = (pnb_hits){0};
}

pnb_status pnb_index_create(pnb_index **out, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                            const pnb_search_opts *opts, pnb_error *err)
{
    pnb_search_opts o = opts == NULL ? pnb_search_opts_default() : *opts;
    *out = NULL;
    pnb_index *index = pnb__alloc_zero(1, sizeof *index);
    if (index == NULL)
        return pnb__fail_nomem(err, sizeof *index);
    pnb_status status = pnb__scan_init(&index->scan, ctx, gallery, &o, err);
    if (status != PNB_OK) {
        pnb_index_free(index);
        return status;
    }
    *out = index;
    return PNB_OK;
}

void pnb_index_free(pnb_index *index)
{
    if (index == NULL)
        return;
    pnb__scan_reset(&index->scan);
    pnb__free(index);
}

/* Border p of n parts of total, at multiples of step. */
static size_t border(size_t total, size_t step, size_t n, size_t p)
{
    size_t n_steps = (total + step - 1) / step;
    return PNB_MIN(total, step * (n_steps * p / n));
}

static size_t tile_begin(size_t n_queries, size_t n_tiles, size_t t)
{
    return t * (n_queries / n_tiles) + PNB_MIN(t, n_queries % n_tiles);
}

static void push_block(search_job *job, const pnb__scan_block *b, size_t chunk)
{
    size_t n_queries = job->run.queries.rows.n;
    for (size_t i = 0; i < b->n_queries; i++) {
        size_t slot = chunk * n_queries + b->query + i;
        pnb__heap heap = {job->hit + slot * job->n_kept, job->n_hits[slot], job->n_kept};
        const double *score = b->score + i * b->ld;
        for (size_t j = 0; j < b->n_items; j++) {
            /* Later items lose ties, so `<=` skips them without a look at the index. */
            if (heap.n == heap.capacity && score[j] <= heap.hit[0].score)
                continue;
            pnb__heap_push(&heap, (pnb__hit){score[j], (int64_t)(b->item + j)});
        }
        job->n_hits[slot] = heap.n;
    }
}

static pnb_status scan_part(search_job *job, pnb__scan_work *work, double *score, size_t part,
                            pnb_error *err)
{
    size_t n_queries = job->run.queries.rows.n, n_items = job->run.scan->gallery.rows.n;
    size_t tile = part / job->n_chunks, chunk = part % job->n_chunks;
    size_t query = tile_begin(n_queries, job->n_tiles, tile);
    size_t query_end = tile_begin(n_queries, job->n_tiles, tile + 1);
    size_t item = border(n_items, PNB__SCAN_ITEMS, job->n_chunks, chunk);
    size_t item_end = border(n_items, PNB__SCAN_ITEMS, job->n_chunks, chunk + 1);
    while (item < item_end) {
        pnb__scan_block b = {.query = query,
                             .n_queries = query_end - query,
                             .item = item,
                             .n_items = PNB_MIN(PNB__SCAN_ITEMS, item_end - item),
                             .score = score,
                             .ld = PNB__SCAN_ITEMS};
        pnb_status status = pnb__scan_score(&job->run, work, &b, err);
        if (status != PNB_OK)
            return status;
        push_block(job, &b, chunk);
        item += b.n_items;
    }
    return PNB_OK;
}

static void scan_parts(void *user, size_t begin, size_t end, int thread)
{
    search_job *job = user;
    pnb_error *err = &job->error[thread];
    pnb__scan_work work;
    if (pnb__scan_work_init(&work, &job->run, err) != PNB_OK)
        return;
    size_t bytes = sizeof(double) * PNB__SCAN_QUERIES * PNB__SCAN_ITEMS;
    double *score = pnb__alloc_aligned(bytes);
    if (score == NULL)
        pnb__fail_nomem(err, bytes);
    for (size_t part = begin; score != NULL && part < end; part++)
        if (scan_part(job, &work, score, part, err) != PNB_OK)
            break;
    pnb__free_aligned(score);
    pnb__scan_work_reset(&work);
}

/* Merges the heaps of each query, scores again where needed, sorts and cuts to k. */
static void finish_queries(void *user, size_t begin, size_t end, int thread)
{
    search_job *job = user;
    size_t n_queries = job->run.queries.rows.n, k = job->out->k;
    size_t bytes = job->n_chunks * job->n_kept * sizeof(pnb__hit);
    pnb__hit *merged = pnb__alloc(bytes);
    if (merged == NULL) {
        pnb__fail_nomem(&job->error[thread], bytes);
        return;
    }
    for (size_t q = begin; q < end; q++) {
        size_t n = 0;
        for (size_t c = 0; c < job->n_chunks; c++) {
            size_t slot = c * n_queries + q;
            for (size_t i = 0; i < job->n_hits[slot]; i++)
                merged[n++] = job->hit[slot * job->n_kept + i];
        }
        for (size_t i = 0; job->run.by_product && i < n; i++)
            merged[i].score = pnb__scan_exact(&job->run, q, (size_t)merged[i].index);
        pnb__hits_sort(merged, n);
        for (size_t i = 0; i < k; i++) {
            job->out->index[q * k + i] = i < n ? merged[i].index : -1;
            job->out->score[q * k + i] = i < n ? merged[i].score : -(double)INFINITY;
        }
    }
    pnb__free(merged);
}

static void plan(search_job *job, size_t n_threads)
{
    size_t n_queries = job->run.queries.rows.n, n_items = job->run.scan->gallery.rows.n;
    size_t n_blocks = (n_items + PNB__SCAN_ITEMS - 1) / PNB__SCAN_ITEMS;
    size_t n_tiles = (n_queries + PNB__SCAN_QUERIES - 1) / PNB__SCAN_QUERIES;
    job->n_chunks = 1;
    if (n_tiles < n_threads)
        job->n_chunks = PNB_MIN(n_blocks, (n_threads + n_tiles - 1) / n_tiles);
    else
        n_tiles = PNB_MIN(n_queries, (n_tiles + n_threads - 1) / n_threads * n_threads);
    job->n_tiles = n_tiles;
    job->n_kept = PNB_MIN(n_items, job->run.by_product ? job->out->k + MARGIN : job->out->k);
}

static pnb_status alloc_job(search_job *job, size_t n_threads, pnb_error *err)
{
    size_t n_heaps, n_hits;
    size_t n_queries = job->run.queries.rows.n, n_out;
    if (pnb__mul_overflows(job->n_chunks, n_queries, &n_heaps) ||
        pnb__mul_overflows(n_heaps, job->n_kept, &n_hits) ||
        pnb__mul_overflows(n_queries, job->out->k, &n_out))
        return pnb__fail(err, PNB_NOMEM, "k = %zu for %zu queries is beyond memory", job->out->k,
                         n_queries);
    job->hit = pnb__alloc_array(n_hits, sizeof(pnb__hit));
    job->n_hits = pnb__alloc_zero(n_heaps, sizeof(size_t));
    job->error = pnb__alloc_zero(n_threads, sizeof(pnb_error));
    job->out->index = pnb__alloc_array(n_out, sizeof(int64_t));
    job->out->score = pnb__alloc_array(n_out, sizeof(double));
    if (job->hit == NULL || job->n_hits == NULL || job->error == NULL || job->out->index == NULL ||
        job->out->score == NULL)
        return pnb__fail_nomem(err, n_hits * sizeof(pnb__hit));
    return PNB_OK;
}

/* The first thread's error is the one of the lowest query: parts are handed out in order. */
static pnb_status first_error(const search_job *job, size_t n_threads, pnb_error *err)
{
    for (size_t t = 0; t < n_threads; t++)
        if (job->error[t].status != PNB_OK)
            return pnb__fail(err, job->error[t].status, "%s", job->error[t].text);
    return PNB_OK;
}

pnb_status pnb_index_search(const pnb_index *index, const pnb_ctx *ctx,
                            const pnb_gaussians *queries, size_t k, pnb_hits *hits, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    search_job job = {.out = hits};
    *hits = (pnb_hits){.n_queries = queries->n, .k = k};
    if (k == 0)
        PNB_TRY(pnb__fail(err, PNB_ARG, "k is 0; ask for at least one hit a query"));
    PNB_TRY(pnb__scan_run_init(&job.run, &index->scan, ctx, queries, err));
    plan(&job, n_threads);
    PNB_TRY(alloc_job(&job, n_threads, err));
    pnb__parallel_for(ctx, job.n_tiles * job.n_chunks, 1, scan_parts, &job);
    PNB_TRY(first_error(&job, n_threads, err));
    pnb__parallel_for(ctx, queries->n, 16, finish_queries, &job);
    status = first_error(&job, n_threads, err);
done:
    pnb__scan_run_reset(&job.run);
    pnb__free(job.hit);
    pnb__free(job.n_hits);
    pnb__free(job.error);
    if (status != PNB_OK)
        pnb_hits_reset(hits);
    return status;
}

pnb_status pnb_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                      const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_hits *hits,
                      pnb_error *err)
{
    pnb_index *index = NULL;
    *hits = (pnb_hits){0};
    pnb_status status = pnb_index_create(&index, ctx, gallery, opts, err);
    if (status == PNB_OK) {
        size_t k = opts == NULL ? pnb_search_opts_default().k : opts->k;
        status = pnb_index_search(index, ctx, queries, k, hits, err);
    }
    pnb_index_free(index);
    return status;
}
