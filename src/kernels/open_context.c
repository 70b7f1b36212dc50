/* The public way to a context: the base makes it, this room opens its device.
 *
 * A device belongs to the kernels, which lie above the base; what gives it back hangs in the
 * context, so that freeing needs no such step. */
#include "kernels/cuda/device.h"

#include "penumbra/ctx.h"

pnb_status pnb_ctx_create(pnb_ctx **out, const pnb_ctx_opts *opts, pnb_error *err)
{
    pnb_ctx *ctx = NULL;
    pnb_status status = pnb__ctx_create(&ctx, opts, err);
    if (status == PNB_OK && ctx->device == PNB_DEVICE_CUDA)
        status = pnb__cuda_open(ctx, opts->device_index, err);
    if (status == PNB_OK)
        *out = ctx;
    else
        pnb_ctx_free(ctx);
    return status;
}
