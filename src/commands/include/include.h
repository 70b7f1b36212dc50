/* Inclusion search in an embedding set: what includes a query, what lies inside it. */
#ifndef PNB_COMMANDS_INCLUDE_INCLUDE_H
#define PNB_COMMANDS_INCLUDE_INCLUDE_H

#include "commands/common/query.h"
#include "penumbra/hierarchy.h"
#include "program/result.h"

typedef struct pnb__members_cmd {
    const char *index, *model, *tokenizer, *preprocess; /* all but index may be NULL */
    pnb__words queries;
    pnb_members_opts opts;
} pnb__members_cmd;

/* Errors  ARG (sets of different weights, of points), SHAPE, and loading */
pnb_status pnb__members_run(pnb__app *app, const pnb__members_cmd *cmd, pnb__result *r);

#endif
