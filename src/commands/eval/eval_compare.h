/* Several models, or seeds of models, on the same queries. */
#ifndef PNB_COMMANDS_EVAL_EVAL_COMPARE_H
#define PNB_COMMANDS_EVAL_EVAL_COMPARE_H

#include "commands/eval/eval_files.h"

typedef struct pnb__compare_opts {
    pnb__retrieval_opts run;   /* of every pair of sets; its images and texts are not read */
    const char *const *images; /* [n] */
    const char *const *texts;  /* [n] */
    const char *const *names;  /* [n]; equal names are seeds of one model. NULL: the files' names */
    const pnb_measure *measures; /* [n] in place of that of `run`; NULL: it is that of all */
    size_t n;
    char **failed; /* [n] comes as NULLs: a pair that cannot be ranked is left out, and here is why;
                    * to be freed. NULL: it ends the comparison */
    pnb__retrieval_files files; /* dataset "": without a name */
} pnb__compare_opts;

/* Runs every pair, then resamples all alike; every model is tested against the first.
 * Errors  ARG (the sets have not the same rows in the same order: the pair is named), and those of
 *         pnb__retrieval_run */
pnb_status pnb__retrieval_compare(pnb__app *app, const pnb__compare_opts *opts, pnb__result *r);

#endif
