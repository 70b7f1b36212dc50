/* Loops and sums over arrays of up to six axes, for the files of this column that need them.
 *
 * Places. A list of axes (row-major) says where the i-th element lies in each of up to four arrays.
 * Axes of 1 are dropped and neighbours joined where they lie alike in all arrays, so that most
 * calls end with one axis, or two for a row vector. Where everything fits 31 bits, division is by a
 * multiplication (Granlund and Montgomery 1994): q = (mulhi(i, magic) + i) >> shift.
 *
 * Loops. Every thread reads four elements, 256 apart, before it writes any: so many bytes are under
 * way at once that memory is busy, and neighbouring threads touch neighbouring floats whatever the
 * arrays' alignment.
 *
 * Sums over some of the axes. A block holds K outputs by J lanes of terms, K J = 256, the faster of
 * the two along what is contiguous. Few outputs of many terms are summed in parts, which a second
 * launch adds up: parts lie in the scratch memory. Everything is added in double, in an order that
 * the sizes give. */
#ifndef PNB_KERNELS_CUDA_STRIDED_H
#define PNB_KERNELS_CUDA_STRIDED_H

#include "kernels/cuda/cuda.h"

namespace
{

/* ---- loops ---- */

enum { AT_ONCE = 4 };

template <class F> __global__ void by_four_kernel(size_t n, F f)
{
    const size_t step = static_cast<size_t>(gridDim.x) * AT_ONCE * PNB__CUDA_THREADS;
    size_t first = static_cast<size_t>(blockIdx.x) * AT_ONCE * PNB__CUDA_THREADS + threadIdx.x;
    for (; first < n; first += step) {
        typename F::value v[AT_ONCE] = {};
        for (int k = 0; k < AT_ONCE; k++)
            if (first + k * PNB__CUDA_THREADS < n)
                v[k] = f.load(first + k * PNB__CUDA_THREADS);
        for (int k = 0; k < AT_ONCE; k++)
            if (first + k * PNB__CUDA_THREADS < n)
                f.store(first + k * PNB__CUDA_THREADS, v[k]);
    }
}

/* f.store(i, f.load(i)) for i < n in any order, several loads ahead of their stores */
template <class F> void by_four(const pnb_ctx *ctx, size_t n, F f)
{
    if (n > 0)
        pnb__cuda_launch(ctx, by_four_kernel<F>, pnb__cuda_blocks(n, AT_ONCE * PNB__CUDA_THREADS),
                         PNB__CUDA_THREADS, 0, n, f);
}

/* ---- places ---- */

enum { AXES = 6 };

/* I: unsigned where all places and counts are below 2^31, else size_t; A: number of arrays */
template <class I, int A> struct axes {
    int n; /* at least 1 */
    I dim[AXES], stride[A][AXES];
    unsigned magic[AXES], shift[AXES];
};

template <int A> __device__ unsigned quotient(const axes<unsigned, A> &x, int d, unsigned i)
{
    unsigned high = static_cast<unsigned>((static_cast<uint64_t>(i) * x.magic[d]) >> 32);
    return (high + i) >> x.shift[d];
}

template <int A> __device__ size_t quotient(const axes<size_t, A> &x, int d, size_t i)
{
    return i / x.dim[d];
}

/* Where element i lies in each array. */
template <class I, int A> __device__ void places(const axes<I, A> &x, I i, I at[A])
{
    for (int a = 0; a < A; a++)
        at[a] = 0;
    for (int d = AXES - 1; d > 0; d--) { /* unrolled: indices known to the compiler */
        if (d >= x.n)
            continue;
        I q = quotient(x, d, i), digit = i - q * x.dim[d];
        for (int a = 0; a < A; a++)
            at[a] += digit * x.stride[a][d];
        i = q;
    }
    for (int a = 0; a < A; a++)
        at[a] += i * x.stride[a][0];
}

template <int A> inline size_t n_elements(const axes<size_t, A> &x)
{
    size_t n = 1;
    for (int d = 0; d < x.n; d++)
        n *= x.dim[d];
    return n;
}

template <int A>
inline bool lie_alike(const axes<size_t, A> &x, int outer, size_t dim,
                      const size_t *const stride[A], int d)
{
    for (int a = 0; a < A; a++)
        if (x.stride[a][outer] != dim * stride[a][d])
            return false;
    return true;
}

/* The n_dims axes of dims for arrays of these strides, joined where they can be; with an axis of 0
 * as they are, since then equal strides say nothing. */
template <int A>
inline axes<size_t, A> axes_of(int n_dims, const size_t *dims, const size_t *const stride[A])
{
    axes<size_t, A> x = {};
    bool is_empty = false;
    for (int d = 0; d < n_dims; d++)
        is_empty = is_empty || dims[d] == 0;
    for (int d = 0; d < n_dims; d++) {
        if (dims[d] == 1)
            continue;
        bool joins = x.n > 0 && !is_empty && lie_alike<A>(x, x.n - 1, dims[d], stride, d);
        if (!joins)
            x.dim[x.n++] = 1;
        x.dim[x.n - 1] *= dims[d];
        for (int a = 0; a < A; a++)
            x.stride[a][x.n - 1] = stride[a][d];
    }
    if (x.n == 0)
        x.dim[x.n++] = 1;
    return x;
}

/* Whether every count and place is below 2^31. */
template <int A> inline bool is_small(const axes<size_t, A> &x)
{
    const size_t most = static_cast<size_t>(1) << 31;
    if (n_elements(x) >= most)
        return false;
    for (int a = 0; a < A; a++) {
        size_t last = 0;
        for (int d = 0; d < x.n; d++)
            last += x.dim[d] == 0 ? 0 : (x.dim[d] - 1) * x.stride[a][d];
        if (last >= most)
            return false;
    }
    return true;
}

template <class I, int A> inline axes<I, A> with_index(const axes<size_t, A> &x)
{
    axes<I, A> y = {};
    y.n = x.n;
    for (int d = 0; d < x.n; d++) {
        y.dim[d] = static_cast<I>(x.dim[d]);
        for (int a = 0; a < A; a++)
            y.stride[a][d] = static_cast<I>(x.stride[a][d]);
        unsigned shift = 0;
        while (shift < 32 && (static_cast<uint64_t>(1) << shift) < x.dim[d])
            shift++;
        uint64_t above = (static_cast<uint64_t>(1) << shift) - x.dim[d];
        y.shift[d] = shift;
        if (x.dim[d] > 0 && shift < 32)
            y.magic[d] = static_cast<unsigned>((above << 32) / x.dim[d] + 1);
    }
    return y;
}

/* Strides of a contiguous array. */
inline void contiguous(int n_dims, const size_t *dims, size_t *stride)
{
    size_t step = 1;
    for (int d = n_dims - 1; d >= 0; d--) {
        stride[d] = step;
        step *= dims[d];
    }
}

/* ---- copies ---- */

struct two_floats {
    float a, b;
};

template <class I> struct copy_at {
    typedef two_floats value;
    axes<I, 2> where;
    const float *src;
    float *dst;
    bool accumulate;
    __device__ value load(size_t i) const
    {
        I at[2];
        places(where, static_cast<I>(i), at);
        return value{src[at[0]], accumulate ? dst[at[1]] : 0};
    }
    __device__ void store(size_t i, value v) const
    {
        I at[2];
        places(where, static_cast<I>(i), at);
        dst[at[1]] = accumulate ? v.b + v.a : v.a;
    }
};

/* dst = or += src, both along x */
inline void strided_copy(const pnb_ctx *ctx, const axes<size_t, 2> &x, const float *src, float *dst,
                         bool accumulate)
{
    if (is_small(x))
        by_four(ctx, n_elements(x),
                copy_at<unsigned>{with_index<unsigned>(x), src, dst, accumulate});
    else
        by_four(ctx, n_elements(x), copy_at<size_t>{x, src, dst, accumulate});
}

/* ---- sums over axes ---- */

enum { BUSY = 132 * 2048 /* threads that a device holds */ };

/* Lanes of a block and parts of the terms; powers of two, k_lanes * j_lanes = 256. */
struct division {
    unsigned k_lanes, j_lanes, n_parts;
    bool terms_first; /* neighbouring threads take neighbouring terms, not outputs */
};

inline unsigned power_up_to(size_t n, unsigned most)
{
    unsigned p = 1;
    while (p < most && p < n)
        p *= 2;
    return p;
}

inline division divide(size_t n_kept, size_t n_summed, bool terms_first, bool may_part)
{
    division v = {1, 1, 1, terms_first};
    if (terms_first) {
        v.j_lanes = power_up_to(n_summed, PNB__CUDA_WARP);
        while (v.j_lanes < PNB__CUDA_THREADS && n_kept * v.j_lanes < BUSY &&
               n_summed > AT_ONCE * v.j_lanes)
            v.j_lanes *= 2;
    } else {
        unsigned k = power_up_to(n_kept, PNB__CUDA_WARP);
        v.j_lanes = power_up_to(n_summed, PNB__CUDA_THREADS / k);
    }
    v.k_lanes = PNB__CUDA_THREADS / v.j_lanes;
    size_t threads = (n_kept + v.k_lanes - 1) / v.k_lanes * PNB__CUDA_THREADS;
    size_t parts = PNB_MIN(BUSY / threads, n_summed / (2 * AT_ONCE * v.j_lanes));
    parts = PNB_MIN(parts, PNB__CUDA_SCRATCH / sizeof(double) / n_kept);
    if (may_part && parts > 1)
        v.n_parts = static_cast<unsigned>(parts);
    return v;
}

/* Term: A arrays, operator()(const I at[A]) gives the term as a double. */
template <class I, class Term> struct summing {
    axes<I, Term::A + 1> kept; /* the last array is the sums' */
    axes<I, Term::A> summed;
    I n_kept, n_summed, per_part;
    division lanes;
    Term term;
    double scale, *parts;
    float *d;
    bool accumulate;
};

/* Terms j_lane, j_lane + J, ... of one part, of the output that lies at `base`. */
template <class I, class Term>
__device__ double sum_terms(const summing<I, Term> &s, const I *base, I j_lane)
{
    I j = s.per_part * blockIdx.y, end = PNB_MIN(j + s.per_part, s.n_summed);
    double sum = 0;
    for (j += j_lane; j < end; j += AT_ONCE * s.lanes.j_lanes) {
        double term[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            I at[Term::A], here = j + i * s.lanes.j_lanes;
            places(s.summed, here < end ? here : j, at);
            for (int a = 0; a < Term::A; a++)
                at[a] += base[a];
            term[i] = here < end ? s.term(at) : 0;
        }
        sum += (term[0] + term[1]) + (term[2] + term[3]);
    }
    return sum;
}

/* The sums of the lanes of one output, to its lane 0. */
__device__ inline double sum_lanes(double sum, unsigned k_lane, unsigned j_lane, unsigned j_lanes)
{
    __shared__ double sums[PNB__CUDA_THREADS];
    double *mine = sums + k_lane * j_lanes + j_lane;
    *mine = sum;
    __syncthreads();
    for (unsigned half = j_lanes / 2; half > 0; half /= 2) {
        if (j_lane < half)
            *mine += mine[half];
        __syncthreads();
    }
    sum = *mine;
    __syncthreads();
    return sum;
}

template <class I, class Term> __global__ void sum_kernel(summing<I, Term> s)
{
    const unsigned K = s.lanes.k_lanes, J = s.lanes.j_lanes;
    const unsigned k_lane = s.lanes.terms_first ? threadIdx.x / J : threadIdx.x % K;
    const unsigned j_lane = s.lanes.terms_first ? threadIdx.x % J : threadIdx.x / K;
    for (I first = static_cast<I>(blockIdx.x) * K; first < s.n_kept;
         first += static_cast<I>(gridDim.x) * K) {
        I k = first + k_lane, base[Term::A + 1];
        places(s.kept, k < s.n_kept ? k : first, base);
        double sum = k < s.n_kept ? sum_terms(s, base, static_cast<I>(j_lane)) : 0;
        sum = sum_lanes(sum, k_lane, j_lane, J);
        if (j_lane != 0 || k >= s.n_kept)
            continue;
        if (s.parts != nullptr)
            s.parts[static_cast<size_t>(blockIdx.y) * s.n_kept + k] = sum;
        else
            pnb__cuda_put(s.d + base[Term::A], s.scale * sum, s.accumulate);
    }
}

/* What a first launch left: the parts of all outputs, behind each other. */
template <class I> struct part_term {
    enum { A = 1 };
    const double *parts;
    __device__ double operator()(const I at[A]) const
    {
        return parts[at[0]];
    }
};

template <class I, class Term> void launch_sum(const pnb_ctx *ctx, const summing<I, Term> &s)
{
    dim3 blocks = pnb__cuda_blocks(s.n_kept, s.lanes.k_lanes);
    blocks.y = s.lanes.n_parts;
    pnb__cuda_launch(ctx, sum_kernel<I, Term>, blocks, PNB__CUDA_THREADS, 0, s);
}

/* The same outputs from the parts that s leaves. */
template <class I, class Term>
void launch_parts(const pnb_ctx *ctx, const summing<I, Term> &s, const axes<size_t, Term::A + 1> &k)
{
    axes<size_t, 2> kept = {};
    axes<size_t, 1> summed = {};
    size_t n_kept = 1;
    kept.n = k.n;
    for (int d = k.n - 1; d >= 0; d--) {
        kept.dim[d] = k.dim[d];
        kept.stride[0][d] = n_kept;
        kept.stride[1][d] = k.stride[Term::A][d];
        n_kept *= k.dim[d];
    }
    summed.n = 1;
    summed.dim[0] = s.lanes.n_parts;
    summed.stride[0][0] = n_kept;
    summing<I, part_term<I>> t = {};
    t.kept = with_index<I>(kept);
    t.summed = with_index<I>(summed);
    t.n_kept = s.n_kept;
    t.n_summed = t.per_part = static_cast<I>(s.lanes.n_parts);
    t.lanes = divide(n_kept, s.lanes.n_parts, false, false);
    t.term.parts = s.parts;
    t.scale = s.scale;
    t.d = s.d;
    t.accumulate = s.accumulate;
    launch_sum(ctx, t);
}

template <class I, class Term> struct sum_job {
    axes<size_t, Term::A + 1> kept;
    axes<size_t, Term::A> summed;
    Term term;
    double scale;
    float *d;
    bool accumulate, terms_first;
};

template <class I, class Term> void sum_with(const pnb_ctx *ctx, const sum_job<I, Term> &job)
{
    size_t n_kept = n_elements(job.kept), n_summed = n_elements(job.summed);
    summing<I, Term> s = {};
    s.kept = with_index<I>(job.kept);
    s.summed = with_index<I>(job.summed);
    s.n_kept = static_cast<I>(n_kept);
    s.n_summed = static_cast<I>(n_summed);
    s.lanes = divide(n_kept, n_summed, job.terms_first, true);
    size_t per_part = (n_summed + s.lanes.n_parts - 1) / s.lanes.n_parts;
    s.per_part = static_cast<I>(per_part);
    s.term = job.term;
    s.scale = job.scale;
    s.d = job.d;
    s.accumulate = job.accumulate;
    if (s.lanes.n_parts > 1)
        s.parts = static_cast<double *>(pnb__cuda_scratch(ctx));
    launch_sum(ctx, s);
    if (s.lanes.n_parts > 1)
        launch_parts(ctx, s, job.kept);
}

/* Splits axes in kept ones and those where d repeats; array A of x is d. */
template <class I, class Term>
void sum_over(const pnb_ctx *ctx, const axes<size_t, Term::A + 1> &x, sum_job<I, Term> job)
{
    for (int d = 0; d < x.n; d++) {
        bool is_kept = x.stride[Term::A][d] != 0;
        int at = is_kept ? job.kept.n++ : job.summed.n++;
        (is_kept ? job.kept.dim : job.summed.dim)[at] = x.dim[d];
        for (int a = 0; a <= Term::A; a++) {
            if (is_kept)
                job.kept.stride[a][at] = x.stride[a][d];
            else if (a < Term::A)
                job.summed.stride[a][at] = x.stride[a][d];
        }
        job.terms_first = !is_kept;
    }
    if (job.kept.n == 0)
        job.kept.dim[job.kept.n++] = 1;
    if (job.summed.n == 0)
        job.summed.dim[job.summed.n++] = 1;
    if (n_elements(job.kept) > 0)
        sum_with(ctx, job);
}

/* d = or += scale * the sum of a term over the axes where stride_d is 0. The term reads arrays of
 * these strides. */
template <template <class> class Term>
void sum_axes(const pnb_ctx *ctx, int n_dims, const size_t *dims, const size_t *const *stride,
              const Term<unsigned> &small, const Term<size_t> &large, double scale, float *d,
              bool accumulate)
{
    axes<size_t, Term<size_t>::A + 1> x = axes_of<Term<size_t>::A + 1>(n_dims, dims, stride);
    if (is_small(x)) {
        sum_job<unsigned, Term<unsigned>> job = {};
        job.term = small;
        job.scale = scale, job.d = d, job.accumulate = accumulate;
        sum_over(ctx, x, job);
    } else {
        sum_job<size_t, Term<size_t>> job = {};
        job.term = large;
        job.scale = scale, job.d = d, job.accumulate = accumulate;
        sum_over(ctx, x, job);
    }
}

} // namespace

#endif
