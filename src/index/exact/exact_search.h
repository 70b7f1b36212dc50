/* The exact index: every row is looked at, in f32 with bounds on rounding where the measure allows
 * it, and what is reported is scored in f64. Three searches over one prepared gallery. */
#ifndef PNB_INDEX_EXACT_EXACT_SEARCH_H
#define PNB_INDEX_EXACT_EXACT_SEARCH_H

#include "index/exact/exact.h"
#include "index/index_kind.h"

extern const pnb__index_calls pnb__index_exact;

/* ---- exact_search.c ---- */
pnb_status pnb__exact_nearest(const void *scan, const pnb_ctx *ctx, const pnb__among *among,
                              pnb_hits *hits, pnb_error *err);
/* ---- range.c ---- */
pnb_status pnb__exact_range(const void *scan, const pnb_ctx *ctx, const pnb_gaussians *queries,
                            const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err);
pnb_status pnb__exact_self_join(const void *scan, const pnb_ctx *ctx, const pnb_range_opts *opts,
                                pnb_pairs *out, pnb_error *err);
/* ---- exact_rows.c ---- */
pnb_status pnb__exact_rows(const void *scan, const pnb_ctx *ctx, const pnb_gaussians *queries,
                           pnb__visit_fn visit, void *user, pnb_error *err);

#endif
