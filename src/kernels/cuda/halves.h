/* Values in bfloat16: what products and slots of halves share. */
#ifndef PNB_KERNELS_CUDA_HALVES_H
#define PNB_KERNELS_CUDA_HALVES_H

#include "kernels/cuda/cuda.h"

/* Rows of floats, ld apart, to halves without gaps. */
void pnb__cuda_round_rows(const pnb_ctx *ctx, const void *from, size_t rows, size_t width,
                          size_t ld, unsigned short *to);
/* to = act(from), rows ld apart in both; to may be from. */
void pnb__cuda_bend_halves(const pnb_ctx *ctx, pnb__unary act, size_t rows, size_t width, size_t ld,
                           const unsigned short *from, unsigned short *to);

#endif
