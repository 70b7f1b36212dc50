/* penumbra train: open_clip's flag names in front of pnb_train.
 *
 * A value that is not given stays what the recipe says; only then is a default of one place. */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/train/train_run.h"
#include "commands/train/train_words.h"
#include "encode/model_path.h"

struct train_args {
    const char *train_data, *val_data, *dataset_type, *csv_separator, *csv_img_key,
        *csv_caption_key, *image_key, *captions, *augment, *model, *pretrained, *tokenizer,
        *tokenizer_kind, *override, *recipe, *inclusion_form, *text_mask, *opt, *lr_scheduler,
        *precision, *logs, *name, *resume, *text_key, *vib_form, *report_to, *imagenet_val,
        *coco_test;
    int64_t train_num_samples, val_level, workers, tokenizer_vocab_size, force_image_size,
        force_context_length, replace_token, warmup, epochs_cooldown, batch_size, accum_freq,
        epochs, max_steps, log_every_n_steps, val_frequency, val_every_n_steps, save_frequency,
        save_every_n_steps, zeroshot_frequency;
    double template_share, init_logit_scale, init_logit_bias, init_unc_bias, ppcl_lambda,
        siglip_lambda, clip_lambda, pcmepp_lambda, vib_beta, inclusion_alpha, inclusion_alpha_occ,
        inclusion_scale, inclusion_eps, drop_ratio, drop_prob, mask_keep, lr, beta1, beta2, eps,
        momentum, wd, lr_min_ratio, lr_cooldown_end, lr_cooldown_power, grad_clip_norm, vib_limit,
        inclusion_limit;
    pnb__text_list aug_cfg;
    bool lock_image, lock_text, prolip, adamp, delete_previous_checkpoint, dataset_resampled,
        force_resize_pos_emb, reinit_unc, grad_checkpointing, local_loss, gather_with_grad,
        save_most_recent, save_best_unc;
};

#define AT(field) offsetof(struct train_args, field)
static const pnb__option options[] = {
    {.name = "train-data",
     .kind = PNB__OPT_FILE,
     .at = AT(train_data),
     .value = "SPEC",
     .group = "Data",
     .help =
         "Pictures and captions: tar shards (braces, globs, \"::\"), a csv, a jsonl or a folder"},
    {.name = "val-data",
     .kind = PNB__OPT_FILE,
     .at = AT(val_data),
     .value = "SPEC",
     .help = "The same for validation"},
    {.name = "train-num-samples",
     .kind = PNB__OPT_INT,
     .at = AT(train_num_samples),
     .value = "N",
     .min = 1,
     .max = 1000000000000000.0,
     .help = "Samples of one epoch; by default all"},
    {.name = "dataset-type",
     .kind = PNB__OPT_CHOICE,
     .at = AT(dataset_type),
     .value = "TYPE",
     .fallback = "auto",
     .choices = "auto|webdataset|csv|dir|jsonl|synthetic",
     .help = "Form of the data; told by the name by default. synthetic: random pixels, one caption "
             "and no files, --train-num-samples of them"},
    {.name = "dataset-resampled",
     .kind = PNB__OPT_FLAG,
     .at = AT(dataset_resampled),
     .help = "Draw training samples with replacement"},
    {.name = "csv-separator",
     .kind = PNB__OPT_TEXT,
     .at = AT(csv_separator),
     .value = "CHAR",
     .help = "Separator of a table; told by the header by default"},
    {.name = "csv-img-key",
     .kind = PNB__OPT_TEXT,
     .at = AT(csv_img_key),
     .value = "COLUMN",
     .fallback = "filepath",
     .help = "Column of picture paths"},
    PNB__CAPTION_KEY_ROW(AT(csv_caption_key)),
    {.name = "image-key",
     .kind = PNB__OPT_TEXT,
     .at = AT(image_key),
     .value = "SUFFIXES",
     .help = "Members of a tar that are pictures, \";\" between; without it "
             "jpg;png;jpeg;webp;0.jpg, then any other picture ending"},
    {.name = "text-key",
     .kind = PNB__OPT_TEXT,
     .at = AT(text_key),
     .value = "SUFFIXES",
     .fallback = "json;txt",
     .help = "Members of a tar that are captions: json records, others text"},
    {.name = "captions",
     .kind = PNB__OPT_CHOICE,
     .at = AT(captions),
     .value = "HOW",
     .fallback = "level",
     .choices = "level|any|first",
     .help = "Which caption of a sample: a level at random and one of it, any, the first"},
    {.name = "template-share",
     .kind = PNB__OPT_REAL,
     .at = AT(template_share),
     .value = "SHARE",
     .max = 1,
     .help = "Share of captions put into a template such as \"a picture of {}\""},
    {.name = "val-level",
     .kind = PNB__OPT_INT,
     .at = AT(val_level),
     .value = "N",
     .min = -1,
     .max = 7,
     .help = "Caption level of validation where samples have levels"},
    {.name = "workers",
     .kind = PNB__OPT_INT,
     .at = AT(workers),
     .value = "N",
     .max = 1024,
     .help = "Threads that read and augment ahead of the trainer"},
    {.name = "augment",
     .kind = PNB__OPT_CHOICE,
     .at = AT(augment),
     .value = "RECIPE",
     .choices = "none|small|published",
     .help = "Changes to training pictures; the recipe's by default"},
    {.name = "aug-cfg",
     .kind = PNB__OPT_LIST,
     .at = AT(aug_cfg),
     .value = "K=V...",
     .help = "Single changes: scale=LO,HI ratio=LO,HI zoom=LO,HI shift= rotate= flip= gain= "
             "color_jitter=B,C,S,H color_jitter_prob= gray_scale_prob= "
             "interpolation=bicubic|bilinear|... re_prob= re_count="},
    {.name = "model",
     .kind = PNB__OPT_FILE,
     .at = AT(model),
     .letter = 'm',
     .value = "NAME|DIR|FILE",
     .group = "Model",
     .help = "Built-in configuration, config.json, or a model directory to go on from; tiny in the "
             "small recipe, ViT-B-16 in the published one"},
    {.name = "pretrained",
     .kind = PNB__OPT_FILE,
     .at = AT(pretrained),
     .value = "DIR",
     .help = "Model directory to start from; the same as --model DIR"},
    {.name = "tokenizer",
     .kind = PNB__OPT_FILE,
     .at = AT(tokenizer),
     .value = "PATH",
     .help =
         "tokenizer.json or folder; by default the model's, else one is trained on the captions"},
    {.name = "tokenizer-kind",
     .kind = PNB__OPT_CHOICE,
     .at = AT(tokenizer_kind),
     .value = "KIND",
     .choices = "bpe|word",
     .help = "Kind of the tokenizer trained"},
    {.name = "tokenizer-vocab-size",
     .kind = PNB__OPT_INT,
     .at = AT(tokenizer_vocab_size),
     .value = "N",
     .min = 4,
     .max = 10000000.0,
     .help = "Entries of the tokenizer trained"},
    {.name = "override",
     .kind = PNB__OPT_TEXT,
     .at = AT(override),
     .value = "JSON",
     .help = "JSON object merged into a configuration"},
    {.name = "force-image-size",
     .kind = PNB__OPT_INT,
     .at = AT(force_image_size),
     .value = "PIXELS",
     .min = 1,
     .max = 16384,
     .help = "Picture size instead of the configuration's"},
    {.name = "force-context-length",
     .kind = PNB__OPT_INT,
     .at = AT(force_context_length),
     .value = "N",
     .min = 2,
     .max = 65536,
     .help = "Caption length in tokens instead of the configuration's; without it the built-in "
             "tiny takes the length that 99% of the training captions fit into, at most 77, and "
             "says it first"},
    {.name = "force-resize-pos-emb",
     .kind = PNB__OPT_FLAG,
     .at = AT(force_resize_pos_emb),
     .help = "Interpolate the positions of a model directory to the forced sizes"},
    {.name = "reinit-unc",
     .kind = PNB__OPT_FLAG,
     .at = AT(reinit_unc),
     .help = "Start from a model directory with fresh uncertainty tokens and heads"},
    {.name = "init-logit-scale",
     .kind = PNB__OPT_REAL,
     .at = AT(init_logit_scale),
     .value = "A",
     .min = 0.001,
     .max = 1000,
     .help = "Scale a of a fresh model"},
    {.name = "init-logit-bias",
     .kind = PNB__OPT_REAL,
     .at = AT(init_logit_bias),
     .value = "B",
     .help = "Bias b of a fresh model; -log(batch) by default in the small recipe"},
    {.name = "init-unc-bias",
     .kind = PNB__OPT_REAL,
     .at = AT(init_unc_bias),
     .value = "LV",
     .help = "Log-variance bias of a fresh model; -10 + log(768/D) by default in the small recipe"},
    {.name = "lock-image",
     .kind = PNB__OPT_FLAG,
     .at = AT(lock_image),
     .help = "Freeze the image tower"},
    {.name = "lock-text",
     .kind = PNB__OPT_FLAG,
     .at = AT(lock_text),
     .help = "Freeze the text tower"},
    {.name = "recipe",
     .kind = PNB__OPT_CHOICE,
     .at = AT(recipe),
     .value = "NAME",
     .fallback = "small",
     .choices = "small|published",
     .group = "Objective",
     .help = "Defaults of everything not given here: small fits minutes on a CPU, published is the "
             "paper's"},
    {.name = "prolip",
     .kind = PNB__OPT_FLAG,
     .at = AT(prolip),
     .help = "Accepted for compatibility: the ProLIP objective is the default"},
    {.name = "ppcl-lambda",
     .kind = PNB__OPT_REAL,
     .at = AT(ppcl_lambda),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of the probabilistic pairwise contrastive loss"},
    {.name = "siglip-lambda",
     .kind = PNB__OPT_REAL,
     .at = AT(siglip_lambda),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of the pairwise sigmoid loss of the means"},
    {.name = "clip-lambda",
     .kind = PNB__OPT_REAL,
     .at = AT(clip_lambda),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of InfoNCE on the means"},
    {.name = "pcmepp-lambda",
     .kind = PNB__OPT_REAL,
     .at = AT(pcmepp_lambda),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of the matching loss of PCME++"},
    {.name = "vib-beta",
     .kind = PNB__OPT_REAL,
     .at = AT(vib_beta),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of the divergence from N(0, I)"},
    {.name = "vib-form",
     .kind = PNB__OPT_CHOICE,
     .at = AT(vib_form),
     .value = "FORM",
     .fallback = "exact",
     .choices = "exact|official",
     .help = "The divergence itself, or the form of the released code, with half the log-variance"},
    {.name = "vib-limit",
     .kind = PNB__OPT_REAL,
     .at = AT(vib_limit),
     .value = "LOSS",
     .min = 0,
     .max = INFINITY,
     .help = "A divergence above it counts as 0"},
    {.name = "inclusion-alpha",
     .kind = PNB__OPT_REAL,
     .at = AT(inclusion_alpha),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of: picture included in its caption"},
    {.name = "inclusion-alpha-occ",
     .kind = PNB__OPT_REAL,
     .at = AT(inclusion_alpha_occ),
     .value = "W",
     .min = 0,
     .max = INFINITY,
     .help = "Weight of: original included in its masked copy"},
    {.name = "inclusion-scale",
     .kind = PNB__OPT_REAL,
     .at = AT(inclusion_scale),
     .value = "C",
     .min = 0,
     .max = INFINITY,
     .help = "Factor on the inclusion test"},
    {.name = "inclusion-eps",
     .kind = PNB__OPT_REAL,
     .at = AT(inclusion_eps),
     .value = "EPS",
     .help = "log of the factor on 1/variance in the published inclusion"},
    {.name = "inclusion-form",
     .kind = PNB__OPT_CHOICE,
     .at = AT(inclusion_form),
     .value = "FORM",
     .choices = "published|exact",
     .help = "The exact integral, or the form of the paper and code"},
    {.name = "inclusion-limit",
     .kind = PNB__OPT_REAL,
     .at = AT(inclusion_limit),
     .value = "LOSS",
     .min = 0,
     .max = INFINITY,
     .help = "An inclusion loss above it counts as 0"},
    {.name = "drop-ratio",
     .kind = PNB__OPT_REAL,
     .at = AT(drop_ratio),
     .value = "SHARE",
     .max = 1,
     .help = "Share of the batch in the masked pass"},
    {.name = "drop-prob",
     .kind = PNB__OPT_REAL,
     .at = AT(drop_prob),
     .value = "P",
     .max = 1,
     .help = "Probability that a text token is masked"},
    {.name = "mask-keep",
     .kind = PNB__OPT_REAL,
     .at = AT(mask_keep),
     .value = "SHARE",
     .min = 1e-06,
     .max = 1,
     .help = "Share of patches a masked picture keeps"},
    {.name = "text-mask",
     .kind = PNB__OPT_CHOICE,
     .at = AT(text_mask),
     .value = "HOW",
     .choices = "delete|replace",
     .help = "Masked tokens are deleted, or replaced by the mask token as published"},
    {.name = "replace-token",
     .kind = PNB__OPT_INT,
     .at = AT(replace_token),
     .value = "ID",
     .min = 0,
     .max = 1000000000.0,
     .help = "Token that replaces; by default the tokenizer's mask token"},
    {.name = "opt",
     .kind = PNB__OPT_CHOICE,
     .at = AT(opt),
     .value = "NAME",
     .choices = "adamw|adamp|adam|sgd|sgdp",
     .group = "Optimisation",
     .help = "Optimiser"},
    {.name = "adamp", .kind = PNB__OPT_FLAG, .at = AT(adamp), .help = "The same as --opt adamp"},
    {.name = "lr",
     .kind = PNB__OPT_REAL,
     .at = AT(lr),
     .value = "LR",
     .min = 0,
     .max = INFINITY,
     .help = "Learning rate"},
    {.name = "beta1",
     .kind = PNB__OPT_REAL,
     .at = AT(beta1),
     .value = "B",
     .max = 1,
     .help = "First moment"},
    {.name = "beta2",
     .kind = PNB__OPT_REAL,
     .at = AT(beta2),
     .value = "B",
     .max = 1,
     .help = "Second moment"},
    {.name = "eps",
     .kind = PNB__OPT_REAL,
     .at = AT(eps),
     .value = "EPS",
     .min = 0,
     .max = INFINITY,
     .help = "Added to the root of the second moment"},
    {.name = "momentum",
     .kind = PNB__OPT_REAL,
     .at = AT(momentum),
     .value = "M",
     .max = 1,
     .help = "Momentum of sgd and sgdp"},
    {.name = "wd",
     .kind = PNB__OPT_REAL,
     .at = AT(wd),
     .value = "WD",
     .min = 0,
     .max = INFINITY,
     .help = "Weight decay of matrices"},
    {.name = "warmup",
     .kind = PNB__OPT_INT,
     .at = AT(warmup),
     .value = "STEPS",
     .max = 1000000000000.0,
     .help = "Steps of linear warm-up"},
    {.name = "lr-scheduler",
     .kind = PNB__OPT_CHOICE,
     .at = AT(lr_scheduler),
     .value = "NAME",
     .choices = "cosine|const|const-cooldown|torch-cosine",
     .help = "Course of the learning rate"},
    {.name = "lr-min-ratio",
     .kind = PNB__OPT_REAL,
     .at = AT(lr_min_ratio),
     .value = "SHARE",
     .max = 1,
     .help = "Share of lr the cosine ends at"},
    {.name = "epochs-cooldown",
     .kind = PNB__OPT_INT,
     .at = AT(epochs_cooldown),
     .value = "N",
     .max = 1000000000.0,
     .help = "Epochs of cooling down (const-cooldown)"},
    {.name = "lr-cooldown-end",
     .kind = PNB__OPT_REAL,
     .at = AT(lr_cooldown_end),
     .value = "LR",
     .min = 0,
     .max = INFINITY,
     .help = "Rate at the end of cooling down"},
    {.name = "lr-cooldown-power",
     .kind = PNB__OPT_REAL,
     .at = AT(lr_cooldown_power),
     .value = "P",
     .min = 0,
     .max = INFINITY,
     .help = "Power of the cooling"},
    {.name = "grad-clip-norm",
     .kind = PNB__OPT_REAL,
     .at = AT(grad_clip_norm),
     .value = "NORM",
     .min = 0,
     .max = INFINITY,
     .help = "Gradients of a larger norm are scaled down; 0 is off"},
    {.name = "batch-size",
     .kind = PNB__OPT_INT,
     .at = AT(batch_size),
     .letter = 'b',
     .value = "N",
     .min = 1,
     .max = 1000000.0,
     .help = "Pairs of one forward pass"},
    {.name = "accum-freq",
     .kind = PNB__OPT_INT,
     .at = AT(accum_freq),
     .value = "N",
     .min = 1,
     .max = 1000000.0,
     .help = "Forward passes of one step; the loss sees all their pairs"},
    {.name = "grad-checkpointing",
     .kind = PNB__OPT_FLAG,
     .at = AT(grad_checkpointing),
     .help =
         "Keep less for the backward pass and compute it again: same bits, less memory, more time"},
    {.name = "local-loss",
     .kind = PNB__OPT_FLAG,
     .at = AT(local_loss),
     .help = "Accepted for compatibility: one process sees the whole batch"},
    {.name = "gather-with-grad",
     .kind = PNB__OPT_FLAG,
     .at = AT(gather_with_grad),
     .help = "Accepted for compatibility, as --local-loss"},
    {.name = "epochs",
     .kind = PNB__OPT_INT,
     .at = AT(epochs),
     .value = "N",
     .max = 1000000000.0,
     .help = "Passes over the data"},
    {.name = "max-steps",
     .kind = PNB__OPT_INT,
     .at = AT(max_steps),
     .value = "N",
     .max = 1000000000000000.0,
     .help = "End after so many steps, also for the schedule; 0 is off"},
    {.name = "precision",
     .kind = PNB__OPT_CHOICE,
     .at = AT(precision),
     .value = "NAME",
     .fallback = "fp32",
     .choices = "fp32|amp|amp_bf16|amp_bfloat16|bf16|fp16|pure_bf16|pure_fp16",
     .help = "Arithmetic; fp32 is what this build trains in"},
    {.name = "logs",
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(logs),
     .value = "DIR",
     .fallback = "./logs",
     .group = "Run",
     .help = "Folder of runs"},
    {.name = "name",
     .kind = PNB__OPT_TEXT,
     .at = AT(name),
     .value = "RUN",
     .help = "Name of the run's folder; made from date, model, rate and batch by default"},
    {.name = "resume",
     .kind = PNB__OPT_FILE,
     .at = AT(resume),
     .value = "latest|DIR",
     .help = "Continue from the newest checkpoint of the run, or from one"},
    {.name = "log-every-n-steps",
     .kind = PNB__OPT_INT,
     .at = AT(log_every_n_steps),
     .value = "N",
     .min = 1,
     .max = 1000000000.0,
     .help = "Steps between two log lines"},
    {.name = "val-frequency",
     .kind = PNB__OPT_INT,
     .at = AT(val_frequency),
     .value = "N",
     .max = 1000000000.0,
     .help = "Epochs between validations; 0 is only at the end"},
    {.name = "val-every-n-steps",
     .kind = PNB__OPT_INT,
     .at = AT(val_every_n_steps),
     .value = "N",
     .max = 1000000000000.0,
     .help = "Steps between validations; 0 goes by epochs"},
    {.name = "save-frequency",
     .kind = PNB__OPT_INT,
     .at = AT(save_frequency),
     .value = "N",
     .max = 1000000000.0,
     .help =
         "Every so many epochs a checkpoint is written and stays; 0 is only at the end. Without "
         "it each epoch's replaces the one before, and the last and the best stay"},
    {.name = "save-every-n-steps",
     .kind = PNB__OPT_INT,
     .at = AT(save_every_n_steps),
     .value = "N",
     .max = 1000000000000.0,
     .help = "Steps between checkpoints, each of which replaces the one before; 0 goes by epochs"},
    {.name = "delete-previous-checkpoint",
     .kind = PNB__OPT_FLAG,
     .at = AT(delete_previous_checkpoint),
     .help = "With --save-frequency too, keep only the newest checkpoint and the best"},
    {.name = "save-most-recent",
     .kind = PNB__OPT_FLAG,
     .at = AT(save_most_recent),
     .help = "With --save-frequency too, a checkpoint after every epoch; those it does not ask for "
             "make room for the next. Without it this is so anyway"},
    {.name = "save-best-unc",
     .kind = PNB__OPT_FLAG,
     .at = AT(save_best_unc),
     .help = "Keep checkpoints/epoch_best_unc, where uncertainty foretells failed retrieval best"},
    {.name = "report-to",
     .kind = PNB__OPT_TEXT,
     .at = AT(report_to),
     .value = "WHERE",
     .help = "tensorboard writes event files to LOGS/RUN/tensorboard"},
    {.name = "zeroshot-frequency",
     .kind = PNB__OPT_INT,
     .at = AT(zeroshot_frequency),
     .value = "N",
     .max = 1000000000.0,
     .help = "Accepted as 0; zero-shot evaluation is not part of training"},
    {.name = "imagenet-val",
     .kind = PNB__OPT_FILE,
     .at = AT(imagenet_val),
     .value = "DIR",
     .help = "Refused, with the commands that measure it"},
    {.name = "coco-test",
     .kind = PNB__OPT_FILE,
     .at = AT(coco_test),
     .value = "DIR",
     .help = "Refused, with the commands that measure it"},
};
#undef AT

/* Given values replace the recipe's. */
#define SET_INT(to, from, type)                                                                    \
    if (a->from != PNB__INT_UNSET)                                                                 \
    o->to = (type)a->from
#define SET_REAL(to, from)                                                                         \
    if (!isnan(a->from))                                                                           \
    o->to = a->from

static pnb_status fill_data(pnb__app *app, const struct train_args *a, pnb_train_opts *o)
{
    o->train_data = a->train_data;
    o->val_data = a->val_data;
    o->dataset.kind = pnb__dataset_kind(a->dataset_type);
    o->dataset.csv_img_key = a->csv_img_key;
    o->dataset.csv_caption_key = a->csv_caption_key;
    o->dataset.image_key = a->image_key;
    o->dataset.text_key = a->text_key;
    o->dataset_resampled = a->dataset_resampled;
    o->max_image_pixels = app->common.max_image_pixels;
    if (a->train_data == NULL && o->dataset.kind != PNB_DATASET_SYNTHETIC)
        return pnb__usage(app, "--train-data is required, except with --dataset-type synthetic");
    if (a->csv_separator != NULL && !pnb__separator(a->csv_separator, &o->dataset.csv_separator))
        return pnb__usage(app, "--csv-separator %s: one character is wanted", a->csv_separator);
    o->captions = pnb__caption_choice(a->captions);
    SET_INT(train_num_samples, train_num_samples, int64_t);
    SET_INT(workers, workers, int);
    SET_INT(val_level, val_level, int);
    SET_REAL(template_share, template_share);
    if (a->augment != NULL)
        o->augment = pnb__augment_recipe(a->augment);
    for (size_t i = 0; i < a->aug_cfg.n; i++)
        if (!pnb__augment_set(&o->augment, a->aug_cfg.items[i]))
            return pnb__usage(app, "--aug-cfg %s: not a known key with numbers; keys are %s",
                              a->aug_cfg.items[i], pnb__augment_keys());
    return PNB_OK;
}

static void fill_model(const struct train_args *a, const char *model, pnb_train_opts *o)
{
    if (model != NULL)
        o->model = model;
    o->tokenizer = a->tokenizer;
    o->config_overrides = a->override;
    o->lock_image = a->lock_image;
    o->lock_text = a->lock_text;
    o->force_resize_pos_emb = a->force_resize_pos_emb;
    o->reinit_unc = a->reinit_unc;
    if (a->tokenizer_kind != NULL)
        o->tokenizer_kind =
            strcmp(a->tokenizer_kind, "word") == 0 ? PNB_TOKENIZER_WORD : PNB_TOKENIZER_BYTE_BPE;
    SET_INT(tokenizer_vocab_size, tokenizer_vocab_size, int);
    SET_INT(force_image_size, force_image_size, int);
    SET_INT(force_context_length, force_context_length, int);
    SET_REAL(init_logit_scale, init_logit_scale);
    SET_REAL(init_logit_bias, init_logit_bias);
    SET_REAL(init_unc_bias, init_unc_bias);
}

static void fill_objective(const struct train_args *a, pnb_train_opts *o)
{
    SET_REAL(loss.weight[PNB_LOSS_PPCL], ppcl_lambda);
    SET_REAL(loss.weight[PNB_LOSS_SIGLIP], siglip_lambda);
    SET_REAL(loss.weight[PNB_LOSS_CLIP], clip_lambda);
    SET_REAL(loss.weight[PNB_LOSS_PCMEPP], pcmepp_lambda);
    SET_REAL(loss.weight[PNB_LOSS_VIB], vib_beta);
    SET_REAL(loss.weight[PNB_LOSS_INCLUSION], inclusion_alpha);
    SET_REAL(loss.weight[PNB_LOSS_IMG_INCLUSION], inclusion_alpha_occ);
    SET_REAL(loss.weight[PNB_LOSS_TXT_INCLUSION], inclusion_alpha_occ);
    SET_REAL(loss.inclusion_scale, inclusion_scale);
    SET_REAL(loss.inclusion_eps, inclusion_eps);
    SET_REAL(loss.inclusion_limit, inclusion_limit);
    SET_REAL(loss.vib_limit, vib_limit);
    o->loss.vib_official = strcmp(a->vib_form, "official") == 0;
    SET_REAL(drop_ratio, drop_ratio);
    SET_REAL(drop_prob, drop_prob);
    SET_REAL(mask_keep, mask_keep);
    SET_INT(replace_token, replace_token, int);
    if (a->inclusion_form != NULL)
        o->loss.inclusion_exact = strcmp(a->inclusion_form, "exact") == 0;
    if (a->text_mask != NULL)
        o->text_mask =
            strcmp(a->text_mask, "delete") == 0 ? PNB_TEXT_MASK_DELETE : PNB_TEXT_MASK_REPLACE;
}

static void fill_optimisation(const struct train_args *a, pnb_train_opts *o)
{
    if (a->opt != NULL)
        pnb_optim_from_name(a->opt, &o->optim.kind);
    if (a->adamp)
        o->optim.kind = PNB_OPTIM_ADAMP;
    if (a->lr_scheduler != NULL)
        pnb_schedule_from_name(a->lr_scheduler, &o->lr_scheduler);
    SET_REAL(optim.lr, lr);
    SET_REAL(optim.beta1, beta1);
    SET_REAL(optim.beta2, beta2);
    SET_REAL(optim.eps, eps);
    SET_REAL(optim.momentum, momentum);
    SET_REAL(optim.weight_decay, wd);
    SET_REAL(optim.grad_clip_norm, grad_clip_norm);
    SET_REAL(lr_min_ratio, lr_min_ratio);
    SET_REAL(lr_cooldown_end, lr_cooldown_end);
    SET_REAL(lr_cooldown_power, lr_cooldown_power);
    SET_INT(warmup, warmup, int64_t);
    SET_INT(epochs_cooldown, epochs_cooldown, int64_t);
    SET_INT(batch_size, batch_size, size_t);
    SET_INT(accum_freq, accum_freq, int);
    o->grad_checkpointing = a->grad_checkpointing;
    SET_INT(epochs, epochs, int64_t);
    SET_INT(max_steps, max_steps, int64_t);
}

static void fill_run(const struct train_args *a, pnb_train_opts *o)
{
    o->logs = a->logs;
    o->name = a->name;
    o->resume = a->resume;
    o->delete_previous_checkpoint = a->delete_previous_checkpoint;
    o->save_most_recent = a->save_most_recent || a->save_frequency == PNB__INT_UNSET;
    o->save_best_unc = a->save_best_unc;
    o->report_tensorboard = a->report_to != NULL && strstr(a->report_to, "tensorboard") != NULL;
    SET_INT(log_every_n_steps, log_every_n_steps, int64_t);
    SET_INT(val_frequency, val_frequency, int64_t);
    SET_INT(val_every_n_steps, val_every_n_steps, int64_t);
    SET_INT(save_frequency, save_frequency, int64_t);
    SET_INT(save_every_n_steps, save_every_n_steps, int64_t);
}

/* Words of open_clip's command line that this program answers instead of obeying. */
static pnb_status check_unsupported(pnb__app *app, const struct train_args *a)
{
    static const char evaluate[] =
        "evaluation on other data is a command of its own: `penumbra embed` a checkpoint's "
        "pictures "
        "and captions, then `penumbra eval retrieval`; --val-data validates during training";
    if (strcmp(a->precision, "fp32") != 0)
        return pnb__usage(app,
                          "--precision %s: training runs in fp32 here, with gradients and "
                          "optimiser state in fp32; leave the option out or give fp32",
                          a->precision);
    if (a->imagenet_val != NULL)
        return pnb__usage(app, "--imagenet-val: %s", evaluate);
    if (a->coco_test != NULL)
        return pnb__usage(app, "--coco-test: %s", evaluate);
    if (a->zeroshot_frequency != PNB__INT_UNSET && a->zeroshot_frequency != 0)
        return pnb__usage(app, "--zeroshot-frequency: %s", evaluate);
    if (a->report_to != NULL && a->report_to[0] != '\0' && strcmp(a->report_to, "tensorboard") != 0)
        return pnb__usage(app,
                          "--report-to %s: only tensorboard is written, besides results.jsonl in "
                          "the run's folder, which always is",
                          a->report_to);
    if (a->local_loss || a->gather_with_grad)
        pnb__say(app, "--local-loss and --gather-with-grad change nothing in one process: the loss "
                      "sees the whole batch with its gradient");
    return PNB_OK;
}

static pnb_status run(pnb__app *app, const void *args)
{
    const struct train_args *a = args;
    pnb_train_opts opts =
        strcmp(a->recipe, "published") == 0 ? pnb_train_opts_published() : pnb_train_opts_default();
    if (a->adamp && a->opt != NULL && strcmp(a->opt, "adamp") != 0)
        return pnb__usage(app, "--adamp and --opt %s contradict each other", a->opt);
    const char *name = a->pretrained != NULL ? a->pretrained : a->model;
    char *model = NULL;
    pnb_status status = check_unsupported(app, a);
    if (status == PNB_OK)
        status = fill_data(app, a, &opts);
    if (status == PNB_OK && name != NULL)
        status = pnb__model_path(app, name, &model, &app->err);
    if (status != PNB_OK)
        return status;
    fill_model(a, model, &opts);
    fill_objective(a, &opts);
    fill_optimisation(a, &opts);
    fill_run(a, &opts);
    opts.seed = (uint64_t)app->common.seed;
    status = pnb__train_run(app, &opts);
    pnb__free(model);
    return status;
}

const pnb__command pnb__cmd_train = {
    .name = "train",
    .summary = "train a ProLIP model on pictures and captions",
    .about =
        "Writes LOGS/RUN with params.txt, out.log, results.jsonl and checkpoints/, each checkpoint "
        "a model directory that every other command opens. Ctrl-C writes a checkpoint and exits "
        "with 130; --resume latest goes on from there, in the middle of an epoch too, and ends in "
        "the same bits as an uninterrupted run with the same number of threads. A checkpoint is "
        "written after every epoch and replaces the one before, which goes when the new one is "
        "whole; checkpoints/latest names it, checkpoints/best the one of the lowest val_loss, "
        "which stays. --save-frequency N keeps every N-th epoch's too. An epoch of tar shards "
        "rounds up to whole steps, as in open_clip; one of tables and folders rounds down.\n\n"
        "The small recipe is for minutes on a CPU: the bias follows the batch, masked captions "
        "lose tokens instead of getting mask tokens. The published recipe is the paper's. In both "
        "a "
        "new model reads a caption's log-variance from its projected mean, as released models do: "
        "[UNC], which --override '{\"text_uncertainty_source\":\"unc_token\"}' asks for, did not "
        "learn the order of general and exact captions in short trainings.\n\n"
        "results.jsonl has one object a line. Of kind \"train\" every so many steps: step, epoch, "
        "samples, loss (total), one field for each weighted term (ppcl, inclusion, ...), lr, "
        "logit_scale, logit_bias, grad_norm, data_s and batch_s (seconds), samples_per_s, "
        "image_uncertainty and text_uncertainty (mean traces). Of kind \"eval\" after each "
        "validation: val_samples, val_loss and its terms (means over all pairs, the last "
        "incomplete "
        "batch too), img_inclusion and txt_inclusion (the masked terms, over the first "
        "--drop-ratio "
        "of the set with the same masks each time; no part of val_loss), i2t_r1 and t2i_r1 on the "
        "whole set, "
        "batch_i2t_r1 and batch_t2i_r1 in a batch, the uncertainties, and i2t_unc_r and t2i_unc_r: "
        "the correlation of a bin's number with its R@1 over ten bins of queries by uncertainty "
        "(null where it does not exist). --save-best-unc keeps the checkpoint with the most "
        "negative i2t_unc_r; --report-to tensorboard writes the same numbers as event files.",
    .examples =
        "penumbra train --train-data shapes/train --val-data shapes/val --name first --epochs 20\n"
        "penumbra train --train-data 'set/{00000..00099}.tar' --model ViT-B-16 --recipe published\n"
        "penumbra train --train-data shapes/train --name first --resume latest",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct train_args),
    .run = run};
