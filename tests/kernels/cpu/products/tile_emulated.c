/* The emulated tile instructions against what Intel's pseudo-code gives for numbers chosen so that
 * order, rounding, flushing and wrapping show; shapes smaller than a tile. */
#include "kernels/cpu/products/tile_emulated.h"

#include "tests/kernels/harness.h"

#include "kernels/bf16.h"

static pnb__tile tile(size_t rows, size_t row_bytes)
{
    pnb__tile t;
    memset(&t, 0xAA, sizeof t);
    t.rows = rows;
    t.row_bytes = row_bytes;
    return t;
}

static void put_half(pnb__tile *t, size_t row, size_t i, float x)
{
    uint16_t half = pnb__bf16_of(x);
    memcpy(t->row[row] + 2 * i, &half, sizeof half);
}

static float sum_of(const pnb__tile *t, size_t row, size_t n)
{
    float x;
    memcpy(&x, t->row[row] + 4 * n, sizeof x);
    return x;
}

static void put_sum(pnb__tile *t, size_t row, size_t n, float x)
{
    memcpy(t->row[row] + 4 * n, &x, sizeof x);
}

/* One sum of pairs (a0 b0 + a1 b1) with b all 1. */
static float sum_of_pairs(const float *a, size_t n_pairs, float c0)
{
    pnb__tile a_tile = tile(1, 4 * n_pairs), b = tile(n_pairs, 4), c = tile(1, 4);
    for (size_t i = 0; i < 2 * n_pairs; i++) {
        put_half(&a_tile, 0, i, a[i]);
        put_half(&b, i / 2, i % 2, 1);
    }
    put_sum(&c, 0, 0, c0);
    pnb__tile_dpbf16ps(&c, &a_tile, &b);
    return sum_of(&c, 0, 0);
}

static void test_order_of_halves(void **state)
{
    (void)state;
    /* Even and odd places do not meet before the end: 2^24 + 1 would be lost in one chain. */
    assert_true(sum_of_pairs((const float[]){0x1p24f, 1, -0x1p24f, 1}, 2, 0) == 2);
    /* c is added last: 2^24 + (1 + 1), not (2^24 + 1) + 1. */
    assert_true(sum_of_pairs((const float[]){1, 1}, 1, 0x1p24f) == 0x1p24f + 2);
    /* and once: (c + e) + o would lose both */
    assert_true(sum_of_pairs((const float[]){1, 1, 0, 0}, 2, 0x1p25f) == 0x1p25f);
    assert_true(sum_of_pairs((const float[]){3, 2, 0, 0}, 2, 0x1p25f) == 0x1p25f + 4);
    assert_true(sum_of_pairs((const float[]){FLT_MIN, 0, -FLT_MIN / 2, 0}, 2, 0) == FLT_MIN);
    assert_true(sum_of_pairs((const float[]){0, 0}, 1, FLT_MIN / 4) == 0);
    assert_true(sum_of_pairs((const float[]){1.5f * FLT_MIN, -FLT_MIN}, 1, 0) == 0);
}

static void test_shape_of_halves(void **state)
{
    (void)state;
    pnb__tile a = tile(3, 8), b = tile(2, 20), c = tile(3, 20);
    for (size_t m = 0; m < 3; m++)
        for (size_t k = 0; k < 4; k++)
            put_half(&a, m, k, (float)(1 + m + 3 * k));
    for (size_t k = 0; k < 4; k++)
        for (size_t n = 0; n < 5; n++)
            put_half(&b, k / 2, 2 * n + k % 2, (float)(k + 7 * n));
    for (size_t m = 0; m < 3; m++)
        for (size_t n = 0; n < 5; n++)
            put_sum(&c, m, n, (float)m);
    pnb__tile_dpbf16ps(&c, &a, &b);
    for (size_t m = 0; m < 3; m++)
        for (size_t n = 0; n < 5; n++) {
            float want = (float)m;
            for (size_t k = 0; k < 4; k++)
                want += (float)(1 + m + 3 * k) * (float)(k + 7 * n);
            assert_true(sum_of(&c, m, n) == want);
        }
    assert_int_equal(c.row[3][0], 0xAA); /* rows that the tile has not */
}

typedef void (*bytes_fn)(pnb__tile *c, const pnb__tile *a, const pnb__tile *b);

static void check_bytes(bytes_fn multiply, bool a_signed, bool b_signed)
{
    pnb__tile a = tile(4, 12), b = tile(3, 16), c = tile(4, 16);
    pnb__rng rng;
    pnb__rng_init(&rng, a_signed, b_signed);
    for (size_t i = 0; i < sizeof a.row; i++)
        ((unsigned char *)a.row)[i] = (unsigned char)pnb__rng_below(&rng, 256);
    for (size_t i = 0; i < sizeof b.row; i++)
        ((unsigned char *)b.row)[i] = (unsigned char)pnb__rng_below(&rng, 256);
    for (size_t m = 0; m < 4; m++)
        for (size_t n = 0; n < 4; n++) {
            int32_t start = n == 3 ? INT32_MAX - 5 : (int32_t)(m + n);
            memcpy(c.row[m] + 4 * n, &start, sizeof start);
        }
    multiply(&c, &a, &b);
    for (size_t m = 0; m < 4; m++)
        for (size_t n = 0; n < 4; n++) {
            int64_t want = n == 3 ? INT32_MAX - 5 : (int64_t)(m + n);
            for (size_t k = 0; k < 12; k++) {
                unsigned char x = a.row[m][k], y = b.row[k / 4][4 * n + k % 4];
                want += (int64_t)(a_signed ? (signed char)x : x) * (b_signed ? (signed char)y : y);
            }
            int32_t got;
            memcpy(&got, c.row[m] + 4 * n, sizeof got);
            assert_int_equal((uint32_t)got, (uint32_t)(uint64_t)want); /* wraps, never saturates */
        }
}

static void test_bytes(void **state)
{
    (void)state;
    check_bytes(pnb__tile_dpbssd, true, true);
    check_bytes(pnb__tile_dpbsud, true, false);
    check_bytes(pnb__tile_dpbusd, false, true);
    check_bytes(pnb__tile_dpbuud, false, false);
}

/* Rows a step apart; what a tile lacks is zero after loading and untouched in memory. */
static void test_moving(void **state)
{
    (void)state;
    unsigned char from[200], to[200];
    pnb__tile t = tile(3, 10);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i + 1);
    memset(to, 0, sizeof to);
    pnb__tile_load(&t, from, 50);
    pnb__tile_store(&t, to, 40);
    for (size_t i = 0; i < sizeof to; i++)
        assert_int_equal(to[i], i / 40 < 3 && i % 40 < 10 ? from[i / 40 * 50 + i % 40] : 0);
    assert_int_equal(t.row[0][10], 0);
    assert_int_equal(t.row[3][0], 0);
    pnb__tile_zero(&t);
    assert_int_equal(t.row[2][9], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_of_halves),
                                       cmocka_unit_test(test_shape_of_halves),
                                       cmocka_unit_test(test_bytes), cmocka_unit_test(test_moving)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
