/* Timing of training steps. */
#ifndef PNB_COMMANDS_BENCH_BENCH_TRAIN_H
#define PNB_COMMANDS_BENCH_BENCH_TRAIN_H

#include "commands/bench/bench.h"

/* One whole step: batch, all losses with the masked pass, backward, update, on a small data set
 * made in a temporary folder. Fills the result as pnb__bench_encode does.
 * Errors  those of the model and of training; IO (the folder) */
pnb_status pnb__bench_train(pnb__app *app, void *args, pnb__result *r);

#endif
