/* Rows of a matrix, each by a team of threads: a warp where rows are short, else a block. A warp's
 * sums need no barrier, and a block would be idle over most of a short row. */
#ifndef PNB_KERNELS_CUDA_TEAMS_H
#define PNB_KERNELS_CUDA_TEAMS_H

#include "kernels/cuda/cuda.h"

namespace
{

enum { WARP_ROW = 1024 /* the longest row for a warp */ };

template <int TEAM, class T, class Op> __device__ T over_team(T v, Op op)
{
    if (TEAM == PNB__CUDA_WARP)
        return pnb__cuda_warp(v, op);
    return pnb__cuda_block(v, op);
}

template <int TEAM, class T> __device__ T team_sum(T v)
{
    return over_team<TEAM>(v, pnb__cuda_add());
}

template <int TEAM, class F> __global__ void team_kernel(size_t rows, F f)
{
    const size_t each = PNB__CUDA_THREADS / TEAM;
    for (size_t r = blockIdx.x * each + threadIdx.x / TEAM; r < rows; r += gridDim.x * each)
        f.template row<TEAM>(r, threadIdx.x % TEAM);
}

/* f.row<TEAM>(r, lane) for r < rows by all TEAM threads together */
template <class F> void by_rows(const pnb_ctx *ctx, size_t rows, size_t width, F f)
{
    if (rows == 0)
        return;
    if (width <= WARP_ROW)
        pnb__cuda_launch(ctx, team_kernel<PNB__CUDA_WARP, F>,
                         pnb__cuda_blocks(rows, PNB__CUDA_THREADS / PNB__CUDA_WARP),
                         PNB__CUDA_THREADS, 0, rows, f);
    else
        pnb__cuda_launch(ctx, team_kernel<PNB__CUDA_THREADS, F>, pnb__cuda_blocks(rows, 1),
                         PNB__CUDA_THREADS, 0, rows, f);
}

} // namespace

#endif
