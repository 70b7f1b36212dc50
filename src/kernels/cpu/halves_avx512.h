/* Rounding to bfloat16 by the instruction of AVX-512 BF16, for files that only such processors run.
 * Numbers below the normal range become 0, as they are to what multiplies them. The instruction is
 * written out: to the compiler these files have plain AVX-512. */
#ifndef PNB_KERNELS_CPU_HALVES_AVX512_H
#define PNB_KERNELS_CPU_HALVES_AVX512_H

#include "kernels/cpu/simd_avx512.h"

PNB__INLINE __m256i halves_of(__m512 x)
{
    __m256i halves;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(x));
    return halves;
}
#define v_halves_of(x) ((v_halves)halves_of(x))

#endif
