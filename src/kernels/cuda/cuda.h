/* What the files of this column share: how kernels are started, sums over blocks, products.
 *
 * The files are CUDA C++. Each slot of kernels.def is a function pnb__cuda_<slot>, named once more
 * in table.cu; it asks for kernels on the stream of its context and returns at once. Nothing here
 * uses atomics on numbers: sums have one order, given by sizes alone.
 *
 * The same files are compiled by a C++ compiler for the tests, with tests/kernels/cuda/emulate.h in
 * place of the CUDA runtime: threads of a block become fibers. So they use no more of CUDA than
 * that header has: threadIdx, blockIdx, blockDim, gridDim (x, y, z), __syncthreads,
 * __syncthreads_or, __syncwarp, __shfl_sync, __shfl_xor_sync, __ldg, __shared__ arrays of fixed
 * size, PNB__CUDA_SHARED, math.h. */
#ifndef PNB_KERNELS_CUDA_CUDA_H
#define PNB_KERNELS_CUDA_CUDA_H

#include <math.h>

extern "C" {
#include "kernels/kernels.h"
}

#ifndef PNB__CUDA_EMULATED
#include <cuda_runtime.h>
#define PNB__CUDA_UNROLL _Pragma("unroll")
#define PNB__CUDA_UNROLL_4 _Pragma("unroll 4")
/* Memory of a block whose size comes with the launch: one name in a file. */
#define PNB__CUDA_SHARED(type, name)                                                               \
    extern __shared__ __align__(16) unsigned char name##_bytes[];                                  \
    type *name = reinterpret_cast<type *>(name##_bytes)
#endif

enum { PNB__CUDA_THREADS = 256, PNB__CUDA_WARP = 32 };
/* Blocks that fill a device; few on emulated threads, so that what is for many is tested there. */
#ifdef PNB__CUDA_EMULATED
enum { PNB__CUDA_MANY = 4 };
#else
enum { PNB__CUDA_MANY = 132 };
#endif

/* ---- device.cu (emulate.cpp in the tests) ---- */
/* Memory of the context's device for what a slot needs beside its workspace, from its start on: a
 * slot that calls another one loses it. Its kernels run in order, so slots need not share it. */
#define PNB__CUDA_SCRATCH ((size_t)1 << 20)
void *pnb__cuda_scratch(const pnb_ctx *ctx);
/* Memory for one slot's own use, and back: in order with kernels, so it may be given back at once.
 * NULL where there is none; the context remembers. */
void *pnb__cuda_borrow(const pnb_ctx *ctx, size_t bytes);
void pnb__cuda_return(const pnb_ctx *ctx, void *p);
/* n <= 8 doubles at the scratch memory's start, once all that was asked before is done; zeros
 * where the device failed. */
void pnb__cuda_read_back(const pnb_ctx *ctx, size_t n, double *out);
#ifndef PNB__CUDA_EMULATED
cudaStream_t pnb__cuda_stream(const pnb_ctx *ctx);
/* Remembers the first error of the context: the next mem_read or mem_write reports it. */
void pnb__cuda_note(const pnb_ctx *ctx, cudaError_t error, const char *what);

/* kernel(args...) on blocks of `threads`, `shared` bytes for its PNB__CUDA_SHARED. */
template <class... P, class... A>
static void pnb__cuda_launch(const pnb_ctx *ctx, void (*kernel)(P...), dim3 blocks,
                             unsigned threads, size_t shared, A... args)
{
    const size_t free_of_asking = 48 << 10;
    if (shared > free_of_asking)
        pnb__cuda_note(ctx,
                       cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                            cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(shared)),
                       "shared memory");
    kernel<<<blocks, threads, shared, pnb__cuda_stream(ctx)>>>(static_cast<P>(args)...);
    pnb__cuda_note(ctx, cudaPeekAtLastError(), "launch");
}
#endif

/* ---- products.cu (emulate.cpp in the tests) ---- */
typedef enum pnb__cuda_type { PNB__CUDA_F32, PNB__CUDA_BF16, PNB__CUDA_I8 } pnb__cuda_type;
/* C = alpha op(A) op(B) + beta D + bias, row-major; op(A) is (m,k), op(B) (k,n); D is C or has its
 * shape. D goes with C of floats and is floats; bias (n) is of C's type. Sums are in floats. Of
 * bytes with a sign, C is int32 and exact, alpha 1, beta 0, no bias. */
typedef struct pnb__cuda_product {
    bool trans_a, trans_b;
    size_t m, n, k, lda, ldb, ldc, ldd;
    size_t n_batch, batch_a, batch_b, batch_c; /* n_batch 1: one product; D steps as C */
    float alpha, beta;
    pnb__cuda_type type, type_c; /* of A and B, of C; type_c F32 with bytes: see above */
    const void *a, *b, *d, *bias;
    void *c;
} pnb__cuda_product;
void pnb__cuda_multiply(const pnb_ctx *ctx, const pnb__cuda_product *p);

/* ---- loops ---- */
__device__ static inline size_t pnb__cuda_index(void)
{
    return blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
}

__device__ static inline size_t pnb__cuda_step(void)
{
    return gridDim.x * static_cast<size_t>(blockDim.x);
}

/* Blocks for n pieces of work, `each` to a block, no more than a device has places for. */
static inline dim3 pnb__cuda_blocks(size_t n, size_t each)
{
    const size_t most = 132 * 32;
    size_t blocks = (n + each - 1) / each;
    return dim3(static_cast<unsigned>(PNB_MAX(PNB_MIN(blocks, most), static_cast<size_t>(1))));
}

template <class F> __global__ void pnb__cuda_each_kernel(size_t n, F f)
{
    for (size_t i = pnb__cuda_index(); i < n; i += pnb__cuda_step())
        f(i);
}

/* f(i) for i < n, in any order; f is an object with a __device__ operator()(size_t) const. */
template <class F> static void pnb__cuda_each(const pnb_ctx *ctx, size_t n, F f)
{
    if (n > 0)
        pnb__cuda_launch(ctx, pnb__cuda_each_kernel<F>, pnb__cuda_blocks(n, PNB__CUDA_THREADS),
                         PNB__CUDA_THREADS, 0, n, f);
}

/* f.row(r) for r < rows by all threads of a block together; it may use the sums below, and must
 * reach them with every thread. */
template <class F> __global__ void pnb__cuda_rows_kernel(size_t rows, F f)
{
    for (size_t r = blockIdx.x; r < rows; r += gridDim.x)
        f.row(r);
}

template <class F> static void pnb__cuda_rows(const pnb_ctx *ctx, size_t rows, F f)
{
    if (rows > 0)
        pnb__cuda_launch(ctx, pnb__cuda_rows_kernel<F>, pnb__cuda_blocks(rows, 1),
                         PNB__CUDA_THREADS, 0, rows, f);
}

/* ---- over the threads of a block (PNB__CUDA_THREADS of them) ---- */
struct pnb__cuda_add {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};
/* NaN is lost: for maxima that only shift exponents */
struct pnb__cuda_most {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a > b ? a : b;
    }
};

template <class T, class Op> __device__ static inline T pnb__cuda_warp(T v, Op op)
{
    for (int lane = PNB__CUDA_WARP / 2; lane > 0; lane /= 2)
        v = op(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

/* Every thread gets op over all threads' v, in one fixed order. */
template <class T, class Op> __device__ static inline T pnb__cuda_block(T v, Op op)
{
    __shared__ T parts[PNB__CUDA_THREADS / PNB__CUDA_WARP];
    v = pnb__cuda_warp(v, op);
    if (threadIdx.x % PNB__CUDA_WARP == 0)
        parts[threadIdx.x / PNB__CUDA_WARP] = v;
    __syncthreads();
    T all = parts[0];
    for (int i = 1; i < PNB__CUDA_THREADS / PNB__CUDA_WARP; i++)
        all = op(all, parts[i]);
    __syncthreads();
    return all;
}

template <class T> __device__ static inline T pnb__cuda_block_sum(T v)
{
    return pnb__cuda_block(v, pnb__cuda_add());
}

/* dst = or += value */
template <class T> __device__ static inline void pnb__cuda_put(float *dst, T value, bool accumulate)
{
    *dst = static_cast<float>(accumulate ? static_cast<T>(*dst) + value : value);
}

/* ---- the slots ---- */
#ifndef PNB__CUDA_SLOT /* a test may want them weak */
#define PNB__CUDA_SLOT(returns, name, parameters) extern "C" returns pnb__cuda_##name parameters;
#endif
#define PNB__KERNEL(column, returns, name, parameters, names)                                      \
    PNB__CUDA_SLOT(returns, name, parameters)
#include "kernels/kernels.def"

#endif
