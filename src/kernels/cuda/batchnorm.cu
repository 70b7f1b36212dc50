/* Batch normalisation, channel by channel (kernels/ref/batchnorm.inc has the formulas), in doubles.
 *
 * x (rows, width) has its channels innermost, so a block takes 32 neighbouring columns and a
 * stretch of rows, each warp every eighth row of them: rows are read in full lines, numbers of a
 * channel stand in registers, and no index is divided. Sums over rows are made in two steps: one
 * for each stretch, then those of all stretches; how many there are comes of rows and width alone.
 *
 * Moments need one look at x: sums of x - x_0 and of its square, x_0 the channel's first value,
 * lose in doubles nothing that floats have. Backward looks twice: for the sums over dz and dz n,
 * putting dz where it is to go, and for dx. */
#include "kernels/cuda/cuda.h"

namespace
{

enum { COLUMNS = 32, WARPS = PNB__CUDA_THREADS / COLUMNS, AHEAD = 4 };

/* ---- columns of a matrix, by stretches of rows ---- */

struct stretches {
    size_t rows, width, each, n; /* n of `each` rows, the last one shorter */
};

/* As many as give a device blocks enough, of 64 rows or more. */
stretches stretches_of(size_t rows, size_t width)
{
    const size_t blocks = 132 * 8, least_rows = 64;
    size_t tiles = PNB_MAX((width + COLUMNS - 1) / COLUMNS, static_cast<size_t>(1));
    size_t n = PNB_MIN((blocks + tiles - 1) / tiles, (rows + least_rows - 1) / least_rows);
    stretches s = {rows, width, 0, PNB_MAX(n, static_cast<size_t>(1))};
    s.each = (rows + s.n - 1) / s.n;
    return s;
}

dim3 blocks_of(const stretches *s)
{
    return dim3(static_cast<unsigned>((s->width + COLUMNS - 1) / COLUMNS),
                static_cast<unsigned>(s->n));
}

__device__ size_t my_column()
{
    return blockIdx.x * static_cast<size_t>(COLUMNS) + threadIdx.x % COLUMNS;
}

/* Two sums over the warps of a block, of each column, in the first warp's threads. */
__device__ void add_warps(double sums[2])
{
    __shared__ double parts[2][WARPS][COLUMNS];
    size_t lane = threadIdx.x % COLUMNS, warp = threadIdx.x / COLUMNS;
    parts[0][warp][lane] = sums[0];
    parts[1][warp][lane] = sums[1];
    __syncthreads();
    for (size_t w = 1; w < WARPS && warp == 0; w++) {
        sums[0] += parts[0][w][lane];
        sums[1] += parts[1][w][lane];
    }
    __syncthreads();
}

/* What is read at one element: of several rows before anything is written, which may lie in the
 * same memory, so that enough reads are on their way. */
struct element {
    float x, other, gate;
};

template <class F>
__device__ void go_down(const stretches &s, const F &f, size_t c, size_t end, double sums[2])
{
    size_t first = blockIdx.y * s.each + threadIdx.x / COLUMNS;
    for (size_t r = first; r < end; r += static_cast<size_t>(AHEAD) * WARPS) {
        element e[AHEAD] = {};
        for (int k = 0; k < AHEAD; k++)
            if (r + static_cast<size_t>(k) * WARPS < end)
                e[k] = f.read((r + static_cast<size_t>(k) * WARPS) * s.width + c);
        for (int k = 0; k < AHEAD; k++)
            if (r + static_cast<size_t>(k) * WARPS < end)
                f.at((r + static_cast<size_t>(k) * WARPS) * s.width + c, e[k], sums);
    }
}

/* f.start(c), then f.at(i, f.read(i)) of every element i of column c. */
template <class F> __global__ void columns_kernel(stretches s, F f)
{
    size_t c = my_column();
    if (c >= s.width)
        return;
    f.start(c);
    go_down(s, f, c, PNB_MIN((blockIdx.y + 1) * s.each, s.rows), NULL);
}

/* The same, and what f.at adds to sums goes to parts (n, 2, width). */
template <class F> __global__ void sums_kernel(stretches s, F f, double *parts)
{
    size_t c = my_column();
    double sums[2] = {0, 0};
    if (c < s.width && s.rows > 0) {
        f.start(c);
        go_down(s, f, c, PNB_MIN((blockIdx.y + 1) * s.each, s.rows), sums);
    }
    add_warps(sums);
    if (threadIdx.x >= COLUMNS || c >= s.width)
        return;
    parts[2 * blockIdx.y * s.width + c] = sums[0];
    parts[(2 * blockIdx.y + 1) * s.width + c] = sums[1];
}

/* f.finish(c, sums) with the sums of all parts. */
template <class F> __global__ void finish_kernel(stretches s, F f, const double *parts)
{
    size_t c = my_column();
    double sums[2] = {0, 0};
    for (size_t n = threadIdx.x / COLUMNS; n < s.n && c < s.width; n += WARPS) {
        sums[0] += parts[2 * n * s.width + c];
        sums[1] += parts[(2 * n + 1) * s.width + c];
    }
    add_warps(sums);
    if (threadIdx.x < COLUMNS && c < s.width)
        f.finish(c, sums);
}

template <class F> void for_columns(const pnb_ctx *ctx, const pnb__batchnorm_args *a, F f)
{
    const stretches s = stretches_of(a->rows, a->width);
    if (s.width > 0 && s.rows > 0)
        pnb__cuda_launch(ctx, columns_kernel<F>, blocks_of(&s), PNB__CUDA_THREADS, 0, s, f);
}

/* The workspace holds the parts behind two sums of each column, which backward keeps. */
template <class F> void sum_columns(const pnb_ctx *ctx, const pnb__batchnorm_args *a, F f)
{
    const stretches s = stretches_of(a->rows, a->width);
    double *parts = static_cast<double *>(a->work) + 2 * s.width;
    if (s.width == 0)
        return;
    pnb__cuda_launch(ctx, sums_kernel<F>, blocks_of(&s), PNB__CUDA_THREADS, 0, s, f, parts);
    pnb__cuda_launch(ctx, finish_kernel<F>, dim3(blocks_of(&s).x), PNB__CUDA_THREADS, 0, s, f,
                     parts);
}

__device__ double number(const void *p, size_t i)
{
    return static_cast<double>(static_cast<const float *>(p)[i]);
}

__device__ void set(void *p, size_t i, double value)
{
    static_cast<float *>(p)[i] = static_cast<float>(value);
}

/* ---- moments ---- */

/* With d = x - x_0: mean = x_0 + mean(d), squares = sum d^2 - n mean(d)^2 */
struct moments {
    pnb__batchnorm_args a;
    double origin;

    __device__ void start(size_t c)
    {
        origin = number(a.x, c);
    }

    __device__ element read(size_t i) const
    {
        return element{static_cast<const float *>(a.x)[i], 0, 0};
    }

    __device__ void at(size_t, element e, double sums[2]) const
    {
        double d = static_cast<double>(e.x) - origin;
        sums[0] += d;
        sums[1] += d * d;
    }

    __device__ void finish(size_t c, const double sums[2]) const
    {
        double n = static_cast<double>(a.rows), off = sums[0] / n, keep = 1 - a.momentum;
        double mean = number(a.x, c) + off, squares = fmax(sums[1] - sums[0] * off, 0.0);
        if (sums[1] != sums[1])
            squares = sums[1]; /* fmax loses a NaN */
        set(a.mean, c, mean);
        set(a.rstd, c, 1 / sqrt(squares / n + a.eps));
        if (a.running_mean == NULL)
            return;
        double unbiased = squares / (n - 1);
        set(a.running_mean, c, keep * number(a.running_mean, c) + a.momentum * mean);
        set(a.running_var, c, keep * number(a.running_var, c) + a.momentum * unbiased);
    }
};

struct frozen_moments {
    pnb__batchnorm_args a;

    __device__ void operator()(size_t c) const
    {
        set(a.mean, c, number(a.running_mean, c));
        set(a.rstd, c, 1 / sqrt(number(a.running_var, c) + a.eps));
    }
};

struct fold {
    pnb__batchnorm_args a;

    __device__ void operator()(size_t c) const
    {
        double scale = number(a.w, c) / sqrt(number(a.running_var, c) + a.eps);
        set(a.scale, c, scale);
        set(a.shift, c, number(a.b, c) - number(a.running_mean, c) * scale);
    }
};

/* ---- values and gradients ---- */

struct channel {
    double mean, rstd, w, b;

    __device__ void start(const pnb__batchnorm_args *a, size_t c)
    {
        mean = number(a->mean, c);
        rstd = number(a->rstd, c);
        w = number(a->w, c);
        b = number(a->b, c);
    }

    __device__ double unit(double x) const
    {
        return (x - mean) * rstd;
    }

    __device__ double value(double x) const
    {
        return unit(x) * w + b;
    }
};

struct values {
    pnb__batchnorm_args a;
    channel at_c;

    __device__ void start(size_t c)
    {
        at_c.start(&a, c);
    }

    __device__ element read(size_t i) const
    {
        const float *residual = static_cast<const float *>(a.residual);
        return element{static_cast<const float *>(a.x)[i], residual != NULL ? residual[i] : 0, 0};
    }

    __device__ void at(size_t i, element e, double *) const
    {
        double value = at_c.value(static_cast<double>(e.x)) + static_cast<double>(e.other);
        set(a.y, i, a.relu && value < 0 ? 0 : value);
    }
};

/* sum = sum dz, sum_n = sum dz n; dz goes into dy's place where there is a residual. */
struct gradient_sums {
    pnb__batchnorm_args a;
    channel at_c;

    __device__ void start(size_t c)
    {
        at_c.start(&a, c);
    }

    __device__ element read(size_t i) const
    {
        bool is_gated = a.relu && a.residual != NULL;
        return element{static_cast<const float *>(a.x)[i], static_cast<const float *>(a.dy)[i],
                       is_gated ? static_cast<const float *>(a.y)[i] : 0};
    }

    __device__ void at(size_t i, element e, double sums[2]) const
    {
        double x = static_cast<double>(e.x), dz = static_cast<double>(e.other);
        if (a.relu && a.residual != NULL) {
            dz = e.gate > 0 ? dz : 0;
            set(a.dy, i, dz);
        } else if (a.relu) {
            dz = at_c.value(x) > 0 ? dz : 0;
        }
        if (a.d_residual != NULL && a.d_residual != a.dy)
            pnb__cuda_put(static_cast<float *>(a.d_residual) + i, dz, a.accumulate_residual);
        sums[0] += dz;
        sums[1] += dz * at_c.unit(x);
    }

    __device__ void finish(size_t c, const double sums[2]) const
    {
        double *kept = static_cast<double *>(a.work);
        kept[c] = sums[0];
        kept[a.width + c] = sums[1];
        if (a.dw != NULL)
            pnb__cuda_put(static_cast<float *>(a.dw) + c, sums[1], a.accumulate_w);
        if (a.db != NULL)
            pnb__cuda_put(static_cast<float *>(a.db) + c, sums[0], a.accumulate_b);
    }
};

/* dx = w rstd (dz - (sum + n sum_n) / rows), frozen without what goes through the moments */
struct gradients {
    pnb__batchnorm_args a;
    channel at_c;
    double slope, mean_dz, mean_dz_n;

    __device__ void start(size_t c)
    {
        const double *kept = static_cast<const double *>(a.work);
        at_c.start(&a, c);
        slope = at_c.w * at_c.rstd;
        mean_dz = a.frozen ? 0 : kept[c] / static_cast<double>(a.rows);
        mean_dz_n = a.frozen ? 0 : kept[a.width + c] / static_cast<double>(a.rows);
    }

    __device__ element read(size_t i) const
    {
        return element{static_cast<const float *>(a.x)[i], static_cast<const float *>(a.dy)[i], 0};
    }

    __device__ void at(size_t i, element e, double *) const
    {
        double x = static_cast<double>(e.x), dz = static_cast<double>(e.other);
        if (a.relu && a.residual == NULL)
            dz = at_c.value(x) > 0 ? dz : 0;
        pnb__cuda_put(static_cast<float *>(a.dx) + i,
                      slope * (dz - (mean_dz + at_c.unit(x) * mean_dz_n)), a.accumulate_x);
    }
};

} // namespace

extern "C" size_t pnb__cuda_batchnorm_work(const pnb_ctx *ctx, size_t rows, size_t width)
{
    (void)ctx;
    return (stretches_of(rows, width).n + 1) * 2 * width * sizeof(double);
}

extern "C" void pnb__cuda_batchnorm_moments(const pnb_ctx *ctx, const pnb__batchnorm_args *a)
{
    if (a->frozen)
        pnb__cuda_each(ctx, a->width, frozen_moments{*a});
    else if (a->rows > 0)
        sum_columns(ctx, a, moments{*a, 0});
}

extern "C" void pnb__cuda_batchnorm_fold(const pnb_ctx *ctx, const pnb__batchnorm_args *a)
{
    pnb__cuda_each(ctx, a->width, fold{*a});
}

extern "C" void pnb__cuda_batchnorm(const pnb_ctx *ctx, const pnb__batchnorm_args *a)
{
    for_columns(ctx, a, values{*a, {}});
}

extern "C" void pnb__cuda_batchnorm_bwd(const pnb_ctx *ctx, const pnb__batchnorm_args *a)
{
    bool moves_dz = (a->relu && a->residual != NULL) || a->d_residual != NULL;
    if (!a->frozen || moves_dz || a->dw != NULL || a->db != NULL)
        sum_columns(ctx, a, gradient_sums{*a, {}});
    if (a->dx != NULL)
        for_columns(ctx, a, gradients{*a, {}, 0, 0, 0});
}
