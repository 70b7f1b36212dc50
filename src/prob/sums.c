/* Sums over d for every row of one block against every row of another, in f64: inner products and
 * squared distances, what mean, csd and the likelihoods on the sphere are made of.
 *
 * Tiles of 4 x 2 rows share their loads and give the adders eight sums that do not wait for each
 * other. The order of a sum is the same in every tile and for a row alone: even d, odd d, their
 * sum, then a last d that stands alone. Nothing depends on where in a block a pair lies: equal rows
 * give equal bits. */
#include <string.h>

#include "prob/measure.h"

enum { ROWS = 4, COLS = 2 };

typedef double v2 __attribute__((vector_size(16))); /* even and odd d */

static inline v2 load(const double *x)
{
    v2 y;
    memcpy(&y, x, sizeof y);
    return y;
}

/* n_a rows of a from row i and n_b rows of b from row j; all of n_a, n_b and is_distance are
 * constants where this is called, so that the loops over rows disappear. */
static inline __attribute__((always_inline)) void sum_tile(const pnb__sums *s, size_t i, size_t j,
                                                           const int n_a, const int n_b,
                                                           const bool is_distance)
{
    const size_t dim = s->dim;
    const double *a = s->a + i * dim, *b = s->b + j * dim;
    double *out = s->out + i * s->stride[0] + j * s->stride[1];
    v2 sum[ROWS][COLS] = {{{0}}};
    size_t d = 0;
    for (; d + 2 <= dim; d += 2) {
        v2 y[COLS];
#pragma GCC unroll 4
        for (int c = 0; c < n_b; c++)
            y[c] = load(b + (size_t)c * dim + d);
#pragma GCC unroll 4
        for (int r = 0; r < n_a; r++) {
            v2 x = load(a + (size_t)r * dim + d);
#pragma GCC unroll 4
            for (int c = 0; c < n_b; c++) {
                v2 u = is_distance ? x - y[c] : x, v = is_distance ? u : y[c];
                sum[r][c] += u * v;
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_b; c++) {
            double total = sum[r][c][0] + sum[r][c][1];
            if (d < dim) {
                double x = a[(size_t)r * dim + d], y = b[(size_t)c * dim + d];
                total += is_distance ? (x - y) * (x - y) : x * y;
            }
            out[(size_t)r * s->stride[0] + (size_t)c * s->stride[1]] = total;
        }
}

static inline __attribute__((always_inline)) void sum_rows(const pnb__sums *s,
                                                           const bool is_distance)
{
    size_t i = 0;
    for (; i + ROWS <= s->n_a; i += ROWS) {
        size_t j = 0;
        for (; j + COLS <= s->n_b; j += COLS)
            sum_tile(s, i, j, ROWS, COLS, is_distance);
        for (; j < s->n_b; j++)
            sum_tile(s, i, j, ROWS, 1, is_distance);
    }
    for (; i < s->n_a; i++)
        for (size_t j = 0; j < s->n_b; j++)
            sum_tile(s, i, j, 1, 1, is_distance);
}

/* (n_a,D) x (n_b,D) -> (n_a,n_b): sum_d a b, and below sum_d (a-b)^2, which does not cancel as
 * |a|^2 + |b|^2 - 2 a.b would. */
void pnb__sum_products(const pnb__sums *s)
{
    sum_rows(s, false);
}

void pnb__sum_distances2(const pnb__sums *s)
{
    sum_rows(s, true);
}
