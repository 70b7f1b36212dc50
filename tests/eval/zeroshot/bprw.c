/* Prompt re-weighting: known mixtures, labels, points drawn as its EM gets them, bad input. */
#include "eval/zeroshot/prompts.h"
#include "tests/eval/zeroshot/slow_em.h"

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

static void make_images(float mean[8 * 6], float log_var[8 * 6])
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
    make_images(mean, log_var);
    const pnb_gaussians images = {.n = 8, .dim = 6, .mean = mean, .log_var = log_var};
    o.n_images = 4;
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
    make_images(mean, log_var);
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
    make_images(mean, log_var);
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
    make_images(mean, log_var);
    const pnb_gaussians narrow = {.n = 8, .dim = 5, .mean = mean, .log_var = log_var},
                        images = {.n = 8, .dim = 6, .mean = mean, .log_var = log_var};
    assert_fails(pnb_bprw(NULL, &prompts, &narrow, NULL, &o, weight, NULL, err), PNB_SHAPE,
                 "width 5");
    o.n_images = 0;
    assert_fails(pnb_bprw(NULL, &prompts, &images, NULL, &o, weight, NULL, err), PNB_ARG,
                 "at least 1");
    o.n_images = 100; /* more than there are: all of them */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bprw), cmocka_unit_test(test_points),
                                       cmocka_unit_test(test_few_shot),
                                       cmocka_unit_test(test_bad_bprw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
