/* A product of one to four rows with a weight in bfloat16: as fast as the weight can be read.
 *
 * A warp takes four or eight rows of the weight at once, sixteen bytes to a lane, so that enough of
 * them are under way; what they are multiplied with lies widened in shared memory and is read once
 * for the eight. Products are summed by lanes in floats, then over the lanes in one order: lanes
 * hand each other half of their sums, until each has one. */
#include "kernels/cuda/halves.h"
#include "kernels/cuda/tensor_core.h"

namespace
{

enum {
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

/* Of the weight, at once: as many as registers hold sums of. */
__host__ __device__ constexpr int rows_for(int m)
{
    return m <= 2 ? 8 : 4;
}

/* Rows j .. j + ROWS - 1 of the weight, the last one again behind the end. */
template <int M, int ROWS>
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

/* The sum over all lanes of the row that this lane has in the end: row_of(lane). */
template <int ROWS> __device__ inline float sum_of_row(float sum[ROWS], unsigned lane)
{
    unsigned apart = PNB__CUDA_WARP / 2;
    for (int n = ROWS / 2; n > 0; n /= 2, apart /= 2)
        for (int r = 0; r < n; r++) {
            bool is_high = (lane & apart) != 0;
            float mine = is_high ? sum[r + n] : sum[r], other = is_high ? sum[r] : sum[r + n];
            sum[r] = mine + __shfl_xor_sync(0xffffffffu, other, static_cast<int>(apart));
        }
    for (; apart > 0; apart /= 2)
        sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], static_cast<int>(apart));
    return sum[0];
}

/* The first exchange gives the upper half of the rows to lanes with the highest bit, and so on. */
template <int ROWS> __device__ inline size_t row_of(unsigned lane)
{
    return lane / (PNB__CUDA_WARP / ROWS);
}

template <int M> __global__ void few_rows_kernel(few_rows f)
{
    enum { ROWS = rows_for(M) };
    PNB__CUDA_SHARED(float, a);
    const unsigned lane = threadIdx.x % PNB__CUDA_WARP;
    const size_t warp = threadIdx.x / PNB__CUDA_WARP;
    for (size_t i = threadIdx.x; i < M * f.k; i += PNB__CUDA_THREADS)
        a[i] = pnb__cuda_bf16_widen(f.a[i]);
    __syncthreads();
    const size_t step = gridDim.x * static_cast<size_t>(WARPS * ROWS);
    for (size_t j = (blockIdx.x * static_cast<size_t>(WARPS) + warp) * ROWS; j < f.n; j += step) {
        float sum[M][ROWS] = {};
        dot_rows<M, ROWS>(f, reinterpret_cast<const float4 *>(a), j, sum);
        for (int m = 0; m < M; m++) {
            size_t at = j + row_of<ROWS>(lane);
            float v = sum_of_row<ROWS>(sum[m], lane);
            if (lane % (PNB__CUDA_WARP / ROWS) == 0 && at < f.n)
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
    const size_t each = WARPS * static_cast<size_t>(rows_for(static_cast<int>(g->m)));
    size_t blocks =
        PNB_MIN((g->n + each - 1) / each, static_cast<size_t>(BLOCKS_OF_A_DEVICE) * PNB__CUDA_MANY);
    if (g->n > 0)
        pnb__cuda_launch(ctx, kernels[g->m - 1], dim3(static_cast<unsigned>(blocks)),
                         PNB__CUDA_THREADS, g->m * g->k * sizeof(float), f);
}
