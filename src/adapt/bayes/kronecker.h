/* A last projection with a Gaussian around its weights, and what the Laplace approximation is made
 * of: Kronecker factors of the Hessian, a prior precision, and their inverses. */
#ifndef PNB_ADAPT_BAYES_KRONECKER_H
#define PNB_ADAPT_BAYES_KRONECKER_H

#include "adapt/adapter.h"
#include "kernels/kernels.h"

/* g = W phi + h. W NULL: the identity, p = q. Of phi a row has the first n_read; a bias is the
 * weight of a 1 behind them. h: the q numbers of a row behind those that are read, where has_rest;
 * else 0. It is no weight's, and known. */
typedef struct pnb__last_layer {
    size_t n_read, p, q;
    double *w; /* (q,p) */
    bool has_rest;
} pnb__last_layer;

/* Width of a row. */
static inline size_t pnb__last_layer_width(const pnb__last_layer *w)
{
    return w->n_read + (w->has_rest ? w->q : 0);
}

/* Curvature of the loss per row: of all n rows it is n A x B. */
typedef struct pnb__kronecker {
    size_t p, q;
    double *a;        /* (p,p) mean of phi phi^T */
    double *b;        /* (q,q) mean of J^T Lambda J */
    double n, lambda; /* rows that count, prior precision */
} pnb__kronecker;

/* Zeros. LIMIT, NOMEM */
pnb_status pnb__kronecker_init(pnb__kronecker *k, size_t p, size_t q, pnb_error *err);
void pnb__kronecker_reset(pnb__kronecker *k);

/* What is wanted of (sqrt(n) A + sqrt(lambda) I)^-1 and of the same of B. */
typedef struct pnb__posterior {
    double
        *root; /* (p,p) L^-1, L L^T = sqrt(n) A + sqrt(lambda) I: phi^T A'^-1 phi = |L^-1 phi|^2 */
    double *diagonal; /* (q) of B'^-1 */
} pnb__posterior;

/* NUMERIC where a factor is not positive definite: `what` names the side. */
pnb_status pnb__posterior_init(pnb__posterior *out, const pnb_ctx *ctx, const pnb__kronecker *k,
                               const char *what, pnb_error *err);
void pnb__posterior_reset(pnb__posterior *p);

/* c (n,m) += alpha a^T (n,k) b (k,m), rows of a and b side by side; or a b^T with `is_outer`, a
 * (n,k) and b (m,k), where c is overwritten. */
void pnb__gram_add(const pnb_ctx *ctx, double alpha, const double *a, const double *b, size_t k,
                   size_t n, size_t m, double *c);
void pnb__product_of_rows(const pnb_ctx *ctx, const double *a, const double *b, size_t n, size_t m,
                          size_t k, double *c);
/* c (n,m) = a (n,k) b (k,m) */
void pnb__product(const pnb_ctx *ctx, const double *a, const double *b, size_t n, size_t m,
                  size_t k, double *c);

/* ---- output_hessian.c ---- */

/* The loss of rows g against fixed directions v: cross entropy of softmax_k(scale v_k.g/|g|), or a
 * sigmoid of scale v_k.g/|g| + bias for each. Its Hessian by the logits does not depend on which
 * pairs are true. */
typedef struct pnb__contrast {
    pnb_adapt_loss loss;
    double scale, bias;
} pnb__contrast;

/* b (q,q) += sum_i J_i^T Lambda_i J_i, J_i = d logits / d g_i.
 * Shape  unit (n,q) g/|g|, length (n) |g|, other (m,q) unit rows   NOMEM */
pnb_status pnb__output_hessian_add(double *b, const pnb_ctx *ctx, const pnb__contrast *c,
                                   const double *unit, const double *length, size_t n,
                                   const double *other, size_t m, size_t q, pnb_error *err);

/* ---- evidence.c ---- */

/* What the marginal likelihood needs of a side. */
typedef struct pnb__evidence {
    size_t p, q;
    double *a, *b;        /* (p), (q) eigenvalues of the factors */
    double n;             /* rows that count */
    double weight_square; /* |W|^2 */
    pnb_adapt_marginal kind;
} pnb__evidence;

/* Eigenvalues of the factors; frees with reset. NUMERIC, NOMEM */
pnb_status pnb__evidence_init(pnb__evidence *e, const pnb__kronecker *k, double weight_square,
                              pnb_adapt_marginal kind, pnb_error *err);
void pnb__evidence_reset(pnb__evidence *e);
/* The part of the log marginal likelihood that depends on lambda. */
double pnb__evidence_at(const pnb__evidence *e, double lambda);
/* Where it is largest. NUMERIC where it grows to an end of 1e-9 to 1e15. */
pnb_status pnb__evidence_best(const pnb__evidence *e, const char *what, double *lambda,
                              pnb_error *err);

/* ---- hessian_files.c ---- */

/* Factors and prior of one side from a folder as BayesVLM's code writes them, widths given.
 * NOT_FOUND, FORMAT, SHAPE, NUMERIC */
pnb_status pnb__hessian_files_read(pnb__kronecker *k, const char *dir, pnb_adapter_side side,
                                   pnb_error *err);

/* ---- last_projection.c ---- */

/* The last projections of a model's folder, for both sides of `a`. Errors  those of pnb_model_load,
 * ARG (other weights than the rows'), SHAPE (rows of another width), UNSUPPORTED (none) */
pnb_status pnb__last_projections_read(pnb__last_layer out[PNB_N_ADAPTER_SIDES],
                                      const pnb_adapter *a, const char *dir, pnb_error *err);

#endif
