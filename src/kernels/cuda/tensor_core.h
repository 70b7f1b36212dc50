/* Matrix instructions of a warp: fragments of bfloat16 from shared memory, and their product.
 *
 * In the words of NVIDIA's PTX manual: mma.m16n8k16, ldmatrix. Lane l of a warp holds, with g = l/4
 * and t = l%4: A (16,16)  a0 (g, 2t..)  a1 (g+8, 2t..)  a2 (g, 2t+8..)  a3 (g+8, 2t+8..), two
 * numbers each B (16,8)   b0 (2t.., g)  b1 (2t+8.., g) C (16,8)   c0, c1 (g, 2t..)  c2, c3 (g+8,
 * 2t..) so two C beside each other, rounded, are an A. On emulated threads the same is written out.
 */
#ifndef PNB_KERNELS_CUDA_TENSOR_CORE_H
#define PNB_KERNELS_CUDA_TENSOR_CORE_H

#include "kernels/cuda/numbers.h"

#ifdef PNB__CUDA_EMULATED

#include "base/loop.h"

/* 16 numbers of a row: of each of four lanes from first on a pair in `word` and one `apart` from
 * it. They lie in slots of the emulation's own, which sanitizers need not look at. */
PNB__UNCHECKED static void pnb__cuda_row16(const unsigned char *slots, unsigned first,
                                           unsigned word, unsigned apart, float out[16])
{
    for (unsigned k = 0; k < 16; k++) {
        unsigned pair, at = word + k / 8 * apart;
        memcpy(&pair, slots + (first + k % 8 / 2) * EMULATED_SLOT + at * sizeof pair, sizeof pair);
        pair = k % 2 ? pair & 0xffff0000u : pair << 16; /* bfloat16 widened: a float's upper half */
        memcpy(&out[k], &pair, sizeof pair);
    }
}

PNB__UNCHECKED static void pnb__cuda_add_products(float c[4], const float x[2][16],
                                                  const float y[2][16])
{
    for (unsigned e = 0; e < 4; e++)
        for (unsigned k = 0; k < 16; k++)
            c[e] += x[e / 2][k] * y[e % 2][k];
}

__device__ static inline void pnb__cuda_mma(float c[4], const unsigned a[4], const unsigned b[2])
{
    struct words {
        unsigned of[6];
    } mine = {{a[0], a[1], a[2], a[3], b[0], b[1]}};
    const unsigned char *slots = emulated_exchange(mine);
    unsigned lane = threadIdx.x % 32;
    float x[2][16], y[2][16];
    for (unsigned i = 0; i < 2; i++) {
        pnb__cuda_row16(slots, lane / 4 * 4, i, 2, x[i]);
        pnb__cuda_row16(slots, (lane % 4 * 2 + i) * 4, 4, 1, y[i]);
    }
    pnb__cuda_add_products(c, x, y);
}

__device__ static inline void pnb__cuda_load4(const unsigned short *row, bool transposed,
                                              unsigned out[4])
{
    const unsigned char *slots = emulated_exchange(row);
    unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (unsigned j = 0; j < 4; j++)
        for (unsigned i = out[j] = 0; i < 2; i++) {
            unsigned r = j * 8 + (transposed ? 2 * t + i : g);
            const unsigned short *from;
            memcpy(&from, slots + r * EMULATED_SLOT, sizeof from);
            out[j] |= static_cast<unsigned>(from[transposed ? g : 2 * t + i]) << i * 16;
        }
}

__device__ static inline unsigned pnb__cuda_pack(float low, float high)
{
    return pnb__cuda_bf16_of(low) | static_cast<unsigned>(pnb__cuda_bf16_of(high)) << 16;
}

__device__ static inline void pnb__cuda_fetch16(void *to, const void *from, bool is_there)
{
    if (is_there)
        memcpy(to, from, 16);
    else
        memset(to, 0, 16);
}

__device__ static inline void pnb__cuda_fetched(void)
{
}

#else

/* c += a b */
__device__ static inline void pnb__cuda_mma(float c[4], const unsigned a[4], const unsigned b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four matrices of 8 x 8: lane l points to row l%8 of matrix l/8, 16 bytes in shared memory. */
__device__ static inline void pnb__cuda_load4(const unsigned short *row, bool transposed,
                                              unsigned out[4])
{
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
}

/* 16 bytes to shared memory, zeros where there are none (`from` is not read), without waiting:
 * pnb__cuda_fetched waits for all that this thread asked for, a barrier after it for all of the
 * block. */
__device__ static inline void pnb__cuda_fetch16(void *to, const void *from, bool is_there)
{
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to)), bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ static inline void pnb__cuda_fetched(void)
{
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
}

/* Two numbers rounded to nearest, ties to even. */
__device__ static inline unsigned pnb__cuda_pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

#endif

/* A of rows r0.. and columns k0.. of a tile whose rows are `pitch` halves apart. */
__device__ static inline void pnb__cuda_load_a(const unsigned short *tile, int pitch, int r0,
                                               int k0, unsigned a[4])
{
    int lane = static_cast<int>(threadIdx.x % 32);
    pnb__cuda_load4(tile + (r0 + lane % 16) * pitch + k0 + lane / 16 * 8, false, a);
}

/* Two B beside each other, columns n0.. and n0 + 8.., k0.. of k: of a tile of rows n ... */
__device__ static inline void pnb__cuda_load_b(const unsigned short *tile, int pitch, int n0,
                                               int k0, unsigned b[4])
{
    int lane = static_cast<int>(threadIdx.x % 32);
    pnb__cuda_load4(tile + (n0 + lane % 8 + lane / 16 * 8) * pitch + k0 + lane / 8 % 2 * 8, false,
                    b);
}

/* ... and of a tile of rows k. */
__device__ static inline void pnb__cuda_load_b_rows(const unsigned short *tile, int pitch, int k0,
                                                    int n0, unsigned b[4])
{
    int lane = static_cast<int>(threadIdx.x % 32);
    pnb__cuda_load4(tile + (k0 + lane % 16) * pitch + n0 + lane / 16 * 8, true, b);
}

#endif
