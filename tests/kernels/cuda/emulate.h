/* CUDA's threads on one of the host's, for the kernels of src/kernels/cuda: compiled before each of
 * those files by a C++ compiler (-include).
 *
 * Each thread of a block is a fiber. __syncthreads and the shuffles hand on to the next one until
 * all of the block, or of the warp, have come; a thread that never comes ends the program with a
 * word. Blocks follow each other. Device memory is host memory, so the sanitizers see every access,
 * but for
 * __shared__ arrays, which are static. Fibers run forward or, every other launch, backward: who
 * forgot a barrier gets other numbers. */
#ifndef PNB_TESTS_KERNELS_CUDA_EMULATE_H
#define PNB_TESTS_KERNELS_CUDA_EMULATE_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <math.h>

#define PNB__CUDA_EMULATED 1
#define PNB__CUDA_UNROLL
#define PNB__CUDA_UNROLL_4
#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define PNB__CUDA_SHARED(type, name) type *name = reinterpret_cast<type *>(emulated_shared())

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}

extern dim3 threadIdx, blockIdx, blockDim, gridDim;
void *emulated_shared();
void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
static inline int __syncthreads_or(int mine)
{
    static int any;
    __syncthreads();
    any = 0;
    __syncthreads();
    any |= mine != 0;
    __syncthreads();
    return any;
}
/* Gives a value of every thread of the warp to all: that of a lane lies EMULATED_SLOT * lane behind
 * what is returned, until the next exchange but one: nobody comes to that before all have read. */
enum { EMULATED_SLOT = 64 };
unsigned char *emulated_slots();
template <class T> static inline const unsigned char *emulated_exchange(const T &mine)
{
    static_assert(sizeof(T) <= EMULATED_SLOT, "larger than a slot");
    unsigned char *slots = emulated_slots();
    std::memcpy(slots + threadIdx.x % 32 * EMULATED_SLOT, &mine, sizeof mine);
    __syncwarp();
    return slots;
}

template <class T> static inline T __shfl_sync(unsigned, T v, int lane, int = 32)
{
    T out;
    std::memcpy(&out, emulated_exchange(v) + (lane & 31) * EMULATED_SLOT, sizeof out);
    return out;
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int lanes)
{
    return __shfl_sync(mask, v, static_cast<int>(threadIdx.x % 32) ^ lanes);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned lanes)
{
    int to = static_cast<int>(threadIdx.x % 32 + lanes);
    return __shfl_sync(mask, v, to < 32 ? to : static_cast<int>(threadIdx.x % 32));
}
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
#define __expf(x) expf(x)
#define __fdividef(x, y) ((x) / (y))
static inline float rsqrtf(float x)
{
    return 1 / __builtin_sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / __builtin_sqrt(x);
}
static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    std::memcpy(&u, &x, sizeof u);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float x;
    std::memcpy(&x, &u, sizeof x);
    return x;
}

struct pnb_ctx;
void emulated_launch(dim3 blocks, unsigned threads, size_t shared,
                     const std::function<void()> &thread);
template <class... P, class... A>
static void pnb__cuda_launch(const pnb_ctx *, void (*kernel)(P...), dim3 blocks, unsigned threads,
                             size_t shared, A... args)
{
    emulated_launch(blocks, threads, shared, [=] { kernel(static_cast<P>(args)...); });
}

#endif
