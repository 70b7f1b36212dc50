/* matmul: c = op(a) op(b) over the last two dims, for factors that both are values.
 *
 * Leading dims are items of one batched product; op is nothing or a transposition. Products with a
 * weight are linear's, which packs and rounds them. */
#include "kernels/gemm_rows.h"
#include "tensor/graph_internal.h"

typedef struct matmul_attrs {
    bool trans_a, trans_b;
} matmul_attrs;

pnb__tensor *pnb__matmul(pnb__tensor *a, bool trans_a, pnb__tensor *b, bool trans_b)
{
    if (a == NULL || b == NULL)
        return NULL;
    matmul_attrs attrs = {trans_a, trans_b};
    return pnb__node(a->graph, PNB__OP_MATMUL, (pnb__tensor *[]){a, b}, 2, &attrs, sizeof attrs);
}

/* Matrices in a tensor (..., rows, cols). */
static size_t leading(const pnb__tensor *t)
{
    size_t n = 1;
    for (int i = 0; i + 2 < t->n_dims; i++)
        n *= t->shape[i];
    return n;
}

/* a (..., m, k) or transposed, b (..., k, n) or transposed, equal leading dims -> (..., m, n) */
bool pnb__op_matmul_shape(pnb__tensor *t)
{
    const matmul_attrs *m = t->attrs;
    const pnb__tensor *a = t->in[0], *b = t->in[1];
    char ta[96], tb[96];
    bool fits = a->n_dims >= 2 && a->n_dims == b->n_dims;
    for (int i = 0; fits && i + 2 < a->n_dims; i++)
        fits = a->shape[i] == b->shape[i];
    fits = fits && pnb__dim(a, m->trans_a ? -2 : -1) == pnb__dim(b, m->trans_b ? -1 : -2);
    if (!fits)
        return pnb__node_fail(t->graph, PNB_SHAPE, "matmul: %s%s does not fit %s%s",
                              pnb__shape_text(a, ta), m->trans_a ? "^T" : "",
                              pnb__shape_text(b, tb), m->trans_b ? "^T" : "");
    size_t shape[PNB__DIMS];
    for (int i = 0; i < a->n_dims; i++)
        shape[i] = a->shape[i];
    shape[a->n_dims - 2] = pnb__dim(a, m->trans_a ? -1 : -2);
    shape[a->n_dims - 1] = pnb__dim(b, m->trans_b ? -2 : -1);
    pnb__set_shape(t, a->n_dims, shape);
    t->saves_in = 3;
    t->flops = 2.0 * (double)t->n * (double)pnb__dim(a, m->trans_a ? -2 : -1);
    return true;
}

/* c (+)= op(a) op(b) for plain row-major matrices, (m,k)(k,n) -> (m,n), `batch` of them. */
typedef struct product {
    const void *a, *b;
    void *c;
    bool trans_a, trans_b;
    size_t m, n, k, batch;
    bool accumulate;
} product;

static void multiply(const pnb__graph *g, const product *p)
{
    pnb__gemm_args m = pnb__gemm_rows(p->m, p->n, p->k, p->trans_a, p->trans_b);
    m.n_batch = p->batch;
    m.beta = p->accumulate;
    m.a = p->a;
    m.b = p->b;
    m.c = p->c;
    g->kernels.gemm(g->ctx, &m);
}

/* c[i] = op(a[i]) op(b[i]) for every leading index i */
bool pnb__op_matmul_forward(pnb__tensor *t, bool recompute)
{
    const matmul_attrs *m = t->attrs;
    (void)recompute;
    product p = {.a = pnb__data(t->in[0]),
                 .b = pnb__data(t->in[1]),
                 .c = t->data,
                 .trans_a = m->trans_a,
                 .trans_b = m->trans_b,
                 .m = pnb__dim(t, -2),
                 .n = pnb__dim(t, -1),
                 .k = pnb__dim(t->in[0], m->trans_a ? -2 : -1),
                 .batch = leading(t)};
    multiply(t->graph, &p);
    return true;
}

/* c = op(a) op(b).  d op(a) = dc op(b)^T and d op(b) = op(a)^T dc; a transposed factor gets the
 * transpose of that, written as a product with the factors exchanged. */
void pnb__op_matmul_backward(pnb__tensor *t)
{
    const matmul_attrs *m = t->attrs;
    const void *a = pnb__data(t->in[0]), *b = pnb__data(t->in[1]), *dc = t->grad;
    size_t rows = pnb__dim(t, -2), cols = pnb__dim(t, -1);
    size_t inner = pnb__dim(t->in[0], m->trans_a ? -2 : -1), batch = leading(t);
    if (t->d_in[0] != NULL) {
        product p = m->trans_a ? (product){b,     dc,   t->d_in[0], m->trans_b, true,
                                           inner, rows, cols,       batch,      t->acc_in[0]}
                               : (product){dc,   b,     t->d_in[0], false, !m->trans_b,
                                           rows, inner, cols,       batch, t->acc_in[0]};
        multiply(t->graph, &p);
    }
    if (t->d_in[1] != NULL) {
        product p = m->trans_b ? (product){dc,   a,     t->d_in[1], true,  m->trans_a,
                                           cols, inner, rows,       batch, t->acc_in[1]}
                               : (product){a,     dc,   t->d_in[1], !m->trans_a, false,
                                           inner, cols, rows,       batch,       t->acc_in[1]};
        multiply(t->graph, &p);
    }
}
