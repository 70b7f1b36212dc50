/* Search in an embedding set by captions, pictures or another set. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_H
#define PNB_COMMANDS_SEARCH_SEARCH_H

#include "commands/common/match_probability_use.h"
#include "commands/common/match_use.h"
#include "commands/common/query.h"
#include "commands/common/rows/row_filter.h"
#include "program/app.h"
#include "program/result_end.h"
#include "sets/settle.h"

/* A set, and what is looked for in it. */
typedef struct pnb__search_input {
    const char *index, *model; /* the model may be NULL where the queries are a set */
    const char *collection;    /* in place of the index, or NULL */
    pnb__query queries;
    pnb_encoder_opts parts; /* of the model; `sides` follow from the queries */
} pnb__search_input;
/* Both as sets: what is words is encoded. `index` NULL: the queries alone. */
pnb_status pnb__search_input_load(pnb__app *app, const pnb__search_input *in,
                                  pnb_embeddings **index, pnb_embeddings **queries);

typedef struct pnb__search_opts {
    pnb__search_input in;
    pnb__row_filter filter;      /* rows of a collection */
    pnb_measure measure;         /* or PNB__MEASURE_AUTO */
    pnb__match_words match;      /* its constants, where it has any */
    const char *approx;          /* kind of index that looks for candidates; NULL: exact */
    double recall;               /* of those that aim at one */
    size_t shortlist;            /* items of a query that are scored, nearest means; 0: all */
    pnb_prediction prediction;   /* what p(match) makes of variances */
    size_t n_draws;              /* of sampling; 0: 400 */
    pnb_uncertainty uncertainty; /* of the hits, or PNB__UNCERTAINTY_AUTO */
    const char *html;            /* page of the hits to write, or NULL */
    size_t k;                    /* 0: 10, or with limits.conformal_alpha the whole list */
    pnb__list_limits limits;
} pnb__search_opts;

/* Errors  ARG (queries and index come from different weights, a limit that the calibration cannot
 * give), NOT_FOUND (a limit without a calibration), SHAPE, and loading */
pnb_status pnb__search_run(pnb__app *app, const pnb__search_opts *opts, pnb__result *r);

#endif
