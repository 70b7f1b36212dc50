/* Blocks of scores between queries and a gallery: what top-k search and ranking are made of. */
#ifndef PNB_INDEX_SCAN_H
#define PNB_INDEX_SCAN_H

#include "kernels/kernels.h"
#include "penumbra/search.h"
#include "prob/measure.h"

#define PNB__SCAN_QUERIES 128 /* most queries of one block */
#define PNB__SCAN_ITEMS 512   /* most items of one block; chunks begin at multiples of it */

/* Per-row numbers of one side for the matrix-product measures. */
typedef struct pnb__scan_side {
    pnb_gaussians rows;
    double *term;  /* [n] added to the product */
    double *scale; /* [n] multiplied with it; mean only, otherwise NULL */
} pnb__scan_side;

typedef struct pnb__scan {
    pnb_measure measure;
    pnb_measure_opts opts;
    bool reverse; /* the item is Gaussian 1; false for symmetric measures */
    pnb__scan_side gallery;
} pnb__scan;

/* Checks the gallery and fills its row terms. Free with pnb__scan_reset. */
pnb_status pnb__scan_init(pnb__scan *scan, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                          const pnb_search_opts *opts, pnb_error *err);
void pnb__scan_reset(pnb__scan *scan);

/* One set of queries against a scan. */
typedef struct pnb__scan_run {
    const pnb__scan *scan;
    pnb__scan_side queries;
    bool by_product; /* scores come from a matrix product in f32, else fused in f64 */
    pnb_ctx inner;   /* one thread: the blocks are the parallel unit */
    pnb__kernels kernels;
} pnb__scan_run;

pnb_status pnb__scan_run_init(pnb__scan_run *run, const pnb__scan *scan, const pnb_ctx *ctx,
                              const pnb_gaussians *queries, pnb_error *err);
void pnb__scan_run_reset(pnb__scan_run *run);

/* Scratch of one thread. */
typedef struct pnb__scan_work {
    float *product, *std_query, *std_item;
    pnb__tile query, item;
} pnb__scan_work;

pnb_status pnb__scan_work_init(pnb__scan_work *work, const pnb__scan_run *run, pnb_error *err);
void pnb__scan_work_reset(pnb__scan_work *work);

typedef struct pnb__scan_block {
    size_t query, n_queries; /* n_queries <= PNB__SCAN_QUERIES */
    size_t item, n_items;    /* n_items <= PNB__SCAN_ITEMS */
    double *score;           /* score[i*ld + j] */
    size_t ld;
} pnb__scan_block;

/* Fills one block of scores, larger is nearer. NUMERIC names the first pair that is not finite. */
pnb_status pnb__scan_score(const pnb__scan_run *run, pnb__scan_work *work,
                           const pnb__scan_block *block, pnb_error *err);

/* The score of one pair without the rounding of the f32 product. */
double pnb__scan_exact(const pnb__scan_run *run, size_t query, size_t item);

#endif
