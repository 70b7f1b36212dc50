/* Sums over distances of all rows of a set, or of two: values by plain loops, shapes, and what is
 * refused. */
#include "tests/tensor/graphs.h"

static double apart(const double *x, const double *y, size_t dim)
{
    double sum = 0;
    for (size_t d = 0; d < dim; d++)
        sum += (x[d] - y[d]) * (x[d] - y[d]);
    return sum;
}

static void test_pair_log_sums(void **state)
{
    enum { N = 6, D = 3 };
    double want[N - 1];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N, D);
    for (size_t i = 0; i + 1 < N; i++) {
        double sum = 0;
        for (size_t j = i + 1; j < N; j++)
            sum += exp(-0.7 * apart(numbers(x) + i * D, numbers(x) + j * D, D));
        want[i] = log(sum);
    }
    pnb__tensor *out = pnb__pair_log_sums(x, 0.7);
    expect_shape(out, SHAPE(N - 1));
    expect_values(out, want, N - 1);
    REFUSED(pnb__pair_log_sums(IN(1, 4), 2), "pair_log_sums: (1, 4)");
    REFUSED(pnb__pair_log_sums(IN(2, 3, 4), 2), "pair_log_sums: (2, 3, 4)");
}

static void test_cross_log_sums(void **state)
{
    enum { N = 3, M = 5, D = 2 };
    double want[N];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N, D), *y = IN(M, D);
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (size_t j = 0; j < M; j++)
            sum += exp(-0.7 * apart(numbers(x) + i * D, numbers(y) + j * D, D));
        want[i] = log(sum);
    }
    pnb__tensor *out = pnb__cross_log_sums(x, y, 0.7);
    expect_shape(out, SHAPE(N));
    expect_values(out, want, N);
    REFUSED(pnb__cross_log_sums(IN(2, 4), IN(2, 3), 2), "pair_log_sums: (2, 4) against (2, 3)");
    REFUSED(pnb__cross_log_sums(IN(2, 4), IN(0, 4), 2), "pair_log_sums: (2, 4) against (0, 4)");
}

static void test_pair_kernels(void **state)
{
    enum { N = 2, M = 3, D = 2 };
    double want[N];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N, D), *y = IN(M, D);
    for (size_t i = 0; i < N; i++) {
        want[i] = 0;
        for (size_t j = 0; j < M; j++)
            want[i] += exp(-0.5 * apart(numbers(x) + i * D, numbers(y) + j * D, D));
    }
    expect_values(pnb__pair_kernels(x, y, 0.5, false), want, N);
    REFUSED(pnb__pair_kernels(IN(2, 4), IN(2, 3), 1, false), "pair_kernels: rows (2, 4)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_log_sums),
        cmocka_unit_test(test_cross_log_sums),
        cmocka_unit_test(test_pair_kernels),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
