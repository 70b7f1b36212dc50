/* LayerNorm whose result is bfloat16: what a product with a rounded weight reads. A warp to a row,
 * which it keeps in registers where the row has at most 1024 numbers in fours; other rows are read
 * three times. The mean is taken off before squares are summed, as in layernorm.cu. */
#include "kernels/cuda/layernorm.h"
#include "kernels/cuda/tensor_core.h"

namespace
{

enum { WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP, MOST_FOURS = 8 };

struct args {
    size_t rows, width;
    float eps;
    const float *x, *w, *b;
    float *mean, *rstd;
    unsigned short *y;
};

__device__ size_t row_of()
{
    return blockIdx.x * static_cast<size_t>(WARPS) + threadIdx.x / PNB__CUDA_WARP;
}

__device__ void keep(const args &a, size_t r, float mean, float rstd)
{
    if (threadIdx.x % PNB__CUDA_WARP != 0)
        return;
    if (a.mean != NULL)
        a.mean[r] = mean;
    if (a.rstd != NULL)
        a.rstd[r] = rstd;
}

/* FOURS float4 of the row to a lane */
template <int FOURS> __global__ void in_registers(args a)
{
    size_t r = row_of();
    int lane = static_cast<int>(threadIdx.x % PNB__CUDA_WARP), n = static_cast<int>(a.width / 4);
    if (r >= a.rows)
        return; /* a warp together */
    const float4 *x = reinterpret_cast<const float4 *>(a.x + r * a.width);
    float4 v[FOURS];
    float sum = 0, squares = 0, width = static_cast<float>(a.width);
    for (int k = 0; k < FOURS; k++) {
        int i = lane + k * PNB__CUDA_WARP;
        v[k] = i < n ? x[i] : make_float4(0, 0, 0, 0);
        sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
    }
    float mean = pnb__cuda_warp(sum, pnb__cuda_add()) / width;
    for (int k = 0; k < FOURS; k++) {
        if (lane + k * PNB__CUDA_WARP >= n)
            continue;
        v[k] = make_float4(v[k].x - mean, v[k].y - mean, v[k].z - mean, v[k].w - mean);
        squares += (v[k].x * v[k].x + v[k].y * v[k].y) + (v[k].z * v[k].z + v[k].w * v[k].w);
    }
    float rstd = 1 / sqrtf(pnb__cuda_warp(squares, pnb__cuda_add()) / width + a.eps);
    for (int k = 0; k < FOURS; k++) {
        int i = lane + k * PNB__CUDA_WARP;
        if (i >= n)
            continue;
        float4 w = a.w != NULL ? reinterpret_cast<const float4 *>(a.w)[i] : make_float4(1, 1, 1, 1);
        float4 b = a.b != NULL ? reinterpret_cast<const float4 *>(a.b)[i] : make_float4(0, 0, 0, 0);
        uint2 out = {pnb__cuda_pack(v[k].x * rstd * w.x + b.x, v[k].y * rstd * w.y + b.y),
                     pnb__cuda_pack(v[k].z * rstd * w.z + b.z, v[k].w * rstd * w.w + b.w)};
        reinterpret_cast<uint2 *>(a.y + r * a.width)[i] = out;
    }
    keep(a, r, mean, rstd);
}

__global__ void by_reading(args a)
{
    size_t r = row_of(), lane = threadIdx.x % PNB__CUDA_WARP;
    if (r >= a.rows)
        return;
    const float *x = a.x + r * a.width;
    float sum = 0, squares = 0, width = static_cast<float>(a.width);
    for (size_t i = lane; i < a.width; i += PNB__CUDA_WARP)
        sum += x[i];
    float mean = pnb__cuda_warp(sum, pnb__cuda_add()) / width;
    for (size_t i = lane; i < a.width; i += PNB__CUDA_WARP)
        squares += (x[i] - mean) * (x[i] - mean);
    float rstd = 1 / sqrtf(pnb__cuda_warp(squares, pnb__cuda_add()) / width + a.eps);
    for (size_t i = lane; i < a.width; i += PNB__CUDA_WARP)
        a.y[r * a.width + i] = pnb__cuda_bf16_of((x[i] - mean) * rstd * (a.w != NULL ? a.w[i] : 1) +
                                                 (a.b != NULL ? a.b[i] : 0));
    keep(a, r, mean, rstd);
}

typedef void (*kernel_fn)(args);

kernel_fn kernel_of(const args &a)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(a.x) | reinterpret_cast<uintptr_t>(a.w) |
                   reinterpret_cast<uintptr_t>(a.b) | reinterpret_cast<uintptr_t>(a.y);
    size_t fours = (a.width / 4 + PNB__CUDA_WARP - 1) / PNB__CUDA_WARP;
    if (at % 16 != 0 || a.width % 4 != 0 || fours > MOST_FOURS)
        return by_reading;
    return fours <= 4 ? in_registers<4> : fours <= 6 ? in_registers<6> : in_registers<MOST_FOURS>;
}

} // namespace

void pnb__cuda_layernorm_halves(const pnb_ctx *ctx, const pnb__layernorm_args *g)
{
    const args a = {g->rows,
                    g->width,
                    static_cast<float>(g->eps),
                    static_cast<const float *>(g->x),
                    static_cast<const float *>(g->w),
                    static_cast<const float *>(g->b),
                    static_cast<float *>(g->mean),
                    static_cast<float *>(g->rstd),
                    static_cast<unsigned short *>(g->y)};
    if (a.rows > 0)
        pnb__cuda_launch(ctx, kernel_of(a),
                         dim3(static_cast<unsigned>((a.rows + WARPS - 1) / WARPS)),
                         PNB__CUDA_THREADS, 0, a);
}
