/* Losses over all pairs of two sets of rows whose (B1,B2) logits never exist as a whole.
 *
 *     l_ij = x_i . y_j + row_i + col_j
 *     pair_softplus         y_i = sum_j log(1 + exp(l_ij))           PPCL, SigLIP, PCME++'s
 *     pair_labelled         the same - sum_j Y_ij l_ij, Y by marks    of mixed samples, pseudo
 * labels pair_blend            y_i = sum_j softmax_j(l_ij) v_j           a teacher's matching
 * pair_cross_entropy    y_i = log sum_j exp(l_ij) - l_i,t(i)     InfoNCE, one way of it
 *
 * Both go over strips of rows: a strip's logits by the matrix product, its sums, and in backward
 * the logits again, which become weights w_ij = dy_i d y_i / d l_ij in their own place:
 *     dx_i = sum_j w_ij y_j,  dy_j = sum_i w_ij x_i,  drow_i = sum_j w_ij,  dcol_j = sum_i w_ij
 * One product more than with kept logits buys memory of one strip, whatever B is. Strips are of
 * fixed size and added in their order. */
#include "kernels/gemm_rows.h"
#include "tensor/ops/strips.h"

#define STRIP ((size_t)1 << 22)  /* logits held at once where rows are short, */
#define LEAST_ROWS ((size_t)256) /* and the rows that a product needs to be fast where not */

enum { X, Y, ROW, COL, TARGETS = ROW, BLENDED = ROW };

static size_t strip_rows(const pnb__tensor *t)
{
    size_t rows = PNB_MAX(STRIP / PNB_MAX(t->in[Y]->shape[0], (size_t)1), LEAST_ROWS);
    return PNB_MAX(PNB_MIN(rows, t->in[X]->shape[0]), (size_t)1);
}

/* x (B1,D), y (B2,D), nothing empty -> (B1) */
static bool set_pairs(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[X], *y = t->in[Y];
    char tx[96], ty[96];
    if (x->n_dims != 2 || y->n_dims != 2 || x->shape[1] != y->shape[1] || x->n == 0 || y->n == 0)
        return pnb__node_fail(t->graph, PNB_SHAPE, "%s: rows %s and %s", t->op->name,
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty));
    pnb__set_shape(t, 1, x->shape);
    t->work_bytes = t->work_bwd_bytes = strip_rows(t) * y->shape[0] * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)y->shape[0];
    return true;
}

/* The rows of one strip. */
typedef struct strip {
    size_t first, m, n, dim;
    const void *x, *y; /* the strip's rows, all columns */
    void *l;           /* (m,n) logits, then weights */
} strip;

/* l_ij of the rows from `first` on; row and col may be NULL. */
static strip make_strip(const pnb__tensor *t, size_t first, const pnb__tensor *row,
                        const pnb__tensor *col, void *work)
{
    const pnb__graph *g = t->graph;
    const pnb__tensor *x = t->in[X], *y = t->in[Y];
    strip s = {.first = first,
               .m = PNB_MIN(strip_rows(t), x->shape[0] - first),
               .n = y->shape[0],
               .dim = x->shape[1],
               .x = pnb__strip_at(t, pnb__data(x), first * x->shape[1]),
               .y = pnb__data(y),
               .l = work};
    pnb__gemm_args m = pnb__gemm_rows(s.m, s.n, s.dim, false, true);
    m.a = s.x;
    m.b = s.y;
    m.c = s.l;
    m.bias = col == NULL ? NULL : pnb__data(col);
    g->kernels.gemm(g->ctx, &m);
    if (row != NULL) {
        const pnb__binary_args add = {.op = PNB__ADD,
                                      .dims = {1, 1, 1, s.m, s.n},
                                      .stride_a = {0, 0, 0, s.n, 1},
                                      .stride_b = {0, 0, 0, 1, 0},
                                      .a = s.l,
                                      .b = pnb__strip_at(t, pnb__data(row), first),
                                      .y = s.l};
        g->kernels.binary(g->ctx, &add);
    }
    return s;
}

/* dx += w y, dy += w^T x; either may be NULL. */
static void add_products(const pnb__tensor *t, const strip *s)
{
    const pnb__graph *g = t->graph;
    pnb__gemm_args m = pnb__gemm_rows(s->m, s->dim, s->n, false, false);
    m.beta = 1;
    m.a = s->l;
    m.b = s->y;
    m.c = t->d_in[X] == NULL ? NULL : pnb__strip_at(t, t->d_in[X], s->first * s->dim);
    if (m.c != NULL)
        g->kernels.gemm(g->ctx, &m);
    m = pnb__gemm_rows(s->n, s->dim, s->m, true, false);
    m.beta = 1;
    m.a = s->l;
    m.b = s->x;
    m.c = t->d_in[Y];
    if (m.c != NULL)
        g->kernels.gemm(g->ctx, &m);
}

/* Strips add to gradients, and one tensor may stand on both sides. */
static void begin_gradients(const pnb__tensor *t)
{
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i] != NULL && t->d_in[i] != NULL && !t->acc_in[i])
            pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
}

/* ---- pair_softplus ---- */

pnb__tensor *pnb__pair_softplus(pnb__tensor *x, pnb__tensor *y, pnb__tensor *row, pnb__tensor *col)
{
    if (x == NULL || y == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIR_SOFTPLUS, (pnb__tensor *[]){x, y, row, col}, 4, NULL,
                     0);
}

/* What is added to logits. */
static bool check_added(pnb__tensor *t)
{
    char text[96];
    for (int i = ROW; i <= COL; i++) {
        const pnb__tensor *add = t->in[i];
        size_t n = t->in[i == ROW ? X : Y]->shape[0];
        if (add != NULL && (add->n_dims != 1 || add->shape[0] != n))
            return pnb__node_fail(t->graph, PNB_SHAPE, "%s: %s to add to %zu rows", t->op->name,
                                  pnb__shape_text(add, text), n);
    }
    return true;
}

bool pnb__op_pair_softplus_shape(pnb__tensor *t)
{
    t->saves_in = 15; /* backward makes the strips again */
    return set_pairs(t) && check_added(t);
}

/* y_i = sum_j softplus(l_ij) */
bool pnb__op_pair_softplus_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const pnb__kernels *k = &t->graph->kernels;
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        strip s = make_strip(t, first, t->in[ROW], t->in[COL], t->work);
        k->unary(t->graph->ctx, PNB__SOFTPLUS, s.m * s.n, 0, 0, s.l, s.l);
        k->sum(t->graph->ctx, s.m, s.n, 1, 1.0, s.l, pnb__strip_at(t, t->data, first), false);
    }
    return true;
}

/* w_ij times dy_i, and all gradients of it. */
static void spread_row_weights(const pnb__tensor *t, const strip *s)
{
    const pnb__kernels *k = &t->graph->kernels;
    const pnb__binary_args scale = {.op = PNB__MUL,
                                    .dims = {1, 1, 1, s->m, s->n},
                                    .stride_a = {0, 0, 0, s->n, 1},
                                    .stride_b = {0, 0, 0, 1, 0},
                                    .a = s->l,
                                    .b = pnb__strip_at(t, t->grad, s->first),
                                    .y = s->l};
    k->binary(t->graph->ctx, &scale);
    if (t->in[ROW] != NULL && t->d_in[ROW] != NULL)
        k->sum(t->graph->ctx, s->m, s->n, 1, 1.0, s->l, pnb__strip_at(t, t->d_in[ROW], s->first),
               true);
    if (t->in[COL] != NULL && t->d_in[COL] != NULL)
        k->sum(t->graph->ctx, 1, s->m, s->n, 1.0, s->l, t->d_in[COL], true);
    add_products(t, s);
}

/* y_i = sum_j softplus(l_ij):  w_ij = s(l_ij) dy_i */
void pnb__op_pair_softplus_backward(pnb__tensor *t)
{
    const pnb__kernels *k = &t->graph->kernels;
    begin_gradients(t);
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        strip s = make_strip(t, first, t->in[ROW], t->in[COL], t->work_bwd);
        k->unary(t->graph->ctx, PNB__SIGMOID, s.m * s.n, 0, 0, s.l, s.l);
        spread_row_weights(t, &s);
    }
}

/* ---- pair_labelled ---- */

enum { COLUMNS = COL + 1, WEIGHTS, MATCH };

/* base: the label of all pairs that have no mark. */
typedef struct label_attrs {
    double base;
} label_attrs;

pnb__tensor *pnb__pair_labelled(pnb__tensor *x, pnb__tensor *y, pnb__tensor *row, pnb__tensor *col,
                                const pnb__marks *marks)
{
    const label_attrs attrs = {marks->base};
    if (x == NULL || y == NULL || marks->columns == NULL || marks->weights == NULL)
        return NULL;
    return pnb__node(
        x->graph, PNB__OP_PAIR_LABELLED,
        (pnb__tensor *[]){x, y, row, col, marks->columns, marks->weights, marks->match}, 7, &attrs,
        sizeof attrs);
}

/* A second strip beside the logits, which say who is a pseudo positive. */
bool pnb__op_pair_labelled_shape(pnb__tensor *t)
{
    const pnb__tensor *columns = t->in[COLUMNS], *weights = t->in[WEIGHTS], *match = t->in[MATCH];
    char tc[96], tw[96];
    if (!set_pairs(t) || !check_added(t))
        return false;
    if (columns->kind != PNB__INT32 || columns->n_dims != 2 || columns->shape[0] != t->n ||
        weights->n_dims != 2 || weights->shape[0] != t->n ||
        weights->shape[1] != columns->shape[1] ||
        (match != NULL && (match->kind != PNB__INT32 || match->n != t->n)))
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_labelled: marks %s and %s of %zu rows",
                              pnb__shape_text(columns, tc), pnb__shape_text(weights, tw), t->n);
    t->saves_in = 127;
    t->work_bytes += strip_rows(t) * pnb__elem_bytes(t);
    t->work_bwd_bytes *= 2;
    return true;
}

/* Marks of a strip's rows. */
static pnb__label_args label_strip(const pnb__tensor *t, const strip *s)
{
    size_t k = t->in[COLUMNS]->shape[1];
    const pnb__tensor *match = t->in[MATCH];
    return (pnb__label_args){.m = s->m,
                             .n = s->n,
                             .k = k,
                             .base = ((const label_attrs *)t->attrs)->base,
                             .columns = (const int32_t *)pnb__data(t->in[COLUMNS]) + s->first * k,
                             .weights = pnb__strip_at(t, pnb__data(t->in[WEIGHTS]), s->first * k),
                             .match = match == NULL ? NULL
                                                    : (const int32_t *)pnb__data(match) + s->first,
                             .logits = s->l};
}

/* y_i = sum_j softplus(l_ij) - Y_ij l_ij: the second part first, since the strip of logits becomes
 * one of softplus. */
bool pnb__op_pair_labelled_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const pnb__kernels *k = &t->graph->kernels;
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        strip s = make_strip(t, first, t->in[ROW], t->in[COL], t->work);
        pnb__label_args labels = label_strip(t, &s);
        labels.dot = pnb__strip_at(t, t->work, strip_rows(t) * s.n);
        k->pair_labels(t->graph->ctx, &labels);
        k->unary(t->graph->ctx, PNB__SOFTPLUS, s.m * s.n, 0, 0, s.l, s.l);
        k->sum(t->graph->ctx, s.m, s.n, 1, 1.0, s.l, pnb__strip_at(t, t->data, first), false);
        k->axpy(t->graph->ctx, s.m, -1.0, labels.dot, pnb__strip_at(t, t->data, first));
    }
    return true;
}

/* w_ij = (s(l_ij) - Y_ij) dy_i; labels have no gradient */
void pnb__op_pair_labelled_backward(pnb__tensor *t)
{
    const pnb__kernels *k = &t->graph->kernels;
    begin_gradients(t);
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        strip s = make_strip(t, first, t->in[ROW], t->in[COL], t->work_bwd);
        pnb__label_args labels = label_strip(t, &s);
        labels.out = pnb__strip_at(t, t->work_bwd, strip_rows(t) * s.n);
        k->unary(t->graph->ctx, PNB__SIGMOID, s.m * s.n, 0, 0, s.l, labels.out);
        k->pair_labels(t->graph->ctx, &labels);
        s.l = labels.out;
        spread_row_weights(t, &s);
    }
}

/* ---- pair_cross_entropy ---- */

pnb__tensor *pnb__pair_cross_entropy(pnb__tensor *x, pnb__tensor *y, pnb__tensor *targets)
{
    if (x == NULL || y == NULL || targets == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIR_CROSS_ENTROPY, (pnb__tensor *[]){x, y, targets}, 3,
                     NULL, 0);
}

/* The log-sums of all rows are kept, so that weights need no second look at a strip. */
bool pnb__op_pair_cross_entropy_shape(pnb__tensor *t)
{
    const pnb__tensor *targets = t->in[TARGETS];
    char text[96];
    if (!set_pairs(t))
        return false;
    if (targets->kind != PNB__INT32 || targets->n != t->n)
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_cross_entropy: targets %s of %zu rows",
                              pnb__shape_text(targets, text), t->n);
    t->saves_in = 7;
    t->aux_bytes[0] = t->n * pnb__elem_bytes(t);
    return true;
}

static const int32_t *targets_from(const pnb__tensor *t, size_t first)
{
    return (const int32_t *)pnb__data(t->in[TARGETS]) + first;
}

/* y_i = log sum_j exp(l_ij) - l_i,t(i) */
bool pnb__op_pair_cross_entropy_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        strip s = make_strip(t, first, NULL, NULL, t->work);
        t->graph->kernels.cross_entropy(t->graph->ctx, s.m, s.n, s.l, targets_from(t, first),
                                        pnb__strip_at(t, t->data, first),
                                        pnb__strip_at(t, t->aux[0], first));
    }
    return true;
}

/* y_i = lse_i - l_i,t(i):  w_ij = (exp(l_ij - lse_i) - [j = t(i)]) dy_i */
void pnb__op_pair_cross_entropy_backward(pnb__tensor *t)
{
    begin_gradients(t);
    for (size_t first = 0; first < t->n; first += strip_rows(t)) {
        strip s = make_strip(t, first, NULL, NULL, t->work_bwd);
        t->graph->kernels.cross_entropy_bwd(t->graph->ctx, s.m, s.n, s.l, targets_from(t, first),
                                            pnb__strip_at(t, t->aux[0], first),
                                            pnb__strip_at(t, t->grad, first), s.l, false);
        add_products(t, &s);
    }
}

/* ---- pair_blend ---- */

/* scale: of the logits that shares are the softmax of. */
typedef struct blend_attrs {
    double scale;
} blend_attrs;

pnb__tensor *pnb__pair_blend(pnb__tensor *x, pnb__tensor *y, pnb__tensor *v, double scale)
{
    const blend_attrs attrs = {scale};
    if (x == NULL || y == NULL || v == NULL)
        return NULL;
    return pnb__node(x->graph, PNB__OP_PAIR_BLEND, (pnb__tensor *[]){x, y, v}, 3, &attrs,
                     sizeof attrs);
}

/* Shares are another's: x and y have no gradient, which is 0 where it is asked for. */
bool pnb__op_pair_blend_shape(pnb__tensor *t)
{
    const pnb__tensor *v = t->in[BLENDED];
    char tv[96];
    if (!set_pairs(t))
        return false;
    if (v->n_dims != 2 || v->shape[0] != t->in[Y]->shape[0])
        return pnb__node_fail(t->graph, PNB_SHAPE, "pair_blend: %s to blend by %zu columns",
                              pnb__shape_text(v, tv), t->in[Y]->shape[0]);
    pnb__set_shape(t, 2, (size_t[]){t->in[X]->shape[0], v->shape[1]});
    t->saves_in = 3;
    return true;
}

/* softmax_j(scale x_i . y_j) of a strip */
static strip blend_strip(const pnb__tensor *t, size_t first, void *work)
{
    const pnb__graph *g = t->graph;
    double scale = ((const blend_attrs *)t->attrs)->scale;
    strip s = make_strip(t, first, NULL, NULL, work);
    g->kernels.unary(g->ctx, PNB__AFFINE, s.m * s.n, scale, 0, s.l, s.l);
    g->kernels.softmax(g->ctx, s.m, s.n, false, s.l, s.l);
    return s;
}

/* y = p v */
bool pnb__op_pair_blend_forward(pnb__tensor *t, bool recompute)
{
    const pnb__graph *g = t->graph;
    size_t width = t->shape[1];
    (void)recompute;
    for (size_t first = 0; first < t->shape[0]; first += strip_rows(t)) {
        const strip s = blend_strip(t, first, t->work);
        pnb__gemm_args m = pnb__gemm_rows(s.m, width, s.n, false, false);
        m.a = s.l;
        m.b = pnb__data(t->in[BLENDED]);
        m.c = pnb__strip_at(t, t->data, first * width);
        g->kernels.gemm(g->ctx, &m);
    }
    return true;
}

/* y = p v:  dv = p^T dy */
void pnb__op_pair_blend_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    size_t width = t->shape[1];
    begin_gradients(t);
    for (size_t first = 0; first < t->shape[0] && t->d_in[BLENDED] != NULL;
         first += strip_rows(t)) {
        const strip s = blend_strip(t, first, t->work_bwd);
        pnb__gemm_args m = pnb__gemm_rows(s.n, width, s.m, true, false);
        m.beta = 1;
        m.a = s.l;
        m.b = pnb__strip_at(t, t->grad, first * width);
        m.c = t->d_in[BLENDED];
        g->kernels.gemm(g->ctx, &m);
    }
}
