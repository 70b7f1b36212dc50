/* The page that `search --html` writes. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_PAGE_H
#define PNB_COMMANDS_SEARCH_SEARCH_PAGE_H

#include "commands/common/match_probability_use.h"
#include "penumbra/search.h"

typedef struct pnb__query_page {
    const char *index_name;
    size_t n_rows; /* of what is searched, of which the index may be a part */
    const pnb_embeddings *index, *queries;
    const pnb_hits *hits;
    const size_t *n_listed; /* [query] hits that are shown */
    const pnb__match_probability *odds;
    const double *p; /* [query][k] probabilities in place of those of odds; NULL: of odds */
    const double *u; /* [row of the index] or NULL */
    pnb_measure measure;
} pnb__query_page;

/* *n_missing: pictures that were not found again and are shown by name. */
pnb_status pnb__query_page_write(const pnb__query_page *q, const char *path, size_t *n_missing,
                                 pnb_error *err);

#endif
