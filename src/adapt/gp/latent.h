/* Latents of new embeddings: where a fitted process would have put them. */
#ifndef PNB_ADAPT_GP_LATENT_H
#define PNB_ADAPT_GP_LATENT_H

#include "adapt/gp/inducing.h"

/* A fitted side with one kernel for all outputs, as it is read once. */
typedef struct pnb__latent_model {
    const pnb__inducing_set *set; /* factorised; points and kernel stay */
    size_t m, n_outputs;
    const double *q_mean;   /* (D,M) */
    const double *constant; /* (D) */
    const double *noise;    /* (D) variances of the likelihood */
    /* Factor C_d (M,M), lower, zeros above; outputs that share one are told by one_factor. */
    void (*factor)(void *user, size_t output, double *out);
    void *user;
    bool one_factor;
    const double *gram; /* (M,M) sum_d C_d C_d^T / s_d where it is known; NULL: from the factors */
} pnb__latent_model;

/* What the search reads of a model: a quadratic form in k(Z,x), see latent.c. Fit for several
 * threads at once. */
typedef struct pnb__latent_search {
    const pnb_ctx *ctx;
    pnb_ctx alone; /* of one thread: a row is a thread's */
    pnb__kernels kernels;
    pnb__gp_kernel kernel;
    const double *z;
    size_t m, n_outputs;
    double *form;           /* G (M,M) */
    double *pull;           /* (D,M): h of an embedding is pull^T (y - constant) */
    const double *constant; /* (D) */
} pnb__latent_search;

/* Time  O(M^3 + D M^2), and with factors of their own O(D M^3).  Errors  NOMEM */
pnb_status pnb__latent_search_init(pnb__latent_search *s, const pnb__inducing *p,
                                   const pnb__latent_model *model, pnb_error *err);
void pnb__latent_search_reset(pnb__latent_search *s);

typedef struct pnb__latent_opts {
    size_t max_steps; /* 50 */
    double tolerance; /* ends where a Newton step would lower the value by less. 1e-8 */
    double
        adam_rate; /* above 0: so many steps of Adam at this rate (betas 0.9, 0.999) instead. 0 */
} pnb__latent_opts;
pnb__latent_opts pnb__latent_opts_default(void);

/* Minimises the negative expected log likelihood of each y (N,D) over its latent, from each of its
 * n_starts points in start (N, n_starts, Q); the best end is kept. Latents do not see each other: a
 * result does not depend on the batch or the number of threads.
 *   x (N,Q) latents;  value (N) what was minimised, up to a constant of y; may be NULL
 *   is_converged (N), may be NULL: false where max_steps were not enough from the kept start
 *   hessian (N,Q,Q), may be NULL: second derivatives where it ended
 * Errors  ARG (no start), NUMERIC (an embedding or start that is not finite), NOMEM */
typedef struct pnb__latent_out {
    double *x, *value;
    bool *is_converged;
    double *hessian;
} pnb__latent_out;
pnb_status pnb__latent_search_run(const pnb__latent_search *s, const double *y, size_t n,
                                  const double *start, size_t n_starts,
                                  const pnb__latent_opts *opts, const pnb__latent_out *out,
                                  pnb_error *err);

#endif
