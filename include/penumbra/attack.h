/* Projected gradient descent on inputs: the smallest change that does the most harm, and noise of
 * the same size beside it.
 *
 * Who has a gradient calls these in turn; nothing here knows what is attacked:
 *
 *     pnb_attack_start(origin, n, &opts, row, x);
 *     for (k = 0; k < steps; k++) {
 *         ... gradient of the loss at x ...
 *         pnb_attack_step(origin, gradient, n, &opts, x);
 *     }
 *
 * An origin is one input (a picture: its pixels in [0,1]), x its attacked copy, row its number.
 * docs/numerics.md#attack. */
#ifndef PENUMBRA_ATTACK_H
#define PENUMBRA_ATTACK_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_attack_opts {
    double eps;       /* no value moves further than this from its origin. 8/255 */
    double step;      /* of one step. 2/255 */
    double low, high; /* values stay in [low, high], where the origin lies. 0, 1 */
    uint64_t seed;    /* random numbers are f(seed, row). 0 */
} pnb_attack_opts;
pnb_attack_opts pnb_attack_opts_default(void); /* the values that stand beside the fields */

/* Errors  ARG (eps or step not above 0, low not below high, a number that is not finite) */
pnb_status pnb_attack_opts_check(const pnb_attack_opts *opts, pnb_error *err);

/* A random point of the box around the origin: x_i = clip(origin_i + eps u_i), u uniform in
 * [-1, 1).
 * Shape   origin, x (n), the caller's
 * Source  Madry et al. 2018, section 2.1 and 4 (random start) */
void pnb_attack_start(const float *origin, size_t n, const pnb_attack_opts *opts, uint64_t row,
                      float *x);

/* One step up the loss and back into the box:
 *   x_i = clip(origin_i + max(-eps, min(eps, x_i + step sgn(gradient_i) - origin_i)))
 * A gradient of 0 moves nothing.
 * Shape   origin, gradient, x (n); x is changed
 * Errors  NUMERIC (a gradient is not finite: names its place; x is as it was up to there)
 * Source  Madry et al. 2018, section 2.1 */
pnb_status pnb_attack_step(const float *origin, const float *gradient, size_t n,
                           const pnb_attack_opts *opts, float *x, pnb_error *err);

/* Noise of the attack's size: every change of x with a sign drawn at random, so that all norms are
 * those of the attack but for what [low, high] cuts off.
 * Shape   origin, x, out (n) */
void pnb_attack_noise(const float *origin, const float *x, size_t n, const pnb_attack_opts *opts,
                      uint64_t row, float *out);

#ifdef __cplusplus
}
#endif
#endif
