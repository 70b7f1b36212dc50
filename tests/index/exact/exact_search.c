/* Top-k search against a brute-force sort of exact pair scores, for every measure and cut. */
#include "penumbra/embeddings.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "tests/prob/support.h"

static pnb_ctx *context(int n_threads)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = n_threads;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    return ctx;
}

typedef struct scored {
    double score;
    int64_t index;
} scored;

static int compare_scored(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static double pair_score(const pnb_search_opts *o, const pnb_gaussians *q, size_t i,
                         const pnb_gaussians *x, size_t j)
{
    bool reverse = o->reverse && !pnb_measure_is_symmetric(o->measure);
    double value = reverse ? pnb_measure_pair(o->measure, x, j, q, i, &o->measure_opts)
                           : pnb_measure_pair(o->measure, q, i, x, j, &o->measure_opts);
    return pnb_measure_score(o->measure, value);
}

static void expect_brute_force(const pnb_gaussians *q, const pnb_gaussians *x,
                               const pnb_search_opts *o, const pnb_hits *hits)
{
    scored *all = malloc(x->n * sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < q->n; i++) {
        for (size_t j = 0; j < x->n; j++)
            all[j] = (scored){pair_score(o, q, i, x, j), (int64_t)j};
        qsort(all, x->n, sizeof *all, compare_scored);
        for (size_t r = 0; r < hits->k && r < x->n; r++) {
            double got = hits->score[i * hits->k + r];
            if (!(fabs(got - all[r].score) <= 1e-12 + 1e-11 * fabs(all[r].score)) ||
                hits->index[i * hits->k + r] != all[r].index)
                fail_msg("%s query %zu rank %zu: item %lld score %.17g, want %lld %.17g",
                         pnb_measure_name(o->measure), i, r,
                         (long long)hits->index[i * hits->k + r], got, (long long)all[r].index,
                         all[r].score);
        }
    }
    free(all);
}

static void equals_brute_force(void **state)
{
    (void)state;
    gaussians q = random_gaussians(9, 12, -4, 0, 1), x = random_gaussians(1300, 12, -4, 0, 2);
    pnb_ctx *ctx = context(2);
    for (int m = 0; m < PNB_MEASURE_VMF; m++)
        for (int reverse = 0; reverse < 2; reverse++) {
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits hits;
            bool sampled = m == PNB_MEASURE_AVG_L2 || m == PNB_MEASURE_MATCH_PROB;
            pnb_gaussians part = x.view;
            o.measure = (pnb_measure)m;
            o.reverse = reverse != 0;
            o.measure_opts.n_samples = 2;
            part.n = sampled ? 150 : x.view.n;
            assert_ok(pnb_search(ctx, &q.view, &part, &o, &hits, err));
            expect_brute_force(&q.view, &part, &o, &hits);
            pnb_hits_reset(&hits);
        }
    pnb_ctx_free(ctx);
    free_gaussians(&q);
    free_gaussians(&x);
}

/* Means of any length, variances of any size: the product forms must still be exact. */
static void survives_scale(void **state)
{
    (void)state;
    gaussians q = random_gaussians(5, 16, -30, 30, 3), x = random_gaussians(700, 16, -30, 30, 4);
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_W2, PNB_MEASURE_MEAN,
                                    PNB_MEASURE_BHATTACHARYYA, PNB_MEASURE_INCLUSION};
    for (size_t i = 0; i < 700 * 16; i++)
        x.mean[i] *= 1.0f + (float)(i / 16 % 7);
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = pnb_search_opts_default();
        pnb_hits hits;
        o.measure = measures[m];
        assert_ok(pnb_search(NULL, &q.view, &x.view, &o, &hits, err));
        expect_brute_force(&q.view, &x.view, &o, &hits);
        pnb_hits_reset(&hits);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

/* Enough queries for several strips and groups, wide rows, and every small number of queries. */
static void batches_of_every_size(void **state)
{
    (void)state;
    const size_t n_queries[] = {1, 2, 5, 6, 7, 13, 16, 17, 33, 129, 420};
    gaussians q = random_gaussians(420, 300, -9, -7, 21),
              x = random_gaussians(700, 300, -9, -7, 22);
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2,
                                    PNB_MEASURE_INCLUSION};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        for (size_t c = 0; c < PNB_COUNT(n_queries); c++) {
            if (measures[m] == PNB_MEASURE_INCLUSION && n_queries[c] > 33)
                continue;
            pnb_ctx *ctx = context(1 + (int)(c % 3));
            pnb_search_opts o = pnb_search_opts_default();
            pnb_gaussians some = q.view;
            pnb_hits hits;
            o.measure = measures[m];
            some.n = n_queries[c];
            assert_ok(pnb_search(ctx, &some, &x.view, &o, &hits, err));
            some.n = PNB_MIN(some.n, (size_t)9);
            hits.n_queries = some.n;
            expect_brute_force(&some, &x.view, &o, &hits);
            pnb_hits_reset(&hits);
            pnb_ctx_free(ctx);
        }
    free_gaussians(&q);
    free_gaussians(&x);
}

/* Thousands of items nearer to each other than f32 can tell: all of them are candidates. */
static void closer_than_f32(void **state)
{
    (void)state;
    enum { N = 3000, D = 40, K = 25 };
    gaussians q = random_gaussians(3, D, -8, -7, 23), x = random_gaussians(N, D, -8, -7, 24);
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_INCLUSION};
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    for (size_t j = 1; j < N; j++) { /* one unit in the last place of a few values */
        memcpy(x.mean + j * D, x.mean, D * sizeof(float));
        memcpy(x.log_var + j * D, x.log_var, D * sizeof(float));
        for (int n = 0; n < 3; n++) {
            float *value = x.mean + j * D + pnb__rng_below(&rng, D);
            *value = nextafterf(*value, pnb__rng_below(&rng, 2) ? 2.0f : -2.0f);
        }
    }
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_ctx *ctx = context(2);
        pnb_search_opts o = pnb_search_opts_default();
        pnb_hits hits;
        o.measure = measures[m];
        o.k = K;
        assert_ok(pnb_search(ctx, &q.view, &x.view, &o, &hits, err));
        for (size_t i = 0; i < 3; i++) {
            double worst = hits.score[i * K + K - 1];
            size_t above = 0;
            for (size_t j = 0; j < N; j++)
                above += pair_score(&o, &q.view, i, &x.view, j) > worst + 1e-13;
            assert_true(above < K);
            for (size_t r = 0; r < K; r++)
                assert_near(hits.score[i * K + r],
                            pair_score(&o, &q.view, i, &x.view, (size_t)hits.index[i * K + r]),
                            1e-12, 1e-12);
        }
        pnb_hits_reset(&hits);
        pnb_ctx_free(ctx);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

/* Rows that f32 products could not hold take the way in f64. */
static void huge_and_tiny_rows(void **state)
{
    (void)state;
    const float scales[] = {1e-30f, 1e-18f, 1e17f, 1e25f};
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_INCLUSION};
    for (size_t s = 0; s < PNB_COUNT(scales); s++)
        for (size_t m = 0; m < PNB_COUNT(measures); m++) {
            gaussians q = random_gaussians(2, 16, -3, 0, 25),
                      x = random_gaussians(90, 16, -3, 0, 26);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits hits;
            o.measure = measures[m];
            for (size_t i = 0; i < 90 * 16; i++)
                x.mean[i] *= i / 16 % 2 ? scales[s] : 1.0f;
            assert_ok(pnb_search(NULL, &q.view, &x.view, &o, &hits, err));
            if (scales[s] < 1.0f || measures[m] == PNB_MEASURE_MEAN)
                expect_brute_force(&q.view, &x.view, &o, &hits);
            pnb_hits_reset(&hits);
            free_gaussians(&q);
            free_gaussians(&x);
        }
}

/* w2 between near-identical rows is far below the rounding of the f32 product. */
static void near_neighbours_of_w2(void **state)
{
    (void)state;
    gaussians q = random_gaussians(1, 24, -5, -4, 5), x = random_gaussians(40, 24, -5, -4, 6);
    for (size_t j = 0; j < 12; j++)
        for (size_t d = 0; d < 24; d++) {
            x.mean[j * 24 + d] = q.mean[d] + (d == 0 ? 1e-6f * (float)(12 - j) : 0.0f);
            x.log_var[j * 24 + d] = q.log_var[d];
        }
    pnb_search_opts o = pnb_search_opts_default();
    pnb_hits hits;
    o.measure = PNB_MEASURE_W2;
    o.k = 12;
    assert_ok(pnb_search(NULL, &q.view, &x.view, &o, &hits, err));
    expect_brute_force(&q.view, &x.view, &o, &hits);
    pnb_hits_reset(&hits);
    free_gaussians(&q);
    free_gaussians(&x);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    const size_t n_queries[] = {1, 3, 130, 300};
    gaussians q = random_gaussians(300, 20, -4, 0, 7), x = random_gaussians(2100, 20, -4, 0, 8);
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2,
                                    PNB_MEASURE_INCLUSION};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        for (size_t c = 0; c < 4; c++) {
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits first = {0};
            pnb_gaussians some = q.view;
            o.measure = measures[m];
            some.n = n_queries[c];
            for (int t = 1; t <= 5; t += 2) {
                pnb_ctx *ctx = context(t);
                pnb_hits hits;
                assert_ok(pnb_search(ctx, &some, &x.view, &o, &hits, err));
                if (t == 1) {
                    first = hits;
                } else {
                    size_t n = hits.n_queries * hits.k;
                    assert_memory_equal(hits.index, first.index, n * sizeof *hits.index);
                    assert_memory_equal(hits.score, first.score, n * sizeof *hits.score);
                    pnb_hits_reset(&hits);
                }
                pnb_ctx_free(ctx);
            }
            pnb_hits_reset(&first);
        }
    free_gaussians(&q);
    free_gaussians(&x);
}

static void ties_go_to_the_lower_index(void **state)
{
    (void)state;
    enum { N = 1600, D = 13, K = 30 };
    gaussians q = random_gaussians(2, D, -3, 0, 9), x = random_gaussians(N, D, -3, 0, 10);
    for (size_t j = 0; j < N; j++) { /* all rows equal but every 100th, which is farther */
        memcpy(x.mean + j * D, x.mean, D * sizeof(float));
        memcpy(x.log_var + j * D, x.log_var, D * sizeof(float));
        if (j % 100 == 0 && j > 0)
            x.mean[j * D] -= q.mean[0] > 0 ? 0.5f : -0.5f;
    }
    for (int m = 0; m < PNB_MEASURE_AVG_L2; m++)
        for (int t = 1; t <= 3; t++) {
            pnb_ctx *ctx = context(t);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits hits;
            o.measure = (pnb_measure)m;
            o.k = K;
            assert_ok(pnb_search(ctx, &q.view, &x.view, &o, &hits, err));
            for (size_t r = 1; r < K; r++)
                if (hits.score[r] == hits.score[r - 1])
                    assert_true(hits.index[r] > hits.index[r - 1]);
            if (m <= PNB_MEASURE_W2)
                for (size_t r = 0; r < K; r++)
                    assert_int_equal(hits.index[r], r);
            pnb_hits_reset(&hits);
            pnb_ctx_free(ctx);
        }
    free_gaussians(&q);
    free_gaussians(&x);
}

static void k_beyond_the_gallery(void **state)
{
    (void)state;
    gaussians q = random_gaussians(2, 4, -3, 0, 11), x = random_gaussians(3, 4, -3, 0, 12);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_hits hits;
    o.k = 7;
    assert_ok(pnb_search(NULL, &q.view, &x.view, &o, &hits, err));
    expect_brute_force(&q.view, &x.view, &o, &hits);
    for (size_t r = 3; r < 7; r++) {
        assert_int_equal(hits.index[r], -1);
        assert_true(isinf(hits.score[r]) && hits.score[r] < 0);
    }
    pnb_hits_reset(&hits);
    pnb_hits_reset(NULL);
    free_gaussians(&q);
    free_gaussians(&x);
}

static void prepared_index_serves_many(void **state)
{
    (void)state;
    gaussians q = random_gaussians(6, 8, -3, 0, 13), x = random_gaussians(90, 8, -3, 0, 14);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_index *index = NULL;
    assert_ok(pnb_index_create(&index, NULL, &x.view, NULL, err));
    for (size_t k = 1; k < 5; k++) {
        pnb_hits hits;
        assert_ok(pnb_index_search(index, NULL, &q.view, k, &hits, err));
        expect_brute_force(&q.view, &x.view, &o, &hits);
        pnb_hits_reset(&hits);
    }
    pnb_index_free(index);
    pnb_index_free(NULL);
    free_gaussians(&q);
    free_gaussians(&x);
}

static void point_sets(void **state)
{
    (void)state;
    gaussians q = random_gaussians(3, 8, -3, 0, 15), x = random_gaussians(90, 8, -3, 0, 16);
    const pnb_measure fine[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2};
    pnb_search_opts o = pnb_search_opts_default();
    pnb_hits hits;
    q.view.log_var = NULL;
    for (size_t m = 0; m < 3; m++) {
        o.measure = fine[m];
        assert_ok(pnb_search(NULL, &q.view, &x.view, &o, &hits, err));
        expect_brute_force(&q.view, &x.view, &o, &hits);
        pnb_hits_reset(&hits);
    }
    o.measure = PNB_MEASURE_INCLUSION;
    assert_fails(pnb_search(NULL, &q.view, &x.view, &o, &hits, err), PNB_ARG, "variances");
    free_gaussians(&q);
    free_gaussians(&x);
}

static void bad_input(void **state)
{
    (void)state;
    gaussians q = random_gaussians(300, 8, -3, 0, 17), x = random_gaussians(900, 8, -3, 0, 18);
    pnb_gaussians narrow = {.n = 3, .dim = 7, .mean = q.mean, .log_var = q.log_var},
                  none = {.n = 0, .dim = 8, .mean = q.mean, .log_var = q.log_var};
    pnb_search_opts o = pnb_search_opts_default();
    pnb_hits hits;
    assert_fails(pnb_search(NULL, &narrow, &x.view, &o, &hits, err), PNB_SHAPE, "width");
    assert_fails(pnb_search(NULL, &none, &x.view, &o, &hits, err), PNB_SHAPE, "no queries");
    assert_fails(pnb_search(NULL, &q.view, &none, &o, &hits, err), PNB_SHAPE, "empty");
    o.k = 0;
    assert_fails(pnb_search(NULL, &q.view, &x.view, &o, &hits, err), PNB_ARG, "k is 0");
    o.k = 10;
    pnb_ctx *ctx = context(2);
    x.log_var[555 * 8 + 3] = NAN;
    for (int m = 0; m < PNB_MEASURE_AVG_L2; m++) {
        if (m == PNB_MEASURE_MEAN)
            continue;
        o.measure = (pnb_measure)m;
        assert_fails(pnb_search(ctx, &q.view, &x.view, &o, &hits, err), PNB_NUMERIC,
                     "query 0 and item 555");
        assert_true(hits.index == NULL && hits.score == NULL);
    }
    o.measure = PNB_MEASURE_MEAN;
    q.mean[200 * 8] = INFINITY;
    assert_fails(pnb_search(ctx, &q.view, &x.view, &o, &hits, err), PNB_NUMERIC,
                 "query 200 and item 0");
    pnb_ctx_free(ctx);
    free_gaussians(&q);
    free_gaussians(&x);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    gaussians q = random_gaussians(3, 8, -3, 0, 19), x = random_gaussians(40, 8, -3, 0, 20);
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_KL,
                                    PNB_MEASURE_INCLUSION};
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = pnb_search_opts_default();
        pnb_status status = PNB_NOMEM;
        o.measure = measures[m];
        for (long n = 0; status != PNB_OK; n++) {
            pnb_error err = PNB_ERROR_INIT;
            pnb_hits hits;
            pnb__alloc_fail_after(n);
            status = pnb_search(NULL, &q.view, &x.view, &o, &hits, &err);
            pnb__alloc_fail_after(-1);
            assert_true(status == PNB_OK || status == PNB_NOMEM);
            assert_true(n < 100 && err.status == status);
            pnb_hits_reset(&hits);
        }
    }
    free_gaussians(&q);
    free_gaussians(&x);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(survives_scale),
        cmocka_unit_test(batches_of_every_size),
        cmocka_unit_test(closer_than_f32),
        cmocka_unit_test(huge_and_tiny_rows),
        cmocka_unit_test(near_neighbours_of_w2),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(ties_go_to_the_lower_index),
        cmocka_unit_test(k_beyond_the_gallery),
        cmocka_unit_test(prepared_index_serves_many),
        cmocka_unit_test(point_sets),
        cmocka_unit_test(bad_input),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
