/* gather, patchify, concat, slice, reshape, permute: ops that only move elements.
 * Each backward is the adjoint move: what was read k times receives k additions. Slices along the
 * outermost axis and reshapes move nothing at all, they are views. */
#include "tensor/graph_internal.h"

/* ---- gather: rows of a table by integer ids ---- */

pnb__tensor *pnb__gather(pnb__tensor *table, pnb__tensor *ids)
{
    if (table == NULL || ids == NULL)
        return NULL;
    return pnb__node(table->graph, PNB__OP_GATHER, (pnb__tensor *[]){table, ids}, 2, NULL, 0);
}

/* table (R, ...), ids (any shape) -> shape(ids) + (...). Backward adds into a few rows of a table
 * that may be large, so its gradient is zeroed once and not written row by row. */
bool pnb__op_gather_shape(pnb__tensor *t)
{
    const pnb__tensor *table = t->in[0], *ids = t->in[1];
    char tt[96], ti[96];
    if (table->n_dims < 1 || ids->kind != PNB__INT32 || ids->n_dims + table->n_dims - 1 > PNB__DIMS)
        return pnb__node_fail(t->graph, PNB_SHAPE, "gather: table %s does not fit ids %s",
                              pnb__shape_text(table, tt), pnb__shape_text(ids, ti));
    size_t shape[PNB__DIMS];
    int n_dims = 0;
    for (int i = 0; i < ids->n_dims; i++)
        shape[n_dims++] = ids->shape[i];
    for (int i = 1; i < table->n_dims; i++)
        shape[n_dims++] = table->shape[i];
    pnb__set_shape(t, n_dims, shape);
    t->saves_in = 2;  /* the ids */
    t->zeroed_in = 1; /* of the table */
    return true;
}

/* Elements of one row of the table. */
static size_t row_size(const pnb__tensor *table)
{
    size_t n = 1;
    for (int i = 1; i < table->n_dims; i++)
        n *= table->shape[i];
    return n;
}

/* y[i] = table[ids[i]] */
bool pnb__op_gather_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.gather_rows(t->graph->ctx, t->in[1]->n, row_size(t->in[0]),
                                  pnb__data(t->in[0]), pnb__data(t->in[1]), t->data);
    return true;
}

/* y[i] = table[ids[i]]:  dtable[r] = sum of dy[i] over all i with ids[i] = r, in order of i, so
 * that a word that stands in many captions gets the same bits whatever the threads do. */
void pnb__op_gather_backward(pnb__tensor *t)
{
    t->graph->kernels.scatter_add_rows(t->graph->ctx, t->in[1]->n, t->in[0]->shape[0],
                                       row_size(t->in[0]), t->grad, pnb__data(t->in[1]),
                                       t->d_in[0]);
}

/* ---- patchify: (B,C,H,W) -> (B, N, C*p*p), the rows a patch embedding multiplies ---- */

pnb__tensor *pnb__patchify(pnb__tensor *pixels, size_t patch)
{
    if (pixels == NULL)
        return NULL;
    return pnb__node(pixels->graph, PNB__OP_PATCHIFY, &pixels, 1, &patch, sizeof patch);
}

/* N = (H / p)(W / p), rounded down as a convolution of stride p without padding does. */
bool pnb__op_patchify_shape(pnb__tensor *t)
{
    size_t p = *(const size_t *)t->attrs;
    const pnb__tensor *x = t->in[0];
    char tx[96];
    if (x->n_dims != 4 || p == 0 || x->shape[2] < p || x->shape[3] < p)
        return pnb__node_fail(t->graph, PNB_SHAPE, "patchify: patch %zu does not fit pixels %s", p,
                              pnb__shape_text(x, tx));
    pnb__set_shape(
        t, 3, (size_t[]){x->shape[0], (x->shape[2] / p) * (x->shape[3] / p), x->shape[1] * p * p});
    t->zeroed_in = x->shape[2] % p != 0 || x->shape[3] % p != 0; /* a border no patch covers */
    return true;
}

/* y[b][i W/p + j][(c p + u) p + v] = x[b][c][i p + u][j p + v]: the order of a flattened
 * convolution weight (C_out, C, p, p), so that conv1.weight of a checkpoint is the linear's W as
 * it lies. */
bool pnb__op_patchify_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.patchify(t->graph->ctx, t->in[0]->shape, *(const size_t *)t->attrs,
                               pnb__data(t->in[0]), t->data);
    return true;
}

/* Each pixel is read at most once: dx is dy moved back, 0 where no patch reads. */
void pnb__op_patchify_backward(pnb__tensor *t)
{
    t->graph->kernels.patchify_bwd(t->graph->ctx, t->in[0]->shape, *(const size_t *)t->attrs,
                                   t->grad, t->d_in[0], t->acc_in[0]);
}

/* ---- strided block copies: concat, slice, permute ---- */

/* The block (outer, n, inner) at `begin` of an axis that has `length`, in a packed tensor. */
static void block_strides(size_t length, size_t inner, size_t strides[PNB__DIMS])
{
    strides[0] = strides[1] = 0;
    strides[2] = length * inner;
    strides[3] = inner;
    strides[4] = 1;
}

typedef struct axis_split {
    size_t outer, inner;
} axis_split;

/* t seen as (outer, length, inner) around an axis. */
static axis_split split_at(const pnb__tensor *t, int axis)
{
    axis_split s = {1, 1};
    for (int i = 0; i < t->n_dims; i++) {
        if (i < axis)
            s.outer *= t->shape[i];
        else if (i > axis)
            s.inner *= t->shape[i];
    }
    return s;
}

/* The same block shape between other places. */
static void copy_block(const pnb__graph *g, const pnb__copy_args *shape, const void *src, void *dst,
                       bool accumulate)
{
    pnb__copy_args c = *shape;
    c.src = src;
    c.dst = dst;
    c.accumulate = accumulate;
    g->kernels.copy(g->ctx, &c);
}

/* ---- concat: y = [x_1; x_2; ...] along an axis ---- */
pnb__tensor *pnb__concat(pnb__tensor *const *parts, size_t n, int axis)
{
    if (n == 0 || parts[0] == NULL)
        return NULL;
    pnb__graph *g = parts[0]->graph;
    if (n > PNB__MAX_INPUTS) { /* long lists in groups: an input is an input, however many */
        pnb__tensor *head = pnb__concat(parts, PNB__MAX_INPUTS, axis);
        pnb__tensor *rest[PNB__MAX_INPUTS] = {head};
        size_t n_rest = PNB_MIN(n - PNB__MAX_INPUTS, (size_t)PNB__MAX_INPUTS - 1);
        for (size_t i = 0; i < n_rest; i++)
            rest[i + 1] = parts[PNB__MAX_INPUTS + i];
        pnb__tensor *joined = pnb__concat(rest, n_rest + 1, axis);
        size_t done = PNB__MAX_INPUTS + n_rest;
        while (joined != NULL && done < n) {
            pnb__tensor *pair[2] = {joined, parts[done++]};
            joined = pnb__concat(pair, 2, axis);
        }
        return joined;
    }
    for (size_t i = 0; i < n; i++)
        if (parts[i] == NULL)
            return NULL;
    int resolved = axis < 0 ? axis + parts[0]->n_dims : axis;
    return pnb__node(g, PNB__OP_CONCAT, parts, (int)n, &resolved, sizeof resolved);
}

/* x_i (..., n_i, ...) -> (..., sum n_i, ...); all other dims alike. */
bool pnb__op_concat_shape(pnb__tensor *t)
{
    int axis = *(const int *)t->attrs;
    const pnb__tensor *first = t->in[0];
    char ta[96], tb[96];
    if (axis < 0 || axis >= first->n_dims)
        return pnb__node_fail(t->graph, PNB_SHAPE, "concat: %s has no axis %d",
                              pnb__shape_text(first, ta), axis);
    size_t shape[PNB__DIMS], total = 0;
    for (int i = 0; i < t->n_in; i++) {
        bool fits = t->in[i]->n_dims == first->n_dims;
        for (int d = 0; fits && d < first->n_dims; d++)
            fits = d == axis || t->in[i]->shape[d] == first->shape[d];
        if (!fits)
            return pnb__node_fail(t->graph, PNB_SHAPE, "concat: %s does not fit %s",
                                  pnb__shape_text(t->in[i], ta), pnb__shape_text(first, tb));
        total += t->in[i]->shape[axis];
    }
    for (int d = 0; d < first->n_dims; d++)
        shape[d] = d == axis ? total : first->shape[d];
    pnb__set_shape(t, first->n_dims, shape);
    return true;
}

/* Forward:  y[o][b_i + k][j] = x_i[o][k][j], b_i = n_1 + ... + n_(i-1)
 * Backward: dx_i[o][k][j] = dy[o][b_i + k][j], the same copies turned round. */
static void concat_move(pnb__tensor *t, bool backward)
{
    int axis = *(const int *)t->attrs;
    axis_split s = split_at(t, axis);
    size_t begin = 0, bytes = pnb__elem_bytes(t);
    for (int i = 0; i < t->n_in; i++) {
        size_t length = t->in[i]->shape[axis];
        pnb__copy_args c = {.dims = {1, 1, s.outer, length, s.inner}};
        unsigned char *whole = backward ? t->grad : t->data;
        block_strides(length, s.inner, backward ? c.stride_dst : c.stride_src);
        block_strides(t->shape[axis], s.inner, backward ? c.stride_src : c.stride_dst);
        if (!backward)
            copy_block(t->graph, &c, pnb__data(t->in[i]), whole + begin * s.inner * bytes, false);
        else if (t->d_in[i] != NULL)
            copy_block(t->graph, &c, whole + begin * s.inner * bytes, t->d_in[i], t->acc_in[i]);
        begin += length;
    }
}

bool pnb__op_concat_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    concat_move(t, false);
    return true;
}

void pnb__op_concat_backward(pnb__tensor *t)
{
    concat_move(t, true);
}

/* ---- slice: y = x[begin .. begin + n) of an axis ---- */
typedef struct slice_attrs {
    int axis;
    size_t begin, n;
} slice_attrs;

/* Another shape of x's memory from element `offset` on. */
typedef struct view_attrs {
    size_t offset;
    int n_dims;
    size_t shape[PNB__DIMS];
} view_attrs;

static pnb__tensor *view_node(pnb__tensor *x, const view_attrs *attrs)
{
    return pnb__node(x->graph, PNB__OP_VIEW, &x, 1, attrs, sizeof *attrs);
}

/* Where nothing is outside the axis the slice lies in one piece: a view of x, for nothing. Any
 * other is copied. */
pnb__tensor *pnb__slice(pnb__tensor *x, int axis, size_t begin, size_t n)
{
    if (x == NULL)
        return NULL;
    int resolved = axis < 0 ? axis + x->n_dims : axis;
    char tx[96];
    if (resolved < 0 || resolved >= x->n_dims || begin > x->shape[resolved] ||
        n > x->shape[resolved] - begin) {
        pnb__node_fail(x->graph, PNB_SHAPE, "slice: [%zu, +%zu) on axis %d is outside %s", begin, n,
                       axis, pnb__shape_text(x, tx));
        return NULL;
    }
    axis_split s = split_at(x, resolved);
    if (s.outer == 1) { /* contiguous: no copy */
        view_attrs view = {.offset = begin * s.inner, .n_dims = x->n_dims};
        for (int i = 0; i < x->n_dims; i++)
            view.shape[i] = i == resolved ? n : x->shape[i];
        return view_node(x, &view);
    }
    slice_attrs attrs = {resolved, begin, n};
    return pnb__node(x->graph, PNB__OP_SLICE, &x, 1, &attrs, sizeof attrs);
}

/* x (..., length, ...) -> (..., n, ...). Backward touches a part of x's gradient: the rest must be
 * zero before. */
bool pnb__op_slice_shape(pnb__tensor *t)
{
    const slice_attrs *a = t->attrs;
    size_t shape[PNB__DIMS];
    for (int i = 0; i < t->in[0]->n_dims; i++)
        shape[i] = i == a->axis ? a->n : t->in[0]->shape[i];
    pnb__set_shape(t, t->in[0]->n_dims, shape);
    t->zeroed_in = 1;
    return true;
}

/* The copy of forward, and how far into x it begins. */
static void slice_args(const pnb__tensor *t, pnb__copy_args *c, size_t *offset_bytes)
{
    const slice_attrs *a = t->attrs;
    axis_split s = split_at(t, a->axis);
    *c = (pnb__copy_args){.dims = {1, 1, s.outer, a->n, s.inner}};
    block_strides(t->in[0]->shape[a->axis], s.inner, c->stride_src);
    block_strides(a->n, s.inner, c->stride_dst);
    *offset_bytes = a->begin * s.inner * pnb__elem_bytes(t);
}

/* y[o][k][i] = x[o][begin + k][i] */
bool pnb__op_slice_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__copy_args c;
    size_t offset;
    slice_args(t, &c, &offset);
    copy_block(t->graph, &c, (const unsigned char *)pnb__data(t->in[0]) + offset, t->data, false);
    return true;
}

/* y[o][k][i] = x[o][begin + k][i]:  dx[o][begin + k][i] += dy[o][k][i], the copy turned round. */
void pnb__op_slice_backward(pnb__tensor *t)
{
    pnb__copy_args c;
    size_t offset;
    slice_args(t, &c, &offset);
    for (int i = 0; i < PNB__DIMS; i++) {
        size_t from = c.stride_src[i];
        c.stride_src[i] = c.stride_dst[i];
        c.stride_dst[i] = from;
    }
    copy_block(t->graph, &c, t->grad, (unsigned char *)t->d_in[0] + offset, true);
}

/* ---- views: same memory, other shape. The planner resolves them; nothing runs. ---- */

/* Elements stay in row-major order: only the counts along the axes change. */
pnb__tensor *pnb__reshape(pnb__tensor *x, int n_dims, const size_t *shape)
{
    if (x == NULL)
        return NULL;
    view_attrs view = {.n_dims = n_dims};
    if (n_dims < 0 || n_dims > PNB__DIMS) {
        pnb__node_fail(x->graph, PNB_SHAPE, "reshape: %d dimensions, the limit is %d", n_dims,
                       PNB__DIMS);
        return NULL;
    }
    size_t n = 1;
    for (int i = 0; i < n_dims; i++) {
        view.shape[i] = shape[i];
        n *= shape[i];
    }
    char tx[96];
    if (n != x->n) {
        pnb__node_fail(x->graph, PNB_SHAPE, "reshape: %s has %zu elements, not %zu",
                       pnb__shape_text(x, tx), x->n, n);
        return NULL;
    }
    return view_node(x, &view);
}

bool pnb__op_view_shape(pnb__tensor *t)
{
    const view_attrs *a = t->attrs;
    t->kind = t->in[0]->kind;
    pnb__set_shape(t, a->n_dims, a->shape);
    t->view_of = t->in[0];
    t->view_offset = a->offset;
    return true;
}

/* The memory is x's: when x is there, so is y. */
bool pnb__op_view_forward(pnb__tensor *t, bool recompute)
{
    (void)t;
    (void)recompute;
    return true;
}

/* The consumers of a view add straight into its root's gradient. */
void pnb__op_view_backward(pnb__tensor *t)
{
    (void)t;
}

/* ---- permute: y[i_0, i_1, ...] has x's axis axes[d] as its axis d ---- */
pnb__tensor *pnb__permute(pnb__tensor *x, const int *axes)
{
    if (x == NULL)
        return NULL;
    int order[PNB__DIMS] = {0};
    for (int i = 0; i < x->n_dims; i++)
        order[i] = axes[i];
    return pnb__node(x->graph, PNB__OP_PERMUTE, &x, 1, order, sizeof order);
}

/* shape[d] = x.shape[axes[d]] */
bool pnb__op_permute_shape(pnb__tensor *t)
{
    const int *order = t->attrs;
    const pnb__tensor *x = t->in[0];
    unsigned seen = 0;
    size_t shape[PNB__DIMS];
    for (int i = 0; i < x->n_dims; i++) {
        if (order[i] < 0 || order[i] >= x->n_dims || (seen >> order[i] & 1U))
            return pnb__node_fail(t->graph, PNB_SHAPE, "permute: axes are not a permutation");
        seen |= 1U << order[i];
        shape[i] = x->shape[order[i]];
    }
    pnb__set_shape(t, x->n_dims, shape);
    return true;
}

/* Dims of the output, padded with 1 on the outside; source strides follow the permutation:
 *   stride_src[d] = stride of x along axes[d],  stride_dst[d] that of a packed tensor */
static void permute_args(const pnb__tensor *t, pnb__copy_args *c)
{
    const int *order = t->attrs;
    const pnb__tensor *x = t->in[0];
    size_t strides[PNB__DIMS], step = 1, out_step = 1;
    for (int i = x->n_dims - 1; i >= 0; i--) {
        strides[i] = step;
        step *= x->shape[i];
    }
    *c = (pnb__copy_args){.dims = {1, 1, 1, 1, 1}};
    int pad = PNB__DIMS - t->n_dims;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        c->dims[pad + i] = t->shape[i];
        c->stride_src[pad + i] = strides[order[i]];
        c->stride_dst[pad + i] = out_step;
        out_step *= t->shape[i];
    }
}

/* y[i] = x[i_(axes^-1)]: the strides of x are read in the order of the new axes. */
bool pnb__op_permute_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__copy_args c;
    permute_args(t, &c);
    copy_block(t->graph, &c, pnb__data(t->in[0]), t->data, false);
    return true;
}

/* The inverse permutation is the same copy with source and destination exchanged. */
void pnb__op_permute_backward(pnb__tensor *t)
{
    pnb__copy_args c;
    permute_args(t, &c);
    for (int i = 0; i < PNB__DIMS; i++) {
        size_t from = c.stride_src[i];
        c.stride_src[i] = c.stride_dst[i];
        c.stride_dst[i] = from;
    }
    copy_block(t->graph, &c, t->grad, t->d_in[0], t->acc_in[0]);
}
