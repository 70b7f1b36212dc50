/* Names of outputs, looked at before the work begins. */
#ifndef PNB_PROGRAM_OUTPUTS_H
#define PNB_PROGRAM_OUTPUTS_H

#include "program/options.h"

/* Whether every option whose row says `writes` can be written as it was named: its ending is one of
 * those understood, its folder exists and may be written to, it is no folder where a file is wanted
 * (or the other way round), it is none of the files that are read, and no two are the same file. An
 * hour of work is not spent on what cannot be kept.
 * Errors  ARG (of names that meet each other: as a wrong use of the command line), NOT_FOUND, IO,
 *         UNSUPPORTED (one of several processes of a command that works alone); the text, in
 * app->err, names the option */
pnb_status pnb__outputs_check(struct pnb__app *app, const pnb__opt_set *sets, size_t n_sets);

/* Whether both names lead to one file, which need not exist yet. */
bool pnb__is_same_file(const char *a, const char *b);

/* "-" or a name that is the standard output itself, /dev/stdout say. */
bool pnb__is_stdout(const char *path);

#endif
