/* Everything that a reload replaces: the model and what is searched. */
#ifndef PNB_COMMANDS_SERVE_GENERATION_H
#define PNB_COMMANDS_SERVE_GENERATION_H

#include "commands/serve/serve_opts.h"
#include "server/server.h"

typedef struct pnb__generation pnb__generation;

/* Opens the model and all collections and sets that the options name, with a batcher of its own.
 * Errors  those of opening */
pnb_status pnb__generation_open(pnb__generation **out, pnb__app *app, const pnb__serve_opts *opts,
                                pnb__server *s);
/* No request may be using it any more; NULL is fine. */
void pnb__generation_free(pnb__generation *g);

/* Indexes of what comes are built in a thread of its own from its opening on; resting ends that,
 * growing begins it again.  Errors  LIMIT (no thread) */
void pnb__generation_rest(pnb__generation *g);
pnb_status pnb__generation_grow(pnb__generation *g);

/* As requests see it. */
pnb__served *pnb__generation_served(pnb__generation *g);
/* What was served before, where it was of a generation: that one, else NULL. */
pnb__generation *pnb__generation_of(pnb__server *s, pnb__served *served);

#endif
