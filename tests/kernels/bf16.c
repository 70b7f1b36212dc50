/* bfloat16 on the host: rounding at every place where it could go wrong, halves of the other kind,
 * and the step of a sum against the instruction where the machine has it. */
#include "tests/kernels/harness.h"

#include "kernels/bf16.h"

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_rounding(void **state)
{
    (void)state;
    for (uint32_t high = 0; high < 0x10000; high++) {
        bool is_nan = (high & 0x7f80) == 0x7f80 && (high & 0x7f) != 0;
        assert_int_equal(pnb__bf16_of(of_bits(high << 16)), is_nan ? high | 0x40 : high);
        if ((high & 0x7f80) == 0x7f80)
            continue;
        uint32_t up = high + 1, even = high % 2 == 0 ? high : up;
        assert_int_equal(pnb__bf16_of(of_bits(high << 16 | 0x7fff)), high);
        assert_int_equal(pnb__bf16_of(of_bits(high << 16 | 0x8000)), even);
        assert_int_equal(pnb__bf16_of(of_bits(high << 16 | 0x8001)), up);
    }
    assert_int_equal(pnb__bf16_of(of_bits(0x7f800001)), 0x7fc0); /* NaN of the lowest bit alone */
    assert_int_equal(pnb__bf16_of(FLT_MAX), 0x7f80);             /* infinite */
}

static void test_f16(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        int exponent = half >> 10 & 31, fraction = half & 0x3ff;
        double size =
            exponent == 0 ? fraction * 0x1p-24 : (1 + fraction / 1024.0) * pow(2, exponent - 15);
        double got = (double)pnb__f16_widen((uint16_t)half);
        if (exponent == 31 && fraction != 0)
            assert_true(isnan(got));
        else
            assert_true(fabs(got) == (exponent == 31 ? (double)INFINITY : size) &&
                        (signbit(got) != 0) == (half >> 15 != 0));
    }
}

/* Exact where it can be told without the instruction: one rounding, and none below the range. */
static void test_steps(void **state)
{
    (void)state;
    const uint16_t one = 0x3f80, tiny = 0x0001, half_ulp = 0x3380 /* 2^-24 */;
    assert_true(pnb__bf16_fma(one, one, 1) == 2);
    assert_true(pnb__bf16_fma(half_ulp, one, 1) == 1);                  /* to even */
    assert_true(pnb__bf16_fma(0x3381, one, 1) == 1 + 0x1p-23f);         /* just above the middle */
    assert_true(pnb__bf16_fma(tiny, 0x7f00, 1) == 1);                   /* taken as 0 */
    assert_true(pnb__bf16_fma(0x0080, one, FLT_MIN / 2) == FLT_MIN);    /* so is the sum */
    assert_true(pnb__bf16_fma(0x8080, 0x3f00, FLT_MIN) == 0);           /* 2^-127 is given as 0 */
    assert_true(signbit(pnb__bf16_fma(0x0080, 0x3f00, -FLT_MIN)) != 0); /* with its sign */
    assert_true(isnan(pnb__bf16_fma(0x7fc0, one, 1)));
}

static uint16_t random_half(pnb__rng *rng, int kind)
{
    uint32_t r = pnb__rng_u32(rng);
    return (uint16_t)(kind == 0 ? (r & 0x81ff) | 0x3e00 : kind == 1 ? r : r & 0x9fff);
}

/* Two steps, the odd product first, are VDPBF16PS: around 1, for any bits, and where results fall
 * below the normal range. */
static void test_instruction(void **state)
{
    (void)state;
    enum { N = 32 };
    pnb_ctx *ctx = test_ctx(PNB_ISA_AVX512_BF16, 1);
    if (ctx == NULL)
        skip();
    pnb__kernels k;
    pnb__rng rng;
    pnb__kernels_fill(&k, ctx, PNB__F32);
    pnb__rng_init(&rng, 3, 1);
    if (ctx->isa != PNB_ISA_AVX512_BF16)
        skip();
    for (int c = 0; c < 30000; c++) {
        uint16_t a[4], b[4 * N];
        float got[N];
        for (int i = 0; i < 4; i++)
            a[i] = random_half(&rng, c % 3);
        for (int i = 0; i < 4 * N; i++)
            b[i] = random_half(&rng, c % 3);
        const pnb__bf16_args args = {
            .m = 1, .n_panels = 1, .k = 4, .lda = 4, .ldc = N, .a = a, .b = b, .c = got};
        k.products_bf16(&args);
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int p = 0; p < 4; p += 2) {
                want = pnb__bf16_fma(a[p + 1], b[(p / 2 * N + j) * 2 + 1], want);
                want = pnb__bf16_fma(a[p], b[(p / 2 * N + j) * 2], want);
            }
            if (isnan(want))
                assert_true(isnan(got[j]));
            else
                assert_memory_equal(&got[j], &want, sizeof want);
        }
    }
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding), cmocka_unit_test(test_f16),
                                       cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_instruction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
