/* One side of GroVE's training: its parameters, and what a step is to it. */
#ifndef PNB_ADAPT_GROVE_SIDE_H
#define PNB_ADAPT_GROVE_SIDE_H

#include "adapt/gp/pair_terms.h"
#include "adapt/grove/grove.h"

enum {
    PNB__GROVE_P_Z,
    PNB__GROVE_P_KERNEL, /* logarithms of the K kernels' numbers, a row a kind */
    PNB__GROVE_P_CONSTANT,
    PNB__GROVE_P_Q_MEAN,
    PNB__GROVE_P_MIXING,
    PNB__GROVE_P_FACTORS,
    PNB__GROVE_N_PARAMS
};

typedef struct pnb__fit_side {
    pnb__grove *g;
    int number; /* which side */
    const pnb_ctx *ctx;
    pnb__kernels kernels;
    pnb__real real;
    size_t n; /* of a batch */
    bool is_collapsed, is_exact;

    pnb__param params[PNB__GROVE_N_PARAMS]; /* name NULL: this fit does not have it */
    double jitter;                          /* the largest that was needed */
    pnb__marginals marginals;
    pnb__lmc lmc; /* instead, per output */
    /* parameters but the factors as doubles, the kernels' without logarithm; and their slopes */
    double *value[PNB__GROVE_P_FACTORS], *slope[PNB__GROVE_P_FACTORS], *numbers;
    double *mean, *var, *dmean, *dvar, *y, *rows;
    double *q_chol; /* (M,M) and a factor in doubles, where that is no parameter */
    void *collapsed;
} pnb__fit_side;

/* What the caller has filled: g to collapsed and exact. Parameters begin as g's arrays.
 * g's factors are given back where they are parameters.  Errors  NOMEM */
pnb_status pnb__fit_side_open(pnb__fit_side *w, pnb_error *err);
void pnb__fit_side_close(pnb__fit_side *w);
/* No step comes any more: gives back the room of steps, which taking has no use for. */
void pnb__fit_side_finish(pnb__fit_side *w);
/* A parameter without gradient, or with one; free with pnb__fit_side_free_param. */
pnb_status pnb__fit_side_param(const pnb__fit_side *w, pnb__param *p, const char *name, size_t n,
                               pnb_error *err);
void pnb__fit_side_free_param(const pnb__fit_side *w, pnb__param *p);
/* Of other memory than the parameter's: slopes become numbers of its type. */
void pnb__fit_side_put_slopes(const pnb__fit_side *w, pnb__param *p, const double *slopes);

/* Marginals of the pairs `batch` (n) at x (n,Q), as the terms of the loss.
 * Errors  NUMERIC, NOMEM */
pnb_status pnb__fit_side_forward(pnb__fit_side *w, const pnb__grove_pairs *pairs,
                                 const uint32_t *batch, const double *x, pnb__pair_side *terms,
                                 pnb_error *err);
/* Slopes of the terms, and of `weight` times the divergence, into the parameters; what the latents
 * get is added to dx (n,Q). Gives the divergence: sum over outputs of KL(q(v) || N(0,I)). */
double pnb__fit_side_backward(pnb__fit_side *w, const double *x, double weight, double *dx);
/* The parameters into g's arrays; a collapsed q(v) is that of all pairs at x.
 * Errors  NUMERIC, NOMEM */
pnb_status pnb__fit_side_take(pnb__fit_side *w, const pnb__grove_pairs *pairs,
                              const uint32_t *batch, const double *x, pnb_error *err);

#endif
