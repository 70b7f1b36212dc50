/* Losses over samples of distributions, and the largest of a row.
 *
 * match_nll compares every sample of one side with every one of the other (PCME Eq. 5 to 7),
 * pair_log_sums all rows of one set with each other (the sum inside the uniformity loss). Both go
 * over strips of rows: inner products by the matrix product, from them distances and terms
 * (kernels/ref/samples.inc), and in backward the strip again, whose numbers become weights
 * w = d loss / d |x_i - y_j|^2:
 *   dx_i = 2 sum_j w_ij (x_i - y_j),  dy_j = 2 sum_i w_ij (y_j - x_i)
 * as products too. Memory is one strip; strips and sums have a fixed order. */
#include "kernels/gemm_rows.h"
#include "tensor/graph_internal.h"

#define STRIP ((size_t)1 << 18) /* products held at once */

/* Element number `elements` of device memory. */
static unsigned char *at(const pnb__tensor *t, const void *p, size_t elements)
{
    return (unsigned char *)(uintptr_t)p + elements * pnb__elem_bytes(t);
}

/* c (+)= alpha op(a) b:  (m,k)(k,n) -> (m,n), rows of b and c next to each other */
typedef struct product {
    size_t m, n, k;
    bool trans_a, trans_b;
    double alpha;
    const void *a, *b;
    void *c;
    bool accumulate;
} product;

static void multiply(const pnb__tensor *t, const product *p)
{
    pnb__gemm_args m = pnb__gemm_rows(p->m, p->n, p->k, p->trans_a, p->trans_b);
    m.alpha = p->alpha;
    m.beta = p->accumulate;
    m.a = p->a;
    m.b = p->b;
    m.c = p->c;
    t->graph->kernels.gemm(t->graph->ctx, &m);
}

/* d[r] += sums[r] x[r], rows of width dim */
static void add_scaled_rows(const pnb__tensor *t, size_t rows, size_t dim, const void *sums,
                            const void *x, void *d)
{
    const pnb__binary_args b = {.op = PNB__MUL,
                                .dims = {1, 1, 1, rows, dim},
                                .stride_a = {0, 0, 0, dim, 1},
                                .stride_b = {0, 0, 0, 1, 0},
                                .a = x,
                                .b = sums,
                                .dy = x,
                                .d = d,
                                .accumulate = true};
    t->graph->kernels.binary_bwd(t->graph->ctx, &b);
}

/* One strip of weights (m,n) over the rows of x and y; rows (m) is room for sums, cols (n) takes
 * them up. dx and dy are added to and may be NULL. */
typedef struct weights {
    size_t m, n, dim;
    const void *w, *x, *y;
    void *rows, *cols, *dx, *dy;
    bool add_cols;
} weights;

/* dx_i = 2 x_i sum_j w_ij - 2 sum_j w_ij y_j; of dy the second half, the first is `finish_cols` */
static void spread_weights(const pnb__tensor *t, const weights *s)
{
    const pnb__graph *g = t->graph;
    if (s->dx != NULL) {
        g->kernels.sum(g->ctx, s->m, s->n, 1, 2.0, s->w, s->rows, false);
        add_scaled_rows(t, s->m, s->dim, s->rows, s->x, s->dx);
        multiply(t, &(product){s->m, s->dim, s->n, false, false, -2.0, s->w, s->y, s->dx, true});
    }
    if (s->dy != NULL) {
        g->kernels.sum(g->ctx, 1, s->m, s->n, 2.0, s->w, s->cols, s->add_cols);
        multiply(t, &(product){s->n, s->dim, s->m, true, false, -2.0, s->w, s->x, s->dy, true});
    }
}

/* ---- match_nll ---- */

typedef struct match_attrs {
    double factor; /* of the logit under the sigmoid */
} match_attrs;

pnb__tensor *pnb__match_nll(const pnb__match_in *in)
{
    if (in->x == NULL)
        return NULL;
    const match_attrs attrs = {in->factor};
    return pnb__node(in->x->graph, PNB__OP_MATCH_NLL,
                     (pnb__tensor *[]){in->x, in->y, in->scale, in->shift, in->signs}, 5, &attrs,
                     sizeof attrs);
}

/* Rows of the first side that a strip holds. */
static size_t match_rows(const pnb__tensor *t)
{
    size_t j = t->in[0]->shape[1], each = j * t->shape[1] * j;
    return PNB_MAX((size_t)1, PNB_MIN(t->shape[0], STRIP / PNB_MAX(each, (size_t)1)));
}

/* Strip, squares of both sides; backward: gradients of the scalars by pair, sums of weights. */
static size_t match_work(const pnb__tensor *t, bool backward)
{
    size_t n1 = t->shape[0], n2 = t->shape[1], j = t->in[0]->shape[1], rows = match_rows(t);
    size_t n = rows * j * n2 * j + (n1 + n2) * j;
    return n + (backward ? 2 * rows * n2 + (rows + n2) * j : 0);
}

/* x (B1,J,D), y (B2,J,D), scale (), shift (), signs (B1,B2) -> (B1,B2) */
bool pnb__op_match_nll_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = t->in[1], *s = t->in[4];
    char tx[96], ty[96], ts[96];
    bool fits = x->n_dims == 3 && y->n_dims == 3 && x->shape[1] == y->shape[1] &&
                x->shape[2] == y->shape[2] && x->n > 0 && y->n > 0;
    if (!fits || s->n_dims != 2 || s->shape[0] != x->shape[0] || s->shape[1] != y->shape[0] ||
        t->in[2]->n != 1 || t->in[3]->n != 1)
        return pnb__node_fail(t->graph, PNB_SHAPE, "match_nll: samples %s and %s, signs %s",
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty),
                              pnb__shape_text(s, ts));
    pnb__set_shape(t, 2, s->shape);
    t->saves_in = 31; /* backward makes the strips again, of all five */
    t->work_bytes = match_work(t, false) * pnb__elem_bytes(t);
    t->work_bwd_bytes = match_work(t, true) * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)(y->shape[0] * y->shape[1]);
    return true;
}

/* What kernels read of the strip that begins at row `first`; the squares are filled before. */
static pnb__match_args match_strip(const pnb__tensor *t, size_t first, void *work)
{
    const pnb__tensor *x = t->in[0];
    size_t n2 = t->shape[1], j = x->shape[1], dim = x->shape[2], rows = match_rows(t);
    unsigned char *squares = at(t, work, rows * j * n2 * j);
    return (pnb__match_args){.n1 = PNB_MIN(rows, t->shape[0] - first),
                             .n2 = n2,
                             .n_samples = j,
                             .dim = dim,
                             .factor = ((const match_attrs *)t->attrs)->factor,
                             .x = at(t, pnb__data(x), first * j * dim),
                             .y = pnb__data(t->in[1]),
                             .square_x = at(t, squares, first * j),
                             .square_y = at(t, squares, t->shape[0] * j),
                             .signs = at(t, pnb__data(t->in[4]), first * n2),
                             .scale = pnb__data(t->in[2]),
                             .shift = pnb__data(t->in[3]),
                             .products = work};
}

/* |x|^2 and |y|^2 of all samples, once for all strips */
static void match_squares(const pnb__tensor *t, void *work)
{
    const pnb__graph *g = t->graph;
    const pnb__match_args all = match_strip(t, 0, work);
    size_t n1 = t->shape[0] * all.n_samples, n2 = t->shape[1] * all.n_samples;
    g->kernels.row_squares(g->ctx, n1, all.dim, all.x, (void *)(uintptr_t)all.square_x);
    g->kernels.row_squares(g->ctx, n2, all.dim, all.y, (void *)(uintptr_t)all.square_y);
}

/* x y^T of the strip's samples, (n1 J, n2 J) */
static void match_products(const pnb__tensor *t, const pnb__match_args *a)
{
    size_t j = a->n_samples;
    multiply(t, &(product){a->n1 * j, a->n2 * j, a->dim, false, true, 1.0, a->x, a->y, a->products,
                           false});
}

/* nll_it = log J^2 - logsumexp_jk log s(factor sign_it (shift - scale d_jk)) */
bool pnb__op_match_nll_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const pnb__graph *g = t->graph;
    match_squares(t, t->work);
    for (size_t first = 0; first < t->shape[0]; first += match_rows(t)) {
        pnb__match_args a = match_strip(t, first, t->work);
        match_products(t, &a);
        a.nll = at(t, t->data, first * a.n2);
        g->kernels.match_strip(g->ctx, &a);
    }
    return true;
}

/* A strip's part of all gradients; weights take the place of its products. */
static void match_strip_backward(const pnb__tensor *t, size_t first, size_t rows)
{
    const pnb__graph *g = t->graph;
    pnb__match_args a = match_strip(t, first, t->work_bwd);
    size_t j = a.n_samples, pairs = a.n1 * a.n2;
    a.d_scale = at(t, a.square_y, a.n2 * j);
    a.d_shift = at(t, a.d_scale, rows * a.n2);
    a.d_nll = at(t, t->grad, first * a.n2);
    match_products(t, &a);
    g->kernels.match_strip_bwd(g->ctx, &a);
    const void *scalars[2] = {a.d_scale, a.d_shift};
    for (int i = 0; i < 2; i++)
        if (t->d_in[2 + i] != NULL)
            g->kernels.sum(g->ctx, 1, pairs, 1, 1.0, scalars[i], t->d_in[2 + i],
                           first > 0 || t->acc_in[2 + i]);
    unsigned char *sums = at(t, a.d_shift, rows * a.n2);
    void *dx = t->d_in[0] == NULL ? NULL : at(t, t->d_in[0], first * j * a.dim);
    spread_weights(t, &(weights){a.n1 * j, a.n2 * j, a.dim, a.products, a.x, a.y, sums,
                                 at(t, sums, rows * j), dx, t->d_in[1], first > 0});
}

/* nll as in forward:  d|x_j - y_k|^2 by the kernel, and from it x and y; signs are no variables */
void pnb__op_match_nll_backward(pnb__tensor *t)
{
    size_t rows = match_rows(t), j = t->in[0]->shape[1], n2 = t->shape[1];
    const pnb__tensor *y = t->in[1];
    static const int whole[] = {0, 1, 4}; /* x and y may be one tensor: both are added to */
    for (size_t i = 0; i < PNB_COUNT(whole); i++)
        if (t->d_in[whole[i]] != NULL && !t->acc_in[whole[i]])
            pnb__zero(t, t->d_in[whole[i]], t->in[whole[i]]->n * pnb__elem_bytes(t));
    match_squares(t, t->work_bwd);
    for (size_t first = 0; first < t->shape[0]; first += rows)
        match_strip_backward(t, first, rows);
    /* 2 y_k sum_j w_jk: the first half of dy, once all strips have added to the sums */
    const void *cols = at(t, t->work_bwd, match_work(t, true) - n2 * j);
    if (t->d_in[1] != NULL)
        add_scaled_rows(t, n2 * j, y->shape[2], cols, pnb__data(y), t->d_in[1]);
}

/* ---- pair_log_sums ---- */

typedef struct spread_attrs {
    double rate; /* of the squared distance */
} spread_attrs;

pnb__tensor *pnb__pair_log_sums(pnb__tensor *x, double rate)
{
    const spread_attrs attrs = {rate};
    return x == NULL ? NULL
                     : pnb__node(x->graph, PNB__OP_PAIR_LOG_SUMS, &x, 1, &attrs, sizeof attrs);
}

/* Rows that a strip holds. */
static size_t spread_rows(const pnb__tensor *t)
{
    return PNB_MAX((size_t)1, PNB_MIN(t->n, STRIP / t->in[0]->shape[0]));
}

/* x (N,D) -> (N-1): the last row has nobody after it. */
bool pnb__op_pair_log_sums_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0];
    char tx[96];
    if (x->n_dims != 2 || x->shape[0] < 2 || x->shape[1] == 0)
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_log_sums: %s has no two rows",
                              pnb__shape_text(x, tx));
    size_t n = x->shape[0];
    pnb__set_shape(t, 1, (size_t[]){n - 1});
    t->saves_in = 1;
    t->saves_out = true; /* the logarithms are what the weights are normalised by */
    t->work_bytes = (spread_rows(t) * n + n) * pnb__elem_bytes(t);
    t->work_bwd_bytes = t->work_bytes + (spread_rows(t) + n) * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)n;
    return true;
}

/* The strip from row `first` on, its products made. */
static pnb__spread_args spread_strip(const pnb__tensor *t, size_t first, void *work)
{
    const pnb__tensor *x = t->in[0];
    size_t n = x->shape[0], dim = x->shape[1];
    pnb__spread_args a = {.first = first,
                          .n1 = PNB_MIN(spread_rows(t), t->n - first),
                          .n = n,
                          .dim = dim,
                          .rate = ((const spread_attrs *)t->attrs)->rate,
                          .x = pnb__data(x),
                          .square = at(t, work, spread_rows(t) * n),
                          .products = work,
                          .sums = at(t, t->data, first)};
    multiply(t, &(product){a.n1, n, dim, false, true, 1.0, at(t, a.x, first * dim), a.x, a.products,
                           false});
    return a;
}

/* |x_i|^2 of all rows */
static void spread_squares(const pnb__tensor *t, void *work)
{
    const pnb__tensor *x = t->in[0];
    t->graph->kernels.row_squares(t->graph->ctx, x->shape[0], x->shape[1], pnb__data(x),
                                  at(t, work, spread_rows(t) * x->shape[0]));
}

/* y_i = log sum_{j>i} exp(-rate |x_i - x_j|^2), strip after strip */
bool pnb__op_pair_log_sums_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    spread_squares(t, t->work);
    for (size_t first = 0; first < t->n; first += spread_rows(t)) {
        const pnb__spread_args a = spread_strip(t, first, t->work);
        t->graph->kernels.spread_strip(t->graph->ctx, &a);
    }
    return true;
}

/* y_i = log sum_{j>i} exp(-rate |x_i - x_j|^2): x is both sides */
void pnb__op_pair_log_sums_backward(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0];
    size_t n = x->shape[0], dim = x->shape[1], rows = spread_rows(t);
    unsigned char *sums = at(t, t->work_bwd, rows * n + n);
    void *cols = at(t, sums, rows);
    if (!t->acc_in[0])
        pnb__zero(t, t->d_in[0], x->n * pnb__elem_bytes(t));
    spread_squares(t, t->work_bwd);
    for (size_t first = 0; first < t->n; first += rows) {
        pnb__spread_args a = spread_strip(t, first, t->work_bwd);
        a.d_sums = at(t, t->grad, first);
        t->graph->kernels.spread_strip_bwd(t->graph->ctx, &a);
        spread_weights(t, &(weights){a.n1, n, dim, a.products, at(t, a.x, first * dim), a.x, sums,
                                     cols, at(t, t->d_in[0], first * dim), t->d_in[0], first > 0});
    }
    add_scaled_rows(t, n, dim, cols, pnb__data(x), t->d_in[0]); /* as in match_nll */
}

/* ---- row_max ---- */

pnb__tensor *pnb__row_max(pnb__tensor *x)
{
    return x == NULL ? NULL : pnb__node(x->graph, PNB__OP_ROW_MAX, &x, 1, NULL, 0);
}

/* x (..., K), K >= 1 -> (...) */
bool pnb__op_row_max_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0];
    char tx[96];
    if (x->n_dims == 0 || pnb__width(x) == 0)
        return pnb__node_fail(t->graph, PNB_SHAPE, "row_max: %s has no row",
                              pnb__shape_text(x, tx));
    pnb__set_shape(t, x->n_dims - 1, x->shape);
    t->aux_bytes[0] = PNB_MAX(t->n, (size_t)1) * sizeof(int32_t);
    return true;
}

/* y_r = max_k x_rk; the places are kept for backward */
bool pnb__op_row_max_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    t->graph->kernels.row_max(t->graph->ctx, t->n, pnb__width(t->in[0]), pnb__data(t->in[0]),
                              t->data, t->aux[0]);
    return true;
}

/* y_r = x_r,p with p the first place of the largest:  dx_r,p = dy_r, 0 elsewhere */
void pnb__op_row_max_backward(pnb__tensor *t)
{
    t->graph->kernels.row_max_bwd(t->graph->ctx, t->n, pnb__width(t->in[0]), t->aux[0], t->grad,
                                  t->d_in[0], t->acc_in[0]);
}
