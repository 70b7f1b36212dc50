/* The power spherical normaliser against quadrature on the sphere, and its derivative. */
#include "tests/prob/sphere.h"

#include "penumbra/distributions.h"

static void exact_equals_quadrature(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(SPHERE_DIMS); i++)
        for (size_t j = 0; j < PNB_COUNT(SPHERE_KAPPAS); j++) {
            sphere s = {true, SPHERE_DIMS[i], SPHERE_KAPPAS[j]};
            double want = sphere_log_norm(&s), got = pnb_power_spherical_log_norm(s.dim, s.kappa);
            if (!(fabs(got - want) <= 1e-12 * fmax(1.0, fabs(want))))
                fail_msg("d %zu kappa %g: %.17g, by quadrature %.17g", s.dim, s.kappa, got, want);
        }
}

/* d log C / d kappa = -E log(1+t) = psi(alpha+beta) - psi(alpha) - log 2 */
static void slope_is_the_derivative(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(SPHERE_DIMS); i++)
        for (double kappa = 0.5; kappa < 1e4; kappa *= 3.3) {
            size_t d = SPHERE_DIMS[i];
            double h = 1e-3 * kappa;
            double forth = pnb_power_spherical_log_norm(d, kappa + h) -
                           pnb_power_spherical_log_norm(d, kappa - h);
            double further = pnb_power_spherical_log_norm(d, kappa + 2 * h) -
                             pnb_power_spherical_log_norm(d, kappa - 2 * h);
            assert_near(pnb_power_spherical_log_norm_slope(d, kappa),
                        (8 * forth - further) / (12 * h), 1e-8, 1e-8);
        }
}

static void outside_the_range(void **state)
{
    (void)state;
    const double bad[] = {-1e-3, NAN, INFINITY};
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        assert_true(isnan(pnb_power_spherical_log_norm(8, bad[i])));
        assert_true(isnan(pnb_power_spherical_log_norm_slope(8, bad[i])));
    }
    assert_true(isnan(pnb_power_spherical_log_norm(1, 2.0)));
    assert_true(isnan(pnb_power_spherical_log_norm_slope(0, 2.0)));
    assert_true(isfinite(pnb_power_spherical_log_norm(1 << 20, 3e38)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_equals_quadrature),
        cmocka_unit_test(slope_is_the_derivative),
        cmocka_unit_test(outside_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
