/* In place of the column where the program is built without CUDA.
 *
 * A context of the device is refused with that word; nothing computes on the processor in its
 * place, since whoever asked for a device has reason to. */
#include "kernels/cuda/device.h"

static pnb_status refuse(int index, pnb_error *err)
{
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "cuda:%d: this program was built without CUDA; build it where nvcc is found "
                     "(-DPNB_CUDA=ON says why it is not)",
                     index);
}

pnb_status pnb__cuda_open(pnb_ctx *ctx, int index, pnb_error *err)
{
    (void)ctx;
    return refuse(index, err);
}

pnb_status pnb__cuda_look(const pnb_ctx *ctx, pnb__cuda_facts *out, pnb_error *err)
{
    (void)ctx, (void)out;
    return refuse(0, err);
}
