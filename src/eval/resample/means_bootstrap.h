/* Means over rows with their bootstrap: what the COCO table and PMRP are made of. */
#ifndef PNB_EVAL_RESAMPLE_MEANS_BOOTSTRAP_H
#define PNB_EVAL_RESAMPLE_MEANS_BOOTSTRAP_H

#include "base/base.h"
#include "penumbra/bootstrap.h"
#include "penumbra/coco.h"
#include "penumbra/pmrp.h"

/* A column's figure is the mean of its values within each stratum, averaged over the strata that
 * have a value of it. */
typedef struct pnb__means {
    double *value;    /* [n][n_columns]; NaN: this row has none */
    int32_t *stratum; /* [n] 0 .. n_strata-1, negative: left out. NULL: all rows in one */
    int64_t *cluster; /* [n] rows of one label are drawn together, but for those of other strata;
                       * NULL: each by itself */
    size_t n, n_columns, n_strata;
    bool is_difference; /* values of one model minus those of another, else they lie in [0,1] */
    void *memory;       /* of the arrays; NULL: they are the caller's */
} pnb__means;

/* Arrays for n rows, to be filled. Free with pnb__means_reset. Errors  NOMEM */
pnb_status pnb__means_init(pnb__means *means, size_t n, size_t n_columns, size_t n_strata,
                           pnb_error *err);
void pnb__means_reset(pnb__means *means); /* what is the caller's stays */

/* Figure and interval of each column into out[0 .. n_columns), of the mean of all columns into
 * out[n_columns]; NaN where no row has a value. Clusters are drawn within their stratum, as many as
 * it has. p[n_columns + 1] receives the two-sided p of the value 0 and may be NULL. The same for
 * any number of threads. 0 resamples: values only.  Errors  ARG (no rows, level), NOMEM */
pnb_status pnb__means_bootstrap(const pnb_ctx *ctx, const pnb__means *means,
                                const pnb_bootstrap_opts *opts, pnb_interval *out, double *p,
                                pnb_error *err);

/* ---- coco.c ---- The columns R@1, R@5, R@10, R-Precision and mAP@R of the queries that have a
 * positive, in the folds of COCO 1K. Without that truth n is 0. */
enum { PNB__COCO_COLUMNS = 5 };
pnb_status pnb__coco_means(const pnb_coco_side *side, pnb_coco_kind kind, pnb__means *out,
                           pnb_error *err);
/* ---- pmrp.c ---- A column a zeta, of the queries that have a plausible item. Of `values`
 * folds and clusters may be NULL. */
pnb_status pnb__pmrp_means(const pnb_pmrp_values *values, pnb__means *out, pnb_error *err);

#endif
