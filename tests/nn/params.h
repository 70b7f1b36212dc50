/* Weights outside a graph and a check of their gradients: for tests of the structs of nn, which
 * hold weights by pointer. Everything is in doubles. */
#ifndef PNB_TESTS_NN_PARAMS_H
#define PNB_TESTS_NN_PARAMS_H

#include "tests/tensor/graphs.h"

enum { MAX_PARAMS = 16 };
static pnb__param params[MAX_PARAMS];
static double param_values[MAX_PARAMS][MAX_VALUES];
static int n_params;

/* A weight of numbers in (-1, 1) that differ from weight to weight. */
UNUSED static pnb__param *param_of(int n_dims, const size_t *shape)
{
    pnb__param *p = &params[n_params];
    pnb__rng rng;
    pnb__rng_init(&rng, 23, (uint64_t)n_params);
    assert_true(n_params < MAX_PARAMS);
    *p = (pnb__param){.name = "weight", .n_dims = n_dims, .n = 1, .trainable = true};
    for (int i = 0; i < n_dims; i++) {
        p->shape[i] = shape[i];
        p->n *= shape[i];
    }
    assert_true(p->n <= MAX_VALUES);
    for (size_t i = 0; i < p->n; i++)
        param_values[n_params][i] = 2 * pnb__rng_uniform(&rng) - 1;
    p->data = param_values[n_params++];
    return p;
}
#define PARAM(...) param_of(SHAPE(__VA_ARGS__))

UNUSED static double *values_of(const pnb__param *p)
{
    return param_values[p - params];
}

UNUSED static double loss_now(const pnb__tensor *loss)
{
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    return pnb__read_scalar(loss);
}

/* Every element of a weight or an input against central differences; a weight's value is where the
 * graph reads it, an input's is written. */
UNUSED static void check_slopes(const pnb__tensor *loss, pnb__tensor *t, double *values)
{
    static double grad[MAX_VALUES];
    const double step = 1e-5;
    loss_now(loss);
    assert_true(pnb__read_grad_f64(t, grad));
    for (size_t i = 0; i < pnb__n(t); i++) {
        double at = values[i], up, down;
        values[i] = at + step;
        pnb__write_f64(t, values);
        up = loss_now(loss);
        values[i] = at - step;
        pnb__write_f64(t, values);
        down = loss_now(loss);
        values[i] = at;
        pnb__write_f64(t, values);
        double want = (up - down) / (2 * step);
        if (!(fabs(grad[i] - want) <= 1e-8 * (1 + fabs(want))))
            fail_msg("gradient [%zu] is %.12g, differences give %.12g", i, grad[i], want);
    }
}

/* out . random numbers as the loss: plans g, then checks every weight made so far and every real
 * input. Ends the graph and forgets the weights. */
UNUSED static void check_gradients(pnb__tensor *out)
{
    pnb__tensor *weights = pnb__input(g, PNB__REAL, pnb__n_dims(out), out->shape);
    pnb__tensor *loss = pnb__sum(pnb__mul(out, weights), PNB__ALL_AXES);
    pnb_error err = PNB_ERROR_INIT;
    double projection[MAX_VALUES];
    pnb__rng rng;
    pnb__rng_init(&rng, 29, 1);
    for (size_t i = 0; i < pnb__n(out); i++)
        projection[i] = pnb__rng_normal(&rng);
    if (pnb__graph_plan(g, loss, &err) != PNB_OK)
        fail_msg("%s", err.text);
    pnb__write_f64(weights, projection);
    write_given();
    for (int i = 0; i < n_params; i++)
        check_slopes(loss, pnb__param_tensor(g, &params[i]), param_values[i]);
    for (int i = 0; i < n_given; i++)
        if (given[i].t->kind == PNB__REAL)
            check_slopes(loss, given[i].t, given[i].values);
    end_graph();
    n_params = 0;
}

#endif
