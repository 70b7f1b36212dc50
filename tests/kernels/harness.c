/* Plants faults and expects the harness of these tests to see them. */
#include "tests/kernels/harness.h"

/* One output of 20 values, as a correct kernel would leave it. */
static void prepare(fixture *x, double **want)
{
    fixture_init(x, 1, 1e-6, 1e-6);
    int out = output(x, 20, false);
    arrays_reset(x);
    array *a = &x->arrays[out];
    *want = malloc(a->n * sizeof **want);
    assert_non_null(*want);
    for (size_t i = 0; i < a->n; i++) {
        (*want)[i] = a->init[i];
        a->f[GUARD + i] = (float)a->init[i];
    }
}

static void test_wrong_values_are_seen(void **state)
{
    (void)state;
    fixture x;
    double *want;
    prepare(&x, &want);
    array *a = &x.arrays[0];
    assert_int_equal(first_miss(&x, a, want), -1);
    float right = a->f[GUARD + 7];
    const float wrong[] = {-right, 2 * right, 0, NAN, INFINITY, right * 1.00001f + 1e-5f};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        a->f[GUARD + 7] = wrong[i];
        assert_int_equal(first_miss(&x, a, want), 7);
    }
    a->f[GUARD + 7] = right;
    want[9] = NAN; /* a reference that is not a number passes for nothing */
    assert_int_equal(first_miss(&x, a, want), 9);
    free(want);
    fixture_free(&x);
}

static void test_missing_values_are_seen(void **state)
{
    (void)state;
    fixture x;
    double *want;
    prepare(&x, &want);
    arrays_reset(&x); /* as if the kernel had written nothing */
    assert_int_equal(first_miss(&x, &x.arrays[0], want), 0);
    free(want);
    fixture_free(&x);
}

static void test_writes_outside_are_seen(void **state)
{
    (void)state;
    static const size_t places[] = {0, GUARD - 1, GUARD + 20, 2 * GUARD + 19};
    for (size_t i = 0; i < PNB_COUNT(places); i++) {
        fixture x;
        double *want;
        int which;
        long at;
        prepare(&x, &want);
        assert_false(guard_broken(&x, &which, &at));
        x.arrays[0].f[places[i]] = 0;
        assert_true(guard_broken(&x, &which, &at));
        assert_int_equal(at, (long)places[i] - GUARD);
        free(want);
        fixture_free(&x);
    }
}

static double cube(void *user)
{
    double x = *(double *)user;
    return x * x * x;
}

static void test_derivatives_are_right(void **state)
{
    (void)state;
    double x = 1.5, dx = 3 * 1.5 * 1.5;
    check_gradient(cube, &x, &x, &dx, 1, 1e-8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong_values_are_seen),
                                       cmocka_unit_test(test_missing_values_are_seen),
                                       cmocka_unit_test(test_writes_outside_are_seen),
                                       cmocka_unit_test(test_derivatives_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
