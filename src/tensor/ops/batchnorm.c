/* batchnorm and batchnorm_fold (Ioffe and Szegedy 2015), as torch.nn.BatchNorm2d.
 *
 * The running buffers are weights that are not trained: state of the model, which the op itself
 * moves when it runs forward in training, once a step: not when a segment runs again in backward.
 * ReLU and a residual are part of the op, because a value that is read once more costs as much as
 * the normalisation. Without a residual y is dropped after forward and made again for backward from
 * x, which batch norm needs anyway: of conv, batch norm and ReLU one value is kept, not two. */
#include "tensor/graph_internal.h"

enum { X, W, B, RUNNING_MEAN, RUNNING_VAR, RESIDUAL, N_NORM_INPUTS };

typedef struct batchnorm_attrs {
    bool relu, training;
    double eps, momentum;
} batchnorm_attrs;

pnb__tensor *pnb__batchnorm(pnb__tensor *x, const pnb__batchnorm_opts *opts)
{
    if (x == NULL || opts->w == NULL || opts->b == NULL || opts->running_mean == NULL ||
        opts->running_var == NULL)
        return NULL;
    pnb__tensor *in[N_NORM_INPUTS] = {
        x, opts->w, opts->b, opts->running_mean, opts->running_var, opts->residual};
    batchnorm_attrs attrs = {opts->relu, opts->training, opts->eps, opts->momentum};
    return pnb__node(x->graph, PNB__OP_BATCHNORM, in, N_NORM_INPUTS, &attrs, sizeof attrs);
}

/* (C) each; what is moved must be memory of its own and nobody else's to train. */
static bool check_buffers(pnb__tensor *t)
{
    const batchnorm_attrs *o = t->attrs;
    char tx[96];
    for (int i = W; i <= RUNNING_VAR; i++)
        if (t->in[i]->n_dims != 1 || t->in[i]->n != pnb__width(t->in[X]))
            return pnb__node_fail(t->graph, PNB_SHAPE, "batchnorm: %zu weights for x %s",
                                  t->in[i]->n, pnb__shape_text(t->in[X], tx));
    for (int i = RUNNING_MEAN; i <= RUNNING_VAR; i++) {
        const pnb__param *p = t->in[i]->param;
        if (t->in[i]->wants_grad)
            return pnb__node_fail(t->graph, PNB_ARG, "batchnorm: a running buffer is not trained");
        if (o->training && (p == NULL || p->fixed))
            return pnb__node_fail(t->graph, PNB_ARG, "batchnorm: %s is fixed and cannot be moved",
                                  p == NULL ? "a running buffer" : p->name);
    }
    return true;
}

/* Sums of stretches of rows, of forward and of backward alike: kernels/cpu/loops/batchnorm.inc. */
static size_t sums_bytes(const pnb__tensor *t)
{
    return t->graph->kernels.batchnorm_work(t->graph->ctx, pnb__rows(t), pnb__width(t));
}

/* x (..., C) and a residual like it -> the same shape. Mean and 1/std of every channel are kept. */
bool pnb__op_batchnorm_shape(pnb__tensor *t)
{
    const batchnorm_attrs *o = t->attrs;
    const pnb__tensor *x = t->in[X], *residual = t->in[RESIDUAL];
    char tx[96], tr[96];
    if (!check_buffers(t))
        return false;
    if (residual != NULL && residual->n != x->n)
        return pnb__node_fail(t->graph, PNB_SHAPE, "batchnorm: residual %s does not fit x %s",
                              pnb__shape_text(residual, tr), pnb__shape_text(x, tx));
    if (residual != NULL && pnb__root_const(residual) == pnb__root_const(x)) /* d x is not d y */
        return pnb__node_fail(t->graph, PNB_UNSUPPORTED, "batchnorm: x cannot be its own residual");
    if (o->training && x->n > 0 && pnb__rows(x) < 2)
        return pnb__node_fail(t->graph, PNB_SHAPE,
                              "batchnorm: x %s has one value a channel and no variance; training "
                              "needs a larger batch, larger pictures or frozen batch norm",
                              pnb__shape_text(x, tx));
    pnb__same_shape(t, x);
    t->inplace_in = X;
    t->aux_bytes[0] = t->aux_bytes[1] = pnb__width(x) * pnb__elem_bytes(t);
    t->work_bytes = o->training ? sums_bytes(t) : 0;
    if (!t->graph->with_grad)
        return true;
    t->saves_in = 1U << X | 1U << W | 1U << B;
    t->saves_out = residual != NULL && o->relu;
    t->recompute = residual == NULL;
    t->recompute_in = t->saves_in;
    t->steals = residual != NULL ? RESIDUAL : -1;
    t->work_bwd_bytes = sums_bytes(t);
    return true;
}

/* Everything but gradients. The running buffers are read where nothing is trained and moved where
 * it is; a node of a segment that runs again must make the same y from the same moments and leave
 * the buffers as the first run left them. */
static void batchnorm_args(const pnb__tensor *t, pnb__batchnorm_args *a)
{
    const batchnorm_attrs *o = t->attrs;
    bool moves = !o->training || !t->is_again; /* or reads, where nothing is trained */
    *a = (pnb__batchnorm_args){.rows = pnb__rows(t),
                               .width = pnb__width(t),
                               .eps = o->eps,
                               .momentum = o->momentum,
                               .frozen = !o->training,
                               .relu = o->relu,
                               .x = pnb__data(t->in[X]),
                               .w = pnb__data(t->in[W]),
                               .b = pnb__data(t->in[B]),
                               .residual = t->in[RESIDUAL] ? pnb__data(t->in[RESIDUAL]) : NULL,
                               .running_mean = moves ? pnb__data(t->in[RUNNING_MEAN]) : NULL,
                               .running_var = moves ? pnb__data(t->in[RUNNING_VAR]) : NULL,
                               .mean = t->aux[0],
                               .rstd = t->aux[1],
                               .y = t->data};
}

/* n = (x - mean) r,  r = (var + eps)^-1/2,  y = relu(w n + b + residual); mean and biased variance
 * over all but the last axis, or the running ones.
 * running = (1 - momentum) running + momentum new, where a new variance is the unbiased one */
bool pnb__op_batchnorm_forward(pnb__tensor *t, bool recompute)
{
    const pnb__graph *g = t->graph;
    pnb__batchnorm_args a;
    batchnorm_args(t, &a);
    a.work = t->work;
    if (t->n == 0)
        return true;
    if (!recompute)
        g->kernels.batchnorm_moments(g->ctx, &a);
    if (!recompute && a.running_var != NULL && !a.frozen)
        t->in[RUNNING_VAR]->param->n_moves++;
    g->kernels.batchnorm(g->ctx, &a);
    return true;
}

/* y = relu(z), z = w n + b + residual:  dz = dy [y > 0],  d residual = dz
 *   dw = sum dz n,  db = sum dz
 * n = (x - mean) r:  dx = w r (dz - mean(dz) - n mean(dz n)), the means over a channel being what x
 * does to mean and r; by the running buffers dx = w r dz. */
void pnb__op_batchnorm_backward(pnb__tensor *t)
{
    pnb__batchnorm_args a;
    batchnorm_args(t, &a);
    a.dy = t->grad;
    a.dx = t->d_in[X];
    a.dw = t->d_in[W];
    a.db = t->d_in[B];
    a.d_residual = t->d_in[RESIDUAL];
    a.accumulate_x = t->acc_in[X];
    a.accumulate_w = t->acc_in[W];
    a.accumulate_b = t->acc_in[B];
    a.accumulate_residual = t->acc_in[RESIDUAL];
    a.work = t->work_bwd;
    if (t->n > 0)
        t->graph->kernels.batchnorm_bwd(t->graph->ctx, &a);
}

/* ---- batchnorm_fold: what is left of a batch norm where nothing is trained ---- */

enum { FOLD_W, FOLD_B, FOLD_MEAN, FOLD_VAR, N_FOLD_INPUTS };

/* (C) four times -> (2,C): scale and shift */
bool pnb__op_batchnorm_fold_shape(pnb__tensor *t)
{
    size_t n = t->in[FOLD_W]->n;
    for (int i = 0; i < N_FOLD_INPUTS; i++)
        if (t->in[i]->n_dims != 1 || t->in[i]->n != n)
            return pnb__node_fail(t->graph, PNB_SHAPE,
                                  "batchnorm: weights and buffers have %zu and %zu values", n,
                                  t->in[i]->n);
    pnb__set_shape(t, 2, (size_t[]){2, n});
    return true;
}

/* y = x s + (b - mean s),  s = w (var + eps)^-1/2 */
bool pnb__op_batchnorm_fold_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const double *eps = t->attrs;
    size_t width = t->shape[1];
    pnb__batchnorm_args a = {.width = width,
                             .eps = *eps,
                             .w = pnb__data(t->in[FOLD_W]),
                             .b = pnb__data(t->in[FOLD_B]),
                             .running_mean = pnb__data(t->in[FOLD_MEAN]),
                             .running_var = pnb__data(t->in[FOLD_VAR]),
                             .scale = t->data,
                             .shift = (unsigned char *)t->data + width * pnb__elem_bytes(t)};
    t->graph->kernels.batchnorm_fold(t->graph->ctx, &a);
    return true;
}

/* Two ops in a graph with gradients, because batch norm needs what the convolution made; else one,
 * whose result is written once. The values agree to rounding: (x - mean) r w + b against x s + t.
 */
pnb__tensor *pnb__conv2d_batchnorm(pnb__tensor *x, pnb__tensor *w, size_t stride, size_t pad,
                                   const pnb__batchnorm_opts *norm)
{
    pnb__conv2d_opts opts = {.stride = stride, .pad = pad};
    if (x == NULL || w == NULL || norm->w == NULL || norm->b == NULL ||
        norm->running_mean == NULL || norm->running_var == NULL)
        return NULL;
    if (x->graph->with_grad || norm->training)
        return pnb__batchnorm(pnb__conv2d(x, w, &opts), norm);
    pnb__tensor *in[N_FOLD_INPUTS] = {norm->w, norm->b, norm->running_mean, norm->running_var};
    opts.folded = pnb__node(x->graph, PNB__OP_BATCHNORM_FOLD, in, N_FOLD_INPUTS, &norm->eps,
                            sizeof norm->eps);
    opts.residual = norm->residual;
    opts.relu = norm->relu;
    return opts.folded == NULL ? NULL : pnb__conv2d(x, w, &opts);
}
