/* Bins: borders of one width or of one ratio, and where values fall, those at the ends and beyond
 * them too. */
#include "report/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void near(double got, double wanted)
{
    assert_true(fabs(got - wanted) <= 1e-12 * fabs(wanted));
}

static void test_borders(void **state)
{
    (void)state;
    const double values[] = {3, NAN, 1, INFINITY, 9, 2};
    pnb__bins even = pnb__bins_over(values, 6, false, 4);
    assert_int_equal(even.n, 4);
    for (size_t i = 0; i <= 4; i++)
        near(pnb__bin_border(&even, i), 1 + 2 * (double)i);
    pnb__bins log = pnb__bins_over(values, 6, true, 2);
    near(pnb__bin_border(&log, 0), 1);
    near(pnb__bin_border(&log, 1), 3);
    near(pnb__bin_border(&log, 2), 9);
}

/* A value on a border belongs to the bin above it, the largest one to the last. */
static void test_places(void **state)
{
    (void)state;
    const double values[] = {1, 9};
    static const struct {
        double value;
        size_t even, log;
    } cases[] = {{1, 0, 0},    {2.9, 0, 0}, {3.1, 1, 1}, {5, 2, 1},
                 {8.99, 3, 1}, {9, 3, 1},   {0.5, 0, 0}, {20, 3, 1}};
    pnb__bins even = pnb__bins_over(values, 2, false, 4), log = pnb__bins_over(values, 2, true, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pnb__bin_of(&even, cases[i].value), cases[i].even);
        assert_int_equal(pnb__bin_of(&log, cases[i].value), cases[i].log);
    }
    assert_int_equal(pnb__bin_of(&log, -1), 0); /* no logarithm */
}

static void test_nothing_to_tell_apart(void **state)
{
    (void)state;
    const double same[] = {2, 2, 2}, below[] = {-3, 0, -1}, bad[] = {NAN, INFINITY};
    assert_int_equal(pnb__bins_over(same, 3, false, 8).n, 0);
    assert_int_equal(pnb__bins_over(below, 3, true, 8).n, 0);
    assert_int_equal(pnb__bins_over(bad, 2, false, 8).n, 0);
    assert_int_equal(pnb__bins_over(NULL, 0, false, 8).n, 0);
    assert_int_equal(pnb__bins_over(below, 3, false, 8).n, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_borders),
                                       cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_nothing_to_tell_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
