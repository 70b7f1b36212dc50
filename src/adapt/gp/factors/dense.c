/* Dense matrices of doubles.
 * Products go through the kernel table, whose argument list serves networks; the rest is too short
 * to be worth a slot. Factors and solves are slots of their own: cholesky, tri_solve. */
#include "adapt/gp/factors/dense.h"

#include <string.h>

#include "base/wide.h"
#include "kernels/gemm_rows.h"

void pnb__dense_multiply(const pnb__kernels *kernels, const pnb_ctx *ctx,
                         const pnb__dense_product *p, double *c)
{
    pnb__gemm_args g = pnb__gemm_rows(p->m, p->n, p->k, p->trans_a, p->trans_b);
    g.alpha = p->alpha;
    g.beta = p->add;
    g.a = p->a;
    g.b = p->b;
    g.c = c;
    kernels->gemm(ctx, &g);
}

void pnb__dense_transpose(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            double t = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = t;
        }
}

void pnb__dense_clear_upper(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memset(a + i * n + i + 1, 0, (n - i - 1) * sizeof *a);
}

/* Eight sums beside each other: one would wait for itself. */
typedef double lanes __attribute__((vector_size(64)));
enum { LANES = 8 };

PNB__WIDE double pnb__dense_dot(const double *a, const double *b, size_t n)
{
    lanes sum = {0}, x, y;
    double total = 0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        memcpy(&x, a + j, sizeof x);
        memcpy(&y, b + j, sizeof y);
        sum += x * y;
    }
    for (; j < n; j++)
        total += a[j] * b[j];
    for (size_t i = 0; i < LANES; i++)
        total += sum[i];
    return total;
}
