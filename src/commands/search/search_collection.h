/* A collection in place of an embedding set to search in. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_COLLECTION_H
#define PNB_COMMANDS_SEARCH_SEARCH_COLLECTION_H

#include "commands/common/rows/row_filter.h"
#include "penumbra/store.h"

typedef struct pnb__collection_search {
    pnb_store *store; /* NULL: a set is searched */
    pnb_store_filter filter;
    bool is_filtered;
    size_t n_rows;   /* of the collection */
    char *set_path;  /* a calibration lies beside it as beside a set of this name */
    int64_t *number; /* of each row of the set of hits */
} pnb__collection_search;

/* Opens the collection; *probe is a set of one of its rows, which tells their family and origin.
 * Release with pnb__collection_search_reset, after a failure too.
 * Errors  NOT_FOUND (no collection, no row that passes), and those of pnb_store_open */
pnb_status pnb__collection_search_open(pnb__collection_search *c, pnb__app *app, const char *path,
                                       const pnb__row_filter *filter, pnb_embeddings **probe);
void pnb__collection_search_reset(pnb__collection_search *c);

/* The nearest rows of each query: *found is the set of all rows that were found, `hits` speaks of
 * its rows; NULL where there are none.  Errors  those of pnb_store_search */
pnb_status pnb__collection_search_nearest(pnb__collection_search *c, pnb__app *app,
                                          const pnb_embeddings *queries,
                                          const pnb_search_opts *opts, pnb_hits *hits,
                                          pnb_embeddings **found);

/* The folder of the model that a collection was made for, "" unknown. */
pnb_status pnb__collection_search_model(pnb__app *app, const char *path, pnb_store_about *about);

#endif
