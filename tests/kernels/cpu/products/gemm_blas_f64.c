/* The product of doubles by OpenBLAS, with everything that stands around it. */
typedef double real;
#define GEMM pnb__cpu_gemm_blas_f64

#include "tests/kernels/cpu/products/blas.h"

static void test_products(void **state)
{
    (void)state;
    check_products();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
