/* Scalar uncertainties: hand-computed rows, quadrature for the generalised Gaussian, bad input. */
#include "tests/prob/support.h"

static void gaussian_kinds(void **state)
{
    (void)state;
    const float mean[4] = {1, 0, 0, 1};
    const float log_var[4] = {logf(4.0f), logf(9.0f), -30.0f, 30.0f};
    pnb_gaussians g = {.n = 2, .dim = 2, .mean = mean, .log_var = log_var};
    double u[2];
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &g, u, err));
    assert_near(u[0], 13.0, 0.0, 1e-6);
    assert_near(u[1], exp(30.0) + exp(-30.0), 0.0, 1e-14);
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_MEAN_VAR, &g, u, err));
    assert_near(u[0], 6.5, 0.0, 1e-6);
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_GEO_STD, &g, u, err));
    assert_near(u[0], sqrt(6.0), 0.0, 1e-6);
    assert_near(u[1], 1.0, 0.0, 1e-14);
    g.log_var = NULL;
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &g, u, err));
    assert_true(u[0] == 0.0 && u[1] == 0.0);
}

static void golden_geo_mean(void **state)
{
    (void)state;
    pnb_safetensors *file = open_case("metrics/bins_103_10");
    double *variance = case_values(file, "geo_in", NULL),
           *want = case_values(file, "geo_mean", NULL);
    float log_var[35], mean[35] = {0};
    for (size_t i = 0; i < 35; i++)
        log_var[i] = (float)log(variance[i]);
    pnb_gaussians g = {.n = 5, .dim = 7, .mean = mean, .log_var = log_var};
    double u[5];
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_GEO_STD, &g, u, err));
    for (size_t i = 0; i < 5; i++) /* the case has the geometric mean of variances, f32 logs here */
        assert_near(u[i] * u[i], want[i], 0.0, 1e-6);
    free(variance);
    free(want);
    pnb_safetensors_free(file);
}

/* Variance of a generalised Gaussian exp(-(|x|/alpha)^beta) by the trapezoid rule. */
static double gg_variance(double alpha, double beta)
{
    double mass = 0.0, second = 0.0, reach = alpha * pow(60.0, 1.0 / beta), step = reach / 200000.0;
    for (long i = -200000; i <= 200000; i++) {
        double x = (double)i * step, p = exp(-pow(fabs(x) / alpha, beta));
        mass += p;
        second += p * x * x;
    }
    return second / mass;
}

static void generalised_gaussian(void **state)
{
    (void)state;
    const float inv_alpha[4] = {1.0f, 0.5f, 4.0f, 1.0f}, beta[4] = {2.0f, 1.0f, 1.5f, 3.0f};
    double u[2];
    assert_ok(pnb_uncertainty_gg_var(inv_alpha, beta, 2, 2, u, err));
    assert_near(u[0], 0.5 * (gg_variance(1.0, 2.0) + gg_variance(2.0, 1.0)), 0.0, 1e-6);
    assert_near(u[1], 0.5 * (gg_variance(0.25, 1.5) + gg_variance(1.0, 3.0)), 0.0, 1e-6);
    assert_near(gg_variance(1.0, 2.0), 0.5, 0.0, 1e-6);
}

static void kappa_and_cosine(void **state)
{
    (void)state;
    const float kappa[3] = {4.0f, 1e6f, 0.0f}, a[4] = {3, 4, 0, 0}, b[4] = {4, 3, 1, 0};
    double u[3];
    assert_ok(pnb_uncertainty_inv_kappa(kappa, 3, u, err));
    assert_near(u[0], 0.25, 0.0, 0.0);
    assert_near(u[1], 1e-6, 0.0, 1e-15);
    assert_true(u[2] > 1e37 && u[2] < 1e38); /* uniform: the most uncertain, and finite */
    pnb_gaussians x = {.n = 2, .dim = 2, .mean = a}, y = {.n = 2, .dim = 2, .mean = b};
    assert_ok(pnb_uncertainty_cosine(&x, &y, u, err));
    assert_near(u[0], 1.0 - 24.0 / 25.0, 1e-15, 0.0);
    assert_near(u[1], 1.0, 0.0, 0.0);
}

/* Every kind for every family of rows: its own value or a refusal that names what there is. */
static void families(void **state)
{
    (void)state;
    const float mean[2] = {1, 0}, log_var[2] = {0, 0}, kappa[1] = {5.0f};
    const float inv_alpha[2] = {2, 2}, beta[2] = {2, 1};
    pnb_rows vmf = {.n = 1, .dim = 2, .mean = mean, .kappa = kappa};
    pnb_rows gg = {.n = 1, .dim = 2, .mean = mean, .inv_alpha = inv_alpha, .beta = beta};
    pnb_rows gaussian = {.n = 1, .dim = 2, .mean = mean, .log_var = log_var};
    double u;
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_INV_KAPPA, &vmf, &u, err));
    assert_near(u, 0.2, 0.0, 1e-15);
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &vmf, &u, err), PNB_ARG, "inv_kappa");
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_GG_VAR, &gg, &u, err));
    assert_near(u, 0.5 * (0.125 + 0.5), 0.0, 1e-14);
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &gg, &u, err), PNB_ARG, "gg_var");
    gg.log_var = log_var; /* with the variances of its moments it has a trace */
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &gg, &u, err));
    assert_near(u, 2.0, 0.0, 0.0);
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_INV_KAPPA, &gaussian, &u, err), PNB_ARG,
                 "gaussian_diag");
    vmf.is_power = true;
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_GG_VAR, &vmf, &u, err), PNB_ARG,
                 "power_spherical");
}

/* The parts of a generalised Gaussian's variance, and that they are its whole. */
static void parts(void **state)
{
    (void)state;
    const float mean[4] = {0}, inv_alpha[4] = {1, 2, 0.5f, 4}, beta[4] = {2, 1, 2, 1.5f};
    const float epistemic[4] = {0.25f, 0.125f, 3, 1};
    pnb_rows x = {.n = 2, .dim = 2, .mean = mean, .inv_alpha = inv_alpha, .beta = beta};
    double whole[2], rest[2], part[2];
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_EPISTEMIC, &x, part, err), PNB_ARG,
                 "no uncertainty 'epistemic'; use gg_var");
    x.epistemic = epistemic;
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_GG_VAR, &x, whole, err));
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_ALEATORIC, &x, rest, err));
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_EPISTEMIC, &x, part, err));
    assert_near(part[0], 0.1875, 0, 0);
    assert_near(part[1], 2, 0, 0);
    assert_near(rest[0], whole[0] - 0.1875, 1e-15, 0);
    assert_near(whole[0], 0.5 * (0.5 + 0.5), 1e-14, 0); /* a normal's 1/2, a Laplacian's 2/4 */
    assert_true(rest[1] == 0.0 && whole[1] < 2.0);      /* never below 0 */
    pnb_rows second = pnb_rows_slice(&x, 1, 1);
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_EPISTEMIC, &second, part, err));
    assert_near(part[0], 2, 0, 0);
    const float bad[4] = {0, 0, NAN, 0};
    x.epistemic = bad;
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_EPISTEMIC, &x, part, err), PNB_NUMERIC,
                 "row 1");
    pnb_rows vmf = {.n = 1, .dim = 2, .mean = mean, .kappa = inv_alpha};
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_ALEATORIC, &vmf, part, err), PNB_ARG,
                 "use inv_kappa");
}

/* Finite and right over log-variances of +-30 and widths up to 4096, against long double. */
static void grid(void **state)
{
    (void)state;
    const size_t dims[] = {2, 3, 64, 513, 4096};
    float mean[4096] = {0}, log_var[4096];
    for (size_t i = 0; i < PNB_COUNT(dims); i++)
        for (int base = -30; base <= 30; base += 10) {
            size_t dim = dims[i];
            long double trace = 0, sum = 0;
            double u;
            for (size_t d = 0; d < dim; d++) {
                log_var[d] = d % 3 == 0 ? (float)base : (float)base * cosf((float)d);
                trace += expl((long double)log_var[d]);
                sum += log_var[d];
            }
            pnb_rows x = {.n = 1, .dim = dim, .mean = mean, .log_var = log_var};
            assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &x, &u, err));
            assert_near(u, (double)trace, 0.0, 1e-13);
            assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_MEAN_VAR, &x, &u, err));
            assert_near(u, (double)(trace / (long double)dim), 0.0, 1e-13);
            assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_GEO_STD, &x, &u, err));
            assert_near(u, (double)expl(0.5L * sum / (long double)dim), 0.0, 1e-13);
        }
    for (double log_beta = -3; log_beta < 12; log_beta += 0.5) {
        float beta = (float)exp(log_beta), inv_alpha = 1e-3f;
        long double b = beta, a = 1.0L / (long double)inv_alpha;
        int sign;
        long double ratio = lgammal_r(3 / b, &sign) - lgammal_r(1 / b, &sign);
        double u;
        assert_ok(pnb_uncertainty_gg_var(&inv_alpha, &beta, 1, 1, &u, err));
        assert_near(u, (double)(a * a * expl(ratio)), 0.0, 1e-12);
    }
}

static void names(void **state)
{
    (void)state;
    pnb_uncertainty kind;
    for (int i = 0; i < PNB_N_UNCERTAINTIES; i++) {
        assert_ok(pnb_uncertainty_parse(&kind, pnb_uncertainty_name((pnb_uncertainty)i), err));
        assert_int_equal(kind, i);
    }
    assert_fails(pnb_uncertainty_parse(&kind, "sigma", err), PNB_NOT_FOUND, "geo_std");
    assert_string_equal(pnb_uncertainty_name(PNB_N_UNCERTAINTIES), "unknown");
}

static void bad_input(void **state)
{
    (void)state;
    const float mean[2] = {1, 0}, bad[2] = {0, NAN}, zero[2] = {1, 0};
    pnb_gaussians g = {.n = 1, .dim = 2, .mean = mean, .log_var = bad},
                  empty = {.n = 1, .dim = 0, .mean = mean, .log_var = bad},
                  two = {.n = 2, .dim = 1, .mean = mean};
    double u[2];
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &g, u, err), PNB_NUMERIC, "row 0");
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_COSINE, &g, u, err), PNB_ARG, "trace");
    assert_fails(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &empty, u, err), PNB_SHAPE, "width 0");
    const float negative[2] = {1, -1e-3f};
    assert_fails(pnb_uncertainty_inv_kappa(negative, 2, u, err), PNB_NUMERIC, "row 1");
    assert_fails(pnb_uncertainty_inv_kappa(bad, 2, u, err), PNB_NUMERIC, "row 1");
    assert_fails(pnb_uncertainty_gg_var(zero, mean, 1, 2, u, err), PNB_NUMERIC, "row 0");
    assert_fails(pnb_uncertainty_cosine(&g, &two, u, err), PNB_SHAPE, "width");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(gaussian_kinds),
        cmocka_unit_test(golden_geo_mean),
        cmocka_unit_test(generalised_gaussian),
        cmocka_unit_test(kappa_and_cosine),
        cmocka_unit_test(families),
        cmocka_unit_test(grid),
        cmocka_unit_test(names),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
