/* Files of a retrieval result: csv, Markdown, and the JSON under CLIP_benchmark's names. */
#ifndef PNB_COMMANDS_EVAL_EVAL_FILES_H
#define PNB_COMMANDS_EVAL_EVAL_FILES_H

#include "commands/eval/eval_table.h"

#define PNB__RETRIEVAL_TASK "zeroshot_retrieval"
#define PNB__RETRIEVAL_LANGUAGE "en"

typedef struct pnb__retrieval_files {
    const char *dataset;                 /* name of the data in the result and the files */
    const char *csv, *markdown, *output; /* NULL: not written */
} pnb__retrieval_files;

/* The result of one run: its table, and `r` as filled by pnb__retrieval_report. In the name of the
 * output {dataset} {model} {pretrained} {task} {language} are replaced, with '/' as '_'. Each file
 * whole or not at all. Errors  ARG (another name in braces), IO, NOMEM */
pnb_status pnb__retrieval_save(pnb__app *app, const pnb__retrieval *run,
                               const pnb__retrieval_opts *opts, const pnb__retrieval_files *files,
                               pnb__result *r);
/* The same of any table and result; `model` and `pretrained` are for the name of the output. */
pnb_status pnb__retrieval_save_table(pnb__app *app, const pnb__table *table,
                                     const pnb__retrieval_files *files, const char *model,
                                     const char *pretrained, pnb__result *r);

#endif
