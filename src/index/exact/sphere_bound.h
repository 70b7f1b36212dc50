/* Bounds on likelihoods on the sphere out of inner products. */
#ifndef PNB_INDEX_EXACT_SPHERE_BOUND_H
#define PNB_INDEX_EXACT_SPHERE_BOUND_H

#include "kernels/kernels.h"

/* A block of items against queries: value[i*ld + j] comes in as x_i . q_j, with q_j a unit vector
 * in f32, and leaves as the likelihood without the log normalisers, known to +- spread[i*ld + j].
 * kappa is NULL for a side of points. */
typedef struct pnb__sphere_args {
    bool is_power;
    size_t n_items, n_queries, ld, width;
    double weight;      /* of every kappa */
    const double *norm; /* [n_items] of x */
    const float *item_kappa, *query_kappa;
    float *value, *spread;
} pnb__sphere_args;

void pnb__sphere_bounds(const pnb_ctx *ctx, const pnb__kernels *kernels,
                        const pnb__sphere_args *args);

#endif
