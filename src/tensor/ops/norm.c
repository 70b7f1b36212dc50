/* layernorm, l2_normalize, softmax, log_softmax, cross_entropy: ops over the last axis.
 * LayerNorm: Ba et al. 2016, biased variance, eps inside the root, as torch; its output is dropped
 * after forward and made again for backward, which needs its input anyway. */
#include "tensor/graph_internal.h"

typedef struct eps_attrs {
    double eps;
} eps_attrs;

/* log: log_softmax. */
typedef struct softmax_attrs {
    bool log;
} softmax_attrs;

/* ---- layernorm ---- */
pnb__tensor *pnb__layernorm(pnb__tensor *x, pnb__tensor *w, pnb__tensor *b, double eps)
{
    if (x == NULL)
        return NULL;
    eps_attrs attrs = {eps};
    return pnb__node(x->graph, PNB__OP_LAYERNORM, (pnb__tensor *[]){x, w, b}, 3, &attrs,
                     sizeof attrs);
}

/* x (R..., C), w (C) and b (C) or none -> (R..., C). Mean and 1/std of every row are kept for
 * backward, 2 numbers for C; y is not, since x, w and b give it again. */
bool pnb__op_layernorm_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0];
    char tx[96];
    for (int i = 1; i < 3; i++)
        if (t->in[i] != NULL && (t->in[i]->n_dims != 1 || t->in[i]->n != pnb__width(x)))
            return pnb__node_fail(t->graph, PNB_SHAPE, "layernorm: %zu weights for x %s",
                                  t->in[i]->n, pnb__shape_text(x, tx));
    pnb__same_shape(t, x);
    t->inplace_in = 0;
    if (!t->graph->with_grad)
        return true;
    t->saves_in = 3; /* x and w */
    t->recompute = true;
    t->recompute_in = 7;
    t->aux_bytes[0] = t->aux_bytes[1] = pnb__rows(x) * pnb__elem_bytes(t);
    t->work_bwd_bytes =
        t->graph->kernels.layernorm_work(t->graph->ctx, pnb__rows(x), pnb__width(x));
    return true;
}

static void layernorm_args(const pnb__tensor *t, pnb__layernorm_args *a)
{
    *a = (pnb__layernorm_args){.rows = pnb__rows(t),
                               .width = pnb__width(t),
                               .eps = ((const eps_attrs *)t->attrs)->eps,
                               .x = pnb__data(t->in[0]),
                               .w = t->in[1] ? pnb__data(t->in[1]) : NULL,
                               .b = t->in[2] ? pnb__data(t->in[2]) : NULL,
                               .y = t->data,
                               .mean = t->aux[0],
                               .rstd = t->aux[1],
                               .halves = t->is_half};
}

/* n = (x - mean(x)) r,  r = (mean((x - mean(x))^2) + eps)^-1/2,  y = w n + b; means over a row */
bool pnb__op_layernorm_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__layernorm_args a;
    layernorm_args(t, &a);
    t->graph->kernels.layernorm(t->graph->ctx, &a);
    return true;
}

/* y = w n + b:          dw = sum_rows dy n,   db = sum_rows dy,   dn = w dy
 * n = (x - mean(x)) r:  dx = r (dn - mean(dn) - n mean(dn n))
 * The two means are what moving x does to mean(x) and to r. */
void pnb__op_layernorm_backward(pnb__tensor *t)
{
    pnb__layernorm_args a;
    layernorm_args(t, &a);
    a.y = NULL;
    a.dy = t->grad;
    a.dx = t->d_in[0];
    a.dw = t->d_in[1];
    a.db = t->d_in[2];
    a.accumulate_x = t->acc_in[0];
    a.accumulate_w = t->acc_in[1] || t->acc_in[2];
    if (a.accumulate_w) /* the kernel has one flag: a fresh gradient starts from zero */
        for (int i = 1; i < 3; i++)
            if (t->d_in[i] != NULL && !t->acc_in[i])
                pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
    a.work = t->work_bwd;
    t->graph->kernels.layernorm_bwd(t->graph->ctx, &a);
}

/* ---- l2_normalize: unit rows ---- */
pnb__tensor *pnb__l2_normalize(pnb__tensor *x, double eps)
{
    if (x == NULL)
        return NULL;
    eps_attrs attrs = {eps};
    return pnb__node(x->graph, PNB__OP_L2_NORMALIZE, &x, 1, &attrs, sizeof attrs);
}

/* x (R..., D) -> the same shape; y and 1/norm (R) are kept, x is not. */
bool pnb__op_l2_normalize_shape(pnb__tensor *t)
{
    pnb__same_shape(t, t->in[0]);
    t->inplace_in = 0;
    t->saves_out = true;
    t->aux_bytes[0] = pnb__rows(t) * pnb__elem_bytes(t);
    return true;
}

/* y = x / max(||x||, eps), torch's F.normalize: a row of zeros stays one. */
bool pnb__op_l2_normalize_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.l2_normalize(t->graph->ctx, pnb__rows(t), pnb__width(t),
                                   ((const eps_attrs *)t->attrs)->eps, pnb__data(t->in[0]), t->data,
                                   t->aux[0]);
    return true;
}

/* y = x / ||x||:  dx = (dy - y (y . dy)) / ||x||, what of dy lies along the sphere. Below eps the
 * divisor is a constant and dx = dy / eps. */
void pnb__op_l2_normalize_backward(pnb__tensor *t)
{
    t->graph->kernels.l2_normalize_bwd(t->graph->ctx, pnb__rows(t), pnb__width(t),
                                       ((const eps_attrs *)t->attrs)->eps, t->data, t->aux[0],
                                       t->grad, t->d_in[0], t->acc_in[0]);
}

/* ---- softmax and log_softmax ---- */
static pnb__tensor *softmax_node(pnb__tensor *x, bool log)
{
    if (x == NULL)
        return NULL;
    softmax_attrs attrs = {log};
    return pnb__node(x->graph, PNB__OP_SOFTMAX, &x, 1, &attrs, sizeof attrs);
}

pnb__tensor *pnb__softmax(pnb__tensor *x)
{
    return softmax_node(x, false);
}

pnb__tensor *pnb__log_softmax(pnb__tensor *x)
{
    return softmax_node(x, true);
}

bool pnb__op_softmax_shape(pnb__tensor *t)
{
    pnb__same_shape(t, t->in[0]);
    t->inplace_in = 0;
    t->saves_out = true;
    return true;
}

/* y_i = exp(x_i - m) / sum_j exp(x_j - m), m the largest of the row; log: x_i - m - log of that
 * sum. */
bool pnb__op_softmax_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const softmax_attrs *a = t->attrs;
    t->graph->kernels.softmax(t->graph->ctx, pnb__rows(t), pnb__width(t), a->log,
                              pnb__data(t->in[0]), t->data);
    return true;
}

/* y = softmax(x):      dx_i = y_i (dy_i - sum_j y_j dy_j)
 * y = log softmax(x):  dx_i = dy_i - exp(y_i) sum_j dy_j
 * Both read y alone, so x may be overwritten. */
void pnb__op_softmax_backward(pnb__tensor *t)
{
    const softmax_attrs *a = t->attrs;
    t->graph->kernels.softmax_bwd(t->graph->ctx, pnb__rows(t), pnb__width(t), a->log, t->data,
                                  t->grad, t->d_in[0], t->acc_in[0]);
}

/* ---- cross_entropy: log_softmax and the target's element in one, without a matrix ---- */
pnb__tensor *pnb__cross_entropy(pnb__tensor *x, pnb__tensor *targets)
{
    if (x == NULL || targets == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_CROSS_ENTROPY, (pnb__tensor *[]){x, targets}, 2, NULL, 0);
}

/* x (R,K), targets (R) -> losses (R); lse (R) is kept. */
bool pnb__op_cross_entropy_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *target = t->in[1];
    char tx[96], tt[96];
    if (x->n_dims != 2 || target->kind != PNB__INT32 || target->n != x->shape[0])
        return pnb__node_fail(t->graph, PNB_SHAPE, "cross_entropy: x %s does not fit targets %s",
                              pnb__shape_text(x, tx), pnb__shape_text(target, tt));
    pnb__set_shape(t, 1, x->shape);
    t->saves_in = 3;
    t->aux_bytes[0] = x->shape[0] * pnb__elem_bytes(t);
    return true;
}

/* loss_r = lse(x_r) - x_r[t_r],  lse(x) = log sum_k exp(x_k) */
bool pnb__op_cross_entropy_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.cross_entropy(t->graph->ctx, t->n, pnb__width(t->in[0]), pnb__data(t->in[0]),
                                    pnb__data(t->in[1]), t->data, t->aux[0]);
    return true;
}

/* loss_r = lse(x_r) - x_r[t_r]:  dx_rk = (exp(x_rk - lse_r) - [k = t_r]) dloss_r */
void pnb__op_cross_entropy_backward(pnb__tensor *t)
{
    t->graph->kernels.cross_entropy_bwd(t->graph->ctx, t->n, pnb__width(t->in[0]),
                                        pnb__data(t->in[0]), pnb__data(t->in[1]), t->aux[0],
                                        t->grad, t->d_in[0], t->acc_in[0]);
}
