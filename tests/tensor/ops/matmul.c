/* Products of two values: matrices and batches of them, each as it is or transposed. */
#include "tests/tensor/graphs.h"

enum { B = 2, T = 3, K = 5, N = 4 };

/* op(a) op(b), one product or one for each item of leading axes. */
static void test_matmul(void **state)
{
    (void)state;
    for (unsigned form = 0; form < 8; form++) {
        bool ta = form & 1, tb = form & 2, batched = form & 4;
        size_t n_items = batched ? B : 1, a_shape[3] = {B, ta ? K : T, ta ? T : K},
               b_shape[3] = {B, tb ? N : K, tb ? K : N};
        double want[B * T * N] = {0};
        begin_graph(PNB__F64, false);
        pnb__tensor *a = real_in(batched ? 3 : 2, a_shape + !batched);
        pnb__tensor *b = real_in(batched ? 3 : 2, b_shape + !batched);
        for (size_t i = 0; i < n_items * T * N; i++)
            for (size_t k = 0; k < K; k++) {
                size_t item = i / (T * N), row = i / N % T, col = i % N;
                want[i] += numbers(a)[item * T * K + (ta ? k * T + row : row * K + k)] *
                           numbers(b)[item * K * N + (tb ? col * K + k : k * N + col)];
            }
        pnb__tensor *c = pnb__matmul(a, ta, b, tb);
        batched ? expect_shape(c, SHAPE(B, T, N)) : expect_shape(c, SHAPE(T, N));
        pnb__keep(c);
        expect_values(c, want, n_items * T * N);
    }
    REFUSED(pnb__matmul(IN(3, 4), true, IN(4, 2), false), "matmul: (3, 4)^T does not fit (4, 2)");
    REFUSED(pnb__matmul(IN(3, 4), false, IN(4, 2), true), "matmul: (3, 4) does not fit (4, 2)^T");
    REFUSED(pnb__matmul(IN(2, 3, 4), false, IN(3, 4, 5), false), "does not fit (3, 4, 5)");
    REFUSED(pnb__matmul(IN(2, 3, 4), false, IN(4, 5), false), "does not fit (4, 5)");
    REFUSED(pnb__matmul(IN(4), false, IN(4), false), "matmul: (4) does not fit (4)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmul)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
