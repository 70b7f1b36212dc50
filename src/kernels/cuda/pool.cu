/* Maximum over windows and its adjoint (pnb__pool_args has the rules). A warp takes a place of y,
 * or a pixel of x, and its lanes the channels, which lie innermost: neighbours read neighbours, and
 * no index is divided but once for a place. The adjoint gathers: each pixel looks at the windows
 * that see it, in the order of places, so that nothing is added by two threads. */
#include "kernels/cuda/warps.h"

namespace
{

struct pooled {
    pnb__pool_args a;

    __device__ void warp(size_t place) const
    {
        size_t row = place / a.out_w, left = place % a.out_w * a.stride;
        size_t top = row % a.out_h * a.stride, b = row / a.out_h;
        for (size_t c = pnb__cuda_lane(); c < a.channels; c += PNB__CUDA_WARP)
            window(b, top, left, c, place * a.channels + c);
    }

    /* `top` and `left` count from the border's begin, which is `pad` outside. */
    __device__ void window(size_t b, size_t top, size_t left, size_t c, size_t to) const
    {
        const float *x = static_cast<const float *>(a.x);
        size_t n_taps = a.kernel * a.kernel, which = n_taps, tap = 0;
        float best = -HUGE_VALF;
        for (size_t u = 0; u < a.kernel; u++)
            for (size_t v = 0; v < a.kernel; v++, tap++) {
                size_t i = top + u - a.pad, j = left + v - a.pad; /* wraps round outside */
                if (i >= a.height || j >= a.width)
                    continue;
                float value = x[((b * a.height + i) * a.width + j) * a.channels + c];
                if (which == n_taps || value > best || (value != value && best == best)) {
                    best = value;
                    which = tap;
                }
            }
        static_cast<float *>(a.y)[to] = best;
        if (a.which != NULL)
            a.which[to] = static_cast<unsigned char>(which);
    }
};

/* Who sees a pixel, of rows or of columns: places first .. first + n - 1, whose taps are `stride`
 * less each: `tap` of the first one. */
struct viewers {
    size_t first, n, tap;
};

struct pooled_back {
    pnb__pool_args a;

    /* Places i < n_out with 0 <= at + pad - i stride < kernel. */
    __device__ viewers of(size_t at, size_t n_out) const
    {
        size_t place = at + a.pad, last = place / a.stride;
        size_t first = place < a.kernel ? 0 : (place - a.kernel) / a.stride + 1;
        size_t end = last < n_out ? last + 1 : n_out;
        return viewers{first, end > first ? end - first : 0, place - first * a.stride};
    }

    __device__ double value(size_t b, const viewers &rows, const viewers &columns, size_t c) const
    {
        double sum = 0;
        for (size_t i = 0; i < rows.n; i++)
            for (size_t j = 0; j < columns.n; j++) {
                size_t place = (b * a.out_h + rows.first + i) * a.out_w + columns.first + j;
                size_t at = place * a.channels + c;
                size_t tap = (rows.tap - i * a.stride) * a.kernel + columns.tap - j * a.stride;
                if (a.which[at] == tap)
                    sum += static_cast<double>(static_cast<const float *>(a.dy)[at]);
            }
        return sum;
    }

    __device__ void warp(size_t pixel) const
    {
        size_t row = pixel / a.width;
        const viewers rows = of(row % a.height, a.out_h);
        const viewers columns = of(pixel % a.width, a.out_w);
        float *dx = static_cast<float *>(a.dx) + pixel * a.channels;
        for (size_t c = pnb__cuda_lane(); c < a.channels; c += PNB__CUDA_WARP)
            pnb__cuda_put(dx + c, value(row / a.height, rows, columns, c), a.accumulate);
    }
};

} // namespace

extern "C" void pnb__cuda_max_pool(const pnb_ctx *ctx, const pnb__pool_args *a)
{
    pnb__cuda_warps(ctx, a->n_batch * a->out_h * a->out_w, pooled{*a});
}

extern "C" void pnb__cuda_max_pool_bwd(const pnb_ctx *ctx, const pnb__pool_args *a)
{
    pnb__cuda_warps(ctx, a->n_batch * a->height * a->width, pooled_back{*a});
}
