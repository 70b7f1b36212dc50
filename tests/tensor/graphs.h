/* Small graphs: inputs get numbers of their own, one tensor is computed and compared with what
 * plain loops in double say; refusals by status and words. */
#ifndef PNB_TESTS_TENSOR_GRAPHS_H
#define PNB_TESTS_TENSOR_GRAPHS_H

#include "tensor/graph_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNUSED __attribute__((unused)) /* not every test needs all of this */

enum { MAX_GIVEN = 8, MAX_VALUES = 2048 };

static pnb_ctx *ctx;
static pnb__graph *g; /* the one being built; one at a time */

/* Inputs of g and what is written to them. */
static struct {
    pnb__tensor *t;
    double values[MAX_VALUES];
} given[MAX_GIVEN];
static int n_given;

UNUSED static int open_ctx(void **state)
{
    (void)state;
    pnb_ctx_opts opts = {.n_threads = 2, .device = PNB_DEVICE_CPU};
    return pnb_ctx_create(&ctx, &opts, NULL) == PNB_OK ? 0 : -1;
}

UNUSED static int close_ctx(void **state)
{
    (void)state;
    pnb_ctx_free(ctx);
    return 0;
}

UNUSED static void begin_graph(pnb__real real, bool with_grad)
{
    assert_int_equal(pnb__graph_create(&g, ctx, real, with_grad, NULL), PNB_OK);
    n_given = 0;
}

UNUSED static void end_graph(void)
{
    pnb__graph_free(g);
    g = NULL;
}

#define SHAPE(...)                                                                                 \
    (int)(sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)), (size_t[])                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* An input of numbers in (-1.5, 1.5) that differ from place to place and from input to input. */
UNUSED static pnb__tensor *real_in(int n_dims, const size_t *shape)
{
    pnb__tensor *t = g->with_grad ? pnb__input_with_grad(g, n_dims, shape)
                                  : pnb__input(g, PNB__REAL, n_dims, shape);
    pnb__rng rng;
    pnb__rng_init(&rng, 17, (uint64_t)n_given);
    assert_true(t != NULL && pnb__n(t) <= MAX_VALUES && n_given < MAX_GIVEN);
    for (size_t i = 0; i < pnb__n(t); i++)
        given[n_given].values[i] = 3 * pnb__rng_uniform(&rng) - 1.5;
    given[n_given++].t = t;
    return t;
}
#define IN(...) real_in(SHAPE(__VA_ARGS__))

/* Integers that the caller gives. */
UNUSED static pnb__tensor *int_in(const int32_t *values, int n_dims, const size_t *shape)
{
    pnb__tensor *t = pnb__input(g, PNB__INT32, n_dims, shape);
    assert_true(t != NULL && n_given < MAX_GIVEN);
    for (size_t i = 0; i < pnb__n(t); i++)
        given[n_given].values[i] = values[i];
    given[n_given++].t = t;
    return t;
}

/* The numbers of input t, in the order of its elements. */
UNUSED static double *numbers(const pnb__tensor *t)
{
    for (int i = 0; i < n_given; i++)
        if (given[i].t == t)
            return given[i].values;
    fail_msg("not an input");
    return NULL;
}

UNUSED static void write_given(void)
{
    for (int i = 0; i < n_given; i++) {
        int32_t ints[MAX_VALUES];
        for (size_t k = 0; k < pnb__n(given[i].t); k++)
            ints[k] = (int32_t)given[i].values[k];
        if (given[i].t->kind == PNB__INT32)
            pnb__write_i32(given[i].t, ints);
        else
            pnb__write_f64(given[i].t, given[i].values);
    }
}

/* Plans g for t alone and runs it: its values, which hold until the next call. */
UNUSED static const double *computed(pnb__tensor *t)
{
    static double values[MAX_VALUES];
    pnb_error err = PNB_ERROR_INIT;
    pnb__keep(t);
    if (pnb__graph_plan(g, NULL, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_true(t != NULL && pnb__n(t) <= MAX_VALUES);
    write_given();
    assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
    pnb__read_f64(t, values);
    return values;
}

UNUSED static void expect_shape(const pnb__tensor *t, int n_dims, const size_t *shape)
{
    assert_non_null(t);
    assert_int_equal(pnb__n_dims(t), n_dims);
    for (int i = 0; i < n_dims; i++)
        assert_int_equal(pnb__dim(t, i), shape[i]);
}

UNUSED static void expect_near(double got, double want, size_t at)
{
    if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want))))
        fail_msg("element %zu is %.17g, not %.17g", at, got, want);
}

/* t computed is n numbers `want`; ends the graph. */
UNUSED static void expect_values(pnb__tensor *t, const double *want, size_t n)
{
    const double *got = computed(t);
    assert_int_equal(pnb__n(t), n);
    for (size_t i = 0; i < n; i++)
        expect_near(got[i], want[i], i);
    end_graph();
}

/* What was to be built is NULL, and planning says why; ends the graph. */
UNUSED static void expect_refused(const pnb__tensor *bad, pnb_status status, const char *words)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_null(bad);
    assert_int_equal(pnb__graph_plan(g, NULL, &err), status);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    end_graph();
}

/* EXPRESSION builds in g what cannot be. */
#define REFUSED(EXPRESSION, WORDS)                                                                 \
    do {                                                                                           \
        begin_graph(PNB__F64, false);                                                              \
        const pnb__tensor *bad = (EXPRESSION);                                                     \
        expect_refused(bad, PNB_SHAPE, WORDS);                                                     \
    } while (0)

#endif
