/* Values with their places, sorted: shared by binning, rank statistics and hierarchy checks. */
#ifndef PNB_EVAL_SORTED_H
#define PNB_EVAL_SORTED_H

#include "base/base.h"
#include "base/order.h"
#include "penumbra/bootstrap.h"

/* values ascending, ties by place; free with pnb__free. NUMERIC for a value that is not finite
 * (`what` and its place are named), NOMEM. */
pnb_status pnb__sorted(pnb__valued **out, const double *values, size_t n, const char *what,
                       pnb_error *err);

/* ---- bootstrap.c ---- Quantile p of n >= 1 ascending values, linear between neighbours (type 7).
 */
double pnb__quantile(const double *sorted, size_t n, double p);
/* ARG: no row, no resamples, a level outside (0,1). */
pnb_status pnb__bootstrap_check(size_t n, const pnb_bootstrap_opts *opts, pnb_error *err);

#endif
