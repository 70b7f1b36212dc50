/* The way back through a Cholesky factor and what was solved with it:  B = L^-1 C,  K = L L^T,
 *   Cbar = L^-T Bbar,   Kbar = 1/2 L^-T (P + P^T) L^-1,   P = tril(Q - Bbar B^T), its diagonal
 * halved with Q what L has on its way elsewhere, L^T Lbar (Murray 2016, section 3). By L^-1, which
 * products can use, and by panels, so that zeros are mostly left out. */
#ifndef PNB_ADAPT_GP_FACTORS_FACTOR_SLOPES_H
#define PNB_ADAPT_GP_FACTORS_FACTOR_SLOPES_H

#include "kernels/kernels.h"

/* Room for one thread. In floats it takes a third of the time, and L^-1 is as exact as floats are
 * times its condition: enough for slopes of parameters that are floats. */
typedef struct pnb__factor_slopes {
    const pnb_ctx *ctx;
    pnb__kernels kernels; /* of `real`, host */
    pnb__real real;
    size_t m, n_max;
    void *inverse, *symmetric, *product; /* (M,M) in real */
    void *b, *db;                        /* (M,N) in real */
} pnb__factor_slopes;

/* Errors  NOMEM */
pnb_status pnb__factor_slopes_init(pnb__factor_slopes *f, const pnb_ctx *ctx, pnb__real real,
                                   size_t m, size_t n_max, pnb_error *err);
void pnb__factor_slopes_reset(pnb__factor_slopes *f);

/* f->inverse = L^-1 of chol (M,M), with zeros above its diagonal. */
void pnb__factor_slopes_invert(pnb__factor_slopes *f, const double *chol);
/* Keeps f->inverse, or puts it back: the lower triangle by rows, in real. */
size_t pnb__factor_slopes_kept(size_t m); /* numbers */
void pnb__factor_slopes_keep(const pnb__factor_slopes *f, void *kept);
void pnb__factor_slopes_put_back(pnb__factor_slopes *f, const void *kept);

/* With f->inverse: the lower triangle of Kbar into kbar (M,M), where nothing is said of what stands
 * above, and Cbar in place of db. q (M,M), or NULL: its lower triangle is read; kbar may be q.
 * Shape  b, db (M,N) */
void pnb__factor_slopes_find(pnb__factor_slopes *f, const double *b, double *db, size_t n,
                             const double *q, double *kbar);

#endif
