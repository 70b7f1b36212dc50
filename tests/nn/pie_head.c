/* The heads of PCME and PVSE against their formulas from the pooled vectors on; gradients by
 * differences; from log sigma to log sigma^2. */
#include "nn/pie_head.h"

#include "tests/nn/params.h"

enum { B = 2, T = 4, C = 6, HIDDEN = 3, D = 5 };
static const int32_t lengths[B] = {2, 4};

static pnb__attention_pool attention_of(size_t n_heads)
{
    return (pnb__attention_pool){PARAM(HIDDEN, C), PARAM(n_heads, HIDDEN)};
}

/* fc of one pooled vector, dimension d */
static double fc_of(const pnb__param *w, const pnb__param *b, const double *pooled, size_t d)
{
    double sum = values_of(b)[d];
    for (size_t c = 0; c < C; c++)
        sum += values_of(w)[d * C + c] * pooled[c];
    return sum;
}

static void check_mean(size_t n_heads, bool unit)
{
    begin_graph(PNB__F64, false);
    pnb__pie_head h = {attention_of(n_heads), PARAM(D, C), PARAM(D), PARAM(D), PARAM(D)};
    pnb__tensor *x = IN(B, T, C), *base = IN(B, D), *len = int_in(lengths, SHAPE(B));
    pnb__pie pie = pnb__pie_head_apply(g, &h, base, x, len, unit);
    pnb__tensor *pooled = pnb__attention_pool_apply(g, &h.attention, x, len).vectors;
    expect_shape(pie.mean, SHAPE(B, n_heads, D));
    expect_shape(pie.weights, SHAPE(B, n_heads, T));
    pnb__tensor *parts[3] = {pie.mean, pie.residual, pooled};
    const double *v = computed(pnb__concat(parts, 3, 2));
    for (size_t r = 0; r < B * n_heads; r++) {
        const double *row = v + r * (2 * D + C);
        double sum[D], mean = 0, var = 0, norm = 0;
        for (size_t d = 0; d < D; d++) {
            double residual = 1 / (1 + exp(-fc_of(h.fc_w, h.fc_b, row + 2 * D, d)));
            expect_near(row[D + d], residual, d);
            sum[d] = numbers(base)[r / n_heads * D + d] + residual;
            mean += sum[d] / D;
        }
        for (size_t d = 0; d < D; d++)
            var += (sum[d] - mean) * (sum[d] - mean) / D;
        for (size_t d = 0; d < D; d++) {
            sum[d] = (sum[d] - mean) / sqrt(var + 1e-5) * values_of(h.ln_w)[d];
            sum[d] += values_of(h.ln_b)[d];
            norm += sum[d] * sum[d];
        }
        for (size_t d = 0; d < D; d++)
            expect_near(row[d], unit ? sum[d] / sqrt(norm) : sum[d], d);
    }
    end_graph();
    n_params = 0;
}

static void test_mean(void **state)
{
    (void)state;
    for (size_t n_heads = 1; n_heads <= 3; n_heads++)
        for (int unit = 0; unit < 2; unit++)
            check_mean(n_heads, unit);
}

/* No bound, no norm: fc of what is pooled and what comes from the side. */
static void test_log_std(void **state)
{
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__log_std_head h = {attention_of(1), PARAM(D, C), PARAM(D)};
    pnb__tensor *x = IN(B, T, C), *side = IN(B, D);
    pnb__log_std spread = pnb__log_std_head_apply(g, &h, side, x, NULL);
    pnb__tensor *pooled = pnb__attention_pool_apply(g, &h.attention, x, NULL).vectors;
    expect_shape(spread.log_std, SHAPE(B, D));
    expect_shape(spread.weights, SHAPE(B, 1, T));
    pnb__tensor *parts[3] = {spread.log_std, pnb__log_var_of_log_std(spread.log_std),
                             pnb__reshape(pooled, 2, (size_t[]){B, C})};
    const double *v = computed(pnb__concat(parts, 3, 1));
    for (size_t b = 0; b < B; b++)
        for (size_t d = 0; d < D; d++) {
            const double *row = v + b * (2 * D + C);
            double want = fc_of(h.fc_w, h.fc_b, row + 2 * D, d) + numbers(side)[b * D + d];
            expect_near(row[d], want, d);
            expect_near(row[D + d], 2 * want, d); /* log sigma^2 = 2 log sigma */
        }
    end_graph();
    n_params = 0;
}

static void test_gradients(void **state)
{
    (void)state;
    for (size_t n_heads = 1; n_heads <= 2; n_heads++) {
        begin_graph(PNB__F64, true);
        pnb__pie_head h = {attention_of(n_heads), PARAM(D, C), PARAM(D), PARAM(D), PARAM(D)};
        pnb__tensor *base = IN(B, D), *x = IN(B, T, C), *len = int_in(lengths, SHAPE(B));
        check_gradients(pnb__pie_head_apply(g, &h, base, x, len, true).mean);
    }
    begin_graph(PNB__F64, true);
    pnb__log_std_head h = {attention_of(1), PARAM(D, C), PARAM(D)};
    pnb__tensor *side = IN(B, D), *x = IN(B, T, C), *len = int_in(lengths, SHAPE(B));
    check_gradients(pnb__log_std_head_apply(g, &h, side, x, len).log_std);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_log_std),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
