/* The plane of largest spread: a known covariance, samples against the projected Gaussian, rank one
 * and bad input. */
#include "penumbra/pca.h"
#include "tests/prob/support.h"

/* Means spread 3, 2, 0.1.. along rotated axes: the axes, variances and total come back. */
static void recovers_known_axes(void **state)
{
    (void)state;
    enum { N = 3000, D = 6 };
    float *mean = malloc(N * D * sizeof *mean);
    assert_non_null(mean);
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 0);
    for (size_t i = 0; i < N; i++) {
        double a = 3.0 * pnb__rng_normal(&rng), b = 2.0 * pnb__rng_normal(&rng);
        for (size_t d = 0; d < D; d++)
            mean[i * D + d] = (float)(1.0 + 0.1 * pnb__rng_normal(&rng));
        mean[i * D + 0] += (float)(0.6 * a);
        mean[i * D + 3] += (float)(0.8 * a);
        mean[i * D + 1] += (float)b;
    }
    pnb_gaussians g = {.n = N, .dim = D, .mean = mean};
    const pnb_gaussians *sets[] = {&g};
    pnb_pca pca;
    assert_ok(pnb_pca_fit(&pca, sets, 1, err));
    assert_near(fabs(pca.axis[0] * 0.6 + pca.axis[3] * 0.8), 1.0, 1e-3, 0);
    assert_near(fabs(pca.axis[D + 1]), 1.0, 1e-3, 0);
    assert_true(pca.axis[3] > 0 && pca.axis[D + 1] > 0);
    assert_near(pca.variance[0], 9.0, 0.6, 0);
    assert_near(pca.variance[1], 4.0, 0.4, 0);
    assert_near(pca.total_variance, pca.variance[0] + pca.variance[1] + 0.04, 0.02, 0);
    double dot = 0, norm = 0;
    for (size_t d = 0; d < D; d++) {
        dot += pca.axis[d] * pca.axis[D + d];
        norm += pca.axis[d] * pca.axis[d];
    }
    assert_near(dot, 0.0, 1e-12, 0);
    assert_near(norm, 1.0, 1e-12, 0);
    /* the projected cloud has the variances of the axes and no correlation */
    double *xy = malloc(2 * N * sizeof *xy), xx = 0, yy = 0, both = 0;
    assert_non_null(xy);
    assert_ok(pnb_pca_project(&pca, &g, xy, NULL, err));
    for (size_t i = 0; i < N; i++) {
        xx += xy[2 * i] * xy[2 * i] / N;
        yy += xy[2 * i + 1] * xy[2 * i + 1] / N;
        both += xy[2 * i] * xy[2 * i + 1] / N;
    }
    assert_near(xx, pca.variance[0], 0, 1e-9);
    assert_near(yy, pca.variance[1], 0, 1e-9);
    assert_near(both, 0.0, 1e-4, 0);
    free(xy);
    free(mean);
    pnb_pca_reset(&pca);
    pnb_pca_reset(NULL);
}

/* Samples drawn from one Gaussian, projected, have the covariance project() reports. */
static void projected_covariance_matches_samples(void **state)
{
    (void)state;
    enum { D = 9, SAMPLES = 40000 };
    gaussians a = random_gaussians(30, D, -3, 1, 4), b = random_gaussians(20, D, -3, 1, 5);
    const pnb_gaussians *sets[] = {&a.view, &b.view};
    pnb_pca pca;
    double xy[60], cov[90], sum[3] = {0};
    assert_ok(pnb_pca_fit(&pca, sets, 2, err));
    assert_ok(pnb_pca_project(&pca, &a.view, xy, cov, err));
    pnb__rng rng;
    pnb__rng_init(&rng, 6, 0);
    for (size_t s = 0; s < SAMPLES; s++) {
        double x = 0, y = 0;
        for (size_t d = 0; d < D; d++) {
            double z = exp(0.5 * a.log_var[7 * D + d]) * pnb__rng_normal(&rng);
            x += pca.axis[d] * z;
            y += pca.axis[D + d] * z;
        }
        sum[0] += x * x / SAMPLES;
        sum[1] += x * y / SAMPLES;
        sum[2] += y * y / SAMPLES;
    }
    for (size_t i = 0; i < 3; i++)
        assert_near(sum[i], cov[21 + i], 0.02, 0.03);
    pnb_pca_reset(&pca);
    free_gaussians(&a);
    free_gaussians(&b);
}

static void variances_count(void **state)
{
    (void)state;
    /* equal means: all spread is the variance, largest in dimensions 2 and 0 */
    const float mean[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const float log_var[8] = {0, -5, 1, -5, 0, -5, 1, -5};
    pnb_gaussians g = {.n = 2, .dim = 4, .mean = mean, .log_var = log_var};
    const pnb_gaussians *sets[] = {&g};
    pnb_pca pca;
    assert_ok(pnb_pca_fit(&pca, sets, 1, err));
    assert_near(pca.axis[2], 1.0, 1e-6, 0);
    assert_near(pca.axis[4], 1.0, 1e-6, 0);
    assert_near(pca.variance[0], exp(1.0), 1e-6, 0);
    assert_near(pca.total_variance, exp(1.0) + 1 + 2 * exp(-5.0), 1e-6, 0);
    pnb_pca_reset(&pca);
}

static void degenerate_sets(void **state)
{
    (void)state;
    const float same[6] = {1, 2, 3, 1, 2, 3}, line[9] = {0, 0, 0, 1, 2, 2, 2, 4, 4};
    pnb_gaussians constant = {.n = 2, .dim = 3, .mean = same},
                  straight = {.n = 3, .dim = 3, .mean = line};
    const pnb_gaussians *sets[] = {&constant}, *lines[] = {&straight};
    pnb_pca pca;
    double xy[6];
    assert_ok(pnb_pca_fit(&pca, sets, 1, err));
    assert_near(pca.total_variance, 0.0, 0, 0);
    pnb_pca_reset(&pca);
    assert_ok(pnb_pca_fit(&pca, lines, 1, err));
    assert_near(pca.variance[0], 6.0, 1e-12, 0);
    assert_near(pca.variance[1], 0.0, 1e-12, 0);
    assert_ok(pnb_pca_project(&pca, &straight, xy, NULL, err));
    assert_near(xy[4] - xy[0], 6.0, 1e-12, 0);
    assert_near(xy[5] - xy[1], 0.0, 1e-12, 0);
    pnb_pca_reset(&pca);
}

static void bad_input(void **state)
{
    (void)state;
    float bad[4] = {1, 2, NAN, 4};
    pnb_gaussians g = {.n = 2, .dim = 2, .mean = bad}, wide = {.n = 1, .dim = 4, .mean = bad},
                  one = {.n = 1, .dim = 2, .mean = bad};
    const pnb_gaussians *sets[] = {&g, &wide}, *single[] = {&one};
    pnb_pca pca;
    double xy[8];
    assert_fails(pnb_pca_fit(&pca, sets, 2, err), PNB_SHAPE, "set 1 has 4");
    assert_fails(pnb_pca_fit(&pca, sets, 1, err), PNB_NUMERIC, "finite");
    assert_fails(pnb_pca_fit(&pca, single, 1, err), PNB_SHAPE, "1 rows");
    assert_fails(pnb_pca_fit(&pca, sets, 0, err), PNB_SHAPE, "0 rows");
    assert_null(pca.axis);
    bad[2] = 3;
    assert_ok(pnb_pca_fit(&pca, sets, 1, err));
    assert_fails(pnb_pca_project(&pca, &wide, xy, NULL, err), PNB_SHAPE, "width 4");
    pnb_pca_reset(&pca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovers_known_axes),
        cmocka_unit_test(projected_covariance_matches_samples),
        cmocka_unit_test(variances_count),
        cmocka_unit_test(degenerate_sets),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
