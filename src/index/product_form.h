/* Measures that are an inner product with an item's vector plus a term of the item: what indexes
 * that know inner products alone are made of. */
#ifndef PNB_INDEX_PRODUCT_FORM_H
#define PNB_INDEX_PRODUCT_FORM_H

#include "base/base.h"
#include "penumbra/search.h"

/* Whether the order of items by the measure is that of inner products, whatever the query.
 * Errors  UNSUPPORTED, in the words of an index of kind `kind`, and those of the exact index */
pnb_status pnb__linear_check(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                             const char *kind, pnb_error *err);
/* The same of queries that come.  Errors  UNSUPPORTED, SHAPE, ARG, NUMERIC */
pnb_status pnb__linear_check_queries(const pnb_gaussians *gallery, const pnb_gaussians *queries,
                                     const pnb_search_opts *opts, pnb_error *err);

/* Item i as out[D], and its term; *ok is cleared where one of them is not finite. */
double pnb__linear_item(const pnb_gaussians *gallery, pnb_measure measure, size_t i, float *out,
                        bool *ok);
/* Query i as out[D], whose product with an item's vector plus the item's term ranks. */
void pnb__linear_query(const pnb_gaussians *queries, pnb_measure measure, size_t i, float *out);

#endif
