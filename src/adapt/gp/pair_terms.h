/* What GroVE's loss says of a batch's marginals, and its slopes, without a graph.
 *
 * The loss of grove_loss.h less the divergences:
 *   elbo_weight sum over sides -E log N(y | f, noise) / N + align_weight / N sum_n align_n
 * Shape letters: D outputs, F = D or 1 variances, N points of the batch. */
#ifndef PNB_ADAPT_GP_PAIR_TERMS_H
#define PNB_ADAPT_GP_PAIR_TERMS_H

#include "adapt/gp/grove_loss.h"

typedef struct pnb__pair_side {
    size_t n_outputs, n_factors;
    const double *y, *mean;        /* (D,N) */
    const double *var;             /* (F,N), above 0 */
    const double *noise;           /* (1) of all outputs, or (D) */
    size_t n_noises;               /* 1 or D */
    double *dmean, *dvar, *dnoise; /* slopes, written */
} pnb__pair_side;

typedef struct pnb__pair_loss_terms {
    double fit, align; /* weighted: their sum is the loss */
} pnb__pair_loss_terms;

/* Sides are as wide as each other where align_weight is not 0. n_data is not read. */
pnb__pair_loss_terms pnb__pair_terms(pnb__pair_side sides[2], size_t n,
                                     const pnb__grove_loss_opts *opts);

#endif
