/* Local attention against its formula in plain loops, with and without lengths; gradients by
 * differences. */
#include "nn/attention_pool.h"

#include "tests/nn/params.h"

enum { B = 3, T = 5, C = 4, HIDDEN = 3 };
static const int32_t lengths[B] = {5, 1, 3};

/* y_k = sum_t A_kt x_t of one item, A over its first `length` positions. */
static void by_hand(const double *x, const pnb__attention_pool *p, size_t k, size_t length,
                    double weight[T], double y[C])
{
    const double *w1 = values_of(p->w1), *w2 = values_of(p->w2);
    double total = 0;
    for (size_t t = 0; t < length; t++) {
        double score = 0;
        for (size_t i = 0; i < HIDDEN; i++) {
            double sum = 0;
            for (size_t c = 0; c < C; c++)
                sum += w1[i * C + c] * x[t * C + c];
            score += w2[k * HIDDEN + i] * tanh(sum);
        }
        weight[t] = exp(score);
        total += weight[t];
    }
    memset(y, 0, C * sizeof *y);
    for (size_t t = 0; t < T; t++) {
        weight[t] = t < length ? weight[t] / total : 0;
        for (size_t c = 0; c < C; c++)
            y[c] += weight[t] * x[t * C + c];
    }
}

static void check_pool(size_t n_heads, bool with_lengths)
{
    begin_graph(PNB__F64, false);
    pnb__attention_pool p = {PARAM(HIDDEN, C), PARAM(n_heads, HIDDEN)};
    pnb__tensor *x = IN(B, T, C), *len = with_lengths ? int_in(lengths, SHAPE(B)) : NULL;
    pnb__pooled pooled = pnb__attention_pool_apply(g, &p, x, len);
    expect_shape(pooled.vectors, SHAPE(B, n_heads, C));
    expect_shape(pooled.weights, SHAPE(B, n_heads, T));
    pnb__tensor *both[2] = {pooled.vectors, pooled.weights};
    const double *v = computed(pnb__concat(both, 2, 2));
    for (size_t b = 0; b < B; b++)
        for (size_t k = 0; k < n_heads; k++) {
            double weight[T], y[C];
            by_hand(numbers(x) + b * T * C, &p, k, with_lengths ? (size_t)lengths[b] : T, weight,
                    y);
            for (size_t c = 0; c < C; c++)
                expect_near(v[(b * n_heads + k) * (C + T) + c], y[c], c);
            for (size_t t = 0; t < T; t++)
                expect_near(v[(b * n_heads + k) * (C + T) + C + t], weight[t], t);
        }
    end_graph();
    n_params = 0;
}

static void test_values(void **state)
{
    (void)state;
    for (size_t n_heads = 1; n_heads <= 3; n_heads++)
        for (int with_lengths = 0; with_lengths < 2; with_lengths++)
            check_pool(n_heads, with_lengths);
}

/* What stands beyond a length changes no bit. */
static void test_padding_has_no_part(void **state)
{
    double first[B * C];
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        begin_graph(PNB__F32, false);
        pnb__attention_pool p = {PARAM(HIDDEN, C), PARAM(1, HIDDEN)};
        float w[2][HIDDEN * C]; /* floats, as this graph reads them */
        for (size_t i = 0; i < p.w1->n; i++)
            w[0][i] = (float)values_of(p.w1)[i];
        for (size_t i = 0; i < p.w2->n; i++)
            w[1][i] = (float)values_of(p.w2)[i];
        p.w1->data = w[0];
        p.w2->data = w[1];
        pnb__tensor *x = IN(B, T, C);
        for (size_t i = 0; i < (size_t)B * T * C && kind == 1; i++)
            if (i / C % T >= (size_t)lengths[i / C / T])
                numbers(x)[i] = 1e30;
        const double *v =
            computed(pnb__attention_pool_apply(g, &p, x, int_in(lengths, SHAPE(B))).vectors);
        if (kind == 0)
            memcpy(first, v, sizeof first);
        assert_memory_equal(v, first, sizeof first);
        end_graph();
        n_params = 0;
    }
}

static void test_gradients(void **state)
{
    (void)state;
    for (size_t n_heads = 1; n_heads <= 2; n_heads++) {
        begin_graph(PNB__F64, true);
        pnb__attention_pool p = {PARAM(HIDDEN, C), PARAM(n_heads, HIDDEN)};
        pnb__tensor *x = IN(B, T, C);
        check_gradients(pnb__attention_pool_apply(g, &p, x, int_in(lengths, SHAPE(B))).vectors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_padding_has_no_part),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
