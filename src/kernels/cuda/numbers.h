/* Functions of one number and their derivatives in floats, bfloat16 to and from floats. */
#ifndef PNB_KERNELS_CUDA_NUMBERS_H
#define PNB_KERNELS_CUDA_NUMBERS_H

#include "kernels/cuda/cuda.h"

/* Formulas of ref/scalar.h. The small side of a logistic is e^-|x| / (1 + e^-|x|). */
__device__ static inline float pnb__cuda_logistic(float x)
{
    float e = expf(-fabsf(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

__device__ static inline float pnb__cuda_softplus(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

/* NaN is kept. AFFINE is the identity here. */
__device__ static inline float pnb__cuda_activation(pnb__unary op, float x)
{
    const float sqrt_half = 0.70710678118654752f, a = 0.79788456080286536f, b = 0.044715f;
    switch (op) {
    case PNB__GELU:
        return 0.5f * x * erfcf(-x * sqrt_half);
    case PNB__GELU_TANH:
        return x * pnb__cuda_logistic(2 * a * (x + b * x * x * x));
    case PNB__QUICK_GELU:
        return x * pnb__cuda_logistic(1.702f * x);
    case PNB__RELU:
        return x > 0 || x != x ? x : 0; /* NaN is kept */
    case PNB__TANH:
        return tanhf(x);
    case PNB__SIGMOID:
        return pnb__cuda_logistic(x);
    case PNB__LOG_SIGMOID:
        return -pnb__cuda_softplus(-x);
    case PNB__SOFTPLUS:
        return pnb__cuda_softplus(x);
    case PNB__EXP:
        return expf(x);
    case PNB__LOG:
        return logf(x);
    case PNB__SQRT:
        return sqrtf(x);
    case PNB__SQUARE:
        return x * x;
    case PNB__ABS:
        return fabsf(x);
    case PNB__RECIP:
        return 1 / x;
    case PNB__SIN:
        return sinf(x);
    case PNB__COS:
        return cosf(x);
    case PNB__AFFINE: /* alpha 1, beta 0 */
    case PNB__N_UNARY:
    case PNB__IDENTITY:
        break;
    }
    return x;
}

/* x s(u(x)): s + x s (1 - s) u'(x), where the last may be infinite when s (1 - s) is 0 */
__device__ static inline float pnb__cuda_gated_slope(float x, float u, float du)
{
    float s = pnb__cuda_logistic(u), t = s * pnb__cuda_logistic(-u);
    return t == 0 ? s : s + x * t * du;
}

/* Which ops have their derivative from y; the others have it from x. */
__host__ __device__ static inline constexpr bool pnb__cuda_slope_of_y(pnb__unary op)
{
    return op == PNB__EXP || op == PNB__SQRT || op == PNB__RECIP || op == PNB__TANH ||
           op == PNB__SIGMOID;
}

/* v is y where pnb__cuda_slope_of_y, else x. */
__device__ static inline float pnb__cuda_slope(pnb__unary op, float v)
{
    const float sqrt_half = 0.70710678118654752f, inv_sqrt_2pi = 0.39894228040143268f;
    const float twice_a = 1.59576912160573071f /* 2 sqrt(2/pi) */, b = 0.044715f;
    switch (op) {
    case PNB__EXP:
        return v;
    case PNB__LOG:
        return 1 / v;
    case PNB__SQRT:
        return 0.5f / v;
    case PNB__SQUARE:
        return 2 * v;
    case PNB__ABS:
        return v > 0 ? 1 : v < 0 ? -1 : 0;
    case PNB__RECIP:
        return -v * v;
    case PNB__SIN:
        return cosf(v);
    case PNB__COS:
        return -sinf(v);
    case PNB__TANH:
        return (1 - v) * (1 + v);
    case PNB__SIGMOID:
        return v * (1 - v);
    case PNB__LOG_SIGMOID:
        return pnb__cuda_logistic(-v);
    case PNB__SOFTPLUS:
        return pnb__cuda_logistic(v);
    case PNB__RELU:
        return v > 0 ? 1 : 0;
    case PNB__GELU:
        return 0.5f * erfcf(-v * sqrt_half) + v * inv_sqrt_2pi * expf(-0.5f * v * v);
    case PNB__GELU_TANH:
        return pnb__cuda_gated_slope(v, twice_a * (v + b * v * v * v),
                                     twice_a * (1 + 3 * b * v * v));
    case PNB__QUICK_GELU:
        return pnb__cuda_gated_slope(v, 1.702f * v, 1.702f);
    case PNB__AFFINE: /* alpha 1 */
    case PNB__N_UNARY:
    case PNB__IDENTITY:
        break;
    }
    return 1;
}

/* ---- for results in bfloat16 ---- */

/* An instruction each, off by a float's last digits; numbers below the normal range are 0. */
__device__ static inline float pnb__cuda_inverse(float x)
{
#ifdef PNB__CUDA_EMULATED
    return 1 / x;
#else
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
__device__ static inline float pnb__cuda_exp2(float x)
{
#ifdef PNB__CUDA_EMULATED
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* The normal distribution's weight beyond |x|, and *bell = exp(-x^2 / 2): erf by a rational form
 * (Abramowitz and Stegun 1964, 7.1.26), off by 1.5e-7. It has no branch. */
__device__ static inline float pnb__cuda_normal_tail(float x, float *bell)
{
    float t = pnb__cuda_inverse(1 + 0.23164189f * fabsf(x)); /* 0.3275911 / sqrt 2 */
    *bell = pnb__cuda_exp2(-0.72134752f * x * x);            /* log2(e) / 2 */
    float p = -0.7265760135f + 0.5307027145f * t;
    p = 0.7107068705f + t * p;
    p = -0.142248368f + t * p;
    p = 0.127414796f + t * p;
    return p * t * *bell;
}

/* Off by more than a half's rounding only where GELU is above -1e-4. Infinity stays. */
__device__ static inline float pnb__cuda_gelu_half(float x)
{
    float bell, tail = pnb__cuda_normal_tail(x, &bell);
    return x > 8 ? x : (x > 0 ? x : 0) - fabsf(x) * tail;
}
__device__ static inline float pnb__cuda_gelu_slope_half(float x)
{
    float bell, tail = pnb__cuda_normal_tail(x, &bell);
    return (x > 0 ? 1 - tail : tail) + 0.39894228f * x * bell;
}

/* As kernels/bf16.h: to nearest, ties to even, NaN stays NaN. */
__device__ static inline unsigned short pnb__cuda_bf16_of(float x)
{
    unsigned bits = __float_as_uint(x);
    unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return static_cast<unsigned short>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u
                                                                          : rounded);
}

__device__ static inline float pnb__cuda_bf16_widen(unsigned short half)
{
    return __uint_as_float(static_cast<unsigned>(half) << 16);
}

/* Of two halves that are read as one: the first, and the second. */
__device__ static inline float pnb__cuda_low(unsigned both)
{
    return __uint_as_float(both << 16);
}
__device__ static inline float pnb__cuda_high(unsigned both)
{
    return __uint_as_float(both & 0xffff0000u);
}

/* What is stored as a float or as a half. */
__device__ static inline float pnb__cuda_number(float x)
{
    return x;
}
__device__ static inline float pnb__cuda_number(unsigned short half)
{
    return pnb__cuda_bf16_widen(half);
}

/* IEEE 754's binary16, exactly. */
__device__ static inline float pnb__cuda_f16_widen(unsigned short half)
{
    int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    float sign = half >> 15 ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction == 0 ? sign * __uint_as_float(0x7f800000u) : __uint_as_float(0x7fc00000u);
    return sign * (exponent == 0 ? ldexpf(static_cast<float>(fraction), -24)
                                 : ldexpf(static_cast<float>(fraction + 1024), exponent - 25));
}

#endif
