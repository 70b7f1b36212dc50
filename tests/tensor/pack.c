/* Weights packed once for graphs that run many times: when, which, with what bits, and given back.
 */
#include "tests/tensor/graphs.h"

enum { ROWS = 48, WIDTH = 32 };

/* One layer whose weight is 3C wide, used whole and by a slice of its rows, as attention does. */
typedef struct packed_net {
    pnb__graph *g;
    pnb__tensor *x, *whole, *part;
} packed_net;

static packed_net build_packed(pnb__param *w, size_t rows)
{
    packed_net n = {NULL, NULL, NULL, NULL};
    assert_int_equal(pnb__graph_create(&n.g, ctx, PNB__F32, false, NULL), PNB_OK);
    n.x = pnb__input(n.g, PNB__REAL, 2, (size_t[]){rows, WIDTH});
    pnb__tensor *weight = pnb__param_tensor(n.g, w);
    n.whole = pnb__linear(n.x, weight, NULL);
    n.part = pnb__linear(n.x, pnb__slice(weight, 0, WIDTH, 2 * WIDTH), NULL);
    pnb__keep(n.whole);
    pnb__keep(n.part);
    assert_int_equal(pnb__graph_plan(n.g, NULL, NULL), PNB_OK);
    return n;
}

static void run_packed(packed_net *n, size_t rows, float *whole, float *part)
{
    float x[ROWS * WIDTH];
    for (size_t i = 0; i < rows * WIDTH; i++)
        x[i] = (float)(i * 7 % 23) * 0.1f - 1;
    pnb__write_f32(n->x, x);
    assert_int_equal(pnb__graph_run(n->g, NULL), PNB_OK);
    pnb__read_f32(n->whole, whole);
    pnb__read_f32(n->part, part);
}

/* From the second run on a fixed weight is packed; the results keep their bits, also in a graph of
 * another batch; a weight that may change is never packed, and unpacking frees. */
static void test_fixed_weights_are_packed_once(void **state)
{
    (void)state;
    static float w[3 * WIDTH * WIDTH], first[2][ROWS * 3 * WIDTH], again[2][ROWS * 3 * WIDTH];
    for (size_t i = 0; i < PNB_COUNT(w); i++)
        w[i] = (float)(i * 13 % 37) * 0.05f - 1;
    pnb__param p = {"w", 2, {3 * WIDTH, WIDTH}, PNB_COUNT(w), w, .trainable = true};
    packed_net n = build_packed(&p, ROWS);
    bool packs = pnb__graph_kernels(n.g)->gemm_group > 0;
    for (int i = 0; i < 3; i++)
        run_packed(&n, ROWS, first[0], first[1]);
    assert_null(p.packed);
    p.fixed = true;
    pnb__graph_free(n.g);
    n = build_packed(&p, ROWS);
    for (int i = 0; i < 3; i++) {
        run_packed(&n, ROWS, again[0], again[1]);
        assert_int_equal(p.packed != NULL, packs && i > 0);
        assert_memory_equal(first, again, sizeof first);
    }
    packed_net small = build_packed(&p, 5);
    run_packed(&small, 5, again[0], again[1]);
    assert_memory_equal(first[0], again[0], 5 * 3 * WIDTH * sizeof(float));
    assert_memory_equal(first[1], again[1], 5 * 2 * WIDTH * sizeof(float));
    const pnb__kernels *k = pnb__graph_kernels(n.g);
    pnb__param_unpack(&p, k);
    assert_null(p.packed);
    run_packed(&n, ROWS, again[0], again[1]);
    assert_memory_equal(first, again, sizeof first);
    pnb__graph_free(n.g);
    pnb__graph_free(small.g);
}

/* A weight in bytes gives what its f32 twin gives up to the rounding of x, whole and by a slice;
 * it is packed before the first run, refused where a gradient or another op wants it. */
static void test_weights_in_bytes(void **state)
{
    (void)state;
    static float w[3 * WIDTH * WIDTH], want[2][ROWS * 3 * WIDTH], got[2][ROWS * 3 * WIDTH];
    static signed char bytes[3 * WIDTH * WIDTH];
    float scales[3 * WIDTH];
    for (size_t i = 0; i < PNB_COUNT(scales); i++)
        scales[i] = 0.001f * (float)(1 + i % 7);
    for (size_t i = 0; i < PNB_COUNT(w); i++) {
        bytes[i] = (signed char)((int)(i * 13 % 251) - 125);
        w[i] = (float)bytes[i] * scales[i / WIDTH];
    }
    pnb__param p = {"w", 2, {3 * WIDTH, WIDTH}, PNB_COUNT(w), w, .trainable = true};
    pnb__param q = p;
    q.data = bytes;
    q.store = PNB__STORE_I8;
    q.scales = scales;
    q.i8_levels = PNB__I8_LEVELS_7BIT;
    packed_net n = build_packed(&p, ROWS), i8 = build_packed(&q, ROWS);
    run_packed(&n, ROWS, want[0], want[1]);
    run_packed(&i8, ROWS, got[0], got[1]);
    assert_non_null(q.packed);
    double error = 0, size = 0;
    for (size_t i = 0; i < PNB_COUNT(want[0]); i++) {
        error += pow((double)(got[0][i] - want[0][i]), 2);
        size += pow((double)want[0][i], 2);
    }
    assert_true(sqrt(error / size) < 0.02 && error > 0); /* steps of 1/57 of the largest x */
    for (size_t r = 0; r < ROWS; r++) /* the slice is columns WIDTH.. of the whole, to the bit */
        assert_memory_equal(got[1] + r * 2 * WIDTH, got[0] + r * 3 * WIDTH + WIDTH,
                            2 * WIDTH * sizeof(float));
    pnb__param_unpack(&q, pnb__graph_kernels(i8.g));
    pnb__graph_free(n.g);
    pnb__graph_free(i8.g);
    pnb_error err = PNB_ERROR_INIT;
    for (int with_grad = 0; with_grad < 2; with_grad++) {
        begin_graph(PNB__F32, with_grad);
        pnb__tensor *weight = pnb__param_tensor(g, &q);
        pnb__tensor *x = pnb__input(g, PNB__REAL, 2, (size_t[]){ROWS, WIDTH});
        assert_null(with_grad ? pnb__linear(x, weight, NULL) : pnb__apply(PNB__TANH, weight));
        assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_UNSUPPORTED);
        assert_non_null(strstr(err.text, "w is stored in 8 bits"));
        end_graph();
    }
}

/* W (K, N) is packed whole; a part of its columns is not, nor what a graph with gradients uses, nor
 * what nobody needs. */
static void test_what_is_packed(void **state)
{
    static float w[WIDTH * WIDTH];
    (void)state;
    for (int form = 0; form < 5; form++) {
        pnb__param p = {"w", 2, {WIDTH, WIDTH}, PNB_COUNT(w), w, .fixed = true};
        begin_graph(PNB__F32, form == 4);
        pnb__tensor *weight = pnb__param_tensor(g, &p), *x = IN(2, WIDTH);
        bool transpose = form == 1 || form == 2;
        if (form == 2) /* the first columns only, by an offset inside a row: a copy, no weight */
            weight = pnb__slice(weight, 1, 0, WIDTH / 2);
        pnb__tensor *y = pnb__linear(x, weight, &(pnb__linear_opts){.transpose_w = transpose});
        pnb__keep(form == 3 ? x : y);
        pnb__tensor *loss = form == 4 ? pnb__sum(y, PNB__ALL_AXES) : NULL;
        assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
        for (int run = 0; run < 3; run++) {
            write_given();
            assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        }
        assert_int_equal(p.packed != NULL, form < 2 && g->kernels.gemm_group > 0);
        pnb__param_unpack(&p, pnb__graph_kernels(g));
        pnb__param_unpack(&p, pnb__graph_kernels(g)); /* nothing left: nothing happens */
        assert_null(p.packed);
        end_graph();
    }
}

#ifdef PNB_FAULTS
/* Without memory a fixed weight stays as it is; one in few bits cannot be used. */
static void test_no_memory_to_pack(void **state)
{
    static float w[WIDTH * WIDTH];
    static signed char bytes[WIDTH * WIDTH];
    static float scales[WIDTH];
    (void)state;
    for (int few_bits = 0; few_bits < 2; few_bits++) {
        pnb__param p = {"w", 2, {WIDTH, WIDTH}, PNB_COUNT(w), w, .fixed = true};
        pnb_error err = PNB_ERROR_INIT;
        if (few_bits) {
            p.data = bytes;
            p.store = PNB__STORE_I8;
            p.scales = scales;
            p.i8_levels = PNB__I8_LEVELS_7BIT;
        }
        begin_graph(PNB__F32, false);
        pnb__keep(pnb__linear(IN(2, WIDTH), pnb__param_tensor(g, &p), NULL));
        assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
        for (long n = 0; n < 2; n++) {
            write_given();
            pnb__alloc_fail_after(n);
            pnb_status status = pnb__graph_pack(g, few_bits, &err);
            pnb__alloc_fail_after(-1);
            assert_int_equal(status, few_bits ? PNB_NOMEM : PNB_OK);
            assert_null(p.packed);
        }
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        pnb__param_unpack(&p, pnb__graph_kernels(g));
        end_graph();
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_weights_are_packed_once),
        cmocka_unit_test(test_weights_in_bytes),
        cmocka_unit_test(test_what_is_packed),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory_to_pack),
#endif
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
