/* Exact Gaussian process regression for a few thousand points, and the collapsed bound of a sparse
 * one: what a variational fit is measured against, and a fit in its own right for small sets.
 *
 * D outputs share points, kernel and noise; each has its own constant mean.
 * Shape letters: N points, D outputs, M inducing points. */
#ifndef PNB_ADAPT_GP_GP_EXACT_H
#define PNB_ADAPT_GP_GP_EXACT_H

#include "adapt/gp/inducing.h"

/* Given by the caller, and read as long as what was made of it. */
typedef struct pnb__gp_data {
    size_t n, n_outputs;
    const double *x;        /* (N,Q) */
    const double *y;        /* (N,D) */
    const double *constant; /* (D) */
    double noise;           /* variance, > 0 */
} pnb__gp_data;

typedef struct pnb__gp_exact {
    const pnb_ctx *ctx;
    pnb__kernels kernels;
    pnb__gp_kernel kernel;
    pnb__gp_data data;
    double *chol;  /* (N,N) of K + noise I */
    double *alpha; /* (N,D) (K + noise I)^-1 (y - constant) */
    double log_marginal;
} pnb__gp_exact;

/* log p(Y) = sum_d [-1/2 r_d^T (K + s2 I)^-1 r_d] - D/2 log det(K + s2 I) - N D/2 log 2 pi
 * No jitter is added: the noise is.  Memory  O(N^2 + N D), time O(N^3 + N^2 D)
 * Errors  ARG (no point or output, noise not above 0), NUMERIC (not positive definite), NOMEM */
pnb_status pnb__gp_exact_fit(pnb__gp_exact *out, const pnb_ctx *ctx, const pnb__gp_kernel *kernel,
                             const pnb__gp_data *data, pnb_error *err);
void pnb__gp_exact_reset(pnb__gp_exact *gp);

/* mean (T,D) and var (T) of f at the points x (T,Q), without noise. Either may be NULL.
 * Errors  NOMEM */
pnb_status pnb__gp_exact_predict(const pnb__gp_exact *gp, const double *x, size_t n, double *mean,
                                 double *var, pnb_error *err);

/* Adds the derivatives of log_marginal: by points and kernel into `out` (dz is not read), by the
 * constants (D) and the noise; NULL: not wanted.  Errors  NOMEM */
pnb_status pnb__gp_exact_slopes(const pnb__gp_exact *gp, const pnb__gp_kernel_grad *out,
                                double *dconstant, double *dnoise, pnb_error *err);

/* The collapsed bound on log p(Y) of inducing points with the best q(v) put in, and that q(v).
 * Its covariance is one for all outputs: with a shared kernel and noise the optimum is
 *   S = (I + B B^T / s2)^-1,   m_d = S B r_d / s2
 *   bound = log N(Y | constant, B^T B + s2 I) - D/(2 s2) (N k(x,x) - |B|^2)
 * The set is factorised, and there is room for all N points.
 *   q_mean (D,M), q_chol (M,M) with S = C C^T lower; either may be NULL
 * Source  Titsias 2009, Eqs. (9) and (10).  Errors  ARG, NUMERIC, NOMEM */
typedef struct pnb__gp_collapsed_out {
    double bound;
    double *q_mean, *q_chol;
} pnb__gp_collapsed_out;
pnb_status pnb__gp_collapsed(const pnb__inducing *p, const pnb__inducing_set *set,
                             const pnb__gp_data *data, pnb__gp_collapsed_out *out, pnb_error *err);

#endif
