/* All scores of one query after the other, several threads at once, a tile of them in memory. */
#ifndef PNB_EVAL_SCORE_ROWS_H
#define PNB_EVAL_SCORE_ROWS_H

#include "index/scan.h"

typedef struct pnb__score_row {
    size_t query;
    const double *score; /* [n_items], with the rounding of the f32 product */
    size_t n_items;
    const pnb__scan_run *run; /* for pnb__scan_exact */
    int thread;               /* below the threads of the context; 0 without one */
} pnb__score_row;

/* Called once a query, from several threads, queries in any order. */
typedef pnb_status (*pnb__score_row_fn)(void *user, const pnb__score_row *row, pnb_error *err);

typedef struct pnb__score_job {
    const pnb_gaussians *queries, *gallery;
    const pnb_search_opts *opts;
} pnb__score_job;

/* Memory  O(threads * N).  Errors  as pnb_ranks_compute, and what `fn` returns */
pnb_status pnb__score_rows(const pnb_ctx *ctx, const pnb__score_job *job, pnb__score_row_fn fn,
                           void *user, pnb_error *err);

#endif
