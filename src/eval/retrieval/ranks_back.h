/* Ranks of the other direction, from the same bounds on the same pairs. */
#ifndef PNB_EVAL_RETRIEVAL_RANKS_BACK_H
#define PNB_EVAL_RETRIEVAL_RANKS_BACK_H

#include "eval/retrieval/ranks.h"
#include "index/exact/bound.h"

#define PNB__RANKS_FEW 32 /* positives that are counted one by one */

/* Items of the pass are what asks here, its queries are what is ranked. */
typedef struct pnb__back {
    const pnb__exact_run *run;
    const pnb_truth *truth; /* n_queries = items of the pass */
    pnb_ranks *out;
    size_t n_levels, n_groups;
    pnb__hit *positive;          /* [pair] best first within each item */
    float *sure, *maybe;         /* [level][item] lower / upper bounds from here count */
    float *term_low, *term_high; /* [query] bounds on the query's own term */
    uint32_t *count;             /* [group][level][item] */
    pnb__hit *top;               /* [group][item] */
    float *top_limit;            /* [group][item] */
    pnb_error *error;            /* [thread] */
} pnb__back;

/* Whether both directions can be had from one pass: a symmetric measure by products, no item with
 * many positives, terms that floats tell apart. */
bool pnb__back_fits(const pnb__exact_run *run, const pnb_truth *truth);

/* n_groups: parts of the pass that see the same item. NOMEM. Free with pnb__back_reset. */
pnb_status pnb__back_init(pnb__back *back, const pnb_ctx *ctx, size_t n_groups, pnb_error *err);
void pnb__back_reset(pnb__back *back);

/* One item against queries query .. query+n with bounds of pnb__values_bounds, n <= 64. */
typedef struct pnb__back_block {
    size_t group, item, query, n;
    const float *low, *high;
} pnb__back_block;
void pnb__back_count(pnb__back *back, pnb__exact_work *work, const pnb__back_block *block);

/* Fills out, whose arrays exist, when all queries have passed; of `ranks` each has passed its own.
 * Errors  those of other ranks, NOMEM */
pnb_status pnb__back_finish(pnb__back *back, pnb_peers *ranks, pnb_error *err);

#endif
