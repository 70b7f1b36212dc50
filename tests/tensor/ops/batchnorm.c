/* Batch normalisation against its formulas: moments of the batch, running buffers step by step and
 * only once a step, by the running buffers, folded into a convolution; refusals. */
#include "tests/tensor/graphs.h"

enum { R = 6, C = 3, N = R * C };
static const double eps = 0.25, momentum = 0.1; /* eps large enough to be seen */

/* Two running buffers and the params that hold them. */
typedef struct buffers {
    double mean[C], var[C];
    pnb__param p[2];
} buffers;

static void start(buffers *b)
{
    for (int c = 0; c < C; c++) {
        b->mean[c] = 0.5 - c;
        b->var[c] = 1 + 0.5 * c;
    }
    b->p[0] = (pnb__param){.name = "m", .n_dims = 1, .shape = {C}, .n = C, .data = b->mean};
    b->p[1] = (pnb__param){.name = "v", .n_dims = 1, .shape = {C}, .n = C, .data = b->var};
}

static pnb__batchnorm_opts opts_of(buffers *b, bool training)
{
    return (pnb__batchnorm_opts){.w = IN(C),
                                 .b = IN(C),
                                 .running_mean = pnb__param_tensor(g, &b->p[0]),
                                 .running_var = pnb__param_tensor(g, &b->p[1]),
                                 .training = training,
                                 .eps = eps,
                                 .momentum = momentum};
}

/* Mean and sum of squares around it of channel c. */
static void moments(const double *x, int c, double *mean, double *squares)
{
    *mean = *squares = 0;
    for (int r = 0; r < R; r++)
        *mean += x[r * C + c] / R;
    for (int r = 0; r < R; r++)
        *squares += pow(x[r * C + c] - *mean, 2);
}

static void check_values(bool training, bool relu, bool with_residual)
{
    buffers b;
    double want[N], mean, squares;
    start(&b);
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(2, 1, 3, C);
    pnb__batchnorm_opts o = opts_of(&b, training);
    o.relu = relu;
    o.residual = with_residual ? IN(2, 1, 3, C) : NULL;
    for (int i = 0; i < N; i++) {
        int c = i % C;
        moments(numbers(x), c, &mean, &squares);
        double m = training ? mean : b.mean[c], v = training ? squares / R : b.var[c];
        double y = (numbers(x)[i] - m) / sqrt(v + eps) * numbers(o.w)[c] + numbers(o.b)[c];
        y += with_residual ? numbers(o.residual)[i] : 0;
        want[i] = relu && y < 0 ? 0 : y;
    }
    pnb__tensor *y = pnb__batchnorm(x, &o);
    expect_shape(y, SHAPE(2, 1, 3, C));
    expect_values(y, want, N);
}

static void test_values(void **state)
{
    (void)state;
    for (int bits = 0; bits < 8; bits++)
        check_values(bits & 1, bits & 2, bits & 4);
}

/* Three steps of a graph with gradients, as they are and in a segment whose nodes run twice a
 * step: the buffers move once a step, by the unbiased variance. */
static void check_steps(bool segments, bool training)
{
    buffers b;
    double want_mean[C], want_var[C], mean, squares;
    start(&b);
    memcpy(want_mean, b.mean, sizeof want_mean);
    memcpy(want_var, b.var, sizeof want_var);
    begin_graph(PNB__F64, true);
    pnb__graph_set_checkpointing(g, segments);
    pnb__tensor *x = IN(R, C);
    pnb__batchnorm_opts o = opts_of(&b, training);
    size_t begin = pnb__segment_begin(g);
    pnb__tensor *y = pnb__batchnorm(pnb__apply(PNB__SIN, x), &o);
    y = pnb__apply(PNB__SQUARE, y);
    pnb__segment_end(g, begin, y);
    assert_int_equal(pnb__graph_plan(g, pnb__sum(y, PNB__ALL_AXES), NULL), PNB_OK);
    for (int step = 0; step < 3; step++) {
        double sines[N];
        for (int i = 0; i < N; i++) {
            numbers(x)[i] += 0.3 * (step + 1) * i;
            sines[i] = sin(numbers(x)[i]);
        }
        write_given();
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        for (int c = 0; c < C && training; c++) {
            moments(sines, c, &mean, &squares);
            want_mean[c] = (1 - momentum) * want_mean[c] + momentum * mean;
            want_var[c] = (1 - momentum) * want_var[c] + momentum * squares / (R - 1);
        }
        for (size_t c = 0; c < C; c++) {
            expect_near(b.mean[c], want_mean[c], c);
            expect_near(b.var[c], want_var[c], c);
        }
        assert_int_equal(b.p[1].n_moves, training ? step + 1 : 0);
    }
    end_graph();
}

static void test_running_buffers(void **state)
{
    (void)state;
    for (int bits = 0; bits < 4; bits++)
        check_steps(bits & 1, bits & 2);
}

/* Where nothing is trained one op stands for two, and says the same. */
static void test_folded(void **state)
{
    (void)state;
    double y[2][2 * 3 * 3 * C];
    buffers b;
    start(&b);
    for (int with_grad = 0; with_grad < 2; with_grad++) {
        begin_graph(PNB__F64, with_grad);
        pnb__tensor *x = IN(2, 3, 3, 2), *w = IN(C, 2, 3, 3);
        pnb__batchnorm_opts o = opts_of(&b, false);
        o.residual = IN(2, 3, 3, C);
        o.relu = true;
        size_t before = g->n_nodes;
        pnb__tensor *out = pnb__conv2d_batchnorm(x, w, 1, 1, &o);
        assert_int_equal(g->n_nodes - before, 2);
        assert_true(out->op == &pnb__ops[with_grad ? PNB__OP_BATCHNORM : PNB__OP_CONV2D]);
        memcpy(y[with_grad], computed(out), sizeof y[0]);
        end_graph();
    }
    for (size_t i = 0; i < PNB_COUNT(y[0]); i++)
        expect_near(y[0][i], y[1][i], i);
}

static void refuse(int which, pnb_status status, const char *words)
{
    buffers b;
    start(&b);
    begin_graph(PNB__F64, true);
    pnb__tensor *x = which == 0 ? IN(1, 1, 1, C) : IN(R, C);
    b.p[0].fixed = which == 1;
    b.p[1].trainable = which == 2;
    pnb__batchnorm_opts o = opts_of(&b, which != 2);
    if (which == 3)
        o.residual = IN(R, C + 1);
    if (which == 4)
        o.residual = x;
    if (which == 5)
        o.w = IN(C + 1);
    if (which == 6)
        o.running_mean = pnb__input(g, PNB__REAL, SHAPE(C));
    expect_refused(pnb__batchnorm(x, &o), status, words);
}

static void test_misfits(void **state)
{
    (void)state;
    refuse(0, PNB_SHAPE, "x (1, 1, 1, 3) has one value a channel and no variance; training needs");
    refuse(1, PNB_ARG, "batchnorm: m is fixed and cannot be moved");
    refuse(2, PNB_ARG, "batchnorm: a running buffer is not trained");
    refuse(3, PNB_SHAPE, "batchnorm: residual (6, 4) does not fit x (6, 3)");
    refuse(4, PNB_UNSUPPORTED, "x cannot be its own residual");
    refuse(5, PNB_SHAPE, "batchnorm: 4 weights for x (6, 3)");
    refuse(6, PNB_ARG, "batchnorm: a running buffer is fixed");
    buffers b;
    start(&b);
    begin_graph(PNB__F64, false);
    pnb__batchnorm_opts o = opts_of(&b, false), none = o;
    none.b = NULL;
    assert_null(pnb__batchnorm(NULL, &o));
    assert_null(pnb__batchnorm(IN(R, C), &none));
    assert_null(pnb__conv2d_batchnorm(IN(1, 2, 2, 1), IN(C, 1, 1, 1), 1, 0, &none));
    assert_int_equal(g->error.status, PNB_OK);
    end_graph();
    begin_graph(PNB__F64, false); /* a shorter vector among those that are folded */
    o = opts_of(&b, false);
    o.b = IN(C + 1);
    expect_refused(pnb__conv2d_batchnorm(IN(1, 2, 2, 1), IN(C, 1, 1, 1), 1, 0, &o), PNB_SHAPE,
                   "weights and buffers have 3 and 4 values");
}

/* One picture of more than one place has a variance; one row by the running buffers needs none. */
static void test_smallest(void **state)
{
    buffers b;
    (void)state;
    start(&b);
    begin_graph(PNB__F64, false);
    pnb__batchnorm_opts o = opts_of(&b, true);
    assert_non_null(pnb__batchnorm(IN(1, 1, 2, C), &o));
    o.training = false;
    assert_non_null(pnb__batchnorm(IN(1, 1, 1, C), &o));
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_running_buffers),
        cmocka_unit_test(test_folded), cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_smallest)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
