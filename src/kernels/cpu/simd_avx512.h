/* Vectors of 16 floats on AVX-512 (F, BW, VL, DQ). See simd_generic.h for what each name means. */
#ifndef PNB_KERNELS_CPU_SIMD_AVX512_H
#define PNB_KERNELS_CPU_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

#if defined(__GNUC__) && !defined(__OPTIMIZE__)
/* Without optimisation GCC's intrinsics are macros, whose own masks convert -1 to __mmask16. */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif

#define VL 16
#define TILE_ROWS 14  /* 14 x 2 accumulators, 2 vectors of b, 1 of a: 31 of 32 registers */
#define TILE_UNROLL 2 /* steps of k at a time; with more, GCC 12 keeps an accumulator in memory */
#define I8_ROWS PNB__TILE_I8_AVX512_ROWS
#define ISA_NAME "cpu-avx512"

typedef __m512 vf;
typedef __mmask16 vm;
typedef int32_t vi_lanes __attribute__((vector_size(64)));
typedef unsigned char vb __attribute__((vector_size(VL)));

PNB__INLINE vm v_first(size_t n)
{
    return (vm)((1u << n) - 1u);
}
PNB__INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
PNB__INLINE vf v_load_bf16(const void *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
PNB__INLINE vf v_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
PNB__INLINE vf v_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(v_first(n), p);
}
PNB__INLINE void v_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
PNB__INLINE void v_store_n(float *p, size_t n, vf x)
{
    _mm512_mask_storeu_ps(p, v_first(n), x);
}
PNB__INLINE vf v_set1(float x)
{
    return _mm512_set1_ps(x);
}
PNB__INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
PNB__INLINE vf v_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
PNB__INLINE vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
PNB__INLINE vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
PNB__INLINE vf v_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}
PNB__INLINE vf v_abs(vf x)
{
    return _mm512_abs_ps(x);
}
PNB__INLINE vm v_lt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
PNB__INLINE vm v_is_nan(vf a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
PNB__INLINE vf v_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
PNB__INLINE vf v_round(vf x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
PNB__INLINE vf v_ldexp(vf x, vf n)
{
    return _mm512_scalef_ps(x, n);
}
PNB__INLINE vf v_split(vf x, vf *exponent)
{
    *exponent = _mm512_getexp_ps(x);
    return _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
}
PNB__INLINE float v_sum(vf x)
{
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
PNB__INLINE float v_top(vf x)
{
    return _mm512_reduce_max_ps(x);
}
/* Sum in double of the lanes of a * b, added to sums of 8 doubles kept in two vectors. */
typedef struct vd {
    __m512d low, high;
} vd;
PNB__INLINE vd vd_zero(void)
{
    return (vd){_mm512_setzero_pd(), _mm512_setzero_pd()};
}
PNB__INLINE vd vd_fma(vf a, vf b, vd sum)
{
    __m512d al = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    __m512d bl = _mm512_cvtps_pd(_mm512_castps512_ps256(b));
    __m512d ah = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
    __m512d bh = _mm512_cvtps_pd(_mm512_extractf32x8_ps(b, 1));
    return (vd){_mm512_fmadd_pd(al, bl, sum.low), _mm512_fmadd_pd(ah, bh, sum.high)};
}
PNB__INLINE double vd_sum(vd x)
{
    return _mm512_reduce_add_pd(_mm512_add_pd(x.low, x.high));
}
PNB__INLINE vf vd_lanes(vd x)
{
    __m512 low = _mm512_castps256_ps512(_mm512_cvtpd_ps(x.low));
    return _mm512_insertf32x8(low, _mm512_cvtpd_ps(x.high), 1);
}

/* r[i][j] <-> r[j][i]: pairs, quads, then 128-bit blocks twice. */
PNB__INLINE void v_transpose(vf r[VL])
{
    vf t[VL];
    for (int i = 0; i < VL; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VL; i += 4) {
        for (int j = 0; j < 2; j++) {
            __m512d x = _mm512_castps_pd(t[i + j]), y = _mm512_castps_pd(t[i + j + 2]);
            r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        }
    }
    for (int i = 0; i < 4; i++) { /* r[4 q + i]: block b holds column 4 b + i of rows 4 q .. */
        vf low = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        vf low_odd = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
        vf high = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        vf high_odd = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
        t[i] = _mm512_shuffle_f32x4(low, high, 0x88);
        t[i + 8] = _mm512_shuffle_f32x4(low, high, 0xDD);
        t[i + 4] = _mm512_shuffle_f32x4(low_odd, high_odd, 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(low_odd, high_odd, 0xDD);
    }
    for (int i = 0; i < VL; i++)
        r[i] = t[i];
}

#endif
