/* Rows as plain vectors, for indexes that know inner products alone. */
#ifndef PNB_INDEX_AUGMENTED_H
#define PNB_INDEX_AUGMENTED_H

#include "penumbra/embeddings.h"
#include "penumbra/prob.h"

/* How rows of a family become vectors, and what is asked with. */
typedef struct pnb__augmented {
    size_t width;        /* of a vector: D, or D + 1 */
    pnb_measure measure; /* whose order inner products with a query are in */
    const char *query;   /* the vector of a query, in words */
} pnb__augmented;

/* Errors  UNSUPPORTED (a family whose likelihood is no inner product) */
pnb_status pnb__augmented_form(pnb_family family, size_t dim, pnb__augmented *out, pnb_error *err);

/* The vectors of all rows: out (n, width).  Errors  NUMERIC (a row that is none), NOMEM */
pnb_status pnb__augmented_rows(const pnb_embeddings *set, float *out, pnb_error *err);

#endif
