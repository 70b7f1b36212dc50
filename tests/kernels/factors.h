/* Cholesky factors and triangular solves in double, of any table: the product of the factor, the
 * residual of the solution, and matrices that are not positive definite. */
#ifndef PNB_TESTS_KERNELS_FACTORS_H
#define PNB_TESTS_KERNELS_FACTORS_H

#include "tests/kernels/harness.h"

/* A symmetric matrix with eigenvalues of at least 1. */
static double *definite(size_t n)
{
    double *b = random_values(n * n, n, -1, 1), *a = random_values(n * n, 1, 0, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            a[i * n + j] = dot_values(b + i * n, b + j * n, n) + (i == j ? 1 : 0);
    free(b);
    return a;
}

static void check_factor(size_t n, const pnb__kernels *k)
{
    double *a = definite(n), *l = random_values(n * n, 2, -9, 9);
    for (size_t i = 0; i < n; i++) /* only the lower triangle is read */
        for (size_t j = i + 1; j < n; j++)
            a[i * n + j] = NAN;
    assert_true(k->cholesky(NULL, n, a, l));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            assert_true(is_close(dot_values(l + i * n, l + j * n, n), a[i * n + j], 1e-11, 1e-12));
        for (size_t j = i + 1; j < n; j++)
            assert_true(l[i * n + j] == 0);
    }
    assert_true(k->cholesky(NULL, n, a, a)); /* in place */
    assert_memory_equal(a, l, n * n * sizeof *a);
    free(a);
    free(l);
}

static void check_cholesky(const pnb__kernels *k)
{
    static const size_t sizes[] = {0, 1, 2, 7, 40, 63, 64, 65, 130, 200}; /* panels are 64 wide */
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        check_factor(sizes[i], k);
    static const double bad[][4] = {
        {0, 0, 0, 1}, {1, 0, 2, 1}, {-1, 0, 0, 1}, {NAN, 0, 0, 1}, {1, 0, INFINITY, 1}};
    double l[4];
    for (size_t i = 0; i < PNB_COUNT(bad); i++)
        assert_false(k->cholesky(NULL, 2, bad[i], l));
    double *late = definite(100); /* what is wrong lies in the second panel */
    double *room = random_values(100 * 100, 3, 0, 1);
    late[90 * 100 + 90] = -1;
    assert_false(k->cholesky(NULL, 100, late, room));
    free(room);
    free(late);
}

static void check_solve(size_t n, size_t m, const pnb__kernels *k)
{
    double *a = definite(n), *l = random_values(n * n, 2, 0, 1),
           *b = random_values(n * m, 5, -1, 1);
    double *x = random_values(n * m, 6, 0, 1);
    pnb_ctx ctx = {.n_threads = 2};
    assert_true(k->cholesky(&ctx, n, a, l));
    for (int transpose = 0; transpose < 2; transpose++) {
        memcpy(x, b, n * m * sizeof *x);
        k->tri_solve(&ctx, n, m, transpose, l, x, x); /* in place */
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < m; c++) {
                double sum = 0;
                for (size_t p = 0; p < n; p++)
                    sum += l[transpose ? p * n + i : i * n + p] * x[p * m + c];
                assert_true(is_close(sum, b[i * m + c], 1e-12, 1e-12));
            }
    }
    k->tri_solve(&ctx, 0, m, false, l, x, x);
    k->tri_solve(&ctx, n, 0, false, l, x, x);
    free(a);
    free(l);
    free(b);
    free(x);
}

static void check_tri_solve(const pnb__kernels *k)
{
    check_solve(23, 5, k);
    check_solve(1, 1, k);
    check_solve(90, 41, k); /* enough for two threads */
}

#endif
