/* Some of the queries of a search, as rows of their own, to be asked again. */
#ifndef PNB_INDEX_SOME_QUERIES_H
#define PNB_INDEX_SOME_QUERIES_H

#include "base/base.h"
#include "penumbra/search.h"

typedef struct pnb__some_queries {
    pnb_gaussians rows;
    size_t *of; /* [rows.n] their numbers among all */
    float *mean, *log_var, *kappa;
} pnb__some_queries;

/* Copies of those that are wanted[]; *s is zeroed, and is reset by the caller also after a failure.
 * Errors  NOMEM */
pnb_status pnb__some_queries_init(pnb__some_queries *s, const pnb_gaussians *all,
                                  const bool *wanted, pnb_error *err);
/* Their hits to where those of all stand; k is the same. */
void pnb__some_queries_put(const pnb__some_queries *s, const pnb_hits *hits, pnb_hits *all);
void pnb__some_queries_reset(pnb__some_queries *s);

#endif
