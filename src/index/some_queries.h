/* Asking some of the queries of a search once more. */
#ifndef PNB_INDEX_SOME_QUERIES_H
#define PNB_INDEX_SOME_QUERIES_H

#include "index/index_kind.h"

/* A search of these; unsure[q] comes as false. *hits comes zeroed. */
typedef pnb_status (*pnb__ask_fn)(void *user, const pnb__among *among, pnb_hits *hits, bool *unsure,
                                  pnb_error *err);

/* Asks those queries that are unsure[] as rows of their own; their hits, and whether they still
 * are, go where those of all stand.  Errors  NOMEM, and those of `ask` */
pnb_status pnb__ask_unsure(const pnb__among *among, pnb__ask_fn ask, void *user, pnb_hits *hits,
                           bool *unsure, pnb_error *err);

#endif
