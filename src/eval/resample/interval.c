/* Bias-corrected and accelerated intervals (BCa), widened for few clusters.
 *
 *   low, high = quantiles Phi(z0 + (z0 -+ z) / (1 - a (z0 -+ z))) of the resampled values
 *   z0 = Phi^-1(share of resamples below the figure, equal ones half)
 *   a  = sum d^3 / (6 (sum d^2)^(3/2)), d = mean of the jackknife values - each of them
 *   z  = sqrt(G/(G-1)) t_{G-1}: a resample of G clusters varies too little by (G-1)/G, and its
 *        spread is itself an estimate
 * Efron 1987 (z0 and a); Efron and Tibshirani 1993, 14.3 (jackknife); Hesterberg 2015, section 3.4
 * (z). a from G/m groups of m clusters estimates the same: both sums grow with independent parts.
 *
 * Where all resamples agree nothing can be said of the spread from them. A share of 0 or 1 then
 * gets Wilson's interval with one case a cluster (Wilson 1927), for nothing says that rows of one
 * cluster are independent. p inverts the interval without z0 and a: under no difference both
 * vanish. */
#include "eval/resample/interval.h"

#include <math.h>
#include <stdlib.h>

#include "eval/resample/student.h"
#include "eval/sorted.h"

double pnb__interval_reach(double level, size_t n_clusters, size_t n_strata)
{
    double df = (double)n_clusters - (double)n_strata;
    return sqrt((double)n_clusters / df) * pnb__student_quantile(0.5 * (1.0 + level), df);
}

static size_t drop_nan(double *values, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    return kept;
}

/* z0. Values that differ by rounding alone are equal: shares of few queries tie often. */
static double median_bias(const pnb__replicates *r)
{
    double below = 0.0, n = (double)r->n_resamples;
    double same = 1e-9 * (r->resample[r->n_resamples - 1] - r->resample[0]);
    for (size_t i = 0; i < r->n_resamples; i++) {
        double d = r->resample[i] - r->value;
        below += d < -same ? 1.0 : d <= same ? 0.5 : 0.0;
    }
    return pnb__normal_quantile(fmin(fmax(below, 0.5), n - 0.5) / n);
}

static double acceleration(const pnb__replicates *r)
{
    double mean = 0.0, squares = 0.0, cubes = 0.0;
    for (size_t i = 0; i < r->n_jackknife; i++)
        mean += r->jackknife[i] / (double)r->n_jackknife;
    for (size_t i = 0; i < r->n_jackknife; i++) {
        double d = mean - r->jackknife[i];
        squares += d * d;
        cubes += d * d * d;
    }
    double a = cubes / (6.0 * squares * sqrt(squares));
    return isfinite(a) ? a : 0.0;
}

static double limit(const pnb__replicates *r, double z0, double a, double z)
{
    double x = z0 + z, scale = 1.0 - a * x;
    /* beyond the pole of the correction the outermost value is all there is */
    double p = scale > 0.0 ? pnb__normal_cdf(z0 + x / scale) : z < 0.0 ? 0.0 : 1.0;
    return pnb__quantile(r->resample, r->n_resamples, p);
}

/* Wilson's interval of a share of 0 or 1 among n cases. */
static void wilson(double share, double n, double z, double *low, double *high)
{
    double reach = z * z / (n + z * z);
    *low = share > 0.5 ? 1.0 - reach : 0.0;
    *high = share > 0.5 ? 1.0 : reach;
}

void pnb__interval_settle(pnb__replicates *r, double level, double *low, double *high)
{
    *low = *high = (double)NAN;
    r->n_resamples = drop_nan(r->resample, r->n_resamples);
    if (isnan(r->value) || r->n_resamples == 0 || r->n_clusters <= r->n_strata)
        return;
    qsort(r->resample, r->n_resamples, sizeof *r->resample, pnb__compare_doubles);
    double z = pnb__interval_reach(level, r->n_clusters, r->n_strata);
    if (r->resample[0] == r->resample[r->n_resamples - 1]) {
        if (r->agreement == PNB__AGREE_SHARE && (r->value == 0.0 || r->value == 1.0))
            wilson(r->value, (double)r->n_clusters, z, low, high);
        else if (r->agreement != PNB__AGREE_NONE)
            *low = *high = r->resample[0];
        return;
    }
    double z0 = median_bias(r), a = acceleration(r);
    *low = limit(r, z0, a, -z);
    *high = limit(r, z0, a, z);
}

double pnb__interval_p(const pnb__replicates *r)
{
    size_t below = 0, above = 0;
    if (isnan(r->value) || r->n_resamples == 0 || r->n_clusters <= r->n_strata)
        return (double)NAN;
    for (size_t i = 0; i < r->n_resamples; i++) {
        below += r->resample[i] <= 0.0;
        above += r->resample[i] >= 0.0;
    }
    double share = (1.0 + (double)PNB_MIN(below, above)) / (double)(r->n_resamples + 1);
    if (share >= 0.5)
        return 1.0;
    double df = (double)r->n_clusters - (double)r->n_strata;
    double t = pnb__normal_quantile(share) * sqrt(df / (double)r->n_clusters);
    return 2.0 * pnb__student_cdf(t, df);
}
