/* Ops of one element at a time: functions, broadcasting, dropout and inclusion by plain loops, also
 * where a result takes its input's memory or a gradient is taken over. */
#include "tests/tensor/graphs.h"

static double square_of(double x)
{
    return x * x;
}
static double recip_of(double x)
{
    return 1 / x;
}
static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}
static double gelu_of(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}

/* The function asked for is the one that runs, on every element. */
static void test_functions(void **state)
{
    static const struct {
        pnb__unary op;
        double (*f)(double);
    } cases[] = {{PNB__EXP, exp},          {PNB__TANH, tanh},      {PNB__SIN, sin},
                 {PNB__SQUARE, square_of}, {PNB__RECIP, recip_of}, {PNB__SIGMOID, sigmoid_of},
                 {PNB__ABS, fabs},         {PNB__GELU, gelu_of}};
    double want[12];
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(2, 3, 2);
        for (size_t i = 0; i < 12; i++)
            want[i] = cases[k].f(numbers(x)[i]);
        pnb__tensor *y = pnb__apply(cases[k].op, x);
        expect_shape(y, SHAPE(2, 3, 2));
        expect_values(y, want, 12);
    }
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(4);
    for (size_t i = 0; i < 4; i++)
        want[i] = -2 * numbers(x)[i] + 0.25;
    expect_values(pnb__affine(x, -2, 0.25), want, 4);
    begin_graph(PNB__F64, false);
    expect_refused(pnb__apply(PNB__N_UNARY, IN(2)), PNB_ARG, "unary: no function number");
}

/* What the derivative reads: f' of these is cheap to say by f. */
static void test_what_derivatives_read(void **state)
{
    (void)state;
    for (int op = 0; op < PNB__N_UNARY; op++) {
        bool by_output = op == PNB__EXP || op == PNB__SQRT || op == PNB__RECIP || op == PNB__TANH ||
                         op == PNB__SIGMOID;
        assert_int_equal(pnb__unary_bwd_reads_output((pnb__unary)op), by_output);
        begin_graph(PNB__F64, true);
        pnb__tensor *y = pnb__apply((pnb__unary)op, IN(2));
        assert_int_equal(y->saves_out, by_output);
        assert_int_equal(y->saves_in, !by_output && op != PNB__AFFINE);
        end_graph();
    }
}

static double combined(pnb__binary op, double a, double b)
{
    return op == PNB__ADD ? a + b : op == PNB__SUB ? a - b : op == PNB__MUL ? a * b : a / b;
}

/* numpy's rule, also where both are stretched or the second is the larger. */
static void test_broadcasting(void **state)
{
    double want[24];
    (void)state;
    for (int op = PNB__ADD; op <= PNB__DIV; op++) {
        for (int form = 0; form < 4; form++) {
            begin_graph(PNB__F64, false);
            pnb__tensor *a = form == 0 ? IN(2, 3, 4) : form == 1 ? IN(2, 1, 4) : IN(3, 1);
            pnb__tensor *b = form == 0   ? IN(3, 1)
                             : form == 1 ? IN(3, 1)
                             : form == 2 ? IN(2, 3, 4)
                                         : IN(2, 1, 4);
            for (size_t i = 0; i < 24; i++) {
                size_t of[3] = {i, i / 4 % 3, i / 12 * 4 + i % 4}; /* of whole, (3,1), (2,1,4) */
                static const size_t way[4][2] = {{0, 1}, {2, 1}, {1, 0}, {1, 2}};
                want[i] = combined((pnb__binary)op, numbers(a)[of[way[form][0]]],
                                   numbers(b)[of[way[form][1]]]);
            }
            pnb__tensor *y = pnb__combine((pnb__binary)op, a, b);
            expect_shape(y, SHAPE(2, 3, 4));
            expect_values(y, want, 24);
        }
    }
    REFUSED(pnb__add(IN(3, 4), IN(3)), "binary: (3, 4) does not broadcast with (3)");
    REFUSED(pnb__mul(IN(2, 3), IN(3, 3)), "binary: (2, 3) does not broadcast with (3, 3)");
}

/* x + x, x - x and x / x: both halves of the gradient arrive, though one takes over the buffer. */
static void test_one_tensor_twice(void **state)
{
    static const double of_sum[] = {2, 0};
    (void)state;
    for (int op = PNB__ADD; op <= PNB__DIV; op++) {
        double grad[6];
        begin_graph(PNB__F64, true);
        pnb__tensor *x = IN(6);
        pnb__tensor *inner = pnb__apply(PNB__AFFINE, x); /* its gradient is nobody's result */
        pnb__tensor *y = pnb__combine((pnb__binary)op, inner, inner);
        assert_int_equal(pnb__graph_plan(g, pnb__sum(y, PNB__ALL_AXES), NULL), PNB_OK);
        write_given();
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        assert_true(pnb__read_grad_f64(x, grad));
        for (size_t i = 0; i < 6; i++)
            expect_near(grad[i],
                        op <= PNB__SUB   ? of_sum[op == PNB__SUB]
                        : op == PNB__MUL ? 2 * numbers(x)[i]
                                         : 0,
                        i);
        end_graph();
    }
}

/* A share p of zeros, the others scaled by 1/(1-p); the stream decides which. */
static void test_dropout(void **state)
{
    enum { N = 2000 };
    static double first[N], second[N];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N), *y = pnb__dropout(x, 0.25, 7, 3);
    assert_ptr_equal(pnb__dropout(x, 0, 7, 3), x); /* nothing to drop: no node */
    memcpy(first, computed(y), sizeof first);
    size_t n_dropped = 0;
    for (size_t i = 0; i < N; i++) {
        n_dropped += first[i] == 0;
        if (first[i] != 0)
            expect_near(first[i], numbers(x)[i] / 0.75, i);
    }
    assert_in_range(n_dropped, 500 - 97, 500 + 97); /* five standard deviations */
    for (uint64_t stream = 1; stream < 3; stream++) {
        pnb__graph_set_stream(g, stream % 2);
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        pnb__read_f64(y, second);
        assert_int_equal(memcmp(first, second, sizeof first) == 0, stream % 2 == 0);
    }
    end_graph();
    for (int i = 0; i < 3; i++) {
        static const double bad[] = {1, -0.1, NAN};
        begin_graph(PNB__F64, false);
        expect_refused(pnb__dropout(IN(2), bad[i], 1, 1), PNB_ARG, "it must be in [0, 1)");
    }
}

/* The hypothesis by its definition: the log of the integral of N(.; 1)^2 N(.; 2) less the other way
 * round; as published the log-variances count twice and distances by exp(eps). */
static double hypothesis(double m1, double lv1, double m2, double lv2,
                         const pnb__search_inclusion_opts *o)
{
    double v1 = exp(lv1), v2 = exp(lv2), d = o->published ? (m1 - m2) * exp(o->eps / 2) : m1 - m2;
    /* a product of three Gaussians, two of them alike: precisions add */
    double inc12 = -0.5 * (2 * lv1 + lv2) - 0.5 * log(2 / v1 + 1 / v2) - d * d / (v1 + 2 * v2);
    double inc21 = -0.5 * (2 * lv2 + lv1) - 0.5 * log(2 / v2 + 1 / v1) - d * d / (v2 + 2 * v1);
    return inc12 - inc21 + (o->published ? 0.5 * (lv2 - lv1) : 0);
}

static void test_inclusion(void **state)
{
    static const pnb__search_inclusion_opts opts[] = {
        {false, 0}, {true, 0}, {true, -2}, {false, 5}};
    double want[6];
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(opts); k++) {
        begin_graph(PNB__F64, false);
        pnb__tensor *in[4] = {IN(2, 3), IN(2, 3), IN(2, 3), IN(2, 3)};
        for (size_t i = 0; i < 6; i++)
            want[i] = hypothesis(numbers(in[0])[i], numbers(in[1])[i], numbers(in[2])[i],
                                 numbers(in[3])[i], &opts[k]);
        pnb__tensor *h = pnb__inclusion(in[0], in[1], in[2], in[3], &opts[k]);
        expect_shape(h, SHAPE(2, 3));
        expect_values(h, want, 6);
    }
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(2, 3);
    assert_null(pnb__inclusion(x, x, x, NULL, opts));
    assert_int_equal(g->error.status, PNB_OK);
    expect_refused(pnb__inclusion(x, x, IN(3, 2), x, opts), PNB_SHAPE,
                   "inclusion: (3, 2) does not fit (2, 3)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_what_derivatives_read),
        cmocka_unit_test(test_broadcasting), cmocka_unit_test(test_one_tensor_twice),
        cmocka_unit_test(test_dropout),      cmocka_unit_test(test_inclusion)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
