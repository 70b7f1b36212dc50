/* A visual question with its candidates and answers, as read from one line. */
#ifndef PNB_COMMANDS_EVAL_VQA_VQA_QUESTION_H
#define PNB_COMMANDS_EVAL_VQA_VQA_QUESTION_H

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/vqa.h"

enum { PNB__MAX_QUESTION_ID = 256 };

typedef struct pnb__question {
    json_t *root;
    char id[PNB__MAX_QUESTION_ID], image[PNB__MAX_QUESTION_ID],
        unit[PNB__MAX_QUESTION_ID]; /* unit "": by itself */
    const char *type;
    const char **candidates, **answers;
    double *scores, *uncertainty;
    pnb_vqa_question q; /* views of the above */
} pnb__question;

/* Reads the n bytes of line `number`, which is the question's id where the line has none. The
 * question is released with _reset after a failure too.  Errors  FORMAT (what is wrong), NOMEM */
pnb_status pnb__question_parse(pnb__question *q, const char *line, size_t n, size_t number,
                               pnb_error *err);
/* What the question is resampled with: its picture, as questions about one are right and wrong
 * together, or the field `key`.  Errors  FORMAT; NOT_FOUND (the line has no such field) */
pnb_status pnb__question_read_unit(pnb__question *q, const char *key, pnb_error *err);
/* Scores and uncertainties of the line, one a candidate; NULL where it has none.
 * Errors  FORMAT, NOMEM */
pnb_status pnb__question_read_scores(pnb__question *q, pnb_error *err);
void pnb__question_reset(pnb__question *q);

#endif
