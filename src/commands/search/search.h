/* Search in an embedding set by captions, pictures or another set. */
#ifndef PNB_COMMANDS_SEARCH_SEARCH_H
#define PNB_COMMANDS_SEARCH_SEARCH_H

#include "commands/common/match_probability_use.h"
#include "program/app.h"
#include "program/result.h"

typedef struct pnb__search_opts {
    const char *index, *model, *queries; /* model or queries may be NULL */
    const char *tokenizer, *preprocess;  /* NULL: the model's own */
    const pnb__text_list *texts, *images;
    const char *measure;
    const char *html; /* page of the hits to write, or NULL */
    size_t k;         /* 0: 10, or with limits.conformal_alpha the whole list */
    pnb__list_limits limits;
    bool exif; /* turn pictures as their EXIF orientation says */
} pnb__search_opts;

/* Errors  ARG (queries and index come from different weights, a limit that the calibration cannot
 * give), NOT_FOUND (a limit without a calibration), SHAPE, and loading */
pnb_status pnb__search_run(pnb__app *app, const pnb__search_opts *opts, pnb__result *r);

#endif
