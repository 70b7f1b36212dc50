/* Products of dense matrices against three loops, in every combination of transposes; the small
 * ones beside them. */
#include "adapt/gp/factors/dense.h"

#include "tests/adapt/world.h"

enum { M = 3, N = 4, K = 5 };

static void test_products(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb__kernels kernels;
    double a[M * K], b[K * N], c[M * N];
    pnb__rng rng;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    pnb__rng_init(&rng, 1, 0);
    for (size_t i = 0; i < M * K; i++)
        a[i] = pnb__rng_normal(&rng);
    for (size_t i = 0; i < K * N; i++)
        b[i] = pnb__rng_normal(&rng);
    for (int way = 0; way < 8; way++) {
        pnb__dense_product p = {.m = M, .n = N, .k = K, .a = a, .b = b, .alpha = -1.5};
        p.trans_a = way % 2 == 1;
        p.trans_b = way / 2 % 2 == 1;
        p.add = way / 4 == 1;
        for (size_t i = 0; i < M * N; i++)
            c[i] = (double)i;
        pnb__dense_multiply(&kernels, ctx, &p, c);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++) {
                double wanted = p.add ? (double)(i * N + j) : 0;
                for (size_t k = 0; k < K; k++)
                    wanted -= 1.5 * (p.trans_a ? a[k * M + i] : a[i * K + k]) *
                              (p.trans_b ? b[j * K + k] : b[k * N + j]);
                require_near(c[i * N + j], wanted, 1e-13, "product");
            }
    }
    pnb_ctx_free(ctx);
}

static void test_square(void **state)
{
    (void)state;
    double a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const double turned[9] = {1, 4, 7, 2, 5, 8, 3, 6, 9},
                        lower[9] = {1, 0, 0, 2, 5, 0, 3, 6, 9};
    pnb__dense_transpose(a, 3);
    assert_memory_equal(a, turned, sizeof a);
    pnb__dense_clear_upper(a, 3);
    assert_memory_equal(a, lower, sizeof a);
    assert_true(pnb__dense_dot(turned, lower, 9) == 1 + 4 + 25 + 9 + 36 + 81);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_square)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
