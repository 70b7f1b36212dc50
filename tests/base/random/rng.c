/* Philox4x32-10 against the vectors of its authors, and what is built on it: uniforms,
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
#include "base/random/rng.h"

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
        cmocka_unit_test(known_answers),
        cmocka_unit_test(words_come_from_the_blocks),
        cmocka_unit_test(three_numbers_resume_it),
        cmocka_unit_test(streams_and_seeds_differ),
        cmocka_unit_test(uniform_moments),
        cmocka_unit_test(below_is_even),
        cmocka_unit_test(shuffle_permutes),
        cmocka_unit_test(shuffle_is_fair),
        cmocka_unit_test(hash_depends_on_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
