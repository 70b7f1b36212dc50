/* A scan over a copy of the rows in one or two bytes a number; what it keeps is scored again. */
#ifndef PNB_INDEX_COMPRESSED_COMPRESSED_H
#define PNB_INDEX_COMPRESSED_COMPRESSED_H

#include "index/index_kind.h"
#include "kernels/kernels.h"

enum { PNB__COMPRESSED_BLOCK = 16384 }; /* rows packed together */

typedef struct pnb__compressed {
    bool is_bf16;
    pnb_gaussians gallery;
    pnb_search_opts opts;
    pnb_ctx inner; /* of one thread, for callers without a context */
    pnb__kernels kernels;
    pnb__packed *blocks;
    size_t n_blocks;
    float *term; /* [n] of the score that is the row's own, exact to f32 */
    double most_gap, most_norm, most_term; /* of a row: |copy - row|, |copy|, |term| */
} pnb__compressed;

/* How far the product of a query (as pnb__linear_query gives it) with any copy, and its term, may
 * lie from that with the row. */
double pnb__compressed_error(const pnb__compressed *c, const float *query);

extern const pnb__index_calls pnb__index_int8, pnb__index_bf16;

#endif
