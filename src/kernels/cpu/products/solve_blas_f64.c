/* The cholesky and tri_solve slots for doubles on OpenBLAS: Gaussian processes factor matrices of a
 * few hundred to a few thousand rows, where the plain loops of kernels/ref are fifty times slower.
 *
 * Cholesky goes by panels of BLOCK columns:   [ A11      ]   [ L11     ] [ L11^T L21^T ]
 *                                             [ A21  A22 ] = [ L21 L22 ] [       L22^T ]
 *   L11 by columns, L21 = A21 L11^-T (dtrsm), A22 - L21 L21^T (dsyrk) is what remains.
 * OpenBLAS runs on one thread in every call, so that results depend on no other thread. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

#define BLOCK 64

static int to_int(size_t n)
{
    return (int)n;
}

/* The lower triangle of a (n,n) block in place, rows ld apart, n at most BLOCK. Column j, copied
 * beside itself, is taken off all rows to its right at once: sums along a row would be one chain of
 * additions. */
static bool factor_block(double *a, size_t n, size_t ld)
{
    double column[BLOCK];
    for (size_t j = 0; j < n; j++) {
        double v = a[j * ld + j];
        if (!(v > 0 && isfinite(v)))
            return false;
        double diagonal = sqrt(v), inverse = 1 / diagonal;
        a[j * ld + j] = diagonal;
        for (size_t i = j + 1; i < n; i++)
            column[i] = a[i * ld + j] *= inverse;
        for (size_t i = j + 1; i < n; i++) {
            double *row = a + i * ld, by = column[i];
            for (size_t p = j + 1; p <= i; p++)
                row[p] -= by * column[p];
        }
    }
    return true;
}

static bool factor(double *l, size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t width = PNB_MIN((size_t)BLOCK, n - at), below = n - at - width;
        double *corner = l + at * n + at, *panel = corner + width * n;
        if (!factor_block(corner, width, n))
            return false;
        if (below == 0)
            break;
        cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, to_int(below),
                    to_int(width), 1, corner, to_int(n), panel, to_int(n));
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, to_int(below), to_int(width), -1,
                    panel, to_int(n), 1, panel + width, to_int(n));
    }
    return true;
}

bool pnb__cpu_cholesky_f64(const pnb_ctx *ctx, size_t n, const void *a, void *l)
{
    (void)ctx;
    double *out = l;
    const double *in = a;
    int before = pnb__blas_alone();
    for (size_t i = 0; i < n; i++) {
        memmove(out + i * n, in + i * n, (i + 1) * sizeof *out);
        memset(out + i * n + i + 1, 0, (n - i - 1) * sizeof *out);
    }
    bool is_positive = factor(out, n);
    pnb__blas_together(before);
    return is_positive;
}

typedef struct solve {
    size_t n, m, width;
    bool transpose;
    const double *l;
    double *x;
} solve;

static void solve_columns(void *user, size_t begin, size_t end, int thread)
{
    const solve *s = user;
    int before = pnb__blas_alone();
    (void)thread;
    for (size_t task = begin; task < end; task++) {
        size_t first = task * s->width;
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, s->transpose ? CblasTrans : CblasNoTrans,
                    CblasNonUnit, to_int(s->n), to_int(PNB_MIN(s->width, s->m - first)), 1, s->l,
                    to_int(s->n), s->x + first, to_int(s->m));
    }
    pnb__blas_together(before);
}

void pnb__cpu_tri_solve_f64(const pnb_ctx *ctx, size_t n, size_t m, bool transpose, const void *l,
                            const void *b, void *x)
{
    if (n == 0 || m == 0)
        return;
    if (x != b)
        memcpy(x, b, n * m * sizeof(double));
    size_t n_threads = ctx ? (size_t)ctx->n_threads : 1;
    size_t width = (double)n * (double)n * (double)m < 200000 ? m : (m + n_threads - 1) / n_threads;
    solve s = {.n = n, .m = m, .width = width, .transpose = transpose, .l = l, .x = x};
    pnb__parallel_for(ctx, (m + width - 1) / width, 1, solve_columns, &s);
}
