/* Scoring of answers to visual questions from a file of questions. */
#ifndef PNB_COMMANDS_EVAL_VQA_EVAL_VQA_H
#define PNB_COMMANDS_EVAL_VQA_EVAL_VQA_H

#include "commands/common/match_use.h"
#include "penumbra/prob.h"
#include "penumbra/vqa.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__vqa_opts {
    const char *questions;      /* .jsonl */
    const char *images, *texts; /* embedding sets of pictures and candidates, or both NULL */
    const char *confidence_of;  /* "candidate" or "pair": whose uncertainty u(a) is */
    pnb_measure measure;
    pnb__match_words match; /* its constants, where it has any */
    pnb_uncertainty uncertainty;
    pnb_vqa_opts votes;
    size_t n_bins;
    bool equal_count;
    size_t n_resamples;  /* of the intervals; 0: none */
    const char *cluster; /* field of a question's line; NULL: its picture */
    const char *out;     /* .jsonl of answers, or NULL */
} pnb__vqa_opts;

/* Errors  FORMAT (a line that is no question: named), NOT_FOUND (a picture or candidate without a
 *         row), ARG (a question id twice, no question), those of pnb_vqa_score and of reading */
pnb_status pnb__vqa_run(pnb__app *app, const pnb__vqa_opts *opts, pnb__result *r);

#endif
