/* Running: values of both types to the device and back, gradients of views, what stops a run. */
#include "tests/tensor/graphs.h"

/* Lengths around the block that conversions go through. */
static const size_t LENGTHS[] = {1, 511, 512, 513, 1025};

/* f32 and f64 on the host for either type of graph: exact where the graph holds what was written,
 * rounded once where it does not. */
static void test_conversions(void **state)
{
    (void)state;
    for (int real = PNB__F32; real <= PNB__F64; real++)
        for (size_t k = 0; k < PNB_COUNT(LENGTHS); k++) {
            size_t n = LENGTHS[k];
            double f64[1025], back64[1026];
            float f32[1025], back32[1026];
            for (size_t i = 0; i < n; i++) {
                f64[i] = 1.0 / (3.0 + (double)i);
                f32[i] = (float)f64[i];
            }
            back64[n] = back32[n] = -7; /* nothing is written behind the end */
            begin_graph((pnb__real)real, false);
            pnb__tensor *x = pnb__input(g, PNB__REAL, SHAPE(n));
            pnb__keep(x);
            assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
            pnb__write_f64(x, f64);
            pnb__read_f64(x, back64);
            pnb__read_f32(x, back32);
            for (size_t i = 0; i < n; i++) {
                assert_true(back64[i] == (real == PNB__F64 ? f64[i] : (double)f32[i]));
                assert_true(back32[i] == f32[i]);
            }
            assert_true(pnb__read_scalar(x) == back64[0]);
            pnb__write_f32(x, f32);
            pnb__read_f64(x, back64);
            for (size_t i = 0; i < n; i++)
                assert_true(back64[i] == (double)f32[i]);
            assert_true(back64[n] == -7 && back32[n] == -7);
            end_graph();
        }
}

static void test_integers(void **state)
{
    static const int32_t values[4] = {INT32_MIN, -1, 0, INT32_MAX};
    int32_t back[2];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = pnb__input(g, PNB__INT32, SHAPE(2, 2));
    pnb__tensor *row = pnb__slice(x, 0, 1, 1);
    pnb__keep(row);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    pnb__write_i32(x, values);
    pnb__read_i32(row, back);
    assert_memory_equal(back, values + 2, sizeof back);
    end_graph();
}

/* A view of a view begins where both say; of a weight too, whose memory is not the graph's. */
static void test_views(void **state)
{
    double of_weight[12], got[4], grad[4];
    pnb__param p = {"w", 2, {6, 2}, 12, of_weight, .trainable = true};
    (void)state;
    for (size_t i = 0; i < 12; i++)
        of_weight[i] = (double)i * 0.5;
    begin_graph(PNB__F64, true);
    pnb__tensor *w = pnb__param_tensor(g, &p), *rows = pnb__slice(w, 0, 1, 4);
    pnb__tensor *part = pnb__slice(rows, 0, 2, 2); /* elements 6 to 9 */
    pnb__tensor *x = IN(2, 2), *loss = pnb__sum(pnb__mul(pnb__mul(part, part), x), PNB__ALL_AXES);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    assert_ptr_equal(pnb__data(part), of_weight + 6);
    write_given();
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    pnb__read_f64(part, got);
    assert_memory_equal(got, of_weight + 6, sizeof got);
    assert_true(pnb__read_grad_f64(part, grad));
    for (size_t i = 0; i < 4; i++)
        expect_near(grad[i], 2 * of_weight[6 + i] * numbers(x)[i], i);
    assert_ptr_equal(p.grad, w->grad);
    pnb__tensor *constant = g->nodes[0]; /* the weight itself has a gradient, all of it */
    assert_ptr_equal(constant, w);
    double whole[12];
    assert_true(pnb__read_grad_f64(w, whole));
    assert_true(whole[5] == 0 && whole[6] == grad[0] && whole[10] == 0);
    end_graph();
}

static void test_no_gradient(void **state)
{
    double grad[2];
    (void)state;
    begin_graph(PNB__F64, true);
    pnb__tensor *x = IN(2), *fixed = pnb__input(g, PNB__REAL, SHAPE(2));
    pnb__tensor *loss = pnb__sum(pnb__mul(x, fixed), PNB__ALL_AXES);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    write_given();
    pnb__write_f64(fixed, (const double[]){3, 5});
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_false(pnb__read_grad_f64(fixed, grad));
    assert_true(pnb__read_grad_f64(x, grad));
    assert_true(grad[0] == 3 && grad[1] == 5);
    end_graph();
}

/* Not before planning; an op that cannot say names itself and its place. */
static void test_runs_that_fail(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *a = IN(2, 2);
    assert_int_equal(pnb__graph_run(g, &err), PNB_ARG);
    assert_string_equal(err.text, "the graph has not been planned");
    pnb_error_reset(&err);
    pnb__tensor *y = pnb__affine(pnb__cholesky(a), 2, 1);
    pnb__keep(y);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    pnb__write_f64(a, (const double[]){1, 2, 2, 1});
    assert_int_equal(pnb__graph_run(g, &err), PNB_NUMERIC);
    assert_string_equal(err.text, "cholesky (node 1): the input has no finite result");
    pnb__write_f64(a, (const double[]){4, 0, 0, 9}); /* the next run is a new one */
    double got[4];
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    pnb__read_f64(y, got);
    assert_memory_equal(got, ((const double[]){5, 1, 1, 7}), sizeof got);
    end_graph();
}

/* The gradient of the loss is 1 in every run, and nothing is left of the run before: gradients into
 * parts of an input begin at zero again. */
static void test_runs_start_afresh(void **state)
{
    double first[3], again[3];
    (void)state;
    begin_graph(PNB__F64, true);
    pnb__tensor *x = IN(3), *part = pnb__slice(x, 0, 1, 1);
    pnb__tensor *loss = pnb__sum(pnb__mul(pnb__apply(PNB__EXP, part), part), PNB__ALL_AXES);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    for (int run = 0; run < 3; run++) {
        write_given();
        assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
        assert_true(pnb__read_grad_f64(x, run == 0 ? first : again));
    }
    assert_memory_equal(first, again, sizeof first);
    double at = numbers(x)[1];
    expect_near(first[1], exp(at) * (at + 1), 1);
    assert_true(first[0] == 0 && first[2] == 0);
    end_graph();
}

/* ---- a device that fails ---- */

static pnb_status no_write(const pnb_ctx *c, void *device, const void *host, size_t bytes,
                           pnb_error *err)
{
    (void)c;
    (void)device;
    (void)host;
    (void)bytes;
    return pnb__fail(err, PNB_IO, "nothing can be written");
}

static pnb_status no_read(const pnb_ctx *c, void *host, const void *device, size_t bytes,
                          pnb_error *err)
{
    (void)c;
    (void)host;
    (void)device;
    (void)bytes;
    return pnb__fail(err, PNB_IO, "nothing can be read");
}

static pnb_status no_zero(const pnb_ctx *c, void *device, size_t bytes, pnb_error *err)
{
    (void)c;
    (void)device;
    (void)bytes;
    return pnb__fail(err, PNB_IO, "nothing can be zeroed");
}

/* The first failure is kept until somebody asks: a run whose inputs are not there, a run that fails
 * inside, what was read. Then it is forgotten. */
static void test_failures_stay_until_asked_for(void **state)
{
    double values[3] = {0};
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    begin_graph(PNB__F32, true);
    pnb__tensor *x = IN(3), *part = pnb__slice(x, 0, 1, 1); /* its gradient begins at zeros */
    assert_int_equal(pnb__graph_plan(g, pnb__sum(part, PNB__ALL_AXES), NULL), PNB_OK);
    const pnb__kernels good = g->kernels;
    g->kernels.mem_write = no_write;
    g->kernels.mem_read = no_read;
    pnb__write_f64(x, values);
    pnb__read_f64(x, values);
    assert_int_equal(pnb__graph_run(g, &err), PNB_IO);
    assert_string_equal(err.text, "nothing can be written"); /* the first */
    assert_int_equal(pnb__graph_check(g, &err), PNB_OK);
    pnb_error_reset(&err);
    g->kernels = good;
    pnb__write_f64(x, values);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    g->kernels.mem_zero = no_zero;
    assert_int_equal(pnb__graph_run(g, &err), PNB_IO);
    assert_string_equal(err.text, "nothing can be zeroed");
    pnb_error_reset(&err);
    g->kernels = good;
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    for (int way = 0; way < 4; way++) {
        float f32[3];
        g->kernels.mem_read = no_read;
        if (way == 0)
            pnb__read_f64(x, values);
        else if (way == 1)
            pnb__read_f32(x, f32);
        else if (way == 2)
            assert_true(pnb__read_scalar(x) == 0);
        else
            pnb__read_grad_f64(x, values);
        g->kernels = good;
        assert_int_equal(pnb__graph_check(g, &err), PNB_IO);
        assert_string_equal(err.text, "nothing can be read");
        assert_int_equal(pnb__graph_check(g, NULL), PNB_OK);
        pnb_error_reset(&err);
    }
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversions),
                                       cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_views),
                                       cmocka_unit_test(test_no_gradient),
                                       cmocka_unit_test(test_runs_that_fail),
                                       cmocka_unit_test(test_runs_start_afresh),
                                       cmocka_unit_test(test_failures_stay_until_asked_for)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
