/* The reference table of floats: whole, and with sums in double, or it could judge no other. */
#define REAL PNB__F32
typedef float real;

#include "tests/kernels/ref/whole.h"

static void test_table(void **state)
{
    (void)state;
    pnb__kernels k;
    pnb__kernels_ref_f32(&k);
    check_whole(&k);
    check_type(&k);
    check_threads_of(&k);
}

/* 1e8 + 1 - 1e8 is 1 in double and 0 in float: sums, products, means, squares. */
static void test_sums_are_in_double(void **state)
{
    static const float x[3] = {1e8f, 1, -1e8f}, ones[3] = {1, 1, 1};
    float y[3] = {0}, want;
    pnb__kernels k;
    (void)state;
    pnb__kernels_ref_f32(&k);
    k.sum(NULL, 1, 3, 1, 1, x, y, false);
    assert_true(y[0] == 1);
    const pnb__dots_args dots = {1, 1, 3, 3, 3, 1, x, ones, y};
    y[0] = 0;
    k.host.dots(NULL, &dots);
    assert_true(y[0] == 1);
    const pnb__gemm_args product = {.m = 1,
                                    .n = 1,
                                    .k = 3,
                                    .lda = 3,
                                    .ldb = 1,
                                    .ldc = 1,
                                    .n_batch = 1,
                                    .alpha = 1,
                                    .a = x,
                                    .b = ones,
                                    .c = y,
                                    .act = PNB__IDENTITY};
    y[0] = 0;
    k.gemm(NULL, &product);
    assert_true(y[0] == 1);
    static const float far[3] = {1e8f, 1e8f, 1e8f + 64};
    const pnb__layernorm_args norm = {.rows = 1, .width = 3, .x = far, .y = y};
    k.layernorm(NULL, &norm);
    want = (float)sqrt(2.0); /* (64 - 64/3) / sqrt(variance), whatever stands before */
    assert_true(fabsf(y[2] - want) < 1e-6f && fabsf(y[0] + want / 2) < 1e-6f);
    static float small[3] = {4096, 1, 1}; /* 2^24 + 2, behind what a float tells apart */
    const pnb__flat flat = {small, 3};
    assert_true(k.sum_squares(NULL, &flat, 1) == 16777218);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_sums_are_in_double)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
