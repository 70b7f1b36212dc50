/* Makes a model directory whose parts belong together. */
#ifndef PNB_COMMANDS_INIT_INIT_H
#define PNB_COMMANDS_INIT_INIT_H

#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__model_dir_opts {
    const char *config; /* built-in name or path of a config.json */
    const char *dir;
    const char *tokenizer;              /* NULL: none is put in */
    const char *overrides;              /* JSON object or NULL */
    int64_t image_size, context_length; /* PNB__INT_UNSET: the configuration's */
} pnb__model_dir_opts;

/* Initialises a model from a configuration and writes all its files.
 * Errors  EXISTS (dir holds a model already), NOT_FOUND (the text lists the built-in names), and
 *         those of the model and tokenizer */
pnb_status pnb__model_dir_create(pnb__app *app, void *args, pnb__result *r);

#endif
