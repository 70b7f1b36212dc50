/* Half-precision conversions against doubles computed from the definition; names and sizes of
 * types. */
#include "tests/io/scratch.h"

#include <float.h>
#include <math.h>

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
    static const struct {
        const char *name;
        size_t size;
    } types[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                 {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
                 {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
    pnb_dtype found = PNB_U8;
    assert_int_equal(PNB_COUNT(types), PNB_N_DTYPES);
    for (size_t i = 0; i < PNB_COUNT(types); i++) {
        assert_true(pnb_dtype_from_name(&found, types[i].name));
        assert_int_equal(pnb_dtype_size(found), types[i].size);
        assert_string_equal(pnb_dtype_name(found), types[i].name);
    }
    for (int i = 0; i < PNB_N_DTYPES; i++) {
        assert_true(pnb_dtype_from_name(&found, pnb_dtype_name((pnb_dtype)i)));
        assert_int_equal(found, i);
    }
    found = PNB_U8;
    assert_false(pnb_dtype_from_name(&found, "F8_E4M3"));
    assert_false(pnb_dtype_from_name(&found, "f32"));
    assert_int_equal(found, PNB_U8);
    assert_string_equal(pnb_dtype_name(PNB_N_DTYPES), "UNKNOWN");
    assert_int_equal(pnb_dtype_size((pnb_dtype)-1), 0);
    assert_string_equal(pnb_dtype_name(PNB_BF16), "BF16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_patterns_widen_exactly),
        cmocka_unit_test(nan_payloads),
        cmocka_unit_test(narrowing_rounds_to_nearest_even),
        cmocka_unit_test(narrowing_overflow),
        cmocka_unit_test(names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
