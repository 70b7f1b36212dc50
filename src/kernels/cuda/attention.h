/* What the kernels of attention get, and which keys a query sees. */
#ifndef PNB_KERNELS_CUDA_ATTENTION_H
#define PNB_KERNELS_CUDA_ATTENTION_H

#include "kernels/cuda/cuda.h"

/* pnb__attention_args, by value. */
struct pnb__cuda_attention_args {
    size_t n_batch, n_heads, n_q, n_kv;
    size_t batch_q, row_q, batch_kv, row_kv, batch_out, row_out;
    int head_dim;
    const float *q, *k, *v, *d_out;
    float *out, *lse, *dq, *dk, *dv;
    float *delta; /* (B,H,Tq) dO . O, backward */
    bool causal, accumulate_q, accumulate_kv;
    const int32_t *kv_len;
    float scale;
};

template <class T>
__device__ static inline T *pnb__cuda_head(const pnb__cuda_attention_args &a, T *p, size_t batch,
                                           size_t b, size_t h)
{
    return p + b * batch + h * static_cast<size_t>(a.head_dim);
}

/* Number of keys query i of batch item b sees: always the first ones. */
__device__ static inline size_t pnb__cuda_seen(const pnb__cuda_attention_args &a, size_t b,
                                               size_t i)
{
    size_t n = a.n_kv;
    if (a.kv_len != NULL) {
        size_t len = static_cast<size_t>(a.kv_len[b] > 0 ? a.kv_len[b] : 0);
        n = n < len ? n : len;
    }
    if (a.causal) {
        size_t upto = a.n_kv + i + 1 > a.n_q ? a.n_kv + i + 1 - a.n_q : 0;
        n = n < upto ? n : upto;
    }
    return n;
}

/* The most that a query of a tile sees: the last one does. */
__device__ static inline size_t pnb__cuda_seen_by_tile(const pnb__cuda_attention_args &a, size_t b,
                                                       size_t first, size_t n)
{
    size_t last = first + n - 1 < a.n_q - 1 ? first + n - 1 : a.n_q - 1;
    return pnb__cuda_seen(a, b, last);
}

/* attention_halves.cu: heads of up to 128 numbers; are_halves: q, k, v and out, and their
 * gradients, point to halves. */
enum { PNB__CUDA_HALVES_WIDTH = 128 };
void pnb__cuda_attention_halves(const pnb_ctx *ctx, const pnb__cuda_attention_args &a,
                                bool are_halves);
void pnb__cuda_attention_halves_bwd(const pnb_ctx *ctx, const pnb__cuda_attention_args &a,
                                    bool are_halves);

#endif
