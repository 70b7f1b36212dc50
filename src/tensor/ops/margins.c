/* Margins between the match of a row and its negatives, over all pairs of two sets of rows whose
 * (B,B) scores never exist as a whole.
 *
 *     s_ij = the largest of the K x K products x_ia . y_jb
 *     y_i  = sum over j != i of [margin + s_ij - s_ii]+, or the largest of them
 *
 * A strip of rows at a time, as in pairs.c: its products, its sums (kernels/ref/pairs.inc), and in
 * backward the products again, which become weights in their own place. The margins of columns are
 * those of rows with x and y exchanged: a row's own score must be in its strip. Where x has fewer
 * rows than y their matches lie one behind the other in y. */
#include "kernels/gemm_rows.h"
#include "tensor/ops/strips.h"

#define STRIP ((size_t)1 << 22)  /* products held at once where rows are short, */
#define LEAST_ROWS ((size_t)256) /* and the rows that a product needs to be fast where not */

enum { X, Y };

/* margin: by how much a match should score above every negative; is_hardest: the nearest alone
 * counts. */
typedef struct margin_attrs {
    size_t first; /* row of y that is the match of row 0 */
    double margin;
    bool is_hardest;
} margin_attrs;

/* One tensor on both sides is fine: strips add to gradients. */
pnb__tensor *pnb__pair_margins(pnb__tensor *x, pnb__tensor *y, size_t first, double margin,
                               bool is_hardest)
{
    const margin_attrs attrs = {first, margin, is_hardest};
    if (x == NULL || y == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIR_MARGINS, (pnb__tensor *[]){x, y}, 2, &attrs,
                     sizeof attrs);
}

/* Rows of pairs in a strip; each is K rows of products, as long as the columns have embeddings, K
 * of each. */
static size_t strip_rows(const pnb__tensor *t)
{
    size_t k = t->in[X]->shape[1], each = k * k * t->in[Y]->shape[0];
    return PNB_MIN(PNB_MAX(STRIP / each, (LEAST_ROWS + k - 1) / k), t->n);
}

/* Doubles for a row of hinges stand before the products. */
static size_t room_bytes(const pnb__tensor *t)
{
    return (t->in[Y]->shape[0] * sizeof(double) + 63) / 64 * 64;
}

/* x (B1,K,D), y (B2,K,D), nothing empty, every match a row of y -> (B1) */
bool pnb__op_pair_margins_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[X], *y = t->in[Y];
    const size_t first = ((const margin_attrs *)t->attrs)->first;
    char tx[96], ty[96];
    if (x->n_dims != 3 || y->n_dims != 3 || x->n == 0 || x->shape[0] > y->shape[0] ||
        first > y->shape[0] - x->shape[0] || x->shape[1] != y->shape[1] ||
        x->shape[2] != y->shape[2])
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_margins: rows %s and %s",
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty));
    size_t k = x->shape[1];
    pnb__set_shape(t, 1, x->shape);
    t->saves_in = 3;
    t->work_bytes = t->work_bwd_bytes =
        room_bytes(t) + strip_rows(t) * k * y->shape[0] * k * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)(y->shape[0] * k);
    return true;
}

/* Products of the rows from `first` on with all columns. */
static pnb__margin_args make_strip(const pnb__tensor *t, size_t first, void *work)
{
    const pnb__graph *g = t->graph;
    const margin_attrs *attrs = t->attrs;
    const pnb__tensor *x = t->in[X];
    size_t k = x->shape[1], dim = x->shape[2];
    pnb__margin_args a = {.m = PNB_MIN(strip_rows(t), t->n - first),
                          .n = t->in[Y]->shape[0],
                          .k = k,
                          .first = attrs->first + first,
                          .margin = attrs->margin,
                          .is_hardest = attrs->is_hardest,
                          .products = (unsigned char *)work + room_bytes(t),
                          .hinges = work,
                          .sums = pnb__strip_at(t, t->data, first)};
    pnb__gemm_args m = pnb__gemm_rows(a.m * k, a.n * k, dim, false, true);
    m.a = pnb__strip_at(t, pnb__data(x), first * k * dim);
    m.b = pnb__data(t->in[Y]);
    m.c = a.products;
    g->kernels.gemm(g->ctx, &m);
    return a;
}

/* y_i = sum_j or max_j of [margin + s_ij - s_ii]+ */
bool pnb__op_pair_margins_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        const pnb__margin_args a = make_strip(t, first, t->work);
        t->graph->kernels.margins(t->graph->ctx, &a);
    }
    return true;
}

/* d hinge_ij is 1 at the best product of (i, j) and -1 at that of (i, i):  dx += w y, dy += w^T x
 */
void pnb__op_pair_margins_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    size_t k = t->in[X]->shape[1], dim = t->in[X]->shape[2];
    for (int i = 0; i < 2; i++)
        if (t->d_in[i] != NULL && !t->acc_in[i])
            pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        pnb__margin_args a = make_strip(t, first, t->work_bwd);
        a.d_sums = pnb__strip_at(t, t->grad, first);
        g->kernels.margins_bwd(g->ctx, &a);
        pnb__gemm_args m = pnb__gemm_rows(a.m * k, dim, a.n * k, false, false);
        m.beta = 1;
        m.a = a.products;
        m.b = pnb__data(t->in[Y]);
        m.c = t->d_in[X] == NULL ? NULL : pnb__strip_at(t, t->d_in[X], first * k * dim);
        if (m.c != NULL)
            g->kernels.gemm(g->ctx, &m);
        m = pnb__gemm_rows(a.n * k, dim, a.m * k, true, false);
        m.beta = 1;
        m.a = a.products;
        m.b = pnb__strip_at(t, pnb__data(t->in[X]), first * k * dim);
        m.c = t->d_in[Y];
        if (m.c != NULL)
            g->kernels.gemm(g->ctx, &m);
    }
}
