/* Training of a ProLIP model: one call runs, logs, validates, checkpoints and resumes.
 *
 * A run is the directory <logs>/<name>:
 *   params.txt      every option as "name: value"
 *   out.log         open_clip's lines ("Train Epoch: ...", "Eval Epoch: ...")
 *   results.jsonl   one object a log step and one an evaluation (docs/commands/train.md)
 *   checkpoints/epoch_K/, step_N/    a model directory each, plus optimizer.safetensors and
 *                   state.json; written whole or not at all
 *   checkpoints/latest               link to the newest of them
 *   checkpoints/best                 link to the one of the lowest validation loss
 *   checkpoints/epoch_best_unc       link to the one of save_best_unc
 * Same options, data, build and thread count give the same bits, interrupted or not. */
#ifndef PENUMBRA_TRAIN_H
#define PENUMBRA_TRAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/dataset.h"
#include "penumbra/error.h"
#include "penumbra/loss.h"
#include "penumbra/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What masking does to a caption's tokens; padding and special tokens are never touched. */
typedef enum pnb_text_mask {
    PNB_TEXT_MASK_DELETE, /* drawn tokens go, the rest moves up: a shorter caption */
    PNB_TEXT_MASK_REPLACE /* drawn tokens become the mask token: the published form */
} pnb_text_mask;

typedef struct pnb_train_progress {
    int64_t step, n_steps; /* steps done of all steps */
    int64_t epoch, n_epochs;
    double loss; /* total of the last step */
    double lr, samples_per_s;
    double left_s;     /* estimate of the time left */
    const char *phase; /* "train", "validate", "save" */
} pnb_train_progress;

/* Called from the thread that called pnb_train, after every step. */
typedef void (*pnb_train_progress_fn)(void *user, const pnb_train_progress *p);

/* Option names follow open_clip and ProLIP; the flag is given where it differs from the field. */
typedef struct pnb_train_opts {
    /* data */
    const char *train_data, *val_data; /* val_data NULL: no validation */
    pnb_dataset_opts dataset;
    int64_t train_num_samples; /* samples of one epoch; 0: the size of the data set; also the size
                                * of a synthetic one */
    bool dataset_resampled;    /* draw training samples with replacement */
    int workers;
    int64_t max_image_pixels; /* of a training picture, see pnb_loader_opts */
    pnb_augment augment;
    pnb_caption_choice captions;
    double template_share;        /* share of captions put into a template */
    const char *const *templates; /* NULL: six built-in ones */
    size_t n_templates;
    int val_level; /* caption level of validation where samples have levels: 3 */

    /* model: a model directory, a built-in configuration name or a config.json. A directory with
     * weights is continued from (--pretrained); a configuration is initialised from `seed`. */
    const char *model;
    const char *tokenizer;    /* tokenizer.json or folder; NULL: the model directory's, or one
                               * is trained on the training captions */
    int tokenizer_vocab_size; /* of the one trained: 1500 */
    pnb_tokenizer_kind tokenizer_kind; /* of the one trained: byte BPE */
    const char *config_overrides; /* JSON object merged into a configuration before init, or NULL */
    int force_image_size;         /* 0: the configuration's */
    int force_context_length;     /* 0: the configuration's; of the built-in `tiny`, which 99% of
                                   * the training captions fit into, at most 77 */
    double init_logit_scale;      /* a of a fresh model; NaN: the configuration's */
    double init_logit_bias;       /* b of a fresh model; NaN: -log(batch of a step) */
    double init_unc_bias;         /* log-variance bias; NaN: -10 + log(768/D) */
    bool config_init;             /* keep the configuration's init values (published) instead */
    bool lock_image, lock_text;   /* freeze a tower */
    bool force_resize_pos_emb;    /* interpolate the positions of a model directory to the forced
                                   * image size and context length; without it they are refused */
    bool reinit_unc;              /* fresh uncertainty tokens and heads for a model directory */

    /* objective */
    pnb_loss_opts loss;
    double drop_ratio;       /* share of the batch in the masked pass: 0.125 */
    double drop_prob;        /* probability that a text token is masked: 0.75 */
    double mask_keep;        /* share of patches a masked image keeps: 0.25 */
    pnb_text_mask text_mask; /* --text-mask delete|replace */
    int replace_token;       /* --replace-token; -1: the tokenizer's mask token */

    /* optimisation */
    pnb_optim_opts optim;
    pnb_schedule_kind lr_scheduler;
    int64_t warmup;          /* steps */
    double lr_min_ratio;     /* the cosine ends at this share of lr */
    int64_t epochs_cooldown; /* const-cooldown */
    double lr_cooldown_power, lr_cooldown_end;
    size_t batch_size;       /* pairs of one forward pass */
    int accum_freq;          /* forward passes of one step; the loss sees all their pairs */
    bool grad_checkpointing; /* keep only each block's result for backward and compute its inside
                              * again: the same bits, less memory, more time */
    int64_t epochs;
    int64_t max_steps; /* 0: no other end than `epochs`; else the schedule's length too */
    uint64_t seed;

    /* run */
    const char *logs, *name; /* name NULL: date, model, lr and batch, as open_clip names runs */
    const char *resume;      /* NULL, "latest", or a checkpoint directory */
    int64_t log_every_n_steps;
    int64_t val_frequency;      /* epochs between validations; 0: only at the end */
    int64_t val_every_n_steps;  /* steps between validations; 0: by epochs */
    int64_t save_frequency;     /* epochs between checkpoints that stay; 0: none but the last and
                                 * the best one by validation loss, which always stay */
    int64_t save_every_n_steps; /* 0: by epochs only; earlier step_N are removed */
    bool delete_previous_checkpoint; /* also those that save_frequency asked for */
    bool save_most_recent;   /* a checkpoint after every epoch; one that save_frequency does not ask
                              * for is replaced by the next: true */
    bool save_best_unc;      /* keep checkpoints/epoch_best_unc, see pnb_train_eval.i2t_unc_r */
    bool report_tensorboard; /* write <run>/tensorboard/events.out.tfevents.* too */

    const volatile sig_atomic_t *stop; /* set by a signal handler; NULL: none */
    pnb_train_progress_fn progress;
    void *progress_user;
} pnb_train_opts;

/* Small training (docs/commands/train.md): batch 128, AdamW lr 1e-3 wd 0.1 clip 1, warm-up 40,
 * cosine to 2%, pnb_augment_small, text mask DELETE, pnb_loss_opts_default, logs "./logs". */
pnb_train_opts pnb_train_opts_default(void);
/* The published recipe: lr 5e-4 wd 0.2, warm-up 10,000, cosine to 0, text mask REPLACE,
 * pnb_augment_published, pnb_loss_opts_published, the configuration's own initial values. */
pnb_train_opts pnb_train_opts_published(void);

/* One evaluation on the validation set; recalls in [0, 1] by the csd similarity. */
typedef struct pnb_train_eval {
    bool done; /* false: there was none */
    int64_t step, epoch;
    size_t n;
    double loss[PNB_N_LOSS_TERMS];     /* means over all pairs */
    double total;                      /* of all but the masked terms */
    double i2t_r1, t2i_r1;             /* against the whole validation set */
    double batch_i2t_r1, batch_t2i_r1; /* against a batch */
    double image_unc, text_unc;        /* mean trace */
    /* Pearson's r between the number of a bin and its R@1 (whole set), queries in 10 bins of equal
     * count by ascending trace, the remainder left out: -1 where uncertainty foretells failure.
     * NaN below 10 pairs, without uncertainty, or when every bin has the same R@1. */
    double i2t_unc_r, t2i_unc_r;
} pnb_train_eval;

typedef struct pnb_train_result {
    char run_dir[1024];
    char checkpoint_dir[1024]; /* the newest, at first the one resumed from; "" if there is none */
    char best_dir[1024];       /* of the lowest validation loss; "" without validation */
    int64_t step, n_steps, epoch;
    double loss[PNB_N_LOSS_TERMS], total; /* of the last step */
    double seconds, samples_per_s;
    size_t graph_bytes;  /* planned memory of a step: activations and gradients */
    size_t n_skipped;    /* samples that could not be read */
    size_t n_truncated;  /* captions seen that were longer than the context */
    pnb_train_eval eval; /* the last one */
} pnb_train_result;

/* Runs until the end or until *stop is set; `out` is filled in both cases.
 * Errors  INTERRUPTED (after a checkpoint), BUSY (another process trains in this run directory),
 *         EXISTS (the run exists and resume is NULL), NOT_FOUND, ARG (also: resumed with other
 *         options, named), NUMERIC (a loss term is not finite: step and term are named, the last
 *         checkpoint stays), IO (full disk: the last checkpoint stays), and those of data and model
 */
pnb_status pnb_train(const pnb_ctx *ctx, const pnb_train_opts *opts, pnb_train_result *out,
                     pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
