/* pnb_index over whatever kind it is: choosing the kind, what all kinds refuse alike, and results
 * that are all zero after a failure.
 *
 * How rows are found is the kind's (index_kind.h). Kinds are numbered by PNB_INDEX_LIST; a context
 * may bring one of its own, as a device brings its column of kernels. */
#include "index/index.h"

#include <math.h>

#include "index/ann/ann.h"
#include "index/compressed/compressed.h"
#include "index/device_index.h"
#include "index/exact/exact_search.h"
#include "index/shortlist.h"

struct pnb_index {
    const pnb__index_calls *calls;
    void *self;
    pnb_measure measure;
};

static const pnb__index_calls *const kinds[] = {
#define PNB_INDEX_CALLS(NAME, name) &pnb__index_##name,
    PNB_INDEX_LIST(PNB_INDEX_CALLS)
#undef PNB_INDEX_CALLS
};

pnb_search_opts pnb_search_opts_default(void)
{
    return (pnb_search_opts){.measure = PNB_MEASURE_CSD,
                             .measure_opts = pnb_measure_opts_default(),
                             .k = 10,
                             .recall = 0.99};
}

pnb_range_opts pnb_range_opts_default(void)
{
    return (pnb_range_opts){.min_score = 0.0, .max_pairs = 10000000};
}

void pnb_hits_reset(pnb_hits *hits)
{
    if (hits == NULL)
        return;
    pnb__free(hits->index);
    pnb__free(hits->score);
    *hits = (pnb_hits){0};
}

void pnb_pairs_reset(pnb_pairs *pairs)
{
    if (pairs == NULL)
        return;
    pnb__free(pairs->query);
    pnb__free(pairs->item);
    pnb__free(pairs->score);
    *pairs = (pnb_pairs){0};
}

double pnb_score_of_probability(double probability, double a, double b)
{
    return (log(probability) - log1p(-probability) - b) / a;
}

/* A context may bring a kind of its own in place of the one that was asked for. */
static pnb_status choose(const pnb_ctx *ctx, pnb_index_kind kind, const pnb__index_calls **out,
                         pnb_error *err)
{
    if ((unsigned)kind >= PNB_N_INDEX_KINDS)
        return pnb__fail(err, PNB_ARG, "there is no index of number %d", (int)kind);
    *out = kinds[kind];
    if (ctx != NULL && ctx->index != NULL)
        *out = ctx->index;
    else if (ctx != NULL && ctx->column != NULL && kind == PNB_INDEX_EXACT)
        *out = &pnb__index_device;
    return PNB_OK;
}

pnb_status pnb_index_create(pnb_index **out, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                            const pnb_search_opts *opts, pnb_error *err)
{
    const pnb_search_opts o = opts == NULL ? pnb_search_opts_default() : *opts;
    const pnb__index_calls *calls = NULL;
    pnb_index *index = NULL;
    pnb_status status = PNB_OK;
    *out = NULL;
    PNB_TRY(choose(ctx, o.kind, &calls, err));
    PNB_TRY(calls->check(gallery, &o, err));
    index = pnb__alloc_zero(1, sizeof *index);
    if (index == NULL)
        PNB_TRY(pnb__fail_nomem(err, sizeof *index));
    index->calls = calls;
    index->measure = o.measure;
    PNB_TRY(calls->create(&index->self, ctx, gallery, &o, err));
    *out = index;
done:
    if (status != PNB_OK)
        pnb__free(index);
    return status;
}

static pnb_status fail_file(const pnb__index_calls *calls, pnb_error *err)
{
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "an index of kind %s has no file of its own; hnsw and ivf have", calls->name);
}

pnb_status pnb_index_open(pnb_index **out, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                          const pnb_search_opts *opts, const char *path, pnb_error *err)
{
    const pnb__index_file file = {path, opts};
    const pnb__index_calls *calls = NULL;
    pnb_index *index = NULL;
    pnb_status status;
    *out = NULL;
    PNB_TRY(choose(ctx, opts->kind, &calls, err));
    if (calls->open == NULL)
        PNB_TRY(fail_file(calls, err));
    PNB_TRY(calls->check(gallery, opts, err));
    PNB_TRY(PNB_ALLOC_ZERO(index, 1, err));
    index->calls = calls;
    index->measure = opts->measure;
    PNB_TRY(calls->open(&index->self, ctx, gallery, &file, err));
    *out = index;
    index = NULL;
done:
    pnb__free(index);
    return status;
}

pnb_status pnb_index_save(const pnb_index *index, const pnb_ctx *ctx, const char *path,
                          pnb_error *err)
{
    pnb__out_file f = {0};
    pnb_status status;
    if (index->calls->save == NULL)
        return fail_file(index->calls, err);
    PNB_TRY(pnb__out_open(&f, path, err));
    PNB_TRY(index->calls->save(index->self, ctx, &f, err));
    status = pnb__out_commit(&f, err);
done:
    pnb__out_abort(&f);
    return status;
}

void pnb_index_describe(const pnb_index *index, pnb_index_about *out)
{
    *out = (pnb_index_about){.kind = index->calls->name};
    if (index->calls->describe != NULL)
        index->calls->describe(index->self, out);
}

const char *pnb_index_kind_name(pnb_index_kind kind)
{
    return (unsigned)kind < PNB_N_INDEX_KINDS ? kinds[kind]->name : NULL;
}

const char *pnb_index_faiss_version(void)
{
    return pnb__faiss_version();
}

void pnb_index_free(pnb_index *index)
{
    if (index == NULL)
        return;
    index->calls->free(index->self);
    pnb__free(index);
}

pnb_status pnb__index_search(const pnb_index *index, const pnb_ctx *ctx, const pnb__among *among,
                             pnb_hits *hits, pnb_error *err)
{
    *hits = (pnb_hits){0};
    if (among->k == 0)
        return pnb__fail(err, PNB_ARG, "k is 0; ask for at least one hit a query");
    pnb_status status = index->calls->nearest(index->self, ctx, among, hits, err);
    if (status != PNB_OK)
        pnb_hits_reset(hits);
    return status;
}

pnb_status pnb_index_search(const pnb_index *index, const pnb_ctx *ctx,
                            const pnb_gaussians *queries, size_t k, pnb_hits *hits, pnb_error *err)
{
    return pnb__index_search(index, ctx, &(pnb__among){queries, k, NULL}, hits, err);
}

pnb_status pnb_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                      const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_hits *hits,
                      pnb_error *err)
{
    pnb_index *index = NULL;
    *hits = (pnb_hits){0};
    if (opts != NULL && opts->shortlist > 0 && opts->shortlist < gallery->n)
        return pnb__shortlist_search(ctx, queries, gallery, opts, hits, err);
    pnb_status status = pnb_index_create(&index, ctx, gallery, opts, err);
    if (status == PNB_OK) {
        size_t k = opts == NULL ? pnb_search_opts_default().k : opts->k;
        status = pnb_index_search(index, ctx, queries, k, hits, err);
    }
    pnb_index_free(index);
    return status;
}

static pnb_status fail_unsupported(const pnb_index *index, const char *what, pnb_error *err)
{
    return pnb__fail(err, PNB_UNSUPPORTED, "an index of kind %s cannot %s; an exact one can",
                     index->calls->name, what);
}

pnb_status pnb_index_range(const pnb_index *index, const pnb_ctx *ctx, const pnb_gaussians *queries,
                           const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err)
{
    const pnb_range_opts o = opts == NULL ? pnb_range_opts_default() : *opts;
    *out = (pnb_pairs){0};
    if (index->calls->range == NULL)
        return fail_unsupported(index, "find all pairs above a score", err);
    if (isnan(o.min_score))
        return pnb__fail(err, PNB_ARG, "the limit on the score is not a number");
    pnb_status status = index->calls->range(index->self, ctx, queries, &o, out, err);
    if (status != PNB_OK)
        pnb_pairs_reset(out);
    return status;
}

pnb_status pnb_index_self_join(const pnb_index *index, const pnb_ctx *ctx,
                               const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err)
{
    const pnb_range_opts o = opts == NULL ? pnb_range_opts_default() : *opts;
    *out = (pnb_pairs){0};
    if (index->calls->self_join == NULL)
        return fail_unsupported(index, "find all pairs of its rows", err);
    if (!pnb_measure_is_symmetric(index->measure))
        return pnb__fail(err, PNB_ARG,
                         "measure %s is not the same both ways; near pairs of one set need a "
                         "symmetric measure such as mean or csd",
                         pnb_measure_name(index->measure));
    if (isnan(o.min_score))
        return pnb__fail(err, PNB_ARG, "the limit on the score is not a number");
    pnb_status status = index->calls->self_join(index->self, ctx, &o, out, err);
    if (status != PNB_OK)
        pnb_pairs_reset(out);
    return status;
}

pnb_status pnb__index_rows(const pnb_index *index, const pnb_ctx *ctx, const pnb_gaussians *queries,
                           pnb__visit_fn visit, void *user, pnb_error *err)
{
    if (index->calls->rows == NULL)
        return fail_unsupported(index, "score every row", err);
    return index->calls->rows(index->self, ctx, queries, visit, user, err);
}
