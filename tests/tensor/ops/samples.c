/* Losses over samples and the largest of a row: values by plain loops, shapes, what is refused, and
 * one tensor as both sides, whose gradient has both parts. */
#include "tests/tensor/graphs.h"

static double apart(const double *x, const double *y, size_t dim)
{
    double sum = 0;
    for (size_t d = 0; d < dim; d++)
        sum += (x[d] - y[d]) * (x[d] - y[d]);
    return sum;
}

/* -log mean_jk s(factor sign (shift - scale d)) of rows i and t, J samples of width dim each */
static double nll(const double *x, const double *y, size_t j, size_t dim, const double pair[4])
{
    double mean = 0;
    for (size_t k = 0; k < j * j; k++) {
        double d = sqrt(apart(x + k / j * dim, y + k % j * dim, dim) + 1e-6);
        mean += 1 / (1 + exp(-pair[0] * pair[1] * (pair[3] - pair[2] * d))) / (double)(j * j);
    }
    return -log(mean);
}

static void test_match_nll(void **state)
{
    enum { N = 3, M = 4, J = 2, D = 5 };
    double want[N * M];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N, J, D), *y = IN(M, J, D), *scale = IN(1), *shift = IN(1),
                *sign = IN(N, M);
    for (size_t i = 0; i < N * M; i++) {
        const double pair[4] = {1.5, numbers(sign)[i], numbers(scale)[0], numbers(shift)[0]};
        want[i] = nll(numbers(x) + i / M * J * D, numbers(y) + i % M * J * D, J, D, pair);
    }
    pnb__tensor *out = pnb__match_nll(&(pnb__match_in){x, y, scale, shift, sign, 1.5});
    expect_shape(out, SHAPE(N, M));
    expect_values(out, want, N * M);
    pnb__tensor *one;
#define TRY(a, b, c, d, e) pnb__match_nll(&(pnb__match_in){a, b, c, d, e, 2})
    REFUSED(TRY(IN(2, 3, 4), IN(2, 3, 5), IN(1), IN(1), IN(2, 2)), "match_nll: samples (2, 3, 4)");
    REFUSED(TRY(IN(2, 3, 4), IN(2, 2, 4), IN(1), IN(1), IN(2, 2)), "match_nll: samples (2, 3, 4)");
    REFUSED(TRY(IN(2, 3), IN(2, 3), IN(1), IN(1), IN(2, 2)), "match_nll: samples (2, 3)");
    REFUSED(TRY(IN(2, 3, 4), IN(5, 3, 4), IN(1), IN(1), IN(2, 2)), "signs (2, 2)");
    REFUSED(TRY(IN(2, 3, 4), IN(2, 3, 4), IN(2), IN(1), IN(2, 2)), "match_nll: samples");
    REFUSED((one = IN(0, 3, 4), TRY(one, one, IN(1), IN(1), IN(0, 0))), "match_nll: samples (0");
#undef TRY
}

/* d/dx of nll(x, x): the sum of both sides' gradients, by differences. */
static void test_one_tensor_on_both_sides(void **state)
{
    enum { N = 4, J = 3, D = 2 };
    double grad[N * J * D], signs[N * N];
    (void)state;
    begin_graph(PNB__F64, true);
    pnb__tensor *x = pnb__input_with_grad(g, SHAPE(N, J, D));
    pnb__tensor *scale = pnb__constant(g, 1.5), *shift = pnb__constant(g, 1);
    pnb__tensor *sign = pnb__input(g, PNB__REAL, SHAPE(N, N));
    pnb__keep_grad(x);
    pnb__tensor *out = pnb__match_nll(&(pnb__match_in){x, x, scale, shift, sign, 2});
    pnb__tensor *loss = pnb__sum(out, PNB__ALL_AXES);
    pnb__keep(loss);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    double values[N * J * D];
    for (size_t i = 0; i < N * N; i++)
        signs[i] = i / N == i % N ? 1 : -1;
    for (size_t i = 0; i < N * J * D; i++)
        values[i] = sin(3.0 * (double)i);
    pnb__write_f64(sign, signs);
    pnb__write_f64(x, values);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(pnb__read_grad_f64(x, grad));
    for (size_t i = 0; i < N * J * D; i++) {
        double kept = values[i], ends[2];
        for (int side = 0; side < 2; side++) {
            values[i] = kept + (side == 0 ? 1e-5 : -1e-5);
            pnb__write_f64(x, values);
            assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
            ends[side] = pnb__read_scalar(loss);
        }
        values[i] = kept;
        assert_true(fabs(grad[i] - (ends[0] - ends[1]) / 2e-5) < 1e-6);
    }
    end_graph();
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
    REFUSED(pnb__pair_log_sums(IN(1, 4), 2), "pair_log_sums: (1, 4) has no two rows");
    REFUSED(pnb__pair_log_sums(IN(2, 3, 4), 2), "pair_log_sums: (2, 3, 4) has no two rows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match_nll),
        cmocka_unit_test(test_one_tensor_on_both_sides),
        cmocka_unit_test(test_pair_log_sums),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
