/* sum and mean over one axis or all, broadcast_to, pairwise squared distances.
 * Sums run in a fixed order, so a result does not depend on who computed which part; broadcasting
 * is the adjoint of summing and shares its kernel. */
#include "tensor/graph_internal.h"

/* x seen as (outer, n, inner) with the summed axis in the middle. */
typedef struct sum_attrs {
    size_t outer, n, inner;
    int axis; /* PNB__ALL_AXES or a resolved axis */
    bool mean;
} sum_attrs;

/* ---- sum and mean ---- */

static pnb__tensor *sum_node(pnb__tensor *x, int axis, bool mean)
{
    if (x == NULL)
        return NULL;
    int resolved = axis != PNB__ALL_AXES && axis < 0 ? axis + x->n_dims : axis;
    sum_attrs attrs = {1, 1, 1, resolved, mean};
    return pnb__node(x->graph, PNB__OP_SUM, &x, 1, &attrs, sizeof attrs);
}

pnb__tensor *pnb__sum(pnb__tensor *x, int axis)
{
    return sum_node(x, axis, false);
}

pnb__tensor *pnb__mean(pnb__tensor *x, int axis)
{
    return sum_node(x, axis, true);
}

/* x (..., n, ...) -> the same without that axis; all axes -> (). */
bool pnb__op_sum_shape(pnb__tensor *t)
{
    sum_attrs *a = t->attrs;
    const pnb__tensor *x = t->in[0];
    char tx[96];
    if (a->axis == PNB__ALL_AXES) {
        a->n = x->n;
        pnb__set_shape(t, 0, NULL);
        return true;
    }
    if (a->axis < 0 || a->axis >= x->n_dims)
        return pnb__node_fail(t->graph, PNB_SHAPE, "sum: %s has no axis %d", pnb__shape_text(x, tx),
                              a->axis);
    size_t shape[PNB__DIMS];
    int n_dims = 0;
    for (int i = 0; i < x->n_dims; i++) {
        if (i < a->axis)
            a->outer *= x->shape[i];
        else if (i > a->axis)
            a->inner *= x->shape[i];
        if (i != a->axis)
            shape[n_dims++] = x->shape[i];
    }
    a->n = x->shape[a->axis]; /* an axis of length 0 sums to 0 */
    pnb__set_shape(t, n_dims, shape);
    return true;
}

/* A mean is a scaled sum: one kernel for both. */
static double sum_scale(const sum_attrs *a)
{
    return a->mean && a->n > 0 ? 1.0 / (double)a->n : 1.0;
}

/* y[o][i] = s sum_k x[o][k][i], s = 1 or 1/n; added in a fixed order. */
bool pnb__op_sum_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const sum_attrs *a = t->attrs;
    t->graph->kernels.sum(t->graph->ctx, a->outer, a->n, a->inner, sum_scale(a),
                          pnb__data(t->in[0]), t->data, false);
    return true;
}

/* y[o][i] = s sum_k x[o][k][i]:  dx[o][k][i] = s dy[o][i] */
void pnb__op_sum_backward(pnb__tensor *t)
{
    const sum_attrs *a = t->attrs;
    t->graph->kernels.sum_bwd(t->graph->ctx, a->outer, a->n, a->inner, sum_scale(a), t->grad,
                              t->d_in[0], t->acc_in[0]);
}

/* ---- broadcast_to ---- the target shape travels as {n_dims, dims...} */
pnb__tensor *pnb__broadcast_to(pnb__tensor *x, int n_dims, const size_t *shape)
{
    if (x == NULL)
        return NULL;
    size_t wanted[PNB__DIMS + 1] = {(size_t)n_dims};
    if (n_dims < x->n_dims || n_dims > PNB__DIMS) {
        pnb__node_fail(x->graph, PNB_SHAPE, "broadcast: cannot go from %d to %d dimensions",
                       x->n_dims, n_dims);
        return NULL;
    }
    for (int i = 0; i < n_dims; i++)
        wanted[i + 1] = shape[i];
    return pnb__node(x->graph, PNB__OP_BROADCAST, &x, 1, wanted, sizeof wanted);
}

/* x aligned at the end of `wanted`, each of its dims the wanted one or 1 (numpy's rule). */
bool pnb__op_broadcast_shape(pnb__tensor *t)
{
    const size_t *wanted = t->attrs;
    const pnb__tensor *x = t->in[0];
    char tx[96];
    pnb__set_shape(t, (int)wanted[0], wanted + 1);
    for (int i = 0; i < x->n_dims; i++) {
        size_t from = x->shape[x->n_dims - 1 - i], to = t->shape[t->n_dims - 1 - i];
        if (from != to && from != 1)
            return pnb__node_fail(t->graph, PNB_SHAPE, "broadcast: %s does not fit",
                                  pnb__shape_text(x, tx));
    }
    return true;
}

/* Both directions are one strided copy: forward reads with stride 0, backward is the binary
 * kernel's broadcast sum (the gradient of adding x to zeros). */
static void broadcast_strides_of(const pnb__tensor *t, pnb__binary_args *args)
{
    const pnb__tensor *x = t->in[0];
    size_t step = 1, out_step = 1;
    for (int i = 0; i < PNB__DIMS; i++) {
        /* a stride of 0 stays where it is: that is what repeats */
        size_t d = i < x->n_dims ? x->shape[x->n_dims - 1 - i] : 1;
        size_t out = i < t->n_dims ? t->shape[t->n_dims - 1 - i] : 1;
        args->dims[PNB__DIMS - 1 - i] = out;
        args->stride_a[PNB__DIMS - 1 - i] = d == 1 ? 0 : step;
        args->stride_b[PNB__DIMS - 1 - i] = out == 1 ? 0 : out_step;
        step *= d;
        out_step *= out;
    }
}

/* y[i] = x[i with 0 along every repeated axis]. */
bool pnb__op_broadcast_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__binary_args b = {.op = PNB__ADD};
    broadcast_strides_of(t, &b);
    pnb__copy_args c = {.src = pnb__data(t->in[0]), .dst = t->data};
    for (int i = 0; i < PNB__DIMS; i++) {
        c.dims[i] = b.dims[i];
        c.stride_src[i] = b.stride_a[i];
        c.stride_dst[i] = b.stride_b[i];
    }
    t->graph->kernels.copy(t->graph->ctx, &c);
    return true;
}

/* y[i] = x[i with 0 along every repeated axis]:  dx[j] = sum of dy over all i that read x[j]. */
void pnb__op_broadcast_backward(pnb__tensor *t)
{
    pnb__binary_args b = {.op = PNB__ADD,
                          .a = pnb__data(t->in[0]),
                          .b = t->grad,
                          .dy = t->grad,
                          .d = t->d_in[0],
                          .which = 0,
                          .accumulate = t->acc_in[0]};
    broadcast_strides_of(t, &b);
    t->graph->kernels.binary_bwd(t->graph->ctx, &b);
}

/* ---- pairwise_sqdist ---- */
pnb__tensor *pnb__pairwise_sqdist(pnb__tensor *x, pnb__tensor *y)
{
    if (x == NULL || y == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIRWISE_SQDIST, (pnb__tensor *[]){x, y}, 2, NULL, 0);
}

/* x (M,D), y (N,D) -> (M,N) */
bool pnb__op_pairwise_sqdist_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = t->in[1];
    char tx[96], ty[96];
    if (x->n_dims != 2 || y->n_dims != 2 || x->shape[1] != y->shape[1])
        return pnb__node_fail(t->graph, PNB_SHAPE, "pairwise_sqdist: %s does not fit %s",
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty));
    pnb__set_shape(t, 2, (size_t[]){x->shape[0], y->shape[0]});
    t->saves_in = 3;
    return true;
}

/* d2_ij = sum_d (x_id - y_jd)^2. As differences and not as ||x||^2 + ||y||^2 - 2 x.y: that loses
 * all digits for near rows, and those are the ones a distance is asked for. */
bool pnb__op_pairwise_sqdist_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.pairwise_sqdist(t->graph->ctx, t->shape[0], t->shape[1], pnb__width(t->in[0]),
                                      pnb__data(t->in[0]), pnb__data(t->in[1]), t->data);
    return true;
}

/* d2_ij = ||x_i - y_j||^2:
 *   dx_i = 2 sum_j dd2_ij (x_i - y_j),  dy_j = 2 sum_i dd2_ij (y_j - x_i) */
void pnb__op_pairwise_sqdist_backward(pnb__tensor *t)
{
    const size_t mnw[3] = {t->shape[0], t->shape[1], pnb__width(t->in[0])};
    t->graph->kernels.pairwise_sqdist_bwd(t->graph->ctx, mnw, pnb__data(t->in[0]),
                                          pnb__data(t->in[1]), t->grad, t->d_in[0], t->d_in[1],
                                          t->acc_in);
}
