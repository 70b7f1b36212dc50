/* Optimisers and learning-rate schedules.
 *
 * g is the gradient after clipping, t counts from 1, wd the weight decay of the parameter.
 *   sgd    g += wd p; m = g at t = 1, then momentum m + (1 - dampening) g; p -= lr m
 *          (nesterov: p -= lr (g + momentum m))
 *   adam   g += wd p; then p -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
 *   adamw  p *= 1 - lr wd first, then as adam without decay in g
 *   adamp, sgdp   the update's part along p is projected out of parameters of two or more
 *          dimensions where |cos(p, g)| < delta/sqrt(columns), channel-wise first, then over the
 *          whole parameter; the decay there is multiplied by wd_ratio
 * Rates and updates are functions of the step and of what is saved beside the weights, so a resumed
 * run goes on with the same bits. docs/numerics-training.md#optimisers
 *
 * Source  torch.optim (sgd, adam, adamw); Heo et al. 2021 and their code (adamp, sgdp) */
#ifndef PENUMBRA_OPTIM_H
#define PENUMBRA_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimisers ---- */

/* X(NAME, name): the one list behind the enum, the names of options and of state.json. */
#define PNB_OPTIM_LIST(X) X(SGD, sgd) X(ADAM, adam) X(ADAMW, adamw) X(ADAMP, adamp) X(SGDP, sgdp)

typedef enum pnb_optim_kind {
#define PNB_OPTIM_ENUM(NAME, name) PNB_OPTIM_##NAME,
    PNB_OPTIM_LIST(PNB_OPTIM_ENUM)
#undef PNB_OPTIM_ENUM
        PNB_N_OPTIM_KINDS /* how many there are */
} pnb_optim_kind;

/* As options and state.json spell it ("adamw"); NULL outside the list. */
const char *pnb_optim_name(pnb_optim_kind kind);

/* One set of numbers for all kinds; each reads those that its formula has. */
typedef struct pnb_optim_opts {
    pnb_optim_kind kind;        /* ADAMW */
    double lr;                  /* base rate of the schedule, 0 or more */
    double beta1, beta2;        /* adam, adamw, adamp: decay of the two moments, in [0, 1) */
    double eps;                 /* added to the root of the second moment, 0 or more */
    double momentum, dampening; /* sgd and sgdp */
    bool nesterov;              /* sgd, sgdp, adamp: look one step of momentum ahead */
    double weight_decay; /* wd, 0 or more. Matrices only: parameters with fewer than two dimensions,
                          * biases, norms and the logit scale have none (open_clip's rule) */
    double delta, wd_ratio; /* adamp and sgdp, see above */
    double grad_clip_norm;  /* 0: no clipping; else g *= min(1, max/(norm + 1e-6)) over all */
} pnb_optim_opts;

/* ProLIP's recipe: AdamW, lr 5e-4, betas 0.9 / 0.95, eps 1e-6, wd 0.2, no clipping; for the other
 * kinds momentum 0.9, dampening 0, delta 0.1, wd_ratio 0.1. */
pnb_optim_opts pnb_optim_opts_default(void);

/* Whether the rule above takes weight decay from a parameter, by its name in the weight file and
 * its number of dimensions: fewer than two, or a name that holds "bn", "ln", "bias" or
 * "logit_scale". So position embeddings decay and class embeddings do not.
 * Source  open_clip's main.py */
bool pnb_optim_is_excluded(const char *name, int n_dims);

/* ---- schedules ---- */

/* X(NAME, name): the one list behind the enum and the names of options; formulas below. */
#define PNB_SCHEDULE_LIST(X)                                                                       \
    X(COSINE, "cosine")                                                                            \
    X(CONST, "const")                                                                              \
    X(COOLDOWN, "const-cooldown")                                                                  \
    X(TORCH_COSINE, "torch-cosine")                                                                \
    X(MULTISTEP, "multistep")

typedef enum pnb_schedule_kind {
#define PNB_SCHEDULE_ENUM(NAME, name) PNB_SCHEDULE_##NAME,
    PNB_SCHEDULE_LIST(PNB_SCHEDULE_ENUM)
#undef PNB_SCHEDULE_ENUM
        PNB_N_SCHEDULE_KINDS /* how many there are */
} pnb_schedule_kind;

/* As options spell it ("const-cooldown"); NULL outside the list. */
const char *pnb_schedule_name(pnb_schedule_kind kind);

/* Steps at which one schedule may fall: published recipes have one to three. */
enum { PNB_MAX_MILESTONES = 4 };

/* The rate of step t = 0, 1, ...; all but TORCH_COSINE open with base (t+1)/warmup for t < warmup.
 *   COSINE        min + (base - min) (1 + cos(pi (t-warmup)/(total-warmup))) / 2; min after total
 *   CONST         base
 *   COOLDOWN      base, and over the last `cooldown` steps
 *                 (1 - (t - (total-cooldown))/cooldown)^power (base - end) + end
 *   TORCH_COSINE  min + (base - min) (1 + cos(pi t / total)) / 2: rises again after total
 *   MULTISTEP     base gamma^n, n milestones at or before t; of the whole run, whatever `restart`
 * Source  open_clip's scheduler.py; torch's CosineAnnealingLR and MultiStepLR in closed form */
typedef struct pnb_schedule {
    pnb_schedule_kind kind;
    double base;           /* largest rate */
    int64_t warmup;        /* steps of the linear rise; 0: none */
    int64_t total;         /* steps of the whole run, warmup and cooldown included. CONST does not
                            * read it */
    double min_ratio;      /* min = min_ratio * base, in [0, 1] */
    int64_t cooldown;      /* steps at the end, COOLDOWN only; 0: none */
    int64_t restart;       /* the step at which a second course over what is left begins; 0: none */
    double cooldown_power; /* 1: a straight line */
    double cooldown_end;   /* the rate it ends at */
    /* MULTISTEP only: steps from 1 on, each larger than the one before; 0 behind the last */
    int64_t milestones[PNB_MAX_MILESTONES];
    double gamma; /* what the rate is multiplied by at each of them */
} pnb_schedule;

/* The rate of a step from 0 on, by the step alone: a resumed run continues the same curve. Never
 * fails. */
double pnb_schedule_lr(const pnb_schedule *s, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
