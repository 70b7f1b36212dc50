/* Scores of whole rows, tile by tile: what sampling pairs and counting lists are made of.
 *
 * Tiles have a fixed size, so that the last bit of a score does not depend on the threads. The
 * first error in the order of queries is the one reported. */
#include "eval/score_rows.h"

#define TILE_QUERIES 64
#define TILE_BYTES ((size_t)32 << 20)

typedef struct rows_job {
    pnb__scan_run run;
    size_t n_queries, n_items, tile;
    pnb__score_row_fn fn;
    void *user;
    pnb_error *error; /* [thread] */
} rows_job;

static pnb_status score_tile(const rows_job *job, pnb__scan_work *work, double *score, size_t begin,
                             int thread, pnb_error *err)
{
    size_t n = PNB_MIN(job->tile, job->n_queries - begin);
    pnb_status status = PNB_OK;
    for (size_t item = 0; status == PNB_OK && item < job->n_items; item += PNB__SCAN_ITEMS) {
        pnb__scan_block b = {.query = begin,
                             .n_queries = n,
                             .item = item,
                             .n_items = PNB_MIN(PNB__SCAN_ITEMS, job->n_items - item),
                             .score = score + item,
                             .ld = job->n_items};
        status = pnb__scan_score(&job->run, work, &b, err);
    }
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        pnb__score_row row = {begin + i, score + i * job->n_items, job->n_items, &job->run, thread};
        status = job->fn(job->user, &row, err);
    }
    return status;
}

static void score_tiles(void *user, size_t begin, size_t end, int thread)
{
    const rows_job *job = user;
    pnb_error *err = &job->error[thread];
    pnb_status status = PNB_OK;
    pnb__scan_work work = {0};
    double *score = pnb__alloc_array(job->tile * job->n_items, sizeof *score);
    if (score == NULL)
        PNB_TRY(pnb__fail_nomem(err, job->tile * job->n_items * sizeof *score));
    PNB_TRY(pnb__scan_work_init(&work, &job->run, err));
    for (size_t t = begin; t < end; t++)
        PNB_TRY(score_tile(job, &work, score, t * job->tile, thread, err));
done:
    pnb__free(score);
    pnb__scan_work_reset(&work);
    (void)status;
}

static pnb_status run_tiles(rows_job *job, const pnb_ctx *ctx, pnb_error *err)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    size_t fitting = TILE_BYTES / (job->n_items * sizeof(double));
    pnb_status status = PNB_OK;
    job->tile = PNB_MAX(1, PNB_MIN(fitting, TILE_QUERIES));
    job->error = pnb__alloc_zero(n_threads, sizeof *job->error);
    if (job->error == NULL)
        return pnb__fail_nomem(err, n_threads * sizeof *job->error);
    pnb__parallel_for(ctx, (job->n_queries + job->tile - 1) / job->tile, 1, score_tiles, job);
    for (size_t t = 0; t < n_threads && status == PNB_OK; t++)
        if (job->error[t].status != PNB_OK)
            status = pnb__fail(err, job->error[t].status, "%s", job->error[t].text);
    pnb__free(job->error);
    return status;
}

pnb_status pnb__score_rows(const pnb_ctx *ctx, const pnb__score_job *job, pnb__score_row_fn fn,
                           void *user, pnb_error *err)
{
    pnb_status status;
    pnb__scan scan = {0};
    rows_job rows = {
        .n_queries = job->queries->n, .n_items = job->gallery->n, .fn = fn, .user = user};
    PNB_TRY(pnb__scan_init(&scan, ctx, job->gallery, job->opts, err));
    PNB_TRY(pnb__scan_run_init(&rows.run, &scan, ctx, job->queries, err));
    status = run_tiles(&rows, ctx, err);
done:
    pnb__scan_run_reset(&rows.run);
    pnb__scan_reset(&scan);
    return status;
}
