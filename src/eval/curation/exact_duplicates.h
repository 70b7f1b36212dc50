/* Rows that are the same bit for bit, and blocks of rows gathered from here and there. */
#ifndef PNB_EVAL_CURATION_EXACT_DUPLICATES_H
#define PNB_EVAL_CURATION_EXACT_DUPLICATES_H

#include "base/base.h"
#include "penumbra/prob.h"

/* Kinds: sets of equal rows, in the order of their first row. */
typedef struct pnb__exact_duplicates {
    size_t n, n_kinds;
    size_t *kind;   /* [n] the kind of each row */
    size_t *first;  /* [n_kinds] its lowest row */
    size_t *offset; /* [n_kinds + 1] into row */
    size_t *row;    /* [n] rows of each kind, ascending */
} pnb__exact_duplicates;

/* Rows with the same bytes of mean and log-variance are of one kind; with `apart` every row is a
 * kind of its own. Other parameters are not looked at. *c is all zero on failure.
 * Errors  NOMEM */
pnb_status pnb__exact_duplicates_find(pnb__exact_duplicates *c, const pnb_rows *rows, bool apart,
                                      pnb_error *err);
void pnb__exact_duplicates_reset(pnb__exact_duplicates *c);

/* Means and variances of some rows: a view where they follow each other, otherwise a copy. */
typedef struct pnb__gathered {
    pnb_rows rows;
    float *mean, *log_var; /* the copy; NULL for a view */
} pnb__gathered;

/* row[n] ascending, n > 0. *g is all zero on failure. Errors  NOMEM */
pnb_status pnb__gathered_init(pnb__gathered *g, const pnb_rows *rows, const size_t *row, size_t n,
                              pnb_error *err);
void pnb__gathered_reset(pnb__gathered *g);

#endif
