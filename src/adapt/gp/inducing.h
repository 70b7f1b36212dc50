/* Inducing points: what a sparse Gaussian process knows of its inputs, and the way back.
 *
 *   K = k(Z,Z) + jitter I = L L^T,      B = L^-1 k(Z,X)
 *
 * In whitened coordinates u = c + L v every output reads its mean and variance off B alone:
 *   mean = c + B^T m,   var = k(x,x) - |b|^2 + b^T S b,   q(v) = N(m, S)
 * so one factor serves all outputs that share Z and the kernel. All numbers are doubles: K is the
 * worst-conditioned matrix of the method.
 * Source  Hensman et al. 2013; Matthews 2016 (whitening). GroVE's Eq. (13) has the sign of S - K
 *         wrong: docs/numerics.md#grove */
#ifndef PNB_ADAPT_GP_INDUCING_H
#define PNB_ADAPT_GP_INDUCING_H

#include "adapt/gp/factors/factor_slopes.h"
#include "adapt/gp/gp_kernel.h"
#include "kernels/kernels.h"

/* What factors are computed in: sizes, kernels of the context and room, for one thread at a time.
 */
typedef struct pnb__inducing {
    const pnb_ctx *ctx;
    pnb__kernels kernels; /* doubles, host */
    size_t m, n_max;      /* M; most columns of one projection */
    double jitter;        /* asked for */
    double *work;         /* (M, max(M, N)) twice */
    pnb__factor_slopes slopes;
} pnb__inducing;

/* One set of inducing points. Kernel and points are the caller's and stay as they are from
 * pnb__inducing_factorise on; chol and b are the caller's room. */
typedef struct pnb__inducing_set {
    pnb__gp_kernel kernel;
    const double *z;    /* (M,Q) */
    double *chol;       /* L (M,M), zeros above the diagonal */
    double *b;          /* B (M,N) of the last projection, n_max columns of room */
    double jitter_used; /* what the last factor needed: never less than asked for */
} pnb__inducing_set;

/* Errors  ARG (no point, no column, jitter negative), NOMEM */
pnb_status pnb__inducing_init(pnb__inducing *p, const pnb_ctx *ctx, size_t m, size_t n_max,
                              double jitter, pnb_error *err);
void pnb__inducing_reset(pnb__inducing *p);
/* From here on slopes go through the factor in floats, see factor_slopes.h.  Errors  NOMEM */
pnb_status pnb__inducing_narrow(pnb__inducing *p, pnb_error *err);

/* L of the set's points. Where K is not positive definite the jitter grows tenfold until it is, at
 * most to a hundredth of k(x,x); jitter_used tells.
 * Errors  NUMERIC (a point, lengthscale or scale that is not finite; K too close to singular) */
pnb_status pnb__inducing_factorise(const pnb__inducing *p, pnb__inducing_set *set, pnb_error *err);
/* B of x (N,Q), N <= n_max, into set->b. */
void pnb__inducing_project(const pnb__inducing *p, const pnb__inducing_set *set, const double *x,
                           size_t n);

/* What a loss has found out about the outputs' side, and is spread on to points and kernel. */
typedef struct pnb__inducing_slopes {
    double *db;          /* (M,N) by B; overwritten */
    const double *dchol; /* (M,M) by L, its lower triangle; NULL: nothing */
    const void *inverse; /* L^-1 as factor_slopes.h keeps it: then chol is not read without dchol.
                          * NULL: computed */
    double dprior;       /* by k(x,x) where it stands by itself */
} pnb__inducing_slopes;

/* Adds to `out` the derivatives by points, kernel and x. After projecting the same x.
 * Source  Murray 2016, section 3 (derivative of the Cholesky factor) */
void pnb__inducing_backward(pnb__inducing *p, const pnb__inducing_set *set, const double *x,
                            size_t n, const pnb__inducing_slopes *slopes,
                            const pnb__gp_kernel_grad *out);

#endif
