/* Intervals by formula: Wilson's by the equation it solves and by published values, that of a mean
 * by its standard error. */
#include "report/figure_interval.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

static const double z = 1.959963984540054;

/* The ends are the shares p from which the one seen is z standard errors of p away. */
static void test_wilson(void **state)
{
    static const double cases[][2] = {{0.5, 10}, {0.1, 10}, {0.9, 1000}, {1.0 / 3, 3}, {0.2, 1e7}};
    double low, high;
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        double share = cases[i][0], n = cases[i][1];
        pnb__share_interval(share, n, &low, &high);
        assert_true(0 < low && low < share && share < high && high < 1);
        assert_true(fabs((share - low) / sqrt(low * (1 - low) / n) - z) < 1e-6);
        assert_true(fabs((high - share) / sqrt(high * (1 - high) / n) - z) < 1e-6);
    }
    pnb__share_interval(0.5, 10, &low, &high);
    assert_true(fabs(low - 0.2366) < 5e-5 && fabs(high - 0.7634) < 5e-5);
}

static void test_wilson_edges(void **state)
{
    double low, high;
    (void)state;
    pnb__share_interval(0, 10, &low, &high);
    assert_true(low == 0 && fabs(high - z * z / (10 + z * z)) < 1e-12);
    pnb__share_interval(1, 1, &low, &high);
    assert_true(high == 1 && fabs(low - 1 / (1 + z * z)) < 1e-12);
    for (int i = 0; i < 3; i++) {
        static const double none[] = {0, -1, NAN};
        pnb__share_interval(0.5, none[i], &low, &high);
        assert_true(low == 0 && high == 1);
    }
}

static void test_mean(void **state)
{
    static const double values[] = {1, 2, 3, 4, 5}, alike[] = {7, 7};
    (void)state;
    assert_true(fabs(pnb__mean_half_width(values, 5) - z * sqrt(2.5 / 5)) < 1e-12);
    assert_true(fabs(pnb__mean_half_width(values, 2) - z * sqrt(0.5 / 2)) < 1e-12);
    assert_true(pnb__mean_half_width(alike, 2) == 0);
    assert_true(isnan(pnb__mean_half_width(values, 1)));
    assert_true(isnan(pnb__mean_half_width(NULL, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wilson),
                                       cmocka_unit_test(test_wilson_edges),
                                       cmocka_unit_test(test_mean)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
