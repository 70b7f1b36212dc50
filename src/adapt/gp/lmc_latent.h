/* Latents of new embeddings under mixed processes (lmc.h), and what these say of them. */
#ifndef PNB_ADAPT_GP_LMC_LATENT_H
#define PNB_ADAPT_GP_LMC_LATENT_H

#include "adapt/gp/lmc.h"

/* What is read of a fitted side: computed once, then for several threads at once.
 * Memory  D M^2 doubles */
typedef struct pnb__lmc_search {
    const pnb_ctx *ctx;
    pnb_ctx alone;
    pnb__kernels kernels;
    pnb__lmc_process p; /* the caller's numbers */
    size_t d, m, q;
    double jitter;
    double *form;      /* (D,M,M) of v_l = k_l(x,x) + k^T G_l k */
    double *pull;      /* (D,M) mean_l = c_l + k . pull_l */
    double *precision; /* (D,D) W diag(1/s) W^T */
    double *gain;      /* (D,D) W diag(1/s), [process][output] */
} pnb__lmc_search;

/* noise (D) of the outputs. Time  about 5 D M^3.  Errors  NUMERIC, NOMEM */
pnb_status pnb__lmc_search_init(pnb__lmc_search *s, const pnb_ctx *ctx, const pnb__lmc_process *p,
                                const pnb__lmc_opts *opts, const double *noise, pnb_error *err);
void pnb__lmc_search_reset(pnb__lmc_search *s);

/* How it is looked for: until a step would change the value by less than the tolerance (ten times
 * that without the variances), at most max_steps either way; adam_rate above 0: max_steps steps of
 * Adam instead. */
typedef struct pnb__lmc_search_opts {
    size_t max_steps;
    double tolerance, adam_rate;
} pnb__lmc_search_opts;

/* What the processes say of n latents. */
typedef struct pnb__lmc_reading {
    double *x;       /* (n,Q): where a search begins on the way in, where it ends on the way out */
    double *hessian; /* (n,Q,Q) Gauss-Newton's, of the negative expected log likelihood */
    double *mean, *var; /* (D,n) of the outputs, without noise */
    double *jacobian;   /* (D,n,Q) d mean / dx */
} pnb__lmc_reading;

/* Minimises the negative expected log likelihood of each y (n,D) over its latent from out->x:
 *   sum_t [(y_t - mean_t)^2 + var_t] / (2 s_t)
 * by Gauss-Newton steps damped as Levenberg has it, first without the variances, whose slopes cost
 * M times as much. Rows do not see each other.  Errors  NOMEM, NUMERIC (y or x not finite) */
pnb_status pnb__lmc_search_run(const pnb__lmc_search *s, const double *y, size_t n,
                               const pnb__lmc_search_opts *opts, const pnb__lmc_reading *out,
                               pnb_error *err);

/* mean (D,n) of the outputs at latents x (n,Q), without their variances, which cost M times as
 * much. Errors  NOMEM, NUMERIC (x not finite) */
pnb_status pnb__lmc_search_mean(const pnb__lmc_search *s, const double *x, size_t n, double *mean,
                                pnb_error *err);

#endif
