/* Checks of pnb_train's options, and the part of them that every training has (run_options.h).
 *
 * Checked here, before a run has a folder, is also what its owners check again when it is made. */
#include <math.h>
#include <string.h>

#include "train/contrastive/contrastive.h"

#define MOST_SAMPLES ((int64_t)1000000000000000)

/* The loop's part, by value: it outlives what it was made of. `label` names the run as open_clip
 * does. */
pnb__run_opts pnb__contrastive_run_opts(const pnb_train_opts *o)
{
    return (pnb__run_opts){
        .optim = o->optim,
        .lr_scheduler = o->lr_scheduler,
        .warmup = o->warmup,
        .lr_min_ratio = o->lr_min_ratio,
        .epochs_cooldown = o->epochs_cooldown,
        .lr_cooldown_power = o->lr_cooldown_power,
        .lr_cooldown_end = o->lr_cooldown_end,
        .lr_milestones = {o->lr_milestones[0], o->lr_milestones[1], o->lr_milestones[2],
                          o->lr_milestones[3]},
        .lr_gamma = o->lr_gamma,
        .batch_size = o->batch_size,
        .accum_freq = o->accum_freq,
        .grad_checkpointing = o->grad_checkpointing,
        .shard_optimizer = o->shard_optimizer,
        .epochs = o->epochs,
        .max_steps = o->max_steps,
        .head_epochs = o->head_epochs,
        .swa_start = o->swa_start,
        .ema_decay = o->ema_decay,
        .seed = o->seed,
        .logs = o->logs,
        .name = o->name,
        .resume = o->resume,
        .label = o->model,
        .workers = o->workers,
        .log_every_n_steps = o->log_every_n_steps,
        .val_frequency = o->val_frequency,
        .val_every_n_steps = o->val_every_n_steps,
        .save_frequency = o->save_frequency,
        .save_every_n_steps = o->save_every_n_steps,
        .delete_previous_checkpoint = o->delete_previous_checkpoint,
        .save_most_recent = o->save_most_recent,
        .save_best_unc = o->save_best_unc,
        .report_tensorboard = o->report_tensorboard,
        .stop = o->stop,
        .progress = o->progress,
        .progress_user = o->progress_user,
    };
}

/* NaN lies in no range. */
static pnb_status check_share(const char *name, double value, pnb_error *err)
{
    if (value >= 0 && value <= 1)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "%s is %g, it must lie in 0..1", name, value);
}

/* What can be said of data before they are opened. */
static pnb_status check_data(const pnb_train_opts *o, pnb_error *err)
{
    bool needs_data = o->dataset.kind != PNB_DATASET_SYNTHETIC;
    if (needs_data && (o->train_data == NULL || o->train_data[0] == '\0'))
        return pnb__fail(err, PNB_ARG, "no training data: give --train-data");
    if (o->model == NULL)
        return pnb__fail(err, PNB_ARG, "model is not set");
    if (o->warmup < 0 || o->train_num_samples < 0 || o->workers < 0)
        return pnb__fail(err, PNB_ARG,
                         "warm-up %lld, samples an epoch %lld and workers %d must be 0 or more",
                         (long long)o->warmup, (long long)o->train_num_samples, o->workers);
    if (o->train_num_samples > MOST_SAMPLES)
        return pnb__fail(err, PNB_ARG, "samples an epoch are %lld, they must be at most 10^15",
                         (long long)o->train_num_samples);
    if (o->n_templates > 0 && o->templates == NULL)
        return pnb__fail(err, PNB_ARG, "%zu templates, but none is given", o->n_templates);
    /* pairs of one class would be negatives of each other in one loss */
    if (o->batch_by_class && (o->dataset_resampled || o->accum_freq > 1))
        return pnb__fail(err, PNB_ARG,
                         "--batch-by-class: with %s a step would have a class more than once",
                         o->dataset_resampled ? "--dataset-resampled" : "--accum-freq above 1");
    /* texts without a match: terms about matches of rows and columns know no such text */
    if (o->n_negatives < 0 || o->n_negatives > 64 ||
        (o->n_negatives > 0) != (o->dataset.negatives_key != NULL))
        return pnb__fail(err, PNB_ARG,
                         "hard negatives are 0 to 64 of a sample, and --hard-negatives goes with "
                         "--hard-negatives-key");
    if (o->n_negatives > 0 &&
        !(o->loss.weight[PNB_LOSS_PPCL] > 0 || o->loss.weight[PNB_LOSS_SIGLIP] > 0 ||
          o->loss.weight[PNB_LOSS_CLIP] > 0))
        return pnb__fail(err, PNB_ARG,
                         "--hard-negatives count in ppcl, siglip and clip, and none of these has a "
                         "weight: give --ppcl-lambda, --siglip-lambda or --clip-lambda");
    /* what would change nothing is refused, so that nobody thinks it did */
    if (o->grad_cache_bf16 && o->accum_freq == 1 && o->global_batch <= o->batch_size &&
        !(o->memory > 0))
        return pnb__fail(err, PNB_ARG,
                         "--grad-cache-precision: one forward pass keeps nothing for the loss: it "
                         "goes with --accum-freq or --global-batch");
    if (o->n_upsampling_factors > 0 && !o->dataset_resampled)
        return pnb__fail(err, PNB_ARG,
                         "--train-data-upsampling-factors say how often samples are drawn: give "
                         "--dataset-resampled");
    if (o->memory < 0)
        return pnb__fail(err, PNB_ARG, "memory is %g bytes, it must be 0 or more", o->memory);
    if (o->epochs_cooldown < 0)
        return pnb__fail(err, PNB_ARG, "cool-down epochs are %lld, they must be 0 or more",
                         (long long)o->epochs_cooldown);
    return PNB_OK;
}

/* Pictures that are mixed, and with what; labels that are not 1 and 0. */
static pnb_status check_mix(const pnb_train_opts *o, pnb_error *err)
{
    pnb_status status = check_share("mix-share", o->mix_share, err);
    if (status == PNB_OK)
        status = check_share("mix-cutmix", o->mix_cutmix, err);
    if (status == PNB_OK && !(o->mix_alpha > 0))
        status = pnb__fail(err, PNB_ARG, "mix-alpha is %g, it must be above 0", o->mix_alpha);
    if (status == PNB_OK && o->mix_share > 0 && o->batch_size < 2)
        status = pnb__fail(err, PNB_ARG,
                           "--mix-share mixes a picture with another one of its batch, and a batch "
                           "of 1 has none: raise --batch-size");
    /* how, without how much, is an option that would be passed over */
    bool says_how = o->mix_cutmix != PNB__MIX_CUTMIX || o->mix_alpha != PNB__MIX_ALPHA;
    if (status == PNB_OK && !(o->mix_share > 0) && says_how)
        status = pnb__fail(err, PNB_ARG,
                           "--mix-cutmix and --mix-alpha say how pictures are mixed, and none is: "
                           "give --mix-share");
    /* from a half on a match counts less than what is none */
    if (status == PNB_OK && !(o->label_smoothing >= 0 && o->label_smoothing < 0.5))
        status = pnb__fail(err, PNB_ARG, "label-smoothing is %g, it must be 0 or more, below 0.5",
                           o->label_smoothing);
    return status;
}

/* Groups of towers that are not locked would be left unlocked without a word. */
static pnb_status check_locks(const pnb_train_opts *o, pnb_error *err)
{
    if (o->image_unlocked_groups < 0 || o->text_unlocked_layers < 0)
        return pnb__fail(err, PNB_ARG, "groups left unlocked are %lld and %lld, 0 is the least",
                         (long long)o->image_unlocked_groups, (long long)o->text_unlocked_layers);
    if ((o->image_unlocked_groups > 0 && !o->lock_image) ||
        (o->text_unlocked_layers > 0 && !o->lock_text))
        return pnb__fail(err, PNB_ARG,
                         "--lock-image-unlocked-groups goes with --lock-image, "
                         "--lock-text-unlocked-layers with --lock-text");
    if (!(o->head_lr_ratio >= 0 && o->head_lr_ratio <= 1000))
        return pnb__fail(err, PNB_ARG, "head-lr-ratio is %g, it must lie in 0..1000",
                         o->head_lr_ratio);
    return PNB_OK;
}

/* What the terms and masks are defined for: a > 0, shares in [0, 1], at least one patch kept. */
static pnb_status check_objective(const pnb_train_opts *o, pnb_error *err)
{
    const pnb__settings table = pnb__contrastive_settings(o);
    pnb_status status = pnb__settings_check_finite(&table, err);
    if (status == PNB_OK)
        status = pnb__loss_check_opts(&o->loss, err);
    if (status == PNB_OK && !isnan(o->init_logit_scale) && !(o->init_logit_scale > 0))
        status = pnb__fail(err, PNB_ARG, "the first logit scale is %g, it must be above 0",
                           o->init_logit_scale);
    if (status == PNB_OK && o->head_epochs < 0)
        status = pnb__fail(err, PNB_ARG, "head epochs are %lld, they must be 0 or more",
                           (long long)o->head_epochs);
    if (status == PNB_OK)
        status = check_share("trunk-lr-ratio", o->trunk_lr_ratio, err);
    if (status == PNB_OK)
        status = check_share("image-lr-ratio", o->image_lr_ratio, err);
    if (status == PNB_OK)
        status = check_share("text-lr-ratio", o->text_lr_ratio, err);
    if (status == PNB_OK)
        status = check_share("layer-lr-decay", o->layer_lr_decay, err);
    if (status == PNB_OK)
        status = check_locks(o, err);
    if (status == PNB_OK)
        status = check_share("drop-ratio", o->drop_ratio, err);
    if (status == PNB_OK)
        status = check_share("drop-prob", o->drop_prob, err);
    if (status == PNB_OK)
        status = check_share("word-drop", o->word_drop, err);
    if (status == PNB_OK)
        status = check_mix(o, err);
    if (status == PNB_OK && o->word_drop_removes && !(o->word_drop > 0))
        status = pnb__fail(err, PNB_ARG,
                           "--word-drop-removes takes out a share of the words: give --word-drop");
    if (status == PNB_OK)
        status = check_share("template share", o->template_share, err);
    if (status == PNB_OK && !(o->mask_keep > 0 && o->mask_keep <= 1))
        status = pnb__fail(err, PNB_ARG, "mask-keep is %g, it must lie above 0 and at most 1",
                           o->mask_keep);
    return status;
}

/* Errors name the option as it is typed: this is where a typing error should be found. */
pnb_status pnb__contrastive_check_opts(const pnb_train_opts *o, pnb_error *err)
{
    const pnb__run_opts run = pnb__contrastive_run_opts(o);
    pnb_status status = check_data(o, err);
    if (status == PNB_OK && o->logs == NULL)
        status = pnb__fail(err, PNB_ARG, "logs is not set");
    if (status == PNB_OK)
        status = pnb__run_check_opts(&run, err);
    if (status == PNB_OK)
        status = check_objective(o, err);
    if (status == PNB_OK)
        status = pnb__contrastive_check_lora(o, err);
    if (status == PNB_OK)
        status = pnb__teacher_check(o, err);
    if (status == PNB_OK)
        status = pnb__evaluators_check(o, err);
    if (status == PNB_OK && o->texts == PNB_TEXT_ALL_LEVELS)
        status = pnb__fail(err, PNB_ARG, "training takes one caption a picture, not all levels");
    if (status == PNB_OK && o->save_best_unc && o->val_data == NULL)
        status = pnb__fail(err, PNB_ARG,
                           "--save-best-unc ranks checkpoints by validation: give --val-data");
    return status;
}
