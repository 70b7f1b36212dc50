/* All pairs above a limit, and a set against itself, beside brute force over pair scores. */
#include "penumbra/search.h"
#include "tests/prob/support.h"

static pnb_ctx *context(int n_threads)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = n_threads;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    return ctx;
}

static double pair_score(const pnb_search_opts *o, const pnb_gaussians *q, size_t i,
                         const pnb_gaussians *x, size_t j)
{
    double value = pnb_measure_pair(o->measure, q, i, x, j, &o->measure_opts);
    return pnb_measure_score(o->measure, value);
}

/* A limit with a margin around it, so that rounding decides no pair: between two scores. */
static double limit_among(const pnb_search_opts *o, const pnb_gaussians *q, const pnb_gaussians *x,
                          double share)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t j = 0; j < x->n; j++) {
        double s = pair_score(o, q, 0, x, j);
        low = fmin(low, s);
        high = fmax(high, s);
    }
    return high - share * (high - low) + 1.23456e-7;
}

static double *all_scores(const pnb_search_opts *o, const pnb_gaussians *q, const pnb_gaussians *x)
{
    double *score = malloc(q->n * x->n * sizeof *score);
    assert_non_null(score);
    for (size_t i = 0; i < q->n; i++)
        for (size_t j = 0; j < x->n; j++)
            score[i * x->n + j] = pair_score(o, q, i, x, j);
    return score;
}

static void expect_pairs(const double *score, const pnb_gaussians *q, const pnb_gaussians *x,
                         double limit, bool self, const pnb_pairs *got)
{
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        for (size_t j = self ? i + 1 : 0; j < x->n; j++)
            n += score[i * x->n + j] >= limit;
    assert_int_equal(got->n, n);
    for (size_t p = 0; p < got->n; p++) {
        size_t i = (size_t)got->query[p], j = (size_t)got->item[p];
        assert_true(i < q->n && j < x->n && (!self || i < j));
        assert_near(got->score[p], score[i * x->n + j], 1e-12, 1e-11);
        assert_true(got->score[p] >= limit);
        if (p == 0 || got->query[p - 1] != got->query[p]) {
            assert_true(p == 0 || got->query[p - 1] < got->query[p]);
            continue;
        }
        assert_true(got->score[p - 1] > got->score[p] ||
                    (got->score[p - 1] == got->score[p] && got->item[p - 1] < got->item[p]));
    }
}

/* self: q is x, joined with itself. */
static void check_threads(const pnb_search_opts *o, const pnb_gaussians *q, const pnb_gaussians *x,
                          double share, const double *score)
{
    bool self = q == x;
    for (int t = 1; t <= 3; t++) {
        pnb_ctx *ctx = context(t);
        pnb_range_opts range = pnb_range_opts_default();
        pnb_index *index = NULL;
        pnb_pairs pairs;
        range.min_score = limit_among(o, q, x, share);
        assert_ok(pnb_index_create(&index, ctx, x, o, err));
        if (self)
            assert_ok(pnb_index_self_join(index, ctx, &range, &pairs, err));
        else
            assert_ok(pnb_index_range(index, ctx, q, &range, &pairs, err));
        expect_pairs(score, q, x, range.min_score, self, &pairs);
        bool found = !self;
        for (size_t p = 0; p < pairs.n; p++)
            found = found || (pairs.query[p] == 3 && pairs.item[p] == 1000);
        assert_true(found);
        pnb_pairs_reset(&pairs);
        pnb_index_free(index);
        pnb_ctx_free(ctx);
    }
}

static void equals_brute_force(void **state)
{
    (void)state;
    const double shares[] = {0.02, 0.3, 1.1};
    gaussians q = random_gaussians(40, 20, -4, 0, 1), x = random_gaussians(700, 20, -4, 0, 2);
    for (int m = 0; m < PNB_MEASURE_AVG_L2; m++) {
        pnb_search_opts o = pnb_search_opts_default();
        o.measure = (pnb_measure)m;
        double *score = all_scores(&o, &q.view, &x.view);
        for (size_t s = 0; s < 3; s++)
            check_threads(&o, &q.view, &x.view, shares[s], score);
        free(score);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

/* The limit belongs to what is found: a pair whose score it is, to the bit, and none below. */
static void limit_is_a_score(void **state)
{
    (void)state;
    gaussians q = random_gaussians(6, 20, -4, 0, 1), x = random_gaussians(150, 20, -4, 0, 2);
    for (int m = 0; m < PNB_MEASURE_AVG_L2; m++) {
        pnb_search_opts o = pnb_search_opts_default();
        pnb_range_opts range = pnb_range_opts_default();
        pnb_index *index = NULL;
        pnb_pairs all, some;
        o.measure = (pnb_measure)m;
        range.min_score = -1e9;
        assert_ok(pnb_index_create(&index, NULL, &x.view, &o, err));
        assert_ok(pnb_index_range(index, NULL, &q.view, &range, &all, err));
        assert_true(all.n > 20);
        for (size_t p = 0; p < all.n; p += all.n / 20) {
            size_t n = 0;
            range.min_score = all.score[p];
            for (size_t i = 0; i < all.n; i++)
                n += all.score[i] >= range.min_score;
            assert_ok(pnb_index_range(index, NULL, &q.view, &range, &some, err));
            if (some.n != n)
                fail_msg("%s: %zu pairs from %.17g on, %zu expected", pnb_measure_name(o.measure),
                         some.n, range.min_score, n);
            pnb_pairs_reset(&some);
        }
        pnb_pairs_reset(&all);
        pnb_index_free(index);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

static void joins_a_set_with_itself(void **state)
{
    (void)state;
    const pnb_measure measures[] = {PNB_MEASURE_MEAN, PNB_MEASURE_CSD, PNB_MEASURE_W2,
                                    PNB_MEASURE_BHATTACHARYYA};
    gaussians x = random_gaussians(1030, 12, -6, -4, 3);
    memcpy(x.mean + 1000 * 12, x.mean + 3 * 12, 12 * sizeof(float)); /* twins, far apart */
    memcpy(x.log_var + 1000 * 12, x.log_var + 3 * 12, 12 * sizeof(float));
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = pnb_search_opts_default();
        o.measure = measures[m];
        double *score = all_scores(&o, &x.view, &x.view);
        check_threads(&o, &x.view, &x.view, 0.3, score);
        free(score);
    }
    free_gaussians(&x);
}

static void probabilities(void **state)
{
    (void)state;
    const double p[] = {1e-9, 0.01, 0.5, 0.97, 1 - 1e-9};
    for (size_t i = 0; i < PNB_COUNT(p); i++) {
        double score = pnb_score_of_probability(p[i], 12.5, -3.25);
        assert_near(pnb_match_probability(score, 12.5, -3.25), p[i], 0, 1e-9);
    }
    assert_true(isinf(pnb_score_of_probability(0.0, 2, 1)));
    assert_true(pnb_score_of_probability(0.0, 2, 1) < 0);
    assert_true(pnb_score_of_probability(1.0, 2, 1) > 0);
}

static void bad_input(void **state)
{
    (void)state;
    gaussians x = random_gaussians(300, 8, -3, 0, 4), q = random_gaussians(5, 8, -3, 0, 5);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_range_opts range = {.min_score = -1e9, .max_pairs = 1000};
    pnb_gaussians narrow = {.n = 5, .dim = 7, .mean = q.mean, .log_var = q.log_var};
    pnb_index *index = NULL;
    pnb_pairs pairs;
    for (int t = 1; t <= 2; t++) {
        pnb_ctx *ctx = context(t);
        assert_ok(pnb_index_create(&index, ctx, &x.view, &o, err));
        assert_fails(pnb_index_range(index, ctx, &q.view, &range, &pairs, err), PNB_ARG,
                     "more than 1000 pairs");
        assert_true(pairs.n == 0 && pairs.query == NULL && pairs.score == NULL);
        range.max_pairs = 1500;
        assert_ok(pnb_index_range(index, ctx, &q.view, &range, &pairs, err));
        assert_int_equal(pairs.n, 1500);
        pnb_pairs_reset(&pairs);
        range.max_pairs = 1000;
        assert_fails(pnb_index_self_join(index, ctx, &range, &pairs, err), PNB_ARG, "more than");
        assert_fails(pnb_index_range(index, ctx, &narrow, NULL, &pairs, err), PNB_SHAPE, "width");
        pnb_index_free(index);
        pnb_ctx_free(ctx);
    }
    assert_ok(pnb_index_create(&index, NULL, &x.view, &o, err));
    range.min_score = NAN;
    assert_fails(pnb_index_range(index, NULL, &q.view, &range, &pairs, err), PNB_ARG,
                 "not a number");
    range.min_score = INFINITY;
    assert_ok(pnb_index_range(index, NULL, &q.view, &range, &pairs, err));
    assert_int_equal(pairs.n, 0);
    pnb_pairs_reset(&pairs);
    pnb_pairs_reset(NULL);
    q.mean[8 * 3] = NAN;
    assert_fails(pnb_index_range(index, NULL, &q.view, NULL, &pairs, err), PNB_NUMERIC,
                 "query 3 and item 0");
    pnb_index_free(index);
    o.measure = PNB_MEASURE_KL;
    assert_ok(pnb_index_create(&index, NULL, &x.view, &o, err));
    assert_fails(pnb_index_self_join(index, NULL, NULL, &pairs, err), PNB_ARG, "symmetric");
    pnb_index_free(index);
    free_gaussians(&x);
    free_gaussians(&q);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    gaussians x = random_gaussians(40, 8, -3, 0, 6);
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_JEFFREYS};
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = pnb_search_opts_default();
        pnb_range_opts range = {.min_score = -1e9, .max_pairs = 5000};
        pnb_status status = PNB_NOMEM;
        o.measure = measures[m];
        for (long n = 0; status != PNB_OK; n++) {
            pnb_error err = PNB_ERROR_INIT;
            pnb_index *index = NULL;
            pnb_pairs pairs = {0};
            pnb__alloc_fail_after(n);
            status = pnb_index_create(&index, NULL, &x.view, &o, &err);
            if (status == PNB_OK)
                status = pnb_index_self_join(index, NULL, &range, &pairs, &err);
            pnb__alloc_fail_after(-1);
            assert_true(status == PNB_OK || status == PNB_NOMEM);
            assert_true(n < 100 && err.status == status);
            pnb_pairs_reset(&pairs);
            pnb_index_free(index);
        }
    }
    free_gaussians(&x);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(limit_is_a_score),
        cmocka_unit_test(joins_a_set_with_itself),
        cmocka_unit_test(probabilities),
        cmocka_unit_test(bad_input),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
