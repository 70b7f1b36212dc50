/* Nearest rows of a set's own rows, a block at a time: what duplicates and outliers are made of. */
#ifndef PNB_EVAL_CURATION_NEIGHBOURS_H
#define PNB_EVAL_CURATION_NEIGHBOURS_H

#include "base/base.h"
#include "penumbra/search.h"

enum { PNB__NEIGHBOUR_BLOCK = 1024 }; /* rows whose nearest are searched together */

typedef struct pnb__neighbours {
    const pnb_ctx *ctx;
    pnb_rows rows; /* means and variances of those given */
    pnb_index *index;
    float *mean, *log_var; /* rows gathered for a search, PNB__NEIGHBOUR_BLOCK of them */
} pnb__neighbours;

/* Errors  ARG (an asymmetric measure, or one that does not fit the family), those of
 *         pnb_index_create */
pnb_status pnb__neighbours_init(pnb__neighbours *n, const pnb_ctx *ctx, const pnb_gaussians *rows,
                                pnb_measure measure, const pnb_measure_opts *opts, pnb_error *err);
void pnb__neighbours_reset(pnb__neighbours *n);

/* The k nearest rows of rows begin .. begin + count (at most a block), themselves included. */
pnb_status pnb__neighbours_of_block(pnb__neighbours *n, size_t begin, size_t count, size_t k,
                                    pnb_hits *hits, pnb_error *err);
/* The same for any rows, at most a block of them. */
pnb_status pnb__neighbours_of_rows(pnb__neighbours *n, const size_t *row, size_t count, size_t k,
                                   pnb_hits *hits, pnb_error *err);

#endif
