/* Half-precision conversions against doubles computed from the definition, and array conversion. */
#include "tests/io/scratch.h"

#include <float.h>
#include <math.h>

#include "io/array.h"
#include "penumbra/safetensors.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
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

static double value_of_bf16(uint16_t half)
{
    int exponent = half >> 7 & 255, fraction = half & 127;
    double magnitude = exponent == 0     ? ldexp(fraction, -133)
                       : exponent == 255 ? (fraction != 0 ? NAN : INFINITY)
                                         : ldexp(128 + fraction, exponent - 134);
    return half & 0x8000 ? -magnitude : magnitude;
}

typedef struct half_type {
    double (*value)(uint16_t);
    void (*widen)(const uint16_t *, float *, size_t);
    void (*narrow)(const float *, uint16_t *, size_t);
    uint16_t infinity;
} half_type;

static const half_type half_types[] = {
    {value_of_f16, pnb_f16_to_f32, pnb_f32_to_f16, 0x7c00},
    {value_of_bf16, pnb_bf16_to_f32, pnb_f32_to_bf16, 0x7f80},
};

static uint16_t narrow(const half_type *type, float x)
{
    uint16_t half;
    type->narrow(&x, &half, 1);
    return half;
}

static void all_patterns_widen_exactly(void **state)
{
    (void)state;
    for (size_t t = 0; t < PNB_COUNT(half_types); t++) {
        for (unsigned pattern = 0; pattern < 65536; pattern++) {
            uint16_t half = (uint16_t)pattern;
            float found;
            half_types[t].widen(&half, &found, 1);
            double wanted = half_types[t].value(half);
            if (isnan(wanted)) {
                assert_true(isnan(found));
                assert_int_equal(signbit(found) != 0, half >> 15);
            } else {
                assert_true((double)found == wanted);
                assert_int_equal(signbit(found) != 0, half >> 15);
                assert_int_equal(narrow(&half_types[t], found), half);
            }
        }
    }
}

/* NaNs keep sign and payload on the way up, and come back quiet. */
static void nan_payloads(void **state)
{
    (void)state;
    uint16_t half = 0x7d23, back;
    float wide;
    pnb_f16_to_f32(&half, &wide, 1);
    assert_int_equal(bits_of(wide), 0x7f800000u | 0x123u << 13);
    pnb_f32_to_f16(&wide, &back, 1);
    assert_int_equal(back, 0x7d23 | 0x0200);
    uint32_t bits = 0xff800001u; /* payload only in bits that fall off */
    memcpy(&wide, &bits, sizeof(wide));
    assert_int_equal(narrow(&half_types[0], wide), 0xfe00);
    assert_int_equal(narrow(&half_types[1], wide), 0xffc0);
}

/* Around every midpoint of neighbours: below goes down, above goes up, the tie goes to even. */
static void narrowing_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (size_t t = 0; t < PNB_COUNT(half_types); t++) {
        const half_type *type = &half_types[t];
        for (uint16_t low = 0; low + 1 < type->infinity; low++) {
            uint16_t high = (uint16_t)(low + 1);
            double middle = (type->value(low) + type->value(high)) / 2;
            uint16_t even = low % 2 == 0 ? low : high;
            assert_true(middle == (double)(float)middle);
            assert_int_equal(narrow(type, (float)middle), even);
            assert_int_equal(narrow(type, nextafterf((float)middle, 0)), low);
            assert_int_equal(narrow(type, nextafterf((float)middle, INFINITY)), high);
            assert_int_equal(narrow(type, -(float)middle), even | 0x8000);
        }
    }
}

static void narrowing_overflow(void **state)
{
    (void)state;
    assert_int_equal(narrow(&half_types[0], 65504.0f), 0x7bff);
    assert_int_equal(narrow(&half_types[0], 65519.996f), 0x7bff);
    assert_int_equal(narrow(&half_types[0], 65520.0f), 0x7c00);
    assert_int_equal(narrow(&half_types[0], -FLT_MAX), 0xfc00);
    assert_int_equal(narrow(&half_types[1], FLT_MAX), 0x7f80);
    assert_int_equal(narrow(&half_types[1], INFINITY), 0x7f80);
    assert_int_equal(narrow(&half_types[0], 0x1p-149f), 0);
    assert_int_equal(narrow(&half_types[0], -0.0f), 0x8000);
}

static void names_and_sizes(void **state)
{
    (void)state;
    pnb_dtype found = PNB_U8;
    for (int i = 0; i < PNB_N_DTYPES; i++) {
        assert_true(pnb_dtype_from_name(&found, pnb_dtype_name((pnb_dtype)i)));
        assert_int_equal(found, i);
        assert_true(pnb_dtype_size((pnb_dtype)i) >= 1 && pnb_dtype_size((pnb_dtype)i) <= 8);
    }
    found = PNB_U8;
    assert_false(pnb_dtype_from_name(&found, "F8_E4M3"));
    assert_false(pnb_dtype_from_name(&found, "f32"));
    assert_int_equal(found, PNB_U8);
    assert_string_equal(pnb_dtype_name(PNB_N_DTYPES), "UNKNOWN");
    assert_int_equal(pnb_dtype_size((pnb_dtype)-1), 0);
    assert_string_equal(pnb_dtype_name(PNB_BF16), "BF16");
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_patterns_widen_exactly),
        cmocka_unit_test(nan_payloads),
        cmocka_unit_test(narrowing_rounds_to_nearest_even),
        cmocka_unit_test(narrowing_overflow),
        cmocka_unit_test(names_and_sizes),
        cmocka_unit_test(arrays_convert_unaligned),
        cmocka_unit_test(arrays_convert_to_integers),
        cmocka_unit_test(half_arrays_longer_than_a_chunk),
        cmocka_unit_test(inconsistent_views_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
