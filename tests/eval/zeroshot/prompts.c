/* Prompts and classes: hand cases beside the golden ones, bad input. Filters are prompt_filter.c's.
 */
#include "penumbra/classify.h"
#include "tests/prob/support.h"

enum { DIM = 2 };

/* Class 0 has three prompts, class 1 one, class 2 two. */
static const size_t offset[] = {0, 3, 4, 6};
static const float mean[] = {1, 0, 0, 1, 0, 1, 1, 0, 0.6f, 0.8f, 0.8f, 0.6f};
static const float var[] = {0.1f, 0.1f, 0.2f, 0.2f, 0.3f, 0.5f, 1, 1, 0.4f, 0.2f, 0.5f, 0.1f};
static const pnb_prompts prompts = {
    .n_classes = 3, .dim = DIM, .offset = offset, .mean = mean, .var = var};

static void trace(double u[6])
{
    assert_ok(pnb_prompts_uncertainty(&prompts, u, err));
}

static void test_uncertainty(void **state)
{
    (void)state;
    double u[6];
    trace(u);
    const double want[] = {0.2, 0.4, 0.8, 2, 0.6, 0.6};
    for (size_t i = 0; i < 6; i++)
        assert_near(u[i], want[i], 1e-7, 0);
    float log_var[12];
    for (size_t i = 0; i < 12; i++)
        log_var[i] = logf(var[i]);
    pnb_prompts by_log = prompts;
    by_log.var = NULL;
    by_log.log_var = log_var;
    assert_ok(pnb_prompts_uncertainty(&by_log, u, err));
    for (size_t i = 0; i < 6; i++)
        assert_near(u[i], want[i], 1e-6, 0);
    by_log.log_var = NULL;
    assert_ok(pnb_prompts_uncertainty(&by_log, u, err));
    assert_true(u[3] == 0.0);
}

static void test_classes(void **state)
{
    (void)state;
    pnb_classifier c;
    const double weight[] = {.5, .25, .25, 1, 1, 0};
    const pnb_classifier_opts raw = {false, PNB_CLASS_VARIANCE_SQUARED};
    assert_ok(pnb_classifier_build(&c, &prompts, weight, NULL, err));
    assert_near(c.mean[0], sqrt(.5), 1e-12, 0); /* (.5, .5) to unit length */
    assert_near(c.var[0], .5 * .1 + .25 * .2 + .25 * .3, 1e-8, 0);
    assert_near(c.mean[2 * DIM], 0.6, 1e-7, 0);
    pnb_classifier_reset(&c);
    assert_ok(pnb_classifier_build(&c, &prompts, weight, &raw, err));
    assert_near(c.mean[0], .5, 1e-12, 0);
    assert_near(c.var[0], .25 * .1 + .0625 * .2 + .0625 * .3, 1e-8, 0);
    pnb_classifier_reset(&c);
    assert_ok(pnb_classifier_build(&c, &prompts, NULL, NULL, err));
    assert_near(c.var[1], (.1 + .2 + .5) / 3, 1e-8, 0);
    pnb_classifier_reset(&c);
}

static void test_bad_classes(void **state)
{
    (void)state;
    pnb_classifier c;
    const double negative[] = {1, -1, 0, 1, 1, 0}, empty[] = {1, 0, 0, 0, 1, 0};
    const float opposed[] = {1, 0, -1, 0};
    const size_t both[] = {0, 2};
    const pnb_prompts cancel = {.n_classes = 1, .dim = DIM, .offset = both, .mean = opposed},
                      none = {.n_classes = 0, .dim = DIM, .offset = both, .mean = opposed};
    assert_fails(pnb_classifier_build(&c, &prompts, negative, NULL, err), PNB_ARG, "prompt 1");
    assert_fails(pnb_classifier_build(&c, &prompts, empty, NULL, err), PNB_ARG, "class 1");
    assert_fails(pnb_classifier_build(&c, &cancel, NULL, NULL, err), PNB_NUMERIC, "length 0");
    assert_fails(pnb_classifier_build(&c, &none, NULL, NULL, err), PNB_SHAPE, "0 classes");
    assert_null(c.mean);
}

static void test_sphere(void **state)
{
    (void)state;
    const float kappa[] = {2, 4, 4, 10, 1, 3};
    pnb_prompts sphere = prompts;
    pnb_classifier c;
    double u[6];
    sphere.var = NULL;
    sphere.kappa = kappa;
    assert_ok(pnb_prompts_uncertainty(&sphere, u, err));
    assert_near(u[3], .1, 1e-8, 0);
    assert_ok(pnb_classifier_build(&c, &sphere, NULL, NULL, err));
    /* (2, 0), (0, 4), (0, 4) over 3 */
    assert_near(c.kappa[0], sqrt(4 + 64) / 3, 1e-7, 0);
    assert_near(c.mean[0], 2 / sqrt(68), 1e-7, 0);
    assert_near(c.kappa[1], 10, 1e-7, 0);
    assert_true(c.var[0] == 0.0);
    pnb_classifier_reset(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uncertainty), cmocka_unit_test(test_classes),
        cmocka_unit_test(test_bad_classes), cmocka_unit_test(test_sphere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
