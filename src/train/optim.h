/* An optimiser over a list of parameters; algorithms in include/penumbra/optim.h. */
#ifndef PNB_TRAIN_OPTIM_H
#define PNB_TRAIN_OPTIM_H

#include "penumbra/optim.h"
#include "tensor/graph.h"
#include "train/exchange.h"

/* State of one parameter. m and v are device memory of its size, NULL where the kind has none. */
typedef struct pnb__optim_slot {
    pnb__param *param;
    void *m, *v;
    double weight_decay;
} pnb__optim_slot;

typedef struct pnb__optim {
    const pnb_ctx *ctx;
    pnb__kernels kernels;
    pnb_optim_opts opts;
    pnb__optim_slot *slots;
    size_t n_slots;
    pnb__flat *grads;      /* room for a list of all gradients */
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
void pnb__optim_free(pnb__optim *o);

/* Every gradient becomes its sum over the processes. */
pnb_status pnb__optim_sum_grads(pnb__optim *o, const pnb__exchange *exchange, pnb_error *err);
/* Global L2 norm of all gradients, in double. Parameters without a gradient count 0. */
double pnb__optim_grad_norm(const pnb__optim *o);
/* min(1, max/(norm + 1e-6)) as torch's clip_grad_norm_; 1 without clipping. */
double pnb__optim_clip_factor(const pnb__optim *o, double norm);
/* One update with every gradient multiplied by `grad_scale`. Parameters whose grad is NULL stay. */
void pnb__optim_step(pnb__optim *o, double lr, double grad_scale);

/* State to and from a safetensors file: "exp_avg.<name>", "exp_avg_sq.<name>" and the step.
 * Loading checks names and shapes first: a file that does not fit changes nothing. */
pnb_status pnb__optim_save(const pnb__optim *o, const char *path, pnb_error *err);
pnb_status pnb__optim_load(pnb__optim *o, const char *path, pnb_error *err);

#endif
