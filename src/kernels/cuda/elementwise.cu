/* Functions of one number and of two, copies, dropout: what is as fast as memory.
 *
 * Unary functions are numbers.h's; one kernel for each, so that a thread carries no choice. Binary
 * ones compute in float what the reference computes in double and rounds: the same bits for one
 * operation. Loops and places are strided.h's; the backward pass of a binary function sums over the
 * axes that were repeated. Copies that exchange two axes go through tiles in shared memory: both
 * sides are read and written along what is contiguous. Dropout draws its words as base/random/rng.c
 * does.
 */
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/strided.h"

namespace
{

/* ---- functions of one number ---- */

template <pnb__unary op> struct function {
    double alpha, beta;
    __device__ float operator()(float x) const
    {
        return op == PNB__AFFINE ? static_cast<float>(alpha * static_cast<double>(x) + beta)
                                 : pnb__cuda_activation(op, x);
    }
};

/* v is y where pnb__cuda_slope_of_y, else x. */
template <pnb__unary op> struct slope {
    double alpha;
    __device__ float operator()(float v) const
    {
        return op == PNB__AFFINE ? static_cast<float>(alpha) : pnb__cuda_slope(op, v);
    }
};

template <pnb__unary op> struct unary_at {
    typedef float value;
    function<op> f;
    const float *x;
    float *y;
    __device__ float load(size_t i) const
    {
        return x[i];
    }
    __device__ void store(size_t i, float v) const
    {
        y[i] = f(v);
    }
};

struct with_gradient {
    float v, dy, dx;
};

template <pnb__unary op> struct unary_bwd_at {
    typedef with_gradient value;
    slope<op> f;
    const float *v, *dy;
    float *dx;
    bool accumulate;
    __device__ value load(size_t i) const
    {
        return value{op == PNB__AFFINE ? 0 : v[i], dy[i], accumulate ? dx[i] : 0};
    }
    __device__ void store(size_t i, value g) const
    {
        float d = g.dy * f(g.v);
        dx[i] = accumulate ? g.dx + d : d;
    }
};

/* ---- functions of two numbers ---- */

template <pnb__binary op, class I> struct binary_at {
    typedef two_floats value;
    axes<I, 2> where;
    const float *a, *b;
    float *y;
    __device__ value load(size_t i) const
    {
        I at[2];
        places(where, static_cast<I>(i), at);
        return value{a[at[0]], b[at[1]]};
    }
    __device__ void store(size_t i, value v) const
    {
        y[i] = op == PNB__ADD   ? v.a + v.b
               : op == PNB__SUB ? v.a - v.b
               : op == PNB__MUL ? v.a * v.b
                                : v.a / v.b;
    }
};

template <pnb__binary op, class I>
void binary_with(const pnb_ctx *ctx, const axes<size_t, 2> &x, const pnb__binary_args *g)
{
    binary_at<op, I> f = {with_index<I>(x), static_cast<const float *>(g->a),
                          static_cast<const float *>(g->b), static_cast<float *>(g->y)};
    by_four(ctx, n_elements(x), f);
}

template <pnb__binary op> void binary_of(const pnb_ctx *ctx, const pnb__binary_args *g)
{
    const size_t *const strides[2] = {g->stride_a, g->stride_b};
    axes<size_t, 2> x = axes_of<2>(PNB__DIMS, g->dims, strides);
    if (is_small(x))
        binary_with<op, unsigned>(ctx, x, g);
    else
        binary_with<op, size_t>(ctx, x, g);
}

/* Backward: the derivative of one element of y, as a term of a sum. `other` is the factor or the
 * divisor, `self` the numerator where the divisor is what is derived by. */
template <class I> struct sum_term {
    enum { A = 1 };
    const float *dy;
    double sign;
    __device__ double operator()(const I at[A]) const
    {
        return sign * static_cast<double>(dy[at[0]]);
    }
};

template <class I> struct product_term {
    enum { A = 2 };
    const float *dy, *other;
    __device__ double operator()(const I at[A]) const
    {
        return static_cast<double>(dy[at[0]]) * static_cast<double>(other[at[1]]);
    }
};

template <class I> struct quotient_term {
    enum { A = 2 };
    const float *dy, *other;
    __device__ double operator()(const I at[A]) const
    {
        return static_cast<double>(dy[at[0]] / other[at[1]]);
    }
};

template <class I> struct divisor_term {
    enum { A = 3 };
    const float *dy, *other, *self;
    __device__ double operator()(const I at[A]) const
    {
        double b = static_cast<double>(other[at[1]]);
        return -static_cast<double>(dy[at[0]]) * static_cast<double>(self[at[2]]) / (b * b);
    }
};

/* Where nothing is repeated the sums have one term each: a loop. */
template <class I, class Term> struct single_term_at {
    typedef two_floats value; /* a: the term, b: what is in d */
    axes<I, Term::A + 1> where;
    Term term;
    float *d;
    bool accumulate;
    __device__ value load(size_t i) const
    {
        I at[Term::A + 1];
        places(where, static_cast<I>(i), at);
        return value{static_cast<float>(term(at)), accumulate ? d[at[Term::A]] : 0};
    }
    __device__ void store(size_t i, value v) const
    {
        I at[Term::A + 1];
        places(where, static_cast<I>(i), at);
        d[at[Term::A]] = accumulate ? v.b + v.a : v.a;
    }
};

template <template <class> class Term>
void gradient_with(const pnb_ctx *ctx, const pnb__binary_args *g, const size_t *const *strides,
                   const Term<unsigned> &small, const Term<size_t> &large)
{
    enum { A = Term<size_t>::A };
    float *d = static_cast<float *>(g->d);
    axes<size_t, A + 1> x = axes_of<A + 1>(PNB__DIMS, g->dims, strides);
    bool repeats = false;
    for (int i = 0; i < x.n; i++)
        repeats = repeats || x.stride[A][i] == 0;
    if (repeats)
        sum_axes<Term>(ctx, PNB__DIMS, g->dims, strides, small, large, 1, d, g->accumulate);
    else if (is_small(x))
        by_four(ctx, n_elements(x),
                single_term_at<unsigned, Term<unsigned>>{with_index<unsigned>(x), small, d,
                                                         g->accumulate});
    else
        by_four(
            ctx, n_elements(x),
            single_term_at<size_t, Term<size_t>>{with_index<size_t>(x), large, d, g->accumulate});
}

void gradient_of(const pnb_ctx *ctx, const pnb__binary_args *g)
{
    const float *a = static_cast<const float *>(g->a), *b = static_cast<const float *>(g->b);
    const float *dy = static_cast<const float *>(g->dy);
    size_t stride_y[PNB__DIMS];
    contiguous(PNB__DIMS, g->dims, stride_y);
    const size_t *d = g->which ? g->stride_b : g->stride_a;
    const float *other = g->op == PNB__MUL && g->which ? a : b;
    const size_t *stride_other = other == a ? g->stride_a : g->stride_b;
    if (g->op == PNB__ADD || g->op == PNB__SUB) {
        const size_t *const strides[2] = {stride_y, d};
        double sign = g->op == PNB__SUB && g->which ? -1 : 1;
        gradient_with<sum_term>(ctx, g, strides, {dy, sign}, {dy, sign});
    } else if (g->op == PNB__DIV && g->which) {
        const size_t *const strides[4] = {stride_y, g->stride_b, g->stride_a, d};
        gradient_with<divisor_term>(ctx, g, strides, {dy, b, a}, {dy, b, a});
    } else {
        const size_t *const strides[3] = {stride_y, stride_other, d};
        if (g->op == PNB__MUL)
            gradient_with<product_term>(ctx, g, strides, {dy, other}, {dy, other});
        else
            gradient_with<quotient_term>(ctx, g, strides, {dy, other}, {dy, other});
    }
}

/* ---- copies ---- */

enum { TILE = 32, TILE_ROWS = PNB__CUDA_THREADS / TILE };

/* Axis p is contiguous in dst, axis q in src; `rest` are the others. */
struct exchange {
    axes<size_t, 2> rest;
    size_t n_rest, n_p, n_q, src_p, dst_q;
    const float *src;
    float *dst;
    bool accumulate;
};

__device__ void exchange_tile(const exchange &e, const float *src, float *dst, size_t p0, size_t q0)
{
    __shared__ float tile[TILE][TILE + 1];
    const unsigned x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    for (unsigned i = y; i < TILE; i += TILE_ROWS)
        if (p0 + i < e.n_p && q0 + x < e.n_q)
            tile[i][x] = src[(p0 + i) * e.src_p + q0 + x];
    __syncthreads();
    for (unsigned i = y; i < TILE; i += TILE_ROWS)
        if (p0 + x < e.n_p && q0 + i < e.n_q)
            pnb__cuda_put(dst + (q0 + i) * e.dst_q + p0 + x, tile[x][i], e.accumulate);
    __syncthreads();
}

__global__ void exchange_kernel(exchange e)
{
    const size_t across = (e.n_q + TILE - 1) / TILE, down = (e.n_p + TILE - 1) / TILE;
    for (size_t t = blockIdx.x; t < e.n_rest * across * down; t += gridDim.x) {
        size_t at[2], of_rest = t / (across * down), place = t % (across * down);
        places(e.rest, of_rest, at);
        exchange_tile(e, e.src + at[0], e.dst + at[1], place / across * TILE,
                      place % across * TILE);
    }
}

int unit_axis(const axes<size_t, 2> &x, int a)
{
    for (int d = 0; d < x.n; d++)
        if (x.stride[a][d] == 1)
            return d;
    return -1;
}

/* By tiles, where two axes of some length lie the other way round; whether it did. */
bool exchanged(const pnb_ctx *ctx, const axes<size_t, 2> &x, const pnb__copy_args *a)
{
    int p = unit_axis(x, 1), q = unit_axis(x, 0);
    if (p < 0 || q < 0 || p == q || x.dim[p] < TILE / 2 || x.dim[q] < TILE / 2)
        return false;
    exchange e = {};
    e.n_p = x.dim[p], e.n_q = x.dim[q];
    e.src_p = x.stride[0][p], e.dst_q = x.stride[1][q];
    e.src = static_cast<const float *>(a->src);
    e.dst = static_cast<float *>(a->dst);
    e.accumulate = a->accumulate;
    for (int d = 0; d < x.n; d++) {
        if (d == p || d == q)
            continue;
        e.rest.dim[e.rest.n] = x.dim[d];
        e.rest.stride[0][e.rest.n] = x.stride[0][d];
        e.rest.stride[1][e.rest.n++] = x.stride[1][d];
    }
    if (e.rest.n == 0)
        e.rest.dim[e.rest.n++] = 1;
    e.n_rest = n_elements(e.rest);
    size_t n_tiles = e.n_rest * ((e.n_p + TILE - 1) / TILE) * ((e.n_q + TILE - 1) / TILE);
    if (n_tiles > 0)
        pnb__cuda_launch(ctx, exchange_kernel, pnb__cuda_blocks(n_tiles, 1), PNB__CUDA_THREADS, 0,
                         e);
    return true;
}

/* ---- the simplest ---- */

struct axpy_at {
    typedef two_floats value;
    double alpha;
    const float *x;
    float *y;
    __device__ value load(size_t i) const
    {
        return value{x[i], y[i]};
    }
    __device__ void store(size_t i, value v) const
    {
        y[i] = static_cast<float>(static_cast<double>(v.b) + alpha * static_cast<double>(v.a));
    }
};

struct fill_at {
    typedef float value;
    float with;
    float *y;
    __device__ float load(size_t) const
    {
        return with;
    }
    __device__ void store(size_t i, float v) const
    {
        y[i] = v;
    }
};

/* ---- dropout ---- */

struct dropping {
    size_t n;
    uint64_t seed, stream, least; /* a word that is kept is at least this, of 2^32 */
    double scale;
    const float *x;
    float *y;
    bool accumulate;
};

/* Bit w: whether word w of a block of Philox4x32-10 is at least `least`. */
__device__ unsigned kept_words(const dropping &d, uint64_t counter)
{
    const pnb__cuda_words words = pnb__cuda_philox(d.seed, d.stream, counter);
    unsigned bits = 0;
    for (int w = 0; w < 4; w++)
        bits |= static_cast<unsigned>(words.c[w] >= d.least) << w;
    return bits;
}

/* A warp draws 32 blocks for its 128 elements and hands the bits round, so that each thread's
 * elements lie 32 apart. */
__global__ void dropout_kernel(dropping d)
{
    const unsigned lane = threadIdx.x % PNB__CUDA_WARP;
    const size_t each = 4 * PNB__CUDA_WARP;
    for (size_t first = pnb__cuda_index() / PNB__CUDA_WARP * each; first < d.n;
         first += pnb__cuda_step() / PNB__CUDA_WARP * each) {
        unsigned bits = kept_words(d, first / 4 + lane);
        for (unsigned k = 0; k < 4; k++) {
            unsigned theirs = __shfl_sync(0xffffffffu, bits, static_cast<int>(lane / 4 + 8 * k));
            size_t i = first + k * PNB__CUDA_WARP + lane;
            if (i >= d.n)
                continue;
            bool keep = theirs >> lane % 4 & 1;
            double v = keep ? static_cast<double>(d.x[i]) * d.scale : 0;
            pnb__cuda_put(d.y + i, v, d.accumulate);
        }
    }
}

} // namespace

extern "C" void pnb__cuda_unary(const pnb_ctx *ctx, pnb__unary op, size_t n, double alpha,
                                double beta, const void *x, void *y)
{
    const float *in = static_cast<const float *>(x);
    float *out = static_cast<float *>(y);
    switch (op) {
#define UNARY_CASE(NAME, name)                                                                     \
    case PNB__##NAME:                                                                              \
        by_four(ctx, n, unary_at<PNB__##NAME>{{alpha, beta}, in, out});                            \
        break;
        PNB__UNARY_LIST(UNARY_CASE)
#undef UNARY_CASE
    default:
        by_four(ctx, n, unary_at<PNB__IDENTITY>{{alpha, beta}, in, out});
    }
}

extern "C" void pnb__cuda_unary_bwd(const pnb_ctx *ctx, pnb__unary op, size_t n, double alpha,
                                    const void *x, const void *y, const void *dy, void *dx,
                                    bool accumulate)
{
    const float *v = static_cast<const float *>(pnb__cuda_slope_of_y(op) ? y : x);
    const float *d_out = static_cast<const float *>(dy);
    float *d_in = static_cast<float *>(dx);
    switch (op) {
#define UNARY_CASE(NAME, name)                                                                     \
    case PNB__##NAME:                                                                              \
        by_four(ctx, n, unary_bwd_at<PNB__##NAME>{{alpha}, v, d_out, d_in, accumulate});           \
        break;
        PNB__UNARY_LIST(UNARY_CASE)
#undef UNARY_CASE
    default: /* the identity is affine with a slope of 1 */
        by_four(ctx, n, unary_bwd_at<PNB__AFFINE>{{1}, v, d_out, d_in, accumulate});
    }
}

extern "C" void pnb__cuda_binary(const pnb_ctx *ctx, const pnb__binary_args *a)
{
    switch (a->op) {
    case PNB__ADD:
        binary_of<PNB__ADD>(ctx, a);
        break;
    case PNB__SUB:
        binary_of<PNB__SUB>(ctx, a);
        break;
    case PNB__MUL:
        binary_of<PNB__MUL>(ctx, a);
        break;
    default:
        binary_of<PNB__DIV>(ctx, a);
    }
}

extern "C" void pnb__cuda_binary_bwd(const pnb_ctx *ctx, const pnb__binary_args *a)
{
    gradient_of(ctx, a);
}

extern "C" void pnb__cuda_copy(const pnb_ctx *ctx, const pnb__copy_args *a)
{
    const size_t *const strides[2] = {a->stride_src, a->stride_dst};
    axes<size_t, 2> x = axes_of<2>(PNB__DIMS, a->dims, strides);
    if (n_elements(x) > 0 && !exchanged(ctx, x, a))
        strided_copy(ctx, x, static_cast<const float *>(a->src), static_cast<float *>(a->dst),
                     a->accumulate);
}

extern "C" void pnb__cuda_axpy(const pnb_ctx *ctx, size_t n, double alpha, const void *x, void *y)
{
    by_four(ctx, n, axpy_at{alpha, static_cast<const float *>(x), static_cast<float *>(y)});
}

extern "C" void pnb__cuda_fill(const pnb_ctx *ctx, size_t n, double value, void *y)
{
    by_four(ctx, n, fill_at{static_cast<float>(value), static_cast<float *>(y)});
}

extern "C" void pnb__cuda_dropout(const pnb_ctx *ctx, size_t n, double p, uint64_t seed,
                                  uint64_t stream, const void *x, void *y, bool accumulate)
{
    dropping d = {};
    d.n = n;
    d.seed = seed, d.stream = stream;
    d.least = static_cast<uint64_t>(ceil(p * 4294967296.0));
    d.scale = 1 / (1 - p);
    d.x = static_cast<const float *>(x);
    d.y = static_cast<float *>(y);
    d.accumulate = accumulate;
    if (n > 0)
        pnb__cuda_launch(ctx, dropout_kernel, pnb__cuda_blocks(n, 4 * PNB__CUDA_THREADS),
                         PNB__CUDA_THREADS, 0, d);
}
