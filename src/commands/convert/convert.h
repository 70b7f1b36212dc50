/* Writes a model folder in another layout, with everything that belongs to it. */
#ifndef PNB_COMMANDS_CONVERT_CONVERT_H
#define PNB_COMMANDS_CONVERT_CONVERT_H

#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__convert_opts {
    const char *dir, *out;
    const char *to;   /* "prolip", "open_clip", "hf", "pcme", "pcmepp"; NULL with lora */
    const char *lora; /* adapter to be merged into the model; NULL: none */
    int64_t image_size, context_length; /* PNB__INT_UNSET: the model's own */
    int64_t n_unc_layers;               /* of PCME++; PNB__INT_UNSET: as released */
} pnb__convert_opts;

/* Weights and configuration by pnb_model_convert; tokenizer and preprocessor files are carried
 * over, and the preprocessing is told in the target's own words too.
 * Errors  those of pnb_model_convert, IO */
pnb_status pnb__convert_model(pnb__app *app, void *args, pnb__result *r);

#endif
