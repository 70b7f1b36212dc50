/* 2-D convolution and its adjoints as matrix products (pnb__conv2d_args has the formula).
 *
 *   col (places, KH KW C)   what each place of y sees of x, zeros outside, channels innermost
 *   w'  (O, KH KW C)        w in that order
 *   y = col w'^T    dcol = dy w', dx gathered from it    dw' = dy^T col, put back into w's order
 *
 * col would be KH KW times as large as x: it is made for so many places at a time as STRIP_BYTES
 * hold, whole pictures where one fits, else stretches that start anew in each picture, so that no
 * sum of y or dx depends on the pictures beside it (as far as the product's do not depend on the
 * number of its rows). A 1 x 1 kernel that sees x as it lies needs neither col nor w'.
 *
 * Row u of what a place sees is KW C numbers that lie side by side in x: warps copy such lines,
 * cut at the picture's border, and no index is divided but once for a place. Of dx, a warp takes a
 * pixel and adds up the places that see it, tap by tap, so that each number is written once.
 * dw' is small and its sums are long: places are cut into parts, a product each, that fill the
 * device; the parts are added up in their order on the way into w's order. */
#include "kernels/cuda/warps.h"

namespace
{

const size_t STRIP_BYTES = static_cast<size_t>(256) << 20;

/* ---- sizes ---- */

size_t depth_of(const pnb__conv2d_args *a)
{
    return a->kernel_h * a->kernel_w * a->channels;
}

size_t places_of(const pnb__conv2d_args *a)
{
    return a->n_batch * a->out_h * a->out_w;
}

/* Whether col is x and w' is w. */
bool is_direct(const pnb__conv2d_args *a)
{
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride == 1 && a->pad == 0;
}

/* Places whose col is there at once. */
size_t strip_of(const pnb__conv2d_args *a)
{
    size_t image = a->out_h * a->out_w, all = places_of(a);
    size_t fit = STRIP_BYTES / sizeof(float) / PNB_MAX(depth_of(a), static_cast<size_t>(1));
    fit = PNB_MAX(fit, static_cast<size_t>(1));
    if (is_direct(a) || fit >= all)
        return all;
    return fit >= image ? fit / image * image : fit;
}

/* Places of the strip that begins at `first`. */
size_t strip_from(const pnb__conv2d_args *a, size_t first)
{
    size_t image = a->out_h * a->out_w, strip = strip_of(a);
    size_t left = strip < image ? image - first % image : places_of(a) - first;
    return PNB_MIN(strip, left);
}

size_t bytes_of(size_t n)
{
    return (n * sizeof(float) + 63) / 64 * 64;
}

/* Products that a strip's part of dw' is cut into: as many as fill the device, of `least` places or
 * more. */
size_t parts_of(const pnb__conv2d_args *a)
{
    const size_t tile = 128, tiles_at_once = 264, least = 512;
    size_t tiles = ((a->out_channels + tile - 1) / tile) * ((depth_of(a) + tile - 1) / tile);
    size_t n = tiles_at_once / PNB_MAX(tiles, static_cast<size_t>(1));
    n = PNB_MIN(n, strip_of(a) / least);
    return PNB_MAX(n, static_cast<size_t>(1));
}

/* ---- w and its own order ---- */

/* to[o][t C + c] = w[o][c T + t], T taps */
struct order_weights {
    const float *w;
    float *to;
    size_t channels, taps;

    __device__ void row(size_t o) const
    {
        unsigned depth = static_cast<unsigned>(channels * taps);
        unsigned n = static_cast<unsigned>(channels);
        for (unsigned d = threadIdx.x; d < depth; d += blockDim.x)
            to[o * depth + d] = w[o * depth + d % n * taps + d / n];
    }
};

/* dw (o, c, t) = or += the sum of parts (n_parts, o, t, c), read by neighbours: they are more. */
struct finish_weights {
    const float *parts;
    float *dw;
    size_t outputs, channels, taps, n_parts;
    bool accumulate;

    __device__ void row(size_t o) const
    {
        unsigned depth = static_cast<unsigned>(channels * taps);
        unsigned n = static_cast<unsigned>(channels);
        for (unsigned d = threadIdx.x; d < depth; d += blockDim.x) {
            double sum = 0;
            for (size_t p = 0; p < n_parts; p++)
                sum += static_cast<double>(parts[(p * outputs + o) * depth + d]);
            pnb__cuda_put(dw + o * depth + d % n * taps + d / n, sum, accumulate);
        }
    }
};

void order(const pnb_ctx *ctx, const pnb__conv2d_args *a, void *to)
{
    pnb__cuda_rows(ctx, a->out_channels,
                   order_weights{static_cast<const float *>(a->w), static_cast<float *>(to),
                                 a->channels, a->kernel_h * a->kernel_w});
}

/* ---- col ---- */

/* In numbers of T: floats or, where all lines begin at a multiple of 16 bytes, four at once. */
template <class T> struct lines {
    const T *x;
    T *col;
    size_t first, height, width, channels, kernel_h, kernel_w, stride, pad, out_h, out_w;

    __device__ void warp(size_t n) const
    {
        size_t place = first + n, j = place % out_w, row = place / out_w;
        size_t i = row % out_h, b = row / out_h, line = kernel_w * channels;
        size_t lead = j * stride * channels, skip = pad * channels, end = width * channels;
        for (size_t u = 0; u < kernel_h; u++) {
            size_t y = i * stride + u;
            bool is_inside = y >= pad && y - pad < height;
            const T *from = x + (b * height + (is_inside ? y - pad : 0)) * end;
            T *to = col + (n * kernel_h + u) * line;
            for (size_t e = pnb__cuda_lane(); e < line; e += PNB__CUDA_WARP) {
                size_t at = lead + e; /* `skip` too far */
                to[e] = is_inside && at >= skip && at - skip < end ? from[at - skip] : T();
            }
        }
    }
};

template <class T> lines<T> lines_of(const pnb__conv2d_args *a, size_t first, float *col)
{
    return lines<T>{static_cast<const T *>(a->x),
                    reinterpret_cast<T *>(col),
                    first,
                    a->height,
                    a->width,
                    a->channels * sizeof(float) / sizeof(T),
                    a->kernel_h,
                    a->kernel_w,
                    a->stride,
                    a->pad,
                    a->out_h,
                    a->out_w};
}

/* What n places from `first` on see: x itself or a copy in `room`. */
const float *see(const pnb_ctx *ctx, const pnb__conv2d_args *a, size_t first, size_t n, float *room)
{
    uintptr_t bits = reinterpret_cast<uintptr_t>(a->x) | reinterpret_cast<uintptr_t>(room);
    if (is_direct(a))
        return static_cast<const float *>(a->x) + first * a->channels;
    if (bits % sizeof(float4) == 0 && a->channels % 4 == 0)
        pnb__cuda_warps(ctx, n, lines_of<float4>(a, first, room));
    else
        pnb__cuda_warps(ctx, n, lines_of<float>(a, first, room));
    return room;
}

/* ---- y ---- */

/* y = relu(y scale + shift + residual) */
struct epilogue {
    const float *scale, *shift, *residual;
    float *y;
    size_t outputs;
    bool relu;

    __device__ void warp(size_t place) const
    {
        for (size_t o = pnb__cuda_lane(); o < outputs; o += PNB__CUDA_WARP) {
            size_t at = place * outputs + o;
            float value = y[at];
            if (scale != NULL)
                value = value * scale[o] + shift[o];
            if (residual != NULL)
                value += residual[at];
            y[at] = relu && value < 0 ? 0 : value;
        }
    }
};

void finish(const pnb_ctx *ctx, const pnb__conv2d_args *a)
{
    if (a->scale != NULL || a->residual != NULL || a->relu)
        pnb__cuda_warps(ctx, places_of(a),
                        epilogue{static_cast<const float *>(a->scale),
                                 static_cast<const float *>(a->shift),
                                 static_cast<const float *>(a->residual),
                                 static_cast<float *>(a->y), a->out_channels, a->relu});
}

/* One product of row-major factors without gaps. */
pnb__cuda_product product_of(size_t m, size_t n, size_t k, const float *a, const float *b, float *c)
{
    pnb__cuda_product p = {};
    p.m = m, p.n = n, p.k = k;
    p.lda = k, p.ldb = n, p.ldc = p.ldd = n;
    p.n_batch = 1;
    p.alpha = 1;
    p.type = p.type_c = PNB__CUDA_F32;
    p.a = a, p.b = b, p.c = c, p.d = c;
    return p;
}

/* w' as it lies, in the workspace, or packed: `room` is behind it where it takes some. */
const float *ordered(const pnb_ctx *ctx, const pnb__conv2d_args *a, const void *packed,
                     float **room)
{
    float *to = static_cast<float *>(a->work);
    *room = to;
    if (a->kernel_h * a->kernel_w == 1)
        return static_cast<const float *>(a->w);
    *room += bytes_of(a->out_channels * depth_of(a)) / sizeof(float);
    if (packed != NULL)
        return static_cast<const float *>(packed);
    order(ctx, a, to);
    return to;
}

/* ---- dx ---- */

/* Who sees a pixel first, of rows or of columns: tap `tap` of place `place`; then every tap
 * `stride` further of the place before. */
struct viewer {
    size_t tap, place;
};

/* dx of the pixels of some pictures from dcol of the places first .. first + n: row py is seen by
 * tap u of row i where i stride + u = py + pad. */
struct gather {
    const float *dcol;
    float *dx;
    size_t first, n, first_image, height, width, channels, kernel_h, kernel_w, stride, pad, out_h,
        out_w;
    bool accumulate;

    __device__ float value(size_t b, viewer row, viewer column, size_t c) const
    {
        float sum = 0;
        size_t i = row.place;
        for (size_t u = row.tap; u < kernel_h && i < SIZE_MAX; u += stride, i--) {
            size_t j = column.place;
            for (size_t v = column.tap; v < kernel_w && j < SIZE_MAX; v += stride, j--) {
                size_t at = (b * out_h + i) * out_w + j - first;
                if (i < out_h && j < out_w && at < n)
                    sum += dcol[((at * kernel_h + u) * kernel_w + v) * channels + c];
            }
        }
        return sum;
    }

    __device__ void warp(size_t pixel) const
    {
        size_t line = pixel / width, x = pixel % width, y = line % height;
        size_t b = first_image + line / height;
        viewer row = {(y + pad) % stride, (y + pad) / stride};
        viewer column = {(x + pad) % stride, (x + pad) / stride};
        float *to = dx + ((b * height + y) * width + x) * channels;
        for (size_t c = pnb__cuda_lane(); c < channels; c += PNB__CUDA_WARP)
            pnb__cuda_put(to + c, value(b, row, column, c), accumulate);
    }
};

/* dcol of n places from `first` on into dx. What earlier strips gave to a picture stays. */
void put_pixels(const pnb_ctx *ctx, const pnb__conv2d_args *a, size_t first, size_t n,
                const float *dcol)
{
    size_t image = a->out_h * a->out_w, b = first / image;
    size_t n_images = (first + n - 1) / image - b + 1;
    pnb__cuda_warps(ctx, n_images * a->height * a->width,
                    gather{dcol, static_cast<float *>(a->dx), first, n, b, a->height, a->width,
                           a->channels, a->kernel_h, a->kernel_w, a->stride, a->pad, a->out_h,
                           a->out_w, a->accumulate || first % image != 0});
}

/* ---- dw ---- */

/* parts (n_parts, O, depth) = or += dy^T col of n places: as many to each part, what is left over
 * to the first. */
void multiply_parts(const pnb_ctx *ctx, const pnb__conv2d_args *a, size_t first, size_t n,
                    const float *col, float *parts)
{
    size_t outputs = a->out_channels, depth = depth_of(a), n_parts = parts_of(a);
    size_t each = n / n_parts, done = each * n_parts;
    const float *dy = static_cast<const float *>(a->dy) + first * outputs;
    pnb__cuda_product p = product_of(outputs, depth, each, dy, col, parts);
    p.trans_a = true;
    p.lda = outputs;
    p.n_batch = n_parts;
    p.batch_a = each * outputs;
    p.batch_b = each * depth;
    p.batch_c = outputs * depth;
    p.beta = first > 0 ? 1 : 0;
    if (each > 0)
        pnb__cuda_multiply(ctx, &p);
    p.a = dy + done * outputs;
    p.b = col + done * depth;
    p.k = n - done;
    p.n_batch = 1;
    p.beta = 1;
    if (p.k > 0)
        pnb__cuda_multiply(ctx, &p);
}

} // namespace

extern "C" size_t pnb__cuda_conv2d_pack_bytes(const pnb__conv2d_args *a)
{
    return a->out_channels * depth_of(a) * sizeof(float);
}

extern "C" void pnb__cuda_conv2d_pack(const pnb_ctx *ctx, const pnb__conv2d_args *a, void *to)
{
    order(ctx, a, to);
}

extern "C" size_t pnb__cuda_conv2d_work(const pnb_ctx *ctx, const pnb__conv2d_args *a,
                                        pnb__conv2d_pass pass)
{
    size_t weights = a->out_channels * depth_of(a);
    size_t col = is_direct(a) ? 0 : bytes_of(strip_of(a) * depth_of(a));
    (void)ctx;
    if (pass == PNB__CONV2D_DW)
        return bytes_of(weights * parts_of(a)) + col;
    return (a->kernel_h * a->kernel_w == 1 ? 0 : bytes_of(weights)) + col;
}

extern "C" void pnb__cuda_conv2d(const pnb_ctx *ctx, const pnb__conv2d_args *a)
{
    float *room;
    if (places_of(a) == 0)
        return;
    const float *w = ordered(ctx, a, a->packed, &room);
    for (size_t first = 0, n; first < places_of(a); first += n) {
        n = strip_from(a, first);
        pnb__cuda_product p =
            product_of(n, a->out_channels, depth_of(a), see(ctx, a, first, n, room), w,
                       static_cast<float *>(a->y) + first * a->out_channels);
        p.trans_b = true;
        p.ldb = depth_of(a);
        pnb__cuda_multiply(ctx, &p);
    }
    finish(ctx, a);
}

extern "C" void pnb__cuda_conv2d_dx(const pnb_ctx *ctx, const pnb__conv2d_args *a)
{
    float *room;
    if (places_of(a) == 0)
        return;
    const float *w = ordered(ctx, a, NULL, &room);
    for (size_t first = 0, n; first < places_of(a); first += n) {
        n = strip_from(a, first);
        pnb__cuda_product p =
            product_of(n, depth_of(a), a->out_channels,
                       static_cast<const float *>(a->dy) + first * a->out_channels, w,
                       is_direct(a) ? static_cast<float *>(a->dx) + first * a->channels : room);
        p.beta = is_direct(a) && a->accumulate ? 1 : 0;
        pnb__cuda_multiply(ctx, &p);
        if (!is_direct(a))
            put_pixels(ctx, a, first, n, room);
    }
}

extern "C" void pnb__cuda_conv2d_dw(const pnb_ctx *ctx, const pnb__conv2d_args *a)
{
    size_t n_parts = places_of(a) > 0 ? parts_of(a) : 0;
    float *parts = static_cast<float *>(a->work);
    float *room = parts + bytes_of(a->out_channels * depth_of(a) * n_parts) / sizeof(float);
    for (size_t first = 0, n; first < places_of(a); first += n) {
        n = strip_from(a, first);
        multiply_parts(ctx, a, first, n, see(ctx, a, first, n, room), parts);
    }
    pnb__cuda_rows(ctx, a->out_channels,
                   finish_weights{parts, static_cast<float *>(a->dw), a->out_channels, a->channels,
                                  a->kernel_h * a->kernel_w, n_parts, a->accumulate});
}
