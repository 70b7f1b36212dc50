/* Losses over samples: values by plain loops, shapes, what is refused, a block of the pairs with
 * its marks, and one tensor as both sides, whose gradient has both parts. */
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

/* Blocks of rows and columns, each with its own part of the marks, add up to all pairs. */
static void test_blocks_of_match_sums(void **state)
{
    enum { N = 4, J = 2, D = 3 };
    double all[N], part[N], sum[N] = {0};
    const int32_t columns[N] = {1, 0, 3, 2};
    const double weights[N] = {1, 1, 1, 1};
    (void)state;
    for (size_t block = 0; block < 5; block++) {
        size_t row = block == 0 ? 0 : (block - 1) / 2 * 2,
               column = block == 0 ? 0 : (block - 1) % 2 * 2;
        size_t n = block == 0 ? N : 2;
        begin_graph(PNB__F64, false);
        pnb__tensor *x = pnb__input(g, PNB__REAL, SHAPE(N, J, D));
        pnb__tensor *y = pnb__input(g, PNB__REAL, SHAPE(N, J, D));
        pnb__marks marks = {.columns = pnb__input(g, PNB__INT32, SHAPE(N, 1)),
                            .weights = pnb__input(g, PNB__REAL, SHAPE(N, 1)),
                            .row = row,
                            .column = column};
        const pnb__match_in in = {.x = pnb__slice(x, 0, row, n),
                                  .y = pnb__slice(y, 0, column, n),
                                  .scale = pnb__constant(g, 1.5),
                                  .shift = pnb__constant(g, 1),
                                  .factor = 2};
        pnb__tensor *out = pnb__match_sums(&in, &marks, true);
        double values[N * J * D];
        pnb__keep(out);
        assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
        for (size_t i = 0; i < N * J * D; i++)
            values[i] = sin(3.0 * (double)i);
        pnb__write_f64(x, values);
        for (size_t i = 0; i < N * J * D; i++)
            values[i] = cos(2.0 * (double)i);
        pnb__write_f64(y, values);
        pnb__write_i32(marks.columns, columns);
        pnb__write_f64(marks.weights, weights);
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        pnb__read_f64(out, block == 0 ? all : part);
        for (size_t i = 0; i < n && block > 0; i++)
            sum[row + i] += part[i];
        end_graph();
    }
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(all[i] - sum[i]) < 1e-13 * fabs(all[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match_nll),
        cmocka_unit_test(test_one_tensor_on_both_sides),
        cmocka_unit_test(test_blocks_of_match_sums),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
