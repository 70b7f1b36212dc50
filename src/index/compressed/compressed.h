/* A scan over a copy of the rows in one or two bytes a number; what it keeps is scored again. */
#ifndef PNB_INDEX_COMPRESSED_COMPRESSED_H
#define PNB_INDEX_COMPRESSED_COMPRESSED_H

#include "index/index_kind.h"
#include "kernels/kernels.h"

enum { PNB__COMPRESSED_BLOCK = 16384 }; /* rows packed together; on a device eight times as many */

typedef struct pnb__compressed {
    bool is_bf16;
    pnb_gaussians gallery;
    pnb_search_opts opts;
    pnb_ctx inner; /* of one thread, for callers without a context */
    pnb__kernels kernels;
    bool on_device;      /* blocks and terms lie in its memory */
    size_t block;        /* rows of a block, but for the last */
    pnb__packed *blocks; /* data is the kernels' memory */
    size_t n_blocks;
    float *term;          /* [n] of the score that is the row's own, exact to f32 */
    void *device_term;    /* the same there, or NULL */
    size_t device_scores; /* floats of its memory that scores of a pass may take */
    double most_gap, most_norm, most_term; /* of a row: |copy - row|, |copy|, |term| */
} pnb__compressed;

/* How far the product of a query (as pnb__linear_query gives it) with any copy, and its term, may
 * lie from that with the row. */
double pnb__compressed_error(const pnb__compressed *c, const float *query);

/* Candidates of all queries: near (n, k) comes with its arrays. On a device scores may be rounded
 * to bfloat16, which PNB__COMPRESSED_ROUNDING bounds.  Errors  NOMEM, IO (of a device) */
pnb_status pnb__compressed_scan_host(const pnb__compressed *c, const pnb_ctx *ctx,
                                     const pnb__among *among, pnb_hits *near, pnb_error *err);
pnb_status pnb__compressed_scan_device(const pnb__compressed *c, const pnb__among *among,
                                       bool rounds, pnb_hits *near, pnb_error *err);
/* Share of a score, and of a row's own term in it, that rounding takes at most. */
#define PNB__COMPRESSED_ROUNDING (1.01 * 0x1p-8)

/* The search of both kinds; unsure[q], of all queries: whether a row that was left out might be
 * better than the last hit. */
pnb_status pnb__compressed_nearest(const pnb__compressed *c, const pnb_ctx *ctx,
                                   const pnb__among *among, pnb_hits *hits, bool *unsure,
                                   pnb_error *err);

extern const pnb__index_calls pnb__index_int8, pnb__index_bf16;

#endif
