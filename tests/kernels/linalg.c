/* Cholesky and triangular solves: the product of the factor, the residual of the solution, and
 * matrices that are not positive definite. */
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

static void check_factor(size_t n)
{
    double *a = definite(n), *l = random_values(n * n, 2, -9, 9);
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    for (size_t i = 0; i < n; i++) /* only the lower triangle is read */
        for (size_t j = i + 1; j < n; j++)
            a[i * n + j] = NAN;
    assert_true(k.cholesky(NULL, n, a, l));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            assert_true(is_close(dot_values(l + i * n, l + j * n, n), a[i * n + j], 1e-11, 1e-12));
        for (size_t j = i + 1; j < n; j++)
            assert_true(l[i * n + j] == 0);
    }
    free(a);
    free(l);
}

static void test_cholesky(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 7, 40};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        check_factor(sizes[i]);
    static const double bad[][4] = {
        {0, 0, 0, 1}, {1, 0, 2, 1}, {-1, 0, 0, 1}, {NAN, 0, 0, 1}, {1, 0, INFINITY, 1}};
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    double l[4];
    for (size_t i = 0; i < PNB_COUNT(bad); i++)
        assert_false(k.cholesky(NULL, 2, bad[i], l));
}

static void test_tri_solve(void **state)
{
    (void)state;
    enum { N = 23, M = 5 };
    double *a = definite(N), l[N * N], x[N * M], *b = random_values(N * M, 5, -1, 1);
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    assert_true(k.cholesky(NULL, N, a, l));
    for (int transpose = 0; transpose < 2; transpose++) {
        memcpy(x, b, sizeof x);
        k.tri_solve(NULL, N, M, transpose, l, x, x); /* in place */
        for (int i = 0; i < N; i++)
            for (int c = 0; c < M; c++) {
                double sum = 0;
                for (int p = 0; p < N; p++)
                    sum += l[transpose ? p * N + i : i * N + p] * x[p * M + c];
                assert_true(is_close(sum, b[i * M + c], 1e-12, 1e-12));
            }
    }
    k.tri_solve(NULL, 0, M, false, l, x, x);
    k.tri_solve(NULL, N, 0, false, l, x, x);
    free(a);
    free(b);
}

typedef struct solve_case {
    size_t n, m;
    int a, l, b, x;
} solve_case;

static void solve_body(run *r, fixture *x)
{
    const solve_case *c = r->user;
    assert_true(r->k.cholesky(r->ctx, c->n, P(r, x, c->a), P(r, x, c->l)));
    r->k.tri_solve(r->ctx, c->n, c->m, false, P(r, x, c->l), P(r, x, c->b), P(r, x, c->x));
}

static void test_tables(void **state)
{
    (void)state;
    solve_case c = {.n = 31, .m = 4};
    fixture x;
    fixture_init(&x, 1, 1e-5, 1e-5);
    c.a = input(&x, c.n * c.n, -0.1, 0.1);
    for (size_t i = 0; i < c.n; i++)
        x.arrays[c.a].init[i * c.n + i] = 4;
    c.l = output(&x, c.n * c.n, false);
    c.b = input(&x, c.n * c.m, -1, 1);
    c.x = output(&x, c.n * c.m, false);
    compare_all(&x, solve_body, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cholesky),
                                       cmocka_unit_test(test_tri_solve),
                                       cmocka_unit_test(test_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
