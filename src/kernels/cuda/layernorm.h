/* LayerNorm with a result in bfloat16, for the slot that has one in floats. */
#ifndef PNB_KERNELS_CUDA_LAYERNORM_H
#define PNB_KERNELS_CUDA_LAYERNORM_H

#include "kernels/cuda/cuda.h"

void pnb__cuda_layernorm_halves(const pnb_ctx *ctx, const pnb__layernorm_args *a);

#endif
