/* Intervals that hold the truth as often as they say, and tests that reject a true null as seldom:
 * small simulations of what bench/intervals.c does at length, and the parts intervals are made of.
 *
 * The bounds leave four standard deviations of a simulation for coverage of 95% and rejection of
 * 5%; captions that count as independent are far outside of them, which is asserted too. */
#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "eval/resample/student.h"
#include "tests/eval/resample/clustered_world.h"
#include "tests/eval/resample/forecaster.h"
#include "tests/prob/support.h"

enum { TRIALS = 100, RESAMPLES = 120 };
static const pnb_bootstrap_opts BOOT = {.n_resamples = RESAMPLES, .level = 0.95, .seed = 3};

static const size_t LOOKED_AT[] = {0,
                                   1,
                                   2,
                                   WORLD_RECALLS + PNB_FIGURE_MAP_AT_R,
                                   WORLD_RECALLS + PNB_FIGURE_QUERY_SPEARMAN,
                                   WORLD_RECALLS + PNB_FIGURE_AUROC,
                                   WORLD_RECALLS + PNB_FIGURE_AURC,
                                   WORLD_RECALLS + PNB_FIGURE_AUGRC,
                                   WORLD_RECALLS + PNB_FIGURE_NLPD,
                                   WORLD_RSUM};

static world_counts try_worlds(const world_opts *o, bool with_clusters)
{
    double truth[WORLD_N];
    world_counts c = {.n = 0};
    assert_ok(world_truth(o, 5, truth, err));
    for (uint64_t r = 0; r < TRIALS; r++)
        assert_ok(world_try(o, r, with_clusters, &BOOT, truth, &c, err));
    return c;
}

static void expect_honest(const world_opts *o)
{
    const world_counts c = try_worlds(o, true);
    for (size_t i = 0; i < PNB_COUNT(LOOKED_AT); i++) {
        double covered = c.covered[LOOKED_AT[i]] / (double)c.n;
        double rejected = c.rejected[LOOKED_AT[i]] / (double)c.n;
        if (covered < 0.87 || rejected > 0.13)
            fail_msg("%zu captions, figure %zu: covers %.3f, rejects %.3f", o->captions,
                     LOOKED_AT[i], covered, rejected);
    }
}

static void one_to_ten_captions(void **state)
{
    (void)state;
    static const size_t captions[] = {5, 0};
    for (size_t i = 0; i < PNB_COUNT(captions); i++) {
        const world_opts o = {30, captions[i], 0.6, 0.0};
        expect_honest(&o);
    }
}

/* What this is all for: captions drawn one by one are told apart by the same bounds. */
static void independent_captions_are_rejected(void **state)
{
    (void)state;
    const world_opts o = {30, 5, 0.9, 0.0};
    const world_counts c = try_worlds(&o, false);
    static const size_t figures[] = {0, WORLD_RECALLS + PNB_FIGURE_MAP_AT_R, WORLD_RSUM};
    for (size_t i = 0; i < PNB_COUNT(figures); i++)
        if (c.covered[figures[i]] / (double)c.n >= 0.85)
            fail_msg("figure %zu: covers %.3f", figures[i], c.covered[figures[i]] / (double)c.n);
}

static void calibration_error(void **state)
{
    (void)state;
    static const forecaster_case cases[] = {{PERFECT, 200, 1},  {PERFECT, 200, 5},
                                            {TOO_HIGH, 200, 1}, {TOO_SURE, 1000, 1},
                                            {POWER, 200, 5},    {HIGH_END, 400, 5}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        forecaster_counts c = {0};
        double truth = forecaster_error(cases[i].forecaster);
        for (uint64_t r = 0; r < TRIALS; r++)
            assert_ok(forecaster_try(&cases[i], r, &BOOT, &c, err));
        if (c.covered / c.n < 0.87 || c.contains != c.n)
            fail_msg("case %zu: covers %.3f", i, c.covered / c.n);
        /* nearer to the truth than the plug-in, which is far off for a perfect forecaster */
        assert_true(fabs(c.estimate / c.n - truth) < fabs(c.plug_in / c.n - truth) + 0.012);
        if (cases[i].forecaster == PERFECT) {
            assert_true(c.zero / c.n > 0.35);
            assert_true(c.estimate < 0.5 * c.plug_in);
        }
    }
}

static void certain_and_right(void **state)
{
    (void)state;
    const double p[] = {1, 0, 1, 1, 0, 1}, right[] = {1, 0, 1, 1, 0, 1},
                 wrong[] = {0, 1, 0, 0, 1, 0};
    const double nan[] = {1, NAN, 1, 1, 0, 1};
    pnb_interval i;
    assert_ok(pnb_ece_debiased(p, right, 6, NULL, &i, err));
    assert_true(i.value == 0.0 && i.low == 0.0 && i.high == 0.0);
    assert_ok(pnb_ece_debiased(p, wrong, 6, NULL, &i, err));
    assert_true(i.low <= i.value && i.value <= i.high && i.high <= 1.0);
    assert_ok(pnb_ece_debiased(p, wrong, 1, NULL, &i, err));
    assert_true(isnan(i.low) && isnan(i.high));
    assert_fails(pnb_ece_debiased(p, nan, 6, NULL, &i, err), PNB_NUMERIC, "confidence 1");
    assert_fails(pnb_ece_debiased(p, right, 0, NULL, &i, err), PNB_ARG, "no forecasts");
}

/* ---- parts ---- */

static void student_and_normal(void **state)
{
    (void)state;
    assert_near(pnb__normal_quantile(0.975), 1.959963984540054, 1e-12, 0);
    assert_near(pnb__normal_quantile(1e-10), -6.361340902404056, 1e-9, 0);
    assert_near(pnb__student_quantile(0.975, 1), 12.706204736432095, 0, 1e-9);
    assert_near(pnb__student_quantile(0.975, 4), 2.7764451051977987, 0, 1e-9);
    assert_near(pnb__student_quantile(0.025, 30), -2.0422724563012373, 0, 1e-9);
    assert_near(pnb__student_quantile(0.975, 1e7), 1.959963984540054, 0, 1e-6);
    assert_near(pnb__student_cdf(0.0, 7), 0.5, 1e-14, 0);
    assert_near(pnb__student_cdf(1.0, 1), 0.75, 1e-12, 0);
    assert_near(pnb__interval_reach(0.95, 5, 1), sqrt(5.0 / 4.0) * 2.7764451051977987, 0, 1e-9);
}

static void draws_and_groups(void **state)
{
    (void)state;
    const int64_t label[] = {7, -2, 7, 9, -2, 7};
    uint32_t weight[6];
    pnb__clusters c;
    assert_ok(pnb__clusters_init(&c, label, 6, err));
    assert_int_equal(c.n, 3);
    const size_t rows[] = {0, 2, 5, 1, 4, 3}, offsets[] = {0, 3, 5, 6};
    assert_memory_equal(c.row, rows, sizeof rows);
    assert_memory_equal(c.offset, offsets, sizeof offsets);
    for (size_t r = 0; r < 20; r++) {
        pnb__clusters_draw(&c, 4, r, weight);
        assert_true(weight[0] == weight[2] && weight[2] == weight[5] && weight[1] == weight[4]);
        assert_int_equal(weight[0] + weight[1] + weight[3], 3);
    }
    assert_int_equal(pnb__clusters_groups(&c), 3);
    pnb__clusters_leave_out(&c, 1, weight);
    const uint32_t without[] = {1, 0, 1, 1, 0, 1};
    assert_memory_equal(weight, without, sizeof without);
    pnb__clusters_reset(&c);
}

/* 0-1-2 share caption 0 through a chain; 3 and its captions; 4 has none. */
static void what_pairs_connect(void **state)
{
    (void)state;
    const int64_t pairs[] = {2, 1, 0, 0, 1, 0, 1, 1, 3, 4, 3, 2};
    int64_t query[5], item[6];
    size_t n;
    pnb_truth *truth = NULL;
    assert_ok(pnb_truth_create_pairs(&truth, 5, 6, pairs, 6, err));
    assert_ok(pnb_truth_clusters(truth, query, item, &n, err));
    assert_int_equal(n, 2);
    assert_true(query[0] == query[1] && query[1] == query[2] && query[0] == item[0]);
    assert_true(item[1] == query[0] && query[3] == item[4] && item[4] == item[2]);
    assert_true(query[3] != query[0] && query[4] != query[3] && query[4] != query[0]);
    assert_true(item[3] != item[5] && item[3] > query[4]);
    pnb_truth_free(truth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_to_ten_captions), cmocka_unit_test(independent_captions_are_rejected),
        cmocka_unit_test(calibration_error),   cmocka_unit_test(certain_and_right),
        cmocka_unit_test(student_and_normal),  cmocka_unit_test(draws_and_groups),
        cmocka_unit_test(what_pairs_connect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
