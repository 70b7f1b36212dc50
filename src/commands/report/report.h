/* The report: one HTML page that shows what a model learned and what it is unsure about. */
#ifndef PNB_COMMANDS_REPORT_REPORT_H
#define PNB_COMMANDS_REPORT_REPORT_H

#include "commands/eval/eval_files.h"
#include "commands/report/uncertainty_report.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__report_opts {
    const char *out, *title;
    const char *run;                      /* run directory of a training, or NULL */
    pnb__uncertainty_report_sets sets;    /* images and texts may be NULL together */
    pnb__uncertainty_report_sets control; /* texts NULL: no control */
    const char *null_texts;   /* set of texts that say nothing, the empty one first; or NULL */
    pnb__text_list methods;   /* folders of `adapt compare` on the same captions; what stands in
                               * several is the last one's */
    const char *text_entropy; /* field of the captions that tells what is known of them */
    pnb__retrieval_opts retrieval; /* but for images and texts, which `sets` has */
    pnb__retrieval_files files;    /* beside the page; dataset NULL: the set of the pictures */
    size_t n_examples;             /* pictures and captions in each gallery */
} pnb__report_opts;

/* Writes the page whole or not at all; sections whose inputs are missing are left out.
 * Errors  ARG (nothing to report), those of loading, IO */
pnb_status pnb__report_write(pnb__app *app, const pnb__report_opts *opts, pnb__result *r);

#endif
