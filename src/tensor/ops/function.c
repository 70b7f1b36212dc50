/* A function of one number, applied to every element, whose value and slope the caller computes:
 *   y = f(x),    dx = dy f'(x)
 * For what no kernel is worth: normalisers of densities, log Gamma, clamps and steps, on a few
 * numbers a row. Elements come to the host in doubles and go back, block by block, so that a value
 * is as exact in a graph of floats as its result can be. */
#include "tensor/graph_internal.h"

#include <math.h>

#define BLOCK 256

typedef struct function_attrs {
    pnb__function f;
} function_attrs;

pnb__tensor *pnb__apply_function(pnb__tensor *x, const pnb__function *f)
{
    function_attrs attrs = {*f};
    return x == NULL ? NULL : pnb__node(x->graph, PNB__OP_FUNCTION, &x, 1, &attrs, sizeof attrs);
}

/* Any shape -> the same. Backward reads x, not y: slopes of normalisers are functions of x. */
bool pnb__op_function_shape(pnb__tensor *t)
{
    pnb__same_shape(t, t->in[0]);
    t->saves_in = 1;
    return true;
}

/* n elements of device memory from number `at` on; false where the device says no. */
static bool read_block(const pnb__tensor *t, const void *device, size_t at, size_t n, double *out)
{
    pnb__graph *g = t->graph;
    const unsigned char *from = device;
    float f32[BLOCK];
    if (g->kernels.real == PNB__F64)
        return g->kernels.mem_read(g->ctx, out, from + at * sizeof *out, n * sizeof *out,
                                   &g->error) == PNB_OK;
    if (g->kernels.mem_read(g->ctx, f32, from + at * sizeof *f32, n * sizeof *f32, &g->error) !=
        PNB_OK)
        return false;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)f32[i];
    return true;
}

/* The same the other way; doubles are rounded to nearest where the graph is of floats. */
static bool write_block(const pnb__tensor *t, void *device, size_t at, size_t n,
                        const double *values)
{
    pnb__graph *g = t->graph;
    unsigned char *to = device;
    float f32[BLOCK];
    if (g->kernels.real == PNB__F64)
        return g->kernels.mem_write(g->ctx, to + at * sizeof *values, values, n * sizeof *values,
                                    &g->error) == PNB_OK;
    for (size_t i = 0; i < n; i++)
        f32[i] = (float)values[i];
    return g->kernels.mem_write(g->ctx, to + at * sizeof *f32, f32, n * sizeof *f32, &g->error) ==
           PNB_OK;
}

/* A value that is not finite ends the run: it says that the function has none there. */
bool pnb__op_function_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const function_attrs *a = t->attrs;
    double x[BLOCK];
    for (size_t at = 0; at < t->n; at += BLOCK) {
        size_t n = PNB_MIN((size_t)BLOCK, t->n - at);
        if (!read_block(t, pnb__data(t->in[0]), at, n, x))
            return false;
        for (size_t i = 0; i < n; i++) {
            x[i] = a->f.value(a->f.parameter, x[i]);
            if (!isfinite(x[i])) /* log 0, kappa where a normaliser overflows */
                return false;
        }
        if (!write_block(t, t->data, at, n, x))
            return false;
    }
    return true;
}

/* y = f(x):   dx (=|+=) dy f'(x), the product in doubles before it is rounded once */
void pnb__op_function_backward(pnb__tensor *t)
{
    const function_attrs *a = t->attrs;
    double x[BLOCK], dy[BLOCK], dx[BLOCK];
    for (size_t at = 0; at < t->n; at += BLOCK) {
        size_t n = PNB_MIN((size_t)BLOCK, t->n - at);
        bool is_read = read_block(t, pnb__data(t->in[0]), at, n, x) &&
                       read_block(t, t->grad, at, n, dy) &&
                       (!t->acc_in[0] || read_block(t, t->d_in[0], at, n, dx));
        for (size_t i = 0; is_read && i < n; i++)
            dx[i] = (t->acc_in[0] ? dx[i] : 0) + dy[i] * a->f.slope(a->f.parameter, x[i]);
        if (!is_read || !write_block(t, t->d_in[0], at, n, dx))
            return; /* the error stands in the graph */
    }
}
