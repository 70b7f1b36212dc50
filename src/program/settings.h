/* Options set beforehand: in the environment (PENUMBRA_THREADS=4) or in a config file.
 *
 * Precedence: command line, then environment, then the section of the command in the config file,
 * then the lines above its first section, then the default. */
#ifndef PNB_PROGRAM_SETTINGS_H
#define PNB_PROGRAM_SETTINGS_H

#include "program/app.h"
#include "program/options.h"

typedef struct pnb__settings {
    pnb__preset *items; /* weakest first */
    size_t n;
    char *memory; /* what they point into */
} pnb__settings;

/* Reads both for one command ("eval retrieval"). What other commands would take is left out; what
 * none takes is an error. Free with pnb__settings_free, after a failure too.
 * Errors  ARG (a name no command has, a list, a bad line: the text names variable or line), IO,
 *         NOT_FOUND (the file that PENUMBRA_CONFIG names), NOMEM */
pnb_status pnb__settings_read(const pnb__program *program, const char *command, pnb__settings *out,
                              pnb_error *err);
void pnb__settings_free(pnb__settings *settings);

#endif
