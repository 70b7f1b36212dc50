/* Search that scores only the items whose means are nearest. */
#ifndef PNB_INDEX_SHORTLIST_H
#define PNB_INDEX_SHORTLIST_H

#include "penumbra/search.h"

/* pnb_search with opts->shortlist from 1 to gallery->n - 1: of each query so many items by the
 * distance of means, exactly, of which the k best by the measure; scores in f64, those of all
 * pairs. Errors  ARG (a shortlist shorter than k), and those of pnb_search; hits are zero then */
pnb_status pnb__shortlist_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                 const pnb_gaussians *gallery, const pnb_search_opts *opts,
                                 pnb_hits *hits, pnb_error *err);

#endif
