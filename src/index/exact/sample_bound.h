/* Samples of queries and items as rows of a product, for measures over pairs of samples. */
#ifndef PNB_INDEX_EXACT_SAMPLE_BOUND_H
#define PNB_INDEX_EXACT_SAMPLE_BOUND_H

#include "index/exact/exact.h"
#include "index/exact/sample_bytes.h"

/* Queries of a strip, items of a block, and queries of a pass for J samples a row. */
size_t pnb__sample_strip(const pnb__exact_run *run);
size_t pnb__sample_items(const pnb__exact_run *run);
size_t pnb__sample_most_queries(const pnb__exact_run *run);

/* Samples of queries first .. first + n, less `centre`: row [strip][sample][query of the strip]; in
 * floats or, where the machine multiplies them faster, in bfloat16. */
typedef struct pnb__sample_queries {
    const pnb__exact_run *run;
    size_t first, n, strip;
    float *rows;      /* NULL once packed */
    uint16_t *halves; /* in panels, of `width` numbers a row; NULL: floats */
    size_t width;
    pnb__byte_queries bytes;
    uint16_t *lying;     /* [query][J][width], halves once more, where bytes are taken */
    float *square, *off; /* of rows: squared lengths, and how far they are from the samples */
    double *centre;      /* [D] */
    pnb__packed packed;
} pnb__sample_queries;

/* range: first query and how many. Errors  NOMEM, NUMERIC (names a query); free with reset */
pnb_status pnb__sample_queries_init(pnb__sample_queries *q, const pnb__exact_run *run,
                                    const pnb_ctx *ctx, const size_t range[2], pnb_error *err);
void pnb__sample_queries_reset(pnb__sample_queries *q);

/* Samples of a block's items, their products with a strip, and what comes of them. */
typedef struct pnb__sample_work {
    double *sample; /* [D] one as it is drawn */
    float *row;     /* [D] and as floats */
    pnb__byte_work bytes;
    float *pair; /* [5][J][J] of one pair: products, squares, offs, values and spreads */
    float *rows, *square, *off;       /* [items][J][D], [items][J] */
    uint16_t *halves;                 /* [items][J][width] */
    float *products, *value, *spread; /* [items][J][J][strip], [items][strip] */
    size_t at_item, at_first;         /* block and pass that `rows` holds */
} pnb__sample_work;

/* Numbers that a thread's work needs, and the sharing out of them. */
void pnb__sample_work_sizes(const pnb__exact_run *run, size_t *n_doubles, size_t *n_floats);
void pnb__sample_work_place(pnb__sample_work *work, const pnb__exact_run *run, double *doubles,
                            float *floats);
/* And what bytes need beside; free with reset.  Errors  NOMEM */
pnb_status pnb__sample_work_init(pnb__sample_work *work, const pnb__exact_run *run, pnb_error *err);
void pnb__sample_work_reset(pnb__sample_work *work);

/* Items and queries begin .. end of one strip of the pass. */
typedef struct pnb__sample_block {
    size_t queries[2], items[2];
    const float *limit; /* [query] pairs below it are of no interest; of the others pnb__sample_pair
                           knows. NULL: all are */
} pnb__sample_block;

/* Values of the measure and bounds on their error: work->value and spread, [item][query], `strip`
 * apart. *is_limit: values are bounds on the side of larger scores, by bytes, and spreads nothing.
 * Errors  NUMERIC */
pnb_status pnb__sample_score(const pnb__sample_queries *q, pnb__sample_work *work,
                             const pnb__sample_block *block, bool *is_limit, pnb_error *err);
/* The value of a pair of the last such block and how far it may be off, for limits that it
 * reaches: out[0] and out[1]. */
void pnb__sample_pair(const pnb__sample_queries *q, pnb__sample_work *work, size_t query,
                      size_t item, double out[2]);

#endif
