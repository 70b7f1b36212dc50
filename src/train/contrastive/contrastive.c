/* Contrastive training as an objective (objective.h), and pnb_train around it.
 *
 * Data are pairs of a picture and a caption; parameters are the two towers and the scalars a, b of
 * the logits; what a checkpoint holds is a model directory. a = exp(logit_scale) is kept at most
 * 100: after each update logit_scale is clamped to [0, ln 100]. What a step computes is in step.c,
 * validation in evaluate.c, what a fresh model starts with in model_setup.c. */
#include <math.h>
#include <string.h>

#include "train/contrastive/contrastive.h"
#include "train/losses/loss_terms.h"

#define MAX_LOGIT_SCALE 4.605170185988092 /* ln 100 */

_Static_assert((int)PNB_N_LOSS_TERMS <= (int)PNB__MAX_FIGURES, "every loss term needs a place");

/* ---- opening ---- */

/* A synthetic set is as large as it is asked to be. Warnings of a source are said before hours of
 * training and not after them. */
static pnb_status open_dataset(pnb__contrastive *c, const char *spec, const char *negatives_key,
                               pnb_dataset **out, pnb_error *err)
{
    pnb_dataset_opts opts = c->opts->dataset;
    opts.negatives_key = negatives_key;
    opts.n_synthetic = (size_t)c->opts->train_num_samples;
    pnb_status status = pnb_dataset_open(out, spec, &opts, err);
    for (size_t i = 0; status == PNB_OK && i < pnb_dataset_n_warnings(*out); i++)
        pnb__log(c->ctx, PNB_LOG_WARN, "%s", pnb_dataset_warning(*out, i));
    return status;
}

/* As open_clip counts: an epoch of shards rounds up to whole steps and reads on into the next order
 * of samples, one of tables and folders leaves an incomplete step out. */
static int64_t steps_of_epoch(const pnb__contrastive *c, int64_t samples)
{
    int64_t pairs = (int64_t)c->opts->batch_size * c->opts->accum_freq;
    bool rounds_up = pnb_dataset_get_kind(c->train) == PNB_DATASET_TAR;
    return PNB_MAX((samples + (rounds_up ? pairs - 1 : 0)) / pairs, (int64_t)1);
}

/* Batch b of epoch e is a function of (seed, e, b): that is what makes a position enough to resume.
 */
static pnb_loader_opts loader_opts(const pnb__contrastive *c)
{
    const pnb_train_opts *o = c->opts;
    pnb_loader_opts l = pnb_loader_opts_default();
    l.batch_size = o->batch_size;
    l.seed = o->seed;
    l.n_workers = o->workers;
    l.pin_workers = o->pin_workers;
    l.resample = o->dataset_resampled;
    l.factors = o->upsampling_factors;
    l.n_factors = o->n_upsampling_factors;
    l.n_negatives = (size_t)o->n_negatives;
    l.by_class = o->batch_by_class;
    if (o->memory > 0)
        l.cache_bytes = c->cache_bytes;
    l.max_image_pixels = o->max_image_pixels; /* a bomb is skipped, and named at the end */
    l.preprocess = c->preprocess;
    l.augment = o->augment;
    l.tokenizer = c->tokenizer;
    l.context_length = (int)c->info->text.context_length;
    l.texts = o->texts;
    l.template_share = o->n_templates > 0 ? o->template_share : 0;
    l.templates = o->templates;
    l.n_templates = o->n_templates;
    l.rank = c->exchange->rank; /* of a step's micro-batches those that step.c says */
    l.n_ranks = c->exchange->n_ranks;
    l.round = (size_t)o->accum_freq;
    return l;
}

/* In order, no augmentation, every sample once, the caption drawn as in epoch 0. */
static pnb_status make_val_loader(pnb__contrastive *c, pnb_error *err)
{
    pnb_loader_opts l = loader_opts(c);
    l.batch_size = PNB_MIN(l.batch_size, pnb_dataset_size(c->val)); /* all in one where it fits */
    l.shuffle = l.resample = l.by_class = false; /* classes of validation are others */
    l.n_factors = l.n_negatives = 0;
    l.drop_last = false;
    l.n_workers = 0;
    l.pin_workers = false;
    l.rank = 0, l.n_ranks = 1; /* every process validates the whole set, and all find the same */
    l.augment = pnb_augment_none(); /* what is validated are the pictures as they are encoded */
    l.texts = PNB_TEXT_LEVEL;
    l.level = c->opts->val_level;
    l.template_share = 0;
    return pnb_loader_create(&c->val_loader, c->val, &l, err);
}

/* The text term with replaced tokens needs a token that stands for nothing. */
static pnb_status check_mask_token(const pnb__contrastive *c, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    if (!(o->loss.weight[PNB_LOSS_TXT_INCLUSION] > 0) || o->text_mask == PNB_TEXT_MASK_DELETE)
        return PNB_OK;
    int rows = (int)c->info->text.vocab_size;
    int id = o->replace_token >= 0 ? o->replace_token : pnb_tokenizer_mask_id(c->tokenizer);
    if (id < 0)
        return pnb__fail(err, PNB_ARG,
                         "the tokenizer has no mask token: give --replace-token (released ProLIP "
                         "models used 32000) or --text-mask delete");
    if (id >= rows)
        return pnb__fail(err, PNB_ARG, "--replace-token %d: the model knows ids 0 to %d", id,
                         rows - 1);
    return PNB_OK;
}

/* A dropped word becomes one that nothing is known of; pieces of a byte-level tokenizer spell every
 * text, so that it has none. What it is called differs: the tokenizer knows its id. */
static pnb_status check_unknown_token(const pnb__contrastive *c, pnb_error *err)
{
    if (!(c->opts->word_drop > 0) || pnb_tokenizer_unk_id(c->tokenizer) >= 0)
        return PNB_OK;
    return pnb__fail(
        err, PNB_ARG,
        "--word-drop: the tokenizer has no unknown token that words could become: take one "
        "of words (--tokenizer-kind word), or --word-drop 0");
}

/* In the order of the weight file, which is the optimiser's and fixes the order of every sum. */
static pnb_status list_params(pnb__contrastive *c, pnb__objective *o, pnb_error *err)
{
    size_t n = pnb__model_n_params(c->model);
    pnb_status status = c->lora == NULL ? PNB_ALLOC(c->params, n, err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n && c->lora == NULL; i++)
        c->params[i] = pnb__model_param(c->model, i);
    o->params = c->params;
    o->n_params = c->lora == NULL ? n : c->n_adapted;
    o->n_weights = c->info->n_params;
    o->real = pnb__model_real(c->model);
    pnb__kernels_fill(&c->kernels, c->ctx, o->real);
    return PNB_OK;
}

/* --train-num-samples may ask for fewer, or for more than there are. */
static int64_t samples_of_epoch(const pnb__contrastive *c)
{
    int64_t asked = c->opts->train_num_samples;
    return asked > 0 ? asked : (int64_t)pnb_dataset_size(c->train);
}

/* Several micro-batches are encoded twice, the first time without gradients: batch norms would see
 * other moments then, and move theirs twice. */
static pnb_status check_whole(const pnb__contrastive *c, pnb_error *err)
{
    const pnb__family_calls *family = pnb__family_of(&c->model->config);
    if (c->opts->accum_freq == 1 || family->needs_whole_batch == NULL ||
        !family->needs_whole_batch(&c->model->config))
        return PNB_OK;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "batch norms of a %s model need the whole batch in one pass: give "
                     "--accum-freq 1 and one process, or train with vision_cfg.frozen_norm true",
                     family->name);
}

/* A term that is 0 whatever the weights are would train nothing and say so nowhere. */
static pnb_status check_others(const pnb__contrastive *c, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    if (o->batch_size > 1 || o->accum_freq > 1)
        return PNB_OK;
    for (size_t k = 0; k < PNB_N_LOSS_TERMS; k++)
        if (o->loss.weight[k] > 0 && pnb__term_rows[k].needs_others)
            return pnb__fail(err, PNB_ARG,
                             "loss %s compares a match with the other pairs of its batch, and a "
                             "batch of 1 has none: raise --batch-size",
                             pnb_loss_name((pnb_loss_term)k));
    return PNB_OK;
}

/* Patches are what a masked picture loses. */
static pnb_status check_masks(const pnb__contrastive *c, pnb_error *err)
{
    if (!(c->opts->loss.weight[PNB_LOSS_IMG_INCLUSION] > 0) || c->info->vision.n_patches > 0)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "loss %s masks patches, and the image tower of a %s model sees none: train it "
                     "with --objective pcme, or set --inclusion-alpha-occ 0",
                     pnb_loss_name(PNB_LOSS_IMG_INCLUSION), c->info->family);
}

/* Before the model is made: which source a factor is of shows in their order alone. */
static pnb_status check_factors(const pnb__contrastive *c, pnb_error *err)
{
    size_t n = c->opts->n_upsampling_factors;
    if (n == 0 || n == pnb_dataset_n_parts(c->train))
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "--train-data-upsampling-factors: %zu factors for %zu parts of the data", n,
                     pnb_dataset_n_parts(c->train));
}

/* ---- opening, put together ---- */

/* Data before the model: a fresh tokenizer and the context of `tiny` come from the captions. */
static pnb_status open_contrastive(void *self, const char *checkpoint, pnb__objective *o,
                                   pnb_error *err)
{
    pnb__contrastive *c = self;
    pnb_status status;
    c->exchange = o->exchange; /* the loop has put in the one of a single process by now */
    PNB_TRY(check_others(c, err));
    if (c->train == NULL) /* open already where its classes were counted */
        PNB_TRY(
            open_dataset(c, c->opts->train_data, c->opts->dataset.negatives_key, &c->train, err));
    PNB_TRY(check_factors(c, err));
    if (c->opts->val_data != NULL)
        /* validation has no use for negatives, and its data need have none */
        PNB_TRY(open_dataset(c, c->opts->val_data, NULL, &c->val, err));
    /* a checkpoint of factors stands on the base, which --model names in a resumed run too */
    PNB_TRY(pnb__contrastive_open_model(c, c->opts->lora_rank > 0 ? NULL : checkpoint, err));
    PNB_TRY(pnb__contrastive_adapt(c, checkpoint, err));
    PNB_TRY(pnb__teacher_open(c, err));
    PNB_TRY(pnb__contrastive_check_rates(c, err));
    PNB_TRY(check_masks(c, err));
    PNB_TRY(pnb__contrastive_fit(c, checkpoint, err));
    PNB_TRY(check_whole(c, err));
    PNB_TRY(check_mask_token(c, err));
    PNB_TRY(check_unknown_token(c, err));
    PNB_TRY(list_params(c, o, err));
    PNB_TRY(pnb__contrastive_read_words(c, err));
    PNB_TRY(pnb__contrastive_read_trunk(c, err));
    PNB_TRY(pnb__contrastive_mark_data(c, o, err));
    o->n_samples = pnb_dataset_size(c->train); /* of the data; an epoch may have fewer or more */
    o->validates = c->val != NULL;
    o->steps_per_epoch = c->steps_per_epoch = steps_of_epoch(c, samples_of_epoch(c));
done:
    return status;
}

/* Threads that wait for each other at every product are as slow as the one that shares its core. */
static pnb_status check_pinned(const pnb__contrastive *c, pnb_error *err)
{
    int threads = pnb_ctx_n_threads(c->ctx), workers = c->opts->workers, n = pnb__n_processors();
    if (!c->opts->pin_workers || threads + workers <= n)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "--pin-workers: %d threads and %d workers want %d processors, this process "
                     "may use %d: lower --threads or --workers, or leave it out",
                     threads, workers, threads + workers, n);
}

/* Graphs before loaders: a step that does not fit in memory fails before pictures are decoded. */
static pnb_status start_contrastive(void *self, pnb_loader_position at, pnb__objective *o,
                                    pnb_error *err)
{
    pnb__contrastive *c = self;
    pnb_status status;
    PNB_TRY(check_pinned(c, err));
    PNB_TRY(pnb__step_create(&c->step_graphs, c, err));
    const pnb_loader_opts l = loader_opts(c);
    PNB_TRY(pnb_loader_create(&c->loader, c->train, &l, err));
    PNB_TRY(pnb_loader_set_position(c->loader, at, err));
    if (c->val != NULL)
        PNB_TRY(make_val_loader(c, err));
    o->graph_bytes = pnb__step_bytes(c->step_graphs);
done:
    return status;
}

static void close_contrastive(void *self)
{
    pnb__contrastive *c = self;
    pnb_loader_free(c->loader);
    pnb_loader_free(c->val_loader);
    pnb__step_free(c->step_graphs);
    pnb__lora_free(c->lora);
    pnb__teacher_free(c->teacher);
    pnb_model_free(c->model);
    pnb_tokenizer_free(c->tokenizer);
    pnb_dataset_free(c->train);
    pnb_dataset_free(c->val);
    pnb__free(c->params);
}

/* ---- a step ---- */

/* ProLIP's --replace-token where it is given, else the token that the tokenizer calls its mask. */
pnb__text_masker pnb__contrastive_masker(const pnb__contrastive *c)
{
    const pnb_train_opts *o = c->opts;
    int mask_id = o->replace_token >= 0 ? o->replace_token : pnb_tokenizer_mask_id(c->tokenizer);
    return (pnb__text_masker){.tokenizer = c->tokenizer,
                              .mode = o->text_mask,
                              .prob = o->drop_prob,
                              .mask_id = mask_id,
                              .pad_id = pnb_tokenizer_pad_id(c->tokenizer),
                              .seed = o->seed};
}

/* The parameter is a's logarithm, so that a stays positive. */
pnb_status pnb__contrastive_scale(const pnb__contrastive *c, double *a, double *b, pnb_error *err)
{
    pnb_status status = PNB_OK;
    double log_a = 0;
    *a = c->info->logit_scale;
    *b = 0;
    if (c->logit_scale != NULL) {
        status = pnb__param_read(c->logit_scale, &c->kernels, 0, 1, &log_a, err);
        *a = exp(log_a);
    }
    if (status == PNB_OK && c->logit_bias != NULL)
        status = pnb__param_read(c->logit_bias, &c->kernels, 0, 1, b, err);
    return status;
}

/* The terms that have a weight; diversity is none of validation's, and the teacher knows the
 * training data alone. */
static void add_terms(const pnb__contrastive *c, const double *term, bool validates,
                      pnb__figures *out)
{
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        if (c->opts->loss.weight[i] > 0 && !(validates && i >= PNB_LOSS_DIVERSITY))
            pnb__figures_add(out, pnb_loss_name((pnb_loss_term)i), NULL, term[i]);
}

/* total = sum of the weighted terms; each is named after its loss in results.jsonl. */
static pnb_status step_contrastive(void *self, int64_t step, pnb__step_values *out, pnb_error *err)
{
    pnb__contrastive *c = self;
    c->step = step; /* masks are drawn for it */
    pnb_status status = pnb__step_run(c->step_graphs, c, out, err);
    if (status == PNB_OK && c->lora != NULL)
        pnb__lora_project(c->lora);
    add_terms(c, c->term, false, &out->terms);
    return status;
}

/* a in [1, 100]: beyond it the logits of a batch saturate and the gradient dies (CLIP section 2.5).
 */
static pnb_status clamp_scale(const pnb__contrastive *c, pnb_error *err)
{
    double v = 0;
    if (c->logit_scale == NULL || !c->logit_scale->trainable)
        return PNB_OK;
    pnb_status status = pnb__param_read(c->logit_scale, &c->kernels, 0, 1, &v, err);
    v = PNB_MIN(PNB_MAX(v, 0.0), MAX_LOGIT_SCALE);
    return status == PNB_OK ? pnb__param_write(c->logit_scale, &c->kernels, 0, 1, &v, err) : status;
}

/* What is reported of a and b is what the next step will use: after the clamp. */
static pnb_status updated(void *self, pnb__step_values *out, pnb_error *err)
{
    pnb__contrastive *c = self;
    double a, b;
    pnb_status status = clamp_scale(c, err);
    if (status == PNB_OK && c->lora != NULL)
        status = pnb__lora_apply(c->lora, err);
    if (status == PNB_OK)
        status = pnb__contrastive_scale(c, &a, &b, err);
    if (status != PNB_OK)
        return status;
    pnb__figures_add(&out->state, "logit_scale", "Logit Scale", a);
    pnb__figures_add(&out->state, "logit_bias", NULL, b);
    memcpy(c->result->loss, c->term, sizeof c->result->loss);
    c->result->n_skipped = pnb_loader_n_skipped(c->loader);
    c->result->n_damaged = pnb_dataset_n_damaged(c->train);
    return PNB_OK;
}

/* Of the batch that comes next: those handed out are in the weights. */
static pnb_loader_position position(const void *self)
{
    const pnb__contrastive *c = self;
    return pnb_loader_get_position(c->loader);
}

/* ---- between the steps ---- */

/* The i2t correlation ranks checkpoints, as ProLIP's --save-best-unc does. */
static pnb_status validate_losses(pnb__contrastive *c, int64_t step, pnb__eval_values *out,
                                  pnb_error *err)
{
    pnb_train_eval *e = &c->result->eval;
    pnb__figures *f = &out->figures;
    pnb_status status = pnb__evaluate(c, e, err);
    if (status != PNB_OK)
        return status;
    e->step = step;
    e->epoch = step / c->steps_per_epoch;
    out->n = e->n;
    out->total = e->total;
    out->unc_r = e->i2t_unc_r;
    add_terms(c, e->loss, true, &out->terms);
    pnb__figures_add(f, "i2t_r1", "image_to_text_R@1", e->i2t_r1);
    pnb__figures_add(f, "t2i_r1", "text_to_image_R@1", e->t2i_r1);
    pnb__figures_add(f, "batch_i2t_r1", NULL, e->batch_i2t_r1);
    pnb__figures_add(f, "batch_t2i_r1", NULL, e->batch_t2i_r1);
    pnb__figures_add(f, "image_uncertainty", NULL, e->image_unc);
    pnb__figures_add(f, "text_uncertainty", NULL, e->text_unc);
    pnb__figures_add(f, "i2t_unc_r", NULL, e->i2t_unc_r);
    pnb__figures_add(f, "t2i_unc_r", NULL, e->t2i_unc_r);
    return PNB_OK;
}

static pnb_status validate(void *self, int64_t step, pnb__eval_values *out, pnb_error *err)
{
    pnb__contrastive *c = self;
    pnb_status status = out->has_losses ? validate_losses(c, step, out, err) : PNB_OK;
    return status == PNB_OK ? pnb__evaluators_run(c, step, out, err) : status;
}

/* A model directory that every command opens. The SHA-256 of the weights is made anew: it was that
 * of the weights as they were opened. */
static pnb_status save(void *self, const char *dir, pnb_error *err)
{
    pnb__contrastive *c = self;
    char *tokenizer = pnb__path_join(dir, "tokenizer.json");
    char *preprocess = pnb__path_join(dir, "preprocessor_config.json");
    pnb_status status = PNB_OK;
    if (tokenizer == NULL || preprocess == NULL) {
        status = pnb__fail_nomem(err, strlen(dir));
        goto done;
    }
    PNB_TRY(pnb__model_weights_changed(c->model, err));
    PNB_TRY(c->lora != NULL ? pnb__contrastive_save_adapter(c, dir, err)
                            : pnb_model_save(c->model, dir, err));
    PNB_TRY(pnb_tokenizer_save(c->tokenizer, tokenizer, err));
    PNB_TRY(pnb_preprocess_save(&c->preprocess, preprocess, err));
done:
    pnb__free(tokenizer);
    pnb__free(preprocess);
    return status;
}

/* One process reads it all, in batches of the size that training has, from the first epoch's order
 * on: the statistics are a function of weights, data and seed, not of where the run was stopped. */
static pnb_status refresh(void *self, pnb_error *err)
{
    pnb__contrastive *c = self;
    pnb_loader_opts l = loader_opts(c);
    l.rank = 0, l.n_ranks = 1;
    l.pin_workers = false; /* those of the steps keep theirs */
    return pnb__contrastive_refresh(c, &l, err);
}

/* ---- pnb_train ---- */

/* Nothing is opened here: the loop does it, and closes what it opened. */
pnb__objective pnb__contrastive_objective(pnb__contrastive *c, const pnb_ctx *ctx,
                                          const pnb_train_opts *opts, pnb_train_result *result)
{
    static const pnb__objective_calls calls = {.open = open_contrastive,
                                               .start = start_contrastive,
                                               .announce = pnb__contrastive_announce,
                                               .conclude = pnb__contrastive_conclude,
                                               .step = step_contrastive,
                                               .updated = updated,
                                               .group = pnb__contrastive_group,
                                               .position = position,
                                               .has_figures = pnb__evaluators_are_due,
                                               .validate = validate,
                                               .save = save,
                                               .refresh = refresh,
                                               .close = close_contrastive};
    *c = (pnb__contrastive){.ctx = ctx, .opts = opts, .result = result};
    return (pnb__objective){
        .calls = &calls, .self = c, .settings = pnb__contrastive_settings(opts)};
}

/* The loop's part of the public result; losses and validation are there already. */
static void fill_result(pnb_train_result *out, const pnb__run_result *r)
{
    memcpy(out->run_dir, r->run_dir, sizeof out->run_dir);
    memcpy(out->checkpoint_dir, r->checkpoint_dir, sizeof out->checkpoint_dir);
    memcpy(out->best_dir, r->best_dir, sizeof out->best_dir);
    out->step = r->step;
    out->n_steps = r->n_steps;
    out->epoch = r->epoch;
    out->total = r->total;
    out->seconds = r->seconds;
    out->data_s = r->data_s;
    out->samples_per_s = r->samples_per_s;
    out->graph_bytes = r->graph_bytes;
}

/* A batch of every class is as large as there are classes, which the data alone know: they are
 * opened here, before the loop is told how many pairs a step has, and stay open for it. With one
 * class the loss has no negatives. */
static pnb_status settle_batch(pnb__contrastive *c, pnb_train_opts *o, pnb_error *err)
{
    size_t n = 0;
    if (!o->batch_by_class)
        return PNB_OK;
    pnb_status status = open_dataset(c, o->train_data, o->dataset.negatives_key, &c->train, err);
    if (status == PNB_OK)
        status = pnb_loader_count_classes(c->train, &n, err);
    if (status == PNB_OK && n < 2)
        status = pnb__fail(err, PNB_ARG,
                           "--batch-by-class: all samples are of one class, and a pair needs "
                           "others to be told from");
    if (status == PNB_OK && o->batch_size > n)
        status = pnb__fail(err, PNB_ARG,
                           "--batch-size %zu: with --batch-by-class at most the number of classes, "
                           "which is %zu",
                           o->batch_size, n);
    o->batch_size = o->batch_size > 0 ? o->batch_size : n;
    return status;
}

/* What can be checked without the data: 0 is a batch that is not known yet, and stands for one that
 * is in range. */
static pnb_status check_opts(const pnb_train_opts *o, pnb_error *err)
{
    pnb_train_opts known = *o;
    if (o->batch_by_class && o->batch_size == 0)
        known.batch_size = 2;
    return pnb__contrastive_check_opts(&known, err);
}

/* Options first: a wrong one costs a second, not the time to open the data. */
static pnb_status train(const pnb_ctx *ctx, const pnb_train_opts *opts, pnb_train_result *out,
                        pnb_error *err)
{
    pnb__contrastive c;
    pnb__run_result run;
    pnb_train_opts settled = *opts;
    *out = (pnb_train_result){0};
    pnb_status status = check_opts(opts, err);
    if (status != PNB_OK)
        return status;
    pnb__objective objective = pnb__contrastive_objective(&c, ctx, &settled, out);
    pnb__exchange *exchange = NULL;
    status = settle_batch(&c, &settled, err);
    if (status == PNB_OK)
        status = pnb__contrastive_settle_share(&settled, err);
    if (status == PNB_OK)
        status = pnb__exchange_create(&exchange, opts->ranks, err);
    if (status != PNB_OK) {
        close_contrastive(&c);
        return status;
    }
    objective.exchange = exchange;
    pnb__run_opts run_opts = pnb__contrastive_run_opts(&settled);
    c.settled = &settled;
    c.run = &run_opts;
    status = pnb__trainer_run(ctx, &run_opts, &objective, &run, err);
    pnb__exchange_free(exchange);
    fill_result(out, &run);
    return status;
}

/* What fails here, the other processes learn at once; what was agreed on they know. */
pnb_status pnb_train(const pnb_ctx *ctx, const pnb_train_opts *opts, pnb_train_result *out,
                     pnb_error *err)
{
    pnb_status status = train(ctx, opts, out, err);
    if (status != PNB_OK && status != PNB_INTERRUPTED)
        pnb_peers_fail(opts->ranks, status, err);
    return status;
}
