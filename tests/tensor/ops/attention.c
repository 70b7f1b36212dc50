/* Attention: softmax(Q K^T / sqrt(d)) V per head from packed projections, in both forms, with
 * masks; what does not fit is refused. */
#include "tests/tensor/graphs.h"

enum { B = 2, HEADS = 3, DIM = 2, C = HEADS * DIM };

/* One row of the result: query q of head h against the first `n` keys of its item. */
static void attend(const double *q, const double *keys, const double *values, size_t step, size_t n,
                   double *out)
{
    double weights[16], total = 0;
    for (size_t j = 0; j < n; j++) {
        double dot = 0;
        for (size_t d = 0; d < DIM; d++)
            dot += q[d] * keys[j * step + d];
        total += weights[j] = exp(dot / sqrt(DIM));
    }
    for (size_t d = 0; d < DIM; d++) {
        out[d] = 0;
        for (size_t j = 0; j < n; j++)
            out[d] += weights[j] / total * values[j * step + d];
    }
}

typedef struct case_of {
    bool causal;
    const int32_t *len;
} case_of;

/* Queries, keys and values of one row of kv (B, T, 3C) lie side by side. */
static void test_packed(void **state)
{
    enum { T = 5 };
    static const int32_t len[B] = {2, 5};
    static const case_of cases[] = {{false, NULL}, {true, NULL}, {false, len}, {true, len}};
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        double want[B * T * C];
        begin_graph(PNB__F64, false);
        pnb__tensor *kv = IN(B, T, 3 * C);
        pnb__tensor *y = pnb__attention(NULL, kv, HEADS, cases[k].causal,
                                        cases[k].len ? int_in(len, SHAPE(B)) : NULL);
        expect_shape(y, SHAPE(B, T, C));
        const double *x = numbers(kv);
        for (size_t b = 0; b < B; b++)
            for (size_t t = 0; t < T; t++)
                for (size_t h = 0; h < HEADS; h++) {
                    const double *item = x + b * T * 3 * C + h * DIM;
                    size_t n = cases[k].len ? (size_t)cases[k].len[b] : T;
                    attend(item + t * 3 * C, item + C, item + 2 * C, 3 * C,
                           cases[k].causal ? PNB_MIN(n, t + 1) : n,
                           want + (b * T + t) * C + h * DIM);
                }
        expect_values(y, want, PNB_COUNT(want));
    }
}

/* Fewer queries than keys, from a tensor of their own. */
static void test_cross(void **state)
{
    enum { T = 4, TQ = 3 };
    double want[B * TQ * C];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *q = IN(B, TQ, C), *kv = IN(B, T, 2 * C);
    pnb__tensor *y = pnb__attention(q, kv, HEADS, false, NULL);
    expect_shape(y, SHAPE(B, TQ, C));
    for (size_t b = 0; b < B; b++)
        for (size_t t = 0; t < TQ; t++)
            for (size_t h = 0; h < HEADS; h++) {
                const double *item = numbers(kv) + b * T * 2 * C + h * DIM;
                attend(numbers(q) + (b * TQ + t) * C + h * DIM, item, item + C, 2 * C, T,
                       want + (b * TQ + t) * C + h * DIM);
            }
    pnb__keep(y);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    assert_true(pnb__graph_flops(g) == 4.0 * B * TQ * C * T);
    end_graph();
    begin_graph(PNB__F64, false);
    q = IN(B, TQ, C);
    kv = IN(B, T, 2 * C);
    expect_values(pnb__attention(q, kv, HEADS, false, NULL), want, PNB_COUNT(want));
}

static void test_misfits(void **state)
{
    static const int32_t len[] = {1, 2, 3};
    (void)state;
    REFUSED(pnb__attention(NULL, IN(2, 12), 2, false, NULL), "attention: kv (2, 12), q -, 2 heads");
    REFUSED(pnb__attention(NULL, IN(2, 3, 10), 2, false, NULL), "do not fit"); /* not three parts */
    REFUSED(pnb__attention(NULL, IN(2, 3, 12), 3, false, NULL), "3 heads do not fit");
    REFUSED(pnb__attention(NULL, IN(2, 3, 12), 0, false, NULL), "0 heads do not fit");
    REFUSED(pnb__attention(IN(1, 3, 6), IN(2, 3, 12), 2, false, NULL), "q (1, 3, 6)");
    REFUSED(pnb__attention(IN(2, 3, 4), IN(2, 3, 12), 2, false, NULL), "q (2, 3, 4)");
    REFUSED(pnb__attention(IN(6, 6), IN(2, 3, 12), 2, false, NULL), "q (6, 6)");
    REFUSED(pnb__attention(NULL, IN(2, 3, 12), 2, false, int_in(len, SHAPE(3))),
            "kv_len must be 2 int32 values");
    REFUSED(pnb__attention(NULL, IN(2, 3, 12), 2, false, IN(2)), "kv_len must be 2 int32 values");
    begin_graph(PNB__F64, false);
    assert_null(pnb__attention(NULL, NULL, 2, false, NULL));
    assert_int_equal(g->error.status, PNB_OK);
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed), cmocka_unit_test(test_cross),
                                       cmocka_unit_test(test_misfits)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
