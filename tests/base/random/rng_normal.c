/* Normal random numbers: their moments, the formula in long double, one by one and many at once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/random/rng.h"

#define N_DRAWS 200000

static void normal_moments(void **state)
{
    (void)state;
    pnb__rng r;
    pnb__rng_init(&r, 8, 0);
    double sum[5] = {0};
    for (int i = 0; i < N_DRAWS; i++) {
        double z = pnb__rng_normal(&r);
        assert_true(isfinite(z));
        for (int k = 1; k < 5; k++)
            sum[k] += pow(z, k) / N_DRAWS;
    }
    assert_true(fabs(sum[1]) < 5 * sqrt(1.0 / N_DRAWS));
    assert_true(fabs(sum[2] - 1) < 5 * sqrt(2.0 / N_DRAWS));
    assert_true(fabs(sum[3]) < 5 * sqrt(15.0 / N_DRAWS));
    assert_true(fabs(sum[4] - 3) < 5 * sqrt(96.0 / N_DRAWS));
}

static long double box_muller(const uint32_t w[4])
{
    long double u = 1 - (long double)(w[0] * ((uint64_t)1 << 21) + (w[1] >> 11)) * 0x1p-53L;
    long double v = (long double)(w[2] * ((uint64_t)1 << 21) + (w[3] >> 11)) * 0x1p-53L;
    return sqrtl(-2 * logl(u)) * cosl(8 * atanl(1) * v);
}

/* The series are within a few roundings of the same formula in long double, also where they end:
 * u = 1 and 2^-53, angles at and beside quarters and eighths of a turn. */
static void normals_are_box_mullers(void **state)
{
    (void)state;
    static const uint32_t ends[] = {0,           1u << 11,    0x3FFFFFFFu, 0x40000000u, 0x7FFFFFFFu,
                                    0x80000000u, 0xBFFFFFFFu, 0xC0000000u, 0x1FFFFFFFu, 0x20000000u,
                                    0xE0000000u, 0x4AFB0CCCu, 0xFFFFFFFFu};
    enum { N_ENDS = PNB_COUNT(ends) };
    size_t n_ends = (size_t)N_ENDS * N_ENDS * N_ENDS * N_ENDS;
    for (size_t i = 0; i < N_DRAWS + n_ends; i++) {
        uint32_t w[4];
        size_t k = i - N_DRAWS;
        pnb__rng_block(31, 2, i, w);
        for (int j = 0; i >= N_DRAWS && j < 4; j++, k /= N_ENDS)
            w[j] = ends[k % N_ENDS];
        long double z = box_muller(w), off = fabsl(z - pnb__rng_normal_of(w));
        if (!(off < 1e-15L * fmaxl(fabsl(z), 2)))
            fail_msg("%08x %08x %08x %08x: %.17Lg off by %.3Lg", w[0], w[1], w[2], w[3], z, off);
    }
}

/* More than are made at once, the counter's upper half in use, and the generator left where it was.
 */
static void normals_at_once(void **state)
{
    (void)state;
    const uint64_t counters[] = {0, 4 * 77, ((uint64_t)1 << 34) - 4 * 3};
    double out[201];
    for (size_t c = 0; c < 3; c++)
        for (size_t n = 0; n <= 201; n += 67) {
            pnb__rng r;
            pnb__rng_init(&r, 0x123456789abcULL, 0x9876543210ULL);
            r.counter = counters[c];
            pnb__rng one = r;
            pnb__rng_normals(&r, n, out);
            for (size_t i = 0; i < n; i++)
                assert_true(out[i] == pnb__rng_normal(&one));
            assert_int_equal(r.counter, one.counter);
            assert_int_equal(pnb__rng_u32(&r), pnb__rng_u32(&one));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_moments),
        cmocka_unit_test(normals_are_box_mullers),
        cmocka_unit_test(normals_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
