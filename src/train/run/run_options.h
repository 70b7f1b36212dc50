/* What the loop is asked, whatever it trains: the sections "optimisation" and "run" of
 * pnb_train_opts (penumbra/train.h says what each field means). */
#ifndef PNB_TRAIN_RUN_OPTIONS_H
#define PNB_TRAIN_RUN_OPTIONS_H

#include "penumbra/train.h"
#include "train/run/run_settings.h"

typedef struct pnb__run_opts {
    pnb_optim_opts optim;
    pnb_schedule_kind lr_scheduler;
    int64_t warmup;
    double lr_min_ratio;
    int64_t epochs_cooldown;
    double lr_cooldown_power, lr_cooldown_end;
    int64_t lr_milestones[PNB_MAX_MILESTONES]; /* epochs */
    double lr_gamma;
    size_t batch_size; /* samples of one forward pass */
    int accum_freq;    /* forward passes of one step, those of all processes */
    bool grad_checkpointing;
    bool shard_optimizer; /* each process keeps a share of the optimiser's state */
    int64_t epochs, max_steps;
    int64_t head_epochs; /* of a first phase, behind which the schedule begins anew; 0: none */
    int64_t swa_start;   /* the weights after this epoch and each behind it are averaged; 0: none */
    double ema_decay;    /* of a moving mean of the weights; 0: none */
    uint64_t seed;

    const char *logs, *name, *resume; /* logs NULL: nothing is written, nothing can be resumed */
    const char *label;                /* what a run without a name is called after: the model */
    int workers;                      /* stands in such a name too */
    int64_t log_every_n_steps;
    int64_t val_frequency, val_every_n_steps;
    int64_t save_frequency, save_every_n_steps;
    bool delete_previous_checkpoint, save_most_recent;
    bool save_best_unc; /* keep the checkpoint of the lowest pnb__eval_values.unc_r */
    bool report_tensorboard;

    const volatile sig_atomic_t *stop;
    pnb_train_progress_fn progress;
    void *progress_user;
} pnb__run_opts;

/* Errors  ARG, naming the option and what it may be */
pnb_status pnb__run_check_opts(const pnb__run_opts *o, pnb_error *err);

/* Their table; `o` must outlive it. */
pnb__settings pnb__run_settings(const pnb__run_opts *o);

#endif
