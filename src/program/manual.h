/* Texts made from the option tables: --help, the pages of docs/commands, manual pages, completion.
 */
#ifndef PNB_PROGRAM_MANUAL_H
#define PNB_PROGRAM_MANUAL_H

#include <stdio.h>

#include "program/app.h"

void pnb__manual_program(FILE *out, const pnb__program *program);
void pnb__manual_help(FILE *out, const char *full_name, const pnb__command *command);
/* The markdown page of one command and all below it. */
void pnb__manual_page(FILE *out, const pnb__program *program, const pnb__command *command);
/* The manual page in roff of one command and all below it; NULL: of the program. */
void pnb__manual_roff(FILE *out, const pnb__program *program, const pnb__command *command);
/* For bash, zsh or fish; false for another shell. */
bool pnb__manual_completion(FILE *out, const pnb__program *program, const char *shell);
/* How environment and config file set options (settings.h). */
extern const char pnb__manual_settings[];

#endif
