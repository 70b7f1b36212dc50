/* Texts made from the option tables: --help, the pages of docs/commands, bash completion. */
#ifndef PNB_APP_MANUAL_H
#define PNB_APP_MANUAL_H

#include <stdio.h>

#include "app/app.h"

void pnb__manual_program(FILE *out, const pnb__program *program);
void pnb__manual_help(FILE *out, const char *full_name, const pnb__command *command);
/* The markdown page of one command and all below it. */
void pnb__manual_page(FILE *out, const pnb__program *program, const pnb__command *command);
void pnb__manual_completion(FILE *out, const pnb__program *program);

#endif
