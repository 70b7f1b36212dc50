/* Options of a training run: defaults, checks, and one table that turns them into text.
 *
 * The table serves params.txt, the settings kept in a checkpoint and their comparison on resume, so
 * an option is written in one place. `fixed` marks what shapes the weights: a resumed run must have
 * it unchanged, otherwise it could not end in the bits of an uninterrupted one. */
#include "train/options.h"

#include <math.h>
#include <string.h>

static const char *const templates[] = {
    "a picture of {}", "an image of {}",  "an icon of {}",
    "this shows {}",   "{} in a picture", "a small picture of {}",
};

pnb_train_opts pnb_train_opts_default(void)
{
    pnb_train_opts o = {
        .dataset = pnb_dataset_opts_default(),
        .workers = 1,
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
        .save_frequency = 1,
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
    field_kind kind;
    size_t offset;
    bool fixed;
    const char *(*enum_name)(int value);
} field;

#define AT(member) offsetof(pnb_train_opts, member)

static const field fields[] = {
    {"train_data", FIELD_STRING, AT(train_data), false, NULL},
    {"val_data", FIELD_STRING, AT(val_data), false, NULL},
    {"train_num_samples", FIELD_I64, AT(train_num_samples), true, NULL},
    {"workers", FIELD_INT, AT(workers), false, NULL},
    {"captions", FIELD_ENUM, AT(captions), true, captions_name},
    {"template_share", FIELD_DOUBLE, AT(template_share), true, NULL},
    {"n_templates", FIELD_SIZE, AT(n_templates), true, NULL},
    {"val_level", FIELD_INT, AT(val_level), false, NULL},
    {"aug_enabled", FIELD_BOOL, AT(augment.enabled), true, NULL},
    {"aug_crop", FIELD_BOOL, AT(augment.crop), true, NULL},
    {"aug_crop_scale_min", FIELD_DOUBLE, AT(augment.crop_scale[0]), true, NULL},
    {"aug_crop_scale_max", FIELD_DOUBLE, AT(augment.crop_scale[1]), true, NULL},
    {"aug_crop_ratio_min", FIELD_DOUBLE, AT(augment.crop_ratio[0]), true, NULL},
    {"aug_crop_ratio_max", FIELD_DOUBLE, AT(augment.crop_ratio[1]), true, NULL},
    {"aug_zoom_min", FIELD_DOUBLE, AT(augment.zoom[0]), true, NULL},
    {"aug_zoom_max", FIELD_DOUBLE, AT(augment.zoom[1]), true, NULL},
    {"aug_shift", FIELD_DOUBLE, AT(augment.shift), true, NULL},
    {"aug_rotate", FIELD_DOUBLE, AT(augment.rotate), true, NULL},
    {"aug_flip", FIELD_DOUBLE, AT(augment.flip), true, NULL},
    {"aug_gain", FIELD_DOUBLE, AT(augment.gain), true, NULL},
    {"aug_brightness", FIELD_DOUBLE, AT(augment.jitter[0]), true, NULL},
    {"aug_contrast", FIELD_DOUBLE, AT(augment.jitter[1]), true, NULL},
    {"aug_saturation", FIELD_DOUBLE, AT(augment.jitter[2]), true, NULL},
    {"aug_hue", FIELD_DOUBLE, AT(augment.jitter[3]), true, NULL},
    {"aug_jitter_p", FIELD_DOUBLE, AT(augment.jitter_p), true, NULL},
    {"aug_grey_p", FIELD_DOUBLE, AT(augment.grey_p), true, NULL},
    {"aug_n_no_flip_groups", FIELD_SIZE, AT(augment.n_no_flip_groups), true, NULL},
    {"model", FIELD_STRING, AT(model), false, NULL},
    {"tokenizer", FIELD_STRING, AT(tokenizer), false, NULL},
    {"tokenizer_vocab_size", FIELD_INT, AT(tokenizer_vocab_size), false, NULL},
    {"config_overrides", FIELD_STRING, AT(config_overrides), false, NULL},
    {"force_image_size", FIELD_INT, AT(force_image_size), false, NULL},
    {"force_context_length", FIELD_INT, AT(force_context_length), false, NULL},
    {"init_logit_scale", FIELD_DOUBLE, AT(init_logit_scale), false, NULL},
    {"init_logit_bias", FIELD_DOUBLE, AT(init_logit_bias), false, NULL},
    {"init_unc_bias", FIELD_DOUBLE, AT(init_unc_bias), false, NULL},
    {"config_init", FIELD_BOOL, AT(config_init), false, NULL},
    {"lock_image", FIELD_BOOL, AT(lock_image), true, NULL},
    {"lock_text", FIELD_BOOL, AT(lock_text), true, NULL},
    {"ppcl_lambda", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_PPCL]), true, NULL},
    {"siglip_lambda", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_SIGLIP]), true, NULL},
    {"clip_lambda", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_CLIP]), true, NULL},
    {"pcmepp_lambda", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_PCMEPP]), true, NULL},
    {"inclusion_alpha", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_INCLUSION]), true, NULL},
    {"inclusion_alpha_occ_image", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_IMG_INCLUSION]), true,
     NULL},
    {"inclusion_alpha_occ_text", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_TXT_INCLUSION]), true, NULL},
    {"vib_beta", FIELD_DOUBLE, AT(loss.weight[PNB_LOSS_VIB]), true, NULL},
    {"inclusion_scale", FIELD_DOUBLE, AT(loss.inclusion_scale), true, NULL},
    {"inclusion_eps", FIELD_DOUBLE, AT(loss.inclusion_eps), true, NULL},
    {"inclusion_exact", FIELD_BOOL, AT(loss.inclusion_exact), true, NULL},
    {"vib_official", FIELD_BOOL, AT(loss.vib_official), true, NULL},
    {"inclusion_limit", FIELD_DOUBLE, AT(loss.inclusion_limit), true, NULL},
    {"vib_limit", FIELD_DOUBLE, AT(loss.vib_limit), true, NULL},
    {"drop_ratio", FIELD_DOUBLE, AT(drop_ratio), true, NULL},
    {"drop_prob", FIELD_DOUBLE, AT(drop_prob), true, NULL},
    {"mask_keep", FIELD_DOUBLE, AT(mask_keep), true, NULL},
    {"text_mask", FIELD_ENUM, AT(text_mask), true, text_mask_name},
    {"replace_token", FIELD_INT, AT(replace_token), true, NULL},
    {"optimizer", FIELD_ENUM, AT(optim.kind), true, optim_name},
    {"lr", FIELD_DOUBLE, AT(optim.lr), true, NULL},
    {"beta1", FIELD_DOUBLE, AT(optim.beta1), true, NULL},
    {"beta2", FIELD_DOUBLE, AT(optim.beta2), true, NULL},
    {"eps", FIELD_DOUBLE, AT(optim.eps), true, NULL},
    {"momentum", FIELD_DOUBLE, AT(optim.momentum), true, NULL},
    {"dampening", FIELD_DOUBLE, AT(optim.dampening), true, NULL},
    {"nesterov", FIELD_BOOL, AT(optim.nesterov), true, NULL},
    {"wd", FIELD_DOUBLE, AT(optim.weight_decay), true, NULL},
    {"delta", FIELD_DOUBLE, AT(optim.delta), true, NULL},
    {"wd_ratio", FIELD_DOUBLE, AT(optim.wd_ratio), true, NULL},
    {"grad_clip_norm", FIELD_DOUBLE, AT(optim.grad_clip_norm), true, NULL},
    {"lr_scheduler", FIELD_ENUM, AT(lr_scheduler), true, schedule_name},
    {"warmup", FIELD_I64, AT(warmup), true, NULL},
    {"lr_min_ratio", FIELD_DOUBLE, AT(lr_min_ratio), true, NULL},
    {"epochs_cooldown", FIELD_I64, AT(epochs_cooldown), true, NULL},
    {"lr_cooldown_power", FIELD_DOUBLE, AT(lr_cooldown_power), true, NULL},
    {"lr_cooldown_end", FIELD_DOUBLE, AT(lr_cooldown_end), true, NULL},
    {"batch_size", FIELD_SIZE, AT(batch_size), true, NULL},
    {"accum_freq", FIELD_INT, AT(accum_freq), true, NULL},
    {"epochs", FIELD_I64, AT(epochs), true, NULL},
    {"max_steps", FIELD_I64, AT(max_steps), true, NULL},
    {"seed", FIELD_U64, AT(seed), true, NULL},
    {"logs", FIELD_STRING, AT(logs), false, NULL},
    {"name", FIELD_STRING, AT(name), false, NULL},
    {"resume", FIELD_STRING, AT(resume), false, NULL},
    {"log_every_n_steps", FIELD_I64, AT(log_every_n_steps), false, NULL},
    {"val_frequency", FIELD_I64, AT(val_frequency), false, NULL},
    {"val_every_n_steps", FIELD_I64, AT(val_every_n_steps), false, NULL},
    {"save_frequency", FIELD_I64, AT(save_frequency), false, NULL},
    {"save_every_n_steps", FIELD_I64, AT(save_every_n_steps), false, NULL},
    {"delete_previous_checkpoint", FIELD_BOOL, AT(delete_previous_checkpoint), false, NULL},
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

pnb_status pnb__train_check_opts(const pnb_train_opts *o, pnb_error *err)
{
    if (o->train_data == NULL || o->train_data[0] == '\0')
        return pnb__fail(err, PNB_ARG, "no training data: give --train-data");
    if (o->model == NULL || o->logs == NULL)
        return pnb__fail(err, PNB_ARG, "%s is not set", o->model == NULL ? "model" : "logs");
    pnb_status status = check_counts(o, err);
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
    return status;
}
