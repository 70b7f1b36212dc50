/* Traversal between sets on disk or words of the command line, and its figures on HierarCaps data.
 */
#ifndef PNB_COMMANDS_TRAVERSE_TRAVERSE_H
#define PNB_COMMANDS_TRAVERSE_TRAVERSE_H

#include "commands/common/query.h"
#include "penumbra/traversal.h"
#include "program/result_end.h"

typedef struct pnb__traverse_cmd {
    pnb__query images, texts; /* without captions those of `truth` are taken */
    const char *model;        /* may be NULL when nothing is to be encoded */
    pnb_encoder_opts parts;
    const char *truth;   /* HierarCaps csv or NULL */
    const char *cluster; /* field of the pictures' ids file whose values are drawn together; NULL:
                          * each picture by itself */
    pnb_traverse_opts opts; /* root PNB_N_ROOTS: what the sets allow */
    size_t n_shown;         /* pictures whose way is printed */
} pnb__traverse_cmd;

/* Errors  ARG (sets of different weights; a root that needs a model or variances), NOT_FOUND (a
 * true caption that is not in the set, no picture of the truth in the set), and loading */
pnb_status pnb__traverse_run(pnb__app *app, const pnb__traverse_cmd *cmd, pnb__result *r);

#endif
