/* Concentrations and their mean cosines: against quadrature, there and back, quantiles of samples.
 */
#include "penumbra/distributions.h"

#include "tests/prob/support.h"

/* Share of exp(kappa cos a) sin^(d-2) a below an angle, and the mean cosine, by plain sums. */
static double share_above(size_t dim, double kappa, double cosine, double *mean)
{
    double sum = 0, inside = 0, first = 0;
    const int n = 4000000;
    for (int i = 0; i < n; i++) {
        double a = (i + 0.5) * 3.14159265358979323846 / n;
        double w = exp(kappa * (cos(a) - 1.0)) * pow(sin(a), (double)dim - 2.0);
        sum += w;
        first += w * cos(a);
        inside += cos(a) > cosine ? w : 0.0;
    }
    *mean = first / sum;
    return inside / sum;
}

static void test_mean_cosine(void **state)
{
    static const struct {
        size_t dim;
        double kappa;
    } cases[] = {{2, 0.7}, {3, 5.0}, {8, 40.0}, {50, 30.0}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        for (double share = 0.1; share < 1.0; share += 0.4) {
            double mean, cosine = pnb_vmf_cosine_quantile(cases[i].dim, cases[i].kappa, share);
            assert_near(share_above(cases[i].dim, cases[i].kappa, cosine, &mean), share, 1e-5, 0);
            assert_near(pnb_vmf_mean_cosine(cases[i].dim, cases[i].kappa), mean, 1e-9, 0);
            assert_near(pnb_vmf_kappa_at(cases[i].dim, mean), cases[i].kappa, 0, 1e-8);
        }
    assert_near(pnb_vmf_cosine_quantile(2, 0.0, 0.5), 0.0, 1e-9, 0);
    assert_near(pnb_vmf_cosine_quantile(9, 0.0, 0.5), 0.0, 1e-9, 0);
    assert_near(pnb_vmf_kappa_at(512, pnb_vmf_mean_cosine(512, 1e5)), 1e5, 0, 1e-7);
}

/* The power spherical by its own samples. */
static void test_power_spherical(void **state)
{
    enum { N = 40000, D = 6 };
    float mean[D] = {0, 0, 1, 0, 0, 0}, kappa = 3.5f;
    const pnb_rows rows = {.n = 1, .dim = D, .mean = mean, .kappa = &kappa, .is_power = true};
    pnb_sample_opts o = pnb_sample_opts_default();
    double *x = malloc(N * D * sizeof *x), sum = 0;
    (void)state;
    o.n_samples = N;
    assert_ok(pnb_sample_rows(&rows, &o, x, err));
    for (size_t j = 0; j < N; j++)
        sum += x[j * D + 2] / N;
    assert_near(pnb_power_spherical_mean_cosine(D, 3.5), sum, 0.006, 0);
    assert_near(pnb_power_spherical_kappa_at(D, 3.5 / 8.5), 3.5, 0, 1e-12);
    free(x);
}

/* A share of many samples of a wide and a narrow density lies beyond its quantile. */
static void test_quantile_of_samples(void **state)
{
    enum { N = 20000, D = 20 };
    float mean[D] = {1}, kappa[2] = {4.0f, 500.0f};
    double *x = malloc((size_t)N * D * sizeof *x);
    (void)state;
    for (int k = 0; k < 2; k++) {
        const pnb_rows rows = {.n = 1, .dim = D, .mean = mean, .kappa = &kappa[k]};
        pnb_sample_opts o = pnb_sample_opts_default();
        double at = pnb_vmf_cosine_quantile(D, kappa[k], 0.9), n_inside = 0;
        o.n_samples = N;
        assert_ok(pnb_sample_rows(&rows, &o, x, err));
        for (size_t j = 0; j < N; j++)
            n_inside += x[j * D] > at;
        assert_near(n_inside / N, 0.9, 0.008, 0);
    }
    free(x);
}

static void test_outside(void **state)
{
    (void)state;
    assert_true(isnan(pnb_vmf_kappa_at(1, 0.5)) && isnan(pnb_vmf_kappa_at(4, 1.0)) &&
                isnan(pnb_vmf_kappa_at(4, 0.0)) && isnan(pnb_vmf_kappa_at(4, (double)NAN)));
    assert_true(isnan(pnb_power_spherical_kappa_at(4, 1.0)) &&
                isnan(pnb_power_spherical_mean_cosine(4, -1.0)));
    assert_true(isnan(pnb_vmf_cosine_quantile(4, (double)NAN, 0.5)) &&
                isnan(pnb_vmf_cosine_quantile(4, 1.0, 1.0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_cosine),
        cmocka_unit_test(test_power_spherical),
        cmocka_unit_test(test_quantile_of_samples),
        cmocka_unit_test(test_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
