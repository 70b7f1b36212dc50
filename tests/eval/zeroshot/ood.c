/* None of the above: scores by every rule, fitted thresholds at their edges, figures by hand.
 */
#include "penumbra/classify.h"
#include "tests/prob/support.h"

static void test_rules(void **state)
{
    (void)state;
    int32_t top[] = {0, 1, 1, 0};
    double score[] = {.9, .1, .5, .4}, probability[] = {.8, .2, .6, .4};
    double odds[] = {-2, .5}, out[2];
    const double u[] = {.1, .3};
    pnb_predictions p = {2, 2, 2, top, score, probability, NULL, odds};
    const struct {
        const char *name;
        double want[2];
    } cases[] = {{"dummy", {-2, .5}},
                 {"margin", {.4, .8}},
                 {"threshold", {.2, .4}},
                 {"score", {-.9, -.5}},
                 {"uncertainty", {.1, .3}}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_none_rule rule = (pnb_none_rule)i;
        assert_string_equal(pnb_none_rule_name(rule), cases[i].name);
        assert_ok(pnb_ood_score(rule, &p, u, out, err));
        assert_near(out[0], cases[i].want[0], 1e-15, 0);
        assert_near(out[1], cases[i].want[1], 1e-15, 0);
    }
    assert_fails(pnb_ood_score(PNB_NONE_UNCERTAINTY, &p, NULL, out, err), PNB_ARG,
                 "uncertainty is missing");
    odds[1] = NAN;
    assert_fails(pnb_ood_score(PNB_NONE_DUMMY, &p, NULL, out, err), PNB_ARG, "dummy");
    p.n_classes = 1;
    assert_fails(pnb_ood_score(PNB_NONE_MARGIN, &p, NULL, out, err), PNB_ARG, "two best");
}

static size_t n_above(const double *x, size_t n, double threshold)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += x[i] > threshold;
    return count;
}

static void test_thresholds(void **state)
{
    (void)state;
    const double x[] = {5, 1, 4, 2, 3, 3, 0, 9, 8, 7}; /* 0 1 2 3 3 4 5 7 8 9 */
    double t;
    assert_ok(pnb_none_fit_rejected(x, 10, 0, &t, err));
    assert_true(t == 9);
    assert_ok(pnb_none_fit_rejected(x, 10, 0.3, &t, err));
    assert_int_equal(n_above(x, 10, t), 3);
    assert_ok(pnb_none_fit_rejected(x, 10, 0.65, &t, err)); /* the tie at 3 is not split */
    assert_int_equal(n_above(x, 10, t), 5);
    assert_ok(pnb_none_fit_rejected(x, 10, 1, &t, err));
    assert_int_equal(n_above(x, 10, t), 10);
    assert_ok(pnb_none_fit_accepted(x, 10, 0, &t, err));
    assert_int_equal(n_above(x, 10, t), 10);
    assert_ok(pnb_none_fit_accepted(x, 10, 0.3, &t, err));
    assert_int_equal(10 - n_above(x, 10, t), 3);
    assert_ok(pnb_none_fit_accepted(x, 10, 0.4, &t, err));
    assert_int_equal(10 - n_above(x, 10, t), 3);
    assert_ok(pnb_none_fit_accepted(x, 10, 1, &t, err));
    assert_int_equal(10 - n_above(x, 10, t), 10);
    assert_fails(pnb_none_fit_rejected(x, 0, 0.1, &t, err), PNB_ARG, "no pictures");
    assert_fails(pnb_none_fit_accepted(x, 10, 1.1, &t, err), PNB_ARG, "1.1");
    const double bad[] = {1, NAN};
    assert_fails(pnb_none_fit_accepted(bad, 2, .5, &t, err), PNB_NUMERIC, "picture 1");
}

static void test_figures(void **state)
{
    (void)state;
    /* Positives 1..20, negatives 10.5, 19.5, 30, 40. 95% of the positives are at most 19. */
    double positive[20];
    bool is_right[20];
    const double negative[] = {10.5, 19.5, 30, 40};
    pnb_none_figures f;
    for (size_t i = 0; i < 20; i++) {
        positive[i] = (double)i + 1;
        is_right[i] = i % 2 == 0;
    }
    assert_ok(pnb_none_compute(positive, is_right, 20, negative, 4, 15, &f, err));
    assert_near(f.positive_rejected, .25, 1e-15, 0);
    assert_near(f.positive_accuracy, 8.0 / 20, 1e-15, 0); /* 1, 3, ..., 15 */
    assert_near(f.negative_accuracy, .75, 1e-15, 0);
    assert_near(f.fpr95, .25, 1e-15, 0);
    assert_near(f.auroc, (10 + 19 + 20 + 20) / 80.0, 1e-12, 0);
    assert_fails(pnb_none_compute(positive, is_right, 20, negative, 0, 15, &f, err), PNB_ARG,
                 "0 of none");
    assert_fails(pnb_none_compute(positive, is_right, 20, negative, 4, NAN, &f, err), PNB_ARG,
                 "threshold");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_thresholds),
                                       cmocka_unit_test(test_figures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
