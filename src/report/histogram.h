/* Bins of a histogram: of one width, or of one ratio on a logarithmic axis. */
#ifndef PNB_REPORT_HISTOGRAM_H
#define PNB_REPORT_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pnb__bins {
    double low, high;
    bool log;
    size_t n; /* 0: there are no two values to tell apart */
} pnb__bins;

/* From the smallest to the largest of the finite values, with `log` of those above 0. */
pnb__bins pnb__bins_over(const double *values, size_t n_values, bool log, size_t n);
double pnb__bin_border(const pnb__bins *bins, size_t i); /* 0 .. n */
size_t pnb__bin_of(const pnb__bins *bins, double value); /* the nearest for values beyond */

#endif
