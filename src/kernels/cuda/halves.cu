/* Loops over values in bfloat16: rounding, activations and their derivatives, sums of columns.
 *
 * Each is as fast as memory where a thread takes eight numbers at once, by 16 bytes; what does not
 * lie so goes one by one. Columns are summed in floats by warps that walk down some of the rows,
 * eight columns to a lane where they can be read together; the sums of the parts are added in
 * double, in the order that the sizes give. */
#include "kernels/cuda/halves.h"
#include "kernels/cuda/tensor_core.h"

namespace
{

typedef unsigned short half_bits;

enum { WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP, MOST_PARTS = 256, LEAST_ROWS = 64 };

bool is_aligned(const void *a, const void *b, const void *c, size_t bytes)
{
    return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
            reinterpret_cast<uintptr_t>(c)) %
               bytes ==
           0;
}

/* ---- rounding ---- */

struct rounded {
    const float *from;
    half_bits *to;
    size_t width, ld;
    __device__ void operator()(size_t i) const
    {
        to[i] = pnb__cuda_bf16_of(from[i / width * ld + i % width]);
    }
};

/* Eight at once, of rows without gaps. */
struct rounded_by_eight {
    const float4 *from;
    uint4 *to;
    __device__ void operator()(size_t i) const
    {
        float4 x = from[2 * i], y = from[2 * i + 1];
        to[i] = uint4{pnb__cuda_pack(x.x, x.y), pnb__cuda_pack(x.z, x.w), pnb__cuda_pack(y.x, y.y),
                      pnb__cuda_pack(y.z, y.w)};
    }
};

/* ---- activations ---- */

/* GELU, of a kernel of its own, or what `act` says. */
template <bool IS_GELU> struct bending {
    pnb__unary act;
    __device__ float operator()(float x) const
    {
        return IS_GELU ? pnb__cuda_gelu_half(x) : pnb__cuda_activation(act, x);
    }
    __device__ float slope(float x) const
    {
        return IS_GELU ? pnb__cuda_gelu_slope_half(x) : pnb__cuda_slope(act, x);
    }
};

template <class F> struct bent {
    F f;
    const half_bits *from;
    half_bits *to;
    size_t n, ld;
    __device__ void operator()(size_t i) const
    {
        size_t at = i / n * ld + i % n;
        to[at] = pnb__cuda_bf16_of(f(pnb__cuda_bf16_widen(from[at])));
    }
};

template <class F> struct bent_by_eight {
    F f;
    const uint4 *from;
    uint4 *to;
    __device__ unsigned both(unsigned x) const
    {
        return pnb__cuda_pack(f(pnb__cuda_low(x)), f(pnb__cuda_high(x)));
    }
    __device__ void operator()(size_t i) const
    {
        uint4 x = from[i];
        to[i] = uint4{both(x.x), both(x.y), both(x.z), both(x.w)};
    }
};

template <bool IS_GELU>
void bend(const pnb_ctx *ctx, pnb__unary act, size_t rows, size_t width, size_t ld,
          const half_bits *from, half_bits *to)
{
    const bending<IS_GELU> f = {act};
    if (ld == width && rows * width % 8 == 0 && is_aligned(from, to, to, 16))
        pnb__cuda_each(ctx, rows * width / 8,
                       bent_by_eight<bending<IS_GELU>>{f, reinterpret_cast<const uint4 *>(from),
                                                       reinterpret_cast<uint4 *>(to)});
    else
        pnb__cuda_each(ctx, rows * width, bent<bending<IS_GELU>>{f, from, to, width, ld});
}

template <class F> struct slope_of_one {
    F f;
    const half_bits *x, *dy;
    half_bits *dx;
    __device__ void operator()(size_t i) const
    {
        dx[i] =
            pnb__cuda_bf16_of(pnb__cuda_bf16_widen(dy[i]) * f.slope(pnb__cuda_bf16_widen(x[i])));
    }
};

template <class F> struct slope_by_eight {
    F f;
    const uint4 *x, *dy;
    uint4 *dx;
    __device__ unsigned both(unsigned at, unsigned by) const
    {
        return pnb__cuda_pack(pnb__cuda_low(by) * f.slope(pnb__cuda_low(at)),
                              pnb__cuda_high(by) * f.slope(pnb__cuda_high(at)));
    }
    __device__ void operator()(size_t i) const
    {
        uint4 at = x[i], by = dy[i];
        dx[i] = uint4{both(at.x, by.x), both(at.y, by.y), both(at.z, by.z), both(at.w, by.w)};
    }
};

template <bool IS_GELU>
void slopes(const pnb_ctx *ctx, pnb__unary act, size_t n, const half_bits *x, const half_bits *dy,
            half_bits *dx)
{
    const bending<IS_GELU> f = {act};
    if (n % 8 == 0 && is_aligned(x, dy, dx, 16))
        pnb__cuda_each(ctx, n / 8,
                       slope_by_eight<bending<IS_GELU>>{f, reinterpret_cast<const uint4 *>(x),
                                                        reinterpret_cast<const uint4 *>(dy),
                                                        reinterpret_cast<uint4 *>(dx)});
    else
        pnb__cuda_each(ctx, n, slope_of_one<bending<IS_GELU>>{f, x, dy, dx});
}

/* ---- sums of columns ---- */

struct columns {
    const half_bits *x;
    float *parts; /* (gridDim.y, width) */
    size_t rows, width, per_part;
};

/* EACH columns of row r from `at` on are added to sum. */
template <int EACH> __device__ void add_row(const columns &c, size_t r, size_t at, float sum[EACH])
{
    const half_bits *x = c.x + r * c.width + at;
    if (EACH == 8) {
        const uint4 all = *reinterpret_cast<const uint4 *>(x);
        const unsigned both[4] = {all.x, all.y, all.z, all.w};
        for (int i = 0; i < EACH; i++)
            sum[i] += i % 2 == 0 ? pnb__cuda_low(both[i / 2]) : pnb__cuda_high(both[i / 2]);
    } else {
        sum[0] += pnb__cuda_bf16_widen(*x);
    }
}

/* A block: 32 EACH columns of a part of the rows, every eighth to a warp. */
template <int EACH> __global__ void sum_columns(columns c)
{
    __shared__ float sums[WARPS][EACH * PNB__CUDA_WARP];
    const size_t lane = threadIdx.x % PNB__CUDA_WARP, warp = threadIdx.x / PNB__CUDA_WARP;
    const size_t at = (blockIdx.x * static_cast<size_t>(PNB__CUDA_WARP) + lane) * EACH;
    const size_t begin = blockIdx.y * c.per_part, end = PNB_MIN(begin + c.per_part, c.rows);
    float sum[EACH] = {};
    if (at < c.width) {
        PNB__CUDA_UNROLL_4
        for (size_t r = begin + warp; r < end; r += WARPS)
            add_row<EACH>(c, r, at, sum);
    }
    for (int i = 0; i < EACH; i++)
        sums[warp][i * PNB__CUDA_WARP + lane] = sum[i];
    __syncthreads();
    for (size_t i = threadIdx.x; i < EACH * PNB__CUDA_WARP; i += PNB__CUDA_THREADS) {
        size_t column = blockIdx.x * static_cast<size_t>(EACH * PNB__CUDA_WARP) + i;
        float all = 0;
        for (int w = 0; w < WARPS; w++)
            all += sums[w][i % EACH * PNB__CUDA_WARP + i / EACH];
        if (column < c.width)
            c.parts[blockIdx.y * c.width + column] = all;
    }
}

struct totals {
    const float *parts;
    size_t n_parts, width;
    float *y;
    bool accumulate;
};

/* A block: 32 columns, every eighth part to a warp. */
__global__ void add_parts(totals t)
{
    __shared__ double sums[WARPS][PNB__CUDA_WARP];
    const size_t lane = threadIdx.x % PNB__CUDA_WARP, warp = threadIdx.x / PNB__CUDA_WARP;
    const size_t column = blockIdx.x * static_cast<size_t>(PNB__CUDA_WARP) + lane;
    double sum = 0;
    if (column < t.width) {
        PNB__CUDA_UNROLL_4
        for (size_t p = warp; p < t.n_parts; p += WARPS)
            sum += static_cast<double>(t.parts[p * t.width + column]);
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= t.width)
        return;
    for (int w = 1; w < WARPS; w++)
        sum += sums[w][lane];
    pnb__cuda_put(t.y + column, sum, t.accumulate);
}

/* As many parts as fill the device, each of some rows. */
size_t n_parts(size_t rows, size_t blocks)
{
    size_t wanted = 4 * static_cast<size_t>(PNB__CUDA_MANY) / blocks + 1;
    return PNB_MIN(PNB_MIN(wanted, static_cast<size_t>(MOST_PARTS)), rows / LEAST_ROWS + 1);
}

template <int EACH> void sum_in_parts(const pnb_ctx *ctx, columns c, float *y, bool accumulate)
{
    size_t across = EACH * PNB__CUDA_WARP, blocks = (c.width + across - 1) / across;
    size_t parts = n_parts(c.rows, blocks);
    c.parts = static_cast<float *>(pnb__cuda_borrow(ctx, parts * c.width * sizeof *c.parts));
    if (c.parts == NULL)
        return; /* the context knows */
    c.per_part = (c.rows + parts - 1) / parts;
    pnb__cuda_launch(ctx, sum_columns<EACH>,
                     dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)),
                     PNB__CUDA_THREADS, 0, c);
    const totals t = {c.parts, parts, c.width, y, accumulate};
    pnb__cuda_launch(ctx, add_parts,
                     dim3(static_cast<unsigned>((c.width + PNB__CUDA_WARP - 1) / PNB__CUDA_WARP)),
                     PNB__CUDA_THREADS, 0, t);
    pnb__cuda_return(ctx, c.parts);
}

} // namespace

void pnb__cuda_round_rows(const pnb_ctx *ctx, const void *from, size_t rows, size_t width,
                          size_t ld, unsigned short *to)
{
    if (ld == width && rows * width % 8 == 0 && is_aligned(from, to, to, 16))
        pnb__cuda_each(
            ctx, rows * width / 8,
            rounded_by_eight{static_cast<const float4 *>(from), reinterpret_cast<uint4 *>(to)});
    else
        pnb__cuda_each(ctx, rows * width, rounded{static_cast<const float *>(from), to, width, ld});
}

void pnb__cuda_bend_halves(const pnb_ctx *ctx, pnb__unary act, size_t rows, size_t width, size_t ld,
                           const unsigned short *from, unsigned short *to)
{
    (act == PNB__GELU ? bend<true> : bend<false>)(ctx, act, rows, width, ld, from, to);
}

extern "C" void pnb__cuda_halves_of(const pnb_ctx *ctx, size_t n, const void *x, void *y)
{
    pnb__cuda_round_rows(ctx, x, 1, n, n, static_cast<half_bits *>(y));
}

extern "C" void pnb__cuda_halves_unary(const pnb_ctx *ctx, pnb__unary op, size_t n, const void *x,
                                       void *y)
{
    pnb__cuda_bend_halves(ctx, op, 1, n, n, static_cast<const half_bits *>(x),
                          static_cast<half_bits *>(y));
}

extern "C" void pnb__cuda_halves_unary_bwd(const pnb_ctx *ctx, pnb__unary op, size_t n,
                                           const void *x, const void *dy, void *dx)
{
    (op == PNB__GELU ? slopes<true> : slopes<false>)(ctx, op, n, static_cast<const half_bits *>(x),
                                                     static_cast<const half_bits *>(dy),
                                                     static_cast<half_bits *>(dx));
}

extern "C" void pnb__cuda_halves_sum(const pnb_ctx *ctx, size_t rows, size_t width, const void *x,
                                     void *y, bool accumulate)
{
    columns c = {static_cast<const half_bits *>(x), NULL, rows, width, 0};
    float *sums = static_cast<float *>(y);
    if (width == 0)
        return;
    if (width % 8 == 0 && is_aligned(x, x, x, 16))
        sum_in_parts<8>(ctx, c, sums, accumulate);
    else
        sum_in_parts<1>(ctx, c, sums, accumulate);
}
