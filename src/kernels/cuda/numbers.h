/* Functions of one number: activations in floats, bfloat16 to and from floats. */
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

/* The activations a product may end in; others are the unary slot's. */
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

/* Of a result in bfloat16. GELU with erf by a rational form (Abramowitz and Stegun 1964, 7.1.26),
 * off by 1.5e-7: more than a half's rounding only where GELU is above -1e-4. It has no branch. */
__device__ static inline float pnb__cuda_gelu_half(float x)
{
    float z = fabsf(x) * 0.70710678118654752f, t = __fdividef(1, 1 + 0.3275911f * z);
    float tail =
        t * (0.254829592f +
             t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    tail *= __expf(-z * z); /* 1 - erf z */
    return 0.5f * x * (x > 0 ? 2 - tail : tail);
}

__device__ static inline float pnb__cuda_activation_half(pnb__unary op, float x)
{
    return op == PNB__GELU ? pnb__cuda_gelu_half(x) : pnb__cuda_activation(op, x);
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
