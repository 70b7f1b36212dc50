/* Contrastive training of two towers, pictures and captions, in memory: what pnb_train trains.
 * The losses are loss.h's; the loop around it is the trainer's. */
#ifndef PNB_TRAIN_CONTRASTIVE_CONTRASTIVE_H
#define PNB_TRAIN_CONTRASTIVE_CONTRASTIVE_H

#include "io/json/json.h"
#include "models/lora/lora.h"
#include "models/model.h"
#include "penumbra/train.h"
#include "train/contrastive/mask.h"
#include "train/losses/loss.h"
#include "train/objective.h"
#include "train/run/run_options.h"
#include "train/trainer.h"

/* One optimiser step's graphs; step.c. */
typedef struct pnb__step_graphs pnb__step_graphs;

/* Lengths of captions as they are drawn, in tokens, special ones included. */
typedef struct pnb__context {
    int length;          /* 99 of 100 draws have no more, at most 77 */
    double share_within; /* of the draws, no longer than that */
    size_t n_texts;      /* measured; 0: none were */
    int longest;
} pnb__context;

/* Rows of a frozen teacher; teacher.c. */
typedef struct pnb__teacher pnb__teacher;

/* What a caption is put into, with probability `share`. */
typedef struct pnb__templates {
    const char *const *texts;
    size_t n;
    double share;
} pnb__templates;

typedef struct pnb__contrastive {
    const pnb_ctx *ctx;
    const pnb_train_opts *opts;
    pnb_train_opts *settled; /* the same, for what is chosen when data and model are open */
    pnb__run_opts *run;      /* the loop's part of them */
    const pnb__exchange *exchange;
    pnb_dataset *train, *val;
    pnb_loader *loader, *val_loader; /* val_loader NULL without validation data */
    pnb_model *model;
    const pnb_model_info *info;
    pnb_tokenizer *tokenizer;
    pnb_preprocess preprocess;
    bool is_fresh;         /* the weights are new: neither resumed nor a model directory's */
    size_t n_trunk_arrays; /* of --image-trunk; 0: none read */
    size_t n_words,
        n_words_found;    /* of --word-vectors: all, and those the file has; 0: none read */
    pnb__context context; /* as chosen from the data; all zero: not chosen */
    pnb__kernels kernels;
    pnb__param **params; /* that a checkpoint holds: of the model, or with LoRA those that train */
    pnb__lora *lora;     /* NULL: the weights themselves train */
    size_t n_adapted;    /* of params, with LoRA */
    const char *base_sha256;              /* of the file that a model with LoRA came from */
    pnb__param *logit_scale, *logit_bias; /* NULL when the model has none */
    bool is_planning;      /* a step is planned to learn what it would take, and takes nothing */
    size_t cache_bytes;    /* of decoded pictures in a loader, with opts->memory */
    double cost;           /* operations of what was chosen, of the least of all ways */
    pnb__teacher *teacher; /* NULL: no distillation */
    pnb__step_graphs *step_graphs;
    int64_t step, steps_per_epoch; /* step: the one that runs */
    double term[PNB_N_LOSS_TERMS]; /* of the last step */
    pnb_train_result *result;      /* the loop fills its part at the end */
} pnb__contrastive;

/* ---- contrastive.c ---- */
/* The objective of pnb_train; `opts` and `result` must outlive it. */
pnb__objective pnb__contrastive_objective(pnb__contrastive *c, const pnb_ctx *ctx,
                                          const pnb_train_opts *opts, pnb_train_result *result);
/* a = exp(logit_scale) and b = logit_bias of the weights as they are. Errors  IO */
pnb_status pnb__contrastive_scale(const pnb__contrastive *c, double *a, double *b, pnb_error *err);
pnb__text_masker pnb__contrastive_masker(const pnb__contrastive *c);

/* ---- announce.c ---- The objective's call `announce`. */
pnb_status pnb__contrastive_announce(void *self, pnb__trainer *t, pnb_error *err);

/* ---- share.c ---- what several processes have of a step, and say of it at the end */
/* o->accum_freq becomes that of all processes. With o->memory the passes are chosen later.  Errors
 * ARG (a global batch that does not divide, a process without a forward pass, options that need one
 * process) */
pnb_status pnb__contrastive_settle_share(pnb_train_opts *o, pnb_error *err);
/* o->marks of the training data and of what else is read and does not train.  Errors  NOMEM */
pnb_status pnb__contrastive_mark_data(const pnb__contrastive *c, pnb__objective *o, pnb_error *err);
/* Lines of out.log on cut captions and unreadable samples, of all processes. */
pnb_status pnb__contrastive_conclude(void *self, pnb__trainer *t, pnb_error *err);

/* ---- contrastive_options.c ---- */
/* PCME++'s code: as often one way as the other, of about equal shares (mixup_switch_prob 0.5; mixup
 * 2, cutmix 2). */
#define PNB__MIX_CUTMIX 0.5
#define PNB__MIX_ALPHA 2.0
/* All options but the loop's; `o` must outlive it. */
pnb__settings pnb__contrastive_settings(const pnb_train_opts *o);

/* ---- contrastive_check.c ---- */
/* Errors  ARG, naming the option and what it may be */
pnb_status pnb__contrastive_check_opts(const pnb_train_opts *o, pnb_error *err);
/* What the loop is asked. */
pnb__run_opts pnb__contrastive_run_opts(const pnb_train_opts *o);

/* ---- context.c ---- */
/* Measures the captions of at most 20,000 samples, evenly drawn. */
pnb_status pnb__context_measure(const pnb_dataset *set, const pnb_tokenizer *tokenizer,
                                const pnb__templates *in, pnb__context *out, pnb_error *err);
/* Sets text_cfg.context_length of a configuration by the training captions where it is the built-in
 * `tiny` and nobody names a length. The tokenizer is configured already. */
pnb_status pnb__context_choose(pnb__contrastive *c, const char *name, json_t *config,
                               pnb_error *err);

/* ---- model_setup.c ---- model, tokenizer and preprocessing from opts->model or `checkpoint`. */
pnb_status pnb__contrastive_open_model(pnb__contrastive *c, const char *checkpoint, pnb_error *err);
/* opts->word_vectors into the words of a fresh model, once c->kernels are there.
 * Errors  ARG (no words, not fresh), NOT_FOUND (no word of them), those of the file */
pnb_status pnb__contrastive_read_words(pnb__contrastive *c, pnb_error *err);

/* opts->image_trunk into the ResNet of a fresh model.
 * Errors  ARG (no ResNet, not fresh), those of the file */
pnb_status pnb__contrastive_read_trunk(pnb__contrastive *c, pnb_error *err);

/* ---- layers.c ---- */
/* Where a weight stands: its group of the tower's n_groups, 0 the embeddings, the last one the
 * heads. group -1: of neither tower, or of one without blocks. */
typedef struct pnb__layer {
    int64_t group, n_groups;
} pnb__layer;
pnb__layer pnb__contrastive_layer(const pnb_model *m, const char *name);
/* Weights of locked towers stand still, but for the groups that the options leave unlocked.
 * Errors  ARG (a tower without blocks, more groups than it has) */
pnb_status pnb__contrastive_lock(pnb__contrastive *c, pnb_error *err);

/* ---- teacher.c ---- */
bool pnb__teacher_is_asked(const pnb_train_opts *o);
/* Errors  ARG (sets without a weight, or the other way round) */
pnb_status pnb__teacher_check(const pnb_train_opts *o, pnb_error *err);
/* c->teacher where one is asked for, of c->train for c->model.
 * Errors  NOT_FOUND (rows of samples that are not there: how many, the first), ARG (no ids, a
 * family or width that the divergence does not take, two teachers), those of loading */
pnb_status pnb__teacher_open(pnb__contrastive *c, pnb_error *err);
void pnb__teacher_free(pnb__teacher *t);
size_t pnb__teacher_dim(const pnb__teacher *t);
double pnb__teacher_scale(const pnb__teacher *t); /* of its logits */
/* Row of a sample's picture (side 0), of the caption of number `pick` (side 1); -1: the data have
 * changed since it was opened. */
int32_t pnb__teacher_row(const pnb__teacher *t, int side, int64_t sample, int32_t pick);
/* A number of what its sets hold: their sizes, and up to 65,536 rows of each, evenly drawn. */
uint64_t pnb__teacher_mark(const pnb__teacher *t);
/* Its numbers, (D'); log_var of Gaussians only. */
const float *pnb__teacher_part(const pnb__teacher *t, int side, bool log_var, int32_t row);

/* ---- lora_setup.c ---- */
/* Errors  ARG (options that LoRA does not go with) */
pnb_status pnb__contrastive_check_lora(const pnb_train_opts *o, pnb_error *err);
/* With opts->lora_rank: what of the model trains, and the factors, those of `checkpoint` where it
 * is not NULL. The model is open and locked. Errors  ARG (a fresh model, targets), UNSUPPORTED
 * (batch norms that move), those of lora.h */
pnb_status pnb__contrastive_adapt(pnb__contrastive *c, const char *checkpoint, pnb_error *err);
/* The folder of a checkpoint. Errors  IO, NOMEM */
pnb_status pnb__contrastive_save_adapter(const pnb__contrastive *c, const char *dir,
                                         pnb_error *err);
/* A line of out.log. Errors  IO */
pnb_status pnb__contrastive_announce_lora(const pnb__contrastive *c, pnb__trainer *t,
                                          pnb_error *err);

/* ---- memory_fit.c ---- */
/* With opts->memory: cuts the pairs of a step so that the training fits, into c->settled and
 * c->run. Data and model are open. Errors  ARG (too little, saying what would do), UNSUPPORTED (the
 * system does not say what a process takes), those of planning */
pnb_status pnb__contrastive_fit(pnb__contrastive *c, const char *checkpoint, pnb_error *err);
/* Lines of out.log: what was chosen, and behind the last step what it took. */
pnb_status pnb__contrastive_announce_fit(const pnb__contrastive *c, pnb__trainer *t,
                                         pnb_error *err);
pnb_status pnb__contrastive_conclude_fit(const pnb__contrastive *c, pnb__trainer *t,
                                         pnb_error *err);

/* ---- rates.c ---- */
/* The objective's call `group`, of a pnb__contrastive whose model is open. */
pnb__optim_group pnb__contrastive_group(const void *self, const pnb__param *param);
/* Errors  ARG (a phase or rates by blocks of a model that has no such parts) */
pnb_status pnb__contrastive_check_rates(const pnb__contrastive *c, pnb_error *err);

/* ---- step.c ---- */
pnb_status pnb__step_create(pnb__step_graphs **out, pnb__contrastive *c, pnb_error *err);
void pnb__step_free(pnb__step_graphs *s);
size_t pnb__step_bytes(const pnb__step_graphs *s); /* planned memory of its graphs */
/* What a step of c->opts would take of memory, in all its graphs and arrays, and compute. */
typedef struct pnb__step_need {
    size_t bytes;
    double flops;
} pnb__step_need;
/* Plans one and takes no memory for it; of several ranks, for the one that has most passes. */
pnb_status pnb__step_plan(pnb__step_need *out, pnb__contrastive *c, pnb_error *err);
/* Reads accum_freq batches, computes losses and gradients (left in the parameters' `grad`), fills
 * out->batch, out->total, out->data_s and c->term. Errors  those of the data, NUMERIC */
pnb_status pnb__step_run(pnb__step_graphs *s, pnb__contrastive *c, pnb__step_values *out,
                         pnb_error *err);

/* ---- evaluate.c ---- */
/* Losses and retrieval on the validation set with the weights as they are; out->done false when
 * there is no validation set. */
pnb_status pnb__evaluate(pnb__contrastive *c, pnb_train_eval *out, pnb_error *err);

/* What validation takes of memory beside a step; 0 without a validation set. */
pnb_status pnb__evaluate_plan(pnb__contrastive *c, size_t *out, pnb_error *err);

/* ---- evaluators.c ---- */
/* Errors  ARG (an evaluator that is none, a best_by that the run does not measure) */
pnb_status pnb__evaluators_check(const pnb_train_opts *o, pnb_error *err);
/* The objective's has_figures. */
bool pnb__evaluators_are_due(const void *self, int64_t step, bool is_last);
/* Runs those that are due, adds their figures to `out` and says what is best by opts->best_by.
 * Errors  theirs, ARG (no figure of that name) */
pnb_status pnb__evaluators_run(pnb__contrastive *c, int64_t step, pnb__eval_values *out,
                               pnb_error *err);

/* ---- refresh.c ---- */
/* Statistics of batch norm over an epoch of the training data, read with `opts`, for the weights as
 * they are; without batch norm, or with one that does not move, nothing changes.
 * Errors  those of the data, NOMEM */
pnb_status pnb__contrastive_refresh(const pnb__contrastive *c, const pnb_loader_opts *opts,
                                    pnb_error *err);

/* ---- unc_bins.c ---- */
typedef struct pnb__answer {
    double trace; /* the query's uncertainty */
    size_t row;   /* orders equal traces */
    bool right;
} pnb__answer;
/* pnb_train_eval.i2t_unc_r of n queries; sorts them. */
double pnb__unc_correlation(pnb__answer *answers, size_t n);

#endif
