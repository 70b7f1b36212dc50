/* Options of a training run: defaults, checks, and one table that turns them into text.
 *
 * The table serves params.txt, the settings kept in a checkpoint and their comparison on resume, so
 * an option is written in one place. `fixed` marks what shapes the weights: a resumed run must have
 * it unchanged, otherwise it could not end in the bits of an uninterrupted one. */
#include "train/run_options.h"

#include <math.h>
#include <string.h>

#include "train/loss.h"
#include "train/optim.h"

static const char *const templates[] = {
    "a picture of {}", "an image of {}",  "an icon of {}",
    "this shows {}",   "{} in a picture", "a small picture of {}",
};

pnb_train_opts pnb_train_opts_default(void)
{
    pnb_train_opts o = {
        .dataset = pnb_dataset_opts_default(),
        .workers = 1,
        .max_image_pixels = PNB_IMAGE_DEFAULT_PIXELS,
        .augment = pnb_augment_small(),
        .captions = PNB_CAPTION_LEVEL,
        .template_share = 0.3,
        .templates = templates,
        .n_templates = PNB_COUNT(templates),
        .val_level = 3,
        .model = "tiny",
        .tokenizer_vocab_size = 1500,
        .tokenizer_kind = PNB_TOKENIZER_BYTE_BPE,
        .init_logit_scale = NAN,
        .init_logit_bias = NAN,
        .init_unc_bias = NAN,
        .loss = pnb_loss_opts_default(),
        .drop_ratio = 0.125,
        .drop_prob = 0.75,
        .mask_keep = 0.25,
        .text_mask = PNB_TEXT_MASK_DELETE,
        .replace_token = -1,
        .optim = pnb_optim_opts_default(),
        .lr_scheduler = PNB_SCHEDULE_COSINE,
        .warmup = 40,
        .lr_min_ratio = 0.02,
        .lr_cooldown_power = 1,
        .batch_size = 128,
        .accum_freq = 1,
        .epochs = 32,
        .logs = "./logs",
        .log_every_n_steps = 10,
        .val_frequency = 1,
        .save_most_recent = true,
    };
    o.optim.lr = 1e-3;
    o.optim.weight_decay = 0.1;
    o.optim.grad_clip_norm = 1;
    return o;
}

pnb_train_opts pnb_train_opts_published(void)
{
    pnb_train_opts o = pnb_train_opts_default();
    o.augment = pnb_augment_published();
    o.template_share = 0;
    o.model = "ViT-B-16";
    o.config_init = true;
    o.loss = pnb_loss_opts_published();
    o.text_mask = PNB_TEXT_MASK_REPLACE;
    o.optim = pnb_optim_opts_default();
    o.warmup = 10000;
    o.lr_min_ratio = 0;
    return o;
}

static const char *text_mask_name(int v)
{
    return v == PNB_TEXT_MASK_DELETE ? "delete" : "replace";
}

static const char *optim_name(int v)
{
    return pnb_optim_name((pnb_optim_kind)v);
}

static const char *schedule_name(int v)
{
    return pnb_schedule_name((pnb_schedule_kind)v);
}

static const char *dataset_name(int v)
{
    static const char *const names[PNB_N_DATASET_KINDS] = {"auto",  "webdataset", "csv",   "dir",
                                                           "jsonl", "synthetic",  "binary"};
    return v >= 0 && v < PNB_N_DATASET_KINDS ? names[v] : NULL;
}

static const char *captions_name(int v)
{
    static const char *const names[PNB_N_CAPTION_CHOICES] = {"level", "any", "first", "all_levels"};
    return v >= 0 && v < PNB_N_CAPTION_CHOICES ? names[v] : NULL;
}

typedef enum field_kind {
    FIELD_INT,
    FIELD_I64,
    FIELD_U64,
    FIELD_SIZE,
    FIELD_DOUBLE,
    FIELD_BOOL,
    FIELD_STRING,
    FIELD_ENUM
} field_kind;

typedef struct field {
    const char *name;
    size_t offset;
    const char *(*enum_name)(int value);
    field_kind kind;
    bool fixed;
} field;

#define AT(member) offsetof(pnb_train_opts, member)

static const field fields[] = {
    {"train_data", AT(train_data), NULL, FIELD_STRING, false},
    {"val_data", AT(val_data), NULL, FIELD_STRING, false},
    {"dataset_type", AT(dataset.kind), dataset_name, FIELD_ENUM, false},
    {"dataset_resampled", AT(dataset_resampled), NULL, FIELD_BOOL, true},
    {"train_num_samples", AT(train_num_samples), NULL, FIELD_I64, true},
    {"workers", AT(workers), NULL, FIELD_INT, false},
    {"captions", AT(captions), captions_name, FIELD_ENUM, true},
    {"template_share", AT(template_share), NULL, FIELD_DOUBLE, true},
    {"n_templates", AT(n_templates), NULL, FIELD_SIZE, true},
    {"val_level", AT(val_level), NULL, FIELD_INT, false},
    {"aug_enabled", AT(augment.enabled), NULL, FIELD_BOOL, true},
    {"aug_crop", AT(augment.crop), NULL, FIELD_BOOL, true},
    {"aug_crop_scale_min", AT(augment.crop_scale[0]), NULL, FIELD_DOUBLE, true},
    {"aug_crop_scale_max", AT(augment.crop_scale[1]), NULL, FIELD_DOUBLE, true},
    {"aug_crop_ratio_min", AT(augment.crop_ratio[0]), NULL, FIELD_DOUBLE, true},
    {"aug_crop_ratio_max", AT(augment.crop_ratio[1]), NULL, FIELD_DOUBLE, true},
    {"aug_zoom_min", AT(augment.zoom[0]), NULL, FIELD_DOUBLE, true},
    {"aug_zoom_max", AT(augment.zoom[1]), NULL, FIELD_DOUBLE, true},
    {"aug_shift", AT(augment.shift), NULL, FIELD_DOUBLE, true},
    {"aug_rotate", AT(augment.rotate), NULL, FIELD_DOUBLE, true},
    {"aug_flip", AT(augment.flip), NULL, FIELD_DOUBLE, true},
    {"aug_gain", AT(augment.gain), NULL, FIELD_DOUBLE, true},
    {"aug_brightness", AT(augment.jitter[0]), NULL, FIELD_DOUBLE, true},
    {"aug_contrast", AT(augment.jitter[1]), NULL, FIELD_DOUBLE, true},
    {"aug_saturation", AT(augment.jitter[2]), NULL, FIELD_DOUBLE, true},
    {"aug_hue", AT(augment.jitter[3]), NULL, FIELD_DOUBLE, true},
    {"aug_jitter_p", AT(augment.jitter_p), NULL, FIELD_DOUBLE, true},
    {"aug_grey_p", AT(augment.grey_p), NULL, FIELD_DOUBLE, true},
    {"aug_interpolation", AT(augment.interpolation), NULL, FIELD_INT, true},
    {"aug_re_prob", AT(augment.erase_p), NULL, FIELD_DOUBLE, true},
    {"aug_re_count", AT(augment.erase_count), NULL, FIELD_INT, true},
    {"aug_n_no_flip_groups", AT(augment.n_no_flip_groups), NULL, FIELD_SIZE, true},
    {"model", AT(model), NULL, FIELD_STRING, false},
    {"tokenizer", AT(tokenizer), NULL, FIELD_STRING, false},
    {"tokenizer_vocab_size", AT(tokenizer_vocab_size), NULL, FIELD_INT, false},
    {"config_overrides", AT(config_overrides), NULL, FIELD_STRING, false},
    {"force_image_size", AT(force_image_size), NULL, FIELD_INT, false},
    {"force_context_length", AT(force_context_length), NULL, FIELD_INT, false},
    {"force_resize_pos_emb", AT(force_resize_pos_emb), NULL, FIELD_BOOL, false},
    {"reinit_unc", AT(reinit_unc), NULL, FIELD_BOOL, false},
    {"init_logit_scale", AT(init_logit_scale), NULL, FIELD_DOUBLE, false},
    {"init_logit_bias", AT(init_logit_bias), NULL, FIELD_DOUBLE, false},
    {"init_unc_bias", AT(init_unc_bias), NULL, FIELD_DOUBLE, false},
    {"config_init", AT(config_init), NULL, FIELD_BOOL, false},
    {"lock_image", AT(lock_image), NULL, FIELD_BOOL, true},
    {"lock_text", AT(lock_text), NULL, FIELD_BOOL, true},
    {"ppcl_lambda", AT(loss.weight[PNB_LOSS_PPCL]), NULL, FIELD_DOUBLE, true},
    {"siglip_lambda", AT(loss.weight[PNB_LOSS_SIGLIP]), NULL, FIELD_DOUBLE, true},
    {"clip_lambda", AT(loss.weight[PNB_LOSS_CLIP]), NULL, FIELD_DOUBLE, true},
    {"pcmepp_lambda", AT(loss.weight[PNB_LOSS_PCMEPP]), NULL, FIELD_DOUBLE, true},
    {"inclusion_alpha", AT(loss.weight[PNB_LOSS_INCLUSION]), NULL, FIELD_DOUBLE, true},
    {"inclusion_alpha_occ_image", AT(loss.weight[PNB_LOSS_IMG_INCLUSION]), NULL, FIELD_DOUBLE,
     true},
    {"inclusion_alpha_occ_text", AT(loss.weight[PNB_LOSS_TXT_INCLUSION]), NULL, FIELD_DOUBLE, true},
    {"vib_beta", AT(loss.weight[PNB_LOSS_VIB]), NULL, FIELD_DOUBLE, true},
    {"inclusion_scale", AT(loss.inclusion_scale), NULL, FIELD_DOUBLE, true},
    {"inclusion_eps", AT(loss.inclusion_eps), NULL, FIELD_DOUBLE, true},
    {"inclusion_exact", AT(loss.inclusion_exact), NULL, FIELD_BOOL, true},
    {"vib_official", AT(loss.vib_official), NULL, FIELD_BOOL, true},
    {"inclusion_limit", AT(loss.inclusion_limit), NULL, FIELD_DOUBLE, true},
    {"vib_limit", AT(loss.vib_limit), NULL, FIELD_DOUBLE, true},
    {"drop_ratio", AT(drop_ratio), NULL, FIELD_DOUBLE, true},
    {"drop_prob", AT(drop_prob), NULL, FIELD_DOUBLE, true},
    {"mask_keep", AT(mask_keep), NULL, FIELD_DOUBLE, true},
    {"text_mask", AT(text_mask), text_mask_name, FIELD_ENUM, true},
    {"replace_token", AT(replace_token), NULL, FIELD_INT, true},
    {"optimizer", AT(optim.kind), optim_name, FIELD_ENUM, true},
    {"lr", AT(optim.lr), NULL, FIELD_DOUBLE, true},
    {"beta1", AT(optim.beta1), NULL, FIELD_DOUBLE, true},
    {"beta2", AT(optim.beta2), NULL, FIELD_DOUBLE, true},
    {"eps", AT(optim.eps), NULL, FIELD_DOUBLE, true},
    {"momentum", AT(optim.momentum), NULL, FIELD_DOUBLE, true},
    {"dampening", AT(optim.dampening), NULL, FIELD_DOUBLE, true},
    {"nesterov", AT(optim.nesterov), NULL, FIELD_BOOL, true},
    {"wd", AT(optim.weight_decay), NULL, FIELD_DOUBLE, true},
    {"delta", AT(optim.delta), NULL, FIELD_DOUBLE, true},
    {"wd_ratio", AT(optim.wd_ratio), NULL, FIELD_DOUBLE, true},
    {"grad_clip_norm", AT(optim.grad_clip_norm), NULL, FIELD_DOUBLE, true},
    {"lr_scheduler", AT(lr_scheduler), schedule_name, FIELD_ENUM, true},
    {"warmup", AT(warmup), NULL, FIELD_I64, true},
    {"lr_min_ratio", AT(lr_min_ratio), NULL, FIELD_DOUBLE, true},
    {"epochs_cooldown", AT(epochs_cooldown), NULL, FIELD_I64, true},
    {"lr_cooldown_power", AT(lr_cooldown_power), NULL, FIELD_DOUBLE, true},
    {"lr_cooldown_end", AT(lr_cooldown_end), NULL, FIELD_DOUBLE, true},
    {"batch_size", AT(batch_size), NULL, FIELD_SIZE, true},
    {"accum_freq", AT(accum_freq), NULL, FIELD_INT, true},
    {"grad_checkpointing", AT(grad_checkpointing), NULL, FIELD_BOOL, false},
    {"epochs", AT(epochs), NULL, FIELD_I64, true},
    {"max_steps", AT(max_steps), NULL, FIELD_I64, true},
    {"seed", AT(seed), NULL, FIELD_U64, true},
    {"logs", AT(logs), NULL, FIELD_STRING, false},
    {"name", AT(name), NULL, FIELD_STRING, false},
    {"resume", AT(resume), NULL, FIELD_STRING, false},
    {"log_every_n_steps", AT(log_every_n_steps), NULL, FIELD_I64, false},
    {"val_frequency", AT(val_frequency), NULL, FIELD_I64, false},
    {"val_every_n_steps", AT(val_every_n_steps), NULL, FIELD_I64, false},
    {"save_frequency", AT(save_frequency), NULL, FIELD_I64, false},
    {"save_every_n_steps", AT(save_every_n_steps), NULL, FIELD_I64, false},
    {"delete_previous_checkpoint", AT(delete_previous_checkpoint), NULL, FIELD_BOOL, false},
    {"save_most_recent", AT(save_most_recent), NULL, FIELD_BOOL, false},
    {"save_best_unc", AT(save_best_unc), NULL, FIELD_BOOL, false},
    {"report_tensorboard", AT(report_tensorboard), NULL, FIELD_BOOL, false},
};

static void append_value(pnb__buf *b, const pnb_train_opts *o, const field *f)
{
    const void *p = (const unsigned char *)o + f->offset;
    int code = 0;
    switch (f->kind) {
    case FIELD_INT:
        pnb__buf_printf(b, "%d", *(const int *)p);
        break;
    case FIELD_I64:
        pnb__buf_printf(b, "%lld", (long long)*(const int64_t *)p);
        break;
    case FIELD_U64:
        pnb__buf_printf(b, "%llu", (unsigned long long)*(const uint64_t *)p);
        break;
    case FIELD_SIZE:
        pnb__buf_printf(b, "%zu", *(const size_t *)p);
        break;
    case FIELD_DOUBLE:
        pnb__buf_printf(b, "%.17g", *(const double *)p);
        break;
    case FIELD_BOOL:
        pnb__buf_puts(b, *(const bool *)p ? "true" : "false");
        break;
    case FIELD_STRING:
        pnb__buf_puts(b, *(const char *const *)p != NULL ? *(const char *const *)p : "none");
        break;
    case FIELD_ENUM: /* every enum of the options has the size of an int */
        memcpy(&code, p, sizeof code);
        pnb__buf_puts(b, f->enum_name(code) != NULL ? f->enum_name(code) : "?");
        break;
    }
}

void pnb__train_params_text(const pnb_train_opts *o, pnb__buf *out)
{
    for (size_t i = 0; i < PNB_COUNT(fields); i++) {
        pnb__buf_printf(out, "%s: ", fields[i].name);
        append_value(out, o, &fields[i]);
        pnb__buf_putc(out, '\n');
    }
}

json_t *pnb__train_settings(const pnb_train_opts *o)
{
    json_t *object = json_object();
    bool ok = object != NULL;
    for (size_t i = 0; ok && i < PNB_COUNT(fields); i++) {
        if (!fields[i].fixed)
            continue;
        pnb__buf text = {0};
        append_value(&text, o, &fields[i]);
        ok = !text.failed &&
             json_object_set_new(object, fields[i].name,
                                 json_string(text.data != NULL ? text.data : "")) == 0;
        pnb__buf_reset(&text);
    }
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

pnb_status pnb__train_compare_settings(const json_t *saved, const json_t *now, pnb_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)now, name, value)
    {
        const char *was = json_string_value(json_object_get(saved, name));
        const char *is = json_string_value(value);
        if (was == NULL || is == NULL || strcmp(was, is) != 0)
            return pnb__fail(
                err, PNB_ARG,
                "the checkpoint was trained with %s = %s, this run asks for %s: resume "
                "with the same options, or start a new run from it with --model",
                name, was != NULL ? was : "(not recorded)", is != NULL ? is : "?");
    }
    return PNB_OK;
}

static pnb_status check_share(const char *name, double value, pnb_error *err)
{
    if (value >= 0 && value <= 1)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "%s is %g, it must lie in 0..1", name, value);
}

static pnb_status check_counts(const pnb_train_opts *o, pnb_error *err)
{
    if (o->batch_size < 1 || o->batch_size > INT32_MAX)
        return pnb__fail(err, PNB_ARG, "batch size is %zu, it must be 1 to 2^31 - 1",
                         o->batch_size);
    if (o->accum_freq < 1)
        return pnb__fail(err, PNB_ARG, "accum-freq is %d, it must be at least 1", o->accum_freq);
    if (o->max_steps < 0 || (o->max_steps == 0 && o->epochs < 1))
        return pnb__fail(err, PNB_ARG, "%lld epochs and at most %lld steps: nothing to train",
                         (long long)o->epochs, (long long)o->max_steps);
    if (o->warmup < 0 || o->train_num_samples < 0 || o->workers < 0)
        return pnb__fail(err, PNB_ARG,
                         "warm-up %lld, samples an epoch %lld and workers %d must be 0 or more",
                         (long long)o->warmup, (long long)o->train_num_samples, o->workers);
    if (o->epochs_cooldown < 0)
        return pnb__fail(err, PNB_ARG, "cool-down epochs are %lld, they must be 0 or more",
                         (long long)o->epochs_cooldown);
    return PNB_OK;
}

/* What a real option may be beside finite: nothing given, or no limit. */
static bool may_be(const field *f, double value)
{
    if (isnan(value))
        return pnb__starts_with(f->name, "init_");
    return value > 0 &&
           (strcmp(f->name, "grad_clip_norm") == 0 || strcmp(f->name, "inclusion_limit") == 0 ||
            strcmp(f->name, "vib_limit") == 0);
}

static pnb_status check_finite(const pnb_train_opts *o, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(fields); i++) {
        if (fields[i].kind != FIELD_DOUBLE)
            continue;
        double value = *(const double *)((const unsigned char *)o + fields[i].offset);
        if (isfinite(value) || may_be(&fields[i], value))
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s", fields[i].name);
        for (char *c = strchr(name, '_'); c != NULL; c = strchr(c, '_'))
            *c = '-'; /* as the option is written */
        return pnb__fail(err, PNB_ARG, "%s is %g, it must be a finite number", name, value);
    }
    return PNB_OK;
}

static pnb_status check_schedule(const pnb_train_opts *o, pnb_error *err)
{
    if ((unsigned)o->lr_scheduler >= PNB_N_SCHEDULE_KINDS)
        return pnb__fail(err, PNB_ARG, "there is no schedule number %d", (int)o->lr_scheduler);
    if (!(o->lr_cooldown_end >= 0) || !(o->lr_cooldown_power >= 0))
        return pnb__fail(err, PNB_ARG, "cool-down to %g with power %g: both must be 0 or more",
                         o->lr_cooldown_end, o->lr_cooldown_power);
    if (!isnan(o->init_logit_scale) && !(o->init_logit_scale > 0))
        return pnb__fail(err, PNB_ARG, "the first logit scale is %g, it must be above 0",
                         o->init_logit_scale);
    if (o->val_frequency < 0 || o->val_every_n_steps < 0 || o->save_frequency < 0 ||
        o->save_every_n_steps < 0)
        return pnb__fail(err, PNB_ARG,
                         "val-frequency %lld, val-every-n-steps %lld, save-frequency %lld and "
                         "save-every-n-steps %lld must be 0 or more",
                         (long long)o->val_frequency, (long long)o->val_every_n_steps,
                         (long long)o->save_frequency, (long long)o->save_every_n_steps);
    return PNB_OK;
}

/* The parts that their owners check again when they are made: here before a run has a folder. */
static pnb_status check_parts(const pnb_train_opts *o, pnb_error *err)
{
    pnb_status status = check_finite(o, err);
    if (status == PNB_OK)
        status = pnb__optim_check_opts(&o->optim, err);
    if (status == PNB_OK)
        status = pnb__loss_check_opts(&o->loss, err);
    return status == PNB_OK ? check_schedule(o, err) : status;
}

pnb_status pnb__train_check_opts(const pnb_train_opts *o, pnb_error *err)
{
    bool needs_data = o->dataset.kind != PNB_DATASET_SYNTHETIC;
    if (needs_data && (o->train_data == NULL || o->train_data[0] == '\0'))
        return pnb__fail(err, PNB_ARG, "no training data: give --train-data");
    if (o->model == NULL || o->logs == NULL)
        return pnb__fail(err, PNB_ARG, "%s is not set", o->model == NULL ? "model" : "logs");
    pnb_status status = check_counts(o, err);
    if (status == PNB_OK)
        status = check_parts(o, err);
    if (status == PNB_OK)
        status = check_share("drop-ratio", o->drop_ratio, err);
    if (status == PNB_OK)
        status = check_share("drop-prob", o->drop_prob, err);
    if (status == PNB_OK)
        status = check_share("lr-min-ratio", o->lr_min_ratio, err);
    if (status == PNB_OK)
        status = check_share("template share", o->template_share, err);
    if (status == PNB_OK && !(o->mask_keep > 0 && o->mask_keep <= 1))
        status = pnb__fail(err, PNB_ARG, "mask-keep is %g, it must lie above 0 and at most 1",
                           o->mask_keep);
    if (status == PNB_OK && o->captions == PNB_CAPTION_ALL_LEVELS)
        status = pnb__fail(err, PNB_ARG, "training takes one caption a picture, not all levels");
    if (status == PNB_OK && o->save_best_unc && o->val_data == NULL)
        status = pnb__fail(err, PNB_ARG,
                           "--save-best-unc ranks checkpoints by validation: give --val-data");
    return status;
}
