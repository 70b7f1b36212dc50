/* cholesky and triangular solves.
 *
 * Gradients in the matrix form of Murray 2016, "Differentiation of the Cholesky decomposition",
 * section 3: products and solves, where the loop form of the same paper would be a kernel of its
 * own. Triangles are cut with row copies, so that the only kernels used are those every device
 * has. */
#include "kernels/gemm_rows.h"
#include "tensor/graph_internal.h"

pnb__tensor *pnb__cholesky(pnb__tensor *a)
{
    return a == NULL ? NULL : pnb__node(a->graph, PNB__OP_CHOLESKY, &a, 1, NULL, 0);
}

/* a (n,n), its lower triangle read -> L (n,n), zeros above. Backward wants three such squares. */
bool pnb__op_cholesky_shape(pnb__tensor *t)
{
    const pnb__tensor *a = t->in[0];
    char ta[96];
    if (a->n_dims != 2 || a->shape[0] != a->shape[1])
        return pnb__node_fail(t->graph, PNB_SHAPE, "cholesky: %s is not square",
                              pnb__shape_text(a, ta));
    pnb__same_shape(t, a);
    t->saves_out = true;
    t->work_bwd_bytes = 3 * t->n * pnb__elem_bytes(t);
    return true;
}

/* A = L L^T; false when A is not positive definite, which the run reports as NUMERIC. */
bool pnb__op_cholesky_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    return t->graph->kernels.cholesky(t->graph->ctx, t->shape[0], pnb__data(t->in[0]), t->data);
}

/* tril(in), (n,n), zeros above the diagonal; phi(in), whose diagonal is halved, when half is
 * asked. */
static void lower_triangle(const pnb__tensor *t, size_t n, const void *in, void *out, bool half)
{
    const pnb__graph *g = t->graph;
    size_t bytes = pnb__elem_bytes(t);
    pnb__zero(t, out, n * n * bytes);
    for (size_t i = 0; i < n; i++) {
        size_t at = i * n * bytes;
        pnb__copy_args row = {.dims = {1, 1, 1, 1, i + 1},
                              .stride_src = {0, 0, 0, 0, 1},
                              .stride_dst = {0, 0, 0, 0, 1},
                              .src = (const unsigned char *)in + at,
                              .dst = (unsigned char *)out + at};
        g->kernels.copy(g->ctx, &row);
        if (half)
            g->kernels.axpy(g->ctx, 1, -0.5, (const unsigned char *)in + at + i * bytes,
                            (unsigned char *)out + at + i * bytes);
    }
}

/* c = alpha op(a) op(b): (m,k)(k,n) -> (m,n) */
static void multiply(const pnb__tensor *t, const size_t mnk[3], bool trans_a, const void *a,
                     bool trans_b, const void *b, double alpha, void *c)
{
    pnb__gemm_args m = pnb__gemm_rows(mnk[0], mnk[1], mnk[2], trans_a, trans_b);
    m.alpha = alpha;
    m.a = a;
    m.b = b;
    m.c = c;
    t->graph->kernels.gemm(t->graph->ctx, &m);
}

/* out (+)= in^T, (n,n) */
static void transpose_square(const pnb__tensor *t, size_t n, const void *in, void *out,
                             bool accumulate)
{
    pnb__copy_args c = {.dims = {1, 1, 1, n, n},
                        .stride_src = {0, 0, 0, 1, n},
                        .stride_dst = {0, 0, 0, n, 1},
                        .src = in,
                        .dst = out,
                        .accumulate = accumulate};
    t->graph->kernels.copy(t->graph->ctx, &c);
}

/* A = L L^T:  dA = 1/2 (S + S^T),  S = L^-T phi(L^T dL) L^-1
 * phi takes the lower triangle and halves the diagonal. dA is symmetric: the gradient with respect
 * to an A whose halves move together, which is how a covariance does. */
void pnb__op_cholesky_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    size_t n = t->shape[0], block = t->n * pnb__elem_bytes(t);
    unsigned char *w0 = t->work_bwd, *w1 = w0 + block, *w2 = w1 + block;
    const void *l = t->data;
    lower_triangle(t, n, t->grad, w1, false); /* dL above the diagonal means nothing */
    multiply(t, (const size_t[]){n, n, n}, true, l, false, w1, 1.0, w0);
    lower_triangle(t, n, w0, w1, true);                  /* phi(L^T dL) */
    g->kernels.tri_solve(g->ctx, n, n, true, l, w1, w0); /* L^-T phi */
    transpose_square(t, n, w0, w1, false);
    g->kernels.tri_solve(g->ctx, n, n, true, l, w1, w2); /* S^T = L^-T (L^-T phi)^T */
    if (!t->acc_in[0])
        pnb__zero(t, t->d_in[0], block);
    transpose_square(t, n, w2, w0, false);
    g->kernels.axpy(g->ctx, t->n, 0.5, w0, t->d_in[0]);
    g->kernels.axpy(g->ctx, t->n, 0.5, w2, t->d_in[0]);
}

typedef struct solve_attrs {
    bool transpose;
} solve_attrs;

pnb__tensor *pnb__tri_solve(pnb__tensor *l, pnb__tensor *b, bool transpose)
{
    if (l == NULL || b == NULL)
        return NULL;
    solve_attrs attrs = {transpose};
    return pnb__node(l->graph, PNB__OP_TRI_SOLVE, (pnb__tensor *[]){l, b}, 2, &attrs, sizeof attrs);
}

/* L (n,n) lower, b (n,m) -> x (n,m) with op(L) x = b. */
bool pnb__op_tri_solve_shape(pnb__tensor *t)
{
    const pnb__tensor *l = t->in[0], *b = t->in[1];
    char tl[96], tb[96];
    if (l->n_dims != 2 || l->shape[0] != l->shape[1] || b->n_dims != 2 ||
        b->shape[0] != l->shape[0])
        return pnb__node_fail(t->graph, PNB_SHAPE, "tri_solve: L %s does not fit b %s",
                              pnb__shape_text(l, tl), pnb__shape_text(b, tb));
    pnb__same_shape(t, b);
    t->saves_in = 1;
    t->saves_out = true;
    t->work_bwd_bytes = (b->n + 2 * l->n) * pnb__elem_bytes(t);
    return true;
}

/* op(L) x = b by substitution, column by column of b; L is never inverted. */
bool pnb__op_tri_solve_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.tri_solve(t->graph->ctx, t->shape[0], t->shape[1],
                                ((const solve_attrs *)t->attrs)->transpose, pnb__data(t->in[0]),
                                pnb__data(t->in[1]), t->data);
    return true;
}

/* op(L) x = b:  db = op(L)^-T dx
 *   x = L^-1 b:   dL = -tril(db x^T)
 *   x = L^-T b:   dL = -tril(x db^T)
 * tril because nothing above the diagonal of L is read. */
void pnb__op_tri_solve_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    bool transpose = ((const solve_attrs *)t->attrs)->transpose;
    size_t n = t->shape[0], m = t->shape[1], bytes = pnb__elem_bytes(t);
    /* db (n,m), then db x^T or its transpose (n,n), then the lower triangle of that */
    unsigned char *db = t->work_bwd, *outer = db + t->n * bytes, *lower = outer + n * n * bytes;
    g->kernels.tri_solve(g->ctx, n, m, !transpose, pnb__data(t->in[0]), t->grad, db);
    if (t->d_in[0] != NULL) {
        multiply(t, (const size_t[]){n, n, m}, false, transpose ? t->data : (void *)db, true,
                 transpose ? (void *)db : t->data, -1.0, outer);
        lower_triangle(t, n, outer, lower, false);
        if (!t->acc_in[0])
            pnb__zero(t, t->d_in[0], n * n * bytes);
        g->kernels.axpy(g->ctx, n * n, 1.0, lower, t->d_in[0]);
    }
    if (t->d_in[1] != NULL) {
        if (!t->acc_in[1])
            pnb__zero(t, t->d_in[1], t->n * bytes);
        g->kernels.axpy(g->ctx, t->n, 1.0, db, t->d_in[1]);
    }
}
