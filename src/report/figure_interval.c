/* Intervals by formula, for figures of independent inputs.
 *
 * What comes with resamples (eval's bootstrap) has intervals of its own; these are for what a page
 * counts itself: shares of pictures, means over captions. */
#include "report/figure_interval.h"

#include <math.h>

#define Z95 1.959963984540054

void pnb__share_interval(double share, double n, double *low, double *high)
{
    double z2 = Z95 * Z95, middle, half;
    if (!(n > 0)) {
        *low = 0.0;
        *high = 1.0;
        return;
    }
    middle = (share + z2 / (2 * n)) / (1 + z2 / n);
    half = sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n);
    *low = fmax(middle - half, 0.0);
    *high = fmin(middle + half, 1.0);
}

double pnb__mean_half_width(const double *values, size_t n)
{
    double mean = 0.0, squares = 0.0;
    if (n < 2)
        return (double)NAN;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return Z95 * sqrt(squares / (double)(n - 1) / (double)n);
}
