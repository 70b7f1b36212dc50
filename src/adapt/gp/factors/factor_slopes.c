/* Products with L^-1, a panel of rows or columns at a time:
 *   S = P + P^T with P's diagonal once,   T = S L^-1,   Kbar = 1/2 L^-T T where j <= i
 * do a third of what two solves of (M,M) would. */
#include "adapt/gp/factors/factor_slopes.h"

#include <string.h>

#define PANEL ((size_t)64)

static size_t real_bytes(const pnb__factor_slopes *f)
{
    return f->real == PNB__F32 ? sizeof(float) : sizeof(double);
}

pnb_status pnb__factor_slopes_init(pnb__factor_slopes *f, const pnb_ctx *ctx, pnb__real real,
                                   size_t m, size_t n_max, pnb_error *err)
{
    *f = (pnb__factor_slopes){.ctx = ctx, .real = real, .m = m, .n_max = n_max};
    size_t row = (3 * m + 2 * n_max) * real_bytes(f);
    pnb__kernels_fill_host(&f->kernels, ctx, real);
    f->inverse = pnb__alloc_array(m, row);
    if (f->inverse == NULL)
        return pnb__fail_nomem(err, row);
    f->symmetric = (char *)f->inverse + m * m * real_bytes(f);
    f->product = (char *)f->symmetric + m * m * real_bytes(f);
    f->b = (char *)f->product + m * m * real_bytes(f);
    f->db = (char *)f->b + m * n_max * real_bytes(f);
    return PNB_OK;
}

void pnb__factor_slopes_reset(pnb__factor_slopes *f)
{
    pnb__free(f->inverse);
    *f = (pnb__factor_slopes){0};
}

static void *at(const pnb__factor_slopes *f, const void *matrix, size_t row, size_t column)
{
    return (char *)(uintptr_t)matrix + (row * f->m + column) * real_bytes(f);
}

static void narrow(const pnb__factor_slopes *f, const double *from, size_t n, void *to)
{
    if (f->real == PNB__F64)
        memcpy(to, from, n * sizeof *from);
    for (size_t i = 0; f->real == PNB__F32 && i < n; i++)
        ((float *)to)[i] = (float)from[i];
}

static void widen(const pnb__factor_slopes *f, const void *from, size_t n, double *to)
{
    if (f->real == PNB__F64)
        memcpy(to, from, n * sizeof *to);
    for (size_t i = 0; f->real == PNB__F32 && i < n; i++)
        to[i] = (double)((const float *)from)[i];
}

/* What all products here share; rows of (M,M) matrices where nothing else is said. */
static void multiply(const pnb__factor_slopes *f, pnb__gemm_args g)
{
    if (g.m == 0 || g.n == 0 || g.k == 0)
        return;
    g.lda = g.lda != 0 ? g.lda : f->m;
    g.ldb = g.ldb != 0 ? g.ldb : f->m;
    g.ldc = g.ldc != 0 ? g.ldc : f->m;
    g.n_batch = 1;
    g.act = PNB__IDENTITY;
    f->kernels.gemm(f->ctx, &g);
}

/* x (n,n), rows PANEL apart, = inverse of the block of L at first. */
static void invert_block(const double *chol, size_t m, size_t first, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        const double *row = chol + (first + i) * m + first;
        double *out = x + i * PANEL, inverse = 1 / row[i];
        memset(out, 0, n * sizeof *out);
        for (size_t p = 0; p < i; p++)
            for (size_t j = 0; j <= p; j++)
                out[j] -= row[p] * x[p * PANEL + j];
        for (size_t j = 0; j < i; j++)
            out[j] *= inverse;
        out[i] = inverse;
    }
}

/* Rows of panel I: -inverse(L_II) (L_I,0..I inverse_0..I), and its own block. `product` and
 * `symmetric` are room. */
void pnb__factor_slopes_invert(pnb__factor_slopes *f, const double *chol)
{
    double block[PANEL * PANEL];
    size_t m = f->m;
    memset(f->inverse, 0, m * m * real_bytes(f));
    for (size_t first = 0; first < m; first += PANEL) {
        size_t n = PNB_MIN(PANEL, m - first);
        invert_block(chol, m, first, n, block);
        for (size_t i = 0; i < n; i++) {
            narrow(f, block + i * PANEL, n, at(f, f->inverse, first + i, first));
            narrow(f, chol + (first + i) * m, first, at(f, f->symmetric, first + i, 0));
        }
        multiply(f, (pnb__gemm_args){.m = n,
                                     .n = first,
                                     .k = first,
                                     .alpha = -1,
                                     .a = at(f, f->symmetric, first, 0),
                                     .b = f->inverse,
                                     .c = at(f, f->product, first, 0)});
        multiply(f, (pnb__gemm_args){.m = n,
                                     .n = first,
                                     .k = n,
                                     .alpha = 1,
                                     .a = at(f, f->inverse, first, first),
                                     .b = at(f, f->product, first, 0),
                                     .c = at(f, f->inverse, first, 0)});
    }
}

size_t pnb__factor_slopes_kept(size_t m)
{
    return m * (m + 1) / 2;
}

void pnb__factor_slopes_keep(const pnb__factor_slopes *f, void *kept)
{
    char *to = kept;
    for (size_t i = 0; i < f->m; i++) {
        memcpy(to, at(f, f->inverse, i, 0), (i + 1) * real_bytes(f));
        to += (i + 1) * real_bytes(f);
    }
}

void pnb__factor_slopes_put_back(pnb__factor_slopes *f, const void *kept)
{
    const char *from = kept;
    for (size_t i = 0; i < f->m; i++) {
        memcpy(at(f, f->inverse, i, 0), from, (i + 1) * real_bytes(f));
        memset(at(f, f->inverse, i, i + 1), 0, (f->m - i - 1) * real_bytes(f));
        from += (i + 1) * real_bytes(f);
    }
}

/* P + P^T from where P stands on and below the diagonal: columns to rows, a square at a time. */
static void mirror(const pnb__factor_slopes *f)
{
    size_t m = f->m, side = 16;
    float *narrow_s = f->symmetric;
    double *wide_s = f->symmetric;
    for (size_t i0 = 0; i0 < m; i0 += side)
        for (size_t j0 = 0; j0 <= i0; j0 += side)
            for (size_t i = i0; i < PNB_MIN(i0 + side, m); i++)
                for (size_t j = j0; j < PNB_MIN(j0 + side, i); j++) {
                    if (f->real == PNB__F32)
                        narrow_s[j * m + i] = narrow_s[i * m + j];
                    else
                        wide_s[j * m + i] = wide_s[i * m + j];
                }
}

/* S from q and -Bbar B^T, rows of a panel up to its last column. */
static void find_symmetric(pnb__factor_slopes *f, size_t n, const double *q)
{
    size_t m = f->m;
    for (size_t i = 0; q != NULL && i < m; i++)
        narrow(f, q + i * m, i + 1, at(f, f->symmetric, i, 0));
    for (size_t first = 0; first < m; first += PANEL) {
        size_t rows = PNB_MIN(PANEL, m - first);
        multiply(f, (pnb__gemm_args){.trans_b = true,
                                     .m = rows,
                                     .n = first + rows,
                                     .k = n,
                                     .lda = n,
                                     .ldb = n,
                                     .alpha = -1,
                                     .beta = q != NULL,
                                     .a = (char *)f->db + first * n * real_bytes(f),
                                     .b = f->b,
                                     .c = at(f, f->symmetric, first, 0)});
    }
    mirror(f);
}

static void find_kbar(pnb__factor_slopes *f, double *kbar)
{
    size_t m = f->m;
    for (size_t first = 0; first < m; first += PANEL)
        multiply(f, (pnb__gemm_args){.m = m,
                                     .n = PNB_MIN(PANEL, m - first),
                                     .k = m - first,
                                     .alpha = 1,
                                     .a = at(f, f->symmetric, 0, first),
                                     .b = at(f, f->inverse, first, first),
                                     .c = at(f, f->product, 0, first)});
    for (size_t first = 0; first < m; first += PANEL) {
        size_t rows = PNB_MIN(PANEL, m - first);
        multiply(f, (pnb__gemm_args){.trans_a = true,
                                     .m = rows,
                                     .n = first + rows,
                                     .k = m - first,
                                     .alpha = 0.5,
                                     .a = at(f, f->inverse, first, first),
                                     .b = at(f, f->product, first, 0),
                                     .c = at(f, f->symmetric, first, 0)});
    }
    for (size_t i = 0; i < m; i++)
        widen(f, at(f, f->symmetric, i, 0), i + 1, kbar + i * m);
}

void pnb__factor_slopes_find(pnb__factor_slopes *f, const double *b, double *db, size_t n,
                             const double *q, double *kbar)
{
    size_t m = f->m;
    narrow(f, b, m * n, f->b);
    narrow(f, db, m * n, f->db);
    find_symmetric(f, n, q);
    find_kbar(f, kbar);
    for (size_t first = 0; first < m; first += PANEL) /* L^-T Bbar, into the room of B */
        multiply(f, (pnb__gemm_args){.trans_a = true,
                                     .m = PNB_MIN(PANEL, m - first),
                                     .n = n,
                                     .k = m - first,
                                     .ldb = n,
                                     .ldc = n,
                                     .alpha = 1,
                                     .a = at(f, f->inverse, first, first),
                                     .b = (char *)f->db + first * n * real_bytes(f),
                                     .c = (char *)f->b + first * n * real_bytes(f)});
    widen(f, f->b, m * n, db);
}
