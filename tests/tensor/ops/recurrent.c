/* A GRU over sequences, from either end, whole or its last state, against plain loops; a step of
 * it; the mask of lengths; and what is refused. */
#include "tests/tensor/graphs.h"

enum { B = 5, T = 6, C = 3 };
static const int32_t lengths[B] = {2, 6, 1, 0, 4};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One state after another of sequence b: states (T,C) by position, end (C). */
static void by_hand(const double *gx, const double *w, const double *b, size_t length, bool reverse,
                    double *states, double *end)
{
    double h[C] = {0}, gh[3 * C], next[C];
    for (size_t s = 0; s < length; s++) {
        size_t at = reverse ? length - 1 - s : s;
        for (size_t j = 0; j < 3 * C; j++) {
            gh[j] = b[j];
            for (size_t i = 0; i < C; i++)
                gh[j] += w[j * C + i] * h[i];
        }
        for (size_t i = 0; i < C; i++) {
            const double *x = gx + at * 3 * C + i;
            double r = sigmoid(x[0] + gh[i]), z = sigmoid(x[C] + gh[C + i]);
            next[i] = (1 - z) * tanh(x[2 * C] + r * gh[2 * C + i]) + z * h[i];
        }
        memcpy(h, next, sizeof h);
        memcpy(states + at * C, h, sizeof h);
    }
    memcpy(end, h, sizeof h);
}

static void check_gru(bool with_lengths, pnb__gru_opts o, bool with_grad)
{
    double states[B * T * C] = {0}, ends[B * C];
    begin_graph(PNB__F64, with_grad);
    pnb__tensor *gx = IN(B, T, 3 * C), *w = IN(3 * C, C), *b = IN(3 * C);
    pnb__tensor *len = with_lengths ? int_in(lengths, SHAPE(B)) : NULL;
    for (size_t i = 0; i < B; i++)
        by_hand(numbers(gx) + i * T * 3 * C, numbers(w), numbers(b),
                with_lengths ? (size_t)lengths[i] : T, o.reverse, states + i * T * C, ends + i * C);
    pnb__tensor *t = pnb__gru(gx, w, b, len, &o);
    if (o.last) {
        expect_shape(t, SHAPE(B, C));
        expect_values(t, ends, B * C);
    } else {
        expect_shape(t, SHAPE(B, T, C));
        expect_values(t, states, B * T * C);
    }
}

/* Whatever the lengths, from either end, all states or the last; with gradients nothing else comes
 * out. */
static void test_gru(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 16; kind++)
        check_gru(kind & 1, (pnb__gru_opts){.reverse = kind & 2, .last = kind & 4}, kind & 8);
}

/* Of one position W_hh has no part: its gradient is there, and 0. */
static void test_one_position(void **state)
{
    enum { N = 4 };
    double grad[3 * C * C];
    (void)state;
    begin_graph(PNB__F64, true);
    pnb__tensor *gx = IN(N, 1, 3 * C), *w = IN(3 * C, C), *b = IN(3 * C);
    pnb__tensor *t = pnb__gru(gx, w, b, NULL, &(pnb__gru_opts){.last = true});
    assert_int_equal(pnb__graph_plan(g, pnb__sum(t, PNB__ALL_AXES), NULL), PNB_OK);
    write_given();
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(pnb__read_grad_f64(w, grad));
    for (size_t i = 0; i < 3 * C * C; i++)
        assert_true(grad[i] == 0);
    assert_true(pnb__read_grad_f64(b, grad));
    for (size_t i = 0; i < 3 * C; i++)
        assert_true(grad[i] != 0);
    end_graph();
}

/* No sequences, no positions, or none that a length covers: states and gradients of 0. */
static void test_nothing_to_read(void **state)
{
    static const size_t sizes[][2] = {{0, 4}, {2, 0}, {2, 4}};
    static const int32_t none[2] = {0, 0};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (unsigned kind = 0; kind < 4; kind++) {
            double values[2 * 4 * C] = {0}, grad[3 * C * C];
            size_t n = sizes[i][0], n_steps = sizes[i][1];
            begin_graph(PNB__F64, true);
            pnb__tensor *gx = IN(n, n_steps, 3 * C), *w = IN(3 * C, C), *b = IN(3 * C);
            pnb__tensor *t = pnb__gru(gx, w, b, int_in(none, SHAPE(n)),
                                      &(pnb__gru_opts){.reverse = kind & 1, .last = kind & 2});
            pnb__keep(t);
            assert_int_equal(pnb__graph_plan(g, pnb__sum(t, PNB__ALL_AXES), NULL), PNB_OK);
            write_given();
            assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
            pnb__read_f64(t, values);
            for (size_t k = 0; k < pnb__n(t); k++)
                assert_true(values[k] == 0);
            assert_true(pnb__read_grad_f64(w, grad));
            for (size_t k = 0; k < (size_t)3 * C * C; k++)
                assert_true(grad[k] == 0);
            end_graph();
        }
}

/* ---- the same in floats: sizes of a network, gradients, threads ---- */

enum { WIDE_B = 23, WIDE_T = 7, WIDE_C = 40, N_GRADS = 3 };
typedef struct wide_run {
    double *out, *grad[N_GRADS]; /* of gx, W_hh, b_hh */
} wide_run;
static const size_t wide_n[N_GRADS + 1] = {(size_t)WIDE_B * WIDE_T * 3 * WIDE_C,
                                           (size_t)3 * WIDE_C *WIDE_C, (size_t)3 * WIDE_C,
                                           (size_t)WIDE_B *WIDE_T *WIDE_C};

static double *filled(size_t n, uint64_t seed)
{
    double *x = malloc(n * sizeof *x);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 3);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(float)(0.6 * pnb__rng_normal(&rng));
    return x;
}

/* Twice the same weights, as `again` asks: gradients add up. */
static wide_run run_wide(pnb__real real, int n_threads, bool equal, bool again)
{
    pnb_ctx_opts opts = {.n_threads = n_threads, .device = PNB_DEVICE_CPU};
    pnb_ctx *own = NULL;
    wide_run r;
    int32_t len[WIDE_B];
    pnb__tensor *in[N_GRADS];
    for (int b = 0; b < WIDE_B; b++)
        len[b] = equal ? WIDE_T : 1 + (5 * b) % WIDE_T;
    assert_int_equal(pnb_ctx_create(&own, &opts, NULL), PNB_OK);
    assert_int_equal(pnb__graph_create(&g, own, real, true, NULL), PNB_OK);
    in[0] = pnb__input_with_grad(g, SHAPE(WIDE_B, WIDE_T, 3 * WIDE_C));
    in[1] = pnb__input_with_grad(g, SHAPE(3 * WIDE_C, WIDE_C));
    in[2] = pnb__input_with_grad(g, SHAPE(3 * WIDE_C));
    pnb__tensor *lens = pnb__input(g, PNB__INT32, SHAPE(WIDE_B));
    pnb__tensor *out = pnb__gru(in[0], in[1], in[2], lens, &(pnb__gru_opts){.reverse = false});
    pnb__tensor *loss = pnb__sum(pnb__mul(out, out), PNB__ALL_AXES);
    if (again) {
        pnb__gru_opts o = {.reverse = true, .last = true};
        pnb__tensor *end = pnb__gru(in[0], in[1], in[2], lens, &o);
        loss = pnb__add(loss, pnb__sum(pnb__mul(end, end), PNB__ALL_AXES));
    }
    pnb__keep(out);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    pnb__write_i32(lens, len);
    for (int i = 0; i < N_GRADS; i++) {
        double *values = filled(wide_n[i], 40 + (uint64_t)i);
        for (size_t k = 0; k < wide_n[i] && i == 1; k++)
            values[k] *= 0.25;
        pnb__write_f64(in[i], values);
        free(values);
    }
    for (int run = 0; run < 2; run++) /* what an earlier run left plays no part */
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    for (int i = 0; i < N_GRADS; i++) {
        r.grad[i] = malloc(wide_n[i] * sizeof(double));
        assert_true(pnb__read_grad_f64(in[i], r.grad[i]));
    }
    r.out = malloc(wide_n[N_GRADS] * sizeof(double));
    pnb__read_f64(out, r.out);
    end_graph();
    pnb_ctx_free(own);
    return r;
}

static void free_wide(wide_run *r)
{
    free(r->out);
    for (int i = 0; i < N_GRADS; i++)
        free(r->grad[i]);
}

static void expect_alike(const double *a, const double *b, size_t n, double tolerance)
{
    double top = 0;
    for (size_t i = 0; i < n; i++)
        top = PNB_MAX(top, fabs(b[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance * top))
            fail_msg("element %zu is %.9g, not %.9g", i, a[i], b[i]);
}

/* The fast loops with packed weights against doubles, and the same bits for any threads. */
static void test_floats(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bool equal = kind & 1, again = kind & 2;
        wide_run want = run_wide(PNB__F64, 1, equal, again);
        wide_run one = run_wide(PNB__F32, 1, equal, again);
        wide_run three = run_wide(PNB__F32, 3, equal, again);
        expect_alike(one.out, want.out, wide_n[N_GRADS], 2e-6);
        assert_memory_equal(one.out, three.out, wide_n[N_GRADS] * sizeof(double));
        for (int i = 0; i < N_GRADS; i++) {
            expect_alike(one.grad[i], want.grad[i], wide_n[i], 5e-6);
            assert_memory_equal(one.grad[i], three.grad[i], wide_n[i] * sizeof(double));
        }
        free_wide(&want);
        free_wide(&one);
        free_wide(&three);
    }
}

/* Checkpointing drops everything a node kept and makes it again: the same bits. */
static void test_checkpointing(void **state)
{
    double grads[2][3 * C * C];
    (void)state;
    for (int on = 0; on < 2; on++) {
        begin_graph(PNB__F32, true);
        pnb__graph_set_checkpointing(g, on);
        size_t begin = pnb__segment_begin(g);
        pnb__tensor *gx = IN(B, T, 3 * C), *w = IN(3 * C, C), *b = IN(3 * C);
        pnb__tensor *len = int_in(lengths, SHAPE(B));
        pnb__tensor *t = pnb__gru(gx, w, b, len, &(pnb__gru_opts){.last = true});
        t = pnb__apply(PNB__SQUARE, t);
        pnb__segment_end(g, begin, t);
        assert_int_equal(pnb__graph_plan(g, pnb__sum(t, PNB__ALL_AXES), NULL), PNB_OK);
        write_given();
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        assert_true(pnb__read_grad_f64(w, grads[on]));
        end_graph();
    }
    assert_memory_equal(grads[0], grads[1], sizeof grads[0]);
}

static void test_refused(void **state)
{
    (void)state;
    const pnb__gru_opts o = {.last = true};
    REFUSED(pnb__gru(IN(2, 3, 8), IN(9, 3), IN(9), NULL, &o), "gru: gates (2, 3, 8), W_hh (9, 3)");
    REFUSED(pnb__gru(IN(2, 9), IN(9, 3), IN(9), NULL, &o), "gru: gates (2, 9)");
    REFUSED(pnb__gru(IN(2, 3, 9), IN(9, 3), IN(3), NULL, &o), "its bias and lengths do not fit");
    REFUSED(pnb__gru(IN(2, 3, 9), IN(9, 3), IN(9), int_in(lengths, SHAPE(3)), &o),
            "its bias and lengths do not fit");
    REFUSED(pnb__length_mask(IN(3), 4), "length_mask: (3) is no list of lengths");
}

/* A length that the batch has no room for ends the run, and says which. */
static void test_bad_lengths(void **state)
{
    static const struct {
        int32_t values[2];
        const char *words;
    } bad[] = {{{1, 5}, "sequence 1 has length 5, not 0 to 4"},
               {{-1, 4}, "sequence 0 has length -1, not 0 to 4"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        pnb_error err = PNB_ERROR_INIT;
        begin_graph(PNB__F32, false);
        pnb__tensor *len = int_in(bad[i].values, SHAPE(2));
        pnb__tensor *t =
            pnb__gru(IN(2, 4, 9), IN(9, 3), IN(9), len, &(pnb__gru_opts){.last = false});
        pnb__keep(t);
        assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
        write_given();
        assert_int_equal(pnb__graph_run(g, &err), PNB_ARG);
        assert_non_null(strstr(err.text, bad[i].words));
        end_graph();
    }
}

static void test_length_mask(void **state)
{
    (void)state;
    for (int real = PNB__F32; real <= PNB__F64; real++) {
        begin_graph((pnb__real)real, false);
        pnb__tensor *t = pnb__length_mask(int_in(lengths, SHAPE(B)), T);
        expect_shape(t, SHAPE(B, T));
        const double *mask = computed(t);
        for (int32_t i = 0; i < B * T; i++)
            assert_true(mask[i] == (i % T < lengths[i / T] ? 0 : -INFINITY));
        end_graph();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gru),
        cmocka_unit_test(test_one_position),
        cmocka_unit_test(test_nothing_to_read),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_checkpointing),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_lengths),
        cmocka_unit_test(test_length_mask),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
