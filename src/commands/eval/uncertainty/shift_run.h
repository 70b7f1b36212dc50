/* What a calibration is worth on another part of the data. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_SHIFT_RUN_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_SHIFT_RUN_H

#include "commands/eval/eval_retrieval.h"
#include "penumbra/calibrate.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__shift_opts {
    pnb__retrieval_opts sets; /* the other part, with its truth; measure is the calibration's */
    const char *calibration;  /* file that `calibrate` wrote on the first part */
    bool gallery_is_texts, trust;
    size_t n_refit, n_splits; /* queries fitted on again, draws of them */
    double alpha[PNB_MAX_ALPHAS];
    size_t n_alphas;
} pnb__shift_opts;

/* The object "shift".
 * Errors  ARG (a calibration of other sets, fewer queries than are fitted on), NOT_FOUND, FORMAT,
 * NOMEM and those of loading */
pnb_status pnb__shift_run(pnb__app *app, const pnb__shift_opts *opts, pnb__result *r);

#endif
