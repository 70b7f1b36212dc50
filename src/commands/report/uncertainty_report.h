/* What the learned uncertainty is claimed to show, measured: order of caption levels, masking. */
#ifndef PNB_COMMANDS_REPORT_UNCERTAINTY_REPORT_H
#define PNB_COMMANDS_REPORT_UNCERTAINTY_REPORT_H

#include "penumbra/prob.h"
#include "penumbra/truth.h"
#include "program/app.h"
#include "program/result_end.h"

enum { PNB__MAX_LEVELS = 8 };

/* Embedding sets; the masked ones hold the same rows in the same order. All but `texts` may be
 * NULL. */
typedef struct pnb__uncertainty_report_sets {
    const char *images, *texts, *truth, *masked_images, *masked_texts;
    pnb_truth_read_opts read; /* of the truth */
} pnb__uncertainty_report_sets;

/* NaN: not measured, because a set is missing. */
typedef struct pnb__uncertainty_report {
    int n_levels;
    double level_mean[PNB__MAX_LEVELS]; /* mean uncertainty of the captions of a level */
    size_t level_n[PNB__MAX_LEVELS];
    pnb_measure measure; /* of the scores: what the sets' families and adapters suit */
    double level_score[PNB__MAX_LEVELS]; /* mean score of the true pairs of a level's captions */
    double score_rises; /* share of pictures whose captions of the last level score above level 0 */
    double image_mean;
    double first_above_last; /* share of (level 0, last level) caption pairs, all of them */
    double image_above;      /* the same between the true captions of one picture, averaged */
    double image_in_order;   /* share of pictures whose levels all fall */
    double masked_image_above, masked_text_above; /* masked copy more uncertain */
    double image_included, text_included;         /* H(original in masked) > 0 */
    double image_in_text;                         /* true pairs with H(image in caption) > 0 */
} pnb__uncertainty_report;

/* Errors  SHAPE (a masked set has other rows), ARG (sets of different weights), and loading */
pnb_status pnb__uncertainty_report_measure(pnb__app *app, const pnb__uncertainty_report_sets *sets,
                                           pnb__uncertainty_report *out);

/* The claims as values and as a table; control may be NULL. */
void pnb__uncertainty_report_show(const pnb__uncertainty_report *claims,
                                  const pnb__uncertainty_report *control, pnb__result *r);

#endif
