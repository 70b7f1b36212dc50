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
/* Whether the product of so few rows with the packed factor b is better made by reading b once. */
bool pnb__cuda_is_few_rows(size_t m, size_t k, const void *b);
/* c = alpha a b^T + bias: a (m,k) and b (n,k) in halves without gaps, all else is g's. */
void pnb__cuda_multiply_few_rows(const pnb_ctx *ctx, const pnb__gemm_args *g,
                                 const unsigned short *a, const unsigned short *b);

#endif
