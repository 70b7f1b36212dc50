/* Inclusion search: which items include a query, or lie inside it.
 *
 * Membership is H > 0 (inclusion.c in prob), so unlike in a top-k search the answer may be empty or
 * be all items. H alone does not say that two rows have anything to do with each other: with
 * different variances it grows with the distance of the means, hence the csd similarity beside it.
 * One query at a time against the whole gallery, in f64; queries are the parallel unit. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "index/heap.h"
#include "penumbra/hierarchy.h"

static const struct {
    const char *name;
} order_rows[] = {
#define ROW(name, text, sentence) {text},
    PNB_MEMBER_ORDER_LIST(ROW)
#undef ROW
};

const char *pnb_member_order_name(pnb_member_order order)
{
    return (size_t)order < PNB_COUNT(order_rows) ? order_rows[order].name : "unknown";
}

pnb_status pnb_member_order_parse(pnb_member_order *out, const char *name, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(order_rows); i++)
        if (strcmp(name, order_rows[i].name) == 0) {
            *out = (pnb_member_order)i;
            return PNB_OK;
        }
    return pnb__fail(err, PNB_NOT_FOUND, "order '%s' is unknown; known are %s, %s", name,
                     order_rows[0].name, order_rows[1].name);
}

pnb_members_opts pnb_members_opts_default(void)
{
    return (pnb_members_opts){
        .min_nearness = -(double)INFINITY, .k = 10, .measure_opts = pnb_measure_opts_default()};
}

void pnb_members_reset(pnb_members *members)
{
    if (members == NULL)
        return;
    pnb__free(members->index);
    pnb__free(members->h);
    pnb__free(members->nearness);
    pnb__free(members->n_all);
    *members = (pnb_members){0};
}

static pnb_status alloc_members(pnb_members *out, size_t n_queries, size_t k, pnb_error *err)
{
    size_t n = 0;
    *out = (pnb_members){.n_queries = n_queries, .k = k};
    if (pnb__mul_overflows(n_queries, k, &n))
        return pnb__fail_nomem(err, SIZE_MAX);
    out->index = pnb__alloc_array(n, sizeof *out->index);
    out->h = pnb__alloc_array(n, sizeof *out->h);
    out->nearness = pnb__alloc_array(n, sizeof *out->nearness);
    out->n_all = pnb__alloc_array(n_queries, sizeof *out->n_all);
    if (out->index != NULL && out->h != NULL && out->nearness != NULL && out->n_all != NULL)
        return PNB_OK;
    pnb_members_reset(out);
    return pnb__fail_nomem(err, n * (sizeof(int64_t) + 2 * sizeof(double)));
}

/* ---- one query ---- */

typedef struct members_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_members_opts *opts;
    pnb_members *out;
    double *scratch;  /* [thread][2][N]: h, nearness */
    pnb__hit *hit;    /* [thread][k] */
    pnb_error *error; /* [thread] */
} members_job;

static pnb_status measure_query(const members_job *job, size_t q, double *h, double *nearness,
                                pnb_error *err)
{
    const pnb_gaussians *all = job->queries;
    const pnb_gaussians one = {1, all->dim, all->mean + q * all->dim, all->log_var + q * all->dim};
    const pnb_members_opts *o = job->opts;
    pnb_measure measure = o->published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    const pnb_gaussians *inner = o->inside ? job->gallery : &one;
    const pnb_gaussians *outer = o->inside ? &one : job->gallery;
    pnb_status status = pnb_measure_block(measure, inner, outer, &o->measure_opts, h, err);
    if (status == PNB_OK)
        status = pnb_measure_block(PNB_MEASURE_CSD, &one, job->gallery, NULL, nearness, err);
    for (size_t j = 0; status == PNB_OK && j < job->gallery->n; j++)
        nearness[j] = pnb_measure_score(PNB_MEASURE_CSD, nearness[j]);
    if (status != PNB_OK)
        pnb__error_prefix(err, "query %zu", q);
    return status;
}

static void keep_members(const members_job *job, size_t q, const double *h, const double *nearness,
                         pnb__hit *hit)
{
    const pnb_members_opts *o = job->opts;
    pnb_members *out = job->out;
    size_t k = out->k;
    pnb__heap heap = {hit, 0, k};
    out->n_all[q] = 0;
    for (size_t j = 0; j < job->gallery->n; j++) {
        if (!(h[j] > 0.0) || !(nearness[j] >= o->min_nearness))
            continue;
        double score = o->order == PNB_MEMBERS_BY_NEARNESS ? nearness[j] : h[j];
        pnb__heap_push(&heap, (pnb__hit){score, (int64_t)j});
        out->n_all[q]++;
    }
    pnb__hits_sort(hit, heap.n);
    for (size_t i = 0; i < k; i++) {
        int64_t item = i < heap.n ? hit[i].index : -1;
        out->index[q * k + i] = item;
        out->h[q * k + i] = item >= 0 ? h[item] : -(double)INFINITY;
        out->nearness[q * k + i] = item >= 0 ? nearness[item] : -(double)INFINITY;
    }
}

/* pnb__range_fn */
static void find_range(void *user, size_t begin, size_t end, int thread)
{
    members_job *job = user;
    size_t n = job->gallery->n, t = (size_t)thread;
    double *h = job->scratch + t * 2 * n, *nearness = h + n;
    for (size_t q = begin; q < end; q++) {
        if (measure_query(job, q, h, nearness, &job->error[t]) != PNB_OK)
            return;
        keep_members(job, q, h, nearness, job->hit + t * job->out->k);
    }
}

/* ---- all queries ---- */

static pnb_status check(const pnb_gaussians *queries, const pnb_gaussians *gallery, size_t k,
                        pnb_error *err)
{
    if (queries->n == 0 || gallery->n == 0)
        return pnb__fail(err, PNB_SHAPE, "%zu queries and %zu items; none may be empty", queries->n,
                         gallery->n);
    if (queries->dim != gallery->dim)
        return pnb__fail(err, PNB_SHAPE, "queries have width %zu, items %zu", queries->dim,
                         gallery->dim);
    if (queries->log_var == NULL || gallery->log_var == NULL)
        return pnb__fail(err, PNB_ARG,
                         "the %s are points; inclusion needs embeddings with variances",
                         queries->log_var == NULL ? "queries" : "items");
    if (k == 0)
        return pnb__fail(err, PNB_ARG, "k is 0; at least one member must be asked for");
    return PNB_OK;
}

pnb_status pnb_members_find(const pnb_ctx *ctx, const pnb_gaussians *queries,
                            const pnb_gaussians *gallery, const pnb_members_opts *opts,
                            pnb_members *out, pnb_error *err)
{
    pnb_members_opts o = opts == NULL ? pnb_members_opts_default() : *opts;
    members_job job = {.queries = queries, .gallery = gallery, .opts = &o, .out = out};
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    *out = (pnb_members){0};
    pnb_status status = check(queries, gallery, o.k, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(alloc_members(out, queries->n, PNB_MIN(o.k, gallery->n), err));
    job.scratch = pnb__alloc_array(n_threads, 2 * gallery->n * sizeof(double));
    job.hit = pnb__alloc_array(n_threads * out->k, sizeof *job.hit);
    job.error = pnb__alloc_zero(n_threads, sizeof *job.error);
    if (job.scratch == NULL || job.hit == NULL || job.error == NULL)
        PNB_TRY(pnb__fail_nomem(err, n_threads * 2 * gallery->n * sizeof(double)));
    pnb__parallel_for(ctx, queries->n, 1, find_range, &job);
    for (size_t t = 0; t < n_threads && status == PNB_OK; t++)
        if (job.error[t].status != PNB_OK)
            status = pnb__fail(err, job.error[t].status, "%s", job.error[t].text);
done:
    pnb__free(job.scratch);
    pnb__free(job.hit);
    pnb__free(job.error);
    if (status != PNB_OK)
        pnb_members_reset(out);
    return status;
}
