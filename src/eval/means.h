/* Means over rows with their bootstrap: what the COCO table and PMRP are made of. */
#ifndef PNB_EVAL_MEANS_H
#define PNB_EVAL_MEANS_H

#include "base/base.h"
#include "penumbra/eval.h"

/* A column's figure is the mean of its values within each stratum, averaged over the strata that
 * have a value of it. */
typedef struct pnb__means {
    const double *value;    /* [n][n_columns]; NaN: this row has none */
    const int32_t *stratum; /* [n] 0 .. n_strata-1, negative: left out. NULL: all rows in one */
    const int64_t
        *cluster; /* [n] rows drawn together, within their stratum; NULL: each by itself */
    size_t n, n_columns, n_strata;
} pnb__means;

/* Figure and interval of each column into out[0 .. n_columns), of the mean of all columns into
 * out[n_columns]; NaN where no row has a value. Clusters are drawn within their stratum, as many as
 * it has. Values lie in [0,1]. The same for any number of threads.  Errors  ARG (no resamples,
 * level), NOMEM */
pnb_status pnb__means_bootstrap(const pnb_ctx *ctx, const pnb__means *means,
                                const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err);

#endif
