/* A search on a device gives what the processor's gives: on memory that only kernels can reach
 * (tests/kernels/guarded.h), for both kinds of copies, pieces of all sizes, filters, and rows that
 * the copy cannot tell apart. What a mem_ slot reports reaches the caller, and nothing is lost. */
#include "tests/io/scratch.h"

#include <math.h>

#include "index/compressed/compressed.h"
#include "index/index.h"
#include "penumbra/search.h"
#include "tests/kernels/guarded.h"

enum { DIM = 8, K = 5 };

#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        assert_ok((call), &err);                                                                   \
    } while (0)

typedef struct rows {
    float *mean, *log_var;
    pnb_gaussians all;
} rows;

/* n rows in heaps of `alike` that differ by `apart`. */
static rows make(size_t n, size_t alike, float apart, uint64_t seed)
{
    rows r = {malloc(n * DIM * sizeof(float)), malloc(n * DIM * sizeof(float)), {0}};
    pnb__rng rng;
    assert_true(r.mean != NULL && r.log_var != NULL);
    pnb__rng_init(&rng, seed, n);
    for (size_t i = 0; i < n * DIM; i++) {
        float x = (float)pnb__rng_normal(&rng) / sqrtf(DIM);
        r.mean[i] = i / DIM % alike == 0 ? x : r.mean[i - DIM] + apart * x;
        r.log_var[i] = (float)pnb__rng_normal(&rng) - 7;
    }
    r.all = (pnb_gaussians){.n = n, .dim = DIM, .mean = r.mean, .log_var = r.log_var};
    return r;
}

static void drop(rows *r)
{
    free(r->mean);
    free(r->log_var);
}

static pnb_ctx *device(void)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = 1;
    ASSERT_OK(pnb_ctx_create(&ctx, &opts, &err));
    guarded_fail(GUARDED_ALLOC, SIZE_MAX);
    guarded_use(ctx, true);
    return ctx;
}

static void end(pnb_ctx *ctx)
{
    assert_int_equal(guarded.n, 0); /* all was given back */
    pnb_ctx_free(ctx);
}

static void assert_same(const pnb_hits *a, const pnb_hits *b)
{
    size_t n = a->n_queries * a->k;
    assert_int_equal(a->n_queries, b->n_queries);
    assert_int_equal(a->k, b->k);
    for (size_t i = 0; i < n; i++) {
        bool is_near = a->score[i] == b->score[i] ||
                       fabs(a->score[i] - b->score[i]) <= 1e-10 * (1 + fabs(a->score[i]));
        if (a->index[i] != b->index[i] || !is_near)
            fail_msg("hit %zu: row %lld with %.17g, wanted %lld with %.17g", i,
                     (long long)a->index[i], a->score[i], (long long)b->index[i], b->score[i]);
    }
}

/* A copy on the device and one on the processor take the same candidates. */
static void compare_copies(const pnb__index_calls *calls, const rows *gallery, const rows *queries,
                           size_t scores, const unsigned char *only)
{
    const pnb_search_opts opts = pnb_search_opts_default();
    const pnb__among among = {&queries->all, K, only};
    pnb_ctx *ctx = device();
    void *there = NULL, *here = NULL;
    pnb_hits found = {0}, wanted = {0};
    ASSERT_OK(calls->create(&there, ctx, &gallery->all, &opts, &err));
    ASSERT_OK(calls->create(&here, NULL, &gallery->all, &opts, &err));
    assert_true(((pnb__compressed *)there)->on_device && !((pnb__compressed *)here)->on_device);
    assert_true(guarded.n > ((pnb__compressed *)there)->n_blocks);
    ((pnb__compressed *)there)->device_scores = scores;
    ASSERT_OK(calls->nearest(there, ctx, &among, &found, &err));
    ASSERT_OK(calls->nearest(here, NULL, &among, &wanted, &err));
    assert_same(&found, &wanted);
    assert_true(found.n_unsure <= wanted.n_unsure); /* it is asked again with more candidates */
    pnb_hits_reset(&found);
    pnb_hits_reset(&wanted);
    calls->free(there);
    calls->free(here);
    end(ctx);
}

static void test_copies(void **state)
{
    (void)state;
    static const size_t scores[] = {1, 30000 * 16384, 1 << 20, 1 << 24};
    rows gallery = make(140000, 1, 0, 1), few = make(3, 1, 0, 2), many = make(40, 1, 0, 3);
    unsigned char *only = calloc(gallery.all.n, 1);
    assert_non_null(only);
    for (size_t i = 0; i < gallery.all.n; i += 61)
        only[i] = 1;
    for (size_t i = 0; i < PNB_COUNT(scores); i++)
        compare_copies(&pnb__index_bf16, &gallery, i % 2 == 0 ? &few : &many, scores[i],
                       i < 2 ? only : NULL);
    compare_copies(&pnb__index_int8, &gallery, &many, 1 << 21, NULL);
    compare_copies(&pnb__index_int8, &few, &few, 1 << 21, NULL);
    free(only);
    drop(&gallery);
    drop(&few);
    drop(&many);
}

/* ---- the exact kind ---- */

static void compare_exact(const rows *gallery, const rows *queries, pnb_search_opts opts,
                          const unsigned char *only, bool is_copied)
{
    const pnb__among among = {&queries->all, opts.k, only};
    pnb_ctx *ctx = device();
    pnb_index *there = NULL, *here = NULL;
    pnb_hits found = {0}, wanted = {0};
    ASSERT_OK(pnb_index_create(&there, ctx, &gallery->all, &opts, &err));
    ASSERT_OK(pnb_index_create(&here, NULL, &gallery->all, &opts, &err));
    assert_int_equal(guarded.n, 0); /* nothing before it is worth it */
    ASSERT_OK(pnb__index_search(there, ctx, &among, &found, &err));
    assert_int_equal(guarded.n > 0, is_copied);
    ASSERT_OK(pnb__index_search(here, NULL, &among, &wanted, &err));
    assert_same(&found, &wanted);
    assert_int_equal(found.n_unsure, 0);
    pnb_hits_reset(&found);
    pnb_hits_reset(&wanted);
    pnb_index_free(there);
    pnb_index_free(here);
    end(ctx);
}

static void test_exact(void **state)
{
    (void)state;
    rows gallery = make(9000, 1, 0, 4), alike = make(9000, 600, 1e-5f, 5);
    rows queries = make(50, 1, 0, 6);
    unsigned char *only = calloc(gallery.all.n, 1);
    pnb_search_opts opts = pnb_search_opts_default();
    assert_non_null(only);
    for (size_t i = 0; i < gallery.all.n; i += 7)
        only[i] = 1;
    for (int m = 0; m < 2; m++) {
        opts.measure = m == 0 ? PNB_MEASURE_CSD : PNB_MEASURE_MEAN;
        opts.k = 1 + (size_t)m * 30;
        compare_exact(&gallery, &queries, opts, NULL, true);
        compare_exact(&gallery, &queries, opts, only, true);
        compare_exact(&alike, &queries, opts, NULL, true); /* more alike than a copy holds */
    }
    opts.k = 2000; /* more than a device keeps */
    compare_exact(&gallery, &queries, opts, NULL, false);
    opts.k = 3;
    opts.measure = PNB_MEASURE_KL; /* no inner product */
    compare_exact(&gallery, &queries, opts, NULL, false);
    free(only);
    drop(&gallery);
    drop(&alike);
    drop(&queries);
}

/* All pairs above a score, as the exact index finds them. */
static void test_pairs(void **state)
{
    (void)state;
    rows gallery = make(400, 1, 0, 7);
    const pnb_search_opts opts = pnb_search_opts_default();
    pnb_range_opts range = pnb_range_opts_default();
    pnb_ctx *ctx = device();
    pnb_index *there = NULL, *here = NULL;
    pnb_pairs found, wanted;
    range.min_score = 0.7;
    ASSERT_OK(pnb_index_create(&there, ctx, &gallery.all, &opts, &err));
    ASSERT_OK(pnb_index_create(&here, NULL, &gallery.all, &opts, &err));
    for (int self = 0; self < 2; self++) {
        if (self) {
            ASSERT_OK(pnb_index_self_join(there, ctx, &range, &found, &err));
            ASSERT_OK(pnb_index_self_join(here, NULL, &range, &wanted, &err));
        } else {
            ASSERT_OK(pnb_index_range(there, ctx, &gallery.all, &range, &found, &err));
            ASSERT_OK(pnb_index_range(here, NULL, &gallery.all, &range, &wanted, &err));
        }
        assert_true(found.n > 0);
        assert_int_equal(found.n, wanted.n);
        assert_memory_equal(found.item, wanted.item, found.n * sizeof *found.item);
        pnb_pairs_reset(&found);
        pnb_pairs_reset(&wanted);
    }
    pnb_index_free(there);
    pnb_index_free(here);
    end(ctx);
    drop(&gallery);
}

/* A few queries are not worth a copy; what a device cannot keep is refused. */
static void test_limits(void **state)
{
    (void)state;
    rows gallery = make(3000, 1, 0, 8), queries = make(20, 1, 0, 9);
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_ctx *ctx = device();
    pnb_error err = PNB_ERROR_INIT;
    pnb_index *index = NULL;
    pnb_hits hits;
    for (size_t n = 15; n <= 16; n++) {
        guarded.most_bytes = 0;
        queries.all.n = n;
        assert_ok(pnb_search(ctx, &queries.all, &gallery.all, &opts, &hits, &err), &err);
        assert_int_equal(guarded.most_bytes > 0, n == 16);
        pnb_hits_reset(&hits);
    }
    queries.all.n = 1; /* one after the other */
    assert_ok(pnb_index_create(&index, ctx, &gallery.all, &opts, &err), &err);
    for (size_t n = 1; n <= 20; n++) {
        assert_ok(pnb_index_search(index, ctx, &queries.all, 3, &hits, &err), &err);
        assert_int_equal(guarded.n > 0, n >= 16);
        pnb_hits_reset(&hits);
    }
    pnb_index_free(index);
    queries.all.n = 16;
    opts.kind = PNB_INDEX_BF16;
    assert_ok(pnb_index_create(&index, ctx, &gallery.all, &opts, &err), &err);
    assert_failed(pnb_index_search(index, ctx, &queries.all, 1025, &hits, &err), &err,
                  PNB_UNSUPPORTED, "at most 1024");
    pnb_error_reset(&err);
    assert_ok(pnb_index_search(index, ctx, &queries.all, 1024, &hits, &err), &err);
    pnb_hits_reset(&hits);
    pnb_index_free(index);
    end(ctx);
    drop(&gallery);
    drop(&queries);
}

static void test_failures(void **state)
{
    (void)state;
    rows gallery = make(300, 1, 0, 10), queries = make(20, 1, 0, 11);
    pnb_search_opts opts = pnb_search_opts_default();
    for (int kind = 0; kind < 3; kind++)
        for (int slot = 0; slot <= GUARDED_READ; slot++) {
            size_t n_failed = 0;
            bool has_failed = true;
            opts.kind = kind == 0 ? PNB_INDEX_EXACT : kind == 1 ? PNB_INDEX_BF16 : PNB_INDEX_INT8;
            for (size_t at = 0; has_failed; at++) {
                pnb_ctx *ctx = device();
                pnb_error err = PNB_ERROR_INIT;
                pnb_hits hits = {0};
                guarded_fail((guarded_slot)slot, at);
                pnb_status status = pnb_search(ctx, &queries.all, &gallery.all, &opts, &hits, &err);
                has_failed = guarded.has_failed;
                n_failed += has_failed;
                assert_int_equal(status, !has_failed             ? PNB_OK
                                         : slot == GUARDED_ALLOC ? PNB_NOMEM
                                                                 : PNB_IO);
                pnb_hits_reset(&hits);
                pnb_error_reset(&err);
                end(ctx);
            }
            assert_true(n_failed > 1);
        }
    drop(&gallery);
    drop(&queries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_exact),
        cmocka_unit_test(test_pairs),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
