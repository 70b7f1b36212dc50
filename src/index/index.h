/* What an index can do beside penumbra/search.h. */
#ifndef PNB_INDEX_INDEX_H
#define PNB_INDEX_INDEX_H

#include "index/index_kind.h"

/* Visits every query once with its scores of all rows.  Memory  some queries' rows a thread
 * Errors  SHAPE, ARG, NUMERIC (names query and item), NOMEM, UNSUPPORTED (the kind has none) */
pnb_status pnb__index_rows(const pnb_index *index, const pnb_ctx *ctx, const pnb_gaussians *queries,
                           pnb__visit_fn visit, void *user, pnb_error *err);

/* pnb_index_search among some rows of the gallery: k hits come where k of them are there.
 * Errors  as pnb_index_search */
pnb_status pnb__index_search(const pnb_index *index, const pnb_ctx *ctx, const pnb__among *among,
                             pnb_hits *hits, pnb_error *err);

#endif
