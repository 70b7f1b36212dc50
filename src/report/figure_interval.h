/* 95% intervals that a page draws beside a mean or a share. */
#ifndef PNB_REPORT_FIGURE_INTERVAL_H
#define PNB_REPORT_FIGURE_INTERVAL_H

#include <stddef.h>

/* Wilson's score interval of a share of n independent trials (Wilson 1927); all of [0, 1] for
 * n = 0. */
void pnb__share_interval(double share, double n, double *low, double *high);

/* Half the width of the normal interval of a mean of n values: 1.96 sd / sqrt(n); NaN below two. */
double pnb__mean_half_width(const double *values, size_t n);

#endif
