/* Kronecker factors of the Hessian of a last projection, and the posterior that they make.
 *
 *   precision of vec W  ~  (sqrt(n) A + sqrt(lambda) I) x (sqrt(n) B + sqrt(lambda) I)
 *
 * as BayesVLM splits n A x B + lambda I; the product has cross terms that the sum has not. Both
 * factors are inverted by Cholesky in f64; of B'^-1 only the diagonal is kept, as the paper does.
 * Products of blocks of rows go through the kernels. */
#include "adapt/bayes/kronecker.h"

#include <math.h>

pnb_status pnb__kronecker_init(pnb__kronecker *k, size_t p, size_t q, pnb_error *err)
{
    size_t a = 0, b = 0;
    *k = (pnb__kronecker){.p = p, .q = q};
    if (pnb__mul_overflows(p, p, &a) || pnb__mul_overflows(q, q, &b))
        return pnb__fail_nomem(err, SIZE_MAX);
    k->a = pnb__alloc_zero(a, sizeof(double));
    k->b = pnb__alloc_zero(b, sizeof(double));
    return k->a != NULL && k->b != NULL ? PNB_OK : pnb__fail_nomem(err, (a + b) * sizeof(double));
}

void pnb__kronecker_reset(pnb__kronecker *k)
{
    pnb__free(k->a);
    pnb__free(k->b);
    *k = (pnb__kronecker){0};
}

/* ---- products ---- */

static void multiply(const pnb_ctx *ctx, const pnb__gemm_args *product)
{
    pnb__kernels kernels;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    kernels.gemm(ctx, product);
}

/* c (m,n) = a (m,k) b (k,n), rows side by side: what the three below turn round. */
static pnb__gemm_args product_of(const double *a, const double *b, size_t m, size_t n, size_t k,
                                 double *c)
{
    return (pnb__gemm_args){.m = m,
                            .n = n,
                            .k = k,
                            .lda = k,
                            .ldb = n,
                            .ldc = n,
                            .n_batch = 1,
                            .alpha = 1.0,
                            .a = a,
                            .b = b,
                            .c = c,
                            .act = PNB__IDENTITY};
}

void pnb__gram_add(const pnb_ctx *ctx, double alpha, const double *a, const double *b, size_t k,
                   size_t n, size_t m, double *c)
{
    pnb__gemm_args product = product_of(a, b, n, m, k, c);
    product.trans_a = true;
    product.lda = n;
    product.alpha = alpha;
    product.beta = 1.0;
    multiply(ctx, &product);
}

void pnb__product_of_rows(const pnb_ctx *ctx, const double *a, const double *b, size_t n, size_t m,
                          size_t k, double *c)
{
    pnb__gemm_args product = product_of(a, b, n, m, k, c);
    product.trans_b = true;
    product.ldb = k;
    multiply(ctx, &product);
}

void pnb__product(const pnb_ctx *ctx, const double *a, const double *b, size_t n, size_t m,
                  size_t k, double *c)
{
    const pnb__gemm_args product = product_of(a, b, n, m, k, c);
    multiply(ctx, &product);
}

/* ---- the posterior ---- */

/* out (d,d) = L^-1 of L L^T = sqrt(n) factor + sqrt(lambda) I. False: not positive definite. */
static bool invert_root(const pnb_ctx *ctx, const pnb__kronecker *k, const double *factor, size_t d,
                        double *chol, double *out)
{
    pnb__kernels kernels;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    for (size_t i = 0; i < d * d; i++) {
        bool is_diagonal = i % (d + 1) == 0;
        chol[i] = sqrt(k->n) * factor[i] + (is_diagonal ? sqrt(k->lambda) : 0.0);
        out[i] = is_diagonal;
    }
    if (!kernels.cholesky(ctx, d, chol, chol))
        return false;
    kernels.tri_solve(ctx, d, d, false, chol, out, out);
    return true;
}

/* diagonal[d] = sum_r root[r][d]^2, of (L L^T)^-1 */
static void square_columns(const double *root, size_t d, double *diagonal)
{
    for (size_t i = 0; i < d; i++)
        diagonal[i] = 0.0;
    for (size_t r = 0; r < d; r++)
        for (size_t i = 0; i <= r; i++)
            diagonal[i] += root[r * d + i] * root[r * d + i];
}

pnb_status pnb__posterior_init(pnb__posterior *out, const pnb_ctx *ctx, const pnb__kronecker *k,
                               const char *what, pnb_error *err)
{
    size_t p = k->p, q = k->q, most = PNB_MAX(p, q);
    double *chol = pnb__alloc_array(most * most, sizeof *chol);
    double *root_b = pnb__alloc_array(q * q, sizeof *root_b);
    pnb_status status = PNB_OK;
    out->root = pnb__alloc_array(p * p, sizeof *out->root);
    out->diagonal = pnb__alloc_array(q, sizeof *out->diagonal);
    if (chol == NULL || root_b == NULL || out->root == NULL || out->diagonal == NULL)
        status = pnb__fail_nomem(err, (most * most + q * q + p * p + q) * sizeof(double));
    else if (!invert_root(ctx, k, k->a, p, chol, out->root))
        status = pnb__fail(err, PNB_NUMERIC,
                           "%s: sqrt(n) A + sqrt(lambda) I, of the activations, is not positive "
                           "definite with n = %g and lambda = %g",
                           what, k->n, k->lambda);
    else if (!invert_root(ctx, k, k->b, q, chol, root_b))
        status = pnb__fail(err, PNB_NUMERIC,
                           "%s: sqrt(n) B + sqrt(lambda) I, of the loss, is not positive definite "
                           "with n = %g and lambda = %g",
                           what, k->n, k->lambda);
    else
        square_columns(root_b, q, out->diagonal);
    pnb__free(chol);
    pnb__free(root_b);
    return status;
}

void pnb__posterior_reset(pnb__posterior *p)
{
    pnb__free(p->root);
    pnb__free(p->diagonal);
    *p = (pnb__posterior){0};
}
