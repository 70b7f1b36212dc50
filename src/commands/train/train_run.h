/* A training run with progress, Ctrl-C and a result to print. */
#ifndef PNB_COMMANDS_TRAIN_TRAIN_RUN_H
#define PNB_COMMANDS_TRAIN_TRAIN_RUN_H

#include "penumbra/train.h"
#include "program/app.h"
#include "program/result_end.h"

/* Fills the callbacks of `opts` and trains; unreadable samples are counted as skipped. */
pnb_status pnb__train_watched(pnb__app *app, pnb_train_opts *opts, pnb_train_result *out);
/* The same as the command: the result is in `r`; after an interruption it is printed already. */
pnb_status pnb__train_run(pnb__app *app, pnb_train_opts *opts, pnb__result *r);

#endif
