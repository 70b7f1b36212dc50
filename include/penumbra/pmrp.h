/* PMRP: R-Precision when every item whose labels are nearly the query's counts as a match.
 *
 * Captions of COCO describe many pictures that the annotated pairs do not name. With a label vector
 * for each row (the categories in a picture), an item is plausible for a query when the two vectors
 * differ in at most zeta places:
 *   P_zeta(q) = { items x : Hamming(label q, label x) <= zeta },  R = |P_zeta(q)|
 *   R-Precision_zeta = mean over q of |P_zeta(q) and the first R| / R;  PMRP = mean over zeta
 * Queries without a plausible item are left out for that zeta. Shares are fractions in [0,1]; PCME
 * prints them x 100. Label vectors of a file: pnb_label_matrix_load in truth.h. A NULL ctx means
 * one thread; no result depends on their number. docs/numerics.md#retrieval
 *
 * Source  PCME section 4.1.1 and its evaluation code; PCME++ for the figure on folds */
#ifndef PENUMBRA_PMRP_H
#define PENUMBRA_PMRP_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/bootstrap.h"
#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/retrieval.h"
#include "penumbra/search.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PNB_MAX_ZETA 7 /* largest number of places; the field takes 2 */

/* Label vectors of both sides, one byte a label, 0 or 1. Borrowed during the call. */
typedef struct pnb_label_vectors {
    size_t n_queries, n_items, n_labels; /* none may be 0 */
    const uint8_t *query;                /* [n_queries][n_labels] */
    const uint8_t *item;                 /* [n_items][n_labels] */
    const int32_t *query_fold; /* [n_queries] 0 .. PNB_COCO_FOLDS-1 (coco.h), or negative: in no
                                * fold. A query sees the items of its own fold only, and each figure
                                * is its mean over the folds */
    const int32_t *item_fold;  /* [n_items]; negative: in no fold. Both NULL: everything */
} pnb_label_vectors;

/* By zeta = 0 .. max_zeta; what is beyond is 0. Of folds every figure is the mean over the folds
 * that have one. */
typedef struct pnb_pmrp {
    int max_zeta;                         /* as asked for */
    double r_precision[PNB_MAX_ZETA + 1]; /* means over the queries that have a plausible item */
    double recall_1[PNB_MAX_ZETA + 1];    /* share of them whose first item is plausible */
    size_t n_queries[PNB_MAX_ZETA + 1];   /* how many they are; more for a larger zeta */
    double pmrp;                          /* mean of r_precision over zeta */
    double pm_r1;                         /* mean of recall_1 over zeta */
} pnb_pmrp;

/* From rows of scores, as pnb_ranks_from_rows takes them.
 *   per_query  [n_queries][max_zeta + 1] receives R-Precision by zeta, NaN without a plausible
 *              item; may be NULL
 * Memory  O(labels / 8 + n_items * threads): plausible pairs, millions for COCO, are found by
 *         comparing bits and never listed
 * Errors  ARG (max_zeta outside 0..PNB_MAX_ZETA, a size of 0, a label above 1, a zeta for which
 *         nothing is plausible, folds of one side only or beyond PNB_COCO_FOLDS), NUMERIC (a score
 *         is NaN: names query and item), NOMEM */
pnb_status pnb_pmrp_from_rows(const pnb_ctx *ctx, pnb_score_row_fn fn, void *user,
                              const pnb_label_vectors *labels, int max_zeta, pnb_pmrp *out,
                              double *per_query, pnb_error *err);

/* Two sets and the labels of their rows. */
typedef struct pnb_pmrp_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_search_opts *opts;     /* measure and direction; k is not read. NULL: the defaults */
    const pnb_label_vectors *labels; /* of as many rows as the two sets have */
    int max_zeta;                    /* PCME: 2 */
} pnb_pmrp_job;

/* The same between two sets, every pair scored in f64 by a measure; a picture's captions have the
 * label vector of their picture.
 * Errors  as pnb_pmrp_from_rows; SHAPE (labels and sets differ in size, widths differ), ARG (a
 *         measure that does not fit the families) */
pnb_status pnb_pmrp_compute(const pnb_ctx *ctx, const pnb_pmrp_job *job, pnb_pmrp *out,
                            double *per_query, pnb_error *err);

/* What intervals are made from: R-Precision by query, and what was sampled together. Borrowed
 * during the call. */
typedef struct pnb_pmrp_values {
    const double *per_query; /* [n_queries][max_zeta + 1] as computed */
    const int32_t *fold;     /* [n_queries] of the labels; NULL: none */
    const int64_t *cluster;  /* [n_queries] drawn together, within a fold; NULL: each by itself */
    size_t n_queries;        /* rows of the three arrays */
    int max_zeta;            /* as it was computed with */
} pnb_pmrp_values;

/* NaN with 0 resamples or fewer than two clusters. */
typedef struct pnb_pmrp_intervals {
    pnb_interval r_precision[PNB_MAX_ZETA + 1]; /* to max_zeta; those beyond are not written */
    pnb_interval pmrp;
} pnb_pmrp_intervals;

/* Intervals over the queries that have a plausible item for the largest zeta; each zeta is averaged
 * over those drawn that have one for it, in folds within each. opts NULL: the defaults; its
 * clusters are not read. 0 resamples: values only. The same for any number of threads.
 * Errors  ARG (max_zeta, no such query, level), NOMEM */
pnb_status pnb_pmrp_bootstrap(const pnb_ctx *ctx, const pnb_pmrp_values *values,
                              const pnb_bootstrap_opts *opts, pnb_pmrp_intervals *out,
                              pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
