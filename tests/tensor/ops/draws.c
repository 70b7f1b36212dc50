/* Samples drawn in a graph: a block of rows has the draws that it has among all, run after run, and
 * what no draw can be made of is refused. */
#include "tests/tensor/graphs.h"

enum { N = 5, J = 3, D = 4 };

typedef struct drawn {
    double x[N * J * D];
} drawn;

/* Rows first .. first + n, of a stream; two runs must be the same. */
static drawn draw(size_t first, size_t n, int32_t stream)
{
    const int32_t pairs[N] = {3, 1, 4, 0, 2}, key[4] = {7, -1, stream, 0};
    double values[N * D];
    drawn out[2] = {0};
    begin_graph(PNB__F64, false);
    const pnb__draw_in in = {.mean = pnb__input(g, PNB__REAL, SHAPE(N, D)),
                             .log_var = pnb__input(g, PNB__REAL, SHAPE(N, D)),
                             .pairs = pnb__input(g, PNB__INT32, SHAPE(N)),
                             .key = pnb__input(g, PNB__INT32, SHAPE(4)),
                             .first = first,
                             .n_rows = n,
                             .n_samples = J};
    pnb__tensor *x = pnb__draw(&in);
    expect_shape(x, SHAPE(n, J, D));
    pnb__keep(x);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    for (int run = 0; run < 2; run++) {
        for (size_t i = 0; i < N * D; i++)
            values[i] = sin((double)i);
        pnb__write_f64(in.mean, values);
        pnb__write_f64(in.log_var, values);
        pnb__write_i32(in.pairs, pairs);
        pnb__write_i32(in.key, key);
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        pnb__read_f64(x, out[run].x);
    }
    end_graph();
    assert_memory_equal(out[0].x, out[1].x, sizeof out[0].x);
    return out[0];
}

static void test_blocks(void **state)
{
    (void)state;
    const drawn all = draw(0, N, 2), some = draw(1, 3, 2), other = draw(0, N, 3);
    assert_memory_equal(all.x + J * D, some.x, 3 * J * D * sizeof(double));
    for (size_t i = 0; i < N * J * D; i++)
        assert_true(all.x[i] != other.x[i]);
    for (size_t i = 1; i < N * J * D; i++)
        assert_true(all.x[i] != all.x[i - 1]);
}

static void test_refused(void **state)
{
    (void)state;
#define TRY(mean, log_var, n_pairs, n_key, from, n, j)                                             \
    pnb__draw(&(pnb__draw_in){mean, log_var, pnb__input(g, PNB__INT32, SHAPE(n_pairs)),            \
                              pnb__input(g, PNB__INT32, SHAPE(n_key)), from, n, j})
    REFUSED(TRY(IN(5, 4), IN(5, 3), 5, 4, 0, 5, 1), "log-variances (5, 3)");
    REFUSED(TRY(IN(5, 4), IN(5, 4), 4, 4, 0, 5, 1), "pairs (4)");
    REFUSED(TRY(IN(5, 4), IN(5, 4), 5, 3, 0, 5, 1), "draw: rows 0 .. 5");
    REFUSED(TRY(IN(5, 4), IN(5, 4), 5, 4, 3, 3, 1), "draw: rows 3 .. 6");
    REFUSED(TRY(IN(5, 4), IN(5, 4), 5, 4, 0, 0, 1), "draw: rows 0 .. 0");
    REFUSED(TRY(IN(5, 4), IN(5, 4), 5, 4, 0, 5, 0), "draw: rows 0 .. 5");
#undef TRY
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
