/* Two stages: the nearest means by the exact index (csd of points is 1 - |mean1 - mean2|^2 / 2),
 * then the measure of those pairs alone.
 *
 * For measures whose pairs are dear. What is found depends on how well means foretell the measure;
 * with as many items as the gallery has there is nothing to foretell, and the exact index answers.
 * Rows keep their numbers, which samples are a function of: a pair's score is that of the exact
 * search. */
#include "index/shortlist.h"

#include <math.h>

#include "index/hits.h"
#include "prob/measure.h"

typedef struct shortlist_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_search_opts *opts;
    bool reverse;
    const pnb_hits *near;
    pnb_hits *out;
    pnb_error *error;  /* [thread] */
    size_t *failed_at; /* [thread] the query of it */
} shortlist_job;

typedef struct pair_work {
    pnb__tile query, item;
    pnb__hit *hit;
} pair_work;

static void work_reset(pair_work *w)
{
    pnb__tile_free(&w->query);
    pnb__tile_free(&w->item);
    pnb__free(w->hit);
}

static pnb_status work_init(pair_work *w, const shortlist_job *job, pnb_error *err)
{
    const pnb_search_opts *o = job->opts;
    size_t dim = job->gallery->dim;
    pnb_status status;
    *w = (pair_work){0};
    PNB_TRY(pnb__tile_alloc(&w->query, o->measure, 1, dim, &o->measure_opts, err));
    PNB_TRY(pnb__tile_alloc(&w->item, o->measure, 1, dim, &o->measure_opts, err));
    status = PNB_ALLOC(w->hit, job->near->k, err);
done:
    return status;
}

/* Where the item is Gaussian 1, the two change places; samples stay those of their sides. */
static double score_of(const shortlist_job *job, const pair_work *w)
{
    const pnb_search_opts *o = job->opts;
    const pnb__tile *one = job->reverse ? &w->item : &w->query;
    const pnb__tile *two = job->reverse ? &w->query : &w->item;
    double value;
    pnb__tile_measure(o->measure, one, two, &o->measure_opts, &value, (const size_t[2]){1, 1});
    return pnb_measure_score(o->measure, value);
}

static pnb_status rank_query(const shortlist_job *job, pair_work *w, size_t q, pnb_error *err)
{
    const pnb_search_opts *o = job->opts;
    size_t n = job->near->k, k = job->out->k;
    pnb__tile_fill(&w->query, o->measure, job->queries, q, 1, 0, &o->measure_opts);
    for (size_t i = 0; i < n; i++) {
        int64_t item = job->near->index[q * n + i];
        pnb__tile_fill(&w->item, o->measure, job->gallery, (size_t)item, 1, 1, &o->measure_opts);
        w->hit[i] = (pnb__hit){score_of(job, w), item};
        if (!isfinite(w->hit[i].score))
            return pnb__fail(err, PNB_NUMERIC,
                             "query %zu and item %lld: score of measure %s is %g; one of the two "
                             "embeddings holds values that are not finite",
                             q, (long long)item, pnb_measure_name(o->measure), w->hit[i].score);
    }
    pnb__hits_sort(w->hit, n);
    for (size_t i = 0; i < k; i++) {
        job->out->index[q * k + i] = w->hit[i].index;
        job->out->score[q * k + i] = w->hit[i].score;
    }
    return PNB_OK;
}

static void rank_queries(void *user, size_t begin, size_t end, int thread)
{
    const shortlist_job *job = user;
    pnb_error *err = &job->error[thread];
    pair_work w;
    size_t q = begin;
    if (err->status != PNB_OK)
        return;
    pnb_status status = work_init(&w, job, err);
    for (; q < end && status == PNB_OK; q++)
        status = rank_query(job, &w, q, err);
    job->failed_at[thread] = q;
    work_reset(&w);
}

/* The error of the lowest query, whoever met it. */
static pnb_status first_error(const shortlist_job *job, size_t n_threads, pnb_error *err)
{
    size_t first = n_threads;
    for (size_t t = 0; t < n_threads; t++)
        if (job->error[t].status != PNB_OK &&
            (first == n_threads || job->failed_at[t] < job->failed_at[first]))
            first = t;
    return first == n_threads
               ? PNB_OK
               : pnb__fail(err, job->error[first].status, "%s", job->error[first].text);
}

/* Means alone, as points. */
static pnb_gaussians points_of(const pnb_gaussians *rows)
{
    return (pnb_gaussians){.n = rows->n, .dim = rows->dim, .mean = rows->mean};
}

static pnb_status alloc_hits(pnb_hits *hits, size_t n_queries, size_t k, pnb_error *err)
{
    pnb_status status;
    *hits = (pnb_hits){.n_queries = n_queries, .k = k};
    PNB_TRY(PNB_ALLOC_ROWS(hits->index, n_queries, k, err));
    status = PNB_ALLOC_ROWS(hits->score, n_queries, k, err);
done:
    return status;
}

pnb_status pnb__shortlist_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                 const pnb_gaussians *gallery, const pnb_search_opts *opts,
                                 pnb_hits *hits, pnb_error *err)
{
    const pnb_gaussians means[2] = {points_of(queries), points_of(gallery)};
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    pnb_search_opts by_mean = pnb_search_opts_default();
    pnb_hits near = {0};
    shortlist_job job = {.queries = queries, .gallery = gallery, .opts = opts, .near = &near};
    pnb_status status;
    *hits = (pnb_hits){0};
    if (opts->k == 0 || opts->shortlist < opts->k)
        return pnb__fail(err, PNB_ARG, "a shortlist of %zu for %zu hits; it holds as many at least",
                         opts->shortlist, opts->k);
    by_mean.k = opts->shortlist;
    job.reverse = opts->reverse && !pnb_measure_is_symmetric(opts->measure);
    job.out = hits;
    PNB_TRY(pnb__measure_check(opts->measure, queries, gallery, &opts->measure_opts, err));
    PNB_TRY(pnb_search(ctx, &means[0], &means[1], &by_mean, &near, err));
    PNB_TRY(PNB_ALLOC_ZERO(job.error, n_threads, err));
    PNB_TRY(PNB_ALLOC_ZERO(job.failed_at, n_threads, err));
    PNB_TRY(alloc_hits(hits, queries->n, opts->k, err));
    pnb__parallel_for(ctx, queries->n, 1, rank_queries, &job);
    status = first_error(&job, n_threads, err);
done:
    if (status != PNB_OK)
        pnb_hits_reset(hits);
    pnb_hits_reset(&near);
    pnb__free(job.error);
    pnb__free(job.failed_at);
    return status;
}
