/* Names of result files with words in braces, as CLIP_benchmark's --output. */
#ifndef PNB_PROGRAM_OUTPUT_NAME_H
#define PNB_PROGRAM_OUTPUT_NAME_H

#include "penumbra/error.h"

typedef struct pnb__output_words {
    const char *dataset, *pretrained, *model, *language, *task;
} pnb__output_words;

/* `pattern` with {dataset}, {pretrained}, {model}, {language} and {task} replaced, their '/' by
 * '_'; free *out with pnb__free.  Errors  ARG (another word in braces), NOMEM */
pnb_status pnb__output_name(char **out, const char *pattern, const pnb__output_words *words,
                            pnb_error *err);

#endif
