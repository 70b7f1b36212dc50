/* What a sparse process with many outputs says of a batch, and the way back to its parameters.
 *
 *   mean[d][n] = c_d + m_d . b_n,   var[d][n] = k(x,x) - |b_n|^2 + |C_d^T b_n|^2
 * with b_n of inducing.h: one kernel and one set of points for all outputs, so that their matrix is
 * factored once; one factor C for all, or one each.
 * Shape letters: D outputs, F = D or 1 factors, M inducing points, N points of a batch. */
#ifndef PNB_ADAPT_GP_MARGINALS_H
#define PNB_ADAPT_GP_MARGINALS_H

#include "adapt/gp/factors/factors.h"
#include "adapt/gp/inducing.h"

/* The parameters, the caller's; kernel.lengthscale is read where it lies. */
typedef struct pnb__process {
    pnb__gp_kernel kernel;
    const double *z;        /* (M,Q) */
    const double *constant; /* (D) */
    const double *q_mean;   /* (D,M) */
    const void *factors;    /* factors.h */
} pnb__process;

typedef struct pnb__marginals {
    const pnb_ctx *ctx;
    size_t d, m, n_max;
    pnb__inducing inducing;
    pnb__inducing_set set; /* factored */
    pnb__factors factors;
    double *room; /* chol (M,M), b (M,N), db (M,N), known (N) */
    double *db, *known;
} pnb__marginals;

/* is_shared: one factor, in doubles; otherwise D of them in `real`.
 * Errors  ARG (sizes of 0), NOMEM */
typedef struct pnb__marginals_opts {
    size_t n_outputs, m, n_max;
    double jitter; /* added to the diagonal of k(Z,Z) */
    bool is_shared;
    pnb__real real;
} pnb__marginals_opts;
pnb_status pnb__marginals_init(pnb__marginals *mg, const pnb_ctx *ctx,
                               const pnb__marginals_opts *opts, pnb_error *err);
void pnb__marginals_reset(pnb__marginals *mg);

/* Factors k(Z,Z) of the process: once for its points and kernel, before the rest. mg->set says what
 * jitter was needed.  Errors  NUMERIC: those of pnb__inducing_factorise */
pnb_status pnb__marginals_factorise(pnb__marginals *mg, const pnb__process *p, pnb_error *err);
/* mean (D,N) and var (F,N) of f without noise, at x (N,Q); var may be NULL. */
void pnb__marginals_at(pnb__marginals *mg, const pnb__process *p, const double *x, size_t n,
                       double *mean, double *var);
/* sum over outputs of KL(q(v_d) || N(0,I)) */
double pnb__marginals_divergence(const pnb__marginals *mg, const pnb__process *p);

/* Slopes of a loss, after pnb__marginals_at of the same batch. What it is by mean and var is given;
 * the divergence stands in it with the factor `weight`. Kernel, z and x are added to, the rest is
 * written; a NULL of q_mean or factors: not wanted. */
typedef struct pnb__process_grad {
    pnb__gp_kernel_grad kernel; /* dx (N,Q), dz (M,Q), lengthscales, scale */
    double *constant, *q_mean;
    void *factors;
    double *divergence; /* with factors: pnb__marginals_divergence on the way; NULL: not wanted */
} pnb__process_grad;
typedef struct pnb__marginals_slopes {
    const double *mean, *var; /* (D,N), (F,N) */
    double weight;
} pnb__marginals_slopes;
void pnb__marginals_backward(pnb__marginals *mg, const pnb__process *p, const double *x, size_t n,
                             const pnb__marginals_slopes *slopes, const pnb__process_grad *out);

#endif
