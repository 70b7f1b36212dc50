/* Which scores find the pairs whose captions were swapped on purpose. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_NOISE_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_NOISE_H

#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__noise_opts {
    const char *images, *texts;  /* embedding sets */
    const char *pairs, *pair_by; /* as filter takes them; NULL: ids or rows */
    const char *field; /* of the pictures', else of the captions' ids file: 1 or true is swapped */
    int level;         /* only captions of it; -1: all */
    size_t n_resamples;
} pnb__noise_opts;

/* The objects "noise" and "resampling" and the table "scores".
 * Errors  ARG (no pair is swapped, or all are), NOT_FOUND (no row has the field), FORMAT, NOMEM and
 * those of loading and pairing */
pnb_status pnb__noise_run(pnb__app *app, const pnb__noise_opts *opts, pnb__result *r);

#endif
