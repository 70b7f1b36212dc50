/* Sums over every axis, broadcasting, distances of pairs, the largest of a row: values by plain
 * loops, shapes, and what is refused. */
#include "tests/tensor/graphs.h"

/* Axis `axis` of (2, 3, 4) summed away; the mean divides by its length. */
static void test_sums(void **state)
{
    static const size_t shape[3] = {2, 3, 4}, step[3] = {12, 4, 1};
    (void)state;
    for (int axis = -3; axis < 3; axis++) {
        for (int mean = 0; mean < 2; mean++) {
            size_t at = (size_t)(axis < 0 ? axis + 3 : axis), left[2], n = 0;
            for (size_t d = 0; d < 3; d++)
                if (d != at)
                    left[n++] = d;
            double want[12] = {0};
            begin_graph(PNB__F64, false);
            pnb__tensor *x = IN(2, 3, 4);
            n = 0;
            for (size_t i = 0; i < shape[left[0]]; i++)
                for (size_t j = 0; j < shape[left[1]]; j++, n++)
                    for (size_t k = 0; k < shape[at]; k++)
                        want[n] +=
                            numbers(x)[i * step[left[0]] + j * step[left[1]] + k * step[at]] /
                            (mean ? (double)shape[at] : 1);
            pnb__tensor *y = mean ? pnb__mean(x, axis) : pnb__sum(x, axis);
            expect_shape(y, SHAPE(shape[left[0]], shape[left[1]]));
            expect_values(y, want, n);
        }
    }
}

static void test_sum_of_all(void **state)
{
    double total = 0;
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(3, 5);
    for (size_t i = 0; i < 15; i++)
        total += numbers(x)[i];
    pnb__tensor *all = pnb__mean(x, PNB__ALL_AXES);
    assert_int_equal(pnb__n_dims(all), 0);
    expect_values(all, (const double[]){total / 15}, 1);
    begin_graph(PNB__F64, false);
    expect_values(pnb__sum(IN(3, 5), PNB__ALL_AXES), &total, 1);
    begin_graph(PNB__F64, false);
    expect_values(pnb__mean(IN(2, 0), 1), (const double[]){0, 0}, 2); /* of nothing */
    REFUSED(pnb__sum(IN(3, 4), 2), "sum: (3, 4) has no axis 2");
    REFUSED(pnb__mean(IN(3, 4), -3), "sum: (3, 4) has no axis -1");
}

static void test_broadcast(void **state)
{
    double want[2 * 3 * 4];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(3, 1);
    for (size_t i = 0; i < 24; i++)
        want[i] = numbers(x)[i / 4 % 3];
    pnb__tensor *y = pnb__broadcast_to(x, SHAPE(2, 3, 4));
    expect_shape(y, SHAPE(2, 3, 4));
    expect_values(y, want, 24);
    begin_graph(PNB__F64, false);
    x = real_in(0, NULL);
    for (size_t i = 0; i < 6; i++)
        want[i] = numbers(x)[0];
    expect_values(pnb__broadcast_to(x, SHAPE(6)), want, 6);
    REFUSED(pnb__broadcast_to(IN(3), SHAPE(3, 4)), "broadcast: (3) does not fit");
    REFUSED(pnb__broadcast_to(IN(3, 1), SHAPE(1)), "cannot go from 2 to 1 dimensions");
    REFUSED(pnb__broadcast_to(IN(3), SHAPE(1, 1, 1, 1, 1, 3)), "cannot go from 1 to 6 dimensions");
}

static void test_pairwise_sqdist(void **state)
{
    enum { M = 3, N = 2, D = 5 };
    double want[M * N] = {0};
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(M, D), *y = IN(N, D);
    for (size_t i = 0; i < M * N; i++)
        for (size_t d = 0; d < D; d++)
            want[i] += pow(numbers(x)[i / N * D + d] - numbers(y)[i % N * D + d], 2);
    pnb__tensor *distances = pnb__pairwise_sqdist(x, y);
    expect_shape(distances, SHAPE(M, N));
    expect_values(distances, want, M * N);
    REFUSED(pnb__pairwise_sqdist(IN(3, 4), IN(3, 5)),
            "pairwise_sqdist: (3, 4) does not fit (3, 5)");
    REFUSED(pnb__pairwise_sqdist(IN(3, 4), IN(4)), "does not fit (4)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sum_of_all),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_pairwise_sqdist),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
