/* Which prompts of a class count: every filter by hand, fallbacks, ties, names, and what is
 * refused. */
#include "penumbra/classify.h"
#include "tests/prob/support.h"

/* Class 0 has three prompts, class 1 one, class 2 two. */
static const size_t offset[] = {0, 3, 4, 6};

static void expect_weights(pnb_prompt_filter filter, double value, const double want[6])
{
    const double u[6] = {.2, .4, .8, 2, .6, .6}; /* exact ties */
    double weight[6];
    assert_ok(pnb_prompts_filter(filter, value, offset, 3, u, weight, err));
    for (size_t i = 0; i < 6; i++)
        assert_near(weight[i], want[i], 1e-15, 0);
}

static void test_filters(void **state)
{
    (void)state;
    const double third = 1.0 / 3;
    expect_weights(PNB_FILTER_PROMPTS_NONE, NAN, (double[]){third, third, third, 1, .5, .5});
    /* mean 0.4667, unbiased std 0.3055: the biased one, 0.2494, would let 0.8 in at 1.2 */
    expect_weights(PNB_FILTER_PROMPTS_CLASS_STD, 1.2, (double[]){third, third, third, 1, .5, .5});
    expect_weights(PNB_FILTER_PROMPTS_CLASS_STD, 1.05, (double[]){.5, .5, 0, 1, .5, .5});
    expect_weights(PNB_FILTER_PROMPTS_CLASS_STD, -9, (double[]){1, 0, 0, 1, .5, .5});
    expect_weights(PNB_FILTER_PROMPTS_TOP_K, 1, (double[]){1, 0, 0, 1, 1, 0}); /* the lower row */
    expect_weights(PNB_FILTER_PROMPTS_TOP_K, 99, (double[]){third, third, third, 1, .5, .5});
    expect_weights(PNB_FILTER_PROMPTS_GLOBAL_TOP, 2, (double[]){.5, .5, 0, 1, .5, .5});
    expect_weights(PNB_FILTER_PROMPTS_GLOBAL_TOP, 1e9, (double[]){third, third, third, 1, .5, .5});
    expect_weights(PNB_FILTER_PROMPTS_GLOBAL, 0.3, (double[]){1, 0, 0, 1, .5, .5});
}

static void test_filter_names(void **state)
{
    (void)state;
    pnb_prompt_filter filter;
    assert_ok(pnb_prompt_filter_parse(&filter, "class_std", err));
    assert_int_equal(filter, PNB_FILTER_PROMPTS_CLASS_STD);
    assert_string_equal(pnb_prompt_filter_name(filter), "class_std");
    assert_string_equal(pnb_prompt_filter_name((pnb_prompt_filter)99), "unknown");
    assert_fails(pnb_prompt_filter_parse(&filter, "std", err), PNB_NOT_FOUND, "class_std, top_k");
}

static void test_bad_filters(void **state)
{
    (void)state;
    double u[6] = {.2, .4, .8, 2, .6, .6}, weight[6];
    const size_t empty[] = {0, 2, 2, 6}, none_kept[] = {1, 0, 1};
    assert_fails(pnb_prompts_filter(PNB_FILTER_PROMPTS_TOP_K, 0, offset, 3, u, weight, err),
                 PNB_ARG, "1 or more");
    assert_fails(pnb_prompts_filter(PNB_FILTER_PROMPTS_TOP_K, 1.5, offset, 3, u, weight, err),
                 PNB_ARG, "1.5");
    assert_fails(pnb_prompts_filter(PNB_FILTER_PROMPTS_GLOBAL, NAN, offset, 3, u, weight, err),
                 PNB_ARG, "finite");
    assert_fails(pnb_prompts_filter(PNB_FILTER_PROMPTS_NONE, 0, empty, 3, u, weight, err),
                 PNB_SHAPE, "class 1");
    assert_fails(pnb_prompts_top_k(none_kept, offset, 3, u, weight, err), PNB_ARG, "class 1");
    u[4] = NAN;
    assert_fails(pnb_prompts_filter(PNB_FILTER_PROMPTS_NONE, 0, offset, 3, u, weight, err),
                 PNB_NUMERIC, "prompt 4");
}

/* A number of its own for each class; ties are cut at the lower row. */
static void test_top_k(void **state)
{
    (void)state;
    const double u[] = {.8, .2, .4, 2, .6, .6};
    const size_t k[] = {2, 5, 1};
    const double want[] = {0, .5, .5, 1, 1, 0};
    double weight[6];
    assert_ok(pnb_prompts_top_k(k, offset, 3, u, weight, err));
    for (size_t i = 0; i < 6; i++)
        assert_near(weight[i], want[i], 1e-15, 0);
    assert_fails(pnb_prompts_top_k(k, offset, 0, u, weight, err), PNB_SHAPE, "no class");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_filter_names),
        cmocka_unit_test(test_bad_filters),
        cmocka_unit_test(test_top_k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
