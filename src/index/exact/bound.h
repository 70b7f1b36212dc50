/* One pass of some queries over the gallery, block by block: bounds on the score of every pair. */
#ifndef PNB_INDEX_EXACT_BOUND_H
#define PNB_INDEX_EXACT_BOUND_H

#include "index/exact/exact.h"
#include "index/exact/half_bound.h"
#include "index/exact/sample_bound.h"

/* Queries first .. first+n, made ready for the pass: packed for the product, variances unpacked. */
typedef struct pnb__bound {
    const pnb__exact_run *run;
    size_t first, n;
    size_t width;          /* of a row in the product: D, or 2 D for w2 */
    size_t strip, n_items; /* most queries and items of one block; strips begin at multiples */
    float *rows;           /* [n][width] */
    float *var;            /* inclusion: [n][D] */
    pnb__packed packed;    /* of rows; data NULL: the product reads the rows */
    double most_norm;      /* of rows */
    pnb__sample_queries samples;
    pnb__half_queries half; /* of rows, where the product takes bfloat16 */
} pnb__bound;

/* NOMEM. Free with pnb__bound_reset. */
pnb_status pnb__bound_init(pnb__bound *pass, const pnb__exact_run *run, const pnb_ctx *ctx,
                           size_t first, size_t n, pnb_error *err);
void pnb__bound_reset(pnb__bound *pass);
/* Most queries that one pass should take: their rows stay in the last cache. */
size_t pnb__bound_most_queries(const pnb__exact_run *run);

/* Scratch of one thread for a run, whatever the pass. */
typedef struct pnb__bound_work {
    pnb__exact_work scan;
    double *exact, *slack;
    float *value, *spread, *item_rows, *mul, *upper;
    pnb__sample_work samples;
    pnb__half_items half;
    const float *limit; /* of samples, the next block's queries: pairs below are of no interest;
                           NULL: all are */
    void *memory;
} pnb__bound_work;
pnb_status pnb__bound_work_init(pnb__bound_work *work, const pnb__exact_run *run, pnb_error *err);
void pnb__bound_work_reset(pnb__bound_work *work);

/* Scores of a block without the query's own term t: the score of query j and item i lies within
 *   [v - 2 slack - margin, v + margin] + t,  v = value[i][j] mul[i] + upper[i] + s spread[i][j]
 *   slack = slack[i] + s spread[i][j],  s = spread_bound
 * or, where exact is not NULL, is exact[j][i], or, where `within` is not NULL, is at most v + t:
 * values_above asks `within` for both bounds of what it takes. Queries are numbered within the set.
 */
typedef struct pnb__values {
    size_t query, n_queries, item, n_items;
    size_t ld;
    const double *exact;
    const float *value, *mul, *upper, *spread;
    const double *slack;
    double spread_bound;
    const struct pnb__bound *within;
    pnb__bound_work *work; /* of within */
} pnb__values;

/* Fills the block of items item .. item+n_items (at most pass->n_items) and of the strip's queries.
 * NUMERIC names the first pair that is not finite. */
pnb_status pnb__bound_score(const pnb__bound *pass, pnb__bound_work *work, size_t strip,
                            const size_t items[2], pnb__values *out, pnb_error *err);

/* The query's own term, and how far rounding in f64 may move its scores. */
double pnb__bound_term(const pnb__exact_run *run, size_t query);
double pnb__bound_margin(const pnb__exact_run *run, size_t query);

/* The limit for pnb__values_above that lets every pair through whose score may reach `score`. */
float pnb__bound_limit(const pnb__exact_run *run, size_t query, double score);

/* Bounds on the scores of item i of the block and n queries of it from `begin`, less the query's
 * term and without its margin, in floats that still are bounds. */
void pnb__values_bounds(const pnb__values *values, size_t i, size_t begin, size_t n, float *low,
                        float *high);

/* Border i of n parts of total, at multiples of step: parts of whole blocks. */
static inline size_t pnb__bound_border(size_t total, size_t step, size_t n, size_t i)
{
    size_t n_steps = (total + step - 1) / step;
    return PNB_MIN(total, step * (n_steps * i / n));
}

/* Bounds on the score of one pair; equal where it is known exactly. */
typedef struct pnb__bounds {
    size_t query, item;
    double low, high;
} pnb__bounds;
typedef pnb_status (*pnb__bounds_fn)(void *user, const pnb__bounds *pair);

/* Calls `take` for every pair of the block that may reach limit[query - values->query]; the limits
 * may be raised meanwhile. Ends with the first status that is not OK. */
pnb_status pnb__values_above(const pnb__exact_run *run, const pnb__values *values,
                             const float *limit, pnb__bounds_fn take, void *user);

#endif
