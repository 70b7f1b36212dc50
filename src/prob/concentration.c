/* Concentrations by what they do: the one at which samples lie at a given mean cosine, and how far
 * out a share of them lies.
 *
 * The mean cosine A(kappa) is -d/dkappa log C_d for von Mises-Fisher, inverted by bisection in log
 * kappa (A grows), and kappa / (d - 1 + kappa) for the power spherical. The cosine's density in the
 * angle, exp(kappa cos a) sin^(d-2) a, is smooth for every d >= 2 and one bump: its quantile is
 * summed by midpoints over 12 widths of the bump around its top. */
#include <math.h>

#include "penumbra/distributions.h"

enum { N_HALVINGS = 100, N_MIDPOINTS = 2048 };
#define PI 3.14159265358979323846

double pnb_vmf_mean_cosine(size_t dim, double kappa)
{
    return -pnb_vmf_log_norm_slope(dim, kappa);
}

double pnb_power_spherical_mean_cosine(size_t dim, double kappa)
{
    if (dim < 2 || !(kappa >= 0.0) || !isfinite(kappa))
        return (double)NAN;
    return kappa / ((double)dim - 1.0 + kappa);
}

double pnb_vmf_kappa_at(size_t dim, double cosine)
{
    double low = log(1e-12), high = log(1e12);
    if (dim < 2 || !(cosine > 0.0) || !(cosine < 1.0))
        return (double)NAN;
    for (int i = 0; i < N_HALVINGS; i++) {
        double middle = 0.5 * (low + high);
        if (pnb_vmf_mean_cosine(dim, exp(middle)) < cosine)
            low = middle;
        else
            high = middle;
    }
    return exp(0.5 * (low + high));
}

double pnb_power_spherical_kappa_at(size_t dim, double cosine)
{
    if (dim < 2 || !(cosine > 0.0) || !(cosine < 1.0))
        return (double)NAN;
    return ((double)dim - 1.0) * cosine / (1.0 - cosine);
}

/* log density of an angle, up to a constant. */
static double log_bump(double m, double kappa, double angle)
{
    return kappa * cos(angle) + (m > 0.0 ? m * log(sin(angle)) : 0.0);
}

double pnb_vmf_cosine_quantile(size_t dim, double kappa, double share)
{
    double m = (double)dim - 2.0;
    if (dim < 2 || !(kappa >= 0.0) || !isfinite(kappa) || !(share > 0.0) || !(share < 1.0))
        return (double)NAN;
    /* its top: kappa sin^2 a = m cos a, so cos a = 2 kappa / (m + hypot(m, 2 kappa)) */
    double top =
        kappa > 0.0 ? acos(fmin(2.0 * kappa / (m + hypot(m, 2.0 * kappa)), 1.0)) : 0.5 * PI;
    double bend = kappa * cos(top) + (m > 0.0 ? m / pow(sin(top), 2.0) : 0.0);
    double reach = 12.0 / sqrt(fmax(bend, 1e-3));
    double from = fmax(top - reach, 0.0), step = (fmin(top + reach, PI) - from) / N_MIDPOINTS;
    double peak = m > 0.0 ? log_bump(m, kappa, top) : kappa, total = 0.0, sum = 0.0;
    for (int i = 0; i < N_MIDPOINTS; i++)
        total += exp(log_bump(m, kappa, from + (i + 0.5) * step) - peak);
    for (int i = 0; i < N_MIDPOINTS; i++) {
        double weight = exp(log_bump(m, kappa, from + (i + 0.5) * step) - peak);
        if (sum + weight >= share * total)
            return cos(from + (i + (share * total - sum) / weight) * step);
        sum += weight;
    }
    return cos(from + N_MIDPOINTS * step);
}
