/* Samples of Gaussian rows, x = mean + exp(log_var / 2) e (kernels/ref/draws.inc). A thread draws a
 * number: its normal is one block of the stream, so nothing is shared and nothing is held. Backward
 * draws again, a thread taking one dimension of a row and its J samples in order. */
#include "kernels/cuda/philox.h"

namespace
{

struct drawing {
    pnb__draw_args a;

    __device__ static uint64_t word(const int32_t *half)
    {
        return static_cast<uint64_t>(static_cast<uint32_t>(half[0])) |
               static_cast<uint64_t>(static_cast<uint32_t>(half[1])) << 32;
    }

    /* 53 bits of two words as a share of 1, [0, 1) */
    __device__ static double share(unsigned upper, unsigned lower)
    {
        return static_cast<double>(upper) * 0x1p-32 + static_cast<double>(lower >> 11) * 0x1p-53;
    }

    /* Box and Muller's, of the block that is number pairs_r J D + j D + d of the stream */
    __device__ float normal(size_t r, size_t j, size_t d) const
    {
        uint64_t pair = static_cast<uint64_t>(a.pairs[a.first + r]);
        uint64_t number = (pair * a.n_samples + j) * a.dim + d;
        const pnb__cuda_words w = pnb__cuda_philox(word(a.key), word(a.key + 2), number);
        double u = 1.0 - share(w.c[0], w.c[1]), turn = 6.283185307179586477;
        return static_cast<float>(sqrt(-2.0 * log(u)) * cos(turn * share(w.c[2], w.c[3])));
    }

    __device__ float std(size_t r, size_t d) const
    {
        const float *log_var = static_cast<const float *>(a.log_var);
        return static_cast<float>(
            exp(0.5 * static_cast<double>(log_var[(a.first + r) * a.dim + d])));
    }
};

struct draw_forward {
    drawing of;

    __device__ void operator()(size_t i) const
    {
        const pnb__draw_args &a = of.a;
        size_t d = i % a.dim, j = i / a.dim % a.n_samples, r = i / a.dim / a.n_samples;
        const float *mean = static_cast<const float *>(a.mean) + (a.first + r) * a.dim;
        static_cast<float *>(a.x)[i] = mean[d] + of.std(r, d) * of.normal(r, j, d);
    }
};

/* dmean = sum_j dx_j, dlog_var = std / 2 sum_j dx_j e_j */
struct draw_backward {
    drawing of;

    __device__ void operator()(size_t i) const
    {
        const pnb__draw_args &a = of.a;
        size_t d = i % a.dim, r = i / a.dim, at = (a.first + r) * a.dim + d;
        const float *dx = static_cast<const float *>(a.dx) + r * a.n_samples * a.dim + d;
        double sum = 0, scaled = 0;
        for (size_t j = 0; j < a.n_samples; j++) {
            double here = static_cast<double>(dx[j * a.dim]);
            sum += here;
            scaled += here * static_cast<double>(of.normal(r, j, d));
        }
        if (a.d_mean != NULL)
            static_cast<float *>(a.d_mean)[at] += static_cast<float>(sum);
        if (a.d_log_var != NULL)
            static_cast<float *>(a.d_log_var)[at] +=
                static_cast<float>(0.5 * static_cast<double>(of.std(r, d)) * scaled);
    }
};

} // namespace

extern "C" void pnb__cuda_draw(const pnb_ctx *ctx, const pnb__draw_args *a)
{
    pnb__cuda_each(ctx, a->n_rows * a->n_samples * a->dim, draw_forward{{*a}});
}

extern "C" void pnb__cuda_draw_bwd(const pnb_ctx *ctx, const pnb__draw_args *a)
{
    pnb__cuda_each(ctx, a->n_rows * a->dim, draw_backward{{*a}});
}
