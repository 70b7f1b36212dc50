/* Dense matrices of doubles, rows side by side: the few products that Gaussian processes want. */
#ifndef PNB_ADAPT_GP_FACTORS_DENSE_H
#define PNB_ADAPT_GP_FACTORS_DENSE_H

#include "kernels/kernels.h"

/* c (m,n) = alpha op(a) op(b), or += it; op(a) is (m,k), op(b) (k,n). */
typedef struct pnb__dense_product {
    size_t m, n, k;
    const double *a, *b;
    bool trans_a, trans_b;
    double alpha;
    bool add;
} pnb__dense_product;
void pnb__dense_multiply(const pnb__kernels *kernels, const pnb_ctx *ctx,
                         const pnb__dense_product *p, double *c);

void pnb__dense_transpose(double *a, size_t n);   /* (n,n) in place */
void pnb__dense_clear_upper(double *a, size_t n); /* zeros above the diagonal */
double pnb__dense_dot(const double *a, const double *b, size_t n);

#endif
