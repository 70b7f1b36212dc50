/* A trainer without a run directory, for timing single steps. */
#ifndef PNB_COMMANDS_BENCH_BENCH_TRAIN_H
#define PNB_COMMANDS_BENCH_BENCH_TRAIN_H

#include "commands/bench/bench.h"

typedef struct pnb__bench_trainer pnb__bench_trainer;

/* Makes a small data set in a temporary folder and sets a trainer up on it. Free with _close. */
pnb_status pnb__bench_train_open(pnb__bench_trainer **out, pnb__app *app,
                                 const pnb__bench_opts *opts);
/* One whole step: batch, all losses with the masked pass, backward, update. */
pnb_status pnb__bench_train_step(pnb__bench_trainer *t, pnb_error *err);
/* Operations of a step: forward and backward count three forwards, masked rows included. */
double pnb__bench_train_flops(const pnb__bench_trainer *t);
void pnb__bench_train_close(pnb__bench_trainer *t);

#endif
