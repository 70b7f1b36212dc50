/* Cholesky factors and triangular systems: what they solve, and what is refused. */
#include "tests/tensor/graphs.h"

enum { N = 4 };

/* A lower triangle with a positive diagonal. */
static void make_triangle(double *l)
{
    for (size_t i = 0; i < N * N; i++)
        l[i] = i % N > i / N ? 0 : i % N == i / N ? 1.5 + (double)(i / N) : 0.3 * sin((double)i);
}

/* Of L L^T it is L, zeros above the diagonal included, whatever stands above that of the input. */
static void test_cholesky(void **state)
{
    double l[N * N];
    (void)state;
    make_triangle(l);
    begin_graph(PNB__F64, false);
    pnb__tensor *a = IN(N, N);
    for (size_t i = 0; i < N * N; i++) {
        numbers(a)[i] = 0;
        for (size_t k = 0; k < N; k++)
            numbers(a)[i] += l[i / N * N + k] * l[i % N * N + k];
    }
    expect_values(pnb__cholesky(a), l, N * N);
    begin_graph(PNB__F64, false);
    a = IN(1, 1);
    numbers(a)[0] = 9;
    expect_values(pnb__cholesky(a), (const double[]){3}, 1);
    REFUSED(pnb__cholesky(IN(2, 3)), "cholesky: (2, 3) is not square");
    REFUSED(pnb__cholesky(IN(4)), "cholesky: (4) is not square");
}

static void test_singular_matrix_is_an_error(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    begin_graph(PNB__F64, false);
    pnb__tensor *a = pnb__input(g, PNB__REAL, 2, (size_t[]){2, 2});
    pnb__keep(pnb__cholesky(a));
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    pnb__write_f64(a, (const double[]){1, 2, 2, 1});
    assert_int_equal(pnb__graph_run(g, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "cholesky"));
    end_graph();
}

/* op(L) x = b: L times the answer is b again; above the diagonal nothing is read. */
static void test_tri_solve(void **state)
{
    enum { M = 3 };
    double l[N * N], want[N * M];
    (void)state;
    make_triangle(l);
    for (size_t i = 0; i < N * M; i++)
        want[i] = cos((double)i);
    for (int transpose = 0; transpose < 2; transpose++) {
        begin_graph(PNB__F64, false);
        pnb__tensor *lower = IN(N, N), *b = IN(N, M);
        for (size_t i = 0; i < N * N; i++)
            numbers(lower)[i] = i % N > i / N ? NAN : l[i];
        for (size_t i = 0; i < N * M; i++) {
            numbers(b)[i] = 0;
            for (size_t k = 0; k < N; k++)
                numbers(b)[i] +=
                    (transpose ? l[k * N + i / M] : l[i / M * N + k]) * want[k * M + i % M];
        }
        expect_values(pnb__tri_solve(lower, b, transpose), want, N * M);
    }
    REFUSED(pnb__tri_solve(IN(2, 3), IN(2, 1), false), "tri_solve: L (2, 3) does not fit b (2, 1)");
    REFUSED(pnb__tri_solve(IN(3, 3), IN(2, 1), false), "tri_solve: L (3, 3) does not fit b (2, 1)");
    REFUSED(pnb__tri_solve(IN(3, 3), IN(3), true), "does not fit b (3)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cholesky),
        cmocka_unit_test(test_singular_matrix_is_an_error),
        cmocka_unit_test(test_tri_solve),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
