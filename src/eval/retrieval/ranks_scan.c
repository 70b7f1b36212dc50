/* Ranks of the positives of each query from embeddings, without a matrix of scores.
 *
 * The positives are scored in f64 first. Then the gallery is walked block by block (exact/bound.h):
 * bounds on a pair's score tell for almost every pair and positive which stands first, and only
 * where they do not, the pair is scored in f64 too. So ranks are those of the f64 scores, whatever
 * the number of threads. A query with few positives counts, for each of them, the items before it,
 * many queries at a time; one with many adds each item to the first positive behind it and sums up
 * at the end. Order: score, then lower index. */
#include <math.h>
#include <string.h>

#include "eval/retrieval/ranks.h"
#include "eval/retrieval/ranks_back.h"
#include "index/exact/bound.h"

#define FEW PNB__RANKS_FEW
#define CHUNK_ITEMS 4096 /* least items of a part of the gallery */
#define LOOK 64          /* queries looked at together */

typedef struct rank_job {
    pnb__exact_run run;
    const pnb_ctx *ctx;
    const pnb_truth *truth;
    pnb_ranks *out;
    pnb__bound pass;
    size_t first; /* query of this process */
    size_t most, n_levels, n_threads, n_chunks, n_groups, n_in_strip;
    pnb__hit *positive; /* [pair] best first within each query */
    /* By query of the pass; level is the place of a positive, from the best. */
    size_t *levels; /* [query] number of positives counted one by one, 0 where all are summed */
    size_t *group_levels; /* [strip][group of LOOK queries] the most of them */
    bool has_many;        /* some query has more positives than that */
    float *sure, *maybe;  /* [level][query] lower bounds above / upper bounds from here count */
    uint32_t *count;      /* [chunk][level][query] */
    size_t *before;   /* [chunk][pair of the pass] items that the positive is the first behind */
    pnb__hit *top;    /* [chunk][query] */
    float *top_limit; /* [chunk][query] */
    size_t n_before;  /* pairs of a pass at most */
    pnb_error *error; /* [thread] */
    pnb__back *back;  /* the other direction too, or NULL */
    const pnb__ranked *ranked; /* who is told each rank, or NULL */
} rank_job;

static size_t n_positives(const rank_job *job, size_t query)
{
    return job->truth->offset[query + 1] - job->truth->offset[query];
}

/* ---- positives ---- */

static void score_positives(void *user, size_t begin, size_t end, int thread)
{
    rank_job *job = user;
    pnb__exact_work work;
    if (pnb__exact_work_init(&work, &job->run, &job->error[thread]) != PNB_OK)
        return;
    for (size_t q = job->first + begin; q < job->first + end; q++) {
        size_t first = job->truth->offset[q], n = n_positives(job, q);
        for (size_t i = first; i < first + n; i++) {
            size_t item = job->truth->item[i];
            job->positive[i] =
                (pnb__hit){pnb__exact_pair(&job->run, &work, q, item), (int64_t)item};
        }
        pnb__hits_sort(job->positive + first, n);
    }
    pnb__exact_work_reset(&work);
}

/* Limits of the bounds for each positive that is counted one by one; infinite where there is none:
 * nothing is above them. */
static void set_limits(rank_job *job)
{
    size_t n = job->pass.n, most = job->most;
    for (size_t i = 0; i < n; i++) {
        size_t query = job->pass.first + i, n_own = n_positives(job, query);
        const pnb__hit *positive = job->positive + job->truth->offset[query];
        double term = pnb__bound_term(&job->run, query);
        double margin = 2.0 * pnb__bound_margin(&job->run, query);
        job->levels[i] = n_own <= FEW ? n_own : 0;
        for (size_t l = 0; l < job->n_levels; l++) {
            bool has = l < job->levels[i];
            double sure = has ? positive[l].score - term + margin : 0.0;
            job->sure[l * most + i] = has ? nextafterf((float)sure, INFINITY) : INFINITY;
            job->maybe[l * most + i] =
                has ? pnb__bound_limit(&job->run, query, positive[l].score) : INFINITY;
        }
        size_t *levels =
            &job->group_levels[i / job->pass.strip * job->n_in_strip + i % job->pass.strip / LOOK];
        *levels = PNB_MAX(*levels, job->levels[i]);
    }
}

/* ---- one item against some queries ---- */

typedef struct part {
    rank_job *job;
    size_t chunk, group;
    pnb__bound_work work;
    float low[LOOK], high[LOOK];
} part;

static void raise_top(part *p, size_t query, pnb__hit hit)
{
    rank_job *job = p->job;
    size_t slot = p->chunk * job->most + query - job->pass.first;
    if (!pnb__hit_before(hit, job->top[slot]))
        return;
    job->top[slot] = hit;
    job->top_limit[slot] = pnb__bound_limit(&job->run, query, hit.score);
}

static bool level_is_open(const rank_job *job, size_t at, size_t level, float low, float high)
{
    return high >= job->maybe[level * job->most + at] && !(low > job->sure[level * job->most + at]);
}

/* A pair of which the bounds leave something open: scored in f64. */
static void settle(part *p, size_t query, size_t item, float low, float high)
{
    rank_job *job = p->job;
    size_t at = query - job->pass.first;
    bool open = high >= job->top_limit[p->chunk * job->most + at];
    for (size_t l = 0; !open && l < job->levels[at]; l++)
        open = level_is_open(job, at, l, low, high);
    if (!open)
        return;
    pnb__hit hit = {pnb__exact_pair(&job->run, &p->work.scan, query, item), (int64_t)item};
    const pnb__hit *positive = job->positive + job->truth->offset[query];
    uint32_t *count = job->count + p->chunk * job->n_levels * job->most + at;
    for (size_t l = 0; l < job->levels[at]; l++)
        if (level_is_open(job, at, l, low, high))
            count[l * job->most] += pnb__hit_before(hit, positive[l]);
    raise_top(p, query, hit);
}

/* Adds an item to the first of many positives that it stands before. */
static void add_to_many(part *p, size_t query, size_t item, float low, float high)
{
    rank_job *job = p->job;
    size_t first = job->truth->offset[query], n = n_positives(job, query);
    const pnb__hit *positive = job->positive + first;
    double term = pnb__bound_term(&job->run, query), margin = pnb__bound_margin(&job->run, query);
    /* As a hit with the highest index loses every tie, one with index -1 wins every tie. */
    const pnb__hit least = {low + term - margin, INT64_MAX}, most = {high + term + margin, -1};
    size_t behind = pnb__ranks_first_behind(positive, n, least);
    if (pnb__ranks_first_behind(positive, n, most) != behind) {
        pnb__hit hit = {pnb__exact_pair(&job->run, &p->work.scan, query, item), (int64_t)item};
        behind = pnb__ranks_first_behind(positive, n, hit);
        raise_top(p, query, hit);
    }
    if (behind < n)
        job->before[p->chunk * job->n_before + first - job->truth->offset[job->pass.first] +
                    behind]++;
}

/* Counts an item for one level of n queries; not 0 where the bounds leave one of them open. */
static int count_level(const part *p, const float *sure, const float *maybe, uint32_t *count,
                       size_t n)
{
    const float *low = p->low, *high = p->high;
    int open = 0;
#pragma omp simd reduction(| : open)
    for (size_t j = 0; j < n; j++) {
        int is_before = low[j] > sure[j];
        count[j] += (uint32_t)is_before;
        open |= (high[j] >= maybe[j]) & !is_before;
    }
    return open;
}

static int any_top(const part *p, const float *limit, size_t n)
{
    int open = 0;
#pragma omp simd reduction(| : open)
    for (size_t j = 0; j < n; j++)
        open |= p->high[j] >= limit[j];
    return open;
}

/* Item i of the block against queries begin .. begin+n of it. */
static void count_item(part *p, const pnb__values *v, size_t i, size_t begin, size_t n)
{
    rank_job *job = p->job;
    size_t at = v->query + begin - job->pass.first, item = v->item + i;
    uint32_t *count = job->count + p->chunk * job->n_levels * job->most + at;
    size_t strip = (v->query - job->pass.first) / job->pass.strip;
    size_t n_levels = job->group_levels[strip * job->n_in_strip + begin / LOOK];
    pnb__values_bounds(v, i, begin, n, p->low, p->high);
    int open = any_top(p, job->top_limit + p->chunk * job->most + at, n);
    for (size_t l = 0; l < n_levels; l++)
        open |= count_level(p, job->sure + l * job->most + at, job->maybe + l * job->most + at,
                            count + l * job->most, n);
    for (size_t j = 0; open && j < n; j++)
        settle(p, v->query + begin + j, item, p->low[j], p->high[j]);
    for (size_t j = 0; job->has_many && j < n; j++)
        if (n_positives(job, v->query + begin + j) > FEW)
            add_to_many(p, v->query + begin + j, item, p->low[j], p->high[j]);
    if (job->back != NULL) {
        const pnb__back_block block = {p->group, item, v->query + begin, n, p->low, p->high};
        pnb__back_count(job->back, &p->work.scan, &block);
    }
}

/* ---- walking the gallery ---- */

static pnb_status walk_part(part *p, const size_t items[2], const size_t strips[2], pnb_error *err)
{
    rank_job *job = p->job;
    pnb_status status = PNB_OK;
    for (size_t item = items[0]; item < items[1]; item += job->pass.n_items) {
        const size_t block[2] = {item, PNB_MIN(item + job->pass.n_items, items[1])};
        for (size_t s = strips[0]; s < strips[1]; s++) {
            pnb__values v;
            PNB_TRY(pnb__bound_score(&job->pass, &p->work, s, block, &v, err));
            for (size_t i = 0; i < v.n_items; i++)
                for (size_t j = 0; j < v.n_queries; j += LOOK)
                    count_item(p, &v, i, j, PNB_MIN((size_t)LOOK, v.n_queries - j));
        }
    }
done:
    return status;
}

static void walk_parts(void *user, size_t begin, size_t end, int thread)
{
    rank_job *job = user;
    pnb_error *err = &job->error[thread];
    part p = {.job = job};
    size_t n_items = job->truth->n_items;
    size_t n_strips = (job->pass.n + job->pass.strip - 1) / job->pass.strip;
    pnb_status status = pnb__bound_work_init(&p.work, &job->run, err);
    if (status != PNB_OK)
        return;
    for (size_t i = begin; i < end && status == PNB_OK; i++) {
        size_t group = i / job->n_chunks, step = job->pass.n_items;
        p.chunk = i % job->n_chunks;
        p.group = group;
        const size_t items[2] = {pnb__bound_border(n_items, step, job->n_chunks, p.chunk),
                                 pnb__bound_border(n_items, step, job->n_chunks, p.chunk + 1)};
        const size_t strips[2] = {n_strips * group / job->n_groups,
                                  n_strips * (group + 1) / job->n_groups};
        status = walk_part(&p, items, strips, err);
    }
    pnb__bound_work_reset(&p.work);
}

static void finish_query(const rank_job *job, size_t query, size_t *rank)
{
    const pnb_truth *truth = job->truth;
    size_t at = query - job->pass.first, n = n_positives(job, query), before = 0;
    size_t first = truth->offset[query] - truth->offset[job->pass.first];
    pnb__hit top = job->top[at];
    for (size_t l = 0; l < n; l++)
        rank[l] = 1;
    for (size_t c = 0; c < job->n_chunks; c++) {
        for (size_t l = 0; l < n; l++)
            rank[l] += n <= FEW ? job->count[(c * job->n_levels + l) * job->most + at]
                                : job->before[c * job->n_before + first + l];
        if (pnb__hit_before(job->top[c * job->most + at], top))
            top = job->top[c * job->most + at];
    }
    for (size_t l = 0; n > FEW && l < n; l++) {
        before += rank[l] - 1;
        rank[l] = before + 1;
    }
    job->out->top1[query] = top.index;
    job->out->top1_score[query] = top.score;
    pnb__ranks_store(job->out, query, rank, n, pnb__ranks_outside(truth, query));
    if (job->ranked != NULL)
        job->ranked->fn(job->ranked->user, query, job->positive + truth->offset[query], rank, n);
}

static pnb_status first_error(const rank_job *job, pnb_error *err)
{
    for (size_t t = 0; t < job->n_threads; t++)
        if (job->error[t].status != PNB_OK)
            return pnb__fail(err, job->error[t].status, "%s", job->error[t].text);
    return PNB_OK;
}

static pnb_status run_pass(rank_job *job, size_t first, size_t n, size_t *rank, pnb_error *err)
{
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__bound_init(&job->pass, &job->run, job->ctx, first, n, err));
    size_t n_strips = (n + job->pass.strip - 1) / job->pass.strip;
    job->n_groups = PNB_MIN(n_strips, (job->n_threads + job->n_chunks - 1) / job->n_chunks);
    job->n_in_strip = (job->pass.strip + LOOK - 1) / LOOK;
    memset(job->group_levels, 0, n_strips * job->n_in_strip * sizeof *job->group_levels);
    memset(job->count, 0, job->n_chunks * job->n_levels * job->most * sizeof *job->count);
    memset(job->before, 0, job->n_chunks * job->n_before * sizeof *job->before);
    for (size_t i = 0; i < job->n_chunks * job->most; i++) {
        job->top[i] = (pnb__hit){-(double)INFINITY, INT64_MAX};
        job->top_limit[i] = -INFINITY;
    }
    set_limits(job);
    pnb__parallel_for(job->ctx, job->n_chunks * job->n_groups, 1, walk_parts, job);
    PNB_TRY(first_error(job, err));
    for (size_t q = first; q < first + n; q++)
        finish_query(job, q, rank);
done:
    pnb__bound_reset(&job->pass);
    return status;
}

static void plan(rank_job *job)
{
    const pnb_truth *truth = job->truth;
    job->n_threads = job->ctx == NULL ? 1 : (size_t)job->ctx->n_threads;
    job->n_chunks = PNB_MIN(job->n_threads, (truth->n_items + CHUNK_ITEMS - 1) / CHUNK_ITEMS);
    job->most = PNB_MIN(pnb__bound_most_queries(&job->run), truth->n_queries);
    for (size_t q = 0; q < truth->n_queries; q++) {
        size_t n = n_positives(job, q);
        job->has_many = job->has_many || n > FEW;
        job->n_levels = PNB_MAX(job->n_levels, n <= FEW ? n : 0);
    }
    job->n_levels = PNB_MAX(job->n_levels, (size_t)1);
    job->n_before = job->has_many ? truth->n_pairs : 0;
}

static pnb_status alloc_job(rank_job *job, pnb_error *err)
{
    size_t n = job->most, n_limits = job->n_levels * n, n_lists = job->n_chunks * n;
    if (PNB_ALLOC(job->positive, job->truth->n_pairs, err) != PNB_OK ||
        PNB_ALLOC(job->levels, n, err) != PNB_OK ||
        PNB_ALLOC(job->group_levels, 2 * n, err) != PNB_OK ||
        PNB_ALLOC(job->sure, n_limits, err) != PNB_OK ||
        PNB_ALLOC(job->maybe, n_limits, err) != PNB_OK ||
        PNB_ALLOC(job->count, job->n_chunks * n_limits, err) != PNB_OK ||
        PNB_ALLOC(job->before, job->n_chunks * job->n_before + 1, err) != PNB_OK ||
        PNB_ALLOC(job->top, n_lists, err) != PNB_OK ||
        PNB_ALLOC(job->top_limit, n_lists, err) != PNB_OK ||
        PNB_ALLOC_ZERO(job->error, job->n_threads, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

static void free_job(rank_job *job)
{
    pnb__free(job->positive);
    pnb__free(job->levels);
    pnb__free(job->group_levels);
    pnb__free(job->sure);
    pnb__free(job->maybe);
    pnb__free(job->count);
    pnb__free(job->before);
    pnb__free(job->top);
    pnb__free(job->top_limit);
    pnb__free(job->error);
    pnb__exact_run_reset(&job->run);
}

static pnb_status check_sizes(const pnb_gaussians *queries, const pnb_gaussians *gallery,
                              const pnb_truth *truth, pnb_error *err)
{
    if (queries->n != truth->n_queries || gallery->n != truth->n_items)
        return pnb__fail(err, PNB_SHAPE,
                         "the sets have %zu and %zu rows, the truth is about %zu queries and %zu "
                         "items",
                         queries->n, gallery->n, truth->n_queries, truth->n_items);
    return pnb__ranks_check_truth(truth, err);
}

/* The other direction out of the same pass. */
static pnb_status add_back(rank_job *job, const pnb__both *both, pnb__back *back, pnb_ranks *out,
                           pnb_error *err)
{
    size_t n_groups = (job->n_threads + job->n_chunks - 1) / job->n_chunks;
    pnb_status status = PNB_OK;
    *back = (pnb__back){.run = &job->run, .truth = both->backward, .out = out};
    PNB_TRY(pnb__ranks_alloc(out, both->backward, err));
    PNB_TRY(pnb__back_init(back, job->ctx, n_groups, err));
    job->back = back;
done:
    return status;
}

/* Of queries begin .. end - 1. */
static pnb_status run_passes(rank_job *job, size_t begin, size_t end, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t most_positives = 1, n = job->truth->n_queries;
    for (size_t q = 0; q < n; q++)
        most_positives = PNB_MAX(most_positives, n_positives(job, q));
    size_t *rank = NULL;
    PNB_TRY(PNB_ALLOC(rank, most_positives, err));
    job->first = begin;
    pnb__parallel_for(job->ctx, end - begin, 16, score_positives, job);
    PNB_TRY(first_error(job, err));
    for (size_t first = begin; first < end; first += job->most)
        PNB_TRY(run_pass(job, first, PNB_MIN(job->most, end - first), rank, err));
done:
    pnb__free(rank);
    return status;
}

/* backward may be NULL; where it is not and does not come out of the pass, it stays empty. */
static pnb_status compute(const pnb_ctx *ctx, const pnb__both *both, const pnb__ranked *ranked,
                          pnb_ranks *forward, pnb_ranks *backward, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb_search_opts o = both->opts == NULL ? pnb_search_opts_default() : *both->opts;
    pnb__exact scan = {0};
    pnb__back back = {0};
    pnb__ranks_share share = {0};
    rank_job job = {.ctx = ctx, .truth = both->forward, .out = forward, .ranked = ranked};
    PNB_TRY(check_sizes(both->a, both->b, both->forward, err));
    PNB_TRY(pnb__exact_init(&scan, ctx, both->b, &o, err));
    PNB_TRY(pnb__exact_run_init(&job.run, &scan, ctx, both->a, err));
    plan(&job);
    PNB_TRY(alloc_job(&job, err));
    PNB_TRY(pnb__ranks_alloc(forward, both->forward, err));
    if (backward != NULL && pnb__back_fits(&job.run, both->backward))
        PNB_TRY(add_back(&job, both, &back, backward, err));
    PNB_TRY(pnb__ranks_share_init(&share, both->ranks, both->forward->n_queries, err));
    PNB_TRY(run_passes(&job, share.begin, share.end, err));
    PNB_TRY(pnb__ranks_merge(&share, forward, err));
    if (job.back != NULL)
        status = pnb__back_finish(&back, both->ranks, err);
done:
    pnb__ranks_share_reset(&share);
    pnb__back_reset(&back);
    free_job(&job);
    pnb__exact_reset(&scan);
    return status;
}

pnb_status pnb__ranks_tell(const pnb_ctx *ctx, const pnb__both *both, const pnb__ranked *ranked,
                           pnb_ranks *out, pnb_error *err)
{
    *out = (pnb_ranks){0};
    pnb_status status = compute(ctx, both, ranked, out, NULL, err);
    if (status != PNB_OK)
        pnb_ranks_reset(out);
    return status;
}

pnb_status pnb_ranks_compute(const pnb_ctx *ctx, const pnb_gaussians *queries,
                             const pnb_gaussians *gallery, const pnb_truth *truth,
                             const pnb_search_opts *opts, pnb_ranks *out, pnb_error *err)
{
    const pnb__both both = {.a = queries, .b = gallery, .forward = truth, .opts = opts};
    return pnb__ranks_tell(ctx, &both, NULL, out, err);
}

pnb_status pnb__ranks_both(const pnb_ctx *ctx, const pnb__both *both, pnb_ranks *forward,
                           pnb_ranks *backward, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb_search_opts mirrored = both->opts == NULL ? pnb_search_opts_default() : *both->opts;
    *forward = *backward = (pnb_ranks){0};
    mirrored.reverse = !mirrored.reverse;
    PNB_TRY(compute(ctx, both, NULL, forward, backward, err));
    if (backward->best_rank == NULL)
        status = compute(
            ctx, &(pnb__both){both->b, both->a, both->backward, NULL, &mirrored, both->ranks}, NULL,
            backward, NULL, err);
done:
    if (status != PNB_OK) {
        pnb_ranks_reset(forward);
        pnb_ranks_reset(backward);
    }
    return status;
}
