/* Sums over the distances of all rows of a set from each other, or of two sets.
 *
 * pair_log_sums is the sum inside the uniformity loss (Wang and Isola 2020), of one set each row
 * against those behind it, or of two; pair_kernels adds up a kernel of the distances (maximum mean
 * discrepancy). Both go over strips of rows (strips.h), and make them again for the gradient. */
#include "tensor/ops/strips.h"

/* |x_i|^2 of the first input, then |y_j|^2 of the last, once for all strips; of one set alone they
 * are made twice, which costs nothing beside its pairs. */
static void all_squares(const pnb__tensor *t, void *squares)
{
    const pnb__graph *g = t->graph;
    const pnb__tensor *x = t->in[0], *y = t->in[t->n_in - 1];
    size_t n = x->shape[0], dim = x->shape[1];
    g->kernels.row_squares(g->ctx, n, dim, pnb__data(x), squares);
    g->kernels.row_squares(g->ctx, y->shape[0], dim, pnb__data(y), pnb__strip_at(t, squares, n));
}

/* ---- pair_log_sums ---- */

typedef struct spread_attrs {
    double rate; /* of the squared distance */
} spread_attrs;

/* Of one set each row is compared with those behind it; of two every row with all of the other. */
pnb__tensor *pnb__pair_log_sums(pnb__tensor *x, double rate)
{
    const spread_attrs attrs = {rate};
    return x == NULL ? NULL
                     : pnb__node(x->graph, PNB__OP_PAIR_LOG_SUMS, &x, 1, &attrs, sizeof attrs);
}

pnb__tensor *pnb__cross_log_sums(pnb__tensor *x, pnb__tensor *y, double rate)
{
    const spread_attrs attrs = {rate};
    if (x == NULL || y == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIR_LOG_SUMS, (pnb__tensor *[]){x, y}, 2, &attrs,
                     sizeof attrs);
}

/* What rows are compared with. */
static pnb__tensor *spread_columns(const pnb__tensor *t)
{
    return t->in[t->n_in - 1];
}

/* Rows that a strip holds. */
static size_t spread_rows(const pnb__tensor *t)
{
    return PNB_MAX((size_t)1, PNB_MIN(t->n, PNB__STRIP / spread_columns(t)->shape[0]));
}

/* x (N,D) -> (N-1): the last row has nobody after it; x (N,D), y (M,D) -> (N) */
bool pnb__op_pair_log_sums_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = spread_columns(t);
    char tx[96], ty[96];
    size_t alone = t->n_in == 1;
    if (x->n_dims != 2 || y->n_dims != 2 || x->shape[0] < 1 + alone || y->shape[0] == 0 ||
        x->shape[1] == 0 || y->shape[1] != x->shape[1])
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_log_sums: %s against %s is no two rows",
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty));
    size_t n = y->shape[0];
    pnb__set_shape(t, 1, (size_t[]){x->shape[0] - alone});
    t->saves_in = 3;
    t->saves_out = true; /* the logarithms are what the weights are normalised by */
    t->work_bytes = (spread_rows(t) * n + x->shape[0] + n) * pnb__elem_bytes(t);
    t->work_bwd_bytes = t->work_bytes + (spread_rows(t) + n) * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)n;
    return true;
}

/* The strip from row `first` on, its products made; squares were before it. */
static pnb__spread_args spread_strip(const pnb__tensor *t, size_t first, void *work)
{
    const pnb__tensor *x = t->in[0], *y = spread_columns(t);
    size_t n = y->shape[0], dim = x->shape[1];
    unsigned char *squares = pnb__strip_at(t, work, spread_rows(t) * n);
    pnb__spread_args a = {.n1 = PNB_MIN(spread_rows(t), t->n - first),
                          .n = n,
                          .dim = dim,
                          .skip = first + 1,
                          .all_columns = t->n_in == 2,
                          .rate = ((const spread_attrs *)t->attrs)->rate,
                          .x = pnb__strip_at(t, pnb__data(x), first * dim),
                          .y = pnb__data(y),
                          .square_x = pnb__strip_at(t, squares, first),
                          .square_y = pnb__strip_at(t, squares, x->shape[0]),
                          .products = work,
                          .sums = pnb__strip_at(t, t->data, first)};
    pnb__strip_multiply(
        t, &(pnb__strip_product){a.n1, n, dim, false, true, 1.0, a.x, a.y, a.products, false});
    return a;
}

/* y_i = log sum_j exp(-rate |x_i - x_j|^2), strip after strip */
bool pnb__op_pair_log_sums_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    all_squares(t, pnb__strip_at(t, t->work, spread_rows(t) * spread_columns(t)->shape[0]));
    for (size_t first = 0; first < t->n; first += spread_rows(t)) {
        const pnb__spread_args a = spread_strip(t, first, t->work);
        t->graph->kernels.spread_strip(t->graph->ctx, &a);
    }
    return true;
}

/* y_i = log sum_j exp(-rate |x_i - x_j|^2): of one set x is both sides */
void pnb__op_pair_log_sums_backward(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = spread_columns(t);
    size_t n = y->shape[0], dim = x->shape[1], rows = spread_rows(t);
    unsigned char *sums = pnb__strip_at(t, t->work_bwd, rows * n + x->shape[0] + n);
    void *cols = pnb__strip_at(t, sums, rows), *d_y = t->d_in[t->n_in - 1];
    for (int i = 0; i < t->n_in; i++)
        if (t->d_in[i] != NULL && !t->acc_in[i])
            pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
    all_squares(t, pnb__strip_at(t, t->work_bwd, rows * n));
    for (size_t first = 0; first < t->n; first += rows) {
        pnb__spread_args a = spread_strip(t, first, t->work_bwd);
        void *d_x = t->d_in[0] == NULL ? NULL : pnb__strip_at(t, t->d_in[0], first * dim);
        a.d_sums = pnb__strip_at(t, t->grad, first);
        t->graph->kernels.spread_strip_bwd(t->graph->ctx, &a);
        pnb__spread_weights(t, &(pnb__strip_weights){a.n1, n, dim, a.products, a.x, a.y, sums, cols,
                                                     d_x, d_y, first > 0});
    }
    if (d_y != NULL) /* as in match_nll */
        pnb__add_scaled_rows(t, n, dim, cols, pnb__data(y), d_y);
}

/* ---- pair_kernels ---- */

/* k = e^(-gamma f) of the squared distance f, or of its root, as PVSE's code has it. */
typedef struct kernel_attrs {
    double gamma;
    bool is_root;
} kernel_attrs;

pnb__tensor *pnb__pair_kernels(pnb__tensor *x, pnb__tensor *y, double gamma, bool is_root)
{
    const kernel_attrs attrs = {gamma, is_root};
    if (x == NULL || y == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIR_KERNELS, (pnb__tensor *[]){x, y}, 2, &attrs,
                     sizeof attrs);
}

/* Rows that a strip holds. */
static size_t kernel_rows(const pnb__tensor *t)
{
    return PNB_MAX((size_t)1, PNB_MIN(t->n, PNB__STRIP / t->in[1]->shape[0]));
}

/* x (B1,D), y (B2,D) -> (B1); a strip, squares of both sides, and of backward the sums. */
bool pnb__op_pair_kernels_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = t->in[1];
    char tx[96], ty[96];
    if (x->n_dims != 2 || y->n_dims != 2 || x->shape[1] != y->shape[1] || x->n == 0 || y->n == 0)
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_kernels: rows %s and %s",
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty));
    size_t n1 = x->shape[0], n2 = y->shape[0];
    pnb__set_shape(t, 1, x->shape);
    t->saves_in = 3;
    t->work_bytes = (kernel_rows(t) * n2 + n1 + n2) * pnb__elem_bytes(t);
    t->work_bwd_bytes = t->work_bytes + (kernel_rows(t) + n2) * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)n2;
    return true;
}

/* The strip from row `first` on, its products made; squares were before it. */
static pnb__kernel_args kernel_strip(const pnb__tensor *t, size_t first, void *work)
{
    const kernel_attrs *attrs = t->attrs;
    size_t n1 = t->n, n2 = t->in[1]->shape[0], dim = t->in[0]->shape[1];
    unsigned char *squares = pnb__strip_at(t, work, kernel_rows(t) * n2);
    const pnb__kernel_args a = {.m = PNB_MIN(kernel_rows(t), n1 - first),
                                .n = n2,
                                .dim = dim,
                                .gamma = attrs->gamma,
                                .is_root = attrs->is_root,
                                .x = pnb__strip_at(t, pnb__data(t->in[0]), first * dim),
                                .y = pnb__data(t->in[1]),
                                .square_x = pnb__strip_at(t, squares, first),
                                .square_y = pnb__strip_at(t, squares, n1),
                                .products = work,
                                .sums = pnb__strip_at(t, t->data, first)};
    pnb__strip_multiply(
        t, &(pnb__strip_product){a.m, n2, dim, false, true, 1.0, a.x, a.y, work, false});
    return a;
}

/* y_i = sum_j exp(-gamma f_ij) */
bool pnb__op_pair_kernels_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    all_squares(t, pnb__strip_at(t, t->work, kernel_rows(t) * t->in[1]->shape[0]));
    for (size_t first = 0; first < t->n; first += kernel_rows(t)) {
        const pnb__kernel_args a = kernel_strip(t, first, t->work);
        t->graph->kernels.kernel_strip(t->graph->ctx, &a);
    }
    return true;
}

/* y_i = sum_j exp(-gamma f_ij):  d|x_i - y_j|^2 by the kernel; x and y may be one tensor */
void pnb__op_pair_kernels_backward(pnb__tensor *t)
{
    size_t n1 = t->n, n2 = t->in[1]->shape[0], dim = t->in[0]->shape[1];
    unsigned char *sums = pnb__strip_at(t, t->work_bwd, kernel_rows(t) * n2 + n1 + n2);
    void *cols = pnb__strip_at(t, sums, kernel_rows(t));
    for (int i = 0; i < 2; i++)
        if (t->d_in[i] != NULL && !t->acc_in[i])
            pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
    all_squares(t, pnb__strip_at(t, t->work_bwd, kernel_rows(t) * n2));
    for (size_t first = 0; first < n1; first += kernel_rows(t)) {
        pnb__kernel_args a = kernel_strip(t, first, t->work_bwd);
        a.d_sums = pnb__strip_at(t, t->grad, first);
        t->graph->kernels.kernel_strip_bwd(t->graph->ctx, &a);
        void *dx = t->d_in[0] == NULL ? NULL : pnb__strip_at(t, t->d_in[0], first * dim);
        pnb__spread_weights(t, &(pnb__strip_weights){a.m, n2, dim, a.products, a.x, a.y, sums, cols,
                                                     dx, t->d_in[1], first > 0});
    }
    if (t->d_in[1] != NULL)
        pnb__add_scaled_rows(t, n2, dim, cols, pnb__data(t->in[1]), t->d_in[1]);
}
