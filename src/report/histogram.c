/* Where values fall: bins of one width, or of one ratio.
 *
 * The last border belongs to the last bin, so that the largest value is counted, and values beyond
 * the borders are counted in the bins at the ends. */
#include "report/histogram.h"

#include <math.h>

#include "report/chart.h"

pnb__bins pnb__bins_over(const double *values, size_t n_values, bool log, size_t n)
{
    pnb__axis range = {.log = log};
    pnb__axis_cover(&range, values, n_values);
    bool has_range = range.high > range.low && (!log || range.low > 0);
    return (pnb__bins){range.low, range.high, log, has_range ? n : 0};
}

double pnb__bin_border(const pnb__bins *b, size_t i)
{
    double share = (double)i / (double)b->n;
    return b->log ? b->low * pow(b->high / b->low, share) : b->low + share * (b->high - b->low);
}

size_t pnb__bin_of(const pnb__bins *b, double value)
{
    double share = b->log ? log(value / b->low) / log(b->high / b->low)
                          : (value - b->low) / (b->high - b->low);
    return (size_t)fmin(fmax(share * (double)b->n, 0.0), (double)(b->n - 1));
}
