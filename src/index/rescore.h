/* Ranking candidates that something else chose by the measure itself. */
#ifndef PNB_INDEX_RESCORE_H
#define PNB_INDEX_RESCORE_H

#include "penumbra/search.h"

/* Who is asked, for what. */
typedef struct pnb__rescoring {
    const pnb_gaussians *queries, *gallery;
    const pnb_search_opts *opts; /* measure, its options, direction */
    size_t k;                    /* hits wanted of each query */
} pnb__rescoring;

/* The k best of each query's candidates: near->index, -1 where there is none; their scores are not
 * looked at. Scores are in f64, those of an exact search but for their last bits. hits comes
 * zeroed.  Errors  NUMERIC, NOMEM */
pnb_status pnb__rescore(const pnb_ctx *ctx, const pnb__rescoring *job, const pnb_hits *near,
                        pnb_hits *hits, pnb_error *err);

#endif
