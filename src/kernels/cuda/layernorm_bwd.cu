/* LayerNorm's derivatives where a warp keeps a row in registers: rows of fours, at most 1024
 * numbers.
 *
 * A warp takes every so many rows, reads x and dy of each once, and goes on with the next without
 * waiting for another one: the two means of a row are its own sums. Its parts of dw and db stay in
 * registers; those of a block are added up once, in the order of its warps. */
#include "kernels/cuda/layernorm.h"

namespace
{

enum { WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP, MOST_FOURS = 8, MOST_BLOCKS = 132 * 2 };

typedef pnb__cuda_norm_bwd args;

__device__ void read_four(const float *from, float to[4])
{
    float4 v = *reinterpret_cast<const float4 *>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ void read_four(const unsigned short *from, float to[4])
{
    uint2 v = *reinterpret_cast<const uint2 *>(from);
    to[0] = pnb__cuda_low(v.x), to[1] = pnb__cuda_high(v.x);
    to[2] = pnb__cuda_low(v.y), to[3] = pnb__cuda_high(v.y);
}

/* This lane's numbers of a row: fours lane, lane + 32, ... */
template <int FOURS> struct fours {
    float of[4 * FOURS];
};

template <int FOURS, class T>
__device__ fours<FOURS> read_row(const T *row, size_t width, float rest)
{
    fours<FOURS> v;
    PNB__CUDA_UNROLL
    for (int k = 0; k < FOURS; k++) {
        size_t at = 4 * (threadIdx.x % PNB__CUDA_WARP + k * PNB__CUDA_WARP);
        for (int e = 0; e < 4; e++)
            v.of[4 * k + e] = rest;
        if (at < width)
            read_four(row + at, v.of + 4 * k);
    }
    return v;
}

template <int FOURS>
__device__ void write_row(float *row, size_t width, const fours<FOURS> &v, bool accumulate)
{
    PNB__CUDA_UNROLL
    for (int k = 0; k < FOURS; k++) {
        size_t at = 4 * (threadIdx.x % PNB__CUDA_WARP + k * PNB__CUDA_WARP);
        if (at >= width)
            continue;
        float4 *to = reinterpret_cast<float4 *>(row + at);
        float4 old = accumulate ? *to : make_float4(0, 0, 0, 0);
        *to = make_float4(old.x + v.of[4 * k], old.y + v.of[4 * k + 1], old.z + v.of[4 * k + 2],
                          old.w + v.of[4 * k + 3]);
    }
}

/* dx = rstd (g - mean(g) - xh mean(g xh)); adds to dw and db. */
template <int FOURS, class T>
__device__ void one_row(const args &a, size_t r, fours<FOURS> *dw, fours<FOURS> *db)
{
    const float mean = a.mean[r], rstd = a.rstd[r], width = static_cast<float>(a.width);
    fours<FOURS> xh = read_row<FOURS>(a.x + r * a.width, a.width, mean);
    fours<FOURS> g = read_row<FOURS>(static_cast<const T *>(a.dy) + r * a.width, a.width, 0.0f);
    float sum = 0, sum_x = 0;
    PNB__CUDA_UNROLL
    for (int k = 0; k < FOURS; k++) {
        float w[4] = {1, 1, 1, 1};
        size_t at = 4 * (threadIdx.x % PNB__CUDA_WARP + k * PNB__CUDA_WARP);
        if (a.w != NULL && at < a.width)
            read_four(a.w + at, w);
        PNB__CUDA_UNROLL
        for (int i = 4 * k; i < 4 * k + 4; i++) {
            xh.of[i] = (xh.of[i] - mean) * rstd;
            dw->of[i] += g.of[i] * xh.of[i];
            db->of[i] += g.of[i];
            g.of[i] *= w[i % 4];
            sum += g.of[i];
            sum_x += g.of[i] * xh.of[i];
        }
    }
    if (a.dx == NULL)
        return;
    sum = pnb__cuda_warp(sum, pnb__cuda_add()) / width;
    sum_x = pnb__cuda_warp(sum_x, pnb__cuda_add()) / width;
    PNB__CUDA_UNROLL
    for (int i = 0; i < 4 * FOURS; i++)
        g.of[i] = rstd * (g.of[i] - sum - xh.of[i] * sum_x);
    write_row<FOURS>(a.dx + r * a.width, a.width, g, a.accumulate);
}

/* The block's sum of its warps' v, to a row of parts. */
template <int FOURS>
__device__ void put_part(const args &a, float *part, const fours<FOURS> &v,
                         float room[WARPS][4 * FOURS * PNB__CUDA_WARP])
{
    __syncthreads();
    PNB__CUDA_UNROLL
    for (int i = 0; i < 4 * FOURS; i++)
        room[threadIdx.x / PNB__CUDA_WARP]
            [4 * (threadIdx.x % PNB__CUDA_WARP + i / 4 * PNB__CUDA_WARP) + i % 4] = v.of[i];
    __syncthreads();
    for (size_t i = threadIdx.x; i < a.width; i += PNB__CUDA_THREADS) {
        float sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += room[w][i];
        part[i] = sum;
    }
}

template <int FOURS, class T> __global__ void __launch_bounds__(PNB__CUDA_THREADS) by_warps(args a)
{
    __shared__ float room[WARPS][4 * FOURS * PNB__CUDA_WARP];
    fours<FOURS> dw = {}, db = {};
    const size_t step = gridDim.x * static_cast<size_t>(WARPS);
    for (size_t r = blockIdx.x * static_cast<size_t>(WARPS) + threadIdx.x / PNB__CUDA_WARP;
         r < a.rows; r += step)
        one_row<FOURS, T>(a, r, &dw, &db);
    put_part<FOURS>(a, a.parts + blockIdx.x * a.width, dw, room);
    put_part<FOURS>(a, a.parts + (gridDim.x + blockIdx.x) * a.width, db, room);
}

template <class T> void launch(const pnb_ctx *ctx, size_t blocks, size_t n_fours, const args &a)
{
    void (*kernel)(args) = n_fours <= 2   ? by_warps<2, T>
                           : n_fours <= 4 ? by_warps<4, T>
                           : n_fours <= 6 ? by_warps<6, T>
                                          : by_warps<MOST_FOURS, T>;
    pnb__cuda_launch(ctx, kernel, dim3(static_cast<unsigned>(blocks)), PNB__CUDA_THREADS, 0, a);
}

} // namespace

size_t pnb__cuda_layernorm_bwd_by_warps(const pnb_ctx *ctx, const pnb__cuda_norm_bwd &a)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(a.x) | reinterpret_cast<uintptr_t>(a.w) |
                   reinterpret_cast<uintptr_t>(a.dx) | reinterpret_cast<uintptr_t>(a.dy);
    size_t n_fours = (a.width / 4 + PNB__CUDA_WARP - 1) / PNB__CUDA_WARP;
    size_t blocks = PNB_MIN((a.rows + WARPS - 1) / WARPS, static_cast<size_t>(MOST_BLOCKS));
    if (at % 16 != 0 || a.width % 4 != 0 || n_fours == 0 || n_fours > MOST_FOURS || a.rows == 0)
        return 0;
    if (a.are_halves)
        launch<unsigned short>(ctx, blocks, n_fours, a);
    else
        launch<float>(ctx, blocks, n_fours, a);
    return blocks;
}
