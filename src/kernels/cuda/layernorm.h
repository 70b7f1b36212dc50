/* What the files of LayerNorm share. */
#ifndef PNB_KERNELS_CUDA_LAYERNORM_H
#define PNB_KERNELS_CUDA_LAYERNORM_H

#include "kernels/cuda/numbers.h"

/* Of backward: pnb__layernorm_args, by value. */
struct pnb__cuda_norm_bwd {
    size_t rows, width;
    const float *x, *w, *mean, *rstd;
    const void *dy; /* floats, or halves */
    bool are_halves;
    float *dx, *parts; /* parts (2, blocks, width): of dw, then of db */
    bool accumulate;
    __device__ float gradient(size_t i) const
    {
        return are_halves ? pnb__cuda_number(static_cast<const unsigned short *>(dy)[i])
                          : static_cast<const float *>(dy)[i];
    }
};

/* A result in bfloat16. */
void pnb__cuda_layernorm_halves(const pnb_ctx *ctx, const pnb__layernorm_args *a);
/* dx and the parts: how many blocks made them; 0: it takes no such rows. */
size_t pnb__cuda_layernorm_bwd_by_warps(const pnb_ctx *ctx, const pnb__cuda_norm_bwd &a);

#endif
