/* One training run in memory: what the files of this folder share. What is trained is the
 * objective's (objective.h); nothing here knows a model. */
#ifndef PNB_TRAIN_TRAINER_H
#define PNB_TRAIN_TRAINER_H

#include "train/objective.h"
#include "train/optim/optim.h"
#include "train/optim/weight_average.h"
#include "train/run/run_options.h"

/* Paths of a run and the lock that keeps other processes out; rundir.c. */
typedef struct pnb__rundir {
    char *dir, *checkpoints;
    int lock;
    FILE *log, *results, *events; /* events NULL without TensorBoard */
} pnb__rundir;

/* EXISTS when <logs>/<name> holds a run; makes nothing. */
pnb_status pnb__rundir_check_new(const pnb__run_opts *o, pnb_error *err);
/* Opens <logs>/<name>, makes it if new, takes its lock. resume NULL: EXISTS when a run is there.
 * `settings` (n of them) are written into a new run's params.txt. */
pnb_status pnb__rundir_open(pnb__rundir *r, const pnb__run_opts *o, const pnb__settings *settings,
                            size_t n, pnb_error *err);
/* Opens out.log and results.jsonl for appending; lines of results.jsonl after `step` go first, they
 * belong to steps that are trained again. */
pnb_status pnb__rundir_open_logs(pnb__rundir *r, int64_t step, pnb_error *err);
/* Opens an event file whose values begin at `step`. */
pnb_status pnb__rundir_open_events(pnb__rundir *r, int64_t step, pnb_error *err);
void pnb__rundir_close(pnb__rundir *r);
/* Directory of the checkpoint to resume from, allocated; NOT_FOUND when there is none. */
pnb_status pnb__rundir_find_checkpoint(const pnb__rundir *r, const char *resume, char **out,
                                       pnb_error *err);

/* Where training stands; saved with every checkpoint. */
typedef struct pnb__train_state {
    int64_t step; /* optimiser steps done */
    pnb_loader_position position;
    double best_unc_r;  /* of the best checkpoint by save_best_unc; NaN: none yet */
    double best_value;  /* pnb__eval_values.best of `best_name`; NaN: none yet */
    char best_name[64]; /* the checkpoint kept as the best one; "" */
} pnb__train_state;

/* What a run came to; the objective's own figures are with the objective. */
typedef struct pnb__run_result {
    char run_dir[1024], checkpoint_dir[1024], best_dir[1024]; /* as in pnb_train_result */
    int64_t step, n_steps, epoch;
    double total; /* of the last step */
    double seconds, data_s, samples_per_s;
    size_t graph_bytes;
} pnb__run_result;

enum { PNB__N_SETTINGS = 2 }; /* the objective's and the run's */

struct pnb__trainer {
    const pnb_ctx *ctx;
    const pnb__run_opts *opts;
    pnb__objective objective;
    const pnb__exchange *exchange;
    pnb__settings settings[PNB__N_SETTINGS];
    pnb__rundir run;
    pnb__optim *optim;
    pnb__weight_average *average; /* NULL: none was asked for */
    pnb_schedule schedule;
    pnb__train_state state;
    int64_t n_steps, steps_per_epoch;
    double started_s; /* clock at the first step of this process */
    int64_t first_step;
    double sum_data_s, sum_batch_s; /* since the last log line */
    int64_t n_sums;
    double waited_s; /* for sums of gradients that backward did not hide, since the first step */
    double epoch_sum[PNB__MAX_FIGURES], epoch_total; /* for open_clip's means in brackets */
    int64_t n_epoch_sum;
    pnb__eval_values eval; /* of step last_eval_step; -1: there was none */
    int64_t last_eval_step;
    pnb__run_result *result;
};

/* Whether there is a folder to write into. */
static inline bool pnb__is_kept(const pnb__trainer *t)
{
    return t->opts->logs != NULL;
}

/* Logs and checkpoints are rank 0's to write; the others do all else alike. */
static inline bool pnb__is_writer(const pnb__trainer *t)
{
    return pnb__is_kept(t) && t->exchange->rank == 0;
}

/* ---- run_open.c ---- Everything before the first step; what is opened, reset closes.
 * Errors  as pnb_train */
pnb_status pnb__trainer_open(pnb__trainer *t, pnb_error *err);

/* ---- loop.c ---- */
/* Trains until the end or until *opts->stop is set; `out` is filled in both cases. `opts` and what
 * the objective points to must outlive it. Errors  as pnb_train */
pnb_status pnb__trainer_run(const pnb_ctx *ctx, const pnb__run_opts *opts,
                            const pnb__objective *objective, pnb__run_result *out, pnb_error *err);

/* The parts of a run, for benches and tests. Nothing is opened by init; reset ends all of it. */
void pnb__trainer_init(pnb__trainer *t, const pnb_ctx *ctx, const pnb__run_opts *opts,
                       const pnb__objective *objective, pnb__run_result *result);
/* Data, parameters, optimiser; `checkpoint` NULL for a new run. */
pnb_status pnb__trainer_setup(pnb__trainer *t, const char *checkpoint, pnb_error *err);
void pnb__trainer_reset(pnb__trainer *t);
/* Samples of one step, those of all processes. */
double pnb__trainer_samples_per_step(const pnb__trainer *t);
/* The objective's step, gradients summed over processes, numbers checked; no update.
 * Errors  NUMERIC (a term or the gradient is not finite: step and term named), the objective's */
pnb_status pnb__trainer_step(pnb__trainer *t, pnb__step_values *out, pnb_error *err);
/* The update of that step at the schedule's rate; counts the step. Errors  the objective's */
pnb_status pnb__trainer_update(pnb__trainer *t, pnb__step_values *v, pnb_error *err);

/* ---- train_checkpoint.c ---- */
/* Writes checkpoints/<name> whole or not at all, moves `latest` and `best`, removes what it
 * replaces. */
pnb_status pnb__checkpoint_write(pnb__trainer *t, const char *name, pnb_error *err);
/* Writes checkpoints/best_unc_step_N, moves the link `epoch_best_unc`, removes the one before. */
pnb_status pnb__checkpoint_write_best(pnb__trainer *t, pnb_error *err);
/* Its name: "ema" of a moving mean, else "swa". */
const char *pnb__checkpoint_mean_name(const pnb__trainer *t);
/* Writes the mean of the weights as checkpoints/swa or ema, which stays in place of the weights:
 * the run is over. Unless it `writes` it only takes the mean, as long as rank 0 does. Errors  IO,
 * those of the objective */
pnb_status pnb__checkpoint_write_mean(pnb__trainer *t, bool writes, pnb_error *err);
/* Reads optimiser and state from a checkpoint whose objective is already open. */
pnb_status pnb__checkpoint_read(pnb__trainer *t, const char *dir, pnb_error *err);

/* ---- record.c ---- out.log and results.jsonl; Errors  IO */
pnb_status pnb__record_info(pnb__trainer *t, pnb_error *err, const char *fmt, ...) PNB_PRINTF(3, 4);
/* Adds a step to the means; writes a line when one is due. */
pnb_status pnb__record_step(pnb__trainer *t, const pnb__step_values *v, pnb_error *err);
pnb_status pnb__record_eval(pnb__trainer *t, const pnb__eval_values *e, pnb_error *err);

#endif
