/* Digamma and the differences of log Gamma and digamma, against long double and exact values. */
#include "tests/prob/support.h"

#include "penumbra/distributions.h"

static long double log_gamma(long double x)
{
    int sign;
    return lgammal_r(x, &sign);
}

static void ratio_matches_long_double(void **state)
{
    (void)state;
    for (double a = 1e-3; a < 3e6; a *= 2.7)
        for (double b = 1e-3; b < 1e4; b *= 2.3) {
            long double x = log_gamma((long double)a + b), y = log_gamma(a);
            /* the long double difference cancels: 1e-18 of its terms is what it knows */
            double doubt = (double)(1e-18L * (fabsl(x) + fabsl(y))) + 1e-14;
            assert_near(pnb_log_gamma_ratio(a, b), (double)(x - y), doubt, 1e-13);
        }
    assert_true(pnb_log_gamma_ratio(7.5, 0.0) == 0.0);
    assert_near(pnb_log_gamma_ratio(5.0, 3.0), log(5.0 * 6.0 * 7.0), 0, 1e-14);
    assert_near(pnb_log_gamma_ratio(1e6, 2.0), log(1e6) + log(1e6 + 1), 0, 1e-14);
}

/* psi(n) = H_{n-1} - gamma, psi(1/2) = -gamma - 2 log 2 */
static void digamma_values(void **state)
{
    (void)state;
    const long double euler = 0.577215664901532860606512090082402431L;
    long double harmonic = 0.0L;
    for (int n = 1; n <= 4000; n++) {
        assert_near(pnb_digamma(n), (double)(harmonic - euler), 1e-15, 1e-14);
        harmonic += 1.0L / n;
    }
    assert_near(pnb_digamma(0.5), (double)(-euler - 2 * logl(2.0L)), 0, 1e-15);
    assert_near(pnb_digamma(1e-8), -1e8 - (double)euler, 0, 1e-15);
    assert_near(pnb_digamma(1e300), log(1e300), 0, 1e-15);
}

/* psi(a+n) - psi(a) = sum 1/(a+i) */
static void digamma_difference(void **state)
{
    (void)state;
    for (double a = 1e-2; a < 1e7; a *= 3.1) {
        long double sum = 0.0L;
        for (int n = 0; n < 300; n++) {
            assert_near(pnb_digamma_difference(a, n), (double)sum, 0, 1e-13);
            sum += 1.0L / ((long double)a + n);
        }
    }
    assert_near(pnb_digamma_difference(1e6, 0.5), pnb_digamma(1e6 + 0.5) - pnb_digamma(1e6), 1e-14,
                1e-7);
}

static void outside_the_range(void **state)
{
    (void)state;
    assert_true(isnan(pnb_digamma(0.0)) && isnan(pnb_digamma(-1.5)) && isnan(pnb_digamma(NAN)));
    assert_true(isnan(pnb_log_gamma_ratio(0.0, 1.0)) && isnan(pnb_log_gamma_ratio(1.0, -1.0)));
    assert_true(isnan(pnb_log_gamma_ratio(NAN, 1.0)) && isnan(pnb_log_gamma_ratio(1.0, NAN)));
    assert_true(isnan(pnb_digamma_difference(-1.0, 1.0)));
    assert_true(isnan(pnb_digamma_difference(1.0, -1.0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratio_matches_long_double),
        cmocka_unit_test(digamma_values),
        cmocka_unit_test(digamma_difference),
        cmocka_unit_test(outside_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
