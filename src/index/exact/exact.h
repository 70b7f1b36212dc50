/* What a gallery and a set of queries know about their rows, and the f64 scores of pairs. */
#ifndef PNB_INDEX_EXACT_EXACT_H
#define PNB_INDEX_EXACT_EXACT_H

#include "kernels/kernels.h"
#include "penumbra/search.h"
#include "prob/measure.h"

#define PNB__EXACT_QUERIES 128 /* most queries of one f64 block */
#define PNB__EXACT_ITEMS 512   /* most items of one f64 block */

/* Per-row numbers of one side; both arrays NULL for measures that are computed in f64 only. */
typedef struct pnb__exact_side {
    pnb_gaussians rows;
    double *term; /* [n] of the score that is the row's own; see form.c */
    double *norm; /* [n] length of the row as it enters the product; inclusion: see form.c */
    double most_term, most_norm, least_norm; /* largest |term| and norm, least norm that is not 0 */
    double most_kappa;                       /* 0 for points */
    double *samples; /* [n][J][D], drawn once where the measure takes samples and they are not too
                        much memory; else NULL */
    float *outline; /* [n][D+1] of samples that are kept: their mean, then 0 of queries and of items
                       the root of their mean squared distance to it; else NULL */
    size_t bad;     /* first row that is not finite, n if all are */
} pnb__exact_side;

typedef enum pnb__exact_way {
    PNB__EXACT_F64,       /* every pair in f64 */
    PNB__EXACT_PRODUCT,   /* f32 inner products with an error bound, f64 where that matters */
    PNB__EXACT_SPHERE,    /* the same with the cosine between concentration and log normaliser */
    PNB__EXACT_INCLUSION, /* the same with the sums of the inclusion test */
    PNB__EXACT_SAMPLES    /* the same with the inner products of samples */
} pnb__exact_way;

/* ---- form.c ---- how a measure's scores are bounded: one per word of the column `bound` of
 * prob/measures.def */
typedef struct pnb__scan_form {
    pnb__exact_way way; /* where the rows' size allows; F64 otherwise */
    /* Row i's term and norm; NULL for F64 */
    void (*fill_row)(pnb__exact_side *side, pnb_measure measure, size_t i);
    bool (*fits)(const pnb_measure_opts *opts); /* whether the way is open; NULL: it is */
    double most_term;                           /* of both sides, so that the way is open */
    bool is_unit;                               /* rows enter the product as unit vectors */
    bool has_std;  /* rows are followed by their standard deviations, the product counts twice */
    bool is_power; /* sphere: log(1 + cosine) in place of the cosine */
    bool has_gain; /* inclusion: distances are multiplied by e^eps */
    double log_weight; /* inclusion: of the sums of log-variances */
} pnb__scan_form;
const pnb__scan_form *pnb__scan_form_of(pnb_measure measure);

typedef struct pnb__exact {
    pnb_measure measure;
    const pnb__scan_form *form;
    pnb_measure_opts opts;
    bool reverse; /* the item is Gaussian 1; false for symmetric measures */
    pnb__exact_side gallery;
} pnb__exact;

/* Any measure that fits the family of the rows.  Errors  SHAPE (no rows), ARG */
pnb_status pnb__exact_check(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                            pnb_error *err);
/* Checks the gallery and fills its row terms. Free with pnb__exact_reset. */
pnb_status pnb__exact_init(pnb__exact *scan, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                           const pnb_search_opts *opts, pnb_error *err);
void pnb__exact_reset(pnb__exact *scan);

/* One set of queries against a scan. */
typedef struct pnb__exact_run {
    const pnb__exact *scan;
    pnb__exact_side queries;
    pnb__exact_way way;
    bool bounds_by_halves; /* where that gains: set after pnb__exact_run_init */
    bool bounds_by_bytes;  /* the same of samples, for those who only look above a limit */
    double weight;         /* sphere: 1/2 where both sides have concentrations, else 1 */
    pnb_ctx inner;         /* one thread: the blocks are the parallel unit */
    pnb__kernels kernels;
} pnb__exact_run;

/* Errors  SHAPE, ARG, NOMEM, NUMERIC: names the first query and item with a score that is not
 * finite (for measures without row terms that is found while scoring) */
pnb_status pnb__exact_run_init(pnb__exact_run *run, const pnb__exact *scan, const pnb_ctx *ctx,
                               const pnb_gaussians *queries, pnb_error *err);
void pnb__exact_run_reset(pnb__exact_run *run);

/* 1/norm; 0 for a row of zeros, whose cosine with everything is 0. */
double pnb__exact_scale(double norm);

/* Scratch of one thread for scores in f64. */
typedef struct pnb__exact_work {
    pnb__tile query, item;
    size_t at_query; /* the one row `query` holds, SIZE_MAX for none */
} pnb__exact_work;

pnb_status pnb__exact_work_init(pnb__exact_work *work, const pnb__exact_run *run, pnb_error *err);
void pnb__exact_work_reset(pnb__exact_work *work);

typedef struct pnb__exact_block {
    size_t query, n_queries; /* n_queries <= PNB__EXACT_QUERIES */
    size_t item, n_items;    /* n_items <= PNB__EXACT_ITEMS */
    double *score;           /* score[i*ld + j] */
    size_t ld;
} pnb__exact_block;

/* Fills one block of scores in f64, larger is nearer: the bits of pnb__exact_pair.
 * NUMERIC names the first pair that is not finite. */
pnb_status pnb__exact_score(const pnb__exact_run *run, pnb__exact_work *work,
                            const pnb__exact_block *block, pnb_error *err);

/* The score of one pair in f64: a function of the two rows alone. */
double pnb__exact_pair(const pnb__exact_run *run, pnb__exact_work *work, size_t query, size_t item);

#endif
