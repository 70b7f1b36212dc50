/* Cholesky factors and triangular solves, in double with results in floats, by tiles of 32.
 *
 * Cholesky goes through columns of tiles from left to right, one launch for each. The block of row
 * tile I makes L[I,J] = (A[I,J] - sum_P L[I,P] L[J,P]^T) L[J,J]^-T; the tile on the diagonal, which
 * all need, is made again by each of them: it costs as much as their own one, and spares a launch
 * and a place for doubles. The first block says in the scratch memory whether a pivot was not
 * positive. A solve has a block for 32 right-hand sides: row tiles depend on each other, columns do
 * not. */
#include "kernels/cuda/cuda.h"

namespace
{

enum { TILE = 32, LANES = PNB__CUDA_THREADS / TILE, EACH = TILE / LANES };

/* 32 by 32 doubles in shared memory; thread t has column t % 32 of rows t / 32 + 8 k. */
struct tile {
    double at[TILE][TILE + 1];
};

struct matrix {
    const float *data;
    size_t rows, columns, step_row, step_column;
};

/* The tile at (i, j) of a matrix; outside it 0. */
__device__ void read_tile(tile *to, const matrix &m, size_t i, size_t j)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (int k = 0; k < EACH; k++) {
        size_t r = r0 + k * LANES;
        bool is_inside = i + r < m.rows && j + c < m.columns;
        size_t place = (i + r) * m.step_row + (j + c) * m.step_column;
        to->at[r][c] = is_inside ? static_cast<double>(m.data[place]) : 0;
    }
}

/* This thread's elements of a tile. */
struct mine {
    double of[EACH];
};

/* m -= a b^T, or a b */
template <bool transposed> __device__ void subtract_product(mine *m, const tile &a, const tile &b)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (int p = 0; p < TILE; p++) {
        double right = transposed ? b.at[c][p] : b.at[p][c];
        for (int k = 0; k < EACH; k++)
            m->of[k] -= a.at[r0 + k * LANES][p] * right;
    }
}

__device__ mine take(const tile &t)
{
    mine m;
    for (int k = 0; k < EACH; k++)
        m.of[k] = t.at[threadIdx.x / TILE + k * LANES][threadIdx.x % TILE];
    return m;
}

__device__ void put_back(tile *t, const mine &m)
{
    for (int k = 0; k < EACH; k++)
        t->at[threadIdx.x / TILE + k * LANES][threadIdx.x % TILE] = m.of[k];
}

/* ---- Cholesky ---- */

/* Factors the first n columns of a tile in place; whether all pivots were positive numbers. */
__device__ bool factor_tile(tile *t, unsigned n)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    bool is_positive = true;
    for (unsigned j = 0; j < n; j++) {
        double pivot = t->at[j][j];
        is_positive = is_positive && pivot > 0 && pivot - pivot == 0;
        __syncthreads();
        if (threadIdx.x < TILE && threadIdx.x >= j)
            t->at[threadIdx.x][j] /= sqrt(pivot);
        __syncthreads();
        for (int k = 0; k < EACH; k++) {
            unsigned r = r0 + k * LANES;
            if (c > j && r >= c)
                t->at[r][c] -= t->at[r][j] * t->at[c][j];
        }
        __syncthreads();
    }
    return is_positive;
}

/* x = x L^-T for the first n columns of L */
__device__ void solve_tile(tile *x, const tile &l, unsigned n)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (unsigned j = 0; j < n; j++) {
        if (threadIdx.x < TILE)
            x->at[threadIdx.x][j] /= l.at[j][j];
        __syncthreads();
        for (int k = 0; k < EACH; k++)
            if (c > j)
                x->at[r0 + k * LANES][c] -= x->at[r0 + k * LANES][j] * l.at[c][j];
        __syncthreads();
    }
}

__device__ void write_tile(const tile &t, float *l, size_t n, size_t i, size_t j, bool is_diagonal)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (int k = 0; k < EACH; k++) {
        size_t r = r0 + k * LANES;
        if (i + r < n && j + c < n)
            l[(i + r) * n + j + c] = is_diagonal && c > r ? 0 : static_cast<float>(t.at[r][c]);
    }
}

__device__ void zero_tile(float *l, size_t n, size_t i, size_t j)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (int k = 0; k < EACH; k++) {
        size_t r = i + r0 + k * LANES;
        if (r < n && j + c < n)
            l[r * n + j + c] = 0;
    }
}

/* Column of tiles at j: block b makes the tile b below the diagonal, and zeros its mirror. */
__global__ void cholesky_kernel(size_t n, size_t j, const float *a, float *l, double *failed)
{
    __shared__ tile own, diagonal;
    const size_t i = j + static_cast<size_t>(blockIdx.x) * TILE;
    const unsigned n_columns = static_cast<unsigned>(PNB_MIN(n - j, static_cast<size_t>(TILE)));
    const matrix from = {a, n, n, n, 1}, factor = {l, n, n, n, 1};
    read_tile(&own, from, i, j);
    read_tile(&diagonal, from, j, j);
    __syncthreads();
    mine off = take(own), on = take(diagonal);
    __syncthreads();
    for (size_t p = 0; p < j; p += TILE) {
        read_tile(&own, factor, i, p);
        read_tile(&diagonal, factor, j, p);
        __syncthreads();
        subtract_product<true>(&off, own, diagonal);
        subtract_product<true>(&on, diagonal, diagonal);
        __syncthreads();
    }
    put_back(&own, off);
    put_back(&diagonal, on);
    __syncthreads();
    bool is_positive = factor_tile(&diagonal, n_columns);
    if (blockIdx.x == 0) {
        write_tile(diagonal, l, n, j, j, true);
        if (threadIdx.x == 0 && (!is_positive || j == 0))
            *failed = is_positive ? 0 : 1;
        return;
    }
    solve_tile(&own, diagonal, n_columns);
    write_tile(own, l, n, i, j, false);
    zero_tile(l, n, j, i);
}

/* ---- triangular solves ---- */

/* x = L^-1 x or L^-T x for a tile on the diagonal that is read as it is applied: lower or upper */
__device__ void substitute(tile *x, const tile &l, unsigned n, bool upward)
{
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (unsigned step = 0; step < n; step++) {
        unsigned i = upward ? n - 1 - step : step;
        if (threadIdx.x < TILE)
            x->at[i][threadIdx.x] /= l.at[i][i];
        __syncthreads();
        for (int k = 0; k < EACH; k++) {
            unsigned r = r0 + k * LANES;
            if (upward ? r < i : r > i && r < n)
                x->at[r][c] -= l.at[r][i] * x->at[i][c];
        }
        __syncthreads();
    }
}

struct solving {
    size_t n, m;
    bool transpose;
    const float *l, *b;
    float *x;
};

/* Rows i.. of 32 columns: what is left of b after the rows before it, then the diagonal tile. */
__device__ void solve_rows(const solving &s, size_t i, size_t column)
{
    __shared__ tile left, right;
    const matrix op = {s.l, s.n, s.n, s.transpose ? 1 : s.n, s.transpose ? s.n : 1};
    const matrix b = {s.b, s.n, s.m, s.m, 1}, x = {s.x, s.n, s.m, s.m, 1};
    const size_t begin = s.transpose ? i + TILE : 0, end = s.transpose ? s.n : i;
    read_tile(&right, b, i, column);
    __syncthreads();
    mine rest = take(right);
    __syncthreads();
    for (size_t p = begin; p < end; p += TILE) {
        read_tile(&left, op, i, p);
        read_tile(&right, x, p, column);
        __syncthreads();
        subtract_product<false>(&rest, left, right);
        __syncthreads();
    }
    put_back(&right, rest);
    read_tile(&left, op, i, i);
    __syncthreads();
    substitute(&right, left, static_cast<unsigned>(PNB_MIN(s.n - i, static_cast<size_t>(TILE))),
               s.transpose);
    const unsigned c = threadIdx.x % TILE, r0 = threadIdx.x / TILE;
    for (int k = 0; k < EACH; k++) {
        size_t r = i + r0 + k * LANES;
        if (r < s.n && column + c < s.m)
            s.x[r * s.m + column + c] = static_cast<float>(right.at[r0 + k * LANES][c]);
    }
    __syncthreads();
}

__global__ void solve_kernel(solving s)
{
    const size_t n_tiles = (s.n + TILE - 1) / TILE;
    for (size_t c = static_cast<size_t>(blockIdx.x) * TILE; c < s.m;
         c += static_cast<size_t>(gridDim.x) * TILE)
        for (size_t t = 0; t < n_tiles; t++)
            solve_rows(s, (s.transpose ? n_tiles - 1 - t : t) * TILE, c);
}

} // namespace

extern "C" bool pnb__cuda_cholesky(const pnb_ctx *ctx, size_t n, const void *a, void *l)
{
    double *failed = static_cast<double *>(pnb__cuda_scratch(ctx)), result = 0;
    if (n == 0)
        return true;
    for (size_t j = 0; j < n; j += TILE)
        pnb__cuda_launch(ctx, cholesky_kernel,
                         dim3(static_cast<unsigned>((n - j + TILE - 1) / TILE)), PNB__CUDA_THREADS,
                         0, n, j, static_cast<const float *>(a), static_cast<float *>(l), failed);
    pnb__cuda_read_back(ctx, 1, &result);
    return result == 0;
}

extern "C" void pnb__cuda_tri_solve(const pnb_ctx *ctx, size_t n, size_t m, bool transpose,
                                    const void *l, const void *b, void *x)
{
    solving s = {n,
                 m,
                 transpose,
                 static_cast<const float *>(l),
                 static_cast<const float *>(b),
                 static_cast<float *>(x)};
    if (n > 0 && m > 0)
        pnb__cuda_launch(ctx, solve_kernel, pnb__cuda_blocks(m, TILE), PNB__CUDA_THREADS, 0, s);
}
