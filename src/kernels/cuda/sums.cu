/* Sums over an axis and over lists of buffers.
 *
 * An axis is summed by strided.h: rows by neighbouring threads along them, columns by threads side
 * by side, in parts where there are few sums. A list of buffers (all of a model's gradients) is cut
 * in chunks, one to a block, that find their buffer by halving; what blocks found is added up by
 * one more, in the chunks' order, and comes back to the host once. */
#include "kernels/cuda/strided.h"

namespace
{

template <class I> struct element_term {
    enum { A = 1 };
    const float *x;
    __device__ double operator()(const I at[A]) const
    {
        return static_cast<double>(x[at[0]]);
    }
};

template <class I> struct spread_at {
    struct value {
        float dy, dx;
    };
    axes<I, 1> where;
    double scale;
    const float *dy;
    float *dx;
    bool accumulate;
    __device__ value load(size_t i) const
    {
        I at[1];
        places(where, static_cast<I>(i), at);
        return value{dy[at[0]], accumulate ? dx[i] : 0};
    }
    __device__ void store(size_t i, value v) const
    {
        double d = scale * static_cast<double>(v.dy);
        dx[i] = static_cast<float>(accumulate ? static_cast<double>(v.dx) + d : d);
    }
};

/* ---- lists of buffers ---- */

enum { LISTED = 150, MOST_CHUNKS = 1 << 16, LEAST_CHUNK = 16 << 10 };

/* Buffer i has chunks first[i] .. first[i + 1] - 1 of `chunk` elements; fits a launch. */
struct buffer_list {
    const float *data[LISTED];
    size_t n[LISTED], chunk;
    unsigned first[LISTED + 1], n_buffers;
};

struct square_of {
    __device__ double operator()(float x) const
    {
        return static_cast<double>(x) * static_cast<double>(x);
    }
};

struct is_not_finite {
    __device__ double operator()(float x) const
    {
        return x - x == 0 ? 0 : 1;
    }
};

__device__ unsigned buffer_of(const buffer_list &list, unsigned chunk)
{
    unsigned low = 0, high = list.n_buffers;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (list.first[middle] <= chunk)
            low = middle;
        else
            high = middle;
    }
    return low;
}

template <class F> __device__ double sum_of(const float *x, size_t begin, size_t end)
{
    const F f = {};
    double sum = 0;
    for (size_t i = begin + threadIdx.x; i < end; i += AT_ONCE * PNB__CUDA_THREADS) {
        double term[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) {
            size_t at = i + k * PNB__CUDA_THREADS;
            term[k] = at < end ? f(x[at]) : 0;
        }
        sum += (term[0] + term[1]) + (term[2] + term[3]);
    }
    return sum;
}

template <class F> __global__ void chunks_kernel(buffer_list list, double *parts)
{
    unsigned i = buffer_of(list, blockIdx.x);
    size_t begin = (blockIdx.x - list.first[i]) * list.chunk;
    double sum = sum_of<F>(list.data[i], begin, PNB_MIN(begin + list.chunk, list.n[i]));
    sum = pnb__cuda_block_sum(sum);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/* *total = or += all parts; no parts are none */
__global__ void total_kernel(unsigned n, const double *parts, double *total, bool accumulate)
{
    double sum = 0;
    for (unsigned i = threadIdx.x; i < n; i += PNB__CUDA_THREADS)
        sum += parts[i];
    sum = pnb__cuda_block_sum(sum);
    if (threadIdx.x == 0)
        *total = accumulate ? *total + sum : sum;
}

/* Adds as many buffers as a launch takes; returns how many. */
size_t list_buffers(const pnb__flat *buffers, size_t n_buffers, buffer_list *list)
{
    size_t n = PNB_MIN(n_buffers, static_cast<size_t>(LISTED)), all = 0;
    for (size_t i = 0; i < n; i++)
        all += buffers[i].n;
    list->chunk = PNB_MAX(all / (MOST_CHUNKS - LISTED) + 1, static_cast<size_t>(LEAST_CHUNK));
    list->n_buffers = static_cast<unsigned>(n);
    for (size_t i = 0; i < n; i++) {
        list->data[i] = static_cast<const float *>(buffers[i].data);
        list->n[i] = buffers[i].n;
        size_t chunks = (buffers[i].n + list->chunk - 1) / list->chunk;
        list->first[i + 1] = list->first[i] + static_cast<unsigned>(chunks);
    }
    return n;
}

/* The sum of F over all buffers: its parts lie behind the total in the scratch memory. */
template <class F>
double sum_buffers(const pnb_ctx *ctx, const pnb__flat *buffers, size_t n_buffers)
{
    double *total = static_cast<double *>(pnb__cuda_scratch(ctx)), *parts = total + 8, sum = 0;
    if (n_buffers == 0)
        return 0;
    for (size_t done = 0; done < n_buffers;) {
        buffer_list list = {};
        size_t n = list_buffers(buffers + done, n_buffers - done, &list);
        unsigned n_chunks = list.first[n];
        if (n_chunks > 0)
            pnb__cuda_launch(ctx, chunks_kernel<F>, dim3(n_chunks), PNB__CUDA_THREADS, 0, list,
                             parts);
        pnb__cuda_launch(ctx, total_kernel, dim3(1), PNB__CUDA_THREADS, 0, n_chunks, parts, total,
                         done > 0);
        done += n;
    }
    pnb__cuda_read_back(ctx, 1, &sum);
    return sum;
}

} // namespace

extern "C" void pnb__cuda_sum(const pnb_ctx *ctx, size_t outer, size_t n, size_t inner,
                              double scale, const void *x, void *y, bool accumulate)
{
    const float *in = static_cast<const float *>(x);
    const size_t dims[3] = {outer, n, inner};
    const size_t stride_y[3] = {inner, 0, 1};
    size_t stride_x[3];
    contiguous(3, dims, stride_x);
    const size_t *const strides[2] = {stride_x, stride_y};
    sum_axes<element_term>(ctx, 3, dims, strides, {in}, {in}, scale, static_cast<float *>(y),
                           accumulate);
}

extern "C" void pnb__cuda_sum_bwd(const pnb_ctx *ctx, size_t outer, size_t n, size_t inner,
                                  double scale, const void *dy, void *dx, bool accumulate)
{
    const float *d_out = static_cast<const float *>(dy);
    float *d_in = static_cast<float *>(dx);
    const size_t dims[3] = {outer, n, inner};
    const size_t stride[3] = {inner, 0, 1};
    const size_t *const strides[1] = {stride};
    axes<size_t, 1> at = axes_of<1>(3, dims, strides);
    size_t count = n_elements(at);
    if (is_small(at))
        by_four(ctx, count,
                spread_at<unsigned>{with_index<unsigned>(at), scale, d_out, d_in, accumulate});
    else
        by_four(ctx, count, spread_at<size_t>{at, scale, d_out, d_in, accumulate});
}

extern "C" double pnb__cuda_sum_squares(const pnb_ctx *ctx, const pnb__flat *buffers,
                                        size_t n_buffers)
{
    return sum_buffers<square_of>(ctx, buffers, n_buffers);
}

extern "C" bool pnb__cuda_all_finite(const pnb_ctx *ctx, size_t n, const void *x)
{
    const pnb__flat buffer = {const_cast<void *>(x), n};
    return sum_buffers<is_not_finite>(ctx, &buffer, 1) == 0;
}
