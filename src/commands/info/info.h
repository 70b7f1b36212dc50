/* What a path holds, told in a few lines. */
#ifndef PNB_COMMANDS_INFO_INFO_H
#define PNB_COMMANDS_INFO_INFO_H

#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__info_opts {
    const char *path; /* NULL with is_cpu or is_gpu */
    bool is_cpu, is_gpu;
} pnb__info_opts;

/* A model directory, an embedding set, a tensor file, a tokenizer, or else a data set.
 * Errors  those of the reader that fits */
pnb_status pnb__info_run(pnb__app *app, void *args, pnb__result *r);

/* The processor: what was found, what the context uses, and measured rates; about a second.
 * Errors  NOMEM */
pnb_status pnb__info_cpu(pnb__app *app, pnb__result *r);

/* The same of the context's GPU.  Errors  ARG (the context has none), NOMEM, IO */
pnb_status pnb__info_gpu(pnb__app *app, pnb__result *r);

#endif
