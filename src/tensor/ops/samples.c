/* Losses over samples of distributions.
 *
 * match_nll compares every sample of one side with every one of the other (PCME Eq. 5 to 7),
 * match_sums adds these up over rows. Both go over strips of rows (strips.h): products, from them
 * distances and terms (kernels/ref/samples.inc), and in backward the strip again. */
#include "tensor/ops/strips.h"

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
    size_t j = t->in[0]->shape[1], each = j * t->in[1]->shape[0] * j;
    return PNB_MAX((size_t)1, PNB_MIN(t->in[0]->shape[0], PNB__STRIP / PNB_MAX(each, (size_t)1)));
}

/* Strip, squares of both sides; backward: gradients of the scalars by pair, sums of weights. */
static size_t match_work(const pnb__tensor *t, bool backward)
{
    size_t n1 = t->in[0]->shape[0], n2 = t->in[1]->shape[0], j = t->in[0]->shape[1];
    size_t rows = match_rows(t), n = rows * j * n2 * j + (n1 + n2) * j;
    return n + (backward ? 2 * rows * n2 + (rows + n2) * j : 0);
}

/* x (B1,J,D), y (B2,J,D), scale (), shift (); a loop holds the terms of a pair */
static bool match_fits(const pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = t->in[1];
    return x->n_dims == 3 && x->shape[1] <= PNB__MATCH_MOST_SAMPLES && y->n_dims == 3 &&
           x->shape[1] == y->shape[1] && x->shape[2] == y->shape[2] && x->n > 0 && y->n > 0 &&
           t->in[2]->n == 1 && t->in[3]->n == 1;
}

/* signs (B1,B2) -> (B1,B2) */
bool pnb__op_match_nll_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = t->in[1], *s = t->in[4];
    char tx[96], ty[96], ts[96];
    if (!match_fits(t) || s->n_dims != 2 || s->shape[0] != x->shape[0] ||
        s->shape[1] != y->shape[0])
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

/* What kernels read of the strip that begins at row `first`; squares are filled before, signs and
 * results the caller's to set. Both ops begin their attributes with the factor. */
static pnb__match_args match_strip(const pnb__tensor *t, size_t first, void *work)
{
    const pnb__tensor *x = t->in[0];
    size_t n1 = x->shape[0], n2 = t->in[1]->shape[0];
    size_t j = x->shape[1], dim = x->shape[2], rows = match_rows(t);
    unsigned char *squares = pnb__strip_at(t, work, rows * j * n2 * j);
    return (pnb__match_args){.n1 = PNB_MIN(rows, n1 - first),
                             .n2 = n2,
                             .n_samples = j,
                             .dim = dim,
                             .factor = ((const match_attrs *)t->attrs)->factor,
                             .x = pnb__strip_at(t, pnb__data(x), first * j * dim),
                             .y = pnb__data(t->in[1]),
                             .square_x = pnb__strip_at(t, squares, first * j),
                             .square_y = pnb__strip_at(t, squares, n1 * j),
                             .scale = pnb__data(t->in[2]),
                             .shift = pnb__data(t->in[3]),
                             .products = work};
}

/* |x|^2 and |y|^2 of all samples, once for all strips */
static void match_squares(const pnb__tensor *t, void *work)
{
    const pnb__graph *g = t->graph;
    const pnb__match_args all = match_strip(t, 0, work);
    size_t n1 = t->in[0]->shape[0] * all.n_samples, n2 = all.n2 * all.n_samples;
    g->kernels.row_squares(g->ctx, n1, all.dim, all.x, (void *)(uintptr_t)all.square_x);
    g->kernels.row_squares(g->ctx, n2, all.dim, all.y, (void *)(uintptr_t)all.square_y);
}

/* x y^T of the strip's samples, (n1 J, n2 J) */
static void match_products(const pnb__tensor *t, const pnb__match_args *a)
{
    size_t j = a->n_samples;
    pnb__strip_multiply(t, &(pnb__strip_product){a->n1 * j, a->n2 * j, a->dim, false, true, 1.0,
                                                 a->x, a->y, a->products, false});
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
        a.signs = pnb__strip_at(t, pnb__data(t->in[4]), first * a.n2);
        a.nll = pnb__strip_at(t, t->data, first * a.n2);
        g->kernels.match_strip(g->ctx, &a);
    }
    return true;
}

/* A strip's part of all gradients, signs and d_nll given; products become weights. */
static void match_strip_backward(const pnb__tensor *t, pnb__match_args *a, size_t first, bool adds)
{
    const pnb__graph *g = t->graph;
    size_t j = a->n_samples, pairs = a->n1 * a->n2, rows = match_rows(t);
    a->d_scale = pnb__strip_at(t, a->square_y, a->n2 * j);
    a->d_shift = pnb__strip_at(t, a->d_scale, rows * a->n2);
    match_products(t, a);
    g->kernels.match_strip_bwd(g->ctx, a);
    const void *scalars[2] = {a->d_scale, a->d_shift};
    for (int i = 0; i < 2; i++) {
        bool sums_up = adds || t->acc_in[2 + i];
        if (t->d_in[2 + i] != NULL)
            g->kernels.sum(g->ctx, 1, pairs, 1, 1.0, scalars[i], t->d_in[2 + i], sums_up);
    }
    unsigned char *sums = pnb__strip_at(t, a->d_shift, rows * a->n2);
    void *dx = t->d_in[0] == NULL ? NULL : pnb__strip_at(t, t->d_in[0], first * j * a->dim);
    pnb__spread_weights(t, &(pnb__strip_weights){a->n1 * j, a->n2 * j, a->dim, a->products, a->x,
                                                 a->y, sums, pnb__strip_at(t, sums, rows * j), dx,
                                                 t->d_in[1], adds});
}

/* x and y may be one tensor: both are added to. */
static void match_begin(const pnb__tensor *t)
{
    for (size_t i = 0; i < 2; i++)
        if (t->d_in[i] != NULL && !t->acc_in[i])
            pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
    match_squares(t, t->work_bwd);
}

/* 2 y_k sum_j w_jk: the first half of dy, once all strips have added to the sums. */
static void match_end(const pnb__tensor *t)
{
    size_t j = t->in[0]->shape[1], n2 = t->in[1]->shape[0];
    const pnb__tensor *y = t->in[1];
    const void *cols = pnb__strip_at(t, t->work_bwd, match_work(t, true) - n2 * j);
    if (t->d_in[1] != NULL)
        pnb__add_scaled_rows(t, n2 * j, y->shape[2], cols, pnb__data(y), t->d_in[1]);
}

/* nll as in forward:  d|x_j - y_k|^2 by the kernel, and from it x and y; signs are no variables */
void pnb__op_match_nll_backward(pnb__tensor *t)
{
    if (t->d_in[4] != NULL && !t->acc_in[4])
        pnb__zero(t, t->d_in[4], t->in[4]->n * pnb__elem_bytes(t));
    match_begin(t);
    for (size_t first = 0; first < t->shape[0]; first += match_rows(t)) {
        pnb__match_args a = match_strip(t, first, t->work_bwd);
        a.signs = pnb__strip_at(t, pnb__data(t->in[4]), first * a.n2);
        a.d_nll = pnb__strip_at(t, t->grad, first * a.n2);
        match_strip_backward(t, &a, first, first > 0);
    }
    match_end(t);
}

/* ---- match_sums ----
 *
 * The same summed over each row, so that nothing of size B1 B2 is held: signs, labels and terms are
 * made a strip at a time. A pair of label Y counts Y times as a match and 1 - Y times as none;
 * where labels are 1 and 0 alone (is_hard) one look at it is enough. */

typedef struct sums_attrs {
    match_attrs match; /* first */
    double base;
    bool is_hard;
    size_t row, column; /* of the marks: where x and y begin */
} sums_attrs;

/* Marks without a match: no pair takes another's label here. */
pnb__tensor *pnb__match_sums(const pnb__match_in *in, const pnb__marks *marks, bool is_hard)
{
    const sums_attrs attrs = {{in->factor}, marks->base, is_hard, marks->row, marks->column};
    if (in->x == NULL || marks->columns == NULL || marks->weights == NULL)
        return NULL;
    return pnb__node(
        in->x->graph, PNB__OP_MATCH_SUMS,
        (pnb__tensor *[]){in->x, in->y, in->scale, in->shift, marks->columns, marks->weights}, 6,
        &attrs, sizeof attrs);
}

/* Behind the room of match_nll: signs, labels less than 0, terms or their gradients. */
bool pnb__op_match_sums_shape(pnb__tensor *t)
{
    const pnb__tensor *x = t->in[0], *y = t->in[1], *columns = t->in[4], *marks = t->in[5];
    char tx[96], ty[96], tm[96];
    size_t end = ((const sums_attrs *)t->attrs)->row + x->shape[0];
    if (!match_fits(t) || columns->kind != PNB__INT32 || columns->n_dims != 2 ||
        marks->n_dims != 2 || columns->shape[0] < end || marks->shape[0] != columns->shape[0] ||
        marks->shape[1] != columns->shape[1])
        return pnb__node_fail(t->graph, PNB_SHAPE, "match_sums: samples %s and %s, marks %s",
                              pnb__shape_text(x, tx), pnb__shape_text(y, ty),
                              pnb__shape_text(marks, tm));
    pnb__set_shape(t, 1, x->shape);
    size_t extra = 3 * match_rows(t) * y->shape[0];
    t->saves_in = 63;
    t->work_bytes = (match_work(t, false) + extra) * pnb__elem_bytes(t);
    t->work_bwd_bytes = (match_work(t, true) + extra) * pnb__elem_bytes(t);
    t->flops = 2.0 * (double)x->n * (double)(y->shape[0] * y->shape[1]);
    return true;
}

/* What a strip has beside match_nll's, (n1, n2) each. */
typedef struct marked {
    pnb__match_args a;
    size_t first, n;
    unsigned char *signs, *labels, *terms; /* labels: -Y */
} marked;

/* The strip from row `first` on with its labels; nothing is looked at yet. */
static marked marked_strip(const pnb__tensor *t, size_t first, bool backward)
{
    const pnb__graph *g = t->graph;
    const sums_attrs *attrs = t->attrs;
    void *work = backward ? t->work_bwd : t->work;
    marked s = {.a = match_strip(t, first, work), .first = first};
    size_t k = t->in[4]->shape[1], all = match_rows(t) * s.a.n2, row = attrs->row + first;
    s.n = s.a.n1 * s.a.n2;
    s.signs = pnb__strip_at(t, work, match_work(t, backward));
    s.labels = pnb__strip_at(t, s.signs, all);
    s.terms = pnb__strip_at(t, s.labels, all);
    s.a.signs = s.signs;
    s.a.nll = s.terms, s.a.d_nll = s.terms;
    pnb__zero(t, s.labels, s.n * pnb__elem_bytes(t));
    const pnb__label_args labels = {.m = s.a.n1,
                                    .n = s.a.n2,
                                    .k = k,
                                    .first = attrs->column,
                                    .base = attrs->base,
                                    .columns = (const int32_t *)pnb__data(t->in[4]) + row * k,
                                    .weights = pnb__strip_at(t, pnb__data(t->in[5]), row * k),
                                    .logits = s.labels,
                                    .out = s.labels};
    g->kernels.pair_labels(g->ctx, &labels);
    return s;
}

/* Looks at a strip: once where labels are hard, by their signs; else as matches, then as none. */
static int n_looks(const pnb__tensor *t)
{
    return ((const sums_attrs *)t->attrs)->is_hard ? 1 : 2;
}

/* Signs of this look, and from labels how often each pair counts in it: as a match less than 0, so
 * that a sum of it has the factor -1; as none 1 - Y, in the labels' own place. */
static void begin_look(const pnb__tensor *t, const marked *s, int look)
{
    const pnb__graph *g = t->graph;
    if (n_looks(t) == 1)
        g->kernels.unary(g->ctx, PNB__AFFINE, s->n, -2, -1, s->labels, s->signs);
    else
        g->kernels.fill(g->ctx, s->n, look == 0 ? 1 : -1, s->signs);
    if (look == 1)
        g->kernels.unary(g->ctx, PNB__AFFINE, s->n, 1, 1, s->labels, s->labels);
}

/* terms_ij = terms_ij x_ij, x (n1, n2) or a number a row */
static void scale_terms(const pnb__tensor *t, const marked *s, const void *x, bool by_row)
{
    const pnb__binary_args by = {.op = PNB__MUL,
                                 .dims = {1, 1, 1, s->a.n1, s->a.n2},
                                 .stride_a = {0, 0, 0, s->a.n2, 1},
                                 .stride_b = {0, 0, 0, by_row ? 1 : s->a.n2, !by_row},
                                 .a = s->terms,
                                 .b = x,
                                 .y = s->terms};
    t->graph->kernels.binary(t->graph->ctx, &by);
}

/* y_i = sum_j Y_ij nll_ij(1) + (1 - Y_ij) nll_ij(-1) */
bool pnb__op_match_sums_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const pnb__graph *g = t->graph;
    match_squares(t, t->work);
    for (size_t first = 0; first < t->n; first += match_rows(t)) {
        marked s = marked_strip(t, first, false);
        match_products(t, &s.a);
        for (int look = 0; look < n_looks(t); look++) {
            begin_look(t, &s, look);
            g->kernels.match_strip(g->ctx, &s.a);
            if (n_looks(t) == 2)
                scale_terms(t, &s, s.labels, false);
            g->kernels.sum(g->ctx, s.a.n1, s.a.n2, 1, n_looks(t) == 2 && look == 0 ? -1 : 1,
                           s.terms, pnb__strip_at(t, t->data, first), look > 0);
        }
    }
    return true;
}

/* dnll_ij = dy_i, times how often the pair counts in a look */
void pnb__op_match_sums_backward(pnb__tensor *t)
{
    const pnb__graph *g = t->graph;
    match_begin(t);
    for (size_t first = 0; first < t->n; first += match_rows(t)) {
        marked s = marked_strip(t, first, true);
        for (int look = 0; look < n_looks(t); look++) {
            bool is_match = n_looks(t) == 2 && look == 0;
            begin_look(t, &s, look);
            g->kernels.fill(g->ctx, s.n, is_match ? -1 : 1, s.terms);
            if (n_looks(t) == 2)
                scale_terms(t, &s, s.labels, false);
            scale_terms(t, &s, pnb__strip_at(t, t->grad, first), true);
            match_strip_backward(t, &s.a, first, first > 0 || look > 0);
        }
    }
    match_end(t);
}
