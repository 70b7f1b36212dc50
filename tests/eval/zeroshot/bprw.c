/* EM and prompt re-weighting: against a slow log-space EM, known mixtures, labels, bad input. */
#include "eval/zeroshot/prompts.h"
#include "tests/prob/support.h"

/* ---- an independent EM: everything by long double logarithms, every step from scratch ---- */

static void slow_em(const pnb_em_data *x, const pnb_em_opts *o, size_t n_steps, double *pi)
{
    size_t n = x->n_components;
    for (size_t s = 0; s < n_steps; s++) {
        long double count[16] = {0}, total = 0;
        for (size_t p = 0; p < x->n_points; p++) {
            long double l[16], sum = 0, largest = -INFINITY;
            for (size_t i = 0; i < n; i++) {
                l[i] = logl(pi[i]);
                for (size_t d = 0; d < x->dim; d++) {
                    long double v = (long double)x->var[i * x->dim + d] + o->eps;
                    long double e =
                        x->points[p * x->dim + d] - (long double)x->mean[i * x->dim + d];
                    l[i] -= (e * e / v + logl(v)) / 2;
                }
                largest = fmaxl(largest, l[i]);
            }
            for (size_t i = 0; i < n; i++)
                sum += expl(l[i] - largest);
            for (size_t i = 0; i < n; i++)
                count[i] += expl(l[i] - largest) / sum;
        }
        for (size_t i = 0; i < n; i++)
            total += count[i] = fmaxl(0, count[i] + o->alpha - 1);
        for (size_t i = 0; i < n; i++)
            pi[i] = (double)(count[i] / total);
    }
}

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

/* ---- prompts and pictures ---- */

/* Two classes of three prompts along axes; pictures lie at the second prompt of each class. */
static const size_t offset[] = {0, 3, 6};
static const float prompt_mean[6 * 6] = {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
                                         0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
static const float prompt_var[6 * 6] = {.1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f,
                                        .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f,
                                        .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f};
static const pnb_prompts prompts = {
    .n_classes = 2, .dim = 6, .offset = offset, .mean = prompt_mean, .var = prompt_var};

static void make_pictures(float mean[8 * 6], float log_var[8 * 6])
{
    memset(mean, 0, 8 * 6 * sizeof *mean);
    for (size_t i = 0; i < 8; i++) {
        mean[i * 6 + (i % 2 == 0 ? 1 : 4)] = 1;
        for (size_t d = 0; d < 6; d++)
            log_var[i * 6 + d] = -6;
    }
}

static void expect_second(const double weight[6])
{
    for (size_t c = 0; c < 2; c++) {
        assert_true(weight[3 * c + 1] > 2 * weight[3 * c]);
        assert_near(weight[3 * c] + weight[3 * c + 1] + weight[3 * c + 2], 1, 1e-12, 0);
    }
}

static void test_bprw(void **state)
{
    (void)state;
    float mean[8 * 6], log_var[8 * 6];
    double weight[6], again[6];
    pnb_bprw_summary summary;
    pnb_bprw_opts o = pnb_bprw_opts_default();
    pnb_ctx *ctx;
    make_pictures(mean, log_var);
    const pnb_gaussians images = {.n = 8, .dim = 6, .mean = mean, .log_var = log_var};
    o.n_pictures = 4;
    o.em.alpha = 2;
    assert_ok(pnb_bprw(NULL, &prompts, &images, NULL, &o, weight, &summary, err));
    expect_second(weight);
    assert_int_equal(summary.n_without, 0);
    assert_ok(pnb_ctx_create(&ctx, &(pnb_ctx_opts){.n_threads = 3}, err));
    assert_ok(pnb_bprw(ctx, &prompts, &images, NULL, &o, again, NULL, err));
    assert_memory_equal(weight, again, sizeof weight);
    o.seed = 1;
    assert_ok(pnb_bprw(ctx, &prompts, &images, NULL, &o, again, NULL, err));
    assert_memory_not_equal(weight, again, sizeof weight);
    pnb_ctx_free(ctx);
}

/* The points are mean + std * normal, the normals of a picture one after another in its stream:
 * with them the slow EM gives the same weights. */
static void test_points(void **state)
{
    (void)state;
    float mean[8 * 6], log_var[8 * 6];
    double points[2 * 5 * 6], want[3], got[6], prompt_f64[2][18];
    const int32_t label[8] = {-1, -1, 1, 0, 0, -1, -1, -1};
    pnb_bprw_opts o = pnb_bprw_opts_few_shot();
    make_pictures(mean, log_var);
    for (size_t i = 0; i < 8 * 6; i++)
        log_var[i] = 0.5f - (float)(i % 5);
    o.n_samples = 5;
    o.seed = 9;
    for (size_t i = 0; i < 2; i++) {
        pnb__rng rng;
        pnb__rng_init(&rng, 9, 3 + i); /* rows 3 and 4 are of class 0 */
        for (size_t at = 0; at < 5 * 6; at++) {
            size_t d = (3 + i) * 6 + at % 6;
            points[i * 30 + at] =
                (double)mean[d] + exp(0.5 * (double)log_var[d]) * pnb__rng_normal(&rng);
        }
    }
    for (size_t i = 0; i < 18; i++) {
        prompt_f64[0][i] = (double)prompt_mean[i];
        prompt_f64[1][i] = (double)prompt_var[i];
    }
    const pnb_em_data x = {10, 3, 6, points, prompt_f64[0], prompt_f64[1]};
    const pnb_gaussians images = {.n = 8, .dim = 6, .mean = mean, .log_var = log_var};
    o.em.max_steps = 0;
    assert_ok(pnb_em_mixing_weights(&x, &o.em, want, NULL, err));
    o.em.max_steps = 40;
    o.em.tolerance = 0;
    slow_em(&x, &o.em, 40, want);
    assert_ok(pnb_bprw(NULL, &prompts, &images, label, &o, got, NULL, err));
    for (size_t i = 0; i < 3; i++)
        assert_near(got[i], want[i], 1e-12, 1e-9);
}

static void test_few_shot(void **state)
{
    (void)state;
    float mean[8 * 6], log_var[8 * 6];
    /* Labels against the pictures' looks: class 0 gets those at axis 4, all equally far from its
     * prompts; class 1 has no picture. */
    const int32_t odd[] = {-1, 0, -1, 0, -1, 0, -1, 0}, right[] = {0, 1, 0, 1, 0, 1, 0, 1};
    const int32_t bad[] = {0, 0, 2, 0, 0, 0, 0, 0};
    double weight[6];
    pnb_bprw_summary summary;
    make_pictures(mean, log_var);
    const pnb_gaussians images = {.n = 8, .dim = 6, .mean = mean, .log_var = log_var};
    assert_ok(pnb_bprw(NULL, &prompts, &images, right, NULL, weight, &summary, err));
    expect_second(weight);
    assert_true(weight[1] > 0.95); /* 4 pictures, 25 samples each, alpha 2 */
    assert_ok(pnb_bprw(NULL, &prompts, &images, odd, NULL, weight, &summary, err));
    assert_int_equal(summary.n_without, 1);
    for (size_t i = 3; i < 6; i++)
        assert_near(weight[i], 1.0 / 3, 1e-15, 0);
    assert_fails(pnb_bprw(NULL, &prompts, &images, bad, NULL, weight, NULL, err), PNB_ARG,
                 "picture 2 has label 2");
}

static void test_bad_bprw(void **state)
{
    (void)state;
    float mean[8 * 6], log_var[8 * 6];
    double weight[6];
    pnb_bprw_opts o = pnb_bprw_opts_default();
    make_pictures(mean, log_var);
    const pnb_gaussians narrow = {.n = 8, .dim = 5, .mean = mean, .log_var = log_var},
                        images = {.n = 8, .dim = 6, .mean = mean, .log_var = log_var};
    assert_fails(pnb_bprw(NULL, &prompts, &narrow, NULL, &o, weight, NULL, err), PNB_SHAPE,
                 "width 5");
    o.n_pictures = 0;
    assert_fails(pnb_bprw(NULL, &prompts, &images, NULL, &o, weight, NULL, err), PNB_ARG,
                 "at least 1");
    o.n_pictures = 100; /* more than there are: all of them */
    assert_ok(pnb_bprw(NULL, &prompts, &images, NULL, &o, weight, NULL, err));
    const float kappa[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const pnb_gaussians sphere = {.n = 8, .dim = 6, .mean = mean, .kappa = kappa};
    assert_fails(pnb_bprw(NULL, &prompts, &sphere, NULL, &o, weight, NULL, err), PNB_UNSUPPORTED,
                 "the pictures lie on the sphere");
    log_var[0] = INFINITY;
    assert_fails(pnb_bprw(NULL, &prompts, &images, NULL, &o, weight, NULL, err), PNB_NUMERIC,
                 "not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_slow), cmocka_unit_test(test_em_known),
        cmocka_unit_test(test_em_ends),      cmocka_unit_test(test_em_bad),
        cmocka_unit_test(test_bprw),         cmocka_unit_test(test_points),
        cmocka_unit_test(test_few_shot),     cmocka_unit_test(test_bad_bprw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
