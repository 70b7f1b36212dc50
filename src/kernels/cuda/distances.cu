/* Squared distances of the rows of two matrices, and their derivatives.
 *
 * Distances are sums of squared differences, not |x|^2 + |y|^2 - 2 x.y: equal rows are at exactly
 * 0. A block makes a tile of 64 by 64 results, each thread 4 by 4 of them, from strips of 16
 * columns that lie in shared memory, so that each number read serves 64 results. Sums are in floats
 * over a strip and of strips. Backward is the same with other roles: dx_i = 2 sum_j w_ij (x_i -
 * y_j) sums over the rows j in strips of 16, with x_i in registers. Threads of a warp take columns
 * 16 apart: no two meet in a bank. */
#include "kernels/cuda/cuda.h"

namespace
{

enum { TILE = 64, STRIP = 16, SIDE = 16, EACH = TILE / SIDE };

struct tile_sum {
    float of[EACH][EACH];
};

/* Tiles of an (m, n) result, one to a block. */
template <class F> __global__ void tiles_kernel(size_t m, size_t n, F f)
{
    const size_t across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    for (size_t t = blockIdx.x; t < across * down; t += gridDim.x)
        f.tile(t / across * TILE, t % across * TILE);
}

template <class F> void by_tiles(const pnb_ctx *ctx, size_t m, size_t n, F f)
{
    size_t tiles = ((n + TILE - 1) / TILE) * ((m + TILE - 1) / TILE);
    if (tiles > 0)
        pnb__cuda_launch(ctx, tiles_kernel<F>, pnb__cuda_blocks(tiles, 1), PNB__CUDA_THREADS, 0, m,
                         n, f);
}

/* A strip to shared memory, to[p][i] = from[i * step_i + p * step_p], 0 outside. The threads go
 * along what is contiguous. */
__device__ void take_strip(float to[STRIP][TILE + 1], const float *from, size_t n_i, size_t n_p,
                           size_t step_i, size_t step_p)
{
    for (unsigned e = threadIdx.x; e < STRIP * TILE; e += PNB__CUDA_THREADS) {
        unsigned i = step_i == 1 ? e % TILE : e / STRIP, p = step_i == 1 ? e / TILE : e % STRIP;
        to[p][i] = i < n_i && p < n_p ? from[i * step_i + p * step_p] : 0;
    }
}

struct distance_tiles {
    size_t m, n, width;
    const float *x, *y;
    float *d2;
    __device__ void tile(size_t i0, size_t j0) const
    {
        __shared__ float a[STRIP][TILE + 1], b[STRIP][TILE + 1];
        const unsigned row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
        tile_sum sum = {};
        for (size_t d = 0; d < width; d += STRIP) {
            take_strip(a, x + i0 * width + d, m - i0, width - d, width, 1);
            take_strip(b, y + j0 * width + d, n - j0, width - d, width, 1);
            __syncthreads();
            tile_sum some = {};
            for (int p = 0; p < STRIP; p++)
                for (int i = 0; i < EACH; i++)
                    for (int j = 0; j < EACH; j++) {
                        float off = a[p][row + SIDE * i] - b[p][column + SIDE * j];
                        some.of[i][j] += off * off;
                    }
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sum.of[i][j] += some.of[i][j];
            __syncthreads();
        }
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                size_t to_i = i0 + row + SIDE * i, to_j = j0 + column + SIDE * j;
                if (to_i < m && to_j < n)
                    d2[to_i * n + to_j] = sum.of[i][j];
            }
    }
};

/* dx (m, width) of x (m, width) and y (n, width); w_ij lies at i * step_i + j * step_j. */
struct gradient_tiles {
    size_t m, n, width, step_i, step_j;
    const float *x, *y, *w;
    float *dx;
    bool accumulate;
    __device__ void tile(size_t i0, size_t d0) const
    {
        __shared__ float a[STRIP][TILE + 1], b[STRIP][TILE + 1];
        const unsigned row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
        tile_sum sum = {}, mine = {};
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                size_t at_i = i0 + row + SIDE * i, at_d = d0 + column + SIDE * j;
                mine.of[i][j] = at_i < m && at_d < width ? x[at_i * width + at_d] : 0;
            }
        for (size_t j = 0; j < n; j += STRIP) {
            take_strip(a, w + i0 * step_i + j * step_j, m - i0, n - j, step_i, step_j);
            take_strip(b, y + j * width + d0, width - d0, n - j, 1, width);
            __syncthreads();
            add_strip(a, b, mine, &sum);
            __syncthreads();
        }
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                size_t to_i = i0 + row + SIDE * i, to_d = d0 + column + SIDE * j;
                if (to_i < m && to_d < width)
                    pnb__cuda_put(dx + to_i * width + to_d, 2 * sum.of[i][j], accumulate);
            }
    }
    __device__ static void add_strip(const float a[STRIP][TILE + 1], const float b[STRIP][TILE + 1],
                                     const tile_sum &mine, tile_sum *sum)
    {
        const unsigned row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
        tile_sum some = {};
        for (int p = 0; p < STRIP; p++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    some.of[i][j] +=
                        a[p][row + SIDE * i] * (mine.of[i][j] - b[p][column + SIDE * j]);
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                sum->of[i][j] += some.of[i][j];
    }
};

} // namespace

extern "C" void pnb__cuda_pairwise_sqdist(const pnb_ctx *ctx, size_t m, size_t n, size_t width,
                                          const void *x, const void *y, void *d2)
{
    by_tiles(ctx, m, n,
             distance_tiles{m, n, width, static_cast<const float *>(x),
                            static_cast<const float *>(y), static_cast<float *>(d2)});
}

extern "C" void pnb__cuda_pairwise_sqdist_bwd(const pnb_ctx *ctx, const size_t mnw[3],
                                              const void *x, const void *y, const void *dd2,
                                              void *dx, void *dy, const bool accumulate[2])
{
    const float *a = static_cast<const float *>(x), *b = static_cast<const float *>(y);
    const float *w = static_cast<const float *>(dd2);
    const size_t m = mnw[0], n = mnw[1], width = mnw[2];
    if (dx != nullptr)
        by_tiles(
            ctx, m, width,
            gradient_tiles{m, n, width, n, 1, a, b, w, static_cast<float *>(dx), accumulate[0]});
    if (dy != nullptr)
        by_tiles(
            ctx, n, width,
            gradient_tiles{n, m, width, 1, n, b, a, w, static_cast<float *>(dy), accumulate[1]});
}
