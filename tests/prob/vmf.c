/* The von Mises-Fisher normaliser against quadrature on the sphere, elementary forms, its own
 * derivative, and the approximation against its definition. */
#include "tests/prob/sphere.h"

#include "penumbra/distributions.h"

static void exact_equals_quadrature(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(SPHERE_DIMS); i++)
        for (size_t j = 0; j < PNB_COUNT(SPHERE_KAPPAS); j++) {
            sphere s = {false, SPHERE_DIMS[i], SPHERE_KAPPAS[j]};
            double want = sphere_log_norm(&s), got = pnb_vmf_log_norm(s.dim, s.kappa);
            if (!(fabs(got - want) <= 1e-12 * fmax(1.0, fabs(want))))
                fail_msg("d %zu kappa %g: %.17g, by quadrature %.17g", s.dim, s.kappa, got, want);
            double slope = pnb_vmf_log_norm_slope(s.dim, s.kappa);
            double mean = sphere_mean_deficit(&s) - 1.0;
            if (!(fabs(slope - mean) <= 1e-14 + 1e-13 * fabs(mean)))
                fail_msg("d %zu kappa %g: slope %.17g, by quadrature %.17g", s.dim, s.kappa, slope,
                         mean);
        }
}

/* Small means keep their relative precision: A_d(kappa) = kappa/d (1 - kappa^2/(d(d+2)) ...). */
static void small_kappa(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(SPHERE_DIMS); i++) {
        double d = (double)SPHERE_DIMS[i], kappa = 1e-9;
        assert_near(pnb_vmf_log_norm_slope(SPHERE_DIMS[i], kappa), -kappa / d, 0.0, 1e-14);
        assert_true(pnb_vmf_log_norm_slope(SPHERE_DIMS[i], 0.0) == 0.0);
    }
}

/* d = 3: C = kappa / (4 pi sinh kappa). */
static void three_dimensions(void **state)
{
    (void)state;
    for (double kappa = 1e-3; kappa < 2e6; kappa *= 1.37) {
        long double k = kappa;
        long double log_sinh = k + log1pl(-expl(-2 * k)) - logl(2.0L);
        assert_near(pnb_vmf_log_norm(3, kappa), (double)(logl(k) - logl(4 * PI_L) - log_sinh),
                    1e-14, 1e-13);
        long double coth = (1 + expl(-2 * k)) / -expm1l(-2 * k);
        assert_near(pnb_vmf_log_norm_slope(3, kappa), (double)(1 / k - coth), 0, 1e-12);
    }
}

/* The polynomials of Debye's expansion enter both functions; the value's differences must agree
 * with the slope at every dimension, the border between recurrence and expansion included. */
static void slope_is_the_derivative(void **state)
{
    (void)state;
    for (size_t d = 2; d <= 140; d++)
        for (double kappa = 0.5; kappa < 1e3; kappa *= 3.3) {
            double h = 1e-3 * kappa;
            double forth = pnb_vmf_log_norm(d, kappa + h) - pnb_vmf_log_norm(d, kappa - h);
            double further =
                pnb_vmf_log_norm(d, kappa + 2 * h) - pnb_vmf_log_norm(d, kappa - 2 * h);
            double slope = (8 * forth - further) / (12 * h);
            assert_near(pnb_vmf_log_norm_slope(d, kappa), slope, 1e-9, 1e-8);
        }
}

static void approximation(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(SPHERE_DIMS); i++) {
        size_t d = SPHERE_DIMS[i];
        double offset = pnb_vmf_log_norm(d, 0.0) - pnb_vmf_log_norm_approx(d, 0.0);
        for (size_t j = 0; j < PNB_COUNT(SPHERE_KAPPAS); j++) {
            double kappa = SPHERE_KAPPAS[j], drift;
            long double k = kappa, a = 0.5L * (long double)(d - 1), b = a + 1;
            long double ra = sqrtl(a * a + k * k), rb = sqrtl(b * b + k * k);
            long double want = 0.5L * a * (logl(a + ra) + logl(a + rb)) - 0.5L * (ra + rb);
            assert_near(pnb_vmf_log_norm_approx(d, kappa), (double)want, 1e-13, 1e-13);
            long double slope =
                0.5L * a * (k / (ra * (a + ra)) + k / (rb * (a + rb))) - 0.5L * (k / ra + k / rb);
            assert_near(pnb_vmf_log_norm_approx_slope(d, kappa), (double)slope, 0, 1e-13);
            drift = pnb_vmf_log_norm(d, kappa) - pnb_vmf_log_norm_approx(d, kappa) - offset;
            assert_true(fabs(drift) < 0.14);
        }
    }
}

static void outside_the_range(void **state)
{
    (void)state;
    const double bad[] = {-1e-3, NAN, INFINITY, -INFINITY};
    double (*const functions[])(size_t, double) = {pnb_vmf_log_norm, pnb_vmf_log_norm_slope,
                                                   pnb_vmf_log_norm_approx,
                                                   pnb_vmf_log_norm_approx_slope};
    for (size_t f = 0; f < PNB_COUNT(functions); f++) {
        for (size_t i = 0; i < PNB_COUNT(bad); i++)
            assert_true(isnan(functions[f](8, bad[i])));
        assert_true(isnan(functions[f](1, 2.0)));
        assert_true(isfinite(functions[f](1 << 20, 3e38)) && isfinite(functions[f](2, 1e-300)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_equals_quadrature), cmocka_unit_test(small_kappa),
        cmocka_unit_test(three_dimensions),        cmocka_unit_test(slope_is_the_derivative),
        cmocka_unit_test(approximation),           cmocka_unit_test(outside_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
