/* Options of pnb_train: the recipes, and the table of what is contrastive training's own. Their
 * checks are contrastive_check.c's.
 * An option that a run cannot change is fixed in its row. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "train/contrastive/contrastive.h"

/* A word alone, as the names of classes are, is put into one of these now and then: a tower that
 * never saw a sentence around a word cannot answer the prompts of zero-shot classification. */
static const char *const templates[] = {
    "a picture of {}", "an image of {}",  "an icon of {}",
    "this shows {}",   "{} in a picture", "a small picture of {}",
};

/* Small training: a model of a few million weights on thousands of pairs, in minutes on a CPU. What
 * differs from the published recipe is measured in docs/numerics-training.md and bench/results. */
pnb_train_opts pnb_train_opts_default(void)
{
    pnb_train_opts o = {
        .dataset = pnb_dataset_opts_default(),
        .workers = 1,
        .max_image_pixels = PNB_IMAGE_DEFAULT_PIXELS,
        .augment = pnb_augment_small(),
        .texts = PNB_TEXT_LEVEL, /* a level, then a caption of it */
        .template_share = 0.3,
        .templates = templates,
        .n_templates = PNB_COUNT(templates),
        .val_level = 3, /* the most specific of HierarCaps' four */
        .model = "tiny",
        .tokenizer_vocab_size = 1500,
        .tokenizer_kind = PNB_TOKENIZER_BYTE_BPE,
        .lora_alpha = NAN,
        .distill_scale = NAN,
        .lora_image = true,
        .lora_text = true,
        .init_logit_scale = NAN, /* NaN: by batch and width, see model_setup.c */
        .init_logit_bias = NAN,
        .init_unc_bias = NAN,
        .loss = pnb_loss_opts_default(),
        .drop_ratio = 0.125, /* ProLIP: an eighth of the batch is masked, */
        .drop_prob = 0.75,   /* three quarters of its tokens */
        .mask_keep = 0.25,   /* and of its patches; the released code keeps 0.75 of these */
        .trunk_lr_ratio = 0.1,
        .image_lr_ratio = 1,
        .text_lr_ratio = 1,
        .layer_lr_decay = 1,
        .head_lr_ratio = 1,
        .mix_cutmix = PNB__MIX_CUTMIX,
        .mix_alpha = PNB__MIX_ALPHA,
        .text_mask = PNB_TEXT_MASK_DELETE, /* a shorter caption is one that people write */
        .replace_token = -1,
        .optim = pnb_optim_opts_default(),
        .lr_scheduler = PNB_SCHEDULE_COSINE,
        .warmup = 40,
        .lr_min_ratio = 0.02, /* open_clip ends at 0, where the last steps do nothing */
        .lr_cooldown_power = 1,
        .lr_gamma = 0.1,
        .batch_size = 128,
        .accum_freq = 1,
        .epochs = 32,
        .logs = "./logs",
        .log_every_n_steps = 10,
        .val_frequency = 1,
        .save_most_recent = true,
    };
    /* a small model takes, and needs, larger steps than ViT-B/16 */
    o.optim.lr = 1e-3;
    o.optim.weight_decay = 0.1;
    o.optim.grad_clip_norm = 1;
    return o;
}

/* ProLIP's released training: what is not said here is pnb_train_opts_default's. */
pnb_train_opts pnb_train_opts_published(void)
{
    pnb_train_opts o = pnb_train_opts_default();
    o.augment = pnb_augment_published(); /* crop 0.8 to 1, colour jitter, grey: no turns or zoom */
    o.template_share = 0;
    o.model = "ViT-B-16";
    o.config_init = true; /* b = -10 fits a batch of tens of thousands */
    o.loss = pnb_loss_opts_published();
    o.text_mask = PNB_TEXT_MASK_REPLACE; /* token 32000 in released models: --replace-token */
    o.optim = pnb_optim_opts_default();
    o.warmup = 10000;
    o.lr_min_ratio = 0;
    return o;
}

/* ---- other objectives ---- */

/* What objectives set, by term and model:
 *
 *     siglip, clip     one term of points
 *     pcme             pcme 1, pcme_kl 1e-5; J 7; ResNet and bi-GRU with local attention
 *     pcmepp           pcmepp 2 (the factor of its code), pseudo positives 0.1, vib 1e-4; CLIP's
 *                      transformers, twice at their ends; a = b = 5; published: a quarter of the
 *                      pictures mixed, labels of 1 are 1 - 1e-4 and of 0 1e-4
 *     vse, vsepp, pvse triplet 1 at margin 0.2: all negatives, the nearest, the nearest of K^2;
 *                      published pvse: means of margins, diversity 0.1, mmd 0.01 */

/* Published models of VSE++ begin with a trained trunk; from nothing, margins to the nearest
 * negative alone have made all rows alike after a hundred steps. */
enum { SMALL_TRIPLET_WARMUP = 200 };

/* This term alone. */
static void weigh(pnb_train_opts *o, pnb_loss_term term, double weight)
{
    memset(o->loss.weight, 0, sizeof o->loss.weight);
    o->loss.weight[term] = weight;
}

/* PCME's towers: weights from zero on, words as tokens, the initial a and b of the configuration.
 * Published is its training on COCO: heads alone for 30 epochs, then all for 30 at a tenth of the
 * rate, each under a cosine of its own. */
static void take_pcme(pnb_train_opts *o, bool is_published, const char *published_model,
                      const char *tiny_model)
{
    o->model = is_published ? published_model : tiny_model;
    o->tokenizer_kind = PNB_TOKENIZER_WORD;
    o->config_init = true;
    o->template_share = 0;
    o->optim.lr = 3e-3; /* at 1e-3 a narrow ResNet and a GRU are half as far after 400 steps */
    if (!is_published)
        return;
    o->optim = pnb_optim_opts_default();
    o->optim.kind = PNB_OPTIM_ADAMP;
    o->optim.lr = 2e-4;
    o->optim.beta2 = 0.999;
    o->optim.beta1 = 0.9;
    o->optim.eps = 1e-8;
    o->optim.weight_decay = 0;
    o->optim.grad_clip_norm = 2;
    o->warmup = 0;
    o->lr_min_ratio = 0;
    o->batch_size = 128;
    o->head_epochs = 30;
    o->epochs = 60;
    o->augment = pnb_augment_none();
    o->augment.enabled = o->augment.crop = true;
    o->augment.crop_scale[0] = 0.08; /* RandomResizedCrop(224) */
    o->augment.crop_ratio[0] = 3.0 / 4;
    o->augment.crop_ratio[1] = 4.0 / 3;
    o->augment.flip = 0.5;
    o->augment.erase_p = 0.2;
    o->augment.erase_const = true;
    o->word_drop = 0.1;
}

/* PCME++ on COCO as its configs/pcmepp.yaml has it, from CLIP's weights on: its image tower stands
 * still for two epochs and takes a hundredth of the rate behind them, the text tower a tenth, each
 * block 0.7 of the next one's; from epoch 15 on all a tenth. Its swa_start_epoch of 16 takes the
 * weights after the 17th epoch first. */
static void take_pcmepp_published(pnb_train_opts *o)
{
    o->optim.kind = PNB_OPTIM_ADAMP;
    o->optim.lr = 5e-4;
    o->optim.beta1 = 0.9;
    o->optim.beta2 = 0.999;
    o->optim.eps = 1e-8;
    o->optim.weight_decay = 1e-4;
    o->optim.grad_clip_norm = 2;
    o->lr_scheduler = PNB_SCHEDULE_MULTISTEP;
    o->lr_milestones[0] = 15;
    o->warmup = 0;
    o->batch_size = 128;
    o->epochs = 25;
    o->swa_start = 17;
    o->head_epochs = 2;
    o->trunk_lr_ratio = 1;
    o->image_lr_ratio = 0.01;
    o->text_lr_ratio = 0.1;
    o->layer_lr_decay = 0.7;
    o->mix_share = 0.25;
    o->label_smoothing = 1e-4;
    o->augment = pnb_augment_none();
    o->augment.enabled = o->augment.crop = true;
    o->augment.crop_scale[0] = 0.36; /* 0.6 to 1 of both sides */
    o->augment.crop_ratio[0] = 3.0 / 4;
    o->augment.crop_ratio[1] = 4.0 / 3;
    o->augment.flip = 0.5;
}

/* PVSE's further terms, whose weights belong to a mean of margins and the kernel of its code. */
static void take_pvse(pnb_train_opts *o)
{
    o->loss.triplet_mean = true;
    o->loss.weight[PNB_LOSS_DIVERSITY] = 0.1;
    o->loss.weight[PNB_LOSS_MMD] = 0.01;
    o->loss.mmd_published = true;
}

/* Every objective is a recipe of ProLIP's with other terms; PCME's and its baselines' have towers,
 * words and rates of their own too. */
pnb_train_opts pnb_train_opts_of(pnb_objective objective, bool is_published)
{
    pnb_train_opts o = is_published ? pnb_train_opts_published() : pnb_train_opts_default();
    switch (objective) {
    case PNB_OBJECTIVE_SIGLIP:
        weigh(&o, PNB_LOSS_SIGLIP, 1);
        break;
    case PNB_OBJECTIVE_CLIP:
        weigh(&o, PNB_LOSS_CLIP, 1);
        break;
    case PNB_OBJECTIVE_PCME:
        weigh(&o, PNB_LOSS_PCME, 1);
        o.loss.weight[PNB_LOSS_PCME_KL] = 1e-5;
        take_pcme(&o, is_published, "pcme-coco", "pcme-tiny");
        break;
    case PNB_OBJECTIVE_PCMEPP:
        weigh(&o, PNB_LOSS_PCMEPP, PNB_PCMEPP_FACTOR);
        o.loss.weight[PNB_LOSS_PCMEPP_PSEUDO] = 0.1;
        o.loss.weight[PNB_LOSS_VIB] = 1e-4;
        o.model = is_published ? "pcmepp-ViT-B-16" : "pcmepp-tiny";
        o.config_init = true;
        if (is_published)
            take_pcmepp_published(&o);
        break;
    case PNB_OBJECTIVE_VSE:
    case PNB_OBJECTIVE_VSEPP:
        weigh(&o, PNB_LOSS_TRIPLET, 1);
        o.loss.triplet_hardest = objective == PNB_OBJECTIVE_VSEPP;
        o.loss.triplet_warmup = is_published ? 0 : SMALL_TRIPLET_WARMUP;
        take_pcme(&o, is_published, "vse-coco", "vse-tiny");
        break;
    case PNB_OBJECTIVE_PVSE:
        weigh(&o, PNB_LOSS_TRIPLET, 1);
        o.loss.triplet_hardest = true;
        o.loss.triplet_warmup = is_published ? 0 : SMALL_TRIPLET_WARMUP;
        take_pcme(&o, is_published, "pvse-coco", "pvse-tiny");
        if (is_published)
            take_pvse(&o);
        break;
    default:
        break;
    }
    return o;
}

static const char *text_mask_name(int v)
{
    return v == PNB_TEXT_MASK_DELETE ? "delete" : "replace";
}

static const char *dataset_name(int v)
{
    return pnb__name_at(PNB_NAMES(PNB_DATASET_LIST), (unsigned)v, NULL);
}

static const char *texts_name(int v)
{
    return pnb__name_at(PNB_NAMES(PNB_TEXT_LIST), (unsigned)v, NULL);
}

static const char *precision_name(int v)
{
    return pnb__name_at(PNB_NAMES(PNB_TRAIN_PRECISION_LIST), (unsigned)v, NULL);
}

#define AT(member) offsetof(pnb_train_opts, member)

/* Name, place, names of an enum, kind, fixed, which other numbers. Fixed is what shapes the weights
 * of the steps to come. Not fixed: paths, which may move; validation; and what only a fresh model
 * reads, since a resumed one comes with its sizes and values. */
static const pnb__field fields[] = {
    {"train_data", AT(train_data), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"val_data", AT(val_data), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"dataset_type", AT(dataset.kind), dataset_name, PNB__FIELD_ENUM, false, PNB__ALSO_NONE},
    /* which samples a step sees, and in which order */
    {"dataset_resampled", AT(dataset_resampled), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"n_upsampling_factors", AT(n_upsampling_factors), NULL, PNB__FIELD_SIZE, true, PNB__ALSO_NONE},
    {"hard_negatives", AT(n_negatives), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"negatives_key", AT(dataset.negatives_key), NULL, PNB__FIELD_STRING, true, PNB__ALSO_NONE},
    {"batch_by_class", AT(batch_by_class), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"global_batch", AT(global_batch), NULL, PNB__FIELD_SIZE, false, PNB__ALSO_NONE},
    {"memory", AT(memory), NULL, PNB__FIELD_DOUBLE, false, PNB__ALSO_NONE},
    {"local_loss", AT(local_loss), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    {"shard_optimizer", AT(shard_optimizer), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    {"train_num_samples", AT(train_num_samples), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"workers", AT(workers), NULL, PNB__FIELD_INT, false, PNB__ALSO_NONE},
    {"pin_workers", AT(pin_workers), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    /* what of a sample's captions it sees */
    {"captions", AT(texts), texts_name, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"template_share", AT(template_share), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"n_templates", AT(n_templates), NULL, PNB__FIELD_SIZE, true, PNB__ALSO_NONE},
    {"best_by", AT(best_by), NULL, PNB__FIELD_STRING, true, PNB__ALSO_NONE},
    {"val_level", AT(val_level), NULL, PNB__FIELD_INT, false, PNB__ALSO_NONE},
    /* pnb_augment, field by field: every draw of every picture depends on them */
    {"aug_enabled", AT(augment.enabled), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"aug_crop", AT(augment.crop), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"aug_crop_scale_min", AT(augment.crop_scale[0]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"aug_crop_scale_max", AT(augment.crop_scale[1]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"aug_crop_ratio_min", AT(augment.crop_ratio[0]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"aug_crop_ratio_max", AT(augment.crop_ratio[1]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"aug_n_crop_scales", AT(augment.n_crop_scales), NULL, PNB__FIELD_SIZE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_1", AT(augment.crop_scales[0]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_2", AT(augment.crop_scales[1]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_3", AT(augment.crop_scales[2]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_4", AT(augment.crop_scales[3]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_5", AT(augment.crop_scales[4]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_6", AT(augment.crop_scales[5]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_7", AT(augment.crop_scales[6]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_crop_scale_8", AT(augment.crop_scales[7]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_zoom_min", AT(augment.zoom[0]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_zoom_max", AT(augment.zoom[1]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_shift", AT(augment.shift), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_rotate", AT(augment.rotate), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_flip", AT(augment.flip), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_gain", AT(augment.gain), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_brightness", AT(augment.jitter[0]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_contrast", AT(augment.jitter[1]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_saturation", AT(augment.jitter[2]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_hue", AT(augment.jitter[3]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_jitter_p", AT(augment.jitter_p), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_grey_p", AT(augment.grey_p), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_interpolation", AT(augment.interpolation), NULL, PNB__FIELD_INT, true, PNB__ALSO_NONE},
    {"aug_re_prob", AT(augment.erase_p), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"aug_re_count", AT(augment.erase_count), NULL, PNB__FIELD_INT, true, PNB__ALSO_NONE},
    {"aug_re_const", AT(augment.erase_const), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"aug_n_no_flip_groups", AT(augment.n_no_flip_groups), NULL, PNB__FIELD_SIZE, true,
     PNB__ALSO_NONE},
    /* a resumed run opens its checkpoint instead */
    {"model", AT(model), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"tokenizer", AT(tokenizer), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"tokenizer_vocab_size", AT(tokenizer_vocab_size), NULL, PNB__FIELD_INT, false, PNB__ALSO_NONE},
    {"config_overrides", AT(config_overrides), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"force_image_size", AT(force_image_size), NULL, PNB__FIELD_INT, false, PNB__ALSO_NONE},
    {"force_context_length", AT(force_context_length), NULL, PNB__FIELD_INT, false, PNB__ALSO_NONE},
    {"force_resize_pos_emb", AT(force_resize_pos_emb), NULL, PNB__FIELD_BOOL, false,
     PNB__ALSO_NONE},
    {"reinit_unc", AT(reinit_unc), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    {"word_vectors", AT(word_vectors), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"image_trunk", AT(image_trunk), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    /* of a fresh model only: a checkpoint holds what has become of them */
    {"init_logit_scale", AT(init_logit_scale), NULL, PNB__FIELD_DOUBLE, false, PNB__ALSO_NAN},
    {"init_logit_bias", AT(init_logit_bias), NULL, PNB__FIELD_DOUBLE, false, PNB__ALSO_NAN},
    {"init_unc_bias", AT(init_unc_bias), NULL, PNB__FIELD_DOUBLE, false, PNB__ALSO_NAN},
    {"config_init", AT(config_init), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    /* frozen towers stay frozen: the moments of the others go on */
    {"lock_image", AT(lock_image), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"lock_text", AT(lock_text), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"lock_image_unlocked_groups", AT(image_unlocked_groups), NULL, PNB__FIELD_I64, true,
     PNB__ALSO_NONE},
    {"lock_text_unlocked_layers", AT(text_unlocked_layers), NULL, PNB__FIELD_I64, true,
     PNB__ALSO_NONE},
    {"lora_rank", AT(lora_rank), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lora_alpha", AT(lora_alpha), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NAN},
    {"lora_targets", AT(lora_targets), NULL, PNB__FIELD_STRING, true, PNB__ALSO_NONE},
    {"lora_image", AT(lora_image), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"lora_text", AT(lora_text), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    /* L = sum of weight * term: ProLIP's names for the weights, its greek letters included */
    {"ppcl_lambda", AT(loss.weight[PNB_LOSS_PPCL]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"siglip_lambda", AT(loss.weight[PNB_LOSS_SIGLIP]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"clip_lambda", AT(loss.weight[PNB_LOSS_CLIP]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"pcmepp_lambda", AT(loss.weight[PNB_LOSS_PCMEPP]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"inclusion_alpha", AT(loss.weight[PNB_LOSS_INCLUSION]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"inclusion_alpha_occ_image", AT(loss.weight[PNB_LOSS_IMG_INCLUSION]), NULL, PNB__FIELD_DOUBLE,
     true, PNB__ALSO_NONE},
    {"inclusion_alpha_occ_text", AT(loss.weight[PNB_LOSS_TXT_INCLUSION]), NULL, PNB__FIELD_DOUBLE,
     true, PNB__ALSO_NONE},
    {"vib_beta", AT(loss.weight[PNB_LOSS_VIB]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"pcme_lambda", AT(loss.weight[PNB_LOSS_PCME]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"pcme_kl_beta", AT(loss.weight[PNB_LOSS_PCME_KL]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"uniformity_lambda", AT(loss.weight[PNB_LOSS_UNIFORMITY]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"triplet_lambda", AT(loss.weight[PNB_LOSS_TRIPLET]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"pcmepp_pseudo_weight", AT(loss.weight[PNB_LOSS_PCMEPP_PSEUDO]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"diversity_lambda", AT(loss.weight[PNB_LOSS_DIVERSITY]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"mmd_lambda", AT(loss.weight[PNB_LOSS_MMD]), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"distill_weight", AT(loss.weight[PNB_LOSS_DISTILL]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"distill_kl_weight", AT(loss.weight[PNB_LOSS_DISTILL_KL]), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NONE},
    {"distill_scale", AT(distill_scale), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NAN},
    {"distill_images", AT(distill_images), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"distill_texts", AT(distill_texts), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"mmd_published", AT(loss.mmd_published), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"uniformity_published", AT(loss.uniformity_published), NULL, PNB__FIELD_BOOL, true,
     PNB__ALSO_NONE},
    {"n_samples", AT(loss.n_samples), NULL, PNB__FIELD_SIZE, true, PNB__ALSO_NONE},
    {"pcme_kl_published", AT(loss.pcme_kl_published), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"triplet_margin", AT(loss.triplet_margin), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"triplet_hardest", AT(loss.triplet_hardest), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"triplet_mean", AT(loss.triplet_mean), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"triplet_warmup", AT(loss.triplet_warmup), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    /* phases */
    {"head_epochs", AT(head_epochs), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"trunk_lr_ratio", AT(trunk_lr_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    /* parts of the towers */
    {"image_lr_ratio", AT(image_lr_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"text_lr_ratio", AT(text_lr_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"layer_lr_decay", AT(layer_lr_decay), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"head_lr_ratio", AT(head_lr_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    /* c, eps, the form and the limits of the terms */
    {"inclusion_scale", AT(loss.inclusion_scale), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"inclusion_eps", AT(loss.inclusion_eps), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"inclusion_exact", AT(loss.inclusion_exact), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"vib_official", AT(loss.vib_official), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"inclusion_limit", AT(loss.inclusion_limit), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_INFINITE},
    {"vib_limit", AT(loss.vib_limit), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_INFINITE},
    /* the masked pass */
    {"drop_ratio", AT(drop_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"drop_prob", AT(drop_prob), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"mask_keep", AT(mask_keep), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"text_mask", AT(text_mask), text_mask_name, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"replace_token", AT(replace_token), NULL, PNB__FIELD_INT, true, PNB__ALSO_NONE},
    /* of all captions */
    {"word_drop", AT(word_drop), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"word_drop_removes", AT(word_drop_removes), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    /* of some pictures of a batch */
    {"mix_share", AT(mix_share), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"mix_cutmix", AT(mix_cutmix), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"mix_alpha", AT(mix_alpha), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"label_smoothing", AT(label_smoothing), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"grad_cache_bf16", AT(grad_cache_bf16), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"precision", AT(precision), precision_name, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
};

pnb__settings pnb__contrastive_settings(const pnb_train_opts *o)
{
    return (pnb__settings){fields, PNB_COUNT(fields), o};
}
