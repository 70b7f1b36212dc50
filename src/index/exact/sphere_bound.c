/* Bounds on likelihoods on the sphere out of inner products.
 *
 *   vmf, vmf_exact    g c           g = w (kappa_q + kappa_n), c the cosine of the means
 *   power_spherical   g log(1 + c)  monotone in c
 * The cosine of f32 rows is known to e = 1.01 (K + 36) u (bound.c), so g c to g e. The logarithm of
 * x = 1 + c moves by at most e/(x - e) <= 4e/(3x) where x > 4e; nearer to the antipode it lies
 * between log 2^-53, where the exact score stops (prob/sphere.c), and log 5e. Some units of
 * rounding of what is stored come on top. Log normalisers are row terms and not here. */
#include "index/exact/sphere_bound.h"

#include "base/base.h"
#include "index/exact/exact.h"

#define UNIT 5.9604644775390625e-08 /* 2^-24 */
#define RUN 64                      /* queries looked at together */
#define ANTIPODE 40.0f              /* log 5e - log 2^-53 is less */

static void bound_vmf(const float *gain, float inverse, float error, size_t n, float *value,
                      float *spread)
{
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        value[j] = gain[j] * (value[j] * inverse);
        spread[j] = gain[j] * error;
    }
}

static void bound_power(const pnb_ctx *ctx, const pnb__kernels *kernels, const float *gain,
                        float inverse, float error, size_t n, float *value, float *spread)
{
    float x[RUN], log_x[RUN], least = 4.0f * error;
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        float one_plus = 1.0f + value[j] * inverse;
        x[j] = one_plus > least ? one_plus : least;
    }
    kernels->unary(ctx, PNB__LOG, n, 0.0, 0.0, x, log_x);
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        float bound = x[j] > least ? 1.4f * error / x[j] : ANTIPODE;
        value[j] = gain[j] * log_x[j];
        spread[j] = gain[j] * (bound + (float)(64.0 * UNIT));
    }
}

void pnb__sphere_bounds(const pnb_ctx *ctx, const pnb__kernels *kernels,
                        const pnb__sphere_args *args)
{
    float gain[RUN], weight = (float)args->weight;
    float error = (float)(1.01 * ((double)args->width + 36.0) * UNIT);
    for (size_t begin = 0; begin < args->n_queries; begin += RUN) {
        size_t n = PNB_MIN((size_t)RUN, args->n_queries - begin);
        for (size_t i = 0; i < args->n_items; i++) {
            float own = args->item_kappa == NULL ? 0.0f : weight * args->item_kappa[i];
            float inverse = (float)pnb__exact_scale(args->norm[i]);
            float *value = args->value + i * args->ld + begin;
            float *spread = args->spread + i * args->ld + begin;
            for (size_t j = 0; j < n; j++)
                gain[j] = own + (args->query_kappa == NULL ? 0.0f
                                                           : weight * args->query_kappa[begin + j]);
            if (args->is_power)
                bound_power(ctx, kernels, gain, inverse, error, n, value, spread);
            else
                bound_vmf(gain, inverse, error + (float)(16.0 * UNIT), n, value, spread);
        }
    }
}
