/* Other forms of LayerNorm, for its slots. */
#ifndef PNB_KERNELS_CUDA_LAYERNORM_H
#define PNB_KERNELS_CUDA_LAYERNORM_H

#include "kernels/cuda/cuda.h"

/* A result in bfloat16. */
void pnb__cuda_layernorm_halves(const pnb_ctx *ctx, const pnb__layernorm_args *a);
/* dx, and the parts of dw and db in a->work, dw's before db's: how many; 0: it takes no such rows.
 */
size_t pnb__cuda_layernorm_bwd_by_warps(const pnb_ctx *ctx, const pnb__layernorm_args *a);

#endif
