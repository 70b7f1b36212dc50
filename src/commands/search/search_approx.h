/* Searching a set by an index that finds candidates, which may lie in a file beside it. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_APPROX_H
#define PNB_COMMANDS_SEARCH_SEARCH_APPROX_H

#include "penumbra/search.h"
#include "program/app.h"
#include "program/result_end.h"

/* Searches a set by opts->kind. Graphs and cells are opened from SET.hnsw or SET.ivf, or built and
 * put there, and what they promise is told.  Errors  those of pnb_index_create, _open and _save */
pnb_status pnb__search_approx(pnb__app *app, const char *set, const pnb_search_opts *opts,
                              const pnb_gaussians *queries, const pnb_gaussians *gallery,
                              pnb_hits *hits);

/* Says how sure the hits are; nothing for an exact search. */
void pnb__put_approx(const pnb_search_opts *opts, const pnb_hits *hits, pnb__result *r);

#endif
