/* Picks the kernels of a context: the reference table first, then whatever is faster here.
 * A later column (another device) overwrites slots in the same way, so a slot that nobody made fast
 * is still there and right. */
#include "kernels/kernels.h"

void pnb__kernels_fill(pnb__kernels *k, const pnb_ctx *ctx, pnb__real real)
{
    if (real == PNB__F64)
        pnb__kernels_ref_f64(k);
    else
        pnb__kernels_ref_f32(k);
    if (ctx->device == PNB_DEVICE_REF)
        return;
    if (real == PNB__F64)
        pnb__kernels_cpu_f64(k, ctx->isa);
    else
        pnb__kernels_cpu_f32(k, ctx->isa, ctx->batch_invariant);
}
