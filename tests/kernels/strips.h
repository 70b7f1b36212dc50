/* Strips of pairs, one call of each slot on arrays of a fixture: what the tests of fixed and of
 * random shapes share. Products come from the reference's gemm of the table's own type, so that
 * tables differ in the slot alone. */
#ifndef PNB_TESTS_KERNELS_STRIPS_H
#define PNB_TESTS_KERNELS_STRIPS_H

#include "tests/kernels/harness.h"

#include "kernels/gemm_rows.h"

typedef struct strip {
    size_t m, n, k, dim;
    double base; /* label, margin or rate */
    bool flag;   /* hardest margin, root of a distance */
    bool backward;
    const int32_t *columns, *match;
    int x, y, products, sums, d_sums, square_x, square_y, weights, logits, dot, out;
} strip;

/* c (m,n) = a b^T by rows of `dim` */
static inline void strip_products(const run *r, size_t m, size_t n, size_t dim, const void *a,
                                  const void *b, void *c)
{
    pnb__kernels ref;
    pnb__gemm_args g = pnb__gemm_rows(m, n, dim, false, true);
    g.a = a, g.b = b, g.c = c;
    if (r->is_double)
        pnb__kernels_ref_f64(&ref);
    else
        pnb__kernels_ref_f32(&ref);
    wait_for(&r->k, r->ctx);
    ref.gemm(NULL, &g);
}

/* With the labels of matches, and without, what is not wanted left out. */
static inline void labels_body(run *r, fixture *f)
{
    const strip *c = r->user;
    pnb__label_args a = {.m = c->m, .n = c->n, .k = c->k, .base = c->base};
    a.columns = c->columns, a.match = c->match;
    a.weights = P(r, f, c->weights), a.logits = P(r, f, c->logits);
    a.dot = P(r, f, c->dot), a.out = P(r, f, c->out);
    r->k.pair_labels(r->ctx, &a);
    a.match = NULL, a.dot = NULL, a.out = P(r, f, c->sums);
    a.first = c->n / 3; /* a block of the pairs: some columns are of others */
    r->k.pair_labels(r->ctx, &a);
}

static inline void margins_body(run *r, fixture *f)
{
    const strip *c = r->user;
    pnb__margin_args a = {.m = c->m, .n = c->n, .k = c->k, .margin = c->base};
    a.first = c->n - c->m;
    a.is_hardest = c->flag;
    a.products = P(r, f, c->products);
    a.sums = P(r, f, c->sums), a.d_sums = P(r, f, c->d_sums);
    a.hinges = malloc((c->n + 1) * sizeof *a.hinges);
    assert_non_null(a.hinges);
    strip_products(r, c->m * c->k, c->n * c->k, c->dim, P(r, f, c->x), P(r, f, c->y), a.products);
    r->k.margins(r->ctx, &a);
    if (c->backward)
        r->k.margins_bwd(r->ctx, &a);
    wait_for(&r->k, r->ctx);
    free(a.hinges);
}

static inline void kernel_body(run *r, fixture *f)
{
    const strip *c = r->user;
    pnb__kernel_args a = {.m = c->m, .n = c->n, .dim = c->dim, .gamma = c->base};
    a.is_root = c->flag;
    a.x = P(r, f, c->x), a.y = P(r, f, c->y);
    a.square_x = P(r, f, c->square_x), a.square_y = P(r, f, c->square_y);
    a.products = P(r, f, c->products);
    a.sums = P(r, f, c->sums), a.d_sums = P(r, f, c->d_sums);
    r->k.row_squares(r->ctx, c->m, c->dim, a.x, P(r, f, c->square_x));
    r->k.row_squares(r->ctx, c->n, c->dim, a.y, P(r, f, c->square_y));
    strip_products(r, c->m, c->n, c->dim, a.x, a.y, a.products);
    r->k.kernel_strip(r->ctx, &a);
    if (c->backward)
        r->k.kernel_strip_bwd(r->ctx, &a);
}

/* The last m of n rows against those that follow each; `flag`: against all. */
static inline void spread_body(run *r, fixture *f)
{
    const strip *c = r->user;
    pnb__spread_args a = {.n1 = c->m, .n = c->n, .dim = c->dim, .rate = c->base};
    size_t first = c->n - c->m, size = r->is_double ? 8 : 4;
    a.skip = first + 1;
    a.all_columns = c->flag;
    a.y = P(r, f, c->y), a.square_y = P(r, f, c->square_y);
    a.x = (const char *)a.y + first * c->dim * size;
    a.square_x = (const char *)a.square_y + first * size;
    a.products = P(r, f, c->products);
    a.sums = P(r, f, c->sums), a.d_sums = P(r, f, c->d_sums);
    r->k.row_squares(r->ctx, c->n, c->dim, a.y, P(r, f, c->square_y));
    strip_products(r, c->m, c->n, c->dim, a.x, a.y, a.products);
    r->k.spread_strip(r->ctx, &a);
    if (c->backward)
        r->k.spread_strip_bwd(r->ctx, &a);
}

/* Samples of some of `rows` rows, and their gradients back to all. */
typedef struct drawn {
    pnb__draw_args a;
    size_t rows;
    const int32_t *pairs, *key;
    int mean, log_var, x, dx, d_mean, d_log_var;
} drawn;

static inline void draw_body(run *r, fixture *f)
{
    const drawn *c = r->user;
    pnb__draw_args a = c->a;
    a.mean = P(r, f, c->mean), a.log_var = P(r, f, c->log_var), a.x = P(r, f, c->x);
    a.pairs = c->pairs, a.key = c->key;
    r->k.draw(r->ctx, &a);
    a.dx = P(r, f, c->dx), a.d_mean = P(r, f, c->d_mean), a.d_log_var = P(r, f, c->d_log_var);
    r->k.draw_bwd(r->ctx, &a);
}

/* ---- the arrays of each ---- */

static inline void add_draws(drawn *c, fixture *f)
{
    c->mean = input(f, c->rows * c->a.dim, -1, 1);
    c->log_var = input(f, c->rows * c->a.dim, -3, 0);
    c->x = output(f, c->a.n_rows * c->a.n_samples * c->a.dim, false);
    c->dx = input(f, c->a.n_rows * c->a.n_samples * c->a.dim, -1, 1);
    c->d_mean = output(f, c->rows * c->a.dim, true);
    c->d_log_var = output(f, c->rows * c->a.dim, true);
}

static inline void add_labels(strip *c, fixture *f)
{
    c->weights = input(f, c->m * c->k, -1, 1);
    c->logits = input(f, c->m * c->n, -2, 2);
    c->out = output(f, c->m * c->n, true);
    c->dot = output(f, c->m, false);
    c->sums = output(f, c->m * c->n, true);
}

static inline void add_margins(strip *c, fixture *f)
{
    c->x = input(f, c->m * c->k * c->dim, -1, 1);
    c->y = input(f, c->n * c->k * c->dim, -1, 1);
    /* on a grid: sums are exact, none is at the border of a hinge, and many are equal */
    for (int i = c->x; i <= c->y; i++)
        for (size_t at = 0; at < f->arrays[i].n; at++)
            f->arrays[i].init[at] = rint(f->arrays[i].init[at] * 4) / 4;
    c->products = output(f, c->m * c->k * c->n * c->k, false);
    c->sums = output(f, c->m, false);
    c->d_sums = input(f, c->m, -1, 1);
}

/* Of the rows of y two are equal and one is near them; one of x is where they are. */
static inline void add_distances(strip *c, fixture *f, double size)
{
    c->x = input(f, c->m * c->dim, -size, size);
    c->y = input(f, c->n * c->dim, -size, size);
    c->products = output(f, c->m * c->n, false);
    c->sums = output(f, c->m, false);
    c->d_sums = input(f, c->m, -1, 1);
    c->square_x = output(f, c->m, true);
    c->square_y = output(f, c->n, true);
    double *x = f->arrays[c->x].init, *y = f->arrays[c->y].init;
    for (size_t d = 0; d < c->dim && c->n > 2 && c->m > 0; d++) {
        x[d] = y[d] = y[c->dim + d];
        y[2 * c->dim + d] = (double)(float)(y[d] * 1.1);
    }
}

#endif
