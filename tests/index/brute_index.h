/* Another kind of index: every pair, one by one, by pnb_measure_pair, sorted. It knows nothing of
 * exact/, counts what it was asked, and serves no sampled measure, so that there is something to
 * refuse. A context takes it by brute_use. */
#ifndef PNB_TESTS_INDEX_BRUTE_INDEX_H
#define PNB_TESTS_INDEX_BRUTE_INDEX_H

#include "index/index_kind.h"
#include "tests/prob/support.h"

typedef struct brute_index {
    pnb_gaussians gallery;
    pnb_search_opts opts;
} brute_index;

static struct {
    int n_made, n_freed, n_nearest, n_range, n_self_join, n_rows;
} brute;

static pnb_status brute_check(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                              pnb_error *err)
{
    if (gallery->n == 0)
        return pnb__fail(err, PNB_SHAPE, "the gallery is empty");
    if (opts->measure == PNB_MEASURE_AVG_L2 || opts->measure == PNB_MEASURE_MATCH_PROB)
        return pnb__fail(err, PNB_UNSUPPORTED, "brute force has no sampled measures");
    return pnb_measure_check_fit(opts->measure, gallery, gallery, err);
}

static pnb_status brute_create(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                               const pnb_search_opts *opts, pnb_error *err)
{
    brute_index *b = malloc(sizeof *b);
    (void)ctx, (void)err;
    assert_non_null(b);
    *b = (brute_index){*gallery, *opts};
    *self = b;
    brute.n_made++;
    return PNB_OK;
}

static void brute_free(void *self)
{
    free(self);
    brute.n_freed++;
}

static double brute_score(const brute_index *b, const pnb_gaussians *q, size_t i, size_t j)
{
    const pnb_search_opts *o = &b->opts;
    bool reverse = o->reverse && !pnb_measure_is_symmetric(o->measure);
    double value = reverse ? pnb_measure_pair(o->measure, &b->gallery, j, q, i, &o->measure_opts)
                           : pnb_measure_pair(o->measure, q, i, &b->gallery, j, &o->measure_opts);
    return pnb_measure_score(o->measure, value);
}

typedef struct brute_pair {
    size_t query, item;
    double score;
} brute_pair;

static int brute_compare(const void *a, const void *b)
{
    const brute_pair *x = a, *y = b;
    if (x->query != y->query)
        return x->query < y->query ? -1 : 1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* All pairs, sorted; with `self` those behind the query. */
static brute_pair *brute_pairs(const brute_index *b, const pnb_gaussians *q, bool self, size_t *n)
{
    brute_pair *pair = malloc((q->n * b->gallery.n + 1) * sizeof *pair);
    assert_non_null(pair);
    *n = 0;
    for (size_t i = 0; i < q->n; i++)
        for (size_t j = self ? i + 1 : 0; j < b->gallery.n; j++)
            pair[(*n)++] = (brute_pair){i, j, brute_score(b, q, i, j)};
    qsort(pair, *n, sizeof *pair, brute_compare);
    return pair;
}

static pnb_status brute_nearest(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                                pnb_hits *hits, pnb_error *err)
{
    const brute_index *b = self;
    const pnb_gaussians *queries = among->queries;
    size_t n, n_items = b->gallery.n, k = among->k;
    brute_pair *pair = brute_pairs(b, queries, false, &n);
    (void)ctx, (void)err;
    *hits = (pnb_hits){.n_queries = queries->n, .k = k};
    hits->index = pnb__alloc_array(queries->n * k, sizeof *hits->index);
    hits->score = pnb__alloc_array(queries->n * k, sizeof *hits->score);
    assert_true(hits->index != NULL && hits->score != NULL);
    for (size_t i = 0; i < queries->n; i++)
        for (size_t r = 0, at = 0; r < k; r++, at++) {
            const brute_pair *p = pair + i * n_items;
            while (at < n_items && among->only != NULL && among->only[p[at].item] == 0)
                at++;
            hits->index[i * k + r] = at < n_items ? (int64_t)p[at].item : -1;
            hits->score[i * k + r] = at < n_items ? p[at].score : -(double)INFINITY;
        }
    free(pair);
    brute.n_nearest++;
    return PNB_OK;
}

static pnb_status brute_join(const brute_index *b, const pnb_gaussians *queries, bool self,
                             const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err)
{
    size_t n, n_kept = 0;
    brute_pair *pair = brute_pairs(b, queries, self, &n);
    out->query = pnb__alloc_array(n + 1, sizeof *out->query);
    out->item = pnb__alloc_array(n + 1, sizeof *out->item);
    out->score = pnb__alloc_array(n + 1, sizeof *out->score);
    assert_true(out->query != NULL && out->item != NULL && out->score != NULL);
    for (size_t i = 0; i < n; i++) {
        if (!(pair[i].score >= opts->min_score))
            continue;
        out->query[n_kept] = (int64_t)pair[i].query;
        out->item[n_kept] = (int64_t)pair[i].item;
        out->score[n_kept++] = pair[i].score;
    }
    out->n = n_kept;
    free(pair);
    return n_kept <= opts->max_pairs
               ? PNB_OK
               : pnb__fail(err, PNB_ARG, "more than %zu pairs", opts->max_pairs);
}

static pnb_status brute_range(const void *self, const pnb_ctx *ctx, const pnb_gaussians *queries,
                              const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err)
{
    (void)ctx;
    brute.n_range++;
    return brute_join(self, queries, false, opts, out, err);
}

static pnb_status brute_self_join(const void *self, const pnb_ctx *ctx, const pnb_range_opts *opts,
                                  pnb_pairs *out, pnb_error *err)
{
    const brute_index *b = self;
    (void)ctx;
    brute.n_self_join++;
    return brute_join(b, &b->gallery, true, opts, out, err);
}

static pnb_status brute_rows(const void *self, const pnb_ctx *ctx, const pnb_gaussians *queries,
                             pnb__visit_fn visit, void *user, pnb_error *err)
{
    const brute_index *b = self;
    double *score = malloc(b->gallery.n * sizeof *score);
    (void)ctx, (void)err;
    assert_non_null(score);
    for (size_t i = 0; i < queries->n; i++) {
        for (size_t j = 0; j < b->gallery.n; j++)
            score[j] = brute_score(b, queries, i, j);
        visit(user, 0, i, score);
    }
    free(score);
    brute.n_rows++;
    return PNB_OK;
}

static const pnb__index_calls brute_calls = {.name = "brute",
                                             .check = brute_check,
                                             .create = brute_create,
                                             .free = brute_free,
                                             .nearest = brute_nearest,
                                             .range = brute_range,
                                             .self_join = brute_self_join,
                                             .rows = brute_rows};

/* A context with this index, or with the one that is asked for. */
static inline pnb_ctx *brute_context(bool is_brute)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    if (is_brute)
        ctx->index = &brute_calls;
    return ctx;
}

#endif
