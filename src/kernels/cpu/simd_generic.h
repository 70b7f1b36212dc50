/* Vectors of 4 floats in the compilers' portable form (SSE2, NEON, or plain code).
 *
 * The names, the same in simd_avx2.h and simd_avx512.h:
 *   vf, VL          a vector of VL floats; + - * / and comparison with itself work as operators
 *   v_load_bf16, v_load_f16   VL halves, widened exactly
 *   v_load_n        the first n of VL lanes (1..VL), the others 0; never touches what lies beyond
 *   v_fma, v_fnma   a*b + c, c - a*b
 *   v_max, v_min    the second argument where either is NaN: constants go first to let NaN through
 *   vm              lane mask of v_lt, v_is_nan, for v_select(mask, then, else)
 *   v_ldexp(x, n)   x * 2^n for whole n in [-252, 254]; v_split: x = result * 2^exponent with
 *                   |result| in [1, 2), also below the normal range (0, inf, NaN: meaningless)
 *   v_sum, v_top    sum and maximum of the lanes, always in the same order
 *   vd              VL sums in double: vd_fma adds a*b lane by lane, vd_sum adds the lanes up,
 *                   vd_lanes rounds each to float
 *   v_transpose     of VL vectors as a square
 *   vi_lanes, vb    VL integers, VL bytes, for __builtin_convertvector
 *   vi, vi_load, vi_store, vi_spread, vi_dot, I8_ROWS   what tile_i8.inc is made of */
#ifndef PNB_KERNELS_CPU_SIMD_GENERIC_H
#define PNB_KERNELS_CPU_SIMD_GENERIC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/loop.h"

#define VL 4
#define TILE_ROWS 4
#define TILE_UNROLL 4 /* steps of k at a time */
#define I8_ROWS 2
#define ISA_NAME "cpu-generic"

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef vi vm;
typedef vi vi_lanes;
typedef unsigned char vb __attribute__((vector_size(VL)));

PNB__INLINE vf v_load_n(const float *p, size_t n)
{
    vf x = {0, 0, 0, 0};
    memcpy(&x, p, n * sizeof *p);
    return x;
}
PNB__INLINE void v_store_n(float *p, size_t n, vf x)
{
    memcpy(p, &x, n * sizeof *p);
}
PNB__INLINE vf v_load(const float *p)
{
    return v_load_n(p, VL);
}
PNB__INLINE void v_store(float *p, vf x)
{
    v_store_n(p, VL, x);
}
PNB__INLINE vf v_load_bf16(const void *p)
{
    uint16_t half[VL];
    vi bits = {0};
    memcpy(half, p, sizeof half);
    for (int i = 0; i < VL; i++)
        bits[i] = (int32_t)((uint32_t)half[i] << 16);
    return (vf)bits;
}
PNB__INLINE vf v_load_f16(const void *p)
{
    uint16_t half[VL];
    vf x = {0};
    memcpy(half, p, sizeof half);
    for (int i = 0; i < VL; i++) {
        float size = (float)(half[i] & 0x3FFU), sign = half[i] >> 15 ? -1.0f : 1.0f;
        int exponent = half[i] >> 10 & 0x1F;
        if (exponent == 31)
            x[i] = size > 0 ? NAN : sign * INFINITY;
        else
            x[i] = sign * ldexpf(exponent > 0 ? size + 1024.0f : size, PNB_MAX(exponent, 1) - 25);
    }
    return x;
}
PNB__INLINE vf v_set1(float x)
{
    return (vf){x, x, x, x};
}
PNB__INLINE vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
PNB__INLINE vf v_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}
PNB__INLINE vf v_select(vm m, vf a, vf b)
{
    return (vf)((m & (vi)a) | (~m & (vi)b));
}
PNB__INLINE vm v_lt(vf a, vf b)
{
    return a < b;
}
PNB__INLINE vm v_is_nan(vf a)
{
    return a != a;
}
PNB__INLINE vf v_max(vf a, vf b)
{
    return v_select(a > b, a, b);
}
PNB__INLINE vf v_min(vf a, vf b)
{
    return v_select(a < b, a, b);
}
PNB__INLINE vf v_sqrt(vf x)
{
    return (vf){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}
PNB__INLINE vf v_abs(vf x)
{
    return (vf)((vi)x & (vi){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX});
}
PNB__INLINE vf v_round(vf x)
{
    return (vf){rintf(x[0]), rintf(x[1]), rintf(x[2]), rintf(x[3])};
}
PNB__INLINE vf v_ldexp(vf x, vf n)
{
    vi e = __builtin_convertvector(n, vi), half = e >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
}
PNB__INLINE vf v_split(vf x, vf *exponent)
{
    vm small = v_abs(x) < v_set1(0x1p-126f);
    vi bits = (vi)v_select(small, x * v_set1(0x1p24f), x);
    vf shift = v_select(small, v_set1(127.0f + 24.0f), v_set1(127.0f));
    *exponent = __builtin_convertvector((bits >> 23) & 0xFF, vf) - shift;
    return (vf)((bits & (int32_t)0x807FFFFFu) | 0x3F800000);
}
PNB__INLINE float v_sum(vf x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}
PNB__INLINE float v_top(vf x)
{
    float a = x[0] > x[2] ? x[0] : x[2], b = x[1] > x[3] ? x[1] : x[3];
    return a > b ? a : b;
}

typedef struct vd {
    double lane[VL];
} vd;
PNB__INLINE vd vd_zero(void)
{
    return (vd){{0, 0, 0, 0}};
}
PNB__INLINE vd vd_fma(vf a, vf b, vd sum)
{
    for (int i = 0; i < VL; i++)
        sum.lane[i] += (double)a[i] * (double)b[i];
    return sum;
}
PNB__INLINE double vd_sum(vd x)
{
    return (x.lane[0] + x.lane[2]) + (x.lane[1] + x.lane[3]);
}
PNB__INLINE vf vd_lanes(vd x)
{
    return (vf){(float)x.lane[0], (float)x.lane[1], (float)x.lane[2], (float)x.lane[3]};
}

PNB__INLINE void v_transpose(vf r[VL])
{
    vf t[VL] = {r[0], r[1], r[2], r[3]};
    for (int i = 0; i < VL; i++)
        r[i] = (vf){t[0][i], t[1][i], t[2][i], t[3][i]};
}

PNB__INLINE vi vi_load(const signed char *p)
{
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}
PNB__INLINE void vi_store(int32_t *p, vi x)
{
    memcpy(p, &x, sizeof x);
}
PNB__INLINE vi vi_spread(int32_t x)
{
    return (vi){x, x, x, x};
}
PNB__INLINE vi vi_dot(vi sum, vi a, vi b, bool wide)
{
    (void)wide;
    unsigned char u[4 * VL];
    signed char s[4 * VL];
    memcpy(u, &a, sizeof u);
    memcpy(s, &b, sizeof s);
    for (int i = 0; i < VL; i++)
        sum[i] += u[4 * i] * s[4 * i] + u[4 * i + 1] * s[4 * i + 1] + u[4 * i + 2] * s[4 * i + 2] +
                  u[4 * i + 3] * s[4 * i + 3];
    return sum;
}

#endif
