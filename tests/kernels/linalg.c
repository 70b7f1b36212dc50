/* Cholesky and triangular solves in plain C, and of every table of floats against those in double.
 */
#include "tests/kernels/factors.h"

static void test_reference(void **state)
{
    (void)state;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    check_cholesky(&k);
    check_tri_solve(&k);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
