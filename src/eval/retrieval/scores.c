/* Rows of scores, query after query, from a matrix, a function or two sets.
 *
 * Rows given by a function or a matrix are checked for NaN here; of two sets every pair is scored
 * in f64 by the scan, with the bits that search and ranks give it. What is made of a row is the
 * visitor's business. */
#include "eval/retrieval/scores.h"

#include <assert.h>
#include <math.h>

#include "index/exact/exact.h"

#define BLOCK_BYTES ((size_t)16 << 20) /* rows of scores that a thread holds */

pnb__scores pnb__scores_matrix(const double *matrix, size_t n_queries, size_t n_items)
{
    return (pnb__scores){.n_queries = n_queries, .n_items = n_items, .matrix = matrix};
}

pnb__scores pnb__scores_rows(pnb_score_row_fn fn, void *user, size_t n_queries, size_t n_items)
{
    return (pnb__scores){.n_queries = n_queries, .n_items = n_items, .fn = fn, .fn_user = user};
}

pnb__scores pnb__scores_sets(const pnb_gaussians *queries, const pnb_gaussians *gallery,
                             const pnb_search_opts *opts)
{
    return (pnb__scores){.n_queries = queries->n,
                         .n_items = gallery->n,
                         .queries = queries,
                         .gallery = gallery,
                         .opts = opts};
}

size_t pnb__scores_threads(const pnb_ctx *ctx)
{
    return ctx == NULL ? 1 : (size_t)ctx->n_threads;
}

typedef struct visit_job {
    const pnb__scores *scores;
    pnb__visit_fn visit;
    void *user;
    const pnb__exact_run *run; /* of two sets */
    pnb_error *error;          /* [thread] */
} visit_job;

/* ---- rows of a matrix or a function ---- */

static pnb_status check_row(const double *score, size_t n, size_t query, pnb_error *err)
{
    for (size_t j = 0; j < n; j++)
        if (isnan(score[j]))
            return pnb__fail(err, PNB_NUMERIC, "score of query %zu and item %zu is not a number",
                             query, j);
    return PNB_OK;
}

static void visit_rows(void *user, size_t begin, size_t end, int thread)
{
    const visit_job *job = user;
    const pnb__scores *s = job->scores;
    pnb_error *err = &job->error[thread];
    pnb_status status = PNB_OK;
    double *buffer = NULL;
    assert(s->matrix != NULL || s->fn != NULL);
    if (s->fn != NULL && (buffer = pnb__alloc_array(s->n_items, sizeof *buffer)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, s->n_items * sizeof *buffer));
    for (size_t q = begin; q < end; q++) {
        const double *row = s->matrix != NULL ? s->matrix + q * s->n_items : buffer;
        if (s->fn != NULL)
            s->fn(s->fn_user, q, buffer);
        PNB_TRY(check_row(row, s->n_items, q, err));
        job->visit(job->user, thread, q, row);
    }
done:
    pnb__free(buffer);
    (void)status;
}

/* ---- two sets ---- */

/* A block of whole rows: the scan unpacks every item once for all of them. */
static pnb_status visit_block(const visit_job *job, pnb__exact_work *work, double *score,
                              const size_t queries[2], int thread, pnb_error *err)
{
    size_t n_items = job->scores->n_items;
    pnb_status status = PNB_OK;
    for (size_t item = 0; status == PNB_OK && item < n_items; item += PNB__EXACT_ITEMS) {
        const pnb__exact_block block = {.query = queries[0],
                                        .n_queries = queries[1] - queries[0],
                                        .item = item,
                                        .n_items = PNB_MIN(PNB__EXACT_ITEMS, n_items - item),
                                        .score = score + item,
                                        .ld = n_items};
        status = pnb__exact_score(job->run, work, &block, err);
    }
    for (size_t q = queries[0]; status == PNB_OK && q < queries[1]; q++)
        job->visit(job->user, thread, q, score + (q - queries[0]) * n_items);
    return status;
}

static void visit_pairs(void *user, size_t begin, size_t end, int thread)
{
    const visit_job *job = user;
    size_t n_items = job->scores->n_items, fitting = BLOCK_BYTES / (n_items * sizeof(double));
    size_t most = PNB_MAX((size_t)1, PNB_MIN(PNB_MIN(fitting, PNB__EXACT_QUERIES), end - begin));
    pnb_error *err = &job->error[thread];
    pnb_status status = PNB_OK;
    pnb__exact_work work = {0};
    double *score = pnb__alloc_array(most * n_items, sizeof *score);
    if (score == NULL)
        PNB_TRY(pnb__fail_nomem(err, most * n_items * sizeof *score));
    PNB_TRY(pnb__exact_work_init(&work, job->run, err));
    for (size_t q = begin; q < end; q += most) {
        const size_t queries[2] = {q, PNB_MIN(q + most, end)};
        PNB_TRY(visit_block(job, &work, score, queries, thread, err));
    }
done:
    pnb__exact_work_reset(&work);
    pnb__free(score);
    (void)status;
}

static pnb_status first_error(const pnb_error *errors, size_t n, pnb_error *err)
{
    for (size_t t = 0; t < n; t++)
        if (errors[t].status != PNB_OK)
            return pnb__fail(err, errors[t].status, "%s", errors[t].text);
    return PNB_OK;
}

static pnb_status visit_all(const pnb_ctx *ctx, visit_job *job, pnb__range_fn fn, pnb_error *err)
{
    size_t n_threads = pnb__scores_threads(ctx);
    job->error = pnb__alloc_zero(n_threads, sizeof *job->error);
    if (job->error == NULL)
        return pnb__fail_nomem(err, n_threads * sizeof *job->error);
    pnb__parallel_for(ctx, job->scores->n_queries, 1, fn, job);
    pnb_status status = first_error(job->error, n_threads, err);
    pnb__free(job->error);
    return status;
}

static pnb_status visit_sets(const pnb_ctx *ctx, visit_job *job, pnb_error *err)
{
    const pnb__scores *s = job->scores;
    pnb_search_opts opts = s->opts == NULL ? pnb_search_opts_default() : *s->opts;
    pnb__exact scan = {0};
    pnb__exact_run run = {0};
    pnb_status status;
    PNB_TRY(pnb__exact_init(&scan, ctx, s->gallery, &opts, err));
    PNB_TRY(pnb__exact_run_init(&run, &scan, ctx, s->queries, err));
    job->run = &run;
    status = visit_all(ctx, job, visit_pairs, err);
    job->run = NULL;
done:
    pnb__exact_run_reset(&run);
    pnb__exact_reset(&scan);
    return status;
}

pnb_status pnb__scores_visit(const pnb_ctx *ctx, const pnb__scores *scores, pnb__visit_fn visit,
                             void *user, pnb_error *err)
{
    visit_job job = {.scores = scores, .visit = visit, .user = user};
    if (scores->queries != NULL)
        return visit_sets(ctx, &job, err);
    return visit_all(ctx, &job, visit_rows, err);
}
