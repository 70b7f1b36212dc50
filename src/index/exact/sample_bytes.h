/* Samples in bytes: which pairs cannot reach a limit, at twice the rate of bfloat16. */
#ifndef PNB_INDEX_EXACT_SAMPLE_BYTES_H
#define PNB_INDEX_EXACT_SAMPLE_BYTES_H

#include "index/exact/exact.h"
#include "index/exact/sample_slope.h"

/* Does the run's machine gain by it, for its measure and rows? */
bool pnb__sample_bytes_take(const pnb__exact_run *run);

/* Samples of a pass's queries, rows placed as sample_bound.h has them, in panels of 32. */
typedef struct pnb__byte_queries {
    signed char *panels; /* NULL: the run does not take them */
    size_t groups;       /* of four bytes of a row */
    size_t n_rows;
    float *numbers;             /* [4][n_rows] scale, square, length, off */
    int32_t *sum;               /* [n_rows] */
    pnb__byte_lengths *lengths; /* [n_rows / J] of a query's samples together */
} pnb__byte_queries;

/* Errors  NOMEM; rows that are not written are zeros */
pnb_status pnb__byte_queries_init(pnb__byte_queries *q, const pnb__exact_run *run, size_t n_rows,
                                  pnb_error *err);
void pnb__byte_queries_reset(pnb__byte_queries *q);

/* Scratch of a thread. */
typedef struct pnb__byte_work {
    signed char *row; /* [4 groups] one, as it is rounded */
    unsigned char *tiles;
    float *numbers; /* [4][rows of a block] */
    int32_t *sum, *products;
    pnb__byte_lengths *lengths; /* [items of a block] */
    pnb__byte_sums sums;
    pnb__slope_pair pair;
    size_t n_items;
    size_t n_seen, n_taken; /* pairs bounded, and those that were left, since the last look */
    size_t n_whole, pause;  /* pairs to be bounded without bytes: now, and after the next failure */
} pnb__byte_work;

/* For blocks of n_items items.  Errors  NOMEM */
pnb_status pnb__byte_work_init(pnb__byte_work *work, const pnb__exact_run *run, size_t n_items,
                               size_t strip, pnb_error *err);
void pnb__byte_work_reset(pnb__byte_work *work);

/* Of a query's samples each, then its end; scratch: 4 groups bytes. */
void pnb__byte_query_set(pnb__byte_queries *q, const pnb__exact_run *run, size_t row,
                         const pnb__float_sample *sample, pnb__byte_sums *sums,
                         signed char *scratch);
void pnb__byte_query_end(pnb__byte_queries *q, const pnb__exact_run *run, size_t query,
                         pnb__byte_sums *sums);
/* Row i J + a: sample a of item i, in this order. */
void pnb__byte_item_set(pnb__byte_work *work, const pnb__exact_run *run, size_t row,
                        const pnb__float_sample *sample);

/* value[i][j], `strip` apart, of n_items items of the block and n_queries queries of a strip from
 * row `first` of q: a bound on the measure's value on the side of larger scores, a closer one for
 * those that reach the query's limit. */
typedef struct pnb__byte_block {
    size_t n_items, n_queries, first, strip;
    const float *limit; /* [n_queries] */
    float *value;
} pnb__byte_block;
void pnb__byte_bounds(const pnb__exact_run *run, const pnb__byte_queries *q, pnb__byte_work *work,
                      const pnb__byte_block *block);

/* Whether the next block of so many pairs should be bounded by bytes: work->n_taken counts those
 * that they left. */
bool pnb__bytes_gain(pnb__byte_work *work, size_t n_pairs);

#endif
