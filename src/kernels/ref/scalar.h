/* Functions of one number, in double: what the unary slots compute, and their derivatives. */
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

static inline double unary_value(pnb__unary op, double x, double alpha, double beta)
{
    switch (op) {
    case PNB__EXP:
        return exp(x);
    case PNB__LOG:
        return log(x);
    case PNB__SQRT:
        return sqrt(x);
    case PNB__SQUARE:
        return x * x;
    case PNB__ABS:
        return fabs(x);
    case PNB__RECIP:
        return 1 / x;
    case PNB__SIN:
        return sin(x);
    case PNB__COS:
        return cos(x);
    case PNB__TANH:
        return tanh(x);
    case PNB__SIGMOID:
        return sigmoid(x);
    case PNB__LOG_SIGMOID:
        return -softplus(-x);
    case PNB__SOFTPLUS:
        return softplus(x);
    case PNB__RELU:
        return x > 0 ? x : x != x ? x : 0;
    case PNB__GELU:
        return 0.5 * x * erfc(-x * SQRT_HALF);
    case PNB__GELU_TANH:
        return x * sigmoid(2 * GELU_TANH_A * (x + GELU_TANH_B * x * x * x));
    case PNB__QUICK_GELU:
        return x * sigmoid(1.702 * x);
    case PNB__AFFINE:
        return alpha * x + beta;
    case PNB__N_UNARY:
    case PNB__IDENTITY:
        break;
    }
    return x;
}

/* x * sigmoid(u(x)): s + x * s * (1 - s) * u'(x) */
static inline double gated_slope(double x, double u, double du)
{
    double s = sigmoid(u);
    return s + x * s * sigmoid(-u) * du;
}

static inline double unary_slope(pnb__unary op, double x, double y, double alpha)
{
    switch (op) {
    case PNB__EXP:
        return y;
    case PNB__LOG:
        return 1 / x;
    case PNB__SQRT:
        return 0.5 / y;
    case PNB__SQUARE:
        return 2 * x;
    case PNB__ABS:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case PNB__RECIP:
        return -y * y;
    case PNB__SIN:
        return cos(x);
    case PNB__COS:
        return -sin(x);
    case PNB__TANH:
        return (1 - y) * (1 + y);
    case PNB__SIGMOID:
        return y * (1 - y);
    case PNB__LOG_SIGMOID:
        return sigmoid(-x);
    case PNB__SOFTPLUS:
        return sigmoid(x);
    case PNB__RELU:
        return x > 0;
    case PNB__GELU:
        return 0.5 * erfc(-x * SQRT_HALF) + x * INV_SQRT_2PI * exp(-0.5 * x * x);
    case PNB__GELU_TANH:
        return gated_slope(x, 2 * GELU_TANH_A * (x + GELU_TANH_B * x * x * x),
                           2 * GELU_TANH_A * (1 + 3 * GELU_TANH_B * x * x));
    case PNB__QUICK_GELU:
        return gated_slope(x, 1.702 * x, 1.702);
    case PNB__AFFINE:
        return alpha;
    case PNB__N_UNARY:
    case PNB__IDENTITY:
        break;
    }
    return 1;
}

#endif
