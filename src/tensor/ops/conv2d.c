/* conv2d and max_pool: ops on pictures whose channels lie innermost, (B,H,W,C).
 *
 * Innermost, because a product of matrices makes the outputs of a pixel together, batch norm and
 * ReLU follow in the same order, and the heads behind a trunk read (B, positions, C). Weights stay
 * as torch stores them, (O,C,KH,KW). In a graph without gradients what follows a convolution in a
 * residual block is its epilogue: scale and shift of a batch norm, the residual, ReLU. */
#include "tensor/graph_internal.h"

enum { X, W, FOLDED, RESIDUAL, N_CONV_INPUTS };

typedef struct conv2d_attrs {
    size_t stride, pad;
    bool relu;
} conv2d_attrs;

pnb__tensor *pnb__conv2d(pnb__tensor *x, pnb__tensor *w, const pnb__conv2d_opts *opts)
{
    if (x == NULL || w == NULL)
        return NULL;
    pnb__tensor *in[N_CONV_INPUTS] = {x, w, opts->folded, opts->residual};
    conv2d_attrs attrs = {opts->stride, opts->pad, opts->relu};
    return pnb__node(x->graph, PNB__OP_CONV2D, in, N_CONV_INPUTS, &attrs, sizeof attrs);
}

/* Sizes of t and pointers as far as they are known. */
void pnb__conv2d_args_of(const pnb__tensor *t, pnb__conv2d_args *a)
{
    const conv2d_attrs *o = t->attrs;
    const pnb__tensor *x = t->in[X], *w = t->in[W];
    *a = (pnb__conv2d_args){.n_batch = x->shape[0],
                            .height = x->shape[1],
                            .width = x->shape[2],
                            .channels = x->shape[3],
                            .out_channels = w->shape[0],
                            .kernel_h = w->shape[2],
                            .kernel_w = w->shape[3],
                            .stride = o->stride,
                            .pad = o->pad,
                            .out_h = (x->shape[1] + 2 * o->pad - w->shape[2]) / o->stride + 1,
                            .out_w = (x->shape[2] + 2 * o->pad - w->shape[3]) / o->stride + 1,
                            .x = pnb__data(x),
                            .w = pnb__data(w),
                            .y = t->data,
                            .relu = o->relu};
}

/* Does the kernel fit into the padded picture at least once, and are channels what w reads? Torch
 * says "Kernel size can't be greater than actual input size" here. */
static bool kernel_fits(const pnb__tensor *x, const pnb__tensor *w, const conv2d_attrs *o)
{
    return x->n_dims == 4 && w->n_dims == 4 && w->shape[1] == x->shape[3] && o->stride > 0 &&
           w->shape[2] > 0 && w->shape[3] > 0 && x->shape[1] + 2 * o->pad >= w->shape[2] &&
           x->shape[2] + 2 * o->pad >= w->shape[3] && w->shape[2] * w->shape[3] <= PNB__CONV2D_TAPS;
}

/* The epilogue is for graphs without gradients; its parts are like y. */
static bool check_epilogue(pnb__tensor *t)
{
    const conv2d_attrs *o = t->attrs;
    const pnb__tensor *folded = t->in[FOLDED], *residual = t->in[RESIDUAL];
    char tr[96], ty[96];
    if (t->graph->with_grad && (folded != NULL || residual != NULL || o->relu))
        return pnb__node_fail(t->graph, PNB_UNSUPPORTED,
                              "conv2d: what follows a convolution is an op of its own in a graph "
                              "with gradients");
    if (folded != NULL && folded->n != 2 * t->shape[3])
        return pnb__node_fail(t->graph, PNB_SHAPE, "conv2d: scale and shift %s for outputs %s",
                              pnb__shape_text(folded, tr), pnb__shape_text(t, ty));
    if (residual != NULL && residual->n != t->n)
        return pnb__node_fail(t->graph, PNB_SHAPE, "conv2d: residual %s does not fit output %s",
                              pnb__shape_text(residual, tr), pnb__shape_text(t, ty));
    return true;
}

/* x (B,H,W,C), w (O,C,KH,KW) -> (B,OH,OW,O), OH = (H + 2 pad - KH) / stride + 1 rounded down. */
bool pnb__op_conv2d_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[X], *w = t->in[W];
    const pnb__kernels *k = &t->graph->kernels;
    char tx[96], tw[96];
    if (!kernel_fits(x, w, t->attrs))
        return pnb__node_fail(t->graph, PNB_SHAPE, "conv2d: weight %s does not fit x %s",
                              pnb__shape_text(w, tw), pnb__shape_text(x, tx));
    pnb__conv2d_args a;
    pnb__conv2d_args_of(t, &a);
    pnb__set_shape(t, 4, (size_t[]){a.n_batch, a.out_h, a.out_w, a.out_channels});
    t->flops = 2.0 * (double)t->n * (double)(a.channels * a.kernel_h * a.kernel_w);
    t->saves_in = 1U << X | 1U << W;
    t->work_bytes = k->conv2d_work(t->graph->ctx, &a, PNB__CONV2D);
    if (t->graph->with_grad)
        t->work_bwd_bytes = PNB_MAX(k->conv2d_work(t->graph->ctx, &a, PNB__CONV2D_DX),
                                    k->conv2d_work(t->graph->ctx, &a, PNB__CONV2D_DW));
    return check_epilogue(t);
}

/* As of a linear layer: a weight that is trained changes under its packed copy; a table that gains
 * nothing by packing has no group of columns. A view of a weight is not packed: nobody has one. */
bool pnb__conv2d_can_pack(const pnb__tensor *t)
{
    const pnb__param *p = t->in[W]->param;
    return t->graph->kernels.gemm_group > 0 && p != NULL && p->fixed &&
           p->store == PNB__STORE_REAL && p->n > 0;
}

/* y[b,i,j,o] = sum_{u,v,c} x[b, i stride + u - pad, j stride + v - pad, c] w[o,c,u,v], 0 outside;
 * then relu(y scale + shift + residual) */
bool pnb__op_conv2d_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const pnb__graph *g = t->graph;
    const pnb__param *p = t->in[W]->param;
    const pnb__packed *packed = !g->with_grad && p != NULL && p->fixed ? p->packed : NULL;
    pnb__conv2d_args a;
    pnb__conv2d_args_of(t, &a);
    a.work = t->work;
    a.packed = packed != NULL && packed->is_conv2d ? packed->data : NULL;
    if (t->in[FOLDED] != NULL) {
        a.scale = pnb__data(t->in[FOLDED]);
        a.shift = (const unsigned char *)a.scale + a.out_channels * pnb__elem_bytes(t);
    }
    a.residual = t->in[RESIDUAL] != NULL ? pnb__data(t->in[RESIDUAL]) : NULL;
    g->kernels.conv2d(g->ctx, &a);
    return true;
}

/* x and w are read as they were: neither y nor a copy of the taps is kept, which would be KH KW
 * times as large as x. dx[s, c] = sum over (i,j,u,v) that read pixel s of sum_o dy[i,j,o]
 * w[o,c,u,v] dw[o,c,u,v] = sum_{b,i,j} dy[b,i,j,o] x[b, i stride + u - pad, j stride + v - pad, c]
 */
void pnb__op_conv2d_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    pnb__conv2d_args a;
    pnb__conv2d_args_of(t, &a);
    a.work = t->work_bwd;
    a.dy = t->grad;
    a.dx = t->d_in[X];
    a.dw = t->d_in[W];
    a.accumulate = t->acc_in[X];
    if (a.dx != NULL)
        g->kernels.conv2d_dx(g->ctx, &a);
    a.accumulate = t->acc_in[W];
    if (a.dw != NULL)
        g->kernels.conv2d_dw(g->ctx, &a);
}

/* ---- max_pool ----
 *
 * The stem of ResNet halves the picture by 3x3 windows at stride 2, which overlap by a pixel: one
 * pixel may be the largest of four windows and gets the gradients of all of them. */

typedef struct max_pool_attrs {
    size_t kernel, stride, pad;
} max_pool_attrs;

pnb__tensor *pnb__max_pool(pnb__tensor *x, size_t kernel, size_t stride, size_t pad)
{
    if (x == NULL)
        return NULL;
    max_pool_attrs attrs = {kernel, stride, pad};
    return pnb__node(x->graph, PNB__OP_MAX_POOL, &x, 1, &attrs, sizeof attrs);
}

static void pool_args(const pnb__tensor *t, pnb__pool_args *a)
{
    const max_pool_attrs *o = t->attrs;
    const pnb__tensor *x = t->in[0];
    *a = (pnb__pool_args){.n_batch = x->shape[0],
                          .height = x->shape[1],
                          .width = x->shape[2],
                          .channels = x->shape[3],
                          .kernel = o->kernel,
                          .stride = o->stride,
                          .pad = o->pad,
                          .out_h = (x->shape[1] + 2 * o->pad - o->kernel) / o->stride + 1,
                          .out_w = (x->shape[2] + 2 * o->pad - o->kernel) / o->stride + 1,
                          .x = pnb__data(x),
                          .y = t->data,
                          .which = t->aux[0]};
}

/* x (B,H,W,C) -> (B,OH,OW,C). At most half a window of padding, as torch: then every window has a
 * pixel. Kept for backward is which tap was the largest, a byte for each value. */
bool pnb__op_max_pool_shape(pnb__tensor *t)
{
    const max_pool_attrs *o = t->attrs;
    const pnb__tensor *x = t->in[0];
    char tx[96];
    bool fits = x->n_dims == 4 && o->stride > 0 && o->kernel > 0 && o->kernel < 16 &&
                2 * o->pad <= o->kernel && x->shape[1] + 2 * o->pad >= o->kernel &&
                x->shape[2] + 2 * o->pad >= o->kernel;
    if (!fits)
        return pnb__node_fail(t->graph, PNB_SHAPE, "max_pool: windows of %zu do not fit x %s",
                              o->kernel, pnb__shape_text(x, tx));
    pnb__pool_args a;
    pool_args(t, &a);
    pnb__set_shape(t, 4, (size_t[]){a.n_batch, a.out_h, a.out_w, a.channels});
    if (t->graph->with_grad)
        t->aux_bytes[0] = PNB_MAX(t->n, (size_t)1);
    return true;
}

/* y[b,i,j,c] = max over the window at (i stride - pad, j stride - pad) */
bool pnb__op_max_pool_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__pool_args a;
    pool_args(t, &a);
    t->graph->kernels.max_pool(t->graph->ctx, &a);
    return true;
}

/* The pixel that was the maximum gets dy of the window; it may be that of several. */
void pnb__op_max_pool_backward(pnb__tensor *t)
{
    pnb__pool_args a;
    pool_args(t, &a);
    a.dy = t->grad;
    a.dx = t->d_in[0];
    a.accumulate = t->acc_in[0];
    t->graph->kernels.max_pool_bwd(t->graph->ctx, &a);
}
