/* Options that every training has: their table and their checks.
 *
 * The rows stand after the objective's in params.txt. What shapes the weights is marked fixed (see
 * run_settings.h); where a run writes, how often it looks and what it keeps is not. */
#include "train/run/run_options.h"

#include <math.h>

#include "train/optim/optim.h"

/* Names by number for the table, which knows no types. */
static const char *optim_name(int v)
{
    return pnb_optim_name((pnb_optim_kind)v);
}

static const char *schedule_name(int v)
{
    return pnb_schedule_name((pnb_schedule_kind)v);
}

#define MOST_STEPS ((int64_t)1000000000000000)

#define AT(member) offsetof(pnb__run_opts, member)

/* true: a resumed run must have it unchanged. Memory and what is written are free to change:
 * grad_checkpointing gives the same bits, and logs, frequencies and names shape no weight. */
static const pnb__field fields[] = {
    /* the update */
    {"optimizer", AT(optim.kind), optim_name, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"lr", AT(optim.lr), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"beta1", AT(optim.beta1), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"beta2", AT(optim.beta2), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"eps", AT(optim.eps), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"momentum", AT(optim.momentum), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"dampening", AT(optim.dampening), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"nesterov", AT(optim.nesterov), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"wd", AT(optim.weight_decay), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"delta", AT(optim.delta), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"wd_ratio", AT(optim.wd_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"grad_clip_norm", AT(optim.grad_clip_norm), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_INFINITE},
    /* the rate of each step; max_steps and epochs below set how long the cosine is */
    {"lr_scheduler", AT(lr_scheduler), schedule_name, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"warmup", AT(warmup), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr_min_ratio", AT(lr_min_ratio), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"epochs_cooldown", AT(epochs_cooldown), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr_cooldown_power", AT(lr_cooldown_power), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"lr_cooldown_end", AT(lr_cooldown_end), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"lr_milestone_1", AT(lr_milestones[0]), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr_milestone_2", AT(lr_milestones[1]), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr_milestone_3", AT(lr_milestones[2]), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr_milestone_4", AT(lr_milestones[3]), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr_gamma", AT(lr_gamma), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    /* the step: the loss sees batch_size * accum_freq pairs */
    {"batch_size", AT(batch_size), NULL, PNB__FIELD_SIZE, true, PNB__ALSO_NONE},
    {"accum_freq", AT(accum_freq), NULL, PNB__FIELD_INT, true, PNB__ALSO_NONE},
    {"grad_checkpointing", AT(grad_checkpointing), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    /* the end, and every random draw */
    {"epochs", AT(epochs), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"max_steps", AT(max_steps), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    /* what checkpoints/swa is the mean of */
    {"swa_start", AT(swa_start), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"ema_decay", AT(ema_decay), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
    {"seed", AT(seed), NULL, PNB__FIELD_U64, true, PNB__ALSO_NONE},
    /* where it writes, how often it looks, what it keeps */
    {"logs", AT(logs), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"name", AT(name), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"resume", AT(resume), NULL, PNB__FIELD_STRING, false, PNB__ALSO_NONE},
    {"log_every_n_steps", AT(log_every_n_steps), NULL, PNB__FIELD_I64, false, PNB__ALSO_NONE},
    {"val_frequency", AT(val_frequency), NULL, PNB__FIELD_I64, false, PNB__ALSO_NONE},
    {"val_every_n_steps", AT(val_every_n_steps), NULL, PNB__FIELD_I64, false, PNB__ALSO_NONE},
    {"save_frequency", AT(save_frequency), NULL, PNB__FIELD_I64, false, PNB__ALSO_NONE},
    {"save_every_n_steps", AT(save_every_n_steps), NULL, PNB__FIELD_I64, false, PNB__ALSO_NONE},
    {"delete_previous_checkpoint", AT(delete_previous_checkpoint), NULL, PNB__FIELD_BOOL, false,
     PNB__ALSO_NONE},
    {"save_most_recent", AT(save_most_recent), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    {"save_best_unc", AT(save_best_unc), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
    {"report_tensorboard", AT(report_tensorboard), NULL, PNB__FIELD_BOOL, false, PNB__ALSO_NONE},
};

pnb__settings pnb__run_settings(const pnb__run_opts *o)
{
    return (pnb__settings){fields, PNB_COUNT(fields), o};
}

/* Sizes that index in 32 bits, and at least one update. */
static pnb_status check_counts(const pnb__run_opts *o, pnb_error *err)
{
    if (o->batch_size < 1 || o->batch_size > INT32_MAX)
        return pnb__fail(err, PNB_ARG, "batch size is %zu, it must be 1 to 2^31 - 1",
                         o->batch_size);
    if (o->accum_freq < 1 || (size_t)o->accum_freq > INT32_MAX / o->batch_size)
        return pnb__fail(err, PNB_ARG,
                         "accum-freq is %d, it must be at least 1, and %zu times it at most "
                         "2^31 - 1",
                         o->accum_freq, o->batch_size);
    if (o->max_steps < 0 || (o->max_steps == 0 && o->epochs < 1))
        return pnb__fail(err, PNB_ARG, "%lld epochs and at most %lld steps: nothing to train",
                         (long long)o->epochs, (long long)o->max_steps);
    if (o->max_steps > MOST_STEPS)
        return pnb__fail(err, PNB_ARG, "max-steps is %lld, it must be at most 10^15",
                         (long long)o->max_steps);
    if (o->swa_start < 0)
        return pnb__fail(err, PNB_ARG, "swa-start is %lld, it must be 0 or more",
                         (long long)o->swa_start);
    if (!(o->ema_decay >= 0 && o->ema_decay < 1))
        return pnb__fail(err, PNB_ARG, "--ema-decay is %g, it must be 0 or more, below 1",
                         o->ema_decay);
    if (o->ema_decay > 0 && o->swa_start > 0)
        return pnb__fail(err, PNB_ARG,
                         "--ema-decay and --swa-start are two means of the weights, and a run "
                         "keeps one: give one of them");
    if (o->warmup < 0 || o->epochs_cooldown < 0)
        return pnb__fail(err, PNB_ARG,
                         "warm-up steps %lld and cool-down epochs %lld must be 0 or more",
                         (long long)o->warmup, (long long)o->epochs_cooldown);
    return PNB_OK;
}

/* One at least, each behind the one before, and no gap: what stands behind a 0 would be ignored. */
static pnb_status check_milestones(const pnb__run_opts *o, pnb_error *err)
{
    const int64_t *at = o->lr_milestones;
    bool is_fine = at[0] > 0;
    for (size_t i = 1; i < PNB_MAX_MILESTONES; i++)
        is_fine = is_fine && (at[i] == 0 || (at[i - 1] > 0 && at[i] > at[i - 1]));
    if (!is_fine)
        return pnb__fail(err, PNB_ARG,
                         "--lr-scheduler multistep: --lr-milestones names 1 to %d epochs, each "
                         "later than the one before",
                         (int)PNB_MAX_MILESTONES);
    if (!(o->lr_gamma > 0 && o->lr_gamma <= 1))
        return pnb__fail(err, PNB_ARG, "lr-gamma is %g, it must lie above 0 and at most 1",
                         o->lr_gamma);
    return PNB_OK;
}

/* A rate may end at 0 but not below, and a cosine not above where it began. */
static pnb_status check_schedule(const pnb__run_opts *o, pnb_error *err)
{
    if ((unsigned)o->lr_scheduler >= PNB_N_SCHEDULE_KINDS)
        return pnb__fail(err, PNB_ARG, "there is no schedule number %d", (int)o->lr_scheduler);
    if (!(o->lr_cooldown_end >= 0) || !(o->lr_cooldown_power >= 0))
        return pnb__fail(err, PNB_ARG, "cool-down to %g with power %g: both must be 0 or more",
                         o->lr_cooldown_end, o->lr_cooldown_power);
    if (!(o->lr_min_ratio >= 0 && o->lr_min_ratio <= 1))
        return pnb__fail(err, PNB_ARG, "lr-min-ratio is %g, it must lie in 0..1", o->lr_min_ratio);
    return o->lr_scheduler == PNB_SCHEDULE_MULTISTEP ? check_milestones(o, err) : PNB_OK;
}

/* 0 is "never" or "by epochs"; see include/penumbra/train.h. */
static pnb_status check_frequencies(const pnb__run_opts *o, pnb_error *err)
{
    if (o->val_frequency < 0 || o->val_every_n_steps < 0 || o->save_frequency < 0 ||
        o->save_every_n_steps < 0)
        return pnb__fail(err, PNB_ARG,
                         "val-frequency %lld, val-every-n-steps %lld, save-frequency %lld and "
                         "save-every-n-steps %lld must be 0 or more",
                         (long long)o->val_frequency, (long long)o->val_every_n_steps,
                         (long long)o->save_frequency, (long long)o->save_every_n_steps);
    return PNB_OK;
}

/* All that is wrong with options is said before data is opened. */
pnb_status pnb__run_check_opts(const pnb__run_opts *o, pnb_error *err)
{
    const pnb__settings table = pnb__run_settings(o);
    if (o->logs == NULL && (o->resume != NULL || o->report_tensorboard))
        return pnb__fail(err, PNB_ARG, "logs is not set: a run that is not kept has no %s",
                         o->resume != NULL ? "checkpoint to resume from" : "event file");
    pnb_status status = check_counts(o, err);
    if (status == PNB_OK)
        status = pnb__settings_check_finite(&table, err);
    if (status == PNB_OK)
        status = pnb__optim_check_opts(&o->optim, err);
    if (status == PNB_OK)
        status = check_schedule(o, err);
    return status == PNB_OK ? check_frequencies(o, err) : status;
}
