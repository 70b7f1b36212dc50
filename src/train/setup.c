/* Opens everything a run needs, in the order in which one part needs another: data, tokenizer and
 * model, optimiser, graphs of a step, loaders; then, when resuming, the state of the checkpoint.
 * What a step does with them is in step.c and loop.c; what a fresh model starts with is in
 * model_setup.c.
 */
#include <math.h>

#include "train/trainer.h"

static pnb_status open_dataset(pnb__trainer *t, const char *spec, pnb_dataset **out, pnb_error *err)
{
    pnb_dataset_opts opts = t->opts->dataset;
    opts.n_synthetic = (size_t)t->opts->train_num_samples;
    pnb_status status = pnb_dataset_open(out, spec, &opts, err);
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_n_warnings(*out); i++)
        pnb__log(t->ctx, PNB_LOG_WARN, "%s", pnb_dataset_warning(*out, i));
    return status;
}

/* As open_clip counts: an epoch of shards rounds up to whole steps and reads on into the next order
 * of samples, one of tables and folders leaves an incomplete step out. */
static int64_t steps_of_epoch(const pnb__trainer *t, int64_t samples)
{
    int64_t pairs = (int64_t)t->opts->batch_size * t->opts->accum_freq;
    bool rounds_up = pnb_dataset_get_kind(t->train) == PNB_DATASET_TAR;
    return PNB_MAX((samples + (rounds_up ? pairs - 1 : 0)) / pairs, (int64_t)1);
}

static void plan_steps(pnb__trainer *t)
{
    const pnb_train_opts *o = t->opts;
    int64_t samples =
        o->train_num_samples > 0 ? o->train_num_samples : (int64_t)pnb_dataset_size(t->train);
    t->steps_per_epoch = steps_of_epoch(t, samples);
    t->n_steps = o->max_steps > 0 ? o->max_steps : o->epochs * t->steps_per_epoch;
    t->schedule = (pnb_schedule){.kind = o->lr_scheduler,
                                 .base = o->optim.lr,
                                 .warmup = o->warmup,
                                 .total = t->n_steps,
                                 .min_ratio = o->lr_min_ratio,
                                 .cooldown = o->epochs_cooldown * t->steps_per_epoch,
                                 .cooldown_power = o->lr_cooldown_power,
                                 .cooldown_end = o->lr_cooldown_end};
}

static pnb_status make_optim(pnb__trainer *t, pnb_error *err)
{
    size_t n = pnb__model_n_params(t->model);
    pnb__param **params = pnb__alloc_array(n, sizeof(pnb__param *));
    if (params == NULL)
        return pnb__fail_nomem(err, n * sizeof(pnb__param *));
    for (size_t i = 0; i < n; i++)
        params[i] = pnb__model_param(t->model, i);
    pnb_status status = pnb__optim_create(&t->optim, t->ctx, pnb__model_real(t->model), params, n,
                                          &t->opts->optim, err);
    pnb__free(params);
    return status;
}

static pnb_loader_opts loader_opts(const pnb__trainer *t)
{
    const pnb_train_opts *o = t->opts;
    pnb_loader_opts l = pnb_loader_opts_default();
    l.batch_size = o->batch_size;
    l.seed = o->seed;
    l.n_workers = o->workers;
    l.resample = o->dataset_resampled;
    l.max_image_pixels = o->max_image_pixels;
    l.preprocess = t->preprocess;
    l.augment = o->augment;
    l.tokenizer = t->tokenizer;
    l.context_length = (int)t->info->text.context_length;
    l.captions = o->captions;
    l.template_share = o->n_templates > 0 ? o->template_share : 0;
    l.templates = o->templates;
    l.n_templates = o->n_templates;
    return l;
}

/* In order, no augmentation, every sample once, the caption drawn as in epoch 0. */
static pnb_status make_val_loader(pnb__trainer *t, pnb_error *err)
{
    pnb_loader_opts l = loader_opts(t);
    l.batch_size = PNB_MIN(l.batch_size, pnb_dataset_size(t->val));
    l.shuffle = l.resample = false;
    l.drop_last = false;
    l.n_workers = 0;
    l.augment = pnb_augment_none();
    l.captions = PNB_CAPTION_LEVEL;
    l.level = t->opts->val_level;
    l.template_share = 0;
    return pnb_loader_create(&t->val_loader, t->val, &l, err);
}

static pnb_status check_mask_token(const pnb__trainer *t, pnb_error *err)
{
    const pnb_train_opts *o = t->opts;
    if (!(o->loss.weight[PNB_LOSS_TXT_INCLUSION] > 0) || o->text_mask == PNB_TEXT_MASK_DELETE)
        return PNB_OK;
    int rows = (int)t->info->text.vocab_size;
    int id = o->replace_token >= 0 ? o->replace_token : pnb_tokenizer_mask_id(t->tokenizer);
    if (id < 0)
        return pnb__fail(err, PNB_ARG,
                         "the tokenizer has no mask token: give --replace-token (released ProLIP "
                         "models used 32000) or --text-mask delete");
    if (id >= rows)
        return pnb__fail(err, PNB_ARG, "--replace-token %d: the model knows ids 0 to %d", id,
                         rows - 1);
    return PNB_OK;
}

pnb_status pnb__trainer_setup(pnb__trainer *t, const char *checkpoint, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(open_dataset(t, t->opts->train_data, &t->train, err));
    if (t->opts->val_data != NULL)
        PNB_TRY(open_dataset(t, t->opts->val_data, &t->val, err));
    plan_steps(t);
    PNB_TRY(pnb__trainer_open_model(t, checkpoint, err));
    PNB_TRY(check_mask_token(t, err));
    PNB_TRY(make_optim(t, err));
    if (checkpoint != NULL)
        PNB_TRY(pnb__checkpoint_read(t, checkpoint, err));
    PNB_TRY(pnb__step_create(&t->step_graphs, t, err));
    const pnb_loader_opts l = loader_opts(t);
    PNB_TRY(pnb_loader_create(&t->loader, t->train, &l, err));
    PNB_TRY(pnb_loader_set_position(t->loader, t->state.position, err));
    if (t->val != NULL)
        PNB_TRY(make_val_loader(t, err));
done:
    return status;
}

void pnb__trainer_reset(pnb__trainer *t)
{
    pnb_loader_free(t->loader);
    pnb_loader_free(t->val_loader);
    pnb__step_free(t->step_graphs);
    pnb__optim_free(t->optim);
    pnb_model_free(t->model);
    pnb_tokenizer_free(t->tokenizer);
    pnb_dataset_free(t->train);
    pnb_dataset_free(t->val);
    pnb__rundir_close(&t->run);
}

static double read_scalar(const pnb__trainer *t, const pnb__param *p)
{
    float f32 = 0;
    double f64 = 0;
    if (t->optim->kernels.real == PNB__F32)
        t->optim->kernels.mem_read(&f32, p->data, sizeof f32);
    else
        t->optim->kernels.mem_read(&f64, p->data, sizeof f64);
    return t->optim->kernels.real == PNB__F32 ? (double)f32 : f64;
}

double pnb__trainer_scale(const pnb__trainer *t)
{
    return t->logit_scale != NULL ? exp(read_scalar(t, t->logit_scale)) : t->info->logit_scale;
}

double pnb__trainer_bias(const pnb__trainer *t)
{
    return t->logit_bias != NULL ? read_scalar(t, t->logit_bias) : 0;
}
