/* Questions of a report with their answers, and the probability that each answer is right. */
#ifndef PNB_COMMANDS_REPORT_REPORT_ANSWERS_H
#define PNB_COMMANDS_REPORT_REPORT_ANSWERS_H

#include "commands/report/report_internal.h"

/* One question. Of kinds the question is a picture and both answers are captions; of a search it is
 * a caption, the answer a picture, and `truth` one of the true ones. */
typedef struct pnb__answer {
    size_t question, answer, truth; /* rows */
    bool is_right;
    double p;        /* that it is right, by a fit to the other half of the questions */
    int64_t cluster; /* questions of one label were sampled together */
} pnb__answer;

typedef struct pnb__answers {
    bool of_kinds; /* "which of n_choices captions is it?", else a caption finds a picture */
    size_t n, n_choices;
    pnb__answer *at; /* [n], the surest first */
} pnb__answers;

/* What the pictures are, by the first level whose captions divide them. n is 0 where none does, or
 * where nothing can be fitted: too few of them, answers no better than chance.
 * Free with pnb__answers_reset, after a failure too. */
pnb_status pnb__answers_of_kinds(pnb__report *r, pnb__answers *out);
/* The first picture of every caption of r->found. */
pnb_status pnb__answers_of_search(pnb__report *r, pnb__answers *out);
void pnb__answers_reset(pnb__answers *answers);

#endif
