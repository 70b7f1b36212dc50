/* An exact search whose candidates a device finds: a copy of the rows in bfloat16 lies in its
 * memory.
 *
 * The copy is made when so many queries were asked that they are worth it, and says of which ones
 * it cannot be sure (compressed/); those few are asked of the exact index as well, which also does
 * what is no search for the best: all pairs above a score, all scores, and measures that are no
 * inner products. So every answer is that of an exact search. */
#include "index/device_index.h"

#include <pthread.h>

#include "index/compressed/compressed.h"
#include "index/exact/exact_search.h"
#include "index/product_form.h"
#include "index/some_queries.h"

enum { LEAST_QUERIES = 16 }; /* fewer are answered before a copy is made */

typedef struct device_index {
    void *exact;
    bool is_linear; /* the measure is an inner product */
    pnb_gaussians gallery;
    pnb_search_opts opts;
    pthread_mutex_t lock; /* of what follows; a copy that is there stays as it is */
    size_t n_asked;       /* queries so far */
    void *copy;           /* NULL: not made */
} device_index;

static pnb_status check(const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_error *err)
{
    return pnb__index_exact.check(gallery, opts, err);
}

static void free_index(void *self)
{
    device_index *d = self;
    if (d->exact != NULL)
        pnb__index_exact.free(d->exact);
    if (d->copy != NULL)
        pnb__index_bf16.free(d->copy);
    pthread_mutex_destroy(&d->lock);
    pnb__free(d);
}

static pnb_status create(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                         const pnb_search_opts *opts, pnb_error *err)
{
    device_index *d = NULL;
    pnb_error no = PNB_ERROR_INIT;
    pnb_status status = PNB_ALLOC_ZERO(d, 1, err);
    if (status != PNB_OK)
        return status;
    pthread_mutex_init(&d->lock, NULL);
    d->gallery = *gallery;
    d->opts = *opts;
    d->is_linear =
        gallery->n < PNB__BEST_NONE && pnb__linear_check(gallery, opts, "bf16", &no) == PNB_OK;
    pnb_error_reset(&no);
    status = pnb__index_exact.create(&d->exact, ctx, gallery, opts, err);
    if (status == PNB_OK)
        *self = d;
    else
        free_index(d);
    return status;
}

/* ---- searching ---- */

/* What the copy cannot be sure of. */
typedef struct exact_question {
    const void *exact;
    const pnb_ctx *ctx;
} exact_question;

static pnb_status ask_exact(void *user, const pnb__among *among, pnb_hits *hits, bool *unsure,
                            pnb_error *err)
{
    const exact_question *q = user;
    (void)unsure; /* it never is */
    return pnb__index_exact.nearest(q->exact, q->ctx, among, hits, err);
}

/* Whether a copy may answer; what is wrong with queries the exact index says. */
static bool is_for_copy(const device_index *d, const pnb_ctx *ctx, const pnb__among *among)
{
    pnb_error no = PNB_ERROR_INIT;
    bool is = d->is_linear && ctx != NULL && ctx->column != NULL &&
              among->k <= PNB__BEST_MOST / 4 && among->queries->n > 0 &&
              pnb__linear_check_queries(&d->gallery, among->queries, &d->opts, &no) == PNB_OK;
    pnb_error_reset(&no);
    return is;
}

/* The copy, where it is worth having; NULL where not. Callers at once wait for who makes it. */
static pnb_status copy_for(device_index *d, const pnb_ctx *ctx, const pnb__among *among,
                           const pnb__compressed **out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *out = NULL;
    if (!is_for_copy(d, ctx, among))
        return PNB_OK;
    pthread_mutex_lock(&d->lock);
    d->n_asked += among->queries->n;
    if (d->copy == NULL && d->n_asked >= LEAST_QUERIES)
        status = pnb__index_bf16.create(&d->copy, ctx, &d->gallery, &d->opts, err);
    *out = d->copy;
    pthread_mutex_unlock(&d->lock);
    return status;
}

static pnb_status nearest(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                          pnb_hits *hits, pnb_error *err)
{
    device_index *d = (device_index *)(uintptr_t)self; /* the copy and its lock alone change */
    exact_question exact = {d->exact, ctx};
    const pnb__compressed *copy = NULL;
    bool *unsure = NULL;
    pnb_status status;
    PNB_TRY(copy_for(d, ctx, among, &copy, err));
    if (copy == NULL)
        return pnb__index_exact.nearest(d->exact, ctx, among, hits, err);
    PNB_TRY(PNB_ALLOC_ZERO(unsure, among->queries->n, err));
    PNB_TRY(pnb__compressed_nearest(copy, ctx, among, hits, unsure, err));
    if (hits->n_unsure > 0)
        status = pnb__ask_unsure(among, ask_exact, &exact, hits, unsure, err);
done:
    pnb__free(unsure);
    return status;
}

static pnb_status range(const void *self, const pnb_ctx *ctx, const pnb_gaussians *queries,
                        const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err)
{
    const device_index *d = self;
    return pnb__index_exact.range(d->exact, ctx, queries, opts, out, err);
}

static pnb_status self_join(const void *self, const pnb_ctx *ctx, const pnb_range_opts *opts,
                            pnb_pairs *out, pnb_error *err)
{
    const device_index *d = self;
    return pnb__index_exact.self_join(d->exact, ctx, opts, out, err);
}

static pnb_status rows(const void *self, const pnb_ctx *ctx, const pnb_gaussians *queries,
                       pnb__visit_fn visit, void *user, pnb_error *err)
{
    const device_index *d = self;
    return pnb__index_exact.rows(d->exact, ctx, queries, visit, user, err);
}

static void describe(const void *self, pnb_index_about *out)
{
    device_index *d = (device_index *)(uintptr_t)self;
    pthread_mutex_lock(&d->lock);
    if (d->copy != NULL)
        pnb__index_bf16.describe(d->copy, out);
    pthread_mutex_unlock(&d->lock);
}

const pnb__index_calls pnb__index_device = {.name = "exact",
                                            .check = check,
                                            .create = create,
                                            .free = free_index,
                                            .nearest = nearest,
                                            .range = range,
                                            .self_join = self_join,
                                            .rows = rows,
                                            .describe = describe};
