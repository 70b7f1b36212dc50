/* Accuracy and uncertainty of changed pictures: with their middle erased, and attacked. What is
 * asked for and what was found; classify.h has the function between them. */
#ifndef PNB_COMMANDS_CLASSIFY_CHANGED_TABLES_H
#define PNB_COMMANDS_CLASSIFY_CHANGED_TABLES_H

#include "penumbra/bootstrap.h"
#include "program/app.h"
#include "program/result_end.h"

enum { PNB__MAX_CHANGES = 24 };

/* What is asked for; n_shares and n_steps 0: nothing. */
typedef struct pnb__changed_opts {
    pnb__text_list share_words, step_words; /* as typed */
    double share[PNB__MAX_CHANGES];         /* of the picture that is erased, ascending in [0,1] */
    size_t n_shares;
    size_t steps[PNB__MAX_CHANGES]; /* after which the attack is looked at, ascending from 1 */
    size_t n_steps;
    double eps, step; /* of the attack, in units of 1/255; NaN: 8 and 2 */
    size_t limit;     /* pictures that are changed, evenly spaced; 0: 1000 */
} pnb__changed_opts;

/* What the pictures are classified as after a change. */
typedef struct pnb__changed_point {
    double at;          /* share erased, or steps done */
    pnb_interval acc1;  /* by the measure of the run */
    pnb_interval plain; /* by the means alone */
    double u, u_half;   /* mean uncertainty and half of its 95% interval */
    double loss;        /* mean -log p of the label */
    double change;      /* root mean square change of a pixel, in units of 1/255 */
} pnb__changed_point;

typedef struct pnb__changed {
    size_t n_images; /* 0: nothing was asked for */
    bool has_plain;  /* the run's measure looks at more than means */
    bool has_u;      /* the pictures are more than points */
    pnb__changed_point occlusion[PNB__MAX_CHANGES];
    pnb__changed_point attack[PNB__MAX_CHANGES + 1];  /* the first: pictures as they are */
    pnb__changed_point control[PNB__MAX_CHANGES + 1]; /* noise of the same size */
} pnb__changed;

/* Reads the words of shares and steps into numbers. Errors  those of pnb__usage */
pnb_status pnb__changed_opts_read(pnb__app *app, pnb__changed_opts *opts);
void pnb__changed_put(const pnb__changed *changed, const pnb__changed_opts *opts, pnb__result *r);

#endif
