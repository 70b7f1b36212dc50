/* Vectors of 8 floats on AVX2 with FMA. See simd_generic.h for what each name means. */
#ifndef PNB_KERNELS_CPU_SIMD_AVX2_H
#define PNB_KERNELS_CPU_SIMD_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

#define VL 8
#define TILE_ROWS 6   /* 6 x 2 accumulators, 2 vectors of b, 1 of a: 15 of 16 registers */
#define TILE_UNROLL 4 /* steps of k at a time */
#define I8_ROWS 5     /* 5 x 2 sums, 2 vectors of b, 1 of a, the products and the ones: 15 */
#define ISA_NAME "cpu-avx2"

typedef __m256 vf;
typedef __m256 vm;
typedef __m256i vi;
typedef int32_t vi_lanes __attribute__((vector_size(32)));
typedef unsigned char vb __attribute__((vector_size(VL)));

PNB__INLINE __m256i v_first(size_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones + VL - n));
}
PNB__INLINE vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
PNB__INLINE vf v_load_bf16(const void *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
PNB__INLINE vf v_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
PNB__INLINE vf v_load_n(const float *p, size_t n)
{
    return n == VL ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, v_first(n));
}
PNB__INLINE void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
PNB__INLINE void v_store_n(float *p, size_t n, vf x)
{
    if (n == VL)
        _mm256_storeu_ps(p, x);
    else
        _mm256_maskstore_ps(p, v_first(n), x);
}
PNB__INLINE vf v_set1(float x)
{
    return _mm256_set1_ps(x);
}
PNB__INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
PNB__INLINE vf v_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
PNB__INLINE vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
PNB__INLINE vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
PNB__INLINE vf v_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}
PNB__INLINE vf v_abs(vf x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
PNB__INLINE vm v_lt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
PNB__INLINE vm v_is_nan(vf a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
PNB__INLINE vf v_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}
PNB__INLINE vf v_round(vf x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
PNB__INLINE vf v_ldexp(vf x, vf n)
{
    /* in two factors, so that results below the normal range come out right */
    __m256i e = _mm256_cvtps_epi32(n), bias = _mm256_set1_epi32(127);
    __m256i half = _mm256_srai_epi32(e, 1), rest = _mm256_sub_epi32(e, half);
    __m256i f1 = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    __m256i f2 = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
    return x * _mm256_castsi256_ps(f1) * _mm256_castsi256_ps(f2);
}
PNB__INLINE vf v_split(vf x, vf *exponent)
{
    vm small = v_lt(v_abs(x), v_set1(0x1p-126f));
    __m256i bits = _mm256_castps_si256(v_select(small, x * v_set1(0x1p24f), x));
    __m256i e = _mm256_and_si256(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(0xFF));
    vf shift = v_select(small, v_set1(127.0f + 24.0f), v_set1(127.0f));
    *exponent = _mm256_cvtepi32_ps(e) - shift;
    __m256i m = _mm256_and_si256(bits, _mm256_set1_epi32((int)0x807FFFFFu));
    return _mm256_castsi256_ps(_mm256_or_si256(m, _mm256_set1_epi32(0x3F800000)));
}
PNB__INLINE float v_sum(vf x)
{
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
PNB__INLINE float v_top(vf x)
{
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

typedef struct vd {
    __m256d low, high;
} vd;
PNB__INLINE vd vd_zero(void)
{
    return (vd){_mm256_setzero_pd(), _mm256_setzero_pd()};
}
PNB__INLINE vd vd_fma(vf a, vf b, vd sum)
{
    __m256d al = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    __m256d bl = _mm256_cvtps_pd(_mm256_castps256_ps128(b));
    __m256d ah = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    __m256d bh = _mm256_cvtps_pd(_mm256_extractf128_ps(b, 1));
    return (vd){_mm256_fmadd_pd(al, bl, sum.low), _mm256_fmadd_pd(ah, bh, sum.high)};
}
PNB__INLINE double vd_sum(vd x)
{
    __m256d s = _mm256_add_pd(x.low, x.high);
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}
PNB__INLINE vf vd_lanes(vd x)
{
    __m256 low = _mm256_castps128_ps256(_mm256_cvtpd_ps(x.low));
    return _mm256_insertf128_ps(low, _mm256_cvtpd_ps(x.high), 1);
}

PNB__INLINE void v_transpose(vf r[VL])
{
    vf t[VL];
    for (int i = 0; i < VL; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VL; i += 4) {
        for (int j = 0; j < 2; j++) {
            __m256d x = _mm256_castps_pd(t[i + j]), y = _mm256_castps_pd(t[i + j + 2]);
            r[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(x, y));
            r[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(x, y));
        }
    }
    for (int i = 0; i < 4; i++) {
        vf low = r[i], high = r[i + 4];
        r[i] = _mm256_permute2f128_ps(low, high, 0x20);
        r[i + 4] = _mm256_permute2f128_ps(low, high, 0x31);
    }
}

PNB__INLINE vi vi_load(const signed char *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
PNB__INLINE void vi_store(int32_t *p, vi x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, x);
}
PNB__INLINE vi vi_spread(int32_t x)
{
    return _mm256_set1_epi32(x);
}
/* Pairs are added in 16 bits: 2 * 127 * 127 fits, 2 * 255 * 127 does not, one product does. */
PNB__INLINE vi vi_dot(vi sum, vi a, vi b, bool wide)
{
    const __m256i one = _mm256_set1_epi16(1), even = _mm256_set1_epi16(0xFF);
    if (!wide)
        return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), one));
    /* even and odd bytes as words; b's are made once for all rows of a tile */
    __m256i low = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), high = _mm256_srai_epi16(b, 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_and_si256(a, even), low));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_srli_epi16(a, 8), high));
}

#endif
