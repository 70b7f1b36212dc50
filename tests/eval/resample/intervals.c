/* Intervals that hold the truth as often as they say, and tests that reject a true null as seldom:
 * small simulations of what bench/intervals.c does at length. Their parts have tests of their
 * names.
 *
 * The bounds leave four standard deviations of a simulation for coverage of 95% and rejection of
 * 5%; captions that count as independent are far outside of them, which is asserted too. */
#include "tests/eval/resample/clustered_world.h"
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
            fail_msg("%zu captions, figure %zu: covers %.3f, rejects %.3f", o->texts, LOOKED_AT[i],
                     covered, rejected);
    }
}

static void one_to_ten_texts(void **state)
{
    (void)state;
    static const size_t texts[] = {5, 0};
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        const world_opts o = {30, texts[i], 0.6, 0.0};
        expect_honest(&o);
    }
}

/* What this is all for: captions drawn one by one are told apart by the same bounds. */
static void independent_texts_are_rejected(void **state)
{
    (void)state;
    const world_opts o = {30, 5, 0.9, 0.0};
    const world_counts c = try_worlds(&o, false);
    static const size_t figures[] = {0, WORLD_RECALLS + PNB_FIGURE_MAP_AT_R, WORLD_RSUM};
    for (size_t i = 0; i < PNB_COUNT(figures); i++)
        if (c.covered[figures[i]] / (double)c.n >= 0.85)
            fail_msg("figure %zu: covers %.3f", figures[i], c.covered[figures[i]] / (double)c.n);
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
        cmocka_unit_test(one_to_ten_texts),
        cmocka_unit_test(independent_texts_are_rejected),
        cmocka_unit_test(what_pairs_connect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
