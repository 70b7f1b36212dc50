/* Inclusion search in an embedding set: what includes a query, what lies inside it. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_INCLUSION_H
#define PNB_COMMANDS_SEARCH_SEARCH_INCLUSION_H

#include "commands/common/query.h"
#include "commands/search/search.h"
#include "penumbra/inclusion_search.h"
#include "program/result_end.h"

typedef struct pnb__search_inclusion_opts {
    pnb__search_input in;
    pnb_inclusion_search_opts opts;
} pnb__search_inclusion_opts;

/* Errors  ARG (sets of different weights, of points), SHAPE, and loading */
pnb_status pnb__search_inclusion_run(pnb__app *app, const pnb__search_inclusion_opts *cmd,
                                     pnb__result *r);

#endif
