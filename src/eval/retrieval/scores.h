/* Every query's row of scores, one at a time, wherever the scores come from. */
#ifndef PNB_EVAL_RETRIEVAL_SCORES_H
#define PNB_EVAL_RETRIEVAL_SCORES_H

#include "index/index.h"
#include "penumbra/retrieval.h"

/* One of: a matrix, a function that fills a row, or two sets of Gaussians. */
typedef struct pnb__scores {
    size_t n_queries, n_items;
    const double *matrix; /* [n_queries][n_items] */
    pnb_score_row_fn fn;
    void *fn_user;
    const pnb_gaussians *queries, *gallery;
    const pnb_search_opts *opts;
} pnb__scores;

pnb__scores pnb__scores_matrix(const double *matrix, size_t n_queries, size_t n_items);
pnb__scores pnb__scores_rows(pnb_score_row_fn fn, void *user, size_t n_queries, size_t n_items);
pnb__scores pnb__scores_sets(const pnb_gaussians *queries, const pnb_gaussians *gallery,
                             const pnb_search_opts *opts);

size_t pnb__scores_threads(const pnb_ctx *ctx);

/* Visits every query once; score[n_items] is valid during the call and holds no NaN.  Errors SHAPE,
 * ARG, NUMERIC (names query and item), NOMEM */
pnb_status pnb__scores_visit(const pnb_ctx *ctx, const pnb__scores *scores, pnb__visit_fn visit,
                             void *user, pnb_error *err);

#endif
