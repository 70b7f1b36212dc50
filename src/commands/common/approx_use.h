/* Indexes that find candidates, by the words of --approx; those of a set may lie beside it. */
#ifndef PNB_COMMANDS_COMMON_APPROX_USE_H
#define PNB_COMMANDS_COMMON_APPROX_USE_H

#include "penumbra/search.h"
#include "program/app.h"

/* The kind of that name; NULL: exact. */
pnb_index_kind pnb__search_kind(const char *name);

/* The index of a set's rows of opts->kind. Graphs and cells are opened from SET.hnsw or SET.ivf, or
 * built and put there, and what they promise is told; they stay right while the set does.
 * Errors  those of pnb_index_create, _open and _save */
pnb_status pnb__approx_open(pnb__app *app, const char *set, const pnb_search_opts *opts,
                            const pnb_gaussians *gallery, pnb_index **index);

#endif
