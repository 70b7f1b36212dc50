/* Recipes of train by name. */
#ifndef PNB_COMMANDS_TRAIN_TRAIN_RECIPES_H
#define PNB_COMMANDS_TRAIN_TRAIN_RECIPES_H

#include <stdio.h>

#include "penumbra/train.h"
#include "program/options.h"

/* `where` of a row says where its value is from. */
typedef struct pnb__train_recipe {
    const char *name, *meaning;
    const char *source, *tried, *use; /* of the whole; a command line */
    const pnb__preset *rows;
    size_t n_rows;
    pnb_objective objective; /* whose published values the rows stand on */
    bool goes_on;            /* from a model: its rates are none for new weights */
} pnb__train_recipe;

/* NULL: no such recipe. */
const pnb__train_recipe *pnb__train_recipe_find(const char *name);
/* As a config file. Errors  IO */
pnb_status pnb__train_recipe_show(const pnb__train_recipe *r, FILE *out, pnb_error *err);

#endif
