/* Cholesky by panels and triangular solves by OpenBLAS: what they solve, shares of threads, and
 * that the program's own threads are as many as before. */
#include "kernels/cpu/cpu.h"

#include <omp.h>

#include "tests/kernels/factors.h"

static pnb__kernels table(void)
{
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.cholesky = pnb__cpu_cholesky_f64;
    k.tri_solve = pnb__cpu_tri_solve_f64;
    return k;
}

static void test_cholesky(void **state)
{
    (void)state;
    const pnb__kernels k = table();
    check_cholesky(&k);
}

static void test_tri_solve(void **state)
{
    (void)state;
    const pnb__kernels k = table();
    check_tri_solve(&k);
}

/* Columns shared out unevenly, more threads than columns, no context: op(L) X is B each time, and X
 * may lie apart from B, which stays. */
static void test_shares(void **state)
{
    enum { N = 90 };
    static const size_t widths[] = {1, 2, 3, 41, 100};
    (void)state;
    double *a = definite(N), *l = random_values(N * N, 2, 0, 1);
    assert_true(pnb__cpu_cholesky_f64(NULL, N, a, l));
    for (size_t i = 0; i < N * N; i++)
        l[i] = i % N > i / N ? NAN : l[i]; /* nothing above the diagonal is read */
    for (size_t k = 0; k < PNB_COUNT(widths); k++)
        for (int n_threads = 0; n_threads <= 5; n_threads++) {
            size_t m = widths[k];
            pnb_ctx ctx = {.n_threads = n_threads};
            double *b = random_values(N * m, 5, -1, 1), *kept = random_values(N * m, 5, -1, 1);
            double *x = random_values(N * m + 1, 6, 0, 1), behind = x[N * m];
            pnb__cpu_tri_solve_f64(n_threads == 0 ? NULL : &ctx, N, m, true, l, b, x);
            assert_memory_equal(b, kept, N * m * sizeof *b);
            assert_true(x[N * m] == behind);
            for (size_t i = 0; i < N; i++)
                for (size_t c = 0; c < m; c++) {
                    double sum = 0;
                    for (size_t p = i; p < N; p++)
                        sum += l[p * N + i] * x[p * m + c];
                    assert_true(is_close(sum, b[i * m + c], 1e-12, 1e-12));
                }
            free(b);
            free(kept);
            free(x);
        }
    free(a);
    free(l);
}

/* OpenBLAS is told to take one thread; the caller's own loops go on with theirs. */
static void test_threads_stay(void **state)
{
    (void)state;
    double *a = definite(100), *x = random_values(100 * 100, 1, -1, 1);
    omp_set_num_threads(3);
    assert_true(pnb__cpu_cholesky_f64(NULL, 100, a, a));
    assert_int_equal(omp_get_max_threads(), 3);
    pnb__cpu_tri_solve_f64(NULL, 100, 100, false, a, x, x);
    assert_int_equal(omp_get_max_threads(), 3);
    free(a);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cholesky), cmocka_unit_test(test_tri_solve),
        cmocka_unit_test(test_shares), cmocka_unit_test(test_threads_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
