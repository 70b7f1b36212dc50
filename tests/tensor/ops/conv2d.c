/* Convolutions and maxima over windows against plain loops; what may follow a convolution where
 * nothing is trained; packed weights give the same bits. */
#include "tests/tensor/graphs.h"

#include <stdatomic.h>

enum { B = 2, H = 5, WIDTH = 4, C = 3, O = 4, K = 3 };

/* Value of x (B,H,WIDTH,C) at a pixel that may lie outside. */
static double pixel(const double *x, long b, long y, long i, long c)
{
    bool inside = y >= 0 && i >= 0 && y < H && i < WIDTH;
    return inside ? x[((b * H + y) * WIDTH + i) * C + c] : 0;
}

static void test_conv2d(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++) {
        double want[B * H * WIDTH * O];
        size_t stride = bits & 1 ? 2 : 1, n = 0;
        size_t oh = (H - 1) / stride + 1, ow = (WIDTH - 1) / stride + 1;
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(B, H, WIDTH, C), *w = IN(O, C, K, K);
        pnb__conv2d_opts o = {.stride = stride,
                              .pad = 1,
                              .folded = bits & 2 ? IN(2, O) : NULL,
                              .residual = bits & 4 ? IN(B, oh, ow, O) : NULL,
                              .relu = bits & 8};
        for (size_t at = 0; at < B * oh * ow; at++)
            for (size_t out = 0; out < O; out++, n++) {
                long b = (long)(at / (oh * ow)), i = (long)(at / ow % oh), j = (long)(at % ow);
                double y = 0;
                for (long t = 0; t < C * K * K; t++) {
                    long c = t / 9, u = t / 3 % 3, v = t % 3, s = (long)stride;
                    y += pixel(numbers(x), b, i * s + u - 1, j * s + v - 1, c) *
                         numbers(w)[out * C * 9 + (size_t)t];
                }
                if (o.folded != NULL)
                    y = y * numbers(o.folded)[out] + numbers(o.folded)[O + out];
                if (o.residual != NULL)
                    y += numbers(o.residual)[n];
                want[n] = o.relu && y < 0 ? 0 : y;
            }
        pnb__tensor *y = pnb__conv2d(x, w, &o);
        expect_shape(y, SHAPE(B, oh, ow, O));
        expect_values(y, want, n);
    }
}

static void test_conv2d_misfits(void **state)
{
    (void)state;
    const pnb__conv2d_opts plain = {.stride = 1}, still = {.stride = 0};
    REFUSED(pnb__conv2d(IN(1, 4, 4, 3), IN(2, 4, 3, 3), &plain),
            "conv2d: weight (2, 4, 3, 3) does not fit x (1, 4, 4, 3)");
    REFUSED(pnb__conv2d(IN(1, 2, 4, 3), IN(2, 3, 3, 3), &plain), "does not fit x");
    REFUSED(pnb__conv2d(IN(1, 4, 4, 3), IN(2, 3, 3, 3), &still), "does not fit x");
    REFUSED(pnb__conv2d(IN(4, 4, 3), IN(2, 3, 3, 3), &plain), "does not fit x (4, 4, 3)");
    REFUSED(pnb__conv2d(IN(1, 17, 17, 1), IN(1, 1, 17, 17), &plain), "does not fit x");
    REFUSED(pnb__conv2d(IN(1, 4, 4, 3), IN(2, 3, 3, 3),
                        &(pnb__conv2d_opts){.stride = 1, .folded = IN(2, 3)}),
            "conv2d: scale and shift (2, 3) for outputs (1, 2, 2, 2)");
    REFUSED(pnb__conv2d(IN(1, 4, 4, 3), IN(2, 3, 3, 3),
                        &(pnb__conv2d_opts){.stride = 1, .residual = IN(1, 2, 2, 3)}),
            "conv2d: residual (1, 2, 2, 3) does not fit output (1, 2, 2, 2)");
    begin_graph(PNB__F64, true);
    expect_refused(
        pnb__conv2d(IN(1, 4, 4, 3), IN(2, 3, 3, 3), &(pnb__conv2d_opts){.stride = 1, .relu = true}),
        PNB_UNSUPPORTED, "an op of its own in a graph with gradients");
    begin_graph(PNB__F64, false);
    assert_null(pnb__conv2d(NULL, IN(2, 3, 3, 3), &plain));
    assert_null(pnb__conv2d(IN(1, 4, 4, 3), NULL, &plain));
    assert_int_equal(g->error.status, PNB_OK);
    end_graph();
}

/* The first run packs nothing, the second does, the third finds it packed. A weight that is not
 * fixed may change between runs. */
static void check_packing(bool fixed)
{
    float w[O * C * K * K], x[B * H * WIDTH * C], y[3][B * H * WIDTH * O];
    pnb__param p = {.name = "w",
                    .n_dims = 4,
                    .shape = {O, C, K, K},
                    .n = PNB_COUNT(w),
                    .data = w,
                    .fixed = fixed};
    begin_graph(PNB__F32, false);
    pnb__tensor *in = pnb__input(g, PNB__REAL, SHAPE(B, H, WIDTH, C));
    pnb__tensor *out =
        pnb__conv2d(in, pnb__param_tensor(g, &p), &(pnb__conv2d_opts){.stride = 1, .pad = 1});
    pnb__keep(out);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(w); i++)
        w[i] = sinf((float)i);
    for (size_t i = 0; i < PNB_COUNT(x); i++)
        x[i] = cosf((float)i);
    for (int run = 0; run < 3; run++) {
        pnb__write_f32(in, x);
        if (!fixed && run == 2)
            w[0] += 1;
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        pnb__read_f32(out, y[run]);
        bool packs = fixed && run > 0 && g->kernels.gemm_group > 0;
        assert_true((atomic_load(&p.packed) != NULL) == packs);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_true((memcmp(y[1], y[2], sizeof y[0]) == 0) == fixed);
    pnb__param_unpack(&p, &g->kernels);
    end_graph();
}

static void test_packing(void **state)
{
    (void)state;
    check_packing(true);
    check_packing(false);
}

/* A weight that a linear layer reads too is packed for one of them, and both stay right. */
static void test_shared_with_linear(void **state)
{
    (void)state;
    enum { TAPS = C * K * K };
    float w[O * TAPS], x[B * H * WIDTH * C], rows[2 * TAPS], y[3][2][B * H * WIDTH * O] = {0};
    pnb__param p = {
        .name = "w", .n_dims = 4, .shape = {O, C, K, K}, .n = O * TAPS, .data = w, .fixed = true};
    for (size_t i = 0; i < PNB_COUNT(w); i++)
        w[i] = sinf((float)i);
    for (size_t i = 0; i < PNB_COUNT(x); i++)
        x[i] = cosf((float)i);
    for (size_t i = 0; i < PNB_COUNT(rows); i++)
        rows[i] = cosf(2 * (float)i);
    for (int conv_first = 0; conv_first < 2; conv_first++) {
        begin_graph(PNB__F32, false);
        pnb__tensor *in = pnb__input(g, PNB__REAL, SHAPE(B, H, WIDTH, C));
        pnb__tensor *in_rows = pnb__input(g, PNB__REAL, SHAPE(2, TAPS));
        pnb__tensor *weight = pnb__param_tensor(g, &p), *out[2];
        for (int i = 0; i < 2; i++) {
            bool conv = (i == 0) == conv_first;
            out[i] = conv
                         ? pnb__conv2d(in, weight, &(pnb__conv2d_opts){.stride = 1, .pad = 1})
                         : pnb__linear(in_rows, pnb__reshape(weight, 2, (size_t[]){O, TAPS}), NULL);
            pnb__keep(out[i]);
        }
        assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
        for (int run = 0; run < 3; run++) {
            pnb__write_f32(in, x);
            pnb__write_f32(in_rows, rows);
            assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
            for (int i = 0; i < 2; i++)
                pnb__read_f32(out[i], y[run][i]);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]); /* nothing was packed in the first run */
        assert_memory_equal(y[0], y[2], sizeof y[0]);
        pnb__param_unpack(&p, &g->kernels);
        end_graph();
    }
}

static void test_max_pool(void **state)
{
    (void)state;
    double want[B * 3 * 2 * C];
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(B, H, WIDTH, C);
    for (size_t n = 0; n < PNB_COUNT(want); n++) {
        long c = (long)(n % C), j = (long)(n / C % 2), i = (long)(n / C / 2 % 3);
        long b = (long)(n / C / 6);
        want[n] = -INFINITY;
        for (long y = 2 * i - 1; y <= 2 * i + 1; y++)
            for (long k = 2 * j - 1; k <= 2 * j + 1; k++)
                if (y >= 0 && k >= 0 && y < H && k < WIDTH)
                    want[n] = fmax(want[n], pixel(numbers(x), b, y, k, c));
    }
    pnb__tensor *y = pnb__max_pool(x, 3, 2, 1);
    expect_shape(y, SHAPE(B, 3, 2, C));
    expect_values(y, want, PNB_COUNT(want));
    REFUSED(pnb__max_pool(IN(2, 3, 4), 3, 2, 1), "max_pool: windows of 3 do not fit x (2, 3, 4)");
    REFUSED(pnb__max_pool(IN(1, 1, 4, 2), 2, 1, 0), "windows of 2 do not fit");
    REFUSED(pnb__max_pool(IN(1, 4, 4, 2), 2, 1, 2), "windows of 2 do not fit");
    begin_graph(PNB__F64, false);
    assert_null(pnb__max_pool(NULL, 3, 2, 1));
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv2d), cmocka_unit_test(test_conv2d_misfits),
        cmocka_unit_test(test_packing), cmocka_unit_test(test_shared_with_linear),
        cmocka_unit_test(test_max_pool)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
