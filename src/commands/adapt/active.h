/* Active learning with adapters: which pictures to label next, and what that is worth. */
#ifndef PNB_COMMANDS_ADAPT_ACTIVE_H
#define PNB_COMMANDS_ADAPT_ACTIVE_H

#include "commands/adapt/compare.h"

typedef struct pnb__adapt_active_opts {
    pnb__text_list adapters; /* folders whose uncertainty chooses, learned elsewhere */
    pnb__text_list methods;  /* names: learned anew from what is labelled, in every round */
    pnb__pair_paths pool, test;
    pnb_truth_read_opts read; /* of both; its split is not read */
    const char *split, *test_split;
    const char *tune;              /* method that is learned from what is labelled */
    size_t start, count, n_rounds; /* pictures labelled before the first round, and in each */
    size_t n_seeds;
    uint64_t seed;          /* the first of them */
    bool leaves_random_out; /* of the strategies, where somebody has its curve already */
    pnb_adapt_recipe recipe;
    int64_t steps;   /* 0: the recipe's */
    const char *csv; /* curves to write, or NULL */
} pnb__adapt_active_opts;

/* Errors  ARG (fewer pictures than the rounds label, an adapter without uncertainty), and those of
 *         loading, learning and applying */
pnb_status pnb__adapt_active(pnb__app *app, const pnb__adapt_active_opts *opts, pnb__result *r);

#endif
