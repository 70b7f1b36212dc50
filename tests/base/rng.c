/* Philox4x32-10 against the vectors of its authors, and what is built on it: uniforms, normals,
 * bounded integers, shuffles, resuming from the three saved numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/rng.h"

#define N_DRAWS 200000

/* kat_vectors of Random123: counter words 0-3, key words 0-1, result. */
static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, stream, counter;
        uint32_t want[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        uint32_t got[4];
        pnb__rng_block(cases[i].seed, cases[i].stream, cases[i].counter, got);
        assert_memory_equal(got, cases[i].want, sizeof got);
    }
}

static void words_come_from_the_blocks(void **state)
{
    (void)state;
    pnb__rng r;
    pnb__rng_init(&r, 5, 9);
    for (uint64_t block = 0; block < 10; block++) {
        uint32_t want[4];
        pnb__rng_block(5, 9, block, want);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pnb__rng_u32(&r), want[i]);
    }
}

static void three_numbers_resume_it(void **state)
{
    (void)state;
    for (int n_before = 0; n_before < 12; n_before++) {
        pnb__rng r, resumed;
        pnb__rng_init(&r, 123, 4);
        for (int i = 0; i < n_before; i++)
            (void)pnb__rng_u32(&r);
        pnb__rng_init(&resumed, r.seed, r.stream);
        resumed.counter = r.counter;
        for (int i = 0; i < 20; i++)
            assert_int_equal(pnb__rng_u32(&r), pnb__rng_u32(&resumed));
    }
}

static void streams_and_seeds_differ(void **state)
{
    (void)state;
    pnb__rng a, b, c;
    pnb__rng_init(&a, 1, 0);
    pnb__rng_init(&b, 1, 1);
    pnb__rng_init(&c, 2, 0);
    int n_equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t x = pnb__rng_u32(&a), y = pnb__rng_u32(&b), z = pnb__rng_u32(&c);
        n_equal += (x == y) + (x == z) + (y == z);
    }
    assert_true(n_equal <= 1);
}

/* Bounds are five standard errors for N_DRAWS independent draws. */
static void uniform_moments(void **state)
{
    (void)state;
    pnb__rng r;
    pnb__rng_init(&r, 7, 0);
    double sum = 0, sum2 = 0;
    for (int i = 0; i < N_DRAWS; i++) {
        double u = pnb__rng_uniform(&r);
        assert_true(u >= 0 && u < 1);
        sum += u;
        sum2 += u * u;
    }
    assert_true(fabs(sum / N_DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / N_DRAWS));
    assert_true(fabs(sum2 / N_DRAWS - 1.0 / 3) < 5 * sqrt(4.0 / 45 / N_DRAWS));
}

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

static void below_is_even(void **state)
{
    (void)state;
    pnb__rng r;
    pnb__rng_init(&r, 9, 0);
    int count[7] = {0};
    for (int i = 0; i < 70000; i++)
        count[pnb__rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_true(abs(count[i] - 10000) < 500);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pnb__rng_below(&r, 1), 0);
        assert_true(pnb__rng_below(&r, UINT64_MAX) < UINT64_MAX);
    }
    /* Two thirds of the 64-bit range: without rejection the lower half would win 2 to 1. */
    uint64_t n = UINT64_MAX / 3 * 2;
    int n_low = 0;
    for (int i = 0; i < 10000; i++)
        n_low += pnb__rng_below(&r, n) < n / 2;
    assert_true(abs(n_low - 5000) < 300);
}

static void shuffle_permutes(void **state)
{
    (void)state;
    enum { N = 1000 };
    uint32_t items[N], again[N];
    bool seen[N] = {false};
    for (uint32_t i = 0; i < N; i++)
        items[i] = again[i] = i;
    pnb__rng r;
    pnb__rng_init(&r, 10, 0);
    pnb__rng_shuffle(&r, items, N);
    int n_fixed = 0;
    for (uint32_t i = 0; i < N; i++) {
        assert_false(seen[items[i]]);
        seen[items[i]] = true;
        n_fixed += items[i] == i;
    }
    assert_true(n_fixed < 10); /* one is expected */
    pnb__rng_init(&r, 10, 0);
    pnb__rng_shuffle(&r, again, N);
    assert_memory_equal(items, again, sizeof items);
    pnb__rng_shuffle(&r, items, 0);
    pnb__rng_shuffle(&r, items, 1);
    assert_memory_equal(items, again, sizeof items);
}

/* All 24 orders of four items, each within five standard errors of 1000. */
static void shuffle_is_fair(void **state)
{
    (void)state;
    int count[256] = {0};
    pnb__rng r;
    pnb__rng_init(&r, 11, 0);
    for (int i = 0; i < 24000; i++) {
        uint32_t items[4] = {0, 1, 2, 3};
        pnb__rng_shuffle(&r, items, 4);
        count[items[0] << 6 | items[1] << 4 | items[2] << 2 | items[3]]++;
    }
    int n_orders = 0;
    for (int i = 0; i < 256; i++) {
        if (count[i] == 0)
            continue;
        n_orders++;
        assert_true(abs(count[i] - 1000) < 155);
    }
    assert_int_equal(n_orders, 24);
}

static void hash_depends_on_every_byte(void **state)
{
    (void)state;
    unsigned char bytes[16] = {0};
    uint64_t base = pnb__hash_bytes(bytes, sizeof bytes, 0);
    assert_true(base == pnb__hash_bytes(bytes, sizeof bytes, 0));
    assert_true(base != pnb__hash_bytes(bytes, sizeof bytes - 1, 0));
    assert_true(base != pnb__hash_bytes(bytes, sizeof bytes, 1));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        uint64_t changed = pnb__hash_bytes(bytes, sizeof bytes, 0);
        int n_bits = __builtin_popcountll(changed ^ base);
        assert_true(n_bits > 12 && n_bits < 52);
        bytes[i] ^= 1;
    }
    assert_true(pnb__hash_bytes(NULL, 0, 0) == pnb__hash_bytes("", 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),           cmocka_unit_test(words_come_from_the_blocks),
        cmocka_unit_test(three_numbers_resume_it), cmocka_unit_test(streams_and_seeds_differ),
        cmocka_unit_test(uniform_moments),         cmocka_unit_test(normal_moments),
        cmocka_unit_test(normals_are_box_mullers), cmocka_unit_test(normals_at_once),
        cmocka_unit_test(below_is_even),           cmocka_unit_test(shuffle_permutes),
        cmocka_unit_test(shuffle_is_fair),         cmocka_unit_test(hash_depends_on_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
