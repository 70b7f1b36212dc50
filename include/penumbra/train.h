/* Training of a ProLIP model: one call runs, logs, validates, checkpoints and resumes.
 *
 * A run is the directory <logs>/<name>:
 *   params.txt      the options of its first start as "name: value"
 *   out.log         open_clip's lines ("Train Epoch: ...", "Eval Epoch: ...")
 *   results.jsonl   one object a log step and one an evaluation (docs/commands/train.md)
 *   checkpoints/epoch_K/, step_N/    a model directory each, plus optimizer.safetensors and
 *                   state.json; written whole or not at all
 *   checkpoints/latest               link to the newest of them
 *   checkpoints/swa, ema             the mean of the weights of swa_start, or the moving one of
 *                   ema_decay, when the run is done
 *   checkpoints/best                 link to the one of the lowest validation loss
 *   checkpoints/best_unc_step_N/     the one of save_best_unc, a directory like the others, and
 *   checkpoints/epoch_best_unc       the link to it
 *   tensorboard/                     event files of report_tensorboard
 * Same options, data, build and thread count give the same bits, interrupted or not. What a step
 * computes: docs/numerics-training.md.
 *
 *     pnb_train_opts opts = pnb_train_opts_default();
 *     pnb_train_result result;
 *     opts.train_data = "shards/{00000..00009}.tar";
 *     opts.name = "first";
 *     if (pnb_train(ctx, &opts, &result, &err) == PNB_OK)
 *         ... result.checkpoint_dir is a model directory for pnb_encoder_open */
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
#include "penumbra/model.h"
#include "penumbra/optim.h"
#include "penumbra/peers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What masking does to a caption's tokens, each drawn by itself with probability drop_prob; padding
 * and special tokens are never touched. */
typedef enum pnb_text_mask {
    PNB_TEXT_MASK_DELETE, /* drawn tokens go, the rest moves up: a shorter caption */
    PNB_TEXT_MASK_REPLACE /* drawn tokens become the mask token: the published form */
} pnb_text_mask;

/* Arithmetic of training. X(NAME, name, sentence)
 * AMP_BF16: products with the four matrices of each transformer block, forward and backward, round
 * both factors to bfloat16 and sum in floats; weights, optimiser, LayerNorm, softmax, residuals,
 * heads, log-variances and losses are floats. bfloat16 has the range of floats, so no loss is
 * scaled. Validation is in floats. On a GPU what goes from one such product to the next is bfloat16
 * itself, its gradient too, and attention multiplies in it (docs/numerics.md, "On a GPU"). */
#define PNB_TRAIN_PRECISION_LIST(X)                                                                \
    X(FP32, "fp32", "all in floats")                                                               \
    X(AMP_BF16, "amp_bf16", "factors of the blocks' products in bfloat16")
#define PNB_TRAIN_PRECISION_ENUM(id, name, sentence) PNB_TRAIN_##id,
typedef enum pnb_train_precision {
    PNB_TRAIN_PRECISION_LIST(PNB_TRAIN_PRECISION_ENUM) PNB_N_TRAIN_PRECISIONS
} pnb_train_precision;
#undef PNB_TRAIN_PRECISION_ENUM

/* Where a run stands. */
typedef struct pnb_train_progress {
    int64_t step, n_steps;   /* steps done of all steps, those before a resume included */
    int64_t epoch, n_epochs; /* epochs done of all, a begun one counts among all */
    double loss;             /* total of the last step */
    double lr;               /* of the last step; 0 where the phase is not "train" */
    double samples_per_s;    /* mean since this process began; 0 before its first step */
    double left_s;           /* seconds left at that pace */
    const char *phase;       /* "train": a step is done; "validate", "save": such a one begins */
} pnb_train_progress;

/* Called from the thread that called pnb_train, after every step and before every validation and
 * checkpoint; training waits for it. */
typedef void (*pnb_train_progress_fn)(void *user, const pnb_train_progress *p);

/* What an evaluation is given: the model that is trained, with the weights that it has at this
 * step. Lent for the call; the weights may not be changed. */
typedef struct pnb_train_snapshot {
    pnb_model *model;
    const pnb_tokenizer *tokenizer;
    const pnb_preprocess *preprocess;
    int64_t step, epoch; /* done */
} pnb_train_snapshot;

/* One figure of an evaluation, from 0 (worst) to 1: larger is better. The names are constants:
 * `name` in results.jsonl and TensorBoard, `title` in out.log. */
typedef struct pnb_train_figure {
    const char *name, *title;
    double value;
} pnb_train_figure;

enum { PNB_TRAIN_MAX_EVALUATORS = 2, PNB_TRAIN_MAX_FIGURES = 6 };

/* A measurement between the steps beside validation, by whoever asked for the training: zero-shot
 * classification, retrieval. It runs after every `frequency`-th epoch (0: never before the end) and
 * after the last step, in every process of a job, and its figures must be functions of the weights:
 * all processes go by them.
 * run  fills out[0 .. *n - 1], *n at most PNB_TRAIN_MAX_FIGURES; what it returns ends training */
typedef struct pnb_train_evaluator {
    const char *prefix; /* that all its names begin with, "zeroshot_" */
    int64_t frequency;  /* epochs, 0 or more */
    pnb_status (*run)(void *user, const pnb_train_snapshot *now, pnb_train_figure *out, size_t *n,
                      pnb_error *err);
    void *user;
} pnb_train_evaluator;

/* Option names follow open_clip and ProLIP; the flag is given where it differs from the field. */
typedef struct pnb_train_opts {
    /* data */
    const char *train_data, *val_data; /* specs of pnb_dataset_open; val_data NULL: no validation */
    pnb_dataset_opts dataset;          /* of both */
    int64_t train_num_samples; /* samples of one epoch, to 10^15; 0: the size of the data set; also
                                * the size of a synthetic one. An epoch of shards is rounded up to
                                * whole steps, any other down, and has one at least */
    /* with dataset_resampled: how often a sample of each source between "::" of train_data is drawn
     * beside one of factor 1, 0 to 10^9 (open_clip's upsampling factors) */
    const double *upsampling_factors;
    size_t n_upsampling_factors; /* 0: all alike; else as many as sources */
    /* hard negatives: so many captions under dataset.negatives_key of each sample, which fit no
     * picture of the batch, 0 to 64; for ppcl, siglip and clip (loss.h). A sample without any is
     * left out as unreadable */
    int64_t n_negatives;
    bool dataset_resampled;   /* draw training samples with replacement */
    bool batch_by_class;      /* a batch has one sample of each of its classes (CUB Captions: of all
                               * 150), see pnb_loader_opts.by_class; one forward pass a step */
    int workers;              /* threads that prepare batches, 0 to 256: 1 */
    bool pin_workers;         /* on processors of their own, see pnb_loader_opts.pin_workers: the
                               * threads of ctx and `workers` are at most as many as there are */
    int64_t max_image_pixels; /* of a picture, see pnb_loader_opts */
    pnb_augment augment;      /* of training pictures; validation has none */
    pnb_text_choice texts;    /* any but ALL_LEVELS: LEVEL */
    double template_share;    /* probability that a caption goes into a template, 0 to 1: 0.3 */
    const char *const *templates; /* with "{}" or "{c}" for the caption: six built-in ones */
    size_t n_templates;           /* 0: captions stay as they are */
    int val_level;                /* caption level of validation where samples have levels: 3 */

    /* model: a model directory, a built-in configuration name or a config.json. A directory with
     * weights is continued from (--pretrained); a configuration is initialised from `seed`. */
    const char *model;        /* "tiny" */
    const char *tokenizer;    /* tokenizer.json or folder; NULL: the model directory's, or one
                               * is trained on the training captions */
    int tokenizer_vocab_size; /* of the one trained: 1500 */
    pnb_tokenizer_kind tokenizer_kind; /* of the one trained: byte BPE */
    const char *config_overrides; /* JSON object merged into a configuration before init, or NULL */
    int force_image_size;         /* 0: the configuration's */
    int force_context_length;     /* 0: the configuration's; of the built-in `tiny`, which 99% of
                                   * the training captions fit into, at most 77 */
    double init_logit_scale;      /* a of a fresh model, above 0; NaN: the configuration's. Every
                                   * update holds it in 1..100 */
    double init_logit_bias;       /* b of a fresh model; NaN: -log(pairs of a step) */
    double init_unc_bias;         /* log-variance bias; NaN: -10 + log(768/D) */
    bool config_init;             /* keep the configuration's init values (published) instead */
    bool lock_image, lock_text;   /* freeze a tower */
    /* of a locked tower the last so many groups go on: 1 its heads (projections and all that gives
     * uncertainty), 2 its last block and norm too, ..., L + 2 the embeddings: 0 */
    int64_t image_unlocked_groups, text_unlocked_layers;
    /* LoRA: of matrices in the blocks of a trained model only low-rank factors train, and its heads
     * unless locked; checkpoints are adapters (docs/checkpoints.md#lora), pnb_model_merge_lora
     * makes models of them. Not with force_..., reinit_unc, unlocked groups, means of weights */
    int64_t lora_rank;          /* 0: all weights train */
    double lora_alpha;          /* factors count lora_alpha / lora_rank, above 0; NaN: lora_rank */
    const char *lora_targets;   /* "attn", "mlp", "all", parts or patterns of names, ',' between;
                                 * NULL: all */
    bool lora_image, lora_text; /* towers whose matrices are changed: both */
    bool force_resize_pos_emb;  /* interpolate the positions of a model directory to the forced
                                 * image size and context length; without it they are refused */
    bool reinit_unc;            /* fresh uncertainty tokens and heads for a model directory */
    const char *word_vectors;   /* file of word vectors (GloVe, fastText or word2vec) that the
                                 * word embedding of a fresh PCME, VSE or PVSE model starts with;
                                 * NULL: words start at random */
    const char *image_trunk;    /* .pth or safetensors file of torchvision's ResNet, which the
                                 * trunk of such a model starts with; NULL: at random */

    /* objective */
    pnb_loss_opts loss;
    /* a frozen teacher of the terms distill and distill_kl: embedding sets of all training pictures
     * and captions, rows named as `embed` names them; NULL: none */
    const char *distill_images, *distill_texts;
    double distill_scale;  /* of its logits, above 0; NaN: its own, else 100 */
    int64_t head_epochs;   /* epochs of a first phase in which the pretrained parts of a model (its
                            * trunk, its word vectors) stand still, 0 or more: 0 */
    double trunk_lr_ratio; /* of all rates in the second phase, 0 to 1: 0.1. Not read without one */
    /* Shares of the rate, 0 to 1 each: 1. Of the towers' weights, but for what a PCME, VSE, PVSE or
     * PCME++ model has behind its pretrained parts (heads, last projections), a and b; and once
     * more for each block of a transformer that stands behind a block: block i of L takes
     * layer_lr_decay^(L - i), i = 0 .. L - 1. Published PCME++ 0.01, 0.1, 0.7 */
    double image_lr_ratio, text_lr_ratio, layer_lr_decay;
    double head_lr_ratio;    /* once more for the heads of both towers, 0 to 1000: 1 */
    double drop_ratio;       /* share of the batch in the masked pass, 0 to 1, above 0 at least one
                              * pair: 0.125 */
    double drop_prob;        /* probability that a text token is masked, 0 to 1: 0.75 */
    double mask_keep;        /* share of patches a masked image keeps, above 0 to 1, at least one
                              * patch; the same patches in all pictures of a step: 0.25 */
    pnb_text_mask text_mask; /* --text-mask delete|replace */
    int replace_token;       /* --replace-token; -1: the tokenizer's mask token */
    double word_drop;        /* probability that a word of a training caption becomes the unknown
                              * token, 0 to 1, each step anew: 0; published PCME 0.1 */
    bool word_drop_removes;  /* as PCME's code: int(n word_drop) of n words are taken out besides */
    /* mixed samples: int(mix_share B) pictures of a batch, one at least, take a part of another one
     * of it, and match both texts by their shares; of losses that know labels (loss.h) */
    double mix_share;  /* 0 to 1: 0; published PCME++ 0.25 */
    double mix_cutmix; /* probability that one is mixed by CutMix, else by mixup, 0 to 1: 0.5 */
    double mix_alpha;  /* the own share of each is drawn from Beta(alpha, alpha), above 0: 2 */
    /* pair labels of 1 are 1 - e and those of 0 e, mixed ones between them; 0 <= e < 0.5: 0;
     * published PCME++ 1e-4. Of losses that know labels */
    double label_smoothing;

    /* optimisation */
    pnb_optim_opts optim;
    pnb_schedule_kind lr_scheduler;
    int64_t warmup;          /* steps of a rate that rises in a line, 0 or more */
    double lr_min_ratio;     /* the cosine ends at this share of lr, 0 to 1 */
    int64_t epochs_cooldown; /* const-cooldown: the last epochs, in which the rate falls */
    double lr_cooldown_power, lr_cooldown_end; /* as this power of what is left, to this rate */
    /* multistep: after these epochs, each larger than the one before, 0 behind the last, the rate
     * is multiplied by lr_gamma, above 0 to 1: 0.1. Not read by other schedules */
    int64_t lr_milestones[PNB_MAX_MILESTONES];
    double lr_gamma;
    size_t batch_size; /* pairs of one forward pass, 1 to 2^24; 0 with batch_by_class: as many as
                        * there are classes */
    int accum_freq;    /* forward passes of one step in each process; the loss sees all their pairs,
                        * at most 2^31 - 1 */
    size_t global_batch; /* pairs of one step in all processes, a multiple of batch_size and of as
                          * many forward passes as there are processes at least, which share them as
                          * evenly as they can; 0: batch_size accum_freq times the processes */
    /* Bytes that a process may take: the pairs of a step are cut into other forward passes than
     * batch_size says, and grad_checkpointing is chosen, so that it fits at the least cost (in
     * operations); what is chosen gives the bits of the same options given. Evaluators are not
     * counted. 0: as the options say */
    double memory;
    bool local_loss;      /* each process computes the losses of its own rows against all columns */
    bool shard_optimizer; /* each process keeps its part of the optimiser's state */
    pnb_peers *ranks;     /* the processes that train together (penumbra/peers.h); NULL: this one */
    pnb_train_precision precision; /* --precision fp32|amp_bf16: fp32 */
    /* --grad-cache-precision bf16: of several forward passes the distributions that the loss sees
     * are kept, and seen, rounded to bfloat16; one process */
    bool grad_cache_bf16;
    bool grad_checkpointing; /* keep only each block's result for backward and compute its inside
                              * again: the same bits, less memory, more time */
    int64_t epochs;          /* passes over the data, not looked at beside max_steps: 32 */
    double ema_decay;  /* d of m <- d m + (1 - d) w after every step, from the first weights on; m
                        * becomes checkpoints/ema; 0 to below 1, 0: none. Not with swa_start */
    int64_t swa_start; /* the mean of the weights after this epoch, the next, ... the last becomes
                        * checkpoints/swa, with statistics of batch norm of its own; 0: none */
    int64_t max_steps; /* 0: no other end than `epochs`; else the schedule's length too; to 10^15 */
    uint64_t seed;     /* of initial weights, order, captions, augmentation and masks */

    /* run */
    const char *logs, *name;   /* name NULL: date, model, lr and batch, as open_clip names runs */
    const char *resume;        /* NULL, "latest", or a checkpoint directory, of another run too */
    int64_t log_every_n_steps; /* steps between lines; below 2: every step. First and last always */
    int64_t val_frequency;     /* epochs between validations; 0: only at the end */
    int64_t val_every_n_steps; /* steps between validations, in place of val_frequency; 0: by
                                * epochs. The last step is always followed by one */
    pnb_train_evaluator evaluators[PNB_TRAIN_MAX_EVALUATORS]; /* further measurements, */
    size_t n_evaluators;                                      /* so many: 0 */
    /* The figure of results.jsonl that the best checkpoint is best by: "val_loss" or a correlation
     * of uncertainty (lowest), a recall of validation or a figure of an evaluator (highest); the
     * run must measure it. NULL: val_loss */
    const char *best_by;
    int64_t save_frequency;     /* epochs between checkpoints that stay; 0: none but the last and
                                 * the best one by validation loss, which always stay */
    int64_t save_every_n_steps; /* 0: by epochs only; earlier step_N are removed */
    bool delete_previous_checkpoint; /* also those that save_frequency asked for */
    bool save_most_recent;   /* a checkpoint after every epoch; one that save_frequency does not ask
                              * for is replaced by the next: true */
    bool save_best_unc;      /* keep checkpoints/epoch_best_unc, see pnb_train_eval.i2t_unc_r */
    bool report_tensorboard; /* write <run>/tensorboard/events.out.tfevents.* too */

    const volatile sig_atomic_t *stop; /* set by a signal handler, looked at after every step: a
                                        * checkpoint, then INTERRUPTED; NULL: none */
    pnb_train_progress_fn progress;    /* NULL: none */
    void *progress_user;               /* its first argument */
} pnb_train_opts;

/* Small training (docs/commands/train.md): batch 128, AdamW lr 1e-3 wd 0.1 clip 1, warm-up 40,
 * cosine to 2%, pnb_augment_small, text mask DELETE, pnb_loss_opts_default, logs "./logs". */
pnb_train_opts pnb_train_opts_default(void);
/* The published recipe: lr 5e-4 wd 0.2, warm-up 10,000, cosine to 0, text mask REPLACE,
 * pnb_augment_published, pnb_loss_opts_published, the configuration's own initial values. */
pnb_train_opts pnb_train_opts_published(void);

/* What is trained, by the name of its paper. X(NAME, name, sentence)
 * PCME and its baselines have towers of their own: a ResNet and a GRU. */
#define PNB_OBJECTIVE_LIST(X)                                                                      \
    X(PROLIP, "prolip", "pairwise loss of Gaussians, inclusion, divergence")                       \
    X(SIGLIP, "siglip", "pairwise sigmoids of points")                                             \
    X(CLIP, "clip", "InfoNCE of points")                                                           \
    X(PCME, "pcme", "match probability over samples of Gaussians")                                 \
    X(PCMEPP, "pcmepp", "match probability by the closed-form sampled distance")                   \
    X(VSE, "vse", "margins to all negatives of points (VSE0)")                                     \
    X(VSEPP, "vsepp", "margins to the nearest negative of points (VSE++)")                         \
    X(PVSE, "pvse", "the same of the best of several embeddings an input")
typedef enum pnb_objective {
#define PNB_OBJECTIVE_ENUM(NAME, name, sentence) PNB_OBJECTIVE_##NAME,
    PNB_OBJECTIVE_LIST(PNB_OBJECTIVE_ENUM)
#undef PNB_OBJECTIVE_ENUM
        PNB_N_OBJECTIVES
} pnb_objective;

/* Options of an objective: losses and their weights, the model they are for, and what the recipe
 * has for them. PROLIP's are pnb_train_opts_default and pnb_train_opts_published.
 * Source  PCME: config/coco/pcme_coco.yaml of its code; docs/numerics-training.md has the table */
pnb_train_opts pnb_train_opts_of(pnb_objective objective, bool is_published);

/* One evaluation on the validation set; recalls in [0, 1] by the csd similarity. */
typedef struct pnb_train_eval {
    bool done;                         /* false: there was none, and all else is 0 */
    int64_t step, epoch;               /* both done when it was made */
    size_t n;                          /* pairs: the whole validation set */
    double loss[PNB_N_LOSS_TERMS];     /* means over all pairs */
    double total;                      /* of all but the masked terms */
    double i2t_r1, t2i_r1;             /* against the whole validation set */
    double batch_i2t_r1, batch_t2i_r1; /* against a batch: mean over the whole batches */
    double image_unc, text_unc;        /* mean trace; 0 without uncertainty */
    /* Pearson's r between the number of a bin and its R@1 (whole set), queries in 10 bins of equal
     * count by ascending trace, the remainder left out: -1 where uncertainty foretells failure.
     * NaN below 10 pairs, without uncertainty, or when every bin has the same R@1. */
    double i2t_unc_r, t2i_unc_r;
} pnb_train_eval;

/* What a run came to; all zero where it could not start. */
typedef struct pnb_train_result {
    char run_dir[1024];        /* <logs>/<name> */
    char checkpoint_dir[1024]; /* the newest, at first the one resumed from; "" if there is none */
    char best_dir[1024];       /* by best_by; "" where that was not measured */
    int64_t step, n_steps, epoch;         /* steps done, planned; epochs done */
    double loss[PNB_N_LOSS_TERMS], total; /* of the last step: the terms, weighted, and their sum */
    double seconds, samples_per_s;        /* of this process, opening not included */
    size_t graph_bytes;                   /* planned memory of a step: activations and gradients */
    double estimated_bytes, peak_bytes; /* with opts.memory: of this process, foreseen and taken */
    double data_s;                      /* of seconds, waiting for data */
    size_t n_skipped;                   /* samples that could not be read */
    size_t n_damaged;                   /* shards left out or cut short by damage */
    size_t n_truncated;                 /* captions seen that were longer than the context */
    pnb_train_eval eval;                /* the last one */
    /* of the last run of each evaluator, in their order */
    pnb_train_figure figures[PNB_TRAIN_MAX_EVALUATORS * PNB_TRAIN_MAX_FIGURES];
    size_t n_figures;
} pnb_train_result;

/* Runs until the end or until *stop is set; `out` is filled in both cases, and as far as the run
 * came where it fails. Nothing is written before data, model and options have been found good. A
 * run directory without a finished checkpoint may be used again.
 * Memory  out->graph_bytes for a step, the weights, two moments of each with AdamW, a few batches
 * Threads  those of ctx and `workers`; one process at a time trains in a directory
 * Errors  INTERRUPTED (after a checkpoint), BUSY (another process trains in this run directory),
 *         EXISTS (the run has a checkpoint and resume is NULL), NOT_FOUND (data, model, tokenizer,
 *         checkpoint), ARG (an option out of range; resumed with other options or another number
 *         of samples, named), SHAPE (fewer samples than a batch; a tokenizer or preprocessing that
 *         does not fit the model), NUMERIC (a loss term or the gradient is not finite: step and
 *         term are named, the last checkpoint stays), FORMAT (a damaged checkpoint), IO (full
 *         disk: the last checkpoint stays), LIMIT (more than 2^62 steps), NOMEM, and those of data
 *         and model */
pnb_status pnb_train(const pnb_ctx *ctx, const pnb_train_opts *opts, pnb_train_result *out,
                     pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
