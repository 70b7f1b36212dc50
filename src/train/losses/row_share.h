/* Which rows of a batch a process computes the losses of.
 *
 * A loss over pairs is a sum over rows, image i against all texts and text i against all images:
 * several processes can share the rows out, each with all columns before it. What they compute adds
 * up to the loss of the batch, and so do their gradients, those of columns too. The rows of a
 * process lie in two runs, since the originals of all masked copies stand first (step.c). */
#ifndef PNB_TRAIN_LOSSES_ROW_SHARE_H
#define PNB_TRAIN_LOSSES_ROW_SHARE_H

#include "tensor/graph.h"

enum { PNB__SHARE_RUNS = 2 };

typedef struct pnb__row_share {
    size_t begin[PNB__SHARE_RUNS], n[PNB__SHARE_RUNS]; /* originals of masked rows, the others */
    size_t n_all;                                      /* rows of the batch; 0: all are ours */
} pnb__row_share;

static inline bool pnb__is_shared(const pnb__row_share *s)
{
    return s->n_all > 0;
}

/* Our rows of x, whose first dimension is that of the batch; x itself where all are ours. NULL of
 * NULL. */
pnb__tensor *pnb__share_rows(const pnb__row_share *s, pnb__tensor *x);
/* x by our part of the rows: of the mean over ours what it counts in that over all; of what every
 * process computes as a whole what adds up to it. */
pnb__tensor *pnb__share_part(const pnb__row_share *s, pnb__tensor *x);
/* Values of our rows into an input, of those of all rows, `width` each.  Errors  NOMEM */
pnb_status pnb__share_write_i32(const pnb__row_share *s, pnb__tensor *x, const int32_t *all,
                                size_t width, pnb_error *err);
pnb_status pnb__share_write_f32(const pnb__row_share *s, pnb__tensor *x, const float *all,
                                size_t width, pnb_error *err);

/* The runs of our rows in a batch of n; all of them are one run. */
static inline pnb__row_share pnb__share_runs(const pnb__row_share *s, size_t n)
{
    return pnb__is_shared(s) ? *s : (pnb__row_share){{0, 0}, {n, 0}, n};
}

/* How many are ours, of a batch of n rows. */
static inline size_t pnb__share_count(const pnb__row_share *s, size_t n)
{
    return pnb__is_shared(s) ? s->n[0] + s->n[1] : n;
}

#endif
