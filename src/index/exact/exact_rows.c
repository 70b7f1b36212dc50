/* Rows of scores, query after query: every pair in f64, with the bits that search and ranks give
 * it. A thread takes as many queries at once as its memory for their rows allows, since the scan
 * unpacks every item once for all of them. What is made of a row is the visitor's business. */
#include "index/exact/exact_search.h"

#define BLOCK_BYTES ((size_t)16 << 20) /* rows of scores that a thread holds */

typedef struct visit_job {
    pnb__exact_run run;
    pnb__visit_fn visit;
    void *user;
    pnb_error *error; /* [thread] */
} visit_job;

static pnb_status visit_block(const visit_job *job, pnb__exact_work *work, double *score,
                              const size_t queries[2], int thread, pnb_error *err)
{
    size_t n_items = job->run.scan->gallery.rows.n;
    pnb_status status = PNB_OK;
    for (size_t item = 0; status == PNB_OK && item < n_items; item += PNB__EXACT_ITEMS) {
        const pnb__exact_block block = {.query = queries[0],
                                        .n_queries = queries[1] - queries[0],
                                        .item = item,
                                        .n_items = PNB_MIN(PNB__EXACT_ITEMS, n_items - item),
                                        .score = score + item,
                                        .ld = n_items};
        status = pnb__exact_score(&job->run, work, &block, err);
    }
    for (size_t q = queries[0]; status == PNB_OK && q < queries[1]; q++)
        job->visit(job->user, thread, q, score + (q - queries[0]) * n_items);
    return status;
}

static void visit_queries(void *user, size_t begin, size_t end, int thread)
{
    const visit_job *job = user;
    size_t n_items = job->run.scan->gallery.rows.n;
    size_t fitting = BLOCK_BYTES / (n_items * sizeof(double));
    size_t most = PNB_MAX((size_t)1, PNB_MIN(PNB_MIN(fitting, PNB__EXACT_QUERIES), end - begin));
    pnb_error *err = &job->error[thread];
    pnb_status status = PNB_OK;
    pnb__exact_work work = {0};
    double *score = pnb__alloc_array(most * n_items, sizeof *score);
    if (score == NULL)
        PNB_TRY(pnb__fail_nomem(err, most * n_items * sizeof *score));
    PNB_TRY(pnb__exact_work_init(&work, &job->run, err));
    for (size_t q = begin; q < end; q += most) {
        const size_t queries[2] = {q, PNB_MIN(q + most, end)};
        PNB_TRY(visit_block(job, &work, score, queries, thread, err));
    }
done:
    pnb__exact_work_reset(&work);
    pnb__free(score);
    (void)status;
}

pnb_status pnb__exact_rows(const void *scan, const pnb_ctx *ctx, const pnb_gaussians *queries,
                           pnb__visit_fn visit, void *user, pnb_error *err)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    visit_job job = {.visit = visit, .user = user};
    pnb_status status;
    PNB_TRY(pnb__exact_run_init(&job.run, scan, ctx, queries, err));
    job.error = pnb__alloc_zero(n_threads, sizeof *job.error);
    if (job.error == NULL)
        PNB_TRY(pnb__fail_nomem(err, n_threads * sizeof *job.error));
    pnb__parallel_for(ctx, queries->n, 1, visit_queries, &job);
    for (size_t t = 0; t < n_threads && status == PNB_OK; t++)
        if (job.error[t].status != PNB_OK)
            status = pnb__fail(err, job.error[t].status, "%s", job.error[t].text);
done:
    pnb__exact_run_reset(&job.run);
    pnb__free(job.error);
    return status;
}
