/* Picks the kernels of a context: the reference table first, then whatever is faster here.
 * A later column (another device) overwrites slots in the same way, so a slot that nobody made fast
 * is still there and right. */
#include "kernels/kernels.h"

void pnb__kernels_fill_host(pnb__kernels *k, const pnb_ctx *ctx, pnb__real real)
{
    if (real == PNB__F64)
        pnb__kernels_ref_f64(k);
    else
        pnb__kernels_ref_f32(k);
    k->ctx = ctx;
    if (ctx->device == PNB_DEVICE_REF)
        return;
    if (real == PNB__F64)
        pnb__kernels_cpu_f64(k, ctx->isa);
    else
        pnb__kernels_cpu_f32(k, ctx->isa, ctx->batch_invariant);
    if (real == PNB__F32 && ctx->emulates_tiles)
        pnb__kernels_emulate_tiles(k);
}

void pnb__kernels_fill(pnb__kernels *k, const pnb_ctx *ctx, pnb__real real)
{
    pnb__kernels_fill_host(k, ctx, real);
    if (ctx->column != NULL)
        ctx->column(k);
}

void pnb__kernels_slots(const pnb__kernels *k, pnb__kernel_slot out[PNB__N_SLOTS])
{
    size_t i = 0;
#define PNB__KERNEL(column, returns, name, parameters, names)                                      \
    out[i++] = (pnb__kernel_slot){#name, PNB__KERNEL_##column, (void (*)(void))k->name};
#include "kernels/kernels.def"
#define PNB__KERNEL(column, returns, name, parameters, names)                                      \
    out[i++] =                                                                                     \
        (pnb__kernel_slot){"host." #name, PNB__KERNEL_##column, (void (*)(void))k->host.name};
#include "kernels/host.def"
}
