/* Exact top-k: candidates by bounds, winners by f64 scores, no matrix of all scores.
 *
 * Queries are taken some thousands at a time. The threads share the gallery out among them, ever
 * smaller runs of blocks, since they are not equally fast on a busy machine (and the queries in
 * groups, where the gallery is too short for that); each part walks its items once and keeps, for
 * every query, the pairs whose upper bound reaches the k-th best lower bound seen so far. Such a
 * list is pruned when it is full, in f64 when bounds no longer separate its entries, so it never
 * loses a pair that belongs to the answer. At the end the lists of all parts are joined, what is
 * left is scored in f64 and cut to k by the total order of hits.h: the result does not depend on
 * who took what. For measures computed in f64 alone the bounds are the scores. */
#include "index/exact/exact_search.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "index/exact/bound.h"
#include "index/heap.h"
#include "index/hits.h"

#define CHUNK_ITEMS 1024 /* least items of a part of the gallery */
#define FEWEST_A_HIT 64  /* items, so that likely ones are worth a look */
#define LIST_BYTES ((size_t)128 << 20)

typedef struct candidate {
    double low, high; /* bounds on the score; equal when it was computed in f64 */
    int64_t index;
} candidate;

typedef struct search_job {
    pnb__exact_run run;
    const pnb_ctx *ctx;
    pnb__bound pass;
    size_t n_chunks, n_groups, capacity, most;
    candidate *list; /* [chunk][query of the pass][capacity] */
    size_t *n;       /* [chunk][query of the pass] */
    float *limit;    /* [chunk][query of the pass] */
    size_t n_threads, n_blocks;
    atomic_size_t *taken;      /* [group] blocks of items that the parts of the group have begun */
    pnb_error *error;          /* [thread] */
    size_t *failed_at;         /* [thread] the block of the error, counted through the groups */
    const unsigned char *only; /* [row] 0: never a hit; NULL: all may be */
    pnb_hits *out;
    pnb_hits likely; /* k items of each query from whose scores the limits begin; may be empty */
} search_job;

/* One part's view of the job while it walks its items. */
typedef struct part {
    search_job *job;
    size_t chunk, n_taken;
    pnb__bound_work work;
    double *low; /* [capacity] */
    pnb__hit *hit;
} part;

/* ---- lists ---- */

/* Entries that may still be among the k best; the k-th best lower bound comes back in *kth. */
static size_t prune(candidate *list, size_t n, size_t k, double *low, double *kth)
{
    if (n <= k)
        return n;
    for (size_t i = 0; i < n; i++)
        low[i] = list[i].low;
    *kth = pnb__kth_largest(low, n, k);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].high >= *kth)
            list[kept++] = list[i];
    return kept;
}

/* In f64: a score that the limits began with is known already. */
static double exact_score(const search_job *job, pnb__exact_work *work, size_t query, int64_t item)
{
    size_t begin = query * job->likely.k;
    for (size_t h = begin; h < begin + job->likely.k; h++)
        if (job->likely.index[h] == item)
            return job->likely.score[h];
    return pnb__exact_pair(&job->run, work, query, (size_t)item);
}

static void make_exact(search_job *job, pnb__exact_work *work, size_t query, candidate *list,
                       size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].low < list[i].high)
            list[i].low = list[i].high = exact_score(job, work, query, list[i].index);
}

static void sort_exact(candidate *list, size_t n, pnb__hit *hit)
{
    for (size_t i = 0; i < n; i++)
        hit[i] = (pnb__hit){list[i].low, list[i].index};
    pnb__hits_sort(hit, n);
}

/* Makes room in a full list. Where bounds keep more than half of it, all are scored in f64 and only
 * the k best stay: capacity is at least 2 k, so there is room in any case. */
static void make_room(part *p, size_t query, size_t slot)
{
    search_job *job = p->job;
    candidate *list = job->list + slot * job->capacity;
    size_t k = job->out->k, n = job->n[slot];
    double kth = -(double)INFINITY;
    n = prune(list, n, k, p->low, &kth);
    if (n > k && n > job->capacity / 2) {
        make_exact(job, &p->work.scan, query, list, n);
        sort_exact(list, n, p->hit);
        n = k;
        for (size_t i = 0; i < n; i++)
            list[i] = (candidate){p->hit[i].score, p->hit[i].score, p->hit[i].index};
        kth = list[n - 1].low;
    }
    job->n[slot] = n;
    job->limit[slot] = fmaxf(job->limit[slot], pnb__bound_limit(&job->run, query, kth));
}

static pnb_status take_candidate(void *user, const pnb__bounds *pair)
{
    part *p = user;
    search_job *job = p->job;
    size_t slot = p->chunk * job->most + pair->query - job->pass.first;
    p->n_taken++;
    if (job->only != NULL && job->only[pair->item] == 0)
        return PNB_OK;
    job->list[slot * job->capacity + job->n[slot]++] =
        (candidate){pair->low, pair->high, (int64_t)pair->item};
    if (job->n[slot] == job->capacity)
        make_room(p, pair->query, slot);
    return PNB_OK;
}

/* ---- limits to begin with ---- */

/* Points to find likely items by: of samples that are kept their outline, whose distance is the
 * mean over all pairs, and else the means of the rows. */
static pnb_gaussians points_of(const pnb__exact_side *side, bool by_outline)
{
    const pnb_rows *rows = &side->rows;
    if (by_outline)
        return (pnb_gaussians){.n = rows->n, .dim = rows->dim + 1, .mean = side->outline};
    return (pnb_gaussians){.n = rows->n, .dim = rows->dim, .mean = rows->mean};
}

/* Items that are likely to be near: by points, of which there is one a row and not one for each
 * sample. Their scores, exact, are limits from the first block on; without them lists would fill
 * with pairs of no worth. */
static pnb_status find_likely(search_job *job, const pnb__among *among, pnb_error *err)
{
    const pnb__exact_side *one = &job->run.queries, *two = &job->run.scan->gallery;
    bool by_outline = one->outline != NULL && two->outline != NULL;
    const pnb_gaussians queries = points_of(one, by_outline), gallery = points_of(two, by_outline);
    const pnb__among points = {.queries = &queries, .k = among->k, .only = among->only};
    pnb_search_opts opts = pnb_search_opts_default();
    pnb__exact scan = {0};
    pnb_status status;
    if (!pnb__sample_bytes_take(&job->run) || gallery.n / FEWEST_A_HIT < among->k)
        return PNB_OK;
    opts.measure = PNB_MEASURE_CSD;
    PNB_TRY(pnb__exact_init(&scan, job->ctx, &gallery, &opts, err));
    status = pnb__exact_nearest(&scan, job->ctx, &points, &job->likely, err);
done:
    pnb__exact_reset(&scan);
    return status;
}

static void set_limits(void *user, size_t begin, size_t end, int thread)
{
    search_job *job = user;
    size_t k = job->likely.k;
    pnb__exact_work work = {0};
    pnb_status status = pnb__exact_work_init(&work, &job->run, &job->error[thread]);
    for (size_t i = begin; i < end && status == PNB_OK; i++) {
        size_t query = job->pass.first + i;
        double least = (double)INFINITY;
        for (size_t h = query * k; h < (query + 1) * k; h++) {
            int64_t item = job->likely.index[h];
            double score = -(double)INFINITY; /* fewer than k may be hits */
            if (item >= 0)
                score = pnb__exact_pair(&job->run, &work, query, (size_t)item);
            job->likely.score[h] = score;
            least = fmin(least, score);
        }
        for (size_t c = 0; c < job->n_chunks && least > -(double)INFINITY; c++)
            job->limit[c * job->most + i] = pnb__bound_limit(&job->run, query, least);
    }
    pnb__exact_work_reset(&work);
}

/* ---- walking the gallery ---- */

/* Of a strip's queries; NULL: before lists have been full once every pair is taken. */
static const float *limits_of(const part *p, size_t strip)
{
    const pnb__bound *pass = &p->job->pass;
    size_t begin = strip * pass->strip, n = PNB_MIN(pass->strip, pass->n - begin);
    const float *limit = p->job->limit + p->chunk * p->job->most + begin;
    bool has = true;
    for (size_t q = 0; q < n; q++)
        has = has && limit[q] > -INFINITY;
    return has ? limit : NULL;
}

static pnb_status walk_block(part *p, size_t block, const size_t strips[2], pnb_error *err)
{
    search_job *job = p->job;
    size_t step = job->pass.n_items, n_items = job->run.scan->gallery.rows.n;
    pnb_status status = PNB_OK;
    const size_t items[2] = {block * step, PNB_MIN((block + 1) * step, n_items)};
    for (size_t s = strips[0]; s < strips[1] && status == PNB_OK; s++) {
        pnb__values values;
        p->work.limit = limits_of(p, s);
        status = pnb__bound_score(&job->pass, &p->work, s, items, &values, err);
        if (status != PNB_OK)
            break;
        const float *limit = job->limit + p->chunk * job->most + values.query - job->pass.first;
        size_t before = p->n_taken;
        status = pnb__values_above(&job->run, &values, limit, take_candidate, p);
        pnb__half_saw(&p->work.half, values.n_queries * values.n_items, p->n_taken - before);
    }
    return status;
}

static pnb_status walk_blocks(part *p, const size_t blocks[2], size_t group, int thread)
{
    search_job *job = p->job;
    size_t n_strips = (job->pass.n + job->pass.strip - 1) / job->pass.strip;
    const size_t strips[2] = {n_strips * group / job->n_groups,
                              n_strips * (group + 1) / job->n_groups};
    pnb_status status = PNB_OK;
    for (size_t b = blocks[0]; b < blocks[1] && status == PNB_OK; b++) {
        status = walk_block(p, b, strips, &job->error[thread]);
        if (status != PNB_OK)
            job->failed_at[thread] = group * job->n_blocks + b;
    }
    return status;
}

/* The next run of blocks for a part: in order, a share of what is left. */
static bool take_blocks(search_job *job, size_t group, size_t blocks[2])
{
    size_t begin = atomic_load(&job->taken[group]), n;
    do {
        if (begin >= job->n_blocks)
            return false;
        n = PNB_MAX((job->n_blocks - begin) / (2 * job->n_chunks), (size_t)1);
    } while (!atomic_compare_exchange_weak(&job->taken[group], &begin, begin + n));
    blocks[0] = begin;
    blocks[1] = begin + n;
    return true;
}

static void walk_parts(void *user, size_t begin, size_t end, int thread)
{
    search_job *job = user;
    pnb_error *err = &job->error[thread];
    pnb_status status = PNB_OK;
    part p = {.job = job};
    p.low = pnb__alloc_array(job->capacity, sizeof *p.low);
    p.hit = pnb__alloc_array(job->capacity, sizeof *p.hit);
    if (p.low == NULL || p.hit == NULL)
        PNB_TRY(pnb__fail_nomem(err, job->capacity * (sizeof *p.low + sizeof *p.hit)));
    PNB_TRY(pnb__bound_work_init(&p.work, &job->run, err));
    for (size_t i = begin; i < end; i++) {
        size_t group = i / job->n_chunks, blocks[2];
        p.chunk = i % job->n_chunks;
        while (take_blocks(job, group, blocks))
            PNB_TRY(walk_blocks(&p, blocks, group, thread));
    }
done:
    pnb__free(p.low);
    pnb__free(p.hit);
    pnb__bound_work_reset(&p.work);
    (void)status;
}

/* ---- results ---- */

static int by_high(const void *a, const void *b)
{
    double x = ((const candidate *)a)->high, y = ((const candidate *)b)->high;
    return (x < y) - (x > y);
}

/* Scores in f64 from the highest bound down, until k of them are above every bound that is left:
 * the rest cannot be among the k best. Returns how many stay, the first ones, all exact. */
static size_t make_best_exact(search_job *job, pnb__exact_work *work, size_t query, candidate *list,
                              size_t n, pnb__hit *hit)
{
    pnb__heap best = {.hit = hit, .capacity = job->out->k};
    qsort(list, n, sizeof *list, by_high);
    for (size_t i = 0; i < n; i++) {
        if (best.n == best.capacity && list[i].high < best.hit[0].score)
            return i;
        make_exact(job, work, query, list + i, 1);
        pnb__heap_push(&best, (pnb__hit){list[i].low, list[i].index});
    }
    return n;
}

/* Joins the lists of one query, scores what is left in f64, sorts and cuts to k. */
static void finish_query(search_job *job, pnb__exact_work *work, size_t query, candidate *joined,
                         double *low, pnb__hit *hit)
{
    size_t k = job->out->k, n = 0;
    double kth;
    for (size_t c = 0; c < job->n_chunks; c++) {
        size_t slot = c * job->most + query - job->pass.first;
        memcpy(joined + n, job->list + slot * job->capacity, job->n[slot] * sizeof *joined);
        n += job->n[slot];
    }
    n = prune(joined, n, k, low, &kth);
    n = make_best_exact(job, work, query, joined, n, hit);
    sort_exact(joined, n, hit);
    for (size_t i = 0; i < k; i++) {
        job->out->index[query * k + i] = i < n ? hit[i].index : -1;
        job->out->score[query * k + i] = i < n ? hit[i].score : -(double)INFINITY;
    }
}

static void finish_queries(void *user, size_t begin, size_t end, int thread)
{
    search_job *job = user;
    pnb_error *err = &job->error[thread];
    pnb_status status = PNB_OK;
    size_t most = job->n_chunks * job->capacity;
    pnb__exact_work work = {0};
    candidate *joined = pnb__alloc_array(most, sizeof *joined);
    double *low = pnb__alloc_array(most, sizeof *low);
    pnb__hit *hit = pnb__alloc_array(most, sizeof *hit);
    if (joined == NULL || low == NULL || hit == NULL)
        PNB_TRY(pnb__fail_nomem(err, most * (sizeof *joined + sizeof *low + sizeof *hit)));
    PNB_TRY(pnb__exact_work_init(&work, &job->run, err));
    for (size_t q = begin; q < end; q++)
        finish_query(job, &work, job->pass.first + q, joined, low, hit);
done:
    pnb__exact_work_reset(&work);
    pnb__free(joined);
    pnb__free(low);
    pnb__free(hit);
    (void)status;
}

/* The error of the earliest block: blocks are begun in order, so it is the same in every run. */
static pnb_status first_error(const search_job *job, pnb_error *err)
{
    size_t first = job->n_threads;
    for (size_t t = 0; t < job->n_threads; t++)
        if (job->error[t].status != PNB_OK &&
            (first == job->n_threads || job->failed_at[t] < job->failed_at[first]))
            first = t;
    if (first == job->n_threads)
        return PNB_OK;
    return pnb__fail(err, job->error[first].status, "%s", job->error[first].text);
}

static pnb_status run_pass(search_job *job, size_t first, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__bound_init(&job->pass, &job->run, job->ctx, first, n, err));
    size_t n_strips = (n + job->pass.strip - 1) / job->pass.strip;
    job->n_groups = PNB_MIN(n_strips, (job->n_threads + job->n_chunks - 1) / job->n_chunks);
    job->n_blocks = (job->run.scan->gallery.rows.n + job->pass.n_items - 1) / job->pass.n_items;
    for (size_t i = 0; i < job->n_groups; i++)
        atomic_init(&job->taken[i], 0);
    for (size_t i = 0; i < job->n_chunks * job->most; i++) {
        job->n[i] = 0;
        job->limit[i] = -INFINITY;
    }
    if (job->likely.index != NULL)
        pnb__parallel_for(job->ctx, n, 16, set_limits, job);
    PNB_TRY(first_error(job, err));
    pnb__parallel_for(job->ctx, job->n_chunks * job->n_groups, 1, walk_parts, job);
    PNB_TRY(first_error(job, err));
    pnb__parallel_for(job->ctx, n, 16, finish_queries, job);
    status = first_error(job, err);
done:
    pnb__bound_reset(&job->pass);
    return status;
}

static void plan(search_job *job)
{
    size_t n_items = job->run.scan->gallery.rows.n, k = job->out->k;
    size_t n_chunks = (n_items + CHUNK_ITEMS - 1) / CHUNK_ITEMS;
    job->n_chunks = PNB_MIN(n_chunks, job->n_threads);
    job->capacity = k < n_items / 2 ? PNB_MIN(2 * k + 64, n_items) : n_items;
    size_t per_query = job->n_chunks * job->capacity * sizeof(candidate);
    size_t fitting = PNB_MAX(LIST_BYTES / per_query, (size_t)1);
    job->most =
        PNB_MIN(PNB_MIN(fitting, pnb__bound_most_queries(&job->run)), job->run.queries.rows.n);
}

static pnb_status alloc_job(search_job *job, pnb_error *err)
{
    size_t n_lists = job->n_chunks * job->most, n_entries, n_out;
    size_t n_queries = job->run.queries.rows.n;
    if (pnb__mul_overflows(n_lists, job->capacity, &n_entries) ||
        pnb__mul_overflows(n_queries, job->out->k, &n_out))
        return pnb__fail(err, PNB_NOMEM, "k = %zu for %zu queries is beyond memory", job->out->k,
                         n_queries);
    job->list = pnb__alloc_array(n_entries, sizeof *job->list);
    job->n = pnb__alloc_array(n_lists, sizeof *job->n);
    job->limit = pnb__alloc_array(n_lists, sizeof *job->limit);
    job->error = pnb__alloc_zero(job->n_threads, sizeof(pnb_error));
    job->failed_at = pnb__alloc_zero(job->n_threads, sizeof *job->failed_at);
    job->taken = pnb__alloc_array(job->n_threads, sizeof *job->taken);
    job->out->index = pnb__alloc_array(n_out, sizeof(int64_t));
    job->out->score = pnb__alloc_array(n_out, sizeof(double));
    if (job->list == NULL || job->n == NULL || job->limit == NULL || job->error == NULL ||
        job->failed_at == NULL || job->taken == NULL || job->out->index == NULL ||
        job->out->score == NULL)
        return pnb__fail_nomem(err, n_entries * sizeof *job->list + n_out * 16);
    return PNB_OK;
}

pnb_status pnb__exact_nearest(const void *scan, const pnb_ctx *ctx, const pnb__among *among,
                              pnb_hits *hits, pnb_error *err)
{
    const pnb_gaussians *queries = among->queries;
    pnb_status status = PNB_OK;
    search_job job = {.ctx = ctx, .out = hits, .only = among->only};
    job.n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    *hits = (pnb_hits){.n_queries = queries->n, .k = among->k};
    PNB_TRY(pnb__exact_run_init(&job.run, scan, ctx, queries, err));
    job.run.bounds_by_halves = job.run.bounds_by_bytes = true;
    plan(&job);
    PNB_TRY(alloc_job(&job, err));
    PNB_TRY(find_likely(&job, among, err));
    for (size_t first = 0; first < queries->n; first += job.most)
        PNB_TRY(run_pass(&job, first, PNB_MIN(job.most, queries->n - first), err));
done:
    pnb__exact_run_reset(&job.run);
    pnb_hits_reset(&job.likely);
    pnb__free(job.list);
    pnb__free(job.n);
    pnb__free(job.limit);
    pnb__free(job.error);
    pnb__free(job.failed_at);
    pnb__free(job.taken);
    return status;
}
