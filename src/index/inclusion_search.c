/* Inclusion search: which items include a query, or lie inside it.
 *
 * Membership is H > 0 (inclusion.c in prob), so unlike in a top-k search the answer may be empty or
 * be all items. H alone does not say that two rows have anything to do with each other: with
 * different variances it grows with the distance of the means, hence the csd similarity beside it.
 * Rows of H come from the index, in blocks that may round as f32 does: what stands near 0 and what
 * is kept is computed again, pair by pair, so the sign and the values do not depend on that. */
#include <math.h>

#include "penumbra/inclusion_search.h"

#include "base/names.h"
#include "index/heap.h"
#include "index/index.h"

#define ROUNDING 1e-4 /* of a block's H, a dimension: nearer to 0 than this, H is taken again */
#define MARGIN 16     /* candidates beyond k, taken again before they are sorted */

PNB_DEFINE_NAME(pnb_inclusion_order_name, pnb_inclusion_order, PNB_NAMES(PNB_INCLUSION_ORDER_LIST),
                "unknown")

pnb_inclusion_search_opts pnb_inclusion_search_opts_default(void)
{
    return (pnb_inclusion_search_opts){
        .min_nearness = -(double)INFINITY, .k = 10, .measure_opts = pnb_measure_opts_default()};
}

void pnb_inclusion_hits_reset(pnb_inclusion_hits *members)
{
    if (members == NULL)
        return;
    pnb__free(members->index);
    pnb__free(members->h);
    pnb__free(members->nearness);
    pnb__free(members->n_all);
    *members = (pnb_inclusion_hits){0};
}

static pnb_status alloc_members(pnb_inclusion_hits *out, size_t n_queries, size_t k, pnb_error *err)
{
    size_t n = 0;
    *out = (pnb_inclusion_hits){.n_queries = n_queries, .k = k};
    if (pnb__mul_overflows(n_queries, k, &n))
        return pnb__fail_nomem(err, SIZE_MAX);
    out->index = pnb__alloc_array(n, sizeof *out->index);
    out->h = pnb__alloc_array(n, sizeof *out->h);
    out->nearness = pnb__alloc_array(n, sizeof *out->nearness);
    out->n_all = pnb__alloc_array(n_queries, sizeof *out->n_all);
    if (out->index != NULL && out->h != NULL && out->nearness != NULL && out->n_all != NULL)
        return PNB_OK;
    pnb_inclusion_hits_reset(out);
    return pnb__fail_nomem(err, n * (sizeof(int64_t) + 2 * sizeof(double)));
}

/* ---- one query ---- */

typedef struct members_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_inclusion_search_opts *opts;
    pnb_inclusion_hits *out;
    double *query_trace, *item_trace; /* [Q], [N] */
    double *nearness;                 /* [thread][N] */
    size_t n_kept;                    /* candidates of a query: k and some more */
    pnb__hit *hit;                    /* [thread][n_kept] */
} members_job;

/* 1 - csd/2 of a query and every item. */
static void fill_nearness(const members_job *job, size_t q, double *nearness)
{
    size_t dim = job->queries->dim;
    const float *query = job->queries->mean + q * dim;
    for (size_t j = 0; j < job->gallery->n; j++) {
        const float *item = job->gallery->mean + j * dim;
        double square = 0.0;
        for (size_t d = 0; d < dim; d++) {
            double delta = (double)query[d] - (double)item[d];
            square += delta * delta;
        }
        nearness[j] =
            pnb_measure_score(PNB_MEASURE_CSD, square + job->query_trace[q] + job->item_trace[j]);
    }
}

/* H without the rounding of a block. */
static double exact_h(const members_job *job, size_t query, size_t item)
{
    pnb_measure measure =
        job->opts->published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    const pnb_measure_opts *o = &job->opts->measure_opts;
    return job->opts->inside
               ? pnb_measure_pair(measure, job->gallery, item, job->queries, query, o)
               : pnb_measure_pair(measure, job->queries, query, job->gallery, item, o);
}

static void store_members(const members_job *job, size_t q, const pnb__hit *hit, size_t n,
                          const double *nearness)
{
    pnb_inclusion_hits *out = job->out;
    for (size_t i = 0; i < out->k; i++) {
        size_t at = q * out->k + i;
        bool is_there = i < n;
        out->index[at] = is_there ? hit[i].index : -1;
        out->nearness[at] = is_there ? nearness[hit[i].index] : -(double)INFINITY;
        out->h[at] = is_there ? exact_h(job, q, (size_t)hit[i].index) : -(double)INFINITY;
    }
}

/* pnb__visit_fn: h holds H of the query and every item */
static void keep_members(void *user, int thread, size_t q, const double *h)
{
    members_job *job = user;
    const pnb_inclusion_search_opts *o = job->opts;
    size_t t = (size_t)thread;
    double *nearness = job->nearness + t * job->gallery->n;
    double unsure = ROUNDING * (double)job->gallery->dim;
    pnb__hit *hit = job->hit + t * job->n_kept;
    pnb__heap heap = {hit, 0, job->n_kept};
    fill_nearness(job, q, nearness);
    job->out->n_all[q] = 0;
    for (size_t j = 0; j < job->gallery->n; j++) {
        double value = fabs(h[j]) <= unsure ? exact_h(job, q, j) : h[j];
        if (!(value > 0.0) || !(nearness[j] >= o->min_nearness))
            continue;
        double score = o->order == PNB_INCLUSION_BY_NEARNESS ? nearness[j] : value;
        pnb__heap_push(&heap, (pnb__hit){score, (int64_t)j});
        job->out->n_all[q]++;
    }
    for (size_t i = 0; i < heap.n && o->order == PNB_INCLUSION_BY_INCLUSION; i++)
        hit[i].score = exact_h(job, q, (size_t)hit[i].index);
    pnb__hits_sort(hit, heap.n);
    store_members(job, q, hit, PNB_MIN(heap.n, job->out->k), nearness);
}

/* ---- all queries ---- */

static pnb_status check(const pnb_gaussians *queries, const pnb_gaussians *gallery,
                        const pnb_inclusion_search_opts *o, pnb_error *err)
{
    if (queries->n == 0 || gallery->n == 0)
        return pnb__fail(err, PNB_SHAPE, "%zu queries and %zu items; none may be empty", queries->n,
                         gallery->n);
    if (queries->dim != gallery->dim)
        return pnb__fail(err, PNB_SHAPE, "queries have width %zu, items %zu", queries->dim,
                         gallery->dim);
    if (queries->log_var == NULL || gallery->log_var == NULL)
        return pnb__fail(err, PNB_ARG, "the %s are of family %s; inclusion needs Gaussians",
                         queries->log_var == NULL ? "queries" : "items",
                         pnb_rows_family(queries->log_var == NULL ? queries : gallery));
    if (o->k == 0)
        return pnb__fail(err, PNB_ARG, "k is 0; at least one member must be asked for");
    if (isnan(o->min_nearness) || (unsigned)o->order >= PNB_N_INCLUSION_ORDERS)
        return pnb__fail(err, PNB_ARG,
                         "a nearness of at least %g in order number %d; a number and an order that "
                         "exists are wanted",
                         o->min_nearness, (int)o->order);
    return PNB_OK;
}

static pnb_status alloc_job(members_job *job, size_t n_threads, pnb_error *err)
{
    size_t n = job->gallery->n;
    job->n_kept = PNB_MIN(job->out->k + MARGIN, n);
    if (PNB_ALLOC(job->query_trace, job->queries->n, err) != PNB_OK ||
        PNB_ALLOC(job->item_trace, n, err) != PNB_OK ||
        PNB_ALLOC_ROWS(job->nearness, n_threads, n, err) != PNB_OK ||
        PNB_ALLOC_ROWS(job->hit, n_threads, job->n_kept, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

pnb_status pnb_inclusion_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                const pnb_gaussians *gallery, const pnb_inclusion_search_opts *opts,
                                pnb_inclusion_hits *out, pnb_error *err)
{
    pnb_inclusion_search_opts o = opts == NULL ? pnb_inclusion_search_opts_default() : *opts;
    members_job job = {.queries = queries, .gallery = gallery, .opts = &o, .out = out};
    pnb_search_opts search = pnb_search_opts_default();
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    pnb_index *index = NULL;
    *out = (pnb_inclusion_hits){0};
    pnb_status status = check(queries, gallery, &o, err);
    if (status != PNB_OK)
        return status;
    search.measure = o.published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    search.measure_opts = o.measure_opts;
    search.reverse = o.inside;
    search.kind = o.kind;
    PNB_TRY(pnb_index_create(&index, ctx, gallery, &search, err));
    PNB_TRY(alloc_members(out, queries->n, PNB_MIN(o.k, gallery->n), err));
    PNB_TRY(alloc_job(&job, n_threads, err));
    PNB_TRY(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, queries, job.query_trace, err));
    PNB_TRY(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, gallery, job.item_trace, err));
    status = pnb__index_rows(index, ctx, queries, keep_members, &job, err);
done:
    pnb_index_free(index);
    pnb__free(job.query_trace);
    pnb__free(job.item_trace);
    pnb__free(job.nearness);
    pnb__free(job.hit);
    if (status != PNB_OK)
        pnb_inclusion_hits_reset(out);
    return status;
}
