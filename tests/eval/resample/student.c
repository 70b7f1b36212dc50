/* Distribution functions against tables and against integrals of their densities; inverses. */
#include "eval/resample/student.h"

#include "tests/prob/support.h"

static void student_and_normal(void **state)
{
    (void)state;
    assert_near(pnb__normal_quantile(0.975), 1.959963984540054, 1e-12, 0);
    assert_near(pnb__normal_quantile(1e-10), -6.361340902404056, 1e-9, 0);
    assert_near(pnb__student_quantile(0.975, 1), 12.706204736432095, 0, 1e-9);
    assert_near(pnb__student_quantile(0.975, 4), 2.7764451051977987, 0, 1e-9);
    assert_near(pnb__student_quantile(0.025, 30), -2.0422724563012373, 0, 1e-9);
    assert_near(pnb__student_quantile(0.975, 1e7), 1.959963984540054, 0, 1e-6);
    assert_near(pnb__student_cdf(0.0, 7), 0.5, 1e-14, 0);
    assert_near(pnb__student_cdf(1.0, 1), 0.75, 1e-12, 0);
}

/* Simpson's rule over the density from 0 to t. */
static double integral(double t, double df)
{
    enum { N = 4000 };
    double sum = 0, h = t / N;
    for (int i = 0; i <= N; i++) {
        double x = i * h, weight = i == 0 || i == N ? 1 : i % 2 == 1 ? 4 : 2;
        double log_density = isinf(df) ? -0.5 * x * x - 0.5 * log(2 * acos(-1.0))
                                       : lgamma(0.5 * (df + 1)) - lgamma(0.5 * df) -
                                             0.5 * log(df * acos(-1.0)) -
                                             0.5 * (df + 1) * log1p(x * x / df);
        sum += weight * exp(log_density);
    }
    return sum * h / 3;
}

static void densities(void **state)
{
    (void)state;
    static const double df[] = {0.5, 1, 2, 3.7, 30, 500};
    for (int k = 1; k <= 12; k++) {
        double t = 0.4 * k;
        assert_near(pnb__normal_cdf(t), 0.5 + integral(t, INFINITY), 1e-12, 0);
        assert_near(pnb__normal_cdf(-t), 1 - pnb__normal_cdf(t), 1e-15, 0);
        for (size_t i = 0; i < PNB_COUNT(df); i++) {
            assert_near(pnb__student_cdf(t, df[i]), 0.5 + integral(t, df[i]), 1e-11, 0);
            assert_near(pnb__student_cdf(-t, df[i]), 1 - pnb__student_cdf(t, df[i]), 1e-14, 0);
        }
    }
    assert_near(pnb__normal_cdf(-38), 0, 1e-300, 0);
    assert_near(pnb__student_cdf(1e200, 3), 1, 1e-15, 0);
}

static void inverses(void **state)
{
    (void)state;
    static const double p[] = {1e-6, 0.01, 0.3, 0.5, 0.9, 0.999};
    for (size_t i = 0; i < PNB_COUNT(p); i++) {
        assert_near(pnb__normal_cdf(pnb__normal_quantile(p[i])), p[i], 0, 1e-12);
        for (double df = 0.5; df < 100; df *= 3)
            assert_near(pnb__student_cdf(pnb__student_quantile(p[i], df), df), p[i], 0, 1e-9);
    }
    assert_near(pnb__student_quantile(0.75, 1), 1, 0, 1e-12); /* Cauchy's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(student_and_normal),
        cmocka_unit_test(densities),
        cmocka_unit_test(inverses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
