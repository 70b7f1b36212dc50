/* A mean of a model's weights: over the end of its training, or a moving one over all of it. */
#ifndef PNB_TRAIN_WEIGHT_AVERAGE_H
#define PNB_TRAIN_WEIGHT_AVERAGE_H

#include "tensor/graph.h"

/* Stochastic weight averaging: the equal mean of the trained weights as they stood after steps
 * from_step, from_step + every, ...; PCME++ takes one an epoch from epoch 16 on.
 *   mean_n = mean_(n-1) n/(n+1) + p/(n+1)
 * With `decay` d above 0 a moving mean instead, from the weights at creation on:
 *   mean_n = d mean_(n-1) + (1 - d) p
 * Statistics that no step trains (batch norm's running means) are not averaged: who has some
 * computes them again over the data once the mean is in place (`refresh`).
 * Source  Izmailov et al. 2018, algorithm 1 */
typedef struct pnb__weight_average_opts {
    int64_t from_step, every; /* updates done: 0 and more; 1 and more */
    double decay;             /* 0: equal shares; below 1 */
} pnb__weight_average_opts;

typedef struct pnb__weight_average {
    pnb__kernels kernels;
    pnb__weight_average_opts opts;
    pnb__param *const *params; /* those given, */
    bool *is_averaged;         /* [n] the trainable ones, */
    pnb__param *mean;          /* [n] and their means */
    size_t n;
    int64_t n_models; /* in the mean */
    bool is_applied;  /* the parameters hold the mean, `mean` the trained weights */
} pnb__weight_average;

/* The parameters must outlive it; memory of as many numbers as they have.
 * Errors  ARG (from_step below 0, every below 1, a decay outside 0..1), NOMEM, IO */
pnb_status pnb__weight_average_create(pnb__weight_average **out, const pnb_ctx *ctx, pnb__real real,
                                      pnb__param *const *params, size_t n,
                                      const pnb__weight_average_opts *opts, pnb_error *err);
void pnb__weight_average_free(pnb__weight_average *a);

/* After `step` updates: takes the weights up where the step is one of those above. */
void pnb__weight_average_step(pnb__weight_average *a, int64_t step);

/* Puts the mean in place of the trained weights, then calls `refresh` (NULL: nothing to refresh);
 * and back. Where either fails the weights are those that were there before.
 * Errors  ARG (no model yet, applied already; not applied), NOMEM, IO, those of refresh */
typedef pnb_status (*pnb__refresh_fn)(void *user, pnb_error *err);
pnb_status pnb__weight_average_apply(pnb__weight_average *a, pnb__refresh_fn refresh, void *user,
                                     pnb_error *err);
pnb_status pnb__weight_average_restore(pnb__weight_average *a, pnb_error *err);

/* State of a checkpoint: "average.<name>" in the precision of training and the number of models.
 * Not while applied. A file that does not fit changes nothing.
 * Errors  ARG, IO, FORMAT, NOT_FOUND, SHAPE */
pnb_status pnb__weight_average_save(const pnb__weight_average *a, const char *path, pnb_error *err);
pnb_status pnb__weight_average_load(pnb__weight_average *a, const char *path, pnb_error *err);

#endif
