/* A product of one to four rows with a weight in bfloat16: as fast as the weight can be read.
 *
 * A warp takes four rows of the weight at once, sixteen bytes to a lane, so that enough of them are
 * under way; what they are multiplied with lies widened in shared memory and is read once for the
 * four. Products are summed by lanes in floats, then over the lanes in one order. */
#include "kernels/cuda/halves.h"
#include "kernels/cuda/tensor_core.h"

namespace
{

enum {
    ROWS = 4, /* of the weight, at once */
    WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP,
    MOST_M = 4,
    MOST_K = 8192,         /* whose rows fit shared memory */
    BLOCKS_OF_A_DEVICE = 8 /* times PNB__CUDA_MANY */
};

struct few_rows {
    const unsigned short *a; /* (M, k) */
    const uint4 *b;          /* (n, k / 8) */
    size_t n, k, ldc;
    const float *bias; /* (n) or NULL */
    float *c, alpha;
};

__device__ inline float dot_of_two(unsigned both, float low, float high)
{
    return pnb__cuda_low(both) * low + pnb__cuda_high(both) * high;
}

/* The products of eight numbers, in one order. */
__device__ inline float dot_of_eight(uint4 b, float4 low, float4 high)
{
    return (dot_of_two(b.x, low.x, low.y) + dot_of_two(b.y, low.z, low.w)) +
           (dot_of_two(b.z, high.x, high.y) + dot_of_two(b.w, high.z, high.w));
}

/* Rows j .. j + ROWS - 1 of the weight, the last one again behind the end. */
template <int M>
__device__ void dot_rows(const few_rows &f, const float4 *a, size_t j, float sum[M][ROWS])
{
    const size_t lane = threadIdx.x % PNB__CUDA_WARP, eighths = f.k / 8;
    const uint4 *b[ROWS];
    for (int r = 0; r < ROWS; r++)
        b[r] = f.b + PNB_MIN(j + static_cast<size_t>(r), f.n - 1) * eighths;
    for (size_t p = lane; p < eighths; p += PNB__CUDA_WARP) {
        uint4 some[ROWS];
        for (int r = 0; r < ROWS; r++)
            some[r] = __ldg(b[r] + p);
        for (int m = 0; m < M; m++) {
            float4 low = a[(m * eighths + p) * 2], high = a[(m * eighths + p) * 2 + 1];
            for (int r = 0; r < ROWS; r++)
                sum[m][r] += dot_of_eight(some[r], low, high);
        }
    }
}

template <int M> __global__ void few_rows_kernel(few_rows f)
{
    PNB__CUDA_SHARED(float, a);
    const size_t lane = threadIdx.x % PNB__CUDA_WARP, warp = threadIdx.x / PNB__CUDA_WARP;
    for (size_t i = threadIdx.x; i < M * f.k; i += PNB__CUDA_THREADS)
        a[i] = pnb__cuda_bf16_widen(f.a[i]);
    __syncthreads();
    const size_t step = gridDim.x * static_cast<size_t>(WARPS * ROWS);
    for (size_t j = (blockIdx.x * static_cast<size_t>(WARPS) + warp) * ROWS; j < f.n; j += step) {
        float sum[M][ROWS] = {};
        dot_rows<M>(f, reinterpret_cast<const float4 *>(a), j, sum);
        for (int m = 0; m < M; m++)
            for (int r = 0; r < ROWS; r++) {
                size_t at = j + static_cast<size_t>(r);
                float v = pnb__cuda_warp(sum[m][r], pnb__cuda_add());
                if (lane == static_cast<size_t>(r) && at < f.n)
                    f.c[m * f.ldc + at] = f.alpha * v + (f.bias != NULL ? f.bias[at] : 0);
            }
    }
}

} // namespace

bool pnb__cuda_is_few_rows(size_t m, size_t k, const void *b)
{
    return m > 0 && m <= MOST_M && k % 8 == 0 && k > 0 && m * k <= MOST_K &&
           reinterpret_cast<uintptr_t>(b) % 16 == 0;
}

void pnb__cuda_multiply_few_rows(const pnb_ctx *ctx, const pnb__gemm_args *g,
                                 const unsigned short *a, const unsigned short *b)
{
    static void (*const kernels[MOST_M])(few_rows) = {few_rows_kernel<1>, few_rows_kernel<2>,
                                                      few_rows_kernel<3>, few_rows_kernel<4>};
    const few_rows f = {a,
                        reinterpret_cast<const uint4 *>(b),
                        g->n,
                        g->k,
                        g->ldc,
                        static_cast<const float *>(g->bias),
                        static_cast<float *>(g->c),
                        static_cast<float>(g->alpha)};
    size_t blocks = PNB_MIN((g->n + WARPS * ROWS - 1) / (WARPS * ROWS),
                            static_cast<size_t>(BLOCKS_OF_A_DEVICE) * PNB__CUDA_MANY);
    if (g->n > 0)
        pnb__cuda_launch(ctx, kernels[g->m - 1], dim3(static_cast<unsigned>(blocks)),
                         PNB__CUDA_THREADS, g->m * g->k * sizeof(float), f);
}
