/* A model behind HTTP. */
#ifndef PNB_COMMANDS_SERVE_SERVE_H
#define PNB_COMMANDS_SERVE_SERVE_H

#include "commands/serve/serve_opts.h"
#include "program/result_end.h"

/* Listens, loads, answers until Ctrl-C or SIGTERM, answers what was asked until then.
 * Errors  ARG (listening for others without a key), those of listening and of opening the model */
pnb_status pnb__serve_run(pnb__app *app, void *opts, pnb__result *r);

#endif
