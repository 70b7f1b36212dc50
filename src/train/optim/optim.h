/* An optimiser over a list of parameters; algorithms in include/penumbra/optim.h. */
#ifndef PNB_TRAIN_OPTIM_H
#define PNB_TRAIN_OPTIM_H

#include "penumbra/optim.h"
#include "tensor/graph.h"
#include "train/ranks/exchange.h"

/* Which share of the schedule's rate a parameter takes, by the step: `early` before from_step, and
 * `rate` from then on. A share of 0 before it: the parameter stands still, its gradient is not in
 * the norm, and its updates count t from from_step, as a new optimiser's would. Two phases of PCME:
 * heads {1, 0.1, n}, the trunk below them {0, 0.1, n}. A function of the step alone, so a resumed
 * run goes on in the same phase. */
typedef struct pnb__optim_group {
    double early, rate;
    int64_t from_step; /* counted from 0; 0: `rate` always */
} pnb__optim_group;

/* Of the numbers of all parameters, one after the other, a process keeps the state of its share
 * and makes their update; {0, 1} is all. */
typedef struct pnb__optim_share {
    size_t rank, n_ranks;
} pnb__optim_share;

/* State of one parameter. m and v are device memory of the numbers at .. at + n - 1 that are ours,
 * NULL where the kind has none or none are. */
typedef struct pnb__optim_slot {
    pnb__param *param;
    size_t at, n;
    void *m, *v;
    double weight_decay;
    pnb__optim_group group;
} pnb__optim_slot;

typedef struct pnb__optim {
    const pnb_ctx *ctx;
    pnb__kernels kernels;
    pnb_optim_opts opts;
    pnb__optim_slot *slots;
    size_t n_slots;
    pnb__optim_share share;
    void *whole;      /* host copy of everybody's state while a checkpoint is written; NULL else */
    pnb__flat *grads; /* room for a list of all gradients */
    pnb__optim_args *list; /* and of all updates */
    int64_t step;          /* updates done */
} pnb__optim;

/* Errors  ARG, naming what is out of range; pnb__optim_create checks too. */
pnb_status pnb__optim_check_opts(const pnb_optim_opts *o, pnb_error *err);
/* Takes the trainable ones of `n` parameters, with weight decay by pnb_optim_is_excluded, and
 * zeroed state. The parameters must outlive it. Errors  ARG, NOMEM */
pnb_status pnb__optim_create(pnb__optim **out, const pnb_ctx *ctx, pnb__real real,
                             pnb__param *const *params, size_t n, const pnb_optim_opts *opts,
                             pnb_error *err);
/* The same for one share of several: as many numbers as each other's, whole parameters where the
 * update looks at rows (adamp, sgdp). */
pnb_status pnb__optim_create_share(pnb__optim **out, const pnb_ctx *ctx, pnb__real real,
                                   pnb__param *const *params, size_t n, const pnb_optim_opts *opts,
                                   const pnb__optim_share *share, pnb_error *err);
void pnb__optim_free(pnb__optim *o);
double pnb__optim_state_bytes(const pnb__optim *o); /* of the moments that this process keeps */
/* The group of one of its parameters, {1, 1, 0} before; others are left alone.
 * Errors  ARG (a share that is negative or not finite, a step below 0) */
pnb_status pnb__optim_set_group(pnb__optim *o, const pnb__param *param,
                                const pnb__optim_group *group, pnb_error *err);
/* Whether the parameter of slot s is updated in the next step. */
bool pnb__optim_is_moving(const pnb__optim *o, const pnb__optim_slot *s);

/* Every gradient becomes its sum over the processes; *culprit as pnb__exchange says. */
pnb_status pnb__optim_sum_grads(pnb__optim *o, const pnb__exchange *exchange, int *culprit,
                                pnb_error *err);
/* Global L2 norm of all gradients, in double. Parameters without a gradient or that stand still
 * count 0. */
double pnb__optim_grad_norm(const pnb__optim *o);
/* min(1, max/(norm + 1e-6)) as torch's clip_grad_norm_; 1 without clipping. */
double pnb__optim_clip_factor(const pnb__optim *o, double norm);
/* One update with every gradient multiplied by `grad_scale`. Parameters whose grad is NULL stay. */
void pnb__optim_step(pnb__optim *o, double lr, double grad_scale);

/* ---- optim_share.c ---- Of {0, 1} both do nothing. Errors  those of the other processes, NOMEM */
/* After an update: every process gets the numbers that the others updated. */
pnb_status pnb__optim_spread(pnb__optim *o, pnb_peers *ranks, pnb_error *err);
/* Before a save, by all processes: rank 0 gets the state of all, until it is dropped. */
pnb_status pnb__optim_collect(pnb__optim *o, pnb_peers *ranks, pnb_error *err);
void pnb__optim_drop(pnb__optim *o);
/* First number of a share in the row of all parameters; of n_ranks: how many there are. */
size_t pnb__optim_share_at(const pnb__optim *o, size_t rank);

/* State to and from a safetensors file: "exp_avg.<name>", "exp_avg_sq.<name>" and the step.
 * Loading checks names and shapes first: a file that does not fit changes nothing. */
pnb_status pnb__optim_save(const pnb__optim *o, const char *path, pnb_error *err);
pnb_status pnb__optim_load(pnb__optim *o, const char *path, pnb_error *err);

#endif
