/* Random calls of the slots over elements, rows and strips of pairs: see shape.h. */
#ifndef PNB_TESTS_KERNELS_SHAPES_VECTORS_H
#define PNB_TESTS_KERNELS_SHAPES_VECTORS_H

#include "tests/kernels/best.h"
#include "tests/kernels/shapes/shape.h"
#include "tests/kernels/strips.h"

typedef struct vector_shape { /* what the slots over plain arrays take; arrays go by number */
    size_t n, rows, width, inner;
    double value;
    bool accumulate, flag;
    pnb__unary op;
    const int32_t *ids;
} vector_shape;

/* ---- elements ---- */

static void unary_body(run *r, fixture *x)
{
    enum { X, Y, DY, DX };
    const vector_shape *c = r->user;
    bool by_y = c->op == PNB__EXP || c->op == PNB__SQRT || c->op == PNB__RECIP ||
                c->op == PNB__TANH || c->op == PNB__SIGMOID;
    r->k.unary(r->ctx, c->op, c->n, 1.5, 0.25, P(r, x, X), P(r, x, Y));
    r->k.unary_bwd(r->ctx, c->op, c->n, 1.5, by_y ? NULL : P(r, x, X), by_y ? P(r, x, Y) : NULL,
                   P(r, x, DY), P(r, x, DX), c->accumulate);
    r->k.unary(r->ctx, PNB__AFFINE, c->n, 2, 1, P(r, x, Y), P(r, x, Y)); /* in place */
}

static void unary_shapes(shape *s)
{
    for (size_t op = 0; op < PNB__N_UNARY; op++) {
        vector_shape c = {.op = (pnb__unary)op};
        note(s, "op", (double)op);
        c.n = size_from(s, "n", 0, 2000, 100000);
        c.accumulate = flag(s, "accumulate");
        bool positive = op == PNB__LOG || op == PNB__SQRT || op == PNB__RECIP;
        fixture x = fixture_of(s, 2e-6, 2e-6);
        input(&x, c.n, positive ? 0.1 : -4, 4);
        output(&x, c.n, false);
        input(&x, c.n, -1, 1);
        output(&x, c.n, c.accumulate);
        compare_all(&x, unary_body, &c);
    }
}

/* Halves, by tables that have them; others do the same in their own numbers. */
typedef struct halves_shape {
    pnb__unary op;
    size_t rows, width;
    bool in_place, accumulate;
} halves_shape;

enum { H_X, H_DY, H_RAW, H_ROUNDED, H_Y, H_DX, H_SUM };

static void by_halves(run *r, fixture *x, const halves_shape *c)
{
    size_t n = c->rows * c->width;
    uint16_t *in = halves_of(P(r, x, H_X), n), *dy = halves_of(P(r, x, H_DY), n);
    uint16_t *rounded = halves_of(P(r, x, H_X), n), *y = halves_of(P(r, x, H_DY), n);
    uint16_t *dx = c->in_place ? dy : halves_of(P(r, x, H_X), n);
    r->k.halves_of(r->ctx, n, P(r, x, H_RAW), rounded);
    widen(r, rounded, n, P(r, x, H_ROUNDED));
    r->k.halves_sum(r->ctx, c->rows, c->width, dy, P(r, x, H_SUM), c->accumulate);
    r->k.halves_unary(r->ctx, c->op, n, in, y);
    widen(r, y, n, P(r, x, H_Y));
    r->k.halves_unary_bwd(r->ctx, c->op, n, in, dy, dx);
    if (c->in_place) { /* and forward */
        r->k.halves_unary(r->ctx, c->op, n, in, in);
        widen(r, in, n, P(r, x, H_Y));
    } else {
        wait_for(&r->k, r->ctx);
        free(in);
        free(dy);
    }
    widen(r, dx, n, P(r, x, H_DX));
}

static void halves_body(run *r, fixture *x)
{
    const halves_shape *c = r->user;
    size_t n = c->rows * c->width;
    if (r->k.halves_of != NULL) {
        by_halves(r, x, c);
        return;
    }
    r->k.unary(r->ctx, PNB__AFFINE, n, 1, 0, P(r, x, H_RAW), P(r, x, H_ROUNDED));
    r->k.sum(r->ctx, 1, c->rows, c->width, 1, P(r, x, H_DY), P(r, x, H_SUM), c->accumulate);
    r->k.unary(r->ctx, c->op, n, 1, 0, P(r, x, H_X), P(r, x, H_Y));
    r->k.unary_bwd(r->ctx, c->op, n, 1, P(r, x, H_X), NULL, P(r, x, H_DY), P(r, x, H_DX), false);
}

static void halves_shapes(shape *s)
{
    static const pnb__unary ops[] = {PNB__GELU, PNB__GELU_TANH, PNB__QUICK_GELU,
                                     PNB__RELU, PNB__SOFTPLUS,  PNB__AFFINE};
    halves_shape c = {.op = ops[one_of(s, "op", PNB_COUNT(ops))]};
    c.rows = size_from(s, "rows", 0, 300, 3000);
    c.width = size_from(s, "width", 0, 90, 900);
    c.in_place = flag(s, "in_place");
    c.accumulate = flag(s, "accumulate");
    size_t n = c.rows * c.width;
    fixture x = fixture_of(s, 2e-6, 0x1p-8);
    make_coarse(&x, input(&x, n, -4, 4), 0x1p-5); /* as halves have it, and sums are exact */
    make_coarse(&x, input(&x, n, -4, 4), 0x1p-5);
    input(&x, n, -4, 4);
    for (int i = H_ROUNDED; i < H_SUM; i++)
        output(&x, n, false);
    output(&x, c.width, c.accumulate);
    compare_all(&x, halves_body, &c);
}

/* Sizes of up to five axes, no more than so many elements together. */
static size_t draw_axes(shape *s, size_t dims[PNB__DIMS])
{
    size_t n = 1, most = s->is_large ? 200000 : 6000;
    for (int d = PNB__DIMS - 1; d >= 0; d--) {
        dims[d] = flag(s, "axis") ? size_from(s, "of", 0, 70, 300) : 1;
        if (n * dims[d] > most)
            dims[d] = 1;
        n *= dims[d];
    }
    return n;
}

typedef struct binary_shape {
    pnb__binary_args a;
} binary_shape;

static void binary_body(run *r, fixture *x)
{
    enum { A, B, Y, DY, DA, DB };
    pnb__binary_args a = ((const binary_shape *)r->user)->a;
    a.a = P(r, x, A), a.b = P(r, x, B), a.y = P(r, x, Y);
    r->k.binary(r->ctx, &a);
    a.dy = P(r, x, DY), a.d = P(r, x, DA);
    r->k.binary_bwd(r->ctx, &a);
    a.d = P(r, x, DB), a.which = 1;
    if (a.op == PNB__ADD || a.op == PNB__SUB)
        a.a = a.b = NULL; /* not needed, so not read */
    r->k.binary_bwd(r->ctx, &a);
}

/* Strides of an array that repeats along some axes; returns how many elements it has. */
static size_t draw_repeats(shape *s, const char *name, const size_t dims[PNB__DIMS],
                           size_t out[PNB__DIMS])
{
    size_t n = 1, repeats = flag(s, name) ? one_of(s, "along", 1 << PNB__DIMS) : 0;
    for (int d = PNB__DIMS - 1; d >= 0; d--) {
        bool is_one = repeats >> d & 1;
        out[d] = is_one ? 0 : n;
        n *= is_one ? 1 : dims[d];
    }
    return n;
}

static void binary_shapes(shape *s)
{
    binary_shape c = {.a = {.op = (pnb__binary)one_of(s, "op", PNB__N_BINARY)}};
    size_t n = draw_axes(s, c.a.dims);
    size_t n_a = draw_repeats(s, "a repeats", c.a.dims, c.a.stride_a);
    size_t n_b = draw_repeats(s, "b repeats", c.a.dims, c.a.stride_b);
    c.a.accumulate = flag(s, "accumulate");
    fixture x = fixture_of(s, 2e-5, 2e-6);
    input(&x, n_a, -2, 2);
    input(&x, n_b, 0.5, 2);
    output(&x, n, false);
    input(&x, n, -1, 1);
    output(&x, n_a, c.a.accumulate);
    output(&x, n_b, c.a.accumulate);
    compare_all(&x, binary_body, &c);
}

static void copy_body(run *r, fixture *x)
{
    pnb__copy_args a = *(const pnb__copy_args *)r->user;
    a.src = P(r, x, 0), a.dst = P(r, x, 1);
    r->k.copy(r->ctx, &a);
}

/* Strides with the axes in some order, gaps here and there; returns where the last element ends. */
static size_t draw_strides(shape *s, const size_t dims[PNB__DIMS], bool repeats,
                           size_t out[PNB__DIMS])
{
    uint32_t order[PNB__DIMS] = {4, 3, 2, 1, 0};
    size_t step = flag(s, "apart") ? 3 : 1, end = 1;
    if (flag(s, "any order"))
        pnb__rng_shuffle(&s->rng, order, PNB__DIMS);
    for (size_t i = 0; i < PNB__DIMS; i++) {
        uint32_t d = order[i];
        out[d] = repeats && one_of(s, "repeats", 5) == 0 ? 0 : step;
        end += out[d] * (PNB_MAX(dims[d], 1) - 1);
        if (out[d] > 0)
            step = step * PNB_MAX(dims[d], 1) + one_of(s, "gap", 3);
    }
    return end;
}

static void copy_shapes(shape *s)
{
    pnb__copy_args a = {.accumulate = flag(s, "accumulate")};
    draw_axes(s, a.dims);
    size_t n_src = draw_strides(s, a.dims, true, a.stride_src);
    size_t n_dst = draw_strides(s, a.dims, false, a.stride_dst);
    fixture x = fixture_of(s, 0, 1e-7);
    input(&x, n_src, -1, 1);
    output(&x, n_dst, true);
    compare_all(&x, copy_body, &a);
}

static void plain_body(run *r, fixture *x)
{
    enum { X, Y, Z, KEPT };
    const vector_shape *c = r->user;
    r->k.axpy(r->ctx, c->n, -0.3, P(r, x, X), P(r, x, Y));
    r->k.fill(r->ctx, c->n, 0.7, P(r, x, Z));
    r->k.dropout(r->ctx, c->n, c->value, 42, 7, P(r, x, X), P(r, x, KEPT), c->accumulate);
}

static void plain_shapes(shape *s)
{
    vector_shape c = {.n = size_from(s, "n", 0, 3000, 200000)};
    c.value = (double)one_of(s, "rate", 5) / 4; /* 1 drops all */
    c.accumulate = flag(s, "accumulate");
    fixture x = fixture_of(s, 1e-6, 1e-6);
    input(&x, c.n, -1, 1);
    output(&x, c.n, true);
    output(&x, c.n, false);
    output(&x, c.n, c.accumulate);
    compare_all(&x, plain_body, &c);
}

/* ---- sums ---- */

static void sum_body(run *r, fixture *x)
{
    enum { X, Y, DX };
    const vector_shape *c = r->user;
    r->k.sum(r->ctx, c->rows, c->n, c->inner, 0.5, P(r, x, X), P(r, x, Y), c->accumulate);
    r->k.sum_bwd(r->ctx, c->rows, c->n, c->inner, -2, P(r, x, Y), P(r, x, DX), c->accumulate);
}

static void sum_shapes(shape *s)
{
    vector_shape c = {.rows = size_from(s, "outer", 0, 50, 300)};
    c.n = size_from(s, "n", 0, 900, 3000);
    c.inner = flag(s, "columns") ? size_from(s, "inner", 0, 50, 300) : 1;
    while (c.rows * c.n * c.inner > 2000000)
        c.rows /= 2;
    c.accumulate = flag(s, "accumulate");
    fixture x = fixture_of(s, 4e-6, 1e-6);
    input(&x, c.rows * c.n * c.inner, -1, 1);
    output(&x, c.rows * c.inner, c.accumulate);
    output(&x, c.rows * c.n * c.inner, c.accumulate);
    compare_all(&x, sum_body, &c);
}

/* The array in three pieces, one after the other. */
static void squares_body(run *r, fixture *x)
{
    const vector_shape *c = r->user;
    char *in = P(r, x, 0);
    size_t rest = c->n - c->rows, half = rest / 2;
    const pnb__flat pieces[] = {
        {in, c->rows}, {moved(r, in, c->rows), half}, {moved(r, in, c->rows + half), rest - half}};
    put_real(r, P(r, x, 1), 0, r->k.sum_squares(r->ctx, pieces, 3));
    put_real(r, P(r, x, 1), 1, r->k.all_finite(r->ctx, c->n, in));
}

static void squares_shapes(shape *s)
{
    vector_shape c = {.n = size_from(s, "n", 0, 3000, 300000)};
    c.rows = (size_t)pnb__rng_below(&s->rng, c.n + 1);
    fixture x = fixture_of(s, 0, 1e-6);
    input(&x, c.n, -1, 1);
    output(&x, 2, false);
    compare_all(&x, squares_body, &c);
}

/* One number that is none is seen wherever it stands. */
static void finite_body(run *r, fixture *x)
{
    put_real(r, P(r, x, 1), 0, r->k.all_finite(r->ctx, *(size_t *)r->user, P(r, x, 0)));
}

static void finite_shapes(shape *s)
{
    size_t n = size_from(s, "n", 1, 3000, 300000);
    fixture x = fixture_of(s, 0, 0);
    input(&x, n, -1, 1);
    output(&x, 1, false);
    x.arrays[0].init[pnb__rng_below(&s->rng, n)] = flag(s, "infinite") ? -INFINITY : NAN;
    compare_all(&x, finite_body, &n);
}

/* ---- rows ---- */

static void rows_body(run *r, fixture *x)
{
    enum { X, DY, Y, DX, LOSS, LSE, D_LOSS, D_LOGITS, UNIT, INVERSE, D_UNIT };
    const vector_shape *c = r->user;
    size_t n = c->rows, w = c->width;
    void *in = P(r, x, X), *dy = P(r, x, DY);
    r->k.softmax(r->ctx, n, w, c->flag, in, P(r, x, Y));
    r->k.softmax_bwd(r->ctx, n, w, c->flag, P(r, x, Y), dy, P(r, x, DX), c->accumulate);
    r->k.cross_entropy(r->ctx, n, w, in, c->ids, P(r, x, LOSS), P(r, x, LSE));
    r->k.cross_entropy_bwd(r->ctx, n, w, in, c->ids, P(r, x, LSE), P(r, x, D_LOSS),
                           P(r, x, D_LOGITS), c->accumulate);
    r->k.l2_normalize(r->ctx, n, w, 1e-3, in, P(r, x, UNIT), P(r, x, INVERSE));
    r->k.l2_normalize_bwd(r->ctx, n, w, 1e-3, P(r, x, UNIT), P(r, x, INVERSE), dy, P(r, x, D_UNIT),
                          c->accumulate);
}

static void rows_shapes(shape *s)
{
    static const double sizes[] = {1, 20, 88};
    vector_shape c = {.rows = size_from(s, "rows", 0, 60, 500)};
    c.width = size_from(s, "width", 1, 1000, 6000);
    c.flag = flag(s, "log");
    c.accumulate = flag(s, "accumulate");
    c.value = sizes[one_of(s, "size", PNB_COUNT(sizes))];
    c.ids = whole_numbers(s, c.rows, c.width);
    size_t n = c.rows * c.width;
    fixture x = fixture_of(s, 2e-6 * (1 + c.value), 5e-6);
    input(&x, n, -c.value, c.value);
    input(&x, n, -1, 1);
    output(&x, n, false);
    output(&x, n, c.accumulate);
    output(&x, c.rows, false);
    output(&x, c.rows, false);
    input(&x, c.rows, -1, 1);
    output(&x, n, c.accumulate);
    output(&x, n, false);
    output(&x, c.rows, false);
    output(&x, n, c.accumulate);
    compare_all(&x, rows_body, &c);
}

static void distances_body(run *r, fixture *x)
{
    enum { X, Y, D2, WEIGHTS, DX, DY };
    const strip *c = r->user;
    const size_t mnw[3] = {c->m, c->n, c->dim};
    const bool accumulate[2] = {c->flag, c->backward};
    void *a = P(r, x, X), *b = P(r, x, Y), *w = P(r, x, WEIGHTS);
    r->k.pairwise_sqdist(r->ctx, c->m, c->n, c->dim, a, b, P(r, x, D2));
    r->k.pairwise_sqdist_bwd(r->ctx, mnw, a, b, w, P(r, x, DX), NULL, accumulate);
    r->k.pairwise_sqdist_bwd(r->ctx, mnw, a, b, w, NULL, P(r, x, DY), accumulate);
}

static void distances_shapes(shape *s)
{
    strip c = {.m = size_from(s, "m", 0, 70, 300)};
    c.n = size_from(s, "n", 0, 70, 300);
    c.dim = size_from(s, "width", 1, 70, 300);
    c.flag = flag(s, "add to dx");
    c.backward = flag(s, "add to dy");
    fixture x = fixture_of(s, 2e-5 * sqrt(1 + (double)PNB_MAX(c.m, c.n) / 70), 2e-6);
    input(&x, c.m * c.dim, -1, 1);
    input(&x, c.n * c.dim, -1, 1);
    output(&x, c.m * c.n, false);
    input(&x, c.m * c.n, -1, 1);
    output(&x, c.m * c.dim, c.flag);
    output(&x, c.n * c.dim, c.backward);
    compare_all(&x, distances_body, &c);
}

static void gather_body(run *r, fixture *x)
{
    enum { TABLE, Y, DY, D_TABLE };
    const vector_shape *c = r->user;
    r->k.gather_rows(r->ctx, c->n, c->width, P(r, x, TABLE), c->ids, P(r, x, Y));
    r->k.scatter_add_rows(r->ctx, c->n, c->rows, c->width, P(r, x, DY), c->ids, P(r, x, D_TABLE));
}

static void gather_shapes(shape *s)
{
    vector_shape c = {.n = size_from(s, "n", 0, 400, 3000)};
    c.rows = size_from(s, "rows", 1, 60, 500);
    c.width = size_from(s, "width", 1, 100, 700);
    c.ids = whole_numbers(s, c.n, flag(s, "one row") ? 1 : c.rows);
    fixture x = fixture_of(s, 1e-5 * sqrt(1 + (double)c.n / 100), 1e-6);
    input(&x, c.rows * c.width, -1, 1);
    output(&x, c.n * c.width, false);
    input(&x, c.n * c.width, -1, 1);
    output(&x, c.rows * c.width, true);
    compare_all(&x, gather_body, &c);
}

/* ---- strips of pairs ---- */

static void draw_strip(shape *s, strip *c)
{
    c->n = size_from(s, "n", 1, 60, 600);
    c->m = (size_t)pnb__rng_below(&s->rng, PNB_MIN(c->n, 40) + 1);
    note(s, "m", (double)c->m);
    c->backward = flag(s, "backward");
    c->flag = flag(s, "flag");
}

static void labels_shapes(shape *s)
{
    strip c = {.base = 0.25 * (double)one_of(s, "base", 2)};
    draw_strip(s, &c);
    c.k = size_from(s, "k", 0, 9, 20);
    c.columns = whole_numbers(s, c.m * c.k, c.n);
    c.match = c.flag ? whole_numbers(s, c.m, c.n) : NULL;
    fixture x = fixture_of(s, 1e-5, 1e-5);
    add_labels(&c, &x);
    compare_all(&x, labels_body, &c);
}

static void margins_shapes(shape *s)
{
    strip c = {.base = 0.2};
    draw_strip(s, &c);
    c.k = size_from(s, "k", 1, 3, 4);
    c.dim = size_from(s, "dim", 1, 8, 20);
    fixture x = fixture_of(s, 1e-5, 1e-5);
    add_margins(&c, &x);
    compare_all(&x, margins_body, &c);
}

static void kernel_shapes(shape *s)
{
    strip c = {.base = 0.5};
    draw_strip(s, &c);
    c.dim = size_from(s, "dim", 1, 60, 300);
    fixture x = fixture_of(s, 2e-5, 2e-5);
    add_distances(&c, &x, 2 / sqrt((double)c.dim));
    compare_all(&x, kernel_body, &c);
}

static void spread_shapes(shape *s)
{
    static const double rates[] = {0.5, 2, 50};
    strip c = {.base = rates[one_of(s, "rate", PNB_COUNT(rates))]};
    draw_strip(s, &c);
    c.dim = size_from(s, "dim", 1, 60, 300);
    fixture x = fixture_of(s, 2e-4, 2e-4);
    add_distances(&c, &x, 1 / sqrt((double)c.dim));
    x.arrays[c.square_x].is_output = false; /* the strip is of rows of y */
    compare_all(&x, spread_body, &c);
}

static void draw_shapes(shape *s)
{
    drawn c = {.rows = size_from(s, "rows", 1, 30, 100)};
    c.a.first = (size_t)pnb__rng_below(&s->rng, c.rows);
    c.a.n_rows = (size_t)pnb__rng_below(&s->rng, c.rows - c.a.first + 1);
    c.a.n_samples = size_from(s, "samples", 1, 7, 16);
    c.a.dim = size_from(s, "dim", 1, 90, 600);
    c.pairs = whole_numbers(s, c.rows, 1 << 20);
    c.key = whole_numbers(s, 4, 1 << 30);
    fixture x = fixture_of(s, 1e-5, 1e-5);
    add_draws(&c, &x);
    compare_all(&x, draw_body, &c);
}

typedef struct match_shape {
    pnb__match_args a;
    bool backward;
} match_shape;

static void match_body(run *r, fixture *x)
{
    enum { X, Y, SIGNS, SCALE, SHIFT, D_NLL, SQUARE_X, SQUARE_Y, PRODUCTS, NLL, D_SCALE, D_SHIFT };
    const match_shape *c = r->user;
    pnb__match_args a = c->a;
    size_t n_x = a.n1 * a.n_samples, n_y = a.n2 * a.n_samples;
    a.x = P(r, x, X), a.y = P(r, x, Y), a.signs = P(r, x, SIGNS);
    a.scale = P(r, x, SCALE), a.shift = P(r, x, SHIFT);
    a.square_x = P(r, x, SQUARE_X), a.square_y = P(r, x, SQUARE_Y);
    a.products = P(r, x, PRODUCTS), a.nll = P(r, x, NLL);
    r->k.row_squares(r->ctx, n_x, a.dim, a.x, P(r, x, SQUARE_X));
    r->k.row_squares(r->ctx, n_y, a.dim, a.y, P(r, x, SQUARE_Y));
    strip_products(r, n_x, n_y, a.dim, a.x, a.y, a.products);
    r->k.match_strip(r->ctx, &a);
    a.d_nll = P(r, x, D_NLL), a.d_scale = P(r, x, D_SCALE), a.d_shift = P(r, x, D_SHIFT);
    if (c->backward)
        r->k.match_strip_bwd(r->ctx, &a);
}

static void match_shapes(shape *s)
{
    match_shape c = {.a = {.factor = 2}, .backward = flag(s, "backward")};
    pnb__match_args *a = &c.a;
    a->n1 = size_from(s, "n1", 0, 12, 40);
    a->n2 = size_from(s, "n2", 0, 40, 100);
    a->n_samples = size_from(s, "samples", 1, 7, 8);
    a->dim = size_from(s, "dim", 1, 90, 200);
    size_t n_x = a->n1 * a->n_samples, n_y = a->n2 * a->n_samples, pairs = a->n1 * a->n2;
    double size = fmin(1, 1.6 / sqrt((double)a->dim));
    fixture x = fixture_of(s, 2e-5, 2e-5);
    input(&x, n_x * a->dim, -size, size);
    input(&x, n_y * a->dim, -size, size);
    make_signs(&x, input(&x, pairs, -1, 1), 1, 1);
    input(&x, 1, 2, 3);
    input(&x, 1, 2, 3);
    input(&x, pairs, -1, 1);
    output(&x, n_x, false);
    output(&x, n_y, false);
    output(&x, n_x * n_y, false);
    output(&x, pairs, false);
    output(&x, pairs, !c.backward);
    output(&x, pairs, !c.backward);
    compare_all(&x, match_body, &c);
}

static void inclusion_body(run *r, fixture *x)
{
    enum { M1, LV1, M2, LV2, H, DH, D };
    pnb__inclusion_args a = *(const pnb__inclusion_args *)r->user;
    a.m1 = P(r, x, M1), a.lv1 = P(r, x, LV1), a.m2 = P(r, x, M2), a.lv2 = P(r, x, LV2);
    a.h = P(r, x, H), a.dh = P(r, x, DH);
    a.dm1 = P(r, x, D), a.dlv1 = P(r, x, D + 1), a.dm2 = P(r, x, D + 2), a.dlv2 = P(r, x, D + 3);
    r->k.inclusion(r->ctx, &a);
    r->k.inclusion_bwd(r->ctx, &a);
}

static void inclusion_shapes(shape *s)
{
    pnb__inclusion_args a = {.n = size_from(s, "n", 0, 2000, 60000), .eps = -10};
    a.published = flag(s, "published");
    bool is_narrow = a.published && flag(s, "narrow");
    fixture x = fixture_of(s, 2e-5, 5e-6);
    for (int i = 0; i < 4; i++)
        input(&x, a.n,
              i % 2 == 0  ? -0.2
              : is_narrow ? -12
                          : -3,
              i % 2 == 0  ? 0.2
              : is_narrow ? -8
                          : 3);
    output(&x, a.n, false);
    input(&x, a.n, -1, 1);
    for (int i = 0; i < 4; i++) {
        a.accumulate[i] = flag(s, "accumulate");
        output(&x, a.n, a.accumulate[i]);
    }
    compare_all(&x, inclusion_body, &a);
}

/* ---- lists ---- */

static void best_shapes(shape *s)
{
    unsigned char *only = NULL;
    best_case c = {.first = 7};
    c.m = size_from(s, "m", 0, 8, 600);
    c.n = size_from(s, "n", 0, 6000, 30000);
    c.gap = one_of(s, "gap", 3);
    c.kept = size_from(s, "kept", 1, 200, PNB__BEST_MOST - 1);
    c.split = one_of(s, "split", c.n + 1);
    if (flag(s, "only")) {
        c.only = only = malloc(c.n + 1);
        assert_non_null(only);
        for (size_t i = 0; i < c.n; i++)
            only[i] = pnb__rng_below(&s->rng, 4) != 0;
    }
    fixture x = fixture_of(s, 0, 0);
    c.halves = flag(s, "halves");
    best_arrays(&x, &c, flag(s, "ties") ? 0x1p-5 : c.halves ? 0x1p-7 : 0x1p-20);
    compare_all(&x, best_body, &c);
    free(only);
}

#endif
