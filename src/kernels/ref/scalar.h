/* Scalar functions the reference kernels share, in double. */
#ifndef PNB_KERNELS_REF_SCALAR_H
#define PNB_KERNELS_REF_SCALAR_H

#include <math.h>

#include "kernels/kernels.h"

#define SQRT_HALF 0.70710678118654752440
#define INV_SQRT_2PI 0.39894228040143267794
#define GELU_TANH_A 0.79788456080286535588 /* sqrt(2/pi) */
#define GELU_TANH_B 0.044715

static inline double sigmoid(double x)
{
    double e = exp(-fabs(x)); /* never overflows, keeps the small side exact */
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static inline double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

#endif
