/* The exchange of a training that runs in one process: its rows are all rows, its gradient, which
 * adds up where it is made, is the whole gradient. Several processes have a table of their own
 * (exchange_ranks.c); the loop asks neither which one it has. */
#include "train/ranks/exchange.h"

/* All rows are ours: gathering them is nothing to be done. No
 * copy is made, so that one process pays nothing for what several can do. */
static pnb_status keep_rows(void *self, float *rows, const size_t *from, pnb_error *err)
{
    (void)self, (void)rows, (void)from, (void)err;
    return PNB_OK;
}

static pnb_status keep_buffers(void *self, const pnb__kernels *k, const pnb__flat *buffers,
                               size_t n, int *culprit, pnb_error *err)
{
    (void)self, (void)k, (void)buffers, (void)n, (void)err;
    *culprit = -1;
    return PNB_OK;
}

const pnb__exchange pnb__exchange_alone = {
    .n_ranks = 1, .gather = keep_rows, .sum_part = keep_rows, .sum = keep_buffers};
