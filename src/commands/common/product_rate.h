/* How fast this machine multiplies at the moment, by kind of factor: a neighbour's work is in it.
 */
#ifndef PNB_COMMANDS_COMMON_PRODUCT_RATE_H
#define PNB_COMMANDS_COMMON_PRODUCT_RATE_H

#include "base/base.h"

typedef enum pnb__product_kind {
    PNB__PRODUCT_F32,  /* both factors as they lie */
    PNB__PRODUCT_BF16, /* the second one packed beforehand */
    PNB__PRODUCT_I8    /* likewise */
} pnb__product_kind;

/* Multiplications and additions in 1e9 a second of a square product that fits the caches well, on
 * the threads of the context: the best of up to n_runs, of fewer where one takes a second. A slow
 * unit gets fewer rows.  Errors  NOMEM, *out untouched */
pnb_status pnb__product_rate(const pnb_ctx *ctx, pnb__product_kind kind, int n_runs, double *out,
                             pnb_error *err);

#endif
