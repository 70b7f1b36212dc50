/* bfloat16, the upper half of a float: to and from floats, and one step of a sum as processors take
 * it, which the reference and the emulated tile unit are made of. */
#ifndef PNB_KERNELS_BF16_H
#define PNB_KERNELS_BF16_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* To nearest, ties to even; beyond the largest it is infinite, NaN stays NaN. */
static inline uint16_t pnb__bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

static inline float pnb__bf16_widen(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* IEEE 754's binary16, exactly. */
static inline float pnb__f16_widen(uint16_t half)
{
    int exponent = half >> 10 & 31;
    float fraction = (float)(half & 0x3ff), sign = half >> 15 ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction == 0 ? sign * INFINITY : NAN;
    return sign * (exponent == 0 ? ldexpf(fraction, -24) : ldexpf(fraction + 1024, exponent - 25));
}

/* A number below the normal range as 0 of its sign. */
static inline float pnb__flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

/* s + a b with one rounding, to nearest; numbers below the normal range are 0, before and after.
 * Whether a result is below is asked of its value rounded as if exponents had no end: FLT_MIN may
 * have come of rounding to the coarser steps there. */
static inline float pnb__bf16_fma(uint16_t a, uint16_t b, float s)
{
    float x = pnb__flushed(pnb__bf16_widen(a)), y = pnb__flushed(pnb__bf16_widen(b));
    float sum = fmaf(x, y, pnb__flushed(s));
    if (fabsf(sum) == FLT_MIN) {
        float low = fabsf(x) < fabsf(y) ? x : y, high = fabsf(x) < fabsf(y) ? y : x;
        float scaled = fmaf(low * 0x1p40f, high, pnb__flushed(s) * 0x1p40f); /* nothing is lost */
        if (fabsf(scaled) < FLT_MIN * 0x1p40f)
            return copysignf(0.0f, sum);
    }
    return pnb__flushed(sum);
}

#endif
