/* EM for the mixing weights of fixed Gaussians: against the equations step by step, where the
 * answer is known, where it ends, and what is refused. */
#include "tests/eval/zeroshot/slow_em.h"

enum { POINTS = 30, COMPONENTS = 7, DIM = 5 };

static void expect_slow(double alpha, double spread, size_t n_steps)
{
    double points[POINTS * DIM], mean[COMPONENTS * DIM], var[COMPONENTS * DIM];
    double got[COMPONENTS], want[COMPONENTS];
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 6);
    for (size_t i = 0; i < PNB_COUNT(mean); i++) {
        mean[i] = spread * pnb__rng_normal(&rng);
        var[i] = 0.01 + pnb__rng_uniform(&rng);
    }
    for (size_t i = 0; i < PNB_COUNT(points); i++)
        points[i] = spread * pnb__rng_normal(&rng);
    pnb_em_opts o = pnb_em_opts_default();
    o.alpha = alpha;
    o.max_steps = 0;
    const pnb_em_data x = {POINTS, COMPONENTS, DIM, points, mean, var};
    assert_ok(pnb_em_mixing_weights(&x, &o, want, NULL, err));
    slow_em(&x, &o, n_steps, want);
    o.max_steps = n_steps;
    o.tolerance = 0;
    assert_ok(pnb_em_mixing_weights(&x, &o, got, NULL, err));
    for (size_t i = 0; i < COMPONENTS; i++)
        assert_near(got[i], want[i], 1e-12, 1e-9);
}

static void test_against_slow(void **state)
{
    (void)state;
    expect_slow(5, 1, 100);
    expect_slow(1, 1, 200);
    expect_slow(0.5, 1, 50);    /* components die */
    expect_slow(0.05, 30, 100); /* likelihoods far below the smallest double */
}

static void test_em_known(void **state)
{
    (void)state;
    /* Two components far apart, three points at the one and one at the other: (3, 1) / 4. */
    const double points[] = {10, 10, 10, -10}, mean[] = {10, -10}, var[] = {1, 4};
    const pnb_em_data x = {4, 2, 1, points, mean, var};
    pnb_em_opts o = pnb_em_opts_default();
    double pi[2];
    size_t n_steps;
    o.alpha = 1;
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, &n_steps, err));
    assert_near(pi[0], .75, 1e-12, 0);
    assert_true(n_steps < 10);
    o.alpha = 3; /* (3 + 2, 1 + 2) / 8 */
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err));
    assert_near(pi[0], .625, 1e-12, 0);
    o.max_steps = 0;
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err));
    assert_near(pi[0], .8, 1e-12, 0); /* 1/1 against 1/4 */
    o.prior = PNB_EM_UNIFORM;
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err));
    assert_near(pi[0], .5, 1e-15, 0);
}

static void test_em_ends(void **state)
{
    (void)state;
    const double points[] = {1}, mean[] = {1, 1}, var[] = {0, 0};
    pnb_em_opts o = pnb_em_opts_default();
    double pi[2];
    pnb_em_data x = {1, 2, 1, points, mean, var};
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err)); /* points as prompts: equal weights */
    assert_near(pi[0], .5, 1e-15, 0);
    o.alpha = 0.1; /* 1/2 - 0.9 < 0 for both: nothing would be left, the weights stay */
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err));
    assert_near(pi[0] + pi[1], 1, 1e-15, 0);
    x.n_points = 0;
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err));
    assert_near(pi[1], .5, 1e-15, 0);
}

/* Two components share a point and both die of it; those that are left are so far that their
 * likelihoods are 0 as doubles, and the nearer one takes the point still. */
static void test_em_far(void **state)
{
    (void)state;
    const double points[] = {0, 100, 100, 200, 200}, mean[] = {0, 0, 100, 200};
    const double var[] = {1, 1, 1, 1};
    const pnb_em_data x = {5, 4, 1, points, mean, var};
    pnb_em_opts o = pnb_em_opts_default();
    double pi[4];
    o.alpha = 0.4; /* 1/2 + 0.4 - 1 < 0 */
    assert_ok(pnb_em_mixing_weights(&x, &o, pi, NULL, err));
    assert_true(pi[0] == 0 && pi[1] == 0);
    assert_near(pi[2], (3 + 0.4 - 1) / (3 + 2 + 2 * (0.4 - 1)), 0, 1e-12);
}

static void test_em_bad(void **state)
{
    (void)state;
    const double bad[] = {NAN}, points[] = {1}, mean[] = {1}, var[] = {0};
    pnb_em_opts o = pnb_em_opts_default();
    double pi[1];
    pnb_em_data x = {1, 1, 1, bad, mean, var};
    assert_fails(pnb_em_mixing_weights(&x, &o, pi, NULL, err), PNB_NUMERIC, "point 0");
    x.points = points;
    o.alpha = 0;
    assert_fails(pnb_em_mixing_weights(&x, &o, pi, NULL, err), PNB_ARG, "alpha");
    o.alpha = 1;
    o.eps = -1;
    assert_fails(pnb_em_mixing_weights(&x, &o, pi, NULL, err), PNB_ARG, "eps");
    o.eps = 0;
    assert_fails(pnb_em_mixing_weights(&x, &o, pi, NULL, err), PNB_NUMERIC, "variance 0");
    x.n_components = 0;
    assert_fails(pnb_em_mixing_weights(&x, &o, pi, NULL, err), PNB_SHAPE, "0 components");
}

/* First weights go with the precision, to the power that was asked for; without a point they stay.
 */
static void test_priors(void **state)
{
    (void)state;
    const double mean[] = {0, 0, 0, 0}, var[] = {1, 1, 2, 4}; /* means of variances 1 and 3 */
    const pnb_em_data x = {.n_components = 2, .dim = 2, .mean = mean, .var = var};
    static const struct {
        pnb_em_prior prior;
        double ratio; /* of the first weight to the second */
    } cases[] = {{PNB_EM_UNIFORM, 1},
                 {PNB_EM_INVERSE, 3},
                 {PNB_EM_INVERSE_SQ, (4 + 16) / 2.0},
                 {PNB_EM_INVERSE_5, (32 + 1024) / 2.0}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_em_opts o = pnb_em_opts_default();
        double weight[2];
        size_t n_steps = 9;
        o.prior = cases[i].prior;
        assert_ok(pnb_em_mixing_weights(&x, &o, weight, &n_steps, err));
        assert_int_equal(n_steps, 0);
        assert_near(weight[0] / weight[1], cases[i].ratio, 0, 1e-12);
        assert_near(weight[0] + weight[1], 1, 1e-15, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_slow), cmocka_unit_test(test_em_known),
        cmocka_unit_test(test_em_ends),      cmocka_unit_test(test_em_bad),
        cmocka_unit_test(test_priors),       cmocka_unit_test(test_em_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
