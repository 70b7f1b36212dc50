/* A linear model of coregionalisation: D sparse processes, each with inducing points and a kernel
 * of its own, mixed into D outputs. GroVE's released code has it where its paper shares one kernel.
 *
 *   mean_t = sum_l W[l][t] mean_l,    var_t = sum_l W[l][t]^2 (var_l + jitter) + jitter
 *   mean_l = c_l + m_l . b_l,         var_l = k_l(x,x) - |b_l|^2 + |C_l^T b_l|^2
 * with b_l = L_l^-1 k_l(Z_l,x) of inducing.h; the jitter of K_l is that of the variances, as the
 * released code has it.
 * Between the two passes of a step L_l^-1 and B_l are kept, in the factors' type: D M (M / 2 + N)
 * numbers. All else is computed again, a process a thread.
 * Shape letters: D outputs and processes, M inducing points, N points of a batch, Q latent axes. */
#ifndef PNB_ADAPT_GP_LMC_H
#define PNB_ADAPT_GP_LMC_H

#include "adapt/gp/factors/factors.h"
#include "adapt/gp/inducing.h"

/* The parameters of a side, the caller's. */
typedef struct pnb__lmc_process {
    pnb__gp_kind kind;
    const double *z;                   /* (D,M,Q) */
    const double *lengthscale, *scale; /* (D) */
    const double *constant;            /* (D) of the processes */
    const double *q_mean;              /* (D,M) */
    const void *factors;               /* D times factors.h's numbers of one factor */
    const double *mixing;              /* W (D,D): [process][output] */
} pnb__lmc_process;

typedef struct pnb__lmc_worker pnb__lmc_worker;

typedef struct pnb__lmc {
    const pnb_ctx *ctx;
    pnb_ctx alone; /* a worker's: one thread */
    size_t d, m, q, n_max;
    double jitter;
    pnb__real real;
    pnb__kernels kernels; /* doubles, for the mixing */
    pnb__lmc_worker *workers;
    size_t n_workers;
    double *room;
    double *f_mean, *f_var, *df_mean, *df_var; /* (D,N) of the processes */
    double *divergence, *jitter_used;          /* (D) */
    double *dx;                                /* (D,N,Q), added up in the order of processes */
    double *squares;                           /* (D,D) W^2, then its slopes */
    void *kept;         /* of every process, in real: L^-1 by rows, B (M,N) */
    pnb_status *status; /* (D) */
} pnb__lmc;

typedef struct pnb__lmc_opts {
    size_t d, m, q, n_max; /* D, M, Q, most points of a batch */
    double jitter;
    pnb__real real; /* of the factors; all else is in doubles */
} pnb__lmc_opts;

/* Memory  D M (M / 2 + N) numbers in real; D N (4 + Q), D^2 and, a thread, 8 M (M + N) doubles.
 * Errors  NOMEM, ARG */
pnb_status pnb__lmc_init(pnb__lmc *lmc, const pnb_ctx *ctx, const pnb__lmc_opts *opts,
                         pnb_error *err);
void pnb__lmc_reset(pnb__lmc *lmc);

/* mean and var (D,N) of the outputs without noise, at x (N,Q); lmc->divergence of every process is
 * KL(q(v_l) || N(0,I)). The same numbers for any count of threads.
 * Errors  NUMERIC: those of pnb__inducing_factorise, with the process's number */
pnb_status pnb__lmc_at(pnb__lmc *lmc, const pnb__lmc_process *p, const double *x, size_t n,
                       double *mean, double *var, pnb_error *err);
double pnb__lmc_divergence(const pnb__lmc *lmc);
/* The largest jitter that a K_l needed: never less than asked for. */
double pnb__lmc_jitter(const pnb__lmc *lmc);

/* Slopes of a loss, after pnb__lmc_at of the same batch: of mean and var (D,N), and the divergence
 * stands in it with the factor `weight`. All but x is written, x (N,Q) is added to. */
typedef struct pnb__lmc_grad {
    double *x, *z;               /* (N,Q), (D,M,Q) */
    double *lengthscale, *scale; /* (D) */
    double *constant, *q_mean;   /* (D), (D,M) */
    void *factors;               /* in `real` */
    double *mixing;              /* (D,D) */
} pnb__lmc_grad;
typedef struct pnb__lmc_slopes {
    const double *mean, *var;
    double weight;
} pnb__lmc_slopes;
void pnb__lmc_backward(pnb__lmc *lmc, const pnb__lmc_process *p, const double *x, size_t n,
                       const pnb__lmc_slopes *slopes, const pnb__lmc_grad *out);

#endif
