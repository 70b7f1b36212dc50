/* The reference table of doubles: whole, in double from end to end, and of the same loops as that
 * of floats. */
#define REAL PNB__F64
typedef double real;

#include "tests/kernels/ref/whole.h"

static void test_table(void **state)
{
    (void)state;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    check_whole(&k);
    check_type(&k);
    check_threads_of(&k);
}

/* Both types are one set of loops: on numbers that floats hold, and results they hold, they agree.
 */
static void test_both_types_agree(void **state)
{
    enum { M = 3, N = 4, K = 5 };
    float a32[M * K], b32[K * N], c32[M * N];
    double a[M * K], b[K * N], c[M * N];
    pnb__kernels f32, f64;
    (void)state;
    pnb__kernels_ref_f32(&f32);
    pnb__kernels_ref_f64(&f64);
    for (size_t i = 0; i < M * K; i++)
        a[i] = a32[i] = (float)(i % 7) - 3;
    for (size_t i = 0; i < K * N; i++)
        b[i] = b32[i] = (float)(i % 5) / 4;
    pnb__gemm_args g = {.m = M,
                        .n = N,
                        .k = K,
                        .lda = K,
                        .ldb = N,
                        .ldc = N,
                        .n_batch = 1,
                        .alpha = -2,
                        .a = a,
                        .b = b,
                        .c = c,
                        .act = PNB__RELU};
    f64.gemm(NULL, &g);
    g.a = a32;
    g.b = b32;
    g.c = c32;
    f32.gemm(NULL, &g);
    for (size_t i = 0; i < M * N; i++)
        assert_true(c[i] == (double)c32[i]);
    assert_true(f32.gemm != f64.gemm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_both_types_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
