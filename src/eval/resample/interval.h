/* From resampled values of a figure to its interval and its p-value. */
#ifndef PNB_EVAL_RESAMPLE_INTERVAL_H
#define PNB_EVAL_RESAMPLE_INTERVAL_H

#include "base/base.h"

/* What the interval is when all resamples agree. */
typedef enum pnb__agreement {
    PNB__AGREE_POINT, /* the value itself: medians, differences */
    PNB__AGREE_SHARE, /* a mean of values in [0,1]: at 0 and 1 Wilson's with a case a cluster */
    PNB__AGREE_NONE   /* unknown: the sample says nothing about its spread */
} pnb__agreement;

typedef struct pnb__replicates {
    double value;     /* of the sample itself */
    double *resample; /* [n_resamples]; changed: NaN dropped, sorted */
    size_t n_resamples;
    const double *jackknife; /* [n_jackknife] without each group of clusters; may be NULL */
    size_t n_jackknife;
    size_t n_clusters, n_strata; /* drawn apart in each stratum; usually 1 */
    pnb__agreement agreement;
} pnb__replicates;

/* BCa interval with the small-sample correction of interval.c; both NaN with fewer than two
 * clusters or no resample that is a number. */
void pnb__interval_settle(pnb__replicates *r, double level, double *low, double *high);
/* Two-sided p of the value 0, after pnb__interval_settle; NaN where there is no interval. */
double pnb__interval_p(const pnb__replicates *r);
/* Quantile of the normal that stands for `level` with so many clusters: sqrt(G/(G-1)) t. */
double pnb__interval_reach(double level, size_t n_clusters, size_t n_strata);

#endif
