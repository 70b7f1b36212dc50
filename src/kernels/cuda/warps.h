/* Pieces of work that a warp does together, and squared distances of its lanes' pairs. */
#ifndef PNB_KERNELS_CUDA_WARPS_H
#define PNB_KERNELS_CUDA_WARPS_H

#include "kernels/cuda/cuda.h"

template <class F> __global__ void pnb__cuda_warps_kernel(size_t n, F f)
{
    for (size_t i = pnb__cuda_index() / PNB__CUDA_WARP; i < n;
         i += pnb__cuda_step() / PNB__CUDA_WARP)
        f.warp(i);
}

/* f.warp(i) for i < n by all lanes of a warp together; it must reach shuffles with every lane, and
 * __syncthreads not at all. */
template <class F> static void pnb__cuda_warps(const pnb_ctx *ctx, size_t n, F f)
{
    if (n > 0)
        pnb__cuda_launch(ctx, pnb__cuda_warps_kernel<F>,
                         pnb__cuda_blocks(n, PNB__CUDA_THREADS / PNB__CUDA_WARP), PNB__CUDA_THREADS,
                         0, n, f);
}

__device__ static inline size_t pnb__cuda_lane(void)
{
    return threadIdx.x % PNB__CUDA_WARP;
}

/* Rows of x against rows of y, `dim` long. */
struct pnb__cuda_sides {
    const float *x, *y;
    size_t dim;

    /* |x_i - y_j|^2, in every lane the same i and j and the same number */
    __device__ double apart(size_t i, size_t j) const
    {
        double total = 0;
        for (size_t d = pnb__cuda_lane(); d < dim; d += PNB__CUDA_WARP) {
            double by = static_cast<double>(x[i * dim + d]) - static_cast<double>(y[j * dim + d]);
            total += by * by;
        }
        return pnb__cuda_warp(total, pnb__cuda_add());
    }

    /* |x_i - y_j|^2 of each lane's own i and j, from the sum of their squares and their product: by
     * differences where that loses more than four bits, as the reference does. There the lanes help
     * one another, pair after pair, so that rows are read by neighbours. A lane without a pair
     * gives zeros. */
    __device__ double square(double sum, double product, size_t i, size_t j) const
    {
        const double near_share = 0.0625;
        double d2 = sum - 2 * product;
        int is_near = d2 < near_share * sum ? 1 : 0;
        if (pnb__cuda_warp(is_near, pnb__cuda_most()) == 0)
            return d2;
        for (int lane = 0; lane < PNB__CUDA_WARP; lane++) {
            if (__shfl_sync(0xffffffffu, is_near, lane) == 0)
                continue;
            double exact =
                apart(__shfl_sync(0xffffffffu, i, lane), __shfl_sync(0xffffffffu, j, lane));
            if (pnb__cuda_lane() == static_cast<size_t>(lane))
                d2 = exact;
        }
        return d2;
    }
};

#endif
