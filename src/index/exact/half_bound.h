/* Inner products of rows in bfloat16 for the bounds of a search. */
#ifndef PNB_INDEX_EXACT_HALF_BOUND_H
#define PNB_INDEX_EXACT_HALF_BOUND_H

#include "index/exact/exact.h"

/* The queries of a pass: panels of 32 rows, the last filled with zeros. */
typedef struct pnb__half_queries {
    uint16_t *panels; /* NULL: products are made in floats */
    size_t width;     /* of a row of halves, even */
    double most_off;  /* the greatest length that rounding took from a row */
} pnb__half_queries;

/* The items of a block, rounded once for all strips of queries. */
typedef struct pnb__half_items {
    uint16_t *rows;
    double *off; /* [item] the length that rounding took */
    size_t at_item;
    size_t n_seen, n_taken; /* pairs since the last look at their share */
    size_t n_floats;        /* pairs that are left to be bounded in floats */
} pnb__half_items;

/* Does it gain, for so many queries of rows of that width? */
bool pnb__half_takes(const pnb__exact_run *run, size_t n_queries, size_t width);
/* From n rows of `width` floats beside each other.  Errors  NOMEM */
pnb_status pnb__half_queries_init(pnb__half_queries *q, const pnb__exact_run *run,
                                  const float *rows, size_t n, size_t width, pnb_error *err);
void pnb__half_queries_reset(pnb__half_queries *q);

/* For blocks of up to n_items.  Errors  NOMEM */
pnb_status pnb__half_items_init(pnb__half_items *work, size_t n_items, size_t width,
                                pnb_error *err);
void pnb__half_items_reset(pnb__half_items *work);

/* out[i][j] of n_items rows of `width` floats (from item `item` of the gallery) and n_queries
 * queries of the pass from `first`, a multiple of 32; out has room for whole panels. */
typedef struct pnb__half_block {
    size_t item, n_items, first, n_queries, width, ld;
    const float *items;
    float *out;
} pnb__half_block;
void pnb__half_multiply(const pnb__exact_run *run, const pnb__half_queries *q,
                        pnb__half_items *work, const pnb__half_block *block);

/* Bounds of halves are wide. Where too many pairs lie within them, for the next while those of
 * floats are cheaper: called with the pairs bounded and those that were taken. */
void pnb__half_saw(pnb__half_items *work, size_t n_pairs, size_t n_taken);

#endif
