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

/* Both tables of doubles: plain C, and what the CPU has on top of it. */
static void fill_doubles(pnb__kernels *k, bool fast)
{
    pnb__kernels_ref_f64(k);
    if (fast)
        pnb__kernels_cpu_f64(k, PNB_ISA_GENERIC);
}

static void check_factor(size_t n, bool fast)
{
    double *a = definite(n), *l = random_values(n * n, 2, -9, 9);
    pnb__kernels k;
    fill_doubles(&k, fast);
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
    assert_true(k.cholesky(NULL, n, a, a)); /* in place */
    assert_memory_equal(a, l, n * n * sizeof *a);
    free(a);
    free(l);
}

static void test_cholesky(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 7, 40, 63, 64, 65, 130, 200}; /* panels are 64 wide */
    for (size_t i = 0; i < 2 * PNB_COUNT(sizes); i++)
        check_factor(sizes[i / 2], i % 2);
    static const double bad[][4] = {
        {0, 0, 0, 1}, {1, 0, 2, 1}, {-1, 0, 0, 1}, {NAN, 0, 0, 1}, {1, 0, INFINITY, 1}};
    pnb__kernels k;
    double l[4];
    for (size_t i = 0; i < 2 * PNB_COUNT(bad); i++) {
        fill_doubles(&k, i % 2);
        assert_false(k.cholesky(NULL, 2, bad[i / 2], l));
    }
    double *late = definite(100); /* what is wrong lies in the second panel */
    late[90 * 100 + 90] = -1;
    for (int fast = 0; fast < 2; fast++) {
        double *room = random_values(100 * 100, 3, 0, 1);
        fill_doubles(&k, fast);
        assert_false(k.cholesky(NULL, 100, late, room));
        free(room);
    }
    free(late);
}

static void check_solve(size_t n, size_t m, bool fast)
{
    double *a = definite(n), *l = random_values(n * n, 2, 0, 1),
           *b = random_values(n * m, 5, -1, 1);
    double *x = random_values(n * m, 6, 0, 1);
    pnb__kernels k;
    pnb_ctx ctx = {.n_threads = 2};
    fill_doubles(&k, fast);
    assert_true(k.cholesky(&ctx, n, a, l));
    for (int transpose = 0; transpose < 2; transpose++) {
        memcpy(x, b, n * m * sizeof *x);
        k.tri_solve(&ctx, n, m, transpose, l, x, x); /* in place */
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < m; c++) {
                double sum = 0;
                for (size_t p = 0; p < n; p++)
                    sum += l[transpose ? p * n + i : i * n + p] * x[p * m + c];
                assert_true(is_close(sum, b[i * m + c], 1e-12, 1e-12));
            }
    }
    k.tri_solve(&ctx, 0, m, false, l, x, x);
    k.tri_solve(&ctx, n, 0, false, l, x, x);
    free(a);
    free(l);
    free(b);
    free(x);
}

static void test_tri_solve(void **state)
{
    (void)state;
    for (int fast = 0; fast < 2; fast++) {
        check_solve(23, 5, fast);
        check_solve(1, 1, fast);
        check_solve(90, 41, fast); /* enough for two threads */
    }
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
