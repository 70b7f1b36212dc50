/* An exact search whose candidates a device finds: a copy of the rows in bfloat16 lies in its
 * memory.
 *
 * The copy says of which queries it cannot be sure (compressed/); those few are asked of the exact
 * index as well, which also does what is no search for the best: all pairs above a score, all
 * scores, and measures that are no inner products. So every answer is that of an exact search. */
#include "index/device_index.h"

#include "index/compressed/compressed.h"
#include "index/exact/exact_search.h"
#include "index/product_form.h"
#include "index/some_queries.h"

typedef struct device_index {
    void *exact;
    void *copy; /* NULL: of a measure that is no inner product */
    pnb_search_opts opts;
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
    pnb__free(d);
}

static pnb_status create(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                         const pnb_search_opts *opts, pnb_error *err)
{
    device_index *d = NULL;
    pnb_error no = PNB_ERROR_INIT;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(d, 1, err));
    d->opts = *opts;
    PNB_TRY(pnb__index_exact.create(&d->exact, ctx, gallery, opts, err));
    if (gallery->n < PNB__BEST_NONE && pnb__linear_check(gallery, opts, "bf16", &no) == PNB_OK)
        PNB_TRY(pnb__index_bf16.create(&d->copy, ctx, gallery, opts, err));
    *self = d;
    d = NULL;
done:
    pnb_error_reset(&no);
    if (d != NULL)
        free_index(d);
    return status;
}

/* ---- what the copy cannot be sure of ---- */

static pnb_status ask_again(const device_index *d, const pnb_ctx *ctx, const pnb__among *among,
                            const bool *unsure, pnb_hits *hits, pnb_error *err)
{
    pnb__some_queries some = {0};
    pnb_hits found = {0};
    pnb_status status;
    PNB_TRY(pnb__some_queries_init(&some, among->queries, unsure, err));
    const pnb__among again = {&some.rows, among->k, among->only};
    PNB_TRY(pnb__index_exact.nearest(d->exact, ctx, &again, &found, err));
    pnb__some_queries_put(&some, &found, hits);
    hits->n_unsure = 0;
done:
    pnb__some_queries_reset(&some);
    pnb_hits_reset(&found);
    return status;
}

/* ---- searching ---- */

/* Whether the copy answers; what is wrong with queries the exact index says. */
static bool is_for_copy(const device_index *d, const pnb__among *among)
{
    const pnb__compressed *c = d->copy;
    pnb_error no = PNB_ERROR_INIT;
    bool is = c != NULL && among->k <= PNB__BEST_MOST / 4 && among->queries->n > 0 &&
              pnb__linear_check_queries(&c->gallery, among->queries, &d->opts, &no) == PNB_OK;
    pnb_error_reset(&no);
    return is;
}

static pnb_status nearest(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                          pnb_hits *hits, pnb_error *err)
{
    const device_index *d = self;
    bool *unsure = NULL;
    pnb_status status;
    if (!is_for_copy(d, among))
        return pnb__index_exact.nearest(d->exact, ctx, among, hits, err);
    PNB_TRY(PNB_ALLOC_ZERO(unsure, among->queries->n, err));
    PNB_TRY(pnb__compressed_nearest(d->copy, ctx, among, hits, unsure, err));
    if (hits->n_unsure > 0)
        status = ask_again(d, ctx, among, unsure, hits, err);
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
    const device_index *d = self;
    if (d->copy != NULL)
        pnb__index_bf16.describe(d->copy, out);
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
