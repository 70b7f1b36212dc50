/* What the processes of one training tell each other: distributions and gradients.
 *
 * R processes (ranks) train one set of parameters, each on its own samples of a step. A loss over
 * pairs must see the pairs of all ranks, so a step
 *   1. encodes its samples and gathers the distributions of all ranks,
 *   2. computes the loss over all rows, times 1/R, and its gradient with respect to every row,
 *   3. sums these over the ranks, each taking the rows that are its own, and goes back through its
 *      own samples,
 *   4. sums the parameters' gradients over the ranks (the loop does this).
 * With the factor 1/R everything that all ranks compute alike, such as the gradient of the logit
 * scale, counts once in the sum of step 4: what comes out is the gradient of the one big batch.
 * Ranks add in the same order, so all have the same bits after it. Which samples a rank reads is
 * dealt by the loader (rank, n_ranks and turn of pnb_loader_opts): what all ranks read in a step is
 * what one process with as many micro-batches reads, in its order. */
#ifndef PNB_TRAIN_EXCHANGE_H
#define PNB_TRAIN_EXCHANGE_H

#include "kernels/kernels.h"

typedef struct pnb__exchange {
    size_t rank, n_ranks;
    void *self;
    /* rows (n_ranks, n), host memory, the row `rank` filled in: afterwards all rows are. */
    pnb_status (*gather)(void *self, float *rows, size_t n, pnb_error *err);
    /* The adjoint: rows (n_ranks, n) are gradients, the row `rank` becomes its sum over the ranks;
     * the others are left undefined. */
    pnb_status (*gather_back)(void *self, float *rows, size_t n, pnb_error *err);
    /* Each buffer becomes its sum over the ranks, on all of them. */
    pnb_status (*sum)(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                      pnb_error *err);
} pnb__exchange;

/* One process: every call leaves its argument as it is. */
extern const pnb__exchange pnb__exchange_alone;

#endif
