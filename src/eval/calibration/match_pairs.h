/* Scored pairs of queries and a gallery: every match, and all or a weighted sample of the others.
 */
#ifndef PNB_EVAL_CALIBRATION_MATCH_PAIRS_H
#define PNB_EVAL_CALIBRATION_MATCH_PAIRS_H

#include "base/base.h"
#include "penumbra/calibrate.h"

/* Pairs of query q are [offset[q], offset[q+1]). Queries without a match have none. */
typedef struct pnb__match_pairs {
    size_t n_queries, n_items;
    size_t *offset;
    double *score;  /* f64, as search gives it */
    int *label;     /* 1: a match */
    double *weight; /* pairs of the query that this one stands for */
    /* of each query, NaN and 0 without a match: */
    double *first;    /* score of its first hit */
    double *best;     /* score of its best match */
    double *rank;     /* of that match, from 1 */
    int *first_label; /* 1: the first hit matches */
    bool is_exact;    /* every pair is there, all weights 1 */
} pnb__match_pairs;

typedef struct pnb__match_sample {
    size_t max_pairs;
    size_t n_first; /* at least so many first hits of a query are kept */
    uint64_t seed;
} pnb__match_sample;

/* Errors  SHAPE, ARG (the truth is empty), NUMERIC, NOMEM; `out` is all zero then */
pnb_status pnb__match_pairs_collect(const pnb_ctx *ctx, const pnb_match_job *job,
                                    const pnb__match_sample *sample, pnb__match_pairs *out,
                                    pnb_error *err);
void pnb__match_pairs_reset(pnb__match_pairs *pairs);

#endif
