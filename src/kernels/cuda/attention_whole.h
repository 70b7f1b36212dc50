/* What attention_whole.cu and attention_whole_bwd.cu share: heads of up to 64 numbers, values in
 * bfloat16, whose keys (backward: and queries) lie in shared memory whole.
 *
 * A row has 64 + 8 places there, so that the eight rows an instruction reads lie in different
 * banks. Rows come and leave 16 bytes at a time. A warp works on 16 rows of a product, or M times
 * as many, so that what is read of the other factor serves more of them. */
#ifndef PNB_KERNELS_CUDA_ATTENTION_WHOLE_H
#define PNB_KERNELS_CUDA_ATTENTION_WHOLE_H

#include "kernels/cuda/attention.h"
#include "kernels/cuda/tensor_core.h"

#include <initializer_list>

namespace pnb__whole
{

enum { WIDTH = 64, PITCH = WIDTH + 8, ROWS = 16, STEPS = WIDTH / 16, EIGHTS = WIDTH / 8 };
const float LOG2_E = 1.4426950408889634f;

typedef unsigned short half_bits;

__host__ __device__ static inline int by_rows(int n)
{
    return (n + ROWS - 1) / ROWS * ROWS;
}

/* Which rows and columns of a tile of a product this lane of a warp holds: g, g + 8; 2t, 2t + 1. */
struct lane_at {
    int lane, g, t;
};
__device__ static inline lane_at lane_here()
{
    int lane = static_cast<int>(threadIdx.x % 32);
    return lane_at{lane, lane / 4, lane % 4};
}

/* Rows of a head in memory: n rows, `step` apart. */
struct rows_of {
    half_bits *at;
    int n;
    unsigned step;
};
__device__ static inline rows_of head_rows(const pnb__cuda_attention_args &a, const float *p,
                                           size_t batch, size_t row, size_t n, size_t b, size_t h)
{
    /* what is written was given as written: args have one type for all */
    half_bits *at = reinterpret_cast<half_bits *>(const_cast<float *>(p));
    return rows_of{pnb__cuda_head(a, at, batch, b, h), static_cast<int>(n),
                   static_cast<unsigned>(row)};
}

/* Rows first.. first + rows - 1 into a tile by `threads` threads, of which this is number
 * `thread`: without waiting, zeros where there are none. */
__device__ static inline void fetch(half_bits *tile, const rows_of &from, int first, int rows,
                                    int width, int thread, int threads)
{
    const int d = thread % EIGHTS * 8, left = d < width ? from.n : 0;
    PNB__CUDA_UNROLL_4
    for (int row = thread / EIGHTS; row < rows; row += threads / EIGHTS) {
        const bool is_there = first + row < left;
        const unsigned at = static_cast<unsigned>(first + row) * from.step;
        pnb__cuda_fetch16(tile + row * PITCH + d, from.at + (is_there ? at + d : 0u), is_there);
    }
}

/* Sums of 16 rows of a warp, times by[] for rows g and g + 8, rounded, through `tile` (16 rows that
 * only this warp uses) to rows first.. of a head. */
__device__ static inline void leave(half_bits *tile, const float sum[EIGHTS][4], const float by[2],
                                    const rows_of &to, int first, int width)
{
    const lane_at l = lane_here();
    __syncwarp(); /* all lanes have read what lay here */
    PNB__CUDA_UNROLL
    for (int d = 0; d < EIGHTS; d++)
        PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++)
        *reinterpret_cast<unsigned *>(tile + (l.g + 8 * r) * PITCH + 8 * d + 2 * l.t) =
            pnb__cuda_pack(sum[d][2 * r] * by[r], sum[d][2 * r + 1] * by[r]);
    __syncwarp();
    const int d = l.lane % EIGHTS * 8;
    PNB__CUDA_UNROLL
    for (int row = l.lane / EIGHTS; row < ROWS; row += 32 / EIGHTS)
        if (first + row < to.n && d < width)
            *reinterpret_cast<uint4 *>(to.at + static_cast<unsigned>(first + row) * to.step + d) =
                *reinterpret_cast<const uint4 *>(tile + row * PITCH + d);
}

/* ---- products ---- */

/* Rows r0.. of a tile as the left factor of products. */
__device__ static inline void keep(const half_bits *tile, int r0, unsigned x[STEPS][4])
{
    PNB__CUDA_UNROLL
    for (int k = 0; k < STEPS; k++)
        pnb__cuda_load_a(tile, PITCH, r0, 16 * k, x[k]);
}

/* out[m][n] = kept rows m of a with rows 8 n.. of b */
template <int M, int N>
__device__ void dots(const unsigned a[M][STEPS][4], const half_bits *b, float out[M][N][4])
{
    PNB__CUDA_UNROLL
    for (int i = 0; i < M * N * 4; i++)
        out[i / (N * 4)][i / 4 % N][i % 4] = 0;
    PNB__CUDA_UNROLL
    for (int k = 0; k < STEPS; k++)
        PNB__CUDA_UNROLL
    for (int n = 0; n < N; n += 2) {
        unsigned y[4];
        pnb__cuda_load_b(b, PITCH, n * 8, 16 * k, y);
        PNB__CUDA_UNROLL
        for (int m = 0; m < M; m++) {
            pnb__cuda_mma(out[m][n], a[m][k], y);
            pnb__cuda_mma(out[m][n + 1], a[m][k], y + 2);
        }
    }
}

/* Two tiles of 8 columns of a product, rounded, as the left factor of the next one. */
__device__ static inline void as_factor(const float low[4], const float high[4], unsigned x[4])
{
    x[0] = pnb__cuda_pack(low[0], low[1]);
    x[1] = pnb__cuda_pack(low[2], low[3]);
    x[2] = pnb__cuda_pack(high[0], high[1]);
    x[3] = pnb__cuda_pack(high[2], high[3]);
}

/* sum[m] += x[m] v, x of 16 columns, v rows k0.. of a tile */
template <int M>
__device__ void add_rows(const unsigned x[M][4], const half_bits *v, int k0,
                         float sum[M][EIGHTS][4])
{
    PNB__CUDA_UNROLL
    for (int d = 0; d < EIGHTS; d += 2) {
        unsigned y[4];
        pnb__cuda_load_b_rows(v, PITCH, k0, 8 * d, y);
        PNB__CUDA_UNROLL
        for (int m = 0; m < M; m++) {
            pnb__cuda_mma(sum[m][d], x[m], y);
            pnb__cuda_mma(sum[m][d + 1], x[m], y + 2);
        }
    }
}

template <int M> __device__ void clear(float sum[M][EIGHTS][4])
{
    PNB__CUDA_UNROLL
    for (int i = 0; i < M * EIGHTS * 4; i++)
        sum[i / (EIGHTS * 4)][i / 4 % EIGHTS][i % 4] = 0;
}

/* Whether rows of all these can be read and written 16 bytes at a time and offsets in a head take
 * 32 bits. */
static inline bool fits(const pnb__cuda_attention_args &a, std::initializer_list<const float *> all)
{
    const size_t most = (size_t)1 << 22;
    uintptr_t bits = 0;
    for (const float *p : all)
        bits |= reinterpret_cast<uintptr_t>(p);
    return bits % 16 == 0 &&
           (a.batch_q | a.row_q | a.batch_kv | a.row_kv | a.batch_out | a.row_out) % 8 == 0 &&
           (a.row_q | a.row_kv | a.row_out) < most && a.head_dim % 8 == 0 && a.head_dim <= WIDTH;
}

} // namespace pnb__whole

#endif
