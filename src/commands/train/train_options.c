/* penumbra train: open_clip's flag names in front of pnb_train.
 *
 * A value that is not given stays what the recipe says; only then is a default of one place. */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/model_path.h"
#include "commands/common/option_rows.h"
#include "commands/train/train_run.h"
#include "commands/train/train_words.h"

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
    PNB__ROW_FILE(
        "train-data", AT(train_data), "SPEC",
        "Pictures and captions: tar shards (braces, globs, \"::\"), a csv, a jsonl or a folder",
        .group = "Data"),
    PNB__ROW_FILE("val-data", AT(val_data), "SPEC", "The same for validation"),
    PNB__ROW_INT("train-num-samples", AT(train_num_samples), "N",
                 "Samples of one epoch; by default all", PNB__RANGE(1, 1000000000000000.0)),
    PNB__ROW_CHOICE(
        "dataset-type", AT(dataset_type), "TYPE", "auto|webdataset|csv|dir|jsonl|synthetic",
        "Form of the data; told by the name by default. synthetic: random pixels, one caption "
        "and no files, --train-num-samples of them",
        .fallback = "auto"),
    PNB__ROW_FLAG("dataset-resampled", AT(dataset_resampled),
                  "Draw training samples with replacement"),
    PNB__ROW_TEXT("csv-separator", AT(csv_separator), "CHAR",
                  "Separator of a table; told by the header by default"),
    PNB__ROW_TEXT("csv-img-key", AT(csv_img_key), "COLUMN", "Column of picture paths",
                  .fallback = "filepath"),
    PNB__CAPTION_KEY_ROW(AT(csv_caption_key)),
    PNB__ROW_TEXT("image-key", AT(image_key), "SUFFIXES",
                  "Members of a tar that are pictures, \";\" between; without it "
                  "jpg;png;jpeg;webp;0.jpg, then any other picture ending"),
    PNB__ROW_TEXT("text-key", AT(text_key), "SUFFIXES",
                  "Members of a tar that are captions: json records, others text",
                  .fallback = "json;txt"),
    PNB__ROW_CHOICE("captions", AT(captions), "HOW", "level|any|first",
                    "Which caption of a sample: a level at random and one of it, any, the first",
                    .fallback = "level"),
    PNB__ROW_REAL("template-share", AT(template_share), "SHARE",
                  "Share of captions put into a template such as \"a picture of {}\"",
                  PNB__RANGE(0, 1)),
    PNB__ROW_INT("val-level", AT(val_level), "N",
                 "Caption level of validation where samples have levels", PNB__RANGE(-1, 7)),
    PNB__ROW_INT("workers", AT(workers), "N", "Threads that read and augment ahead of the trainer",
                 PNB__RANGE(0, 1024)),
    PNB__ROW_CHOICE("augment", AT(augment), "RECIPE", "none|small|published",
                    "Changes to training pictures; the recipe's by default"),
    PNB__ROW_LIST("aug-cfg", AT(aug_cfg), "K=V...",
                  "Single changes: scale=LO,HI ratio=LO,HI zoom=LO,HI shift= rotate= flip= gain= "
                  "color_jitter=B,C,S,H color_jitter_prob= gray_scale_prob= "
                  "interpolation=bicubic|bilinear|... re_prob= re_count="),
    PNB__ROW_FILE(
        "model", AT(model), "NAME|DIR|FILE",
        "Built-in configuration, config.json, or a model directory to go on from; tiny in the "
        "small recipe, ViT-B-16 in the published one",
        .group = "Model", .letter = 'm'),
    PNB__ROW_FILE("pretrained", AT(pretrained), "DIR",
                  "Model directory to start from; the same as --model DIR"),
    PNB__ROW_FILE(
        "tokenizer", AT(tokenizer), "PATH",
        "tokenizer.json or folder; by default the model's, else one is trained on the captions"),
    PNB__ROW_CHOICE("tokenizer-kind", AT(tokenizer_kind), "KIND", "bpe|word",
                    "Kind of the tokenizer trained"),
    PNB__ROW_INT("tokenizer-vocab-size", AT(tokenizer_vocab_size), "N",
                 "Entries of the tokenizer trained", PNB__RANGE(4, 10000000.0)),
    PNB__ROW_TEXT("override", AT(override), "JSON", "JSON object merged into a configuration"),
    PNB__ROW_INT("force-image-size", AT(force_image_size), "PIXELS",
                 "Picture size instead of the configuration's", PNB__RANGE(1, 16384)),
    PNB__ROW_INT(
        "force-context-length", AT(force_context_length), "N",
        "Caption length in tokens instead of the configuration's; without it the built-in "
        "tiny takes the length that 99% of the training captions fit into, at most 77, and "
        "says it first",
        PNB__RANGE(2, 65536)),
    PNB__ROW_FLAG("force-resize-pos-emb", AT(force_resize_pos_emb),
                  "Interpolate the positions of a model directory to the forced sizes"),
    PNB__ROW_FLAG("reinit-unc", AT(reinit_unc),
                  "Start from a model directory with fresh uncertainty tokens and heads"),
    PNB__ROW_REAL("init-logit-scale", AT(init_logit_scale), "A", "Scale a of a fresh model",
                  PNB__RANGE(0.001, 1000)),
    PNB__ROW_REAL("init-logit-bias", AT(init_logit_bias), "B",
                  "Bias b of a fresh model; -log(batch) by default in the small recipe"),
    PNB__ROW_REAL(
        "init-unc-bias", AT(init_unc_bias), "LV",
        "Log-variance bias of a fresh model; -10 + log(768/D) by default in the small recipe"),
    PNB__ROW_FLAG("lock-image", AT(lock_image), "Freeze the image tower"),
    PNB__ROW_FLAG("lock-text", AT(lock_text), "Freeze the text tower"),
    PNB__ROW_CHOICE(
        "recipe", AT(recipe), "NAME", "small|published",
        "Defaults of everything not given here: small fits minutes on a CPU, published is the "
        "paper's",
        .fallback = "small", .group = "Objective"),
    PNB__ROW_FLAG("prolip", AT(prolip),
                  "Accepted for compatibility: the ProLIP objective is the default"),
    PNB__ROW_REAL("ppcl-lambda", AT(ppcl_lambda), "W",
                  "Weight of the probabilistic pairwise contrastive loss", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("siglip-lambda", AT(siglip_lambda), "W",
                  "Weight of the pairwise sigmoid loss of the means", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("clip-lambda", AT(clip_lambda), "W", "Weight of InfoNCE on the means",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("pcmepp-lambda", AT(pcmepp_lambda), "W", "Weight of the matching loss of PCME++",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("vib-beta", AT(vib_beta), "W", "Weight of the divergence from N(0, I)",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_CHOICE(
        "vib-form", AT(vib_form), "FORM", "exact|official",
        "The divergence itself, or the form of the released code, with half the log-variance",
        .fallback = "exact"),
    PNB__ROW_REAL("vib-limit", AT(vib_limit), "LOSS", "A divergence above it counts as 0",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-alpha", AT(inclusion_alpha), "W",
                  "Weight of: picture included in its caption", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-alpha-occ", AT(inclusion_alpha_occ), "W",
                  "Weight of: original included in its masked copy", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-scale", AT(inclusion_scale), "C", "Factor on the inclusion test",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-eps", AT(inclusion_eps), "EPS",
                  "log of the factor on 1/variance in the published inclusion"),
    PNB__ROW_CHOICE("inclusion-form", AT(inclusion_form), "FORM", "published|exact",
                    "The exact integral, or the form of the paper and code"),
    PNB__ROW_REAL("inclusion-limit", AT(inclusion_limit), "LOSS",
                  "An inclusion loss above it counts as 0", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("drop-ratio", AT(drop_ratio), "SHARE", "Share of the batch in the masked pass",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("drop-prob", AT(drop_prob), "P", "Probability that a text token is masked",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("mask-keep", AT(mask_keep), "SHARE", "Share of patches a masked picture keeps",
                  PNB__RANGE(1e-06, 1)),
    PNB__ROW_CHOICE("text-mask", AT(text_mask), "HOW", "delete|replace",
                    "Masked tokens are deleted, or replaced by the mask token as published"),
    PNB__ROW_INT("replace-token", AT(replace_token), "ID",
                 "Token that replaces; by default the tokenizer's mask token",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_CHOICE("opt", AT(opt), "NAME", "adamw|adamp|adam|sgd|sgdp", "Optimiser",
                    .group = "Optimisation"),
    PNB__ROW_FLAG("adamp", AT(adamp), "The same as --opt adamp"),
    PNB__ROW_REAL("lr", AT(lr), "LR", "Learning rate", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("beta1", AT(beta1), "B", "First moment", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("beta2", AT(beta2), "B", "Second moment", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("eps", AT(eps), "EPS", "Added to the root of the second moment",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("momentum", AT(momentum), "M", "Momentum of sgd and sgdp", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("wd", AT(wd), "WD", "Weight decay of matrices", PNB__RANGE(0, INFINITY)),
    PNB__ROW_INT("warmup", AT(warmup), "STEPS", "Steps of linear warm-up",
                 PNB__RANGE(0, 1000000000000.0)),
    PNB__ROW_CHOICE("lr-scheduler", AT(lr_scheduler), "NAME",
                    "cosine|const|const-cooldown|torch-cosine", "Course of the learning rate"),
    PNB__ROW_REAL("lr-min-ratio", AT(lr_min_ratio), "SHARE", "Share of lr the cosine ends at",
                  PNB__RANGE(0, 1)),
    PNB__ROW_INT("epochs-cooldown", AT(epochs_cooldown), "N",
                 "Epochs of cooling down (const-cooldown)", PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_REAL("lr-cooldown-end", AT(lr_cooldown_end), "LR", "Rate at the end of cooling down",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("lr-cooldown-power", AT(lr_cooldown_power), "P", "Power of the cooling",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("grad-clip-norm", AT(grad_clip_norm), "NORM",
                  "Gradients of a larger norm are scaled down; 0 is off", PNB__RANGE(0, INFINITY)),
    PNB__ROW_INT("batch-size", AT(batch_size), "N", "Pairs of one forward pass",
                 PNB__RANGE(1, 1000000.0), .letter = 'b'),
    PNB__ROW_INT("accum-freq", AT(accum_freq), "N",
                 "Forward passes of one step; the loss sees all their pairs",
                 PNB__RANGE(1, 1000000.0)),
    PNB__ROW_FLAG(
        "grad-checkpointing", AT(grad_checkpointing),
        "Keep less for the backward pass and compute it again: same bits, less memory, more time"),
    PNB__ROW_FLAG("local-loss", AT(local_loss),
                  "Accepted for compatibility: one process sees the whole batch"),
    PNB__ROW_FLAG("gather-with-grad", AT(gather_with_grad),
                  "Accepted for compatibility, as --local-loss"),
    PNB__ROW_INT("epochs", AT(epochs), "N", "Passes over the data", PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_INT("max-steps", AT(max_steps), "N",
                 "End after so many steps, also for the schedule; 0 is off",
                 PNB__RANGE(0, 1000000000000000.0)),
    PNB__ROW_CHOICE("precision", AT(precision), "NAME",
                    "fp32|amp|amp_bf16|amp_bfloat16|bf16|fp16|pure_bf16|pure_fp16",
                    "Arithmetic; fp32 is what this build trains in", .fallback = "fp32"),
    PNB__ROW_FILE("logs", AT(logs), "DIR", "Folder of runs", .fallback = "./logs", .group = "Run",
                  .writes = "/"),
    PNB__ROW_TEXT("name", AT(name), "RUN",
                  "Name of the run's folder; made from date, model, rate and batch by default"),
    PNB__ROW_FILE("resume", AT(resume), "latest|DIR",
                  "Continue from the newest checkpoint of the run, or from one"),
    PNB__ROW_INT("log-every-n-steps", AT(log_every_n_steps), "N", "Steps between two log lines",
                 PNB__RANGE(1, 1000000000.0)),
    PNB__ROW_INT("val-frequency", AT(val_frequency), "N",
                 "Epochs between validations; 0 is only at the end", PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_INT("val-every-n-steps", AT(val_every_n_steps), "N",
                 "Steps between validations; 0 goes by epochs", PNB__RANGE(0, 1000000000000.0)),
    PNB__ROW_INT(
        "save-frequency", AT(save_frequency), "N",
        "Every so many epochs a checkpoint is written and stays; 0 is only at the end. Without "
        "it each epoch's replaces the one before, and the last and the best stay",
        PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_INT(
        "save-every-n-steps", AT(save_every_n_steps), "N",
        "Steps between checkpoints, each of which replaces the one before; 0 goes by epochs",
        PNB__RANGE(0, 1000000000000.0)),
    PNB__ROW_FLAG("delete-previous-checkpoint", AT(delete_previous_checkpoint),
                  "With --save-frequency too, keep only the newest checkpoint and the best"),
    PNB__ROW_FLAG(
        "save-most-recent", AT(save_most_recent),
        "With --save-frequency too, a checkpoint after every epoch; those it does not ask for "
        "make room for the next. Without it this is so anyway"),
    PNB__ROW_FLAG(
        "save-best-unc", AT(save_best_unc),
        "Keep checkpoints/epoch_best_unc, where uncertainty foretells failed retrieval best"),
    PNB__ROW_TEXT("report-to", AT(report_to), "WHERE",
                  "tensorboard writes event files to LOGS/RUN/tensorboard"),
    PNB__ROW_INT("zeroshot-frequency", AT(zeroshot_frequency), "N",
                 "Accepted as 0; zero-shot evaluation is not part of training",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_FILE("imagenet-val", AT(imagenet_val), "DIR",
                  "Refused, with the commands that measure it"),
    PNB__ROW_FILE("coco-test", AT(coco_test), "DIR", "Refused, with the commands that measure it"),
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
