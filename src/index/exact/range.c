/* All pairs whose score reaches a limit: queries against a gallery, or a set against itself.
 *
 * The walk is that of search.c with a limit that stands still: pairs whose upper bound reaches it
 * are scored in f64 at once and kept or dropped by that score. Blocks of items are dealt to the
 * parts in turn, so that the triangle of a self-join is shared evenly. Only results are kept, and
 * not more than the caller allows; they are sorted at the end, so the cut leaves no trace. */
#include <stdlib.h>

#include "base/grow.h"
#include "index/exact/bound.h"
#include "index/exact/exact_search.h"
#include "index/hits.h"

typedef struct pair {
    size_t query;
    pnb__hit hit;
} pair;

typedef struct range_job {
    pnb__exact_run run;
    const pnb_ctx *ctx;
    pnb__bound pass;
    const pnb_range_opts *opts;
    bool self; /* only items behind the query */
    float *limit;
    size_t n_parts;
    struct part *part;
    pnb_error *error; /* [thread] */
} range_job;

typedef struct part {
    range_job *job;
    pnb__bound_work *work;
    pair *pair;
    size_t n;
    pnb_error *err;
} part;

static pnb_status fail_too_many(const range_job *job, pnb_error *err)
{
    return pnb__fail(err, PNB_ARG,
                     "more than %zu pairs have a score of %s of at least %g; raise the limit on "
                     "the score, or allow more pairs",
                     job->opts->max_pairs, pnb_measure_name(job->run.scan->measure),
                     job->opts->min_score);
}

static pnb_status take_pair(void *user, const pnb__bounds *found)
{
    part *p = user;
    range_job *job = p->job;
    double score = found->low;
    if (job->self && found->item <= found->query)
        return PNB_OK;
    if (found->low < found->high)
        score = pnb__exact_pair(&job->run, &p->work->scan, found->query, found->item);
    if (!(score >= job->opts->min_score))
        return PNB_OK;
    if (p->n == job->opts->max_pairs)
        return fail_too_many(job, p->err);
    pair added = {found->query, {score, (int64_t)found->item}};
    return PNB_PUSH(p->pair, p->n, p->err, added);
}

static pnb_status walk_part(range_job *job, part *p, size_t index)
{
    const pnb__bound *pass = &job->pass;
    pnb_status status = PNB_OK;
    size_t n_items = job->run.scan->gallery.rows.n;
    size_t n_strips = (pass->n + pass->strip - 1) / pass->strip;
    for (size_t item = index * pass->n_items; item < n_items;
         item += job->n_parts * pass->n_items) {
        const size_t block[2] = {item, PNB_MIN(item + pass->n_items, n_items)};
        for (size_t s = 0; s < n_strips; s++) {
            pnb__values values;
            if (job->self && block[1] <= pass->first + s * pass->strip + 1)
                break; /* no item of the block lies behind a query of this strip or a later one */
            p->work->limit = job->limit + s * pass->strip;
            PNB_TRY(pnb__bound_score(pass, p->work, s, block, &values, p->err));
            PNB_TRY(pnb__values_above(&job->run, &values, p->work->limit, take_pair, p));
        }
    }
done:
    return status;
}

static void walk_parts(void *user, size_t begin, size_t end, int thread)
{
    range_job *job = user;
    pnb__bound_work work;
    pnb_status status = pnb__bound_work_init(&work, &job->run, &job->error[thread]);
    if (status != PNB_OK)
        return;
    for (size_t i = begin; i < end && status == PNB_OK; i++) {
        part *p = &job->part[i];
        p->job = job;
        p->work = &work;
        p->err = &job->error[thread];
        status = walk_part(job, p, i);
    }
    pnb__bound_work_reset(&work);
}

static pnb_status run_pass(range_job *job, size_t first, size_t n, pnb_error *err)
{
    pnb_status status = pnb__bound_init(&job->pass, &job->run, job->ctx, first, n, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        job->limit[i] = pnb__bound_limit(&job->run, first + i, job->opts->min_score);
    pnb__parallel_for(job->ctx, job->n_parts, 1, walk_parts, job);
    for (size_t t = 0; t < job->n_parts && status == PNB_OK; t++)
        if (job->error[t].status != PNB_OK)
            status = pnb__fail(err, job->error[t].status, "%s", job->error[t].text);
    pnb__bound_reset(&job->pass);
    return status;
}

/* ---- results ---- */

static int compare_pairs(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->query != y->query)
        return x->query < y->query ? -1 : 1;
    return pnb__hit_before(y->hit, x->hit) - pnb__hit_before(x->hit, y->hit);
}

static pnb_status collect(range_job *job, pnb_pairs *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = 0, done = 0;
    for (size_t i = 0; i < job->n_parts; i++)
        n += job->part[i].n;
    if (n > job->opts->max_pairs)
        return fail_too_many(job, err);
    pair *all = pnb__alloc_array(PNB_MAX(n, (size_t)1), sizeof *all);
    out->query = pnb__alloc_array(PNB_MAX(n, (size_t)1), sizeof *out->query);
    out->item = pnb__alloc_array(PNB_MAX(n, (size_t)1), sizeof *out->item);
    out->score = pnb__alloc_array(PNB_MAX(n, (size_t)1), sizeof *out->score);
    if (all == NULL || out->query == NULL || out->item == NULL || out->score == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * (sizeof *all + 24)));
    for (size_t i = 0; i < job->n_parts; i++)
        for (size_t j = 0; j < job->part[i].n; j++)
            all[done++] = job->part[i].pair[j];
    if (n > 1)
        qsort(all, n, sizeof *all, compare_pairs);
    for (size_t i = 0; i < n; i++) {
        out->query[i] = (int64_t)all[i].query;
        out->item[i] = all[i].hit.index;
        out->score[i] = all[i].hit.score;
    }
    out->n = n;
done:
    pnb__free(all);
    return status;
}

static pnb_status run_job(range_job *job, const pnb__exact *scan, const pnb_gaussians *queries,
                          pnb_pairs *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__exact_run_init(&job->run, scan, job->ctx, queries, err));
    job->run.bounds_by_bytes = true;
    job->n_parts = job->ctx == NULL ? 1 : (size_t)job->ctx->n_threads;
    size_t most = PNB_MIN(pnb__bound_most_queries(&job->run), queries->n);
    job->limit = pnb__alloc_array(most, sizeof *job->limit);
    job->part = pnb__alloc_zero(job->n_parts, sizeof *job->part);
    job->error = pnb__alloc_zero(job->n_parts, sizeof *job->error);
    if (job->limit == NULL || job->part == NULL || job->error == NULL)
        PNB_TRY(pnb__fail_nomem(err, most * sizeof *job->limit));
    for (size_t first = 0; first < queries->n; first += most)
        PNB_TRY(run_pass(job, first, PNB_MIN(most, queries->n - first), err));
    PNB_TRY(collect(job, out, err));
done:
    pnb__exact_run_reset(&job->run);
    for (size_t i = 0; job->part != NULL && i < job->n_parts; i++)
        pnb__free(job->part[i].pair);
    pnb__free(job->limit);
    pnb__free(job->part);
    pnb__free(job->error);
    return status;
}

pnb_status pnb__exact_range(const void *scan, const pnb_ctx *ctx, const pnb_gaussians *queries,
                            const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err)
{
    range_job job = {.ctx = ctx, .opts = opts};
    return run_job(&job, scan, queries, out, err);
}

pnb_status pnb__exact_self_join(const void *scan, const pnb_ctx *ctx, const pnb_range_opts *opts,
                                pnb_pairs *out, pnb_error *err)
{
    const pnb__exact *gallery = scan;
    range_job job = {.ctx = ctx, .opts = opts, .self = true};
    return run_job(&job, gallery, &gallery->gallery.rows, out, err);
}
