/* Log normaliser of the power spherical density (De Cao and Aziz 2020, eq. 6).
 *
 *   p(x) = C (1 + mu.x)^kappa,   alpha = (d-1)/2 + kappa,   beta = (d-1)/2
 *   log C = log Gamma(alpha+beta) - log Gamma(alpha) - (alpha+beta) log 2 - beta log pi
 *
 * The released code of AsymVLM takes the two log Gammas apart in f32, where they lose up to 0.1 for
 * large kappa; here their difference is one expression (gamma.c). */
#include <math.h>

#include "penumbra/distributions.h"

#define LOG_2 0.69314718055994530942
#define LOG_PI 1.1447298858494001741

static bool is_fine(size_t dim, double kappa)
{
    return dim >= 2 && kappa >= 0.0 && isfinite(kappa);
}

double pnb_power_spherical_log_norm(size_t dim, double kappa)
{
    if (!is_fine(dim, kappa))
        return (double)NAN;
    double beta = 0.5 * ((double)dim - 1.0), alpha = beta + kappa;
    return pnb_log_gamma_ratio(alpha, beta) - (alpha + beta) * LOG_2 - beta * LOG_PI;
}

double pnb_power_spherical_log_norm_slope(size_t dim, double kappa)
{
    if (!is_fine(dim, kappa))
        return (double)NAN;
    double beta = 0.5 * ((double)dim - 1.0), alpha = beta + kappa;
    return pnb_digamma_difference(alpha, beta) - LOG_2;
}
