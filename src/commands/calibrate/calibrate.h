/* Fitting the match probability of a set, assessing it, and where the fit of a set lies. */
#ifndef PNB_COMMANDS_CALIBRATE_CALIBRATE_H
#define PNB_COMMANDS_CALIBRATE_CALIBRATE_H

#include "commands/eval/eval_retrieval.h"
#include "penumbra/calibrate.h"
#include "penumbra/embeddings.h"
#include "penumbra/truth.h"
#include "penumbra/view.h"
#include "program/app.h"
#include "program/result_end.h"
#include "report/page.h"

typedef struct pnb__calibrate_opts {
    pnb__retrieval_opts sets; /* which, their truth and their measure */
    bool gallery_is_texts;    /* which of them is searched in */
    const char *out;          /* NULL: beside the gallery */
    const char *plot;         /* HTML page of diagrams; NULL: none */
    pnb_match_opts match;
} pnb__calibrate_opts;

/* Fits, assesses, writes the file and fills the result. */
pnb_status pnb__calibrate_run(pnb__app *app, const pnb__calibrate_opts *opts, pnb__result *r);

/* How well the fit does on what it was not fitted to. */
void pnb__assessment_report(const pnb_match_probability_fit *fit, const pnb_match_assessment *a,
                            pnb__result *r);

/* Drawn from that: reliability over first hits and over all pairs; error rates found, and lengths
 * of conformal lists, against the error rates asked for. */
void pnb__draw_reliability(pnb__page *page);
void pnb__draw_lists(pnb__page *page);

/* What was fitted to, and what came of it. */
typedef struct pnb__match_calibrated {
    const pnb_embeddings *queries, *gallery;
    const pnb_rows *query_rows, *gallery_rows;
    const pnb_truth *truth; /* queries to rows of the gallery */
    const pnb_match_probability_fit *fit;
    const pnb__result *figures; /* what calibrate found */
} pnb__match_calibrated;

/* All four as one page, which opens with the surest right and the surest wrong first hit. */
pnb_status pnb__calibration_page(pnb__app *app, const char *path, const pnb__match_calibrated *c);

#endif
