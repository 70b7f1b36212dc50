/* linear: a product with a weight, and what follows it in a block.
 *
 *   pre = x W^T + b,  y = act(pre) * col_scale + residual
 * torch's Linear with what follows it in a block: W is (N,K), or (K,N) when transposed; col_scale
 * is LayerScale (Touvron et al. 2021). The activation's input `pre` is kept for backward, its
 * output is made from it again: one of the two has to be stored, and `pre` is the one that gives
 * both. */
#include "kernels/gemm_rows.h"
#include "tensor/graph_internal.h"

enum { X, W, BIAS, COL_SCALE, RESIDUAL, N_LINEAR_INPUTS };

/* transpose_w: W is (K,N), as CLIP's projections are stored. */
typedef struct linear_attrs {
    pnb__unary act;
    bool transpose_w;
} linear_attrs;

pnb__tensor *pnb__linear(pnb__tensor *x, pnb__tensor *w, const pnb__linear_opts *opts)
{
    if (x == NULL || w == NULL)
        return NULL;
    pnb__linear_opts none = {.act = PNB__IDENTITY};
    const pnb__linear_opts *o = opts != NULL ? opts : &none;
    pnb__tensor *in[N_LINEAR_INPUTS] = {x, w, o->bias, o->col_scale, o->residual};
    linear_attrs attrs = {o->act, o->transpose_w};
    return pnb__node(x->graph, PNB__OP_LINEAR, in, N_LINEAR_INPUTS, &attrs, sizeof attrs);
}

/* b and col_scale may be absent, and are never broadcast. */
static bool is_vector_of(const pnb__tensor *v, size_t n)
{
    return v == NULL || (v->n_dims == 1 && v->n == n);
}

/* A slice of the rows of W (N,K) is a range of the columns of W^T; of W (K,N) only the whole. */
static size_t first_column(const pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    size_t offset = 0;
    for (const pnb__tensor *w = t->in[W]; w->view_of != NULL; w = w->view_of)
        offset += w->view_offset;
    return a->transpose_w ? offset : offset / pnb__width(t->in[X]);
}

/* NULL where the factor is a value of the graph. */
static const pnb__param *weight_of(const pnb__tensor *t)
{
    return pnb__root_const(t->in[W])->param;
}

pnb__store pnb__linear_store(const pnb__tensor *t)
{
    return weight_of(t) != NULL ? weight_of(t)->store : PNB__STORE_REAL;
}

/* Whether graph g multiplies by a packed w in bfloat16: of weights that stay as they are. */
static bool rounds_to_bf16(const pnb__graph *g, const pnb__param *w)
{
    return w != NULL && w->bf16_parts > 0 && (w->bf16_parts == 1 || g->kernels.parts_gain) &&
           !g->with_grad && w->store != PNB__STORE_I8 && g->kernels.real == PNB__F32;
}

/* And by w as it is at the moment, forward and backward: mixed precision (Micikevicius et al.
 * 2018), in bfloat16, whose range needs no loss scaling. */
static bool rounds_in_training(const pnb__tensor *t)
{
    const pnb__param *w = weight_of(t);
    return t->graph->rounds_products && w != NULL && w->trains_in_bf16 &&
           w->store == PNB__STORE_REAL && t->graph->kernels.real == PNB__F32;
}

int pnb__linear_bf16_parts(const pnb__tensor *t)
{
    return rounds_to_bf16(t->graph, weight_of(t)) ? weight_of(t)->bf16_parts : 0;
}

/* Factors of its product are rounded to bfloat16, whole or as the weight is at the moment; or its
 * rows to bytes, which what bfloat16 takes from them changes little beside. */
static bool rounds(const pnb__tensor *t)
{
    return pnb__linear_bf16_parts(t) == 1 || rounds_in_training(t) ||
           (pnb__linear_store(t) == PNB__STORE_I8 && t->graph->kernels.i8_halves);
}

/* x alone is rounded by the product: bias, col_scale and residual meet its sum in floats. */
bool pnb__linear_reads_halves(const pnb__tensor *t, int input)
{
    return input == X && rounds(t);
}

/* y = act(x W^T + b) may end in bfloat16; a stream that residuals are added to may not: what is
 * rounded off would be lost to every later block. Backward bends by act's input. */
bool pnb__linear_makes_halves(const pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    return rounds(t) && t->in[RESIDUAL] == NULL && t->in[COL_SCALE] == NULL &&
           !(t->graph->with_grad && pnb__unary_bwd_reads_output(a->act));
}

/* Packed columns can be entered at multiples of this; 0: not at all. */
static size_t group_of(const pnb__graph *g, const pnb__param *w)
{
    return rounds_to_bf16(g, w)        ? g->kernels.gemm_bf16_group
           : w->store == PNB__STORE_I8 ? g->kernels.gemm_i8_group
                                       : g->kernels.gemm_group;
}

/* Products that read a weight packed and in no other form. */
static bool wants_packed(const pnb__graph *g, const pnb__param *w)
{
    return w != NULL && (w->store != PNB__STORE_REAL || rounds_to_bf16(g, w));
}

bool pnb__linear_wants_packed(const pnb__tensor *t)
{
    return wants_packed(t->graph, weight_of(t));
}

/* What a block asks before it slices q off a stored q|k|v. */
bool pnb__linear_can_begin(const pnb__graph *g, const pnb__param *w, size_t row)
{
    size_t group = group_of(g, w);
    return !wants_packed(g, w) || (group > 0 && row % group == 0);
}

/* Small types are for inference, from a column where the packed ones can be entered; bytes also by
 * rows of W only. */
static bool check_stored(pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    const pnb__kernels *k = &t->graph->kernels;
    size_t width = pnb__width(t->in[X]);
    bool is_i8 = pnb__linear_store(t) == PNB__STORE_I8;
    size_t group = group_of(t->graph, weight_of(t));
    if (t->graph->with_grad) /* a rounded weight has no place for a small update */
        return pnb__node_fail(t->graph, PNB_UNSUPPORTED,
                              "%s is stored in %d bits and cannot be trained; train the model it "
                              "was made from",
                              weight_of(t)->name, is_i8 ? 8 : 16);
    bool whole = pnb__root(t->in[W])->n == t->in[W]->n;
    if ((a->transpose_w && (is_i8 || !whole)) || group == 0 || first_column(t) % group != 0 ||
        (is_i8 && width >= 1U << 16))
        return pnb__node_fail(t->graph, PNB_UNSUPPORTED, "%s cannot be used in %d bits here",
                              weight_of(t)->name, is_i8 ? 8 : 16);
    if (is_i8)
        t->work_bytes = k->gemm_i8_work(pnb__rows(t), width);
    pnb__linear_reserve(t);
    return true;
}

/* dz, and dy * act(pre) beside it where col_scale is there; none where dz may replace dy. */
static size_t dz_bytes(const pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    bool bends = a->act != PNB__IDENTITY, scales = t->in[COL_SCALE] != NULL;
    size_t bytes = (1U + (unsigned)scales) * t->n * pnb__elem_bytes(t);
    return (bends || scales) && (t->in[RESIDUAL] != NULL || scales) ? bytes : 0;
}

/* Up to the next line of the caches. */
static size_t to_line(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* dz in halves serves both products of backward: dy is that already, or is rounded once where the
 * table can. */
static bool rounds_dz_once(const pnb__tensor *t)
{
    return rounds_in_training(t) && !t->is_half && t->graph->kernels.halves_of != NULL;
}

/* Then no product of backward has to round it. */
static bool has_half_dz(const pnb__tensor *t)
{
    return t->is_half || rounds_dz_once(t);
}

/* The workspace of backward: dz, dz rounded, what its products round. Each begins a line. */
static size_t half_dz_offset(const pnb__tensor *t)
{
    return to_line(dz_bytes(t));
}

static size_t rounded_offset(const pnb__tensor *t)
{
    return half_dz_offset(t) + (rounds_dz_once(t) ? to_line(t->n * sizeof(uint16_t)) : 0);
}

/* Of the three products: y = x W^T, dx = dz W, dW = dz^T x or x^T dz. */
static void reserve_in_training(pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    const pnb__kernels *k = &t->graph->kernels;
    size_t rows = pnb__rows(t), n = pnb__width(t), width = pnb__width(t->in[X]);
    bool half_x = t->in[X]->is_half, half_dz = has_half_dz(t), is_kn = a->transpose_w;
    const pnb__gemm_args y = {
        .m = rows, .n = n, .k = width, .a_halves = half_x, .c_halves = t->is_half};
    const pnb__gemm_args dx = {
        .m = rows, .n = width, .k = n, .a_halves = half_dz, .c_halves = half_x};
    const pnb__gemm_args dw = {.m = is_kn ? width : n,
                               .n = is_kn ? n : width,
                               .k = rows,
                               .a_halves = is_kn ? half_x : half_dz,
                               .b_halves = is_kn ? half_dz : half_x};
    t->work_bytes = k->gemm_rounded_work(&y);
    if (t->aux_bytes[0] > 0)
        t->aux_bytes[0] = t->n * pnb__elem_bytes(t);
    if (t->graph->with_grad)
        t->work_bwd_bytes =
            rounded_offset(t) + PNB_MAX(k->gemm_rounded_work(&dx), k->gemm_rounded_work(&dw));
}

/* Where rounded factors and sums lie: what is in halves needs no rounding. */
void pnb__linear_reserve(pnb__tensor *t)
{
    int parts = pnb__linear_bf16_parts(t);
    if (parts > 0)
        t->work_bytes =
            t->in[X]->is_half
                ? 0
                : t->graph->kernels.gemm_bf16_work(pnb__rows(t), pnb__width(t->in[X]), parts);
    else if (rounds_in_training(t))
        reserve_in_training(t);
}

/* A product of forward or backward with a weight that moves; `work` only where it rounds. */
static void multiply_live(const pnb__tensor *t, pnb__gemm_args *m, void *work)
{
    const pnb__graph *g = t->graph;
    bool rounds = rounds_in_training(t);
    m->work = rounds ? work : NULL;
    (rounds ? g->kernels.gemm_rounded : g->kernels.gemm)(g->ctx, m);
}

static void *rounded_work(const pnb__tensor *t)
{
    return t->work_bwd != NULL ? (unsigned char *)t->work_bwd + rounded_offset(t) : NULL;
}

/* x (..., K), W (N,K) or (K,N), b (N), col_scale (N), residual (..., N) -> (..., N).
 * y may take residual's place and residual's gradient dy's: a block's stream x + f(x) stays in one
 * buffer. Kept is `pre` where act or col_scale needs it. */
bool pnb__op_linear_shape(pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    const pnb__tensor *x = t->in[X], *w = t->in[W], *res = t->in[RESIDUAL];
    char tx[96], tw[96];
    if (x->n_dims < 1 || w->n_dims != 2 || pnb__width(x) != w->shape[a->transpose_w ? 0 : 1])
        return pnb__node_fail(t->graph, PNB_SHAPE, "linear: x %s does not fit weight %s%s",
                              pnb__shape_text(x, tx), pnb__shape_text(w, tw),
                              a->transpose_w ? " (transposed)" : "");
    size_t shape[PNB__DIMS], n = w->shape[a->transpose_w ? 1 : 0];
    for (int i = 0; i < x->n_dims; i++)
        shape[i] = x->shape[i];
    shape[x->n_dims - 1] = n;
    pnb__set_shape(t, x->n_dims, shape);
    if (!is_vector_of(t->in[BIAS], n) || !is_vector_of(t->in[COL_SCALE], n))
        return pnb__node_fail(t->graph, PNB_SHAPE, "linear: bias and scale must have %zu values",
                              n);
    if (res != NULL && res->n != t->n)
        return pnb__node_fail(t->graph, PNB_SHAPE, "linear: residual %s does not fit output %s",
                              pnb__shape_text(res, tx), pnb__shape_text(t, tw));
    bool bends = a->act != PNB__IDENTITY, scales = t->in[COL_SCALE] != NULL;
    t->flops = 2.0 * (double)t->n * (double)pnb__width(x);
    t->saves_in = 1U << X | 1U << W | (scales ? 1U << COL_SCALE : 0U);
    t->steals = RESIDUAL;
    t->inplace_in = RESIDUAL;
    if (pnb__linear_wants_packed(t))
        return check_stored(t);
    t->work_bwd_bytes = t->graph->with_grad ? dz_bytes(t) : 0;
    if (t->graph->with_grad && (bends || scales))
        t->aux_bytes[0] = t->n * pnb__elem_bytes(t);
    pnb__linear_reserve(t);
    if (!t->graph->with_grad)
        return true;
    t->recompute = bends && !scales && res == NULL; /* y is act(pre) and nothing else */
    return true;
}

/* Packing pays for a weight that stays as it is: not while it is trained. */
bool pnb__linear_can_pack(const pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    const pnb__tensor *root = pnb__root_const(t->in[W]);
    size_t group = t->graph->kernels.gemm_group, n = pnb__width(t), k = pnb__width(t->in[X]);
    if (group == 0 || root->param == NULL || !root->param->fixed || pnb__linear_wants_packed(t) ||
        rounds_in_training(t) || n == 0 || k == 0)
        return false;
    if (a->transpose_w && root->n != t->in[W]->n)
        return false;
    const pnb__packed *p = root->param->packed;
    return first_column(t) % group == 0 && root->n % k == 0 &&
           (p == NULL || (p->k == k && !p->is_conv2d));
}

/* The whole weight even where t reads a slice of it: packed once, it serves every slice. */
void pnb__linear_factor(const pnb__tensor *t, pnb__gemm_args *m)
{
    const linear_attrs *a = t->attrs;
    const pnb__tensor *root = pnb__root_const(t->in[W]);
    m->trans_b = !a->transpose_w;
    m->k = pnb__width(t->in[X]);
    m->n = root->n / m->k;
    m->ldb = a->transpose_w ? m->n : m->k;
    m->b = root->param->data;
}

/* y = act(x W^T + b) * col_scale + residual in one product with its epilogue; again: act(pre). */
bool pnb__op_linear_forward(pnb__tensor *t, bool recompute)
{
    const linear_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    if (recompute && t->is_half) {
        g->kernels.halves_unary(g->ctx, a->act, t->n, t->aux[0], t->data);
        return true;
    }
    if (recompute) {
        g->kernels.unary(g->ctx, a->act, t->n, 1, 0, t->aux[0], t->data);
        return true;
    }
    size_t n = pnb__width(t), k = pnb__width(t->in[X]);
    pnb__store store = pnb__linear_store(t);
    /* With gradients the weight changes under its packed copy: products read W itself. */
    const pnb__packed *packed =
        pnb__linear_wants_packed(t) || (!g->with_grad && pnb__linear_can_pack(t))
            ? weight_of(t)->packed
            : NULL;
    pnb__gemm_args m = {
        .trans_b = !a->transpose_w,
        .m = pnb__rows(t),
        .n = n,
        .k = k,
        .lda = k,
        .ldb = a->transpose_w ? n : k,
        .ldc = n,
        .n_batch = 1,
        .alpha = 1,
        .a = pnb__data(t->in[X]),
        .b = packed != NULL ? NULL : pnb__data(t->in[W]),
        .packed = packed,
        .packed_first = packed != NULL ? first_column(t) : 0,
        .c = t->data,
        .bias = t->in[BIAS] ? pnb__data(t->in[BIAS]) : NULL,
        .act = a->act,
        .col_scale = t->in[COL_SCALE] ? pnb__data(t->in[COL_SCALE]) : NULL,
        .residual = t->in[RESIDUAL] ? pnb__data(t->in[RESIDUAL]) : NULL,
        .ld_residual = n,
        .pre = t->aux[0],
        .work = t->work,
        .a_halves = t->in[X]->is_half,
        .c_halves = t->is_half,
    };
    if (store == PNB__STORE_I8)
        g->kernels.gemm_i8(g->ctx, &m);
    else if (pnb__linear_bf16_parts(t) > 0)
        g->kernels.gemm_bf16(g->ctx, &m);
    else
        multiply_live(t, &m, t->work);
    return true;
}

/* y = act(pre) * s + residual:  dz = d pre = (dy * s) * act'(pre),  ds = sum_rows dy * act(pre)
 * dz is made in place in dy when nobody else needs dy, else in the workspace. */
static const void *pre_activation_grad(pnb__tensor *t)
{
    const linear_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    const pnb__kernels *k = &g->kernels;
    if (t->aux[0] == NULL)
        return t->grad;
    if (t->is_half) {
        k->halves_unary_bwd(g->ctx, a->act, t->n, t->aux[0], t->grad, t->grad);
        return t->grad;
    }
    size_t rows = pnb__rows(t), n = pnb__width(t);
    void *dz = dz_bytes(t) > 0 ? t->work_bwd : t->grad;
    const void *dy = t->grad;
    if (t->in[COL_SCALE] != NULL) {
        unsigned char *product = (unsigned char *)t->work_bwd + t->n * pnb__elem_bytes(t);
        pnb__binary_args mul = {
            .op = PNB__MUL, .dims = {1, 1, 1, rows, n}, .stride_a = {0, 0, 0, n, 1}};
        if (t->d_in[COL_SCALE] != NULL) { /* d col_scale = sum_rows dy * act(pre) */
            const void *bent = t->aux[0];
            if (a->act != PNB__IDENTITY) {
                k->unary(g->ctx, a->act, t->n, 1, 0, t->aux[0], product);
                bent = product;
            }
            mul.stride_b[3] = n;
            mul.stride_b[4] = 1;
            mul.a = bent;
            mul.b = dy;
            mul.y = product;
            k->binary(g->ctx, &mul);
            k->sum(g->ctx, 1, rows, n, 1.0, product, t->d_in[COL_SCALE], t->acc_in[COL_SCALE]);
        }
        mul.stride_b[3] = 0;
        mul.stride_b[4] = 1;
        mul.a = dy;
        mul.b = pnb__data(t->in[COL_SCALE]);
        mul.y = dz;
        k->binary(g->ctx, &mul);
        dy = dz;
    }
    if (a->act == PNB__IDENTITY)
        return dz;
    bool from_output = pnb__unary_bwd_reads_output(a->act);
    if (from_output) /* pre has no other reader left, so it may become act(pre) */
        k->unary(g->ctx, a->act, t->n, 1, 0, t->aux[0], t->aux[0]);
    k->unary_bwd(g->ctx, a->act, t->n, 1, from_output ? NULL : t->aux[0],
                 from_output ? t->aux[0] : NULL, dy, dz, false);
    return dz;
}

/* pre = x W^T, x (R,K), W (N,K):  dW = dz^T x;  pre = x W, W (K,N):  dW = x^T dz. */
static void weight_grad(const pnb__tensor *t, const void *dz)
{
    const linear_attrs *a = t->attrs;
    size_t n = pnb__width(t), k = pnb__width(t->in[X]);
    pnb__gemm_args m = {.trans_a = true,
                        .m = a->transpose_w ? k : n,
                        .n = a->transpose_w ? n : k,
                        .k = pnb__rows(t),
                        .lda = a->transpose_w ? k : n,
                        .ldb = a->transpose_w ? n : k,
                        .ldc = a->transpose_w ? n : k,
                        .n_batch = 1,
                        .alpha = 1,
                        .beta = t->acc_in[W],
                        .a = a->transpose_w ? pnb__data(t->in[X]) : dz,
                        .b = a->transpose_w ? dz : pnb__data(t->in[X]),
                        .c = t->d_in[W],
                        .act = PNB__IDENTITY,
                        .a_halves = a->transpose_w ? t->in[X]->is_half : has_half_dz(t),
                        .b_halves = a->transpose_w ? has_half_dz(t) : t->in[X]->is_half};
    multiply_live(t, &m, rounded_work(t));
}

/* pre = x W^T:  dx = dz W;  with W (K,N), pre = x W:  dx = dz W^T. */
static void input_grad(const pnb__tensor *t, const void *dz)
{
    const linear_attrs *a = t->attrs;
    size_t n = pnb__width(t), k = pnb__width(t->in[X]);
    pnb__gemm_args m = {.trans_b = a->transpose_w,
                        .m = pnb__rows(t),
                        .n = k,
                        .k = n,
                        .lda = n,
                        .ldb = a->transpose_w ? n : k,
                        .ldc = k,
                        .n_batch = 1,
                        .alpha = 1,
                        .beta = t->acc_in[X],
                        .a = dz,
                        .b = pnb__data(t->in[W]),
                        .c = t->d_in[X],
                        .act = PNB__IDENTITY,
                        .a_halves = has_half_dz(t),
                        .c_halves = t->in[X]->is_half};
    multiply_live(t, &m, rounded_work(t));
}

/* pre = x W^T + b:  db = sum_rows dz, from dz as it is: floats lose nothing by the rounding that
 * the products ask for. */
static void bias_grad(const pnb__tensor *t, const void *dz)
{
    const pnb__kernels *k = &t->graph->kernels;
    size_t rows = pnb__rows(t), width = pnb__width(t);
    if (t->is_half)
        k->halves_sum(t->graph->ctx, rows, width, dz, t->d_in[BIAS], t->acc_in[BIAS]);
    else
        k->sum(t->graph->ctx, 1, rows, width, 1.0, dz, t->d_in[BIAS], t->acc_in[BIAS]);
}

/* dz as the products read it. */
static const void *factor_of(const pnb__tensor *t, const void *dz)
{
    if (!rounds_dz_once(t))
        return dz;
    void *half = (unsigned char *)t->work_bwd + half_dz_offset(t);
    t->graph->kernels.halves_of(t->graph->ctx, t->n, dz, half);
    return half;
}

/* y = act(x W^T + b) * s + residual:  dx = dz W,  db = sum_rows dz,  d residual = dy
 * dz is made in place of dy only where there is no residual, so dy is whole when it comes last;
 * input order matters too: x and residual may be one tensor, then the later one adds. */
void pnb__op_linear_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    const void *dz = pre_activation_grad(t), *factor = factor_of(t, dz);
    if (t->d_in[X] != NULL)
        input_grad(t, factor);
    if (t->d_in[W] != NULL)
        weight_grad(t, factor);
    if (t->d_in[BIAS] != NULL)
        bias_grad(t, dz);
    if (t->d_in[RESIDUAL] == NULL || t->d_in[RESIDUAL] == t->grad)
        return;
    if (!t->acc_in[RESIDUAL])
        pnb__zero(t, t->d_in[RESIDUAL], t->n * pnb__elem_bytes(t));
    g->kernels.axpy(g->ctx, t->n, 1.0, t->grad, t->d_in[RESIDUAL]);
}
