/* Steps of projected gradient descent in the box |x_i - origin_i| <= eps (Madry et al. 2018), and a
 * control of the same size.
 *
 * "Descent" is the literature's word; the loss is raised. Changes are computed in f64 and rounded
 * once, so that f32 rounding never leaves the box by more than half a step of the last place. The
 * control keeps |x_i - origin_i| and draws the sign: a random box corner would be larger than an
 * attack that has not reached its walls. Gradients are the caller's. */
#include "penumbra/attack.h"

#include <math.h>

#include "base/base.h"

enum { STREAM_START = 0xa77, STREAM_NOISE = 0xa78 };

pnb_attack_opts pnb_attack_opts_default(void)
{
    return (pnb_attack_opts){.eps = 8.0 / 255.0, .step = 2.0 / 255.0, .low = 0.0, .high = 1.0};
}

pnb_status pnb_attack_opts_check(const pnb_attack_opts *o, pnb_error *err)
{
    bool is_finite = isfinite(o->eps) && isfinite(o->step) && isfinite(o->low) && isfinite(o->high);
    if (!is_finite || !(o->eps > 0.0) || !(o->step > 0.0) || !(o->low < o->high))
        return pnb__fail(err, PNB_ARG,
                         "an attack of eps %g and step %g in [%g, %g]; eps and step are above 0",
                         o->eps, o->step, o->low, o->high);
    return PNB_OK;
}

static float into_range(double value, const pnb_attack_opts *o)
{
    return (float)fmin(fmax(value, o->low), o->high);
}

static void draw(pnb__rng *rng, const pnb_attack_opts *o, uint64_t row, int what)
{
    pnb__rng_init(rng, o->seed, pnb__hash_bytes(&row, sizeof row, (uint64_t)what));
}

void pnb_attack_start(const float *origin, size_t n, const pnb_attack_opts *opts, uint64_t row,
                      float *x)
{
    pnb__rng rng;
    draw(&rng, opts, row, STREAM_START);
    for (size_t i = 0; i < n; i++) {
        double u = 2.0 * pnb__rng_uniform(&rng) - 1.0;
        x[i] = into_range((double)origin[i] + opts->eps * u, opts);
    }
}

pnb_status pnb_attack_step(const float *origin, const float *gradient, size_t n,
                           const pnb_attack_opts *opts, float *x, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        double sign = (gradient[i] > 0.0f) - (gradient[i] < 0.0f);
        double change = (double)x[i] + opts->step * sign - (double)origin[i];
        if (!isfinite(gradient[i]))
            return pnb__fail(err, PNB_NUMERIC, "the gradient of value %zu is %g", i,
                             (double)gradient[i]);
        change = fmin(fmax(change, -opts->eps), opts->eps);
        x[i] = into_range((double)origin[i] + change, opts);
    }
    return PNB_OK;
}

void pnb_attack_noise(const float *origin, const float *x, size_t n, const pnb_attack_opts *opts,
                      uint64_t row, float *out)
{
    pnb__rng rng;
    draw(&rng, opts, row, STREAM_NOISE);
    for (size_t i = 0; i < n; i++) {
        double sign = pnb__rng_uniform(&rng) < 0.5 ? -1.0 : 1.0;
        out[i] = into_range((double)origin[i] + sign * ((double)x[i] - (double)origin[i]), opts);
    }
}
