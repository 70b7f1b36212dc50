/* Rows of scores, query after query, from a matrix, a function or two sets.
 *
 * Rows given by a function or a matrix are checked for NaN here; those of two sets come from an
 * index, with the bits that search and ranks give them. What is made of a row is the visitor's
 * business. */
#include "eval/retrieval/scores.h"

#include <assert.h>
#include <math.h>

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
    pnb_error *error; /* [thread] */
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

static pnb_status first_error(const pnb_error *errors, size_t n, pnb_error *err)
{
    for (size_t t = 0; t < n; t++)
        if (errors[t].status != PNB_OK)
            return pnb__fail(err, errors[t].status, "%s", errors[t].text);
    return PNB_OK;
}

static pnb_status visit_all(const pnb_ctx *ctx, visit_job *job, pnb_error *err)
{
    size_t n_threads = pnb__scores_threads(ctx);
    if (PNB_ALLOC_ZERO(job->error, n_threads, err) != PNB_OK)
        return PNB_NOMEM;
    pnb__parallel_for(ctx, job->scores->n_queries, 1, visit_rows, job);
    pnb_status status = first_error(job->error, n_threads, err);
    pnb__free(job->error);
    return status;
}

static pnb_status visit_sets(const pnb_ctx *ctx, const visit_job *job, pnb_error *err)
{
    const pnb__scores *s = job->scores;
    pnb_index *index = NULL;
    pnb_status status = pnb_index_create(&index, ctx, s->gallery, s->opts, err);
    if (status == PNB_OK)
        status = pnb__index_rows(index, ctx, s->queries, job->visit, job->user, err);
    pnb_index_free(index);
    return status;
}

pnb_status pnb__scores_visit(const pnb_ctx *ctx, const pnb__scores *scores, pnb__visit_fn visit,
                             void *user, pnb_error *err)
{
    visit_job job = {.scores = scores, .visit = visit, .user = user};
    if (scores->queries != NULL)
        return visit_sets(ctx, &job, err);
    return visit_all(ctx, &job, err);
}
