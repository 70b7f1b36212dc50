/* Does uncertainty foretell a wrong nearest neighbour? The R-AUROC of the URL benchmark. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_NEAREST_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_NEAREST_H

#include "commands/eval/uncertainty/known_rows.h"
#include "penumbra/figures.h"
#include "program/result_end.h"

enum { PNB__N_REJECTED = 10 }; /* points of a curve: 0%, 10%, ... of the pictures not answered */

/* Pictures with a class that another one has too; what each score foretells of them. */
typedef struct pnb__nearest {
    size_t n, n_classless, n_alone; /* looked at; without a class; alone in theirs */
    double right;                   /* share whose nearest other picture is of their class */
    pnb_figure_intervals figures[PNB__MAX_KNOWN_SCORES]; /* of the side's scores that are there */
    double accuracy[PNB__MAX_KNOWN_SCORES][PNB__N_REJECTED]; /* share of right among the answered */
} pnb__nearest;

/* The nearest other picture by the cosine of means, right where both have the same value of the
 * field `key`. Pictures without a class are looked for by nobody.
 * Errors  ARG (no class of two pictures), FORMAT, NOMEM, those of search */
pnb_status pnb__nearest_measure(pnb__app *app, const pnb__known_side *side, const char *path,
                                const char *key, size_t n_resamples, pnb__nearest *out);

/* One sentence; the object "nearest" with its table and curves. */
void pnb__nearest_words(const pnb__known_side *side, const pnb__nearest *n, pnb__buf *text);
void pnb__nearest_put(const pnb__known_side *side, const pnb__nearest *n, const char *key,
                      pnb__result *r);

#endif
