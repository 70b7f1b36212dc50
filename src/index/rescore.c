/* Candidates are scored pair by pair in f64 and sorted by the one order of hits (hits.h). An exact
 * search may sum the same numbers in another order, so that last bits differ. Rows keep their
 * numbers, which samples are a function of. */
#include "index/rescore.h"

#include <math.h>

#include "index/hits.h"
#include "prob/measure.h"

typedef struct rescore_job {
    const pnb__rescoring *what;
    bool reverse;
    const pnb_hits *near;
    pnb_hits *out;
    pnb_error *error;  /* [thread] */
    size_t *failed_at; /* [thread] the query of it */
} rescore_job;

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

static pnb_status work_init(pair_work *w, const rescore_job *job, pnb_error *err)
{
    const pnb_search_opts *o = job->what->opts;
    size_t dim = job->what->gallery->dim;
    pnb_status status;
    *w = (pair_work){0};
    PNB_TRY(pnb__tile_alloc(&w->query, o->measure, 1, dim, &o->measure_opts, err));
    PNB_TRY(pnb__tile_alloc(&w->item, o->measure, 1, dim, &o->measure_opts, err));
    status = PNB_ALLOC(w->hit, job->near->k, err);
done:
    return status;
}

/* Where the item is Gaussian 1, the two change places; samples stay those of their sides. */
static double score_of(const rescore_job *job, const pair_work *w)
{
    const pnb_search_opts *o = job->what->opts;
    const pnb__tile *one = job->reverse ? &w->item : &w->query;
    const pnb__tile *two = job->reverse ? &w->query : &w->item;
    double value;
    pnb__tile_measure(o->measure, one, two, &o->measure_opts, &value, (const size_t[2]){1, 1});
    return pnb_measure_score(o->measure, value);
}

static pnb_status rank_query(const rescore_job *job, pair_work *w, size_t q, pnb_error *err)
{
    const pnb_search_opts *o = job->what->opts;
    size_t n = 0, k = job->out->k;
    pnb__tile_fill(&w->query, o->measure, job->what->queries, q, 1, 0, &o->measure_opts);
    for (size_t i = 0; i < job->near->k; i++) {
        int64_t item = job->near->index[q * job->near->k + i];
        if (item < 0)
            continue;
        pnb__tile_fill(&w->item, o->measure, job->what->gallery, (size_t)item, 1, 1,
                       &o->measure_opts);
        w->hit[n] = (pnb__hit){score_of(job, w), item};
        if (!isfinite(w->hit[n++].score))
            return pnb__fail(err, PNB_NUMERIC,
                             "query %zu and item %lld: score of measure %s is %g; one of the two "
                             "embeddings holds values that are not finite",
                             q, (long long)item, pnb_measure_name(o->measure), w->hit[n - 1].score);
    }
    pnb__hits_sort(w->hit, n);
    for (size_t i = 0; i < k; i++) {
        job->out->index[q * k + i] = i < n ? w->hit[i].index : -1;
        job->out->score[q * k + i] = i < n ? w->hit[i].score : -(double)INFINITY;
    }
    return PNB_OK;
}

static void rank_queries(void *user, size_t begin, size_t end, int thread)
{
    const rescore_job *job = user;
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
static pnb_status first_error(const rescore_job *job, size_t n_threads, pnb_error *err)
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

static pnb_status alloc_hits(pnb_hits *hits, size_t n_queries, size_t k, pnb_error *err)
{
    pnb_status status;
    *hits = (pnb_hits){.n_queries = n_queries, .k = k};
    PNB_TRY(PNB_ALLOC_ROWS(hits->index, n_queries, k, err));
    status = PNB_ALLOC_ROWS(hits->score, n_queries, k, err);
done:
    return status;
}

pnb_status pnb__rescore(const pnb_ctx *ctx, const pnb__rescoring *what, const pnb_hits *near,
                        pnb_hits *hits, pnb_error *err)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    rescore_job job = {.what = what, .near = near, .out = hits};
    pnb_status status;
    job.reverse = what->opts->reverse && !pnb_measure_is_symmetric(what->opts->measure);
    PNB_TRY(PNB_ALLOC_ZERO(job.error, n_threads, err));
    PNB_TRY(PNB_ALLOC_ZERO(job.failed_at, n_threads, err));
    PNB_TRY(alloc_hits(hits, what->queries->n, what->k, err));
    pnb__parallel_for(ctx, what->queries->n, 1, rank_queries, &job);
    status = first_error(&job, n_threads, err);
done:
    if (status != PNB_OK)
        pnb_hits_reset(hits);
    pnb__free(job.error);
    pnb__free(job.failed_at);
    return status;
}
