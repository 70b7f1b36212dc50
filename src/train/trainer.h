/* One training run in memory: what the files of this folder share. */
#ifndef PNB_TRAIN_TRAINER_H
#define PNB_TRAIN_TRAINER_H

#include "io/json/json.h"
#include "models/prolip/prolip.h"
#include "penumbra/train.h"
#include "train/loss.h"
#include "train/mask.h"
#include "train/optim.h"

/* Paths of a run and the lock that keeps other processes out; rundir.c. */
typedef struct pnb__rundir {
    char *dir, *checkpoints;
    int lock;
    FILE *log, *results, *events; /* events NULL without TensorBoard */
} pnb__rundir;

/* EXISTS when <logs>/<name> holds a run; makes nothing. */
pnb_status pnb__rundir_check_new(const pnb_train_opts *o, pnb_error *err);
/* Opens <logs>/<name>, makes it if new, takes its lock. resume NULL: EXISTS when a run is there. */
pnb_status pnb__rundir_open(pnb__rundir *r, const pnb_train_opts *o, pnb_error *err);
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
    double best_loss;   /* validation loss of `best_name`; NaN: none yet */
    char best_name[64]; /* the checkpoint kept as the best one; "" */
} pnb__train_state;

/* One optimiser step's graphs; step.c. */
typedef struct pnb__step_graphs pnb__step_graphs;

/* Values of one step for logs. */
typedef struct pnb__step_values {
    double term[PNB_N_LOSS_TERMS], total;
    double lr, grad_norm, logit_scale, logit_bias;
    double image_unc, text_unc; /* mean traces, 0 without uncertainty */
    double data_s, batch_s;
} pnb__step_values;

/* ---- context.c ---- Lengths of captions as they are drawn, in tokens, special ones included. */
typedef struct pnb__context {
    int length;          /* 99 of 100 draws have no more, at most 77 */
    double share_within; /* of the draws, no longer than that */
    size_t n_captions;   /* measured; 0: none were */
    int longest;
} pnb__context;

/* What a caption is put into, with probability `share`. */
typedef struct pnb__templates {
    const char *const *texts;
    size_t n;
    double share;
} pnb__templates;

typedef struct pnb__trainer {
    const pnb_ctx *ctx;
    const pnb_train_opts *opts;
    pnb__rundir run;
    pnb_dataset *train, *val;
    pnb_loader *loader, *val_loader; /* val_loader NULL without validation data */
    pnb_model *model;
    const pnb_model_info *info;
    pnb_tokenizer *tokenizer;
    pnb_preprocess preprocess;
    pnb__context context;                 /* as chosen from the data; all zero: not chosen */
    pnb__param *logit_scale, *logit_bias; /* NULL when the model has none */
    pnb__optim *optim;
    pnb_schedule schedule;
    pnb__step_graphs *step_graphs;
    pnb__train_state state;
    int64_t n_steps, steps_per_epoch;
    double started_s; /* clock at the first step of this process */
    int64_t first_step;
    double sum_data_s, sum_batch_s; /* since the last log line */
    int64_t n_sums;
    double epoch_sum[PNB_N_LOSS_TERMS], epoch_total; /* for open_clip's means in brackets */
    int64_t n_epoch_sum;
    int64_t last_eval_step;
    pnb_train_result *result;
} pnb__trainer;

/* Measures the captions of at most 20,000 samples, evenly drawn. */
pnb_status pnb__context_measure(const pnb_dataset *set, const pnb_tokenizer *tokenizer,
                                const pnb__templates *in, pnb__context *out, pnb_error *err);
/* Sets text_cfg.context_length of a configuration by the training captions where it is the built-in
 * `tiny` and nobody names a length. The tokenizer is configured already. */
pnb_status pnb__context_choose(pnb__trainer *t, const char *name, json_t *config, pnb_error *err);

/* ---- setup.c ---- data sets, tokenizer, model, optimiser; `checkpoint` NULL for a new run. */
pnb_status pnb__trainer_setup(pnb__trainer *t, const char *checkpoint, pnb_error *err);
void pnb__trainer_reset(pnb__trainer *t);

/* ---- model_setup.c ---- model, tokenizer and preprocessing from opts->model or `checkpoint`. */
pnb_status pnb__trainer_open_model(pnb__trainer *t, const char *checkpoint, pnb_error *err);

/* ---- step.c ---- */
pnb_status pnb__step_create(pnb__step_graphs **out, pnb__trainer *t, pnb_error *err);
void pnb__step_free(pnb__step_graphs *s);
pnb__text_masker pnb__trainer_masker(const pnb__trainer *t);
size_t pnb__step_bytes(const pnb__step_graphs *s); /* planned memory of its graphs */
/* Reads accum_freq batches, computes losses and gradients (left in the parameters' `grad`).
 * Errors  NUMERIC (a term or the gradient is not finite: step and term named), those of the data */
pnb_status pnb__step_run(pnb__step_graphs *s, pnb__trainer *t, pnb__step_values *out,
                         pnb_error *err);

/* ---- checkpoint.c ---- */
/* Writes checkpoints/<name> whole or not at all, moves `latest` and `best`, removes what it
 * replaces. */
pnb_status pnb__checkpoint_write(pnb__trainer *t, const char *name, pnb_error *err);
/* Writes checkpoints/best_unc_step_N, moves the link `epoch_best_unc`, removes the one before. */
pnb_status pnb__checkpoint_write_best(pnb__trainer *t, pnb_error *err);
/* Reads optimiser and state from a checkpoint whose model is already open. */
pnb_status pnb__checkpoint_read(pnb__trainer *t, const char *dir, pnb_error *err);

/* ---- evaluate.c ---- */
/* Losses and retrieval on the validation set with the weights as they are; out->done false when
 * there is no validation set. */
pnb_status pnb__evaluate(pnb__trainer *t, pnb_train_eval *out, pnb_error *err);
/* exp(logit_scale) and logit_bias of the weights as they are. */
double pnb__trainer_scale(const pnb__trainer *t);
double pnb__trainer_bias(const pnb__trainer *t);

/* ---- unc_bins.c ---- */
typedef struct pnb__answer {
    double trace; /* the query's uncertainty */
    size_t row;   /* orders equal traces */
    bool right;
} pnb__answer;
/* pnb_train_eval.i2t_unc_r of n queries; sorts them. */
double pnb__unc_correlation(pnb__answer *answers, size_t n);

/* ---- record.c ---- out.log and results.jsonl; Errors  IO */
pnb_status pnb__record_info(pnb__trainer *t, pnb_error *err, const char *fmt, ...) PNB_PRINTF(3, 4);
/* Adds a step to the means; writes a line when one is due. */
pnb_status pnb__record_step(pnb__trainer *t, const pnb__step_values *v, pnb_error *err);
pnb_status pnb__record_eval(pnb__trainer *t, const pnb_train_eval *e, pnb_error *err);

#endif
