/* unary (activations and simple functions), binary with numpy broadcasting, dropout, inclusion:
 * ops that look at one element, or at one element of each input, at a time. What an element's
 * derivative needs (input, output or neither) decides what the planner keeps for backward. */
#include "tensor/graph_internal.h"

typedef struct unary_attrs {
    pnb__unary op;
    double alpha, beta;
} unary_attrs;

typedef struct binary_attrs {
    pnb__binary op;
} binary_attrs;

typedef struct dropout_attrs {
    double p;
    uint64_t seed, stream;
} dropout_attrs;

static pnb__tensor *unary_node(pnb__unary op, pnb__tensor *x, double alpha, double beta)
{
    if (x == NULL)
        return NULL;
    unary_attrs attrs = {op, alpha, beta};
    return pnb__node(x->graph, PNB__OP_UNARY, &x, 1, &attrs, sizeof attrs);
}

pnb__tensor *pnb__apply(pnb__unary op, pnb__tensor *x)
{
    return unary_node(op, x, 1, 0);
}

pnb__tensor *pnb__affine(pnb__tensor *x, double alpha, double beta)
{
    return unary_node(PNB__AFFINE, x, alpha, beta);
}

bool pnb__unary_bwd_reads_output(pnb__unary op)
{
    return op == PNB__EXP || op == PNB__SQRT || op == PNB__RECIP || op == PNB__TANH ||
           op == PNB__SIGMOID;
}

bool pnb__op_unary_shape(pnb__tensor *t)
{
    const unary_attrs *a = t->attrs;
    if (a->op < 0 || a->op >= PNB__N_UNARY)
        return pnb__node_fail(t->graph, PNB_ARG, "unary: no function number %d", (int)a->op);
    pnb__same_shape(t, t->in[0]);
    t->inplace_in = 0;
    t->saves_out = pnb__unary_bwd_reads_output(a->op);
    t->saves_in = !t->saves_out && a->op != PNB__AFFINE ? 1U : 0U;
    t->recompute = t->graph->with_grad && !t->saves_out;
    t->recompute_in = 1;
    return true;
}

bool pnb__op_unary_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const unary_attrs *a = t->attrs;
    t->graph->kernels.unary(t->graph->ctx, a->op, t->n, a->alpha, a->beta, pnb__data(t->in[0]),
                            t->data);
    return true;
}

void pnb__op_unary_backward(pnb__tensor *t)
{
    const unary_attrs *a = t->attrs;
    t->graph->kernels.unary_bwd(t->graph->ctx, a->op, t->n, a->alpha,
                                t->saves_in ? pnb__data(t->in[0]) : NULL,
                                t->saves_out ? t->data : NULL, t->grad, t->d_in[0], t->acc_in[0]);
}

pnb__tensor *pnb__combine(pnb__binary op, pnb__tensor *a, pnb__tensor *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    binary_attrs attrs = {op};
    return pnb__node(a->graph, PNB__OP_BINARY, (pnb__tensor *[]){a, b}, 2, &attrs, sizeof attrs);
}

static size_t dim_from_end(const pnb__tensor *t, int from_end)
{
    return from_end < t->n_dims ? t->shape[t->n_dims - 1 - from_end] : 1;
}

bool pnb__op_binary_shape(pnb__tensor *t)
{
    const pnb__tensor *a = t->in[0], *b = t->in[1];
    const binary_attrs *attrs = t->attrs;
    size_t shape[PNB__DIMS];
    int n_dims = PNB_MAX(a->n_dims, b->n_dims);
    char ta[96], tb[96];
    for (int i = 0; i < n_dims; i++) {
        size_t da = dim_from_end(a, i), db = dim_from_end(b, i);
        if (da != db && da != 1 && db != 1)
            return pnb__node_fail(t->graph, PNB_SHAPE, "binary: %s does not broadcast with %s",
                                  pnb__shape_text(a, ta), pnb__shape_text(b, tb));
        shape[n_dims - 1 - i] = da == 1 ? db : da;
    }
    pnb__set_shape(t, n_dims, shape);
    t->inplace_in = a->n == t->n ? 0 : b->n == t->n ? 1 : -1;
    bool product = attrs->op == PNB__MUL || attrs->op == PNB__DIV;
    t->saves_in = product ? 3U : 0U;
    if ((attrs->op == PNB__ADD || attrs->op == PNB__SUB) && a->n == t->n)
        t->steals = 0;
    else if (attrs->op == PNB__ADD && b->n == t->n)
        t->steals = 1;
    return true;
}

/* Strides of an input seen with the output's dims, 0 where it repeats. */
static void broadcast_strides(const pnb__tensor *in, size_t strides[PNB__DIMS])
{
    size_t step = 1;
    for (int i = 0; i < PNB__DIMS; i++) {
        size_t d = dim_from_end(in, i);
        strides[PNB__DIMS - 1 - i] = d == 1 ? 0 : step;
        step *= d;
    }
}

static void binary_args(const pnb__tensor *t, pnb__binary_args *args)
{
    *args = (pnb__binary_args){.op = ((const binary_attrs *)t->attrs)->op,
                               .a = pnb__data(t->in[0]),
                               .b = pnb__data(t->in[1]),
                               .y = t->data};
    for (int i = 0; i < PNB__DIMS; i++)
        args->dims[PNB__DIMS - 1 - i] = dim_from_end(t, i);
    broadcast_strides(t->in[0], args->stride_a);
    broadcast_strides(t->in[1], args->stride_b);
}

bool pnb__op_binary_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__binary_args args;
    binary_args(t, &args);
    t->graph->kernels.binary(t->graph->ctx, &args);
    return true;
}

void pnb__op_binary_backward(pnb__tensor *t)
{
    pnb__binary_args args;
    binary_args(t, &args);
    args.dy = t->grad;
    for (int i = 0; i < 2; i++) { /* a taken-over gradient (same pointer) is already right */
        if (t->d_in[i] == NULL || t->d_in[i] == t->grad)
            continue;
        args.which = i;
        args.d = t->d_in[i];
        args.accumulate = t->acc_in[i];
        t->graph->kernels.binary_bwd(t->graph->ctx, &args);
    }
    if (t->d_in[0] != NULL && t->d_in[0] == t->grad && t->d_in[1] == t->grad) /* x + x, x - x */
        args.op == PNB__ADD
            ? t->graph->kernels.unary(t->graph->ctx, PNB__AFFINE, t->n, 2, 0, t->grad, t->grad)
            : t->graph->kernels.fill(t->graph->ctx, t->n, 0, t->grad);
}

pnb__tensor *pnb__dropout(pnb__tensor *x, double p, uint64_t seed, uint64_t stream)
{
    if (x == NULL || p == 0)
        return x;
    dropout_attrs attrs = {p, seed, stream};
    return pnb__node(x->graph, PNB__OP_DROPOUT, &x, 1, &attrs, sizeof attrs);
}

bool pnb__op_dropout_shape(pnb__tensor *t)
{
    const dropout_attrs *a = t->attrs;
    if (!(a->p >= 0 && a->p < 1))
        return pnb__node_fail(t->graph, PNB_ARG, "dropout: p is %g, it must be in [0, 1)", a->p);
    pnb__same_shape(t, t->in[0]);
    return true;
}

bool pnb__op_dropout_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const dropout_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    g->kernels.dropout(g->ctx, t->n, a->p, a->seed, a->stream ^ (g->stream << 20),
                       pnb__data(t->in[0]), t->data, false);
    return true;
}

void pnb__op_dropout_backward(pnb__tensor *t)
{
    const dropout_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    g->kernels.dropout(g->ctx, t->n, a->p, a->seed, a->stream ^ (g->stream << 20), t->grad,
                       t->d_in[0], t->acc_in[0]);
}

pnb__tensor *pnb__inclusion(pnb__tensor *mean1, pnb__tensor *log_var1, pnb__tensor *mean2,
                            pnb__tensor *log_var2, const pnb__search_inclusion_opts *opts)
{
    if (mean1 == NULL || log_var1 == NULL || mean2 == NULL || log_var2 == NULL)
        return NULL;
    pnb__tensor *in[4] = {mean1, log_var1, mean2, log_var2};
    return pnb__node(mean1->graph, PNB__OP_INCLUSION, in, 4, opts, sizeof *opts);
}

bool pnb__op_inclusion_shape(pnb__tensor *t)
{
    char ta[96], tb[96];
    for (int i = 1; i < 4; i++)
        if (t->in[i]->n != t->in[0]->n || pnb__width(t->in[i]) != pnb__width(t->in[0]))
            return pnb__node_fail(t->graph, PNB_SHAPE, "inclusion: %s does not fit %s",
                                  pnb__shape_text(t->in[i], ta), pnb__shape_text(t->in[0], tb));
    pnb__same_shape(t, t->in[0]);
    t->saves_in = 15;
    return true;
}

static void inclusion_args(const pnb__tensor *t, pnb__inclusion_args *a)
{
    const pnb__search_inclusion_opts *o = t->attrs;
    *a = (pnb__inclusion_args){.n = t->n,
                               .published = o->published,
                               .eps = o->eps,
                               .m1 = pnb__data(t->in[0]),
                               .lv1 = pnb__data(t->in[1]),
                               .m2 = pnb__data(t->in[2]),
                               .lv2 = pnb__data(t->in[3]),
                               .h = t->data};
}

bool pnb__op_inclusion_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__inclusion_args a;
    inclusion_args(t, &a);
    t->graph->kernels.inclusion(t->graph->ctx, &a);
    return true;
}

void pnb__op_inclusion_backward(pnb__tensor *t)
{
    pnb__inclusion_args a;
    inclusion_args(t, &a);
    a.dh = t->grad;
    a.dm1 = t->d_in[0];
    a.dlv1 = t->d_in[1];
    a.dm2 = t->d_in[2];
    a.dlv2 = t->d_in[3];
    for (int i = 0; i < 4; i++)
        a.accumulate[i] = t->acc_in[i];
    t->graph->kernels.inclusion_bwd(t->graph->ctx, &a);
}
