/* Scores of classes where the cosine is uncertain, such that p = softmax(scale * score). */
#ifndef PNB_EVAL_ZEROSHOT_UNCERTAIN_COSINE_H
#define PNB_EVAL_ZEROSHOT_UNCERTAIN_COSINE_H

#include "penumbra/classify.h"

/* Whether job->prediction can be made of these sides.  Errors  ARG */
pnb_status pnb__uncertain_check(const pnb_classify_job *job, pnb_error *err);
/* Scores of picture `row` against all rows of `side`; `room` holds 3 numbers a row of it.
 * Shape   score (side->n) */
void pnb__uncertain_scores(const pnb_classify_job *job, size_t row, const pnb_rows *side,
                           double *score, double *room);

#endif
