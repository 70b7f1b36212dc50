/* Ranks of the true matches of every query, and the retrieval figures that follow from them.
 *
 * For a query whose R positives stand at ranks r_1 < r_2 < ... < r_R of the whole gallery:
 *   R@k = [r_1 <= k]   R-Precision = #{r_i <= R}/R   mAP@R = (1/R) sum_{r_i <= R} i/r_i
 * Ranks count from 1 in the order of search.h: higher score first, then the lower index, so that
 * ties have one answer. Shares are fractions in [0,1]; papers print them x 100. Queries without a
 * positive are left out of every average and counted. A NULL ctx means one thread; no result
 * depends on their number. Definitions and where released code differs: docs/numerics.md#retrieval.
 * Intervals of these figures: figures.h, and rsum.h for the sum of recalls.
 *
 * Source  ECCV Caption, Chun et al. 2022 (R-Precision, mAP@R); PCME section 4.1.1 */
#ifndef PENUMBRA_RETRIEVAL_H
#define PENUMBRA_RETRIEVAL_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/peers.h"
#include "penumbra/prob.h"
#include "penumbra/search.h"
#include "penumbra/truth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ranks ---- */

/* What a ranking says of each query. Positives that a truth names but no row holds (n_outside of
 * truth.h) stand nowhere, and R counts them: they lower R-Precision and mAP@R. */
typedef struct pnb_ranks {
    size_t n_queries, n_items; /* rows that ask, rows that were ranked */
    int64_t *best_rank;        /* [n] rank of the best positive, from 1; 0: the query has none */
    int64_t *top1;             /* [n] item ranked first; -1: its fold holds no item */
    double *top1_score;        /* [n] its score; NaN without one, as of a ranking of indices */
    double *r_precision;       /* [n] share of positives among the first R; NaN without one */
    double *map_at_r;          /* [n] mean average precision at R; NaN without a positive */
} pnb_ranks;

/* Frees the arrays, all zero afterwards; NULL is fine. */
void pnb_ranks_reset(pnb_ranks *ranks);

/* Ranks of the items of a gallery by a measure. `out` need not be initialised and is all zero on
 * failure; free it with pnb_ranks_reset.
 *   opts   measure, its options and `reverse` as in a search; k is not read. NULL: the defaults
 * Shape   queries (Q,D), gallery (N,D), truth of Q queries and N items
 * Memory  O(pairs + N*block): bounds settle most pairs and no Q*N scores are held
 * Errors  SHAPE (truth and sets differ in size, widths differ), ARG (an empty truth, a measure that
 *         does not fit the families), NUMERIC (a score is no number: names the pair), NOMEM */
pnb_status pnb_ranks_compute(const pnb_ctx *ctx, const pnb_gaussians *queries,
                             const pnb_gaussians *gallery, const pnb_truth *truth,
                             const pnb_search_opts *opts, pnb_ranks *out, pnb_error *err);

/* Ranks from scores that somebody else computed, larger being nearer; -inf and inf are scores.
 * Shape   scores (n_queries, n_items) of the truth
 * Errors  ARG (an empty truth), NUMERIC (NaN: names query and item), NOMEM */
pnb_status pnb_ranks_from_scores(const double *scores, const pnb_truth *truth, pnb_ranks *out,
                                 pnb_error *err);

/* Ranks from complete rankings: row q lists all item indices, best first.
 * Shape   ranking (n_queries, n_items) of the truth
 * Errors  ARG (an empty truth, a row that is not a permutation: names the query), NOMEM */
pnb_status pnb_ranks_from_ranking(const int64_t *ranking, const pnb_truth *truth, pnb_ranks *out,
                                  pnb_error *err);

/* ---- ranks under several truths ---- */

/* One way to judge the same scores; all tasks of a call share one pass over them. With folds a
 * query ranks the items of its own fold only: positives elsewhere do not count, and where its fold
 * holds no item or no positive its rank is 0. A negative fold is none at all. */
typedef struct pnb_rank_task {
    const pnb_truth *truth;
    const int32_t *query_fold; /* [n_queries] compared with item_fold; both NULL: everything */
    const int32_t *item_fold;  /* [n_items] */
    const size_t
        *precision_k; /* n_precision cut-offs from 1 on; read where precision is not NULL */
    size_t n_precision;
    double *precision; /* [n_queries][n_precision] positives among the first k, over k; may be NULL.
                        * Divided by k also where the gallery is smaller, as PCME has it */
} pnb_rank_task;

/* Fills score[0..n_items) of a query; larger is nearer. Called once a query, from several threads
 * at once where the context has them. */
typedef void (*pnb_score_row_fn)(void *user, size_t query, double *score);

/* Ranks of every task into out[n_tasks], from rows of scores. The arrays of `out` are freed with
 * pnb_ranks_reset, one by one; on failure all are zero.
 * Memory  O(pairs + n_items * threads)
 * Errors  ARG (no task, an empty truth, tasks of different size, one fold array of two, a cut-off
 *         of 0), NUMERIC (NaN: names query and item), NOMEM */
pnb_status pnb_ranks_from_rows(const pnb_ctx *ctx, pnb_score_row_fn fn, void *user,
                               const pnb_rank_task *tasks, size_t n_tasks, pnb_ranks *out,
                               pnb_error *err);

/* The same between two sets, as pnb_ranks_compute ranks them: the positives of all tasks are ranked
 * in one pass, each fold in one of its own among its rows.
 * Memory  O(pairs + N*block), with folds also a copy of the rows of one fold
 * Errors  as pnb_ranks_from_rows and pnb_ranks_compute */
pnb_status pnb_ranks_compute_tasks(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                   const pnb_gaussians *gallery, const pnb_rank_task *tasks,
                                   size_t n_tasks, const pnb_search_opts *opts, pnb_ranks *out,
                                   pnb_error *err);

/* ---- figures ---- */

#define PNB_MAX_RECALLS 16 /* cut-offs k of R@k in one call */

/* Figures of one direction, averaged over the queries that have a positive. */
typedef struct pnb_direction {
    size_t n_queries;               /* averaged over */
    size_t n_skipped;               /* without a positive */
    double recall[PNB_MAX_RECALLS]; /* R@k[i]: share of queries with a positive in the first k */
    double median_rank; /* floor(median(rank - 1)) + 1, as the field prints it: PCME and before */
    double mean_rank;   /* of the best positive, from 1 */
    double r_precision, map_at_r; /* means of those of the queries */
} pnb_direction;

typedef struct pnb_retrieval {
    size_t n_k;
    size_t k[PNB_MAX_RECALLS]; /* the cut-offs that were asked for */
    pnb_direction forward;     /* queries to gallery */
    pnb_direction backward;    /* gallery to queries */
    double rsum;               /* sum of all recalls both ways, in [0, 2 n_k] */
} pnb_retrieval;

/* Averages ranks.
 *   k  n_k cut-offs from 1 on; one above the number of items gives recall 1
 * Errors  ARG (n_k outside 1..PNB_MAX_RECALLS, a cut-off of 0, no query with a positive), NOMEM */
pnb_status pnb_direction_summarise(const pnb_ranks *ranks, const size_t *k, size_t n_k,
                                   pnb_direction *out, pnb_error *err);

/* Two sets to be ranked by each other. Both directions rank by the same values of a pair: for an
 * asymmetric measure a stays Gaussian 1, with opts->reverse Gaussian 2. */
typedef struct pnb_retrieval_job {
    const pnb_gaussians *a, *b;
    const pnb_truth *truth;      /* queries = rows of a, items = rows of b */
    const pnb_search_opts *opts; /* NULL: the defaults */
    const size_t *k;             /* n_k cut-offs; NULL: 1, 5 and 10, n_k is not read */
    size_t n_k;
    pnb_peers *ranks; /* processes that all make this call: each ranks for its share of the queries,
                       * and all have the result of one process; NULL: this one */
} pnb_retrieval_job;

/* Both directions at once; a symmetric measure takes one pass where the positives are few.
 *   forward_ranks, backward_ranks  the caller's to reset, or NULL where they are not wanted
 * With `ranks` also the errors of other ranks.
 * Errors  as pnb_ranks_compute and pnb_direction_summarise */
pnb_status pnb_retrieval_compute(const pnb_ctx *ctx, const pnb_retrieval_job *job,
                                 pnb_retrieval *out, pnb_ranks *forward_ranks,
                                 pnb_ranks *backward_ranks, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
