/* What the processes of one training tell each other: distributions and gradients.
 *
 * R processes (ranks) train one set of parameters, each on its own samples of a step. A loss over
 * pairs must see the pairs of all ranks, so a step
 *   1. encodes its samples and gathers the distributions of all ranks,
 *   2. computes the loss over all rows and its gradient with respect to every row,
 *      or that of its own rows' losses with respect to every row, which are then summed,
 *   3. goes back through its own samples with the gradient of its own rows,
 *   4. sums the parameters' gradients over the ranks (the loop does this).
 * What all ranks compute alike, the gradient of the logits' scale and bias, is put into the sum of
 * step 4 by rank 0 alone: what comes out is the gradient of the one big batch.
 * Gradients of micro-batches are added in doubles, whoever has them, so that the sum does not
 * depend on how many processes there are (exchange_ranks.c says how nearly); all have the same
 * bits. Which samples a rank reads is dealt by the loader (rank, n_ranks and round of
 * pnb_loader_opts): what all ranks read in a step is what one process with as many micro-batches
 * reads, in its order. */
#ifndef PNB_TRAIN_EXCHANGE_H
#define PNB_TRAIN_EXCHANGE_H

#include "kernels/kernels.h"
#include "penumbra/peers.h"

typedef struct pnb__exchange {
    size_t rank, n_ranks;
    pnb_peers *ranks; /* for what else must be agreed; NULL: nothing has to be */
    void *self;
    /* rows of n_ranks parts, in host memory, part r being the numbers from[r] to from[r + 1] - 1
     * and that of `rank` filled in: afterwards all are. */
    pnb_status (*gather)(void *self, float *rows, const size_t *from, pnb_error *err);
    /* The same parts, all filled in by every rank: afterwards ours is the sum of theirs. */
    pnb_status (*sum_part)(void *self, float *rows, const size_t *from, pnb_error *err);
    /* Begins a step in which each of these gradients is the sum of what it holds whenever it is
     * added or begun: the same list on all ranks. NULL, with the two below: buffers hold their sums
     * themselves. */
    pnb_status (*open)(void *self, const pnb__flat *buffers, size_t n, pnb_error *err);
    /* What the buffers hold now joins their sums; they may hold something else afterwards. */
    pnb_status (*add)(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                      pnb_error *err);
    /* The same for the last time in this step: the sum over the ranks may begin while the caller
     * goes on. All ranks begin the same, in the same order. */
    pnb_status (*begin)(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                        pnb_error *err);
    /* Each buffer becomes its sum over what was added and over the ranks, on all of them; one that
     * was not begun is added first. *culprit: the lowest rank whose sums were not finite, or -1. */
    pnb_status (*sum)(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                      int *culprit, pnb_error *err);
} pnb__exchange;

/* One process: every call leaves its argument as it is. */
extern const pnb__exchange pnb__exchange_alone;

/* Over tied processes, sums by a thread of its own; of NULL a single process that accumulates.
 * `ranks` must outlive it, and until it is freed nothing else is done with it while a sum is under
 * way. */
pnb_status pnb__exchange_create(pnb__exchange **out, pnb_peers *ranks, pnb_error *err);
void pnb__exchange_free(pnb__exchange *x); /* waits for what is under way; NULL is fine */

#endif
