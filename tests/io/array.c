/* Array views: conversion of every type from any address, checks, and their words. */
#include "tests/io/scratch.h"

#include <math.h>

#include "io/array.h"

static pnb_array_view view_of(pnb_dtype dtype, int64_t n, const void *data)
{
    pnb_array_view a = {"x", dtype, 1, {n}, data, (size_t)n * pnb_dtype_size(dtype)};
    return a;
}

/* X(dtype, C type, three values) */
#define SAMPLES(X)                                                                                 \
    X(PNB_F32, float, 1.5f, -0.25f, 3e38f)                                                         \
    X(PNB_F64, double, 1.5, -0.1, 1e300)                                                           \
    X(PNB_I64, int64_t, INT64_MIN, -1, INT64_MAX)                                                  \
    X(PNB_I32, int32_t, INT32_MIN, -1, INT32_MAX)                                                  \
    X(PNB_I16, int16_t, INT16_MIN, -1, INT16_MAX)                                                  \
    X(PNB_I8, int8_t, INT8_MIN, -1, INT8_MAX)                                                      \
    X(PNB_U8, uint8_t, 0, 1, UINT8_MAX)                                                            \
    X(PNB_U16, uint16_t, 0, 1, UINT16_MAX)                                                         \
    X(PNB_U32, uint32_t, 0, 1, UINT32_MAX)                                                         \
    X(PNB_U64, uint64_t, 0, 1, UINT64_MAX)

/* Every type, from an odd address, into both targets. */
static void arrays_convert_unaligned(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    unsigned char raw[32];
    float f32[3];
    double f64[3];
#define CHECK_SAMPLE(dtype, type, a, b, c)                                                         \
    {                                                                                              \
        const type values[3] = {a, b, c};                                                          \
        memcpy(raw + 1, values, sizeof(values));                                                   \
        pnb_array_view view = view_of(dtype, 3, raw + 1);                                          \
        assert_int_equal(pnb_array_is_aligned(&view), sizeof(type) == 1);                          \
        assert_ok(pnb_array_to_f32(&view, f32, &err), &err);                                       \
        assert_ok(pnb_array_to_f64(&view, f64, &err), &err);                                       \
        for (int i = 0; i < 3; i++) {                                                              \
            assert_true(f32[i] == (float)values[i]);                                               \
            assert_true(f64[i] == (double)values[i]);                                              \
        }                                                                                          \
    }
    SAMPLES(CHECK_SAMPLE)
}

static void arrays_convert_to_integers(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    int64_t out[3] = {7, 7, 7};
    const int16_t shorts[3] = {-32768, -1, 32767};
    const uint64_t large[3] = {1, UINT64_MAX, 2};
    const uint8_t flags[3] = {0, 1, 200};
    const float floats[3] = {1, 2, 3};
    pnb_array_view a = view_of(PNB_U64, 3, large);
    assert_failed(pnb_array_to_i64(&a, out, &err), &err, PNB_NUMERIC, "element 1");
    assert_int_equal(out[0], 7);
    pnb_error_reset(&err);
    a = view_of(PNB_F32, 3, floats);
    assert_failed(pnb_array_to_i64(&a, out, &err), &err, PNB_DTYPE, "F32");
    a = view_of(PNB_I16, 3, shorts);
    assert_int_equal(pnb_array_to_i64(&a, out, NULL), PNB_OK);
    assert_true(out[0] == -32768 && out[1] == -1 && out[2] == 32767);
    a = view_of(PNB_BOOL, 3, flags);
    assert_int_equal(pnb_array_to_i64(&a, out, NULL), PNB_OK);
    assert_true(out[0] == 0 && out[1] == 1 && out[2] == 1);
}

/* Value of a binary16 by its definition. */
static double value_of_f16(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double magnitude = exponent == 0    ? ldexp(fraction, -24)
                       : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                        : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void half_arrays_longer_than_a_chunk(void **state)
{
    (void)state;
    enum { N = 1300 };
    unsigned char raw[2 * N + 1];
    float f32[N];
    double f64[N];
    for (unsigned i = 0; i < N; i++) {
        uint16_t half = (uint16_t)(0x3000 + 7 * i);
        memcpy(raw + 1 + 2 * i, &half, 2);
    }
    pnb_array_view a = view_of(PNB_F16, N, raw + 1);
    assert_int_equal(pnb_array_to_f32(&a, f32, NULL), PNB_OK);
    assert_int_equal(pnb_array_to_f64(&a, f64, NULL), PNB_OK);
    for (unsigned i = 0; i < N; i++) {
        assert_true((double)f32[i] == value_of_f16((uint16_t)(0x3000 + 7 * i)));
        assert_true(f64[i] == (double)f32[i]);
    }
}

static void inconsistent_views_are_refused(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    float data[2] = {1, 2}, out[2];
    pnb_array_view a = view_of(PNB_F32, 2, data);
    a.n_bytes = 7;
    assert_failed(pnb_array_to_f32(&a, out, &err), &err, PNB_SHAPE, "7 bytes");
    pnb_error_reset(&err);
    a = view_of(PNB_F32, 2, NULL);
    assert_failed(pnb_array_to_f32(&a, out, &err), &err, PNB_ARG, "NULL");
    pnb_error_reset(&err);
    a = view_of(PNB_N_DTYPES, 2, data);
    assert_failed(pnb_array_to_f32(&a, out, &err), &err, PNB_DTYPE, "dtype");
    pnb_error_reset(&err);
    pnb_array_view wide = {"x", PNB_F32, 3, {INT64_MAX, INT64_MAX, 2}, data, 8};
    assert_failed(pnb_array_to_f64(&wide, NULL, &err), &err, PNB_SHAPE, "overflows");
    pnb_error_reset(&err);
    wide = (pnb_array_view){"x", PNB_F32, 2, {-1, 2}, data, 8};
    assert_failed(pnb_array_to_f64(&wide, NULL, &err), &err, PNB_SHAPE, "-1");
    assert_int_equal(pnb_array_to_f32(NULL, out, NULL), PNB_ARG);
    pnb_array_view empty = {"x", PNB_F32, 2, {0, INT64_MAX}, NULL, 0}; /* 0 wins over overflow */
    assert_int_equal(pnb_array_to_f32(&empty, NULL, NULL), PNB_OK);
}

/* BOOL becomes 0 or 1 whatever the byte, bf16 keeps the upper half of a float. */
static void bools_and_bfloats(void **state)
{
    (void)state;
    const uint8_t flags[3] = {0, 1, 200};
    const uint16_t halves[2] = {0x3FC0, 0xC000}; /* 1.5, -2 */
    float f32[3];
    double f64[3];
    pnb_array_view a = view_of(PNB_BOOL, 3, flags);
    assert_int_equal(pnb_array_to_f32(&a, f32, NULL), PNB_OK);
    assert_int_equal(pnb_array_to_f64(&a, f64, NULL), PNB_OK);
    assert_true(f32[0] == 0 && f32[1] == 1 && f32[2] == 1 && f64[2] == 1);
    a = view_of(PNB_BF16, 2, halves);
    assert_int_equal(pnb_array_to_f64(&a, f64, NULL), PNB_OK);
    assert_true(f64[0] == 1.5 && f64[1] == -2);
}

static void sizes_in_bytes(void **state)
{
    (void)state;
    static const struct {
        pnb_dtype dtype;
        int n_dims;
        int64_t shape[PNB_MAX_DIMS];
        pnb_status status;
        size_t want;
    } cases[] = {{PNB_F32, 0, {0}, PNB_OK, 4},
                 {PNB_F64, 3, {2, 3, 5}, PNB_OK, 240},
                 {PNB_U8, 8, {1, 1, 1, 1, 1, 1, 1, 7}, PNB_OK, 7},
                 {PNB_I64, 2, {0, 3}, PNB_OK, 0},
                 {PNB_U8, 9, {1}, PNB_LIMIT, 0},
                 {PNB_U8, -1, {1}, PNB_LIMIT, 0},
                 {PNB_U8, 2, {3, -1}, PNB_SHAPE, 0},
                 {PNB_U8, 2, {0, -1}, PNB_SHAPE, 0}, /* an extent of 0 excuses nothing */
                 {PNB_F32, 1, {INT64_MAX}, PNB_SHAPE, 0},
                 {PNB_U8, 1, {INT64_MAX}, PNB_OK, INT64_MAX},
                 {PNB_N_DTYPES, 1, {1}, PNB_DTYPE, 0}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        size_t n = 99;
        pnb_status found =
            pnb__array_n_bytes(cases[i].dtype, cases[i].shape, cases[i].n_dims, &n, NULL);
        assert_int_equal(found, cases[i].status);
        assert_true(n == (found == PNB_OK ? cases[i].want : 99)); /* untouched on failure */
    }
}

static void views_in_words(void **state)
{
    (void)state;
    char text[32], cut[9];
    const pnb_array_view scalar = {"x", PNB_F32, 0, {0}, NULL, 4},
                         two = {"x", PNB_BF16, 2, {12, 3}, NULL, 72};
    pnb__array_describe(&scalar, text, sizeof text);
    assert_string_equal(text, "F32 []");
    pnb__array_describe(&two, text, sizeof text);
    assert_string_equal(text, "BF16 [12, 3]");
    pnb__array_describe(&two, cut, sizeof cut);
    assert_string_equal(cut, "BF16 [12");
    assert_int_equal(pnb_array_size(&two), 36);
    const pnb_array_view unknown = {"x", PNB_N_DTYPES, 1, {3}, NULL, 12};
    assert_int_equal(pnb_array_size(&unknown), 0);
    assert_false(pnb_array_is_aligned(&unknown));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_convert_unaligned),
        cmocka_unit_test(arrays_convert_to_integers),
        cmocka_unit_test(half_arrays_longer_than_a_chunk),
        cmocka_unit_test(inconsistent_views_are_refused),
        cmocka_unit_test(bools_and_bfloats),
        cmocka_unit_test(sizes_in_bytes),
        cmocka_unit_test(views_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
