/* A linear layer with everything it can do at once, and where a weight in few bits may be used. */
#include "tests/tensor/graphs.h"

enum { B = 2, T = 3, K = 5, N = 4 };

static double quick_gelu(double x)
{
    return x / (1 + exp(-1.702 * x));
}

/* y = act(x W^T + b) * scale + residual, each part given or not, W as it is or transposed. */
static void test_linear(void **state)
{
    (void)state;
    for (unsigned parts = 0; parts < 32; parts++) {
        double want[B * T * N];
        bool transpose = parts & 1;
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(B, T, K), *w = transpose ? IN(K, N) : IN(N, K);
        pnb__linear_opts o = {.act = parts & 2 ? PNB__QUICK_GELU : PNB__IDENTITY,
                              .transpose_w = transpose,
                              .bias = parts & 4 ? IN(N) : NULL,
                              .col_scale = parts & 8 ? IN(N) : NULL,
                              .residual = parts & 16 ? IN(B, T, N) : NULL};
        for (size_t i = 0; i < PNB_COUNT(want); i++) {
            size_t row = i / N, n = i % N;
            double z = o.bias ? numbers(o.bias)[n] : 0;
            for (size_t k = 0; k < K; k++)
                z += numbers(x)[row * K + k] * numbers(w)[transpose ? k * N + n : n * K + k];
            want[i] =
                (parts & 2 ? quick_gelu(z) : z) * (o.col_scale ? numbers(o.col_scale)[n] : 1) +
                (o.residual ? numbers(o.residual)[i] : 0);
        }
        pnb__tensor *y = pnb__linear(x, w, parts == 0 ? NULL : &o);
        expect_shape(y, SHAPE(B, T, N));
        expect_values(y, want, PNB_COUNT(want));
    }
}

static void test_linear_misfits(void **state)
{
    (void)state;
    REFUSED(pnb__linear(IN(3, 5), IN(4, 6), NULL), "linear: x (3, 5) does not fit weight (4, 6)");
    REFUSED(pnb__linear(IN(3, 5), IN(4, 5), &(pnb__linear_opts){.transpose_w = true}),
            "weight (4, 5) (transposed)");
    REFUSED(pnb__linear(IN(3, 5), IN(5), NULL), "does not fit weight (5)");
    REFUSED(pnb__linear(real_in(0, NULL), IN(4, 1), NULL), "linear: x () does not fit");
    REFUSED(pnb__linear(IN(3, 5), IN(4, 5), &(pnb__linear_opts){.bias = IN(5)}),
            "linear: bias and scale must have 4 values");
    REFUSED(pnb__linear(IN(3, 5), IN(4, 5), &(pnb__linear_opts){.col_scale = IN(1, 4)}),
            "linear: bias and scale must have 4 values");
    REFUSED(pnb__linear(IN(3, 5), IN(4, 5), &(pnb__linear_opts){.residual = IN(2, 4)}),
            "linear: residual (2, 4) does not fit output (3, 4)");
    begin_graph(PNB__F64, false);
    assert_null(pnb__linear(NULL, IN(4, 5), NULL));
    assert_null(pnb__linear(IN(3, 5), NULL, NULL));
    assert_int_equal(g->error.status, PNB_OK);
    end_graph();
}

/* Two operations for each product of two numbers, of all layers. */
static void test_work_is_counted(void **state)
{
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *y = pnb__linear(IN(B, T, K), IN(N, K), NULL);
    y = pnb__matmul(y, false, IN(B, N, 7), false);
    pnb__keep(y);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    assert_true(pnb__graph_flops(g) == 2.0 * B * T * N * K + 2.0 * B * T * 7 * N);
    end_graph();
}

/* A weight in bytes or 16 bits: for inference, by rows, from a row where packed columns begin. */
static void test_few_bits(void **state)
{
    enum { WIDE = 64 };
    static uint16_t halves[WIDE * K];
    static signed char bytes[WIDE * K];
    float scales[WIDE] = {1};
    pnb__param p = {"w", 2, {WIDE, K}, WIDE * K, halves, .store = PNB__STORE_F16};
    pnb__param q = {"q",
                    2,
                    {WIDE, K},
                    WIDE * K,
                    bytes,
                    .store = PNB__STORE_I8,
                    .scales = scales,
                    .i8_levels = PNB__I8_LEVELS_7BIT};
    (void)state;
    begin_graph(PNB__F32, false);
    size_t group = g->kernels.gemm_group, i8_group = g->kernels.gemm_i8_group;
    pnb__param real = {"r", 2, {WIDE, K}, WIDE * K, NULL, .store = PNB__STORE_REAL};
    assert_true(pnb__linear_can_begin(g, &real, 1)); /* anywhere */
    if (group > 1 && i8_group > 1 && group < WIDE) {
        assert_true(pnb__linear_can_begin(g, &p, group) && pnb__linear_can_begin(g, &q, i8_group));
        assert_false(pnb__linear_can_begin(g, &p, 1) || pnb__linear_can_begin(g, &q, 1));
        pnb__tensor *x = IN(2, K), *w = pnb__param_tensor(g, &p);
        expect_shape(pnb__linear(x, pnb__slice(w, 0, group, 2), NULL), SHAPE(2, 2));
        expect_refused(pnb__linear(x, pnb__slice(w, 0, 1, 2), NULL), PNB_UNSUPPORTED,
                       "w cannot be used in 16 bits here");
        begin_graph(PNB__F32, false);
        w = pnb__param_tensor(g, &q);
        expect_refused(pnb__linear(IN(2, WIDE), w, &(pnb__linear_opts){.transpose_w = true}),
                       PNB_UNSUPPORTED, "q cannot be used in 8 bits here");
        begin_graph(PNB__F32, false);
        w = pnb__slice(pnb__param_tensor(g, &p), 0, 0, WIDE / 2);
        expect_refused(pnb__linear(IN(2, WIDE / 2), w, &(pnb__linear_opts){.transpose_w = true}),
                       PNB_UNSUPPORTED, "w cannot be used in 16 bits here");
    } else
        end_graph();
    begin_graph(PNB__F32, true);
    expect_refused(
        pnb__linear(IN(2, K), pnb__param_tensor(g, &p), NULL), PNB_UNSUPPORTED,
        "w is stored in 16 bits and cannot be trained; train the model it was made from");
}

/* A float in bfloat16: to nearest, ties to even. */
static double rounded(double x)
{
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void expect_close(double got, double want)
{
    if (!(fabs(got - want) <= 1e-5))
        fail_msg("got %.9g, want %.9g", got, want);
}

/* sum_i a[i step_a] b[i step_b] */
static double product(const double *a, size_t step_a, const double *b, size_t step_b, size_t n,
                      bool is_rounded)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double x = a[i * step_a], y = b[i * step_b];
        sum += is_rounded ? rounded(x) * rounded(y) : x * y;
    }
    return sum;
}

/* y = x W^T + b, loss = sum y p: dy is p, dx = p W and dW = p^T x, of rounded factors each, where
 * the graph rounds and the weight trains in bf16; db stays a sum of floats. */
static void check_rounded(bool rounds, bool trains_in_bf16)
{
    enum { ROWS = B * T };
    float w[N * K], dw[N * K] = {0}, b[N] = {0.3f, -0.7f, 0.123f, 2}, db[N] = {0};
    double wide[N * K], dx[ROWS * K], loss = 0;
    pnb__param weight = {"w", 2, {N, K}, N * K, w, .grad_store = dw, .trainable = true};
    pnb__param bias = {"b", 1, {N}, N, b, .grad_store = db, .trainable = true};
    bool is = rounds && trains_in_bf16;
    weight.trains_in_bf16 = bias.trains_in_bf16 = trains_in_bf16;
    for (size_t i = 0; i < N * K; i++)
        wide[i] = (double)(w[i] = (float)sin(1.7 * (double)i + 1));
    begin_graph(PNB__F32, true);
    pnb__graph_round_products(g, rounds);
    pnb__tensor *x = IN(ROWS, K), *p = IN(ROWS, N);
    const pnb__linear_opts o = {.bias = pnb__param_tensor(g, &bias), .act = PNB__IDENTITY};
    pnb__tensor *y = pnb__linear(x, pnb__param_tensor(g, &weight), &o);
    assert_int_equal(pnb__graph_plan(g, pnb__sum(pnb__mul(y, p), PNB__ALL_AXES), NULL), PNB_OK);
    write_given();
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    const double *xs = numbers(x), *ps = numbers(p);
    for (size_t i = 0; i < ROWS * N; i++)
        loss += ps[i] * ((double)b[i % N] + product(xs + i / N * K, 1, wide + i % N * K, 1, K, is));
    expect_close(pnb__read_scalar(g->loss), loss);
    assert_true(pnb__read_grad_f64(x, dx));
    for (size_t i = 0; i < ROWS * K; i++)
        expect_close(dx[i], product(ps + i / K * N, 1, wide + i % K, K, N, is));
    for (size_t i = 0; i < N * K; i++)
        expect_close((double)dw[i], product(ps + i / K, N, xs + i % K, K, ROWS, is));
    for (size_t n = 0; n < N; n++)
        expect_close((double)db[n], product(ps + n, N, (const double[]){1}, 0, ROWS, false));
    end_graph();
}

static void test_rounded_factors(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        check_rounded(i & 1, i & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear), cmocka_unit_test(test_linear_misfits),
        cmocka_unit_test(test_work_is_counted), cmocka_unit_test(test_few_bits),
        cmocka_unit_test(test_rounded_factors)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
