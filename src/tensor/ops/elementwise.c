/* unary (activations and simple functions), binary with numpy broadcasting, dropout, inclusion:
 * ops that look at one element, or at one element of each input, at a time. What an element's
 * derivative needs (input, output or neither) decides what the planner keeps for backward. */
#include "tensor/graph_internal.h"

/* alpha and beta: those of AFFINE, alpha x + beta. */
typedef struct unary_attrs {
    pnb__unary op;
    double alpha, beta;
} unary_attrs;

typedef struct binary_attrs {
    pnb__binary op;
} binary_attrs;

/* p: the share that is dropped; stream tells the dropouts of one graph apart. */
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

/* exp' = y, sqrt' = 1/(2y), (1/x)' = -y^2, tanh' = 1 - y^2, s' = y (1 - y): the result is enough,
 * and it is nearly always there for the next op anyway. Of the others f'(x) wants x. */
bool pnb__unary_bwd_reads_output(pnb__unary op)
{
    return op == PNB__EXP || op == PNB__SQRT || op == PNB__RECIP || op == PNB__TANH ||
           op == PNB__SIGMOID;
}

/* y = f(x), any shape. What backward reads is kept: y or x, and neither where f' is a constant. A y
 * that it does not read is cheaper made again than stored, for whoever else wants it. */
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

/* y = f(x):  dx = f'(x) dy, with f' from whichever of x and y was kept. */
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

/* Shapes are aligned at their ends; missing outer dimensions count as 1 (numpy's broadcasting). */
static size_t dim_from_end(const pnb__tensor *t, int from_end)
{
    return from_end < t->n_dims ? t->shape[t->n_dims - 1 - from_end] : 1;
}

/* y = a o b over the broadcast shape. Sums need no values for backward. The gradient of a + b with
 * respect to an input of y's shape is dy itself: that input takes dy's buffer over (steals). */
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
    size_t step = 1; /* of the input itself, which is packed */
    for (int i = 0; i < PNB__DIMS; i++) {
        size_t d = dim_from_end(in, i);
        strides[PNB__DIMS - 1 - i] = d == 1 ? 0 : step;
        step *= d;
    }
}

/* Up to PNB__DIMS dimensions, padded with 1 on the outside; y is contiguous. */
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

/* y[i] = a[i, 0 along repeated axes] o b[the same] */
bool pnb__op_binary_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__binary_args args;
    binary_args(t, &args);
    t->graph->kernels.binary(t->graph->ctx, &args);
    return true;
}

/* y = a + b:  da = dy,        db = dy
 * y = a - b:  da = dy,        db = -dy
 * y = a b:    da = b dy,      db = a dy
 * y = a / b:  da = dy / b,    db = -a dy / b^2
 * summed over every axis along which the input was repeated. */
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

/* ---- dropout (Srivastava et al. 2014), scaled while training as torch does ---- */
pnb__tensor *pnb__dropout(pnb__tensor *x, double p, uint64_t seed, uint64_t stream)
{
    if (x == NULL || p == 0)
        return x;
    dropout_attrs attrs = {p, seed, stream};
    return pnb__node(x->graph, PNB__OP_DROPOUT, &x, 1, &attrs, sizeof attrs);
}

/* Any shape; p = 0 makes no node at all, p = 1 would leave nothing. */
bool pnb__op_dropout_shape(pnb__tensor *t)
{
    const dropout_attrs *a = t->attrs;
    if (!(a->p >= 0 && a->p < 1))
        return pnb__node_fail(t->graph, PNB_ARG, "dropout: p is %g, it must be in [0, 1)", a->p);
    pnb__same_shape(t, t->in[0]);
    return true;
}

/* y_i = k_i x_i / (1 - p), k_i in {0, 1} from Philox(seed, stream, i). The step's number is mixed
 * into the stream, so that a mask is a function of (seed, step, place) and no mask is kept. */
bool pnb__op_dropout_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const dropout_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    g->kernels.dropout(g->ctx, t->n, a->p, a->seed, a->stream ^ (g->stream << 20),
                       pnb__data(t->in[0]), t->data, false);
    return true;
}

/* y_i = k_i x_i / (1 - p):  dx_i = k_i dy_i / (1 - p): the same call on dy draws the same k. */
void pnb__op_dropout_backward(pnb__tensor *t)
{
    const dropout_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    g->kernels.dropout(g->ctx, t->n, a->p, a->seed, a->stream ^ (g->stream << 20), t->grad,
                       t->d_in[0], t->acc_in[0]);
}

/* ---- inclusion (ProLIP Eq. 3) ---- */
pnb__tensor *pnb__inclusion(pnb__tensor *mean1, pnb__tensor *log_var1, pnb__tensor *mean2,
                            pnb__tensor *log_var2, const pnb__search_inclusion_opts *opts)
{
    if (mean1 == NULL || log_var1 == NULL || mean2 == NULL || log_var2 == NULL)
        return NULL;
    pnb__tensor *in[4] = {mean1, log_var1, mean2, log_var2};
    return pnb__node(mean1->graph, PNB__OP_INCLUSION, in, 4, opts, sizeof *opts);
}

/* Four inputs of one shape (..., D) -> h of that shape; the caller sums over D. Fused because the
 * parts overflow on their own: see kernels/ref/inclusion.inc. */
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

/* With S12 = v1 + 2 v2, S21 = v2 + 2 v1, d = m1 - m2, v = exp(lv):
 *   h = c (lv2 - lv1) - 1/2 log(S12 / S21) - e d^2 (1 / S12 - 1 / S21)
 * c = 1/2, e = 1 is the integral of Eq. 3; ProLIP's published code counts the log-variances twice
 * (c = 1) and has e = exp(eps): `published`, which docs/numerics.md tells apart. */
bool pnb__op_inclusion_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__inclusion_args a;
    inclusion_args(t, &a);
    t->graph->kernels.inclusion(t->graph->ctx, &a);
    return true;
}

/* h = c (lv2 - lv1) - 1/2 log(S12 / S21) - e d^2 (1 / S12 - 1 / S21):
 *   dh/dm1 = -dh/dm2 = -2 e d (1 / S12 - 1 / S21)
 *   dh/dlv1 = -c - 1/2 (v1 / S12 - 2 v1 / S21) + e d^2 (v1 / S12^2 - 2 v1 / S21^2)
 *   dh/dlv2 =  c - 1/2 (2 v2 / S12 - v2 / S21) + e d^2 (2 v2 / S12^2 - v2 / S21^2) */
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
