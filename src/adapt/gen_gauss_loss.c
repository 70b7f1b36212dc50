/* Negative log likelihood of generalised Gaussians, up to log 2:
 *   (|m - z| / alpha)^beta + log alpha - log beta + log Gamma(1/beta)
 * The released code multiplies by beta where the density has it as the exponent; both are here, the
 * released one being what its published figures were trained with. A power is taken through its
 * logarithm, |m - z| / alpha from 1e-30 on, where the clamp has long closed. */
#include "adapt/gen_gauss_loss.h"

#include <math.h>

#include "penumbra/distributions.h"

#define EPS 1e-4
#define LEAST_RESIDUAL 1e-4
#define MOST_RESIDUAL 1e3

static double clamp_value(double unused, double x)
{
    (void)unused;
    return fmin(fmax(x, LEAST_RESIDUAL), MOST_RESIDUAL);
}

/* 1 at the borders too, as torch.clamp has it */
static double clamp_slope(double unused, double x)
{
    (void)unused;
    return x >= LEAST_RESIDUAL && x <= MOST_RESIDUAL;
}

static double log_gamma_value(double unused, double x)
{
    int sign;
    (void)unused;
    return lgamma_r(x, &sign);
}

static double log_gamma_slope(double unused, double x)
{
    (void)unused;
    return pnb_digamma(x);
}

static double log_value(double least, double x)
{
    return log(fmax(x, least));
}

static double log_slope(double least, double x)
{
    return x > least ? 1 / x : 0;
}

static pnb__tensor *flat_mean(pnb__tensor *x)
{
    return pnb__mean(pnb__reshape(x, 1, (size_t[]){pnb__n(x)}), 0);
}

static pnb__tensor *distance(pnb__gen_gauss p, pnb__tensor *target)
{
    return pnb__apply(PNB__ABS, pnb__sub(p.mean, target));
}

pnb__tensor *pnb__gen_gauss_nll(pnb__gen_gauss_form form, pnb__gen_gauss p, pnb__tensor *target)
{
    static const pnb__function clamp = {clamp_value, clamp_slope, 0};
    static const pnb__function log_gamma = {log_gamma_value, log_gamma_slope, 0};
    static const pnb__function careful_log = {log_value, log_slope, 1e-30};
    pnb__tensor *inv_alpha = pnb__affine(p.inv_alpha, 1, EPS), *beta = pnb__affine(p.beta, 1, EPS);
    pnb__tensor *scaled = pnb__mul(distance(p, target), inv_alpha);
    pnb__tensor *residual;
    if (form == PNB__GEN_GAUSS_TRUE)
        residual = pnb__apply(PNB__EXP, pnb__mul(pnb__apply_function(scaled, &careful_log), beta));
    else
        residual = pnb__mul(scaled, beta);
    residual = pnb__apply_function(residual, &clamp);
    pnb__tensor *logs = pnb__add(pnb__apply(PNB__LOG, inv_alpha), pnb__apply(PNB__LOG, beta));
    pnb__tensor *norm = pnb__apply_function(pnb__apply(PNB__RECIP, beta), &log_gamma);
    return flat_mean(pnb__add(pnb__sub(residual, logs), norm));
}

pnb__tensor *pnb__gen_gauss_loss(pnb__gen_gauss_form form, pnb__gen_gauss p, pnb__tensor *target,
                                 double t1, double t2)
{
    pnb__tensor *l1 = flat_mean(distance(p, target));
    return pnb__add(pnb__affine(l1, t1, 0),
                    pnb__affine(pnb__gen_gauss_nll(form, p, target), t2, 0));
}
