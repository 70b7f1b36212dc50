/* Numbers of a weight: the ones asked for, of either type, and nothing beside them. */
#include "tests/tensor/graphs.h"

/* Around the block that conversions go through, from a place inside. */
static const size_t LENGTHS[] = {0, 1, 511, 512, 513, 1030};

static void test_numbers(void **state)
{
    enum { N = 1040, AT = 5 };
    static double f64[N], out[N + 1], values[N];
    static float f32[N];
    (void)state;
    for (int real = PNB__F32; real <= PNB__F64; real++)
        for (size_t k = 0; k < PNB_COUNT(LENGTHS); k++) {
            size_t n = LENGTHS[k];
            pnb__param p = {
                "w", 1, {N}, N, real == PNB__F32 ? (void *)f32 : f64, .store = PNB__STORE_REAL};
            begin_graph((pnb__real)real, false);
            const pnb__kernels *table = pnb__graph_kernels(g);
            for (size_t i = 0; i < N; i++) {
                f64[i] = f32[i] = (float)i;
                values[i] = -1.0 / (1 + (double)i);
            }
            out[n] = -7;
            pnb__param_read(&p, table, AT, n, out);
            for (size_t i = 0; i < n; i++)
                assert_true(out[i] == (double)(AT + i));
            assert_true(out[n] == -7);
            assert_true(pnb__param_read_scalar(&p, table) == 0);
            pnb__param_write(&p, table, AT, n, values);
            for (size_t i = 0; i < N; i++) {
                bool is_inside = i >= AT && i < AT + n;
                double want = is_inside ? values[i - AT] : (double)i;
                assert_true(real == PNB__F32 ? f32[i] == (float)want : f64[i] == want);
            }
            end_graph();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
