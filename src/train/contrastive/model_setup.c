/* The model a run starts from: a directory with weights, or a configuration initialised afresh.
 *
 * A fresh model takes its vocabulary from the tokenizer and, unless `config_init` keeps the
 * configuration's values, starts with logit bias -log(pairs of a step), log-variance bias
 * -10 + log(768/D) and almost flat log-variance heads: with the published values a small batch
 * first collapses to constant cosines (docs/numerics-training.md#initial-values). */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "io/json/json.h"
#include "models/model_defaults.h"
#include "models/pcme/trunk_file.h"
#include "models/pcme/word_table.h"
#include "models/retarget.h"
#include "penumbra/checkpoint.h"
#include "train/contrastive/contrastive.h"

/* Only a folder that was looked through has none: weights that could not be looked for must not
 * give way to fresh ones. */
static pnb_status find_weights(const char *dir, bool *found, pnb_error *err)
{
    char path[4096];
    pnb_error why = PNB_ERROR_INIT;
    *found = false;
    if (!pnb__path_is_dir(dir))
        return PNB_OK;
    if (pnb__lora_is_dir(dir))
        return pnb__fail(
            err, PNB_ARG,
            "%s is a LoRA adapter: `penumbra convert BASE --lora %s --out MODEL` makes "
            "a model of it, and --lora-rank with --resume goes on from it",
            dir, dir);
    pnb_status status = pnb_checkpoint_locate(path, sizeof path, dir, &why);
    *found = status == PNB_OK;
    return status == PNB_OK || status == PNB_NOT_FOUND ? PNB_OK
                                                       : pnb__fail(err, status, "%s", why.text);
}

/* Captions gathered for a tokenizer; the texts live in the arena. */
typedef struct text_list {
    const char **items;
    size_t n;
    pnb__arena arena;
} text_list;

/* Copies: a sample's texts go with the sample. */
static pnb_status add_texts(text_list *l, const char *const *texts, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        const char *copy = pnb__arena_strdup(&l->arena, texts[i]);
        status = copy != NULL ? PNB_PUSH(l->items, l->n, err, copy)
                              : pnb__fail_nomem(err, strlen(texts[i]));
    }
    return status;
}

/* Every caption of the training set and the words of the templates. */
static pnb_status collect_texts(const pnb__contrastive *c, text_list *l, pnb_error *err)
{
    /* every sample of a synthetic set has the same caption */
    bool alike = pnb_dataset_get_kind(c->train) == PNB_DATASET_SYNTHETIC;
    size_t n = alike ? 1 : pnb_dataset_size(c->train);
    pnb_status status = add_texts(l, c->opts->templates, c->opts->n_templates, err);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb_sample s = {0};
        status = pnb_dataset_get(c->train, i, &s, err);
        if (status == PNB_OK)
            status = add_texts(l, s.texts, s.n_texts, err);
        pnb_sample_reset(&s);
    }
    return status;
}

/* On all levels of all captions: what is masked or shortened later is made of the same words. */
static pnb_status train_tokenizer(pnb__contrastive *c, pnb_error *err)
{
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    opts.kind = c->opts->tokenizer_kind;
    opts.vocab_size = c->opts->tokenizer_vocab_size;
    text_list list = {0};
    pnb__arena_init(&list.arena, (size_t)1 << 20);
    pnb_status status = collect_texts(c, &list, err);
    if (status == PNB_OK)
        status = pnb_tokenizer_train(&c->tokenizer, list.items, list.n, &opts, err);
    pnb__free(list.items);
    pnb__arena_free(&list.arena);
    return status;
}

/* `dir`: the model's directory, or NULL for a configuration. */
static pnb_status open_tokenizer(pnb__contrastive *c, const char *dir, bool has_weights,
                                 bool is_resume, pnb_error *err)
{
    /* --tokenizer beats the folder's own, but ids of a checkpoint are its own for ever */
    const char *path = is_resume ? dir : c->opts->tokenizer;
    if (path != NULL)
        return pnb_tokenizer_load(&c->tokenizer, path, err);
    /* a configuration's folder may bring one too */
    pnb_status status = dir != NULL ? pnb_tokenizer_load(&c->tokenizer, dir, err) : PNB_NOT_FOUND;
    if (status != PNB_NOT_FOUND)
        return status;
    if (err != NULL)
        pnb_error_reset(err);
    if (has_weights)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s has no tokenizer: copy the model's own there or give --tokenizer",
                         dir);
    return train_tokenizer(c, err);
}

static pnb_status set_number(json_t *object, const char *key, json_t *value, pnb_error *err)
{
    if (object == NULL || json_object_set_new(object, key, value) != 0)
        return pnb__fail(err, PNB_FORMAT, "the configuration has no section for %s", key);
    return PNB_OK;
}

/* Share of the reference's spread, width^-1/2, that the matrix of a log-variance head starts with.
 */
static const double unc_spread = 0.03;

/* A tower's log-variance head. A spread that the configuration itself names stays. */
static pnb_status set_unc_head(json_t *tower, double bias, bool set_spread, pnb_error *err)
{
    if (!json_is_true(json_object_get(tower, "embed_unc")) &&
        json_object_get(tower, "unc_layers") == NULL)
        return PNB_OK;
    pnb_status status = set_number(tower, "init_unc_bias", json_real(bias), err);
    if (status != PNB_OK || !set_spread || json_object_get(tower, "init_unc_std") != NULL)
        return status;
    double width = json_number_value(json_object_get(tower, "width"));
    double std = unc_spread / sqrt(width > 0 ? width : 768);
    return set_number(tower, "init_unc_std", json_real(std), err);
}

/* Initial values of a fresh model that depend on batch and width. */
/* b = -log(pairs): where cosines are random s(b) = 1 / pairs is the share of true pairs, so
 * the loss begins at its entropy and not with pushing every pair apart (SigLIP section 3.2 has b =
 * -10 for its batch). The log-variance bias -10 + log(768 / D) gives every width the trace of ViT-B
 * at the start: u = D exp(bias) = 768 e^-10. `config_init` keeps what the configuration says. */
static pnb_status set_initial_values(const pnb__contrastive *c, json_t *config, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    json_t *vision = json_object_get(config, "vision_cfg");
    json_t *text = json_object_get(config, "text_cfg");
    double pairs = (double)o->batch_size * o->accum_freq;
    double dim = json_number_value(json_object_get(config, "embed_dim"));
    double bias = isnan(o->init_logit_bias) ? -log(pairs) : o->init_logit_bias;
    double unc = isnan(o->init_unc_bias) ? -10 + log(768 / PNB_MAX(dim, 1)) : o->init_unc_bias;
    bool given = !o->config_init;
    pnb_status status = PNB_OK;
    /* a stays the configuration's unless it is given: released ones agree on 10 */
    if (given || !isnan(o->init_logit_bias))
        status = set_number(config, "init_logit_bias", json_real(bias), err);
    if (status == PNB_OK && !isnan(o->init_logit_scale))
        status = set_number(config, "init_logit_scale", json_real(log(o->init_logit_scale)), err);
    if (!given && isnan(o->init_unc_bias))
        return status;
    if (status == PNB_OK)
        status = set_unc_head(vision, unc, given, err);
    if (status == PNB_OK)
        status = set_unc_head(text, unc, given, err);
    return status;
}

/* Before the weights exist: a fresh model has these sizes, a loaded one is rebuilt in them. */
static pnb_status force_sizes(const pnb__contrastive *c, json_t *config, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    pnb_status status = PNB_OK;
    if (o->force_context_length > 0)
        status = set_number(json_object_get(config, "text_cfg"), "context_length",
                            json_integer(o->force_context_length), err);
    if (status == PNB_OK && o->force_image_size > 0)
        status = set_number(json_object_get(config, "vision_cfg"), "image_size",
                            json_integer(o->force_image_size), err);
    return status;
}

/* What a configuration leaves to the run: ids of the tokenizer, forced sizes, first values. */
static pnb_status complete_config(const pnb__contrastive *c, json_t *config, pnb_error *err)
{
    json_t *text = json_object_get(config, "text_cfg");
    json_t *vocab = json_integer(pnb_tokenizer_vocab_size(c->tokenizer));
    pnb_status status = set_number(text, "vocab_size", vocab, err);
    if (status == PNB_OK)
        status = pnb__config_follow_end(config, c->tokenizer, err);
    if (status == PNB_OK)
        status = force_sizes(c, config, err);
    return status == PNB_OK ? set_initial_values(c, config, err) : status;
}

/* Configuration, overrides, tokenizer, sizes, in that order: each may change what the next one
 * reads. */
static pnb_status init_model(pnb__contrastive *c, const char *name, pnb_error *err)
{
    const char *overrides = c->opts->config_overrides != NULL ? c->opts->config_overrides : "{}";
    char *merged = NULL;
    pnb__buf full = {0};
    json_t *config = NULL;
    bool clean_assumed;
    pnb_status status;
    PNB_TRY(pnb_model_config_merge(name, overrides, &merged, err));
    PNB_TRY(pnb__json_load_bytes(&config, merged, strlen(merged), name, err));
    PNB_TRY(complete_config(c, config, err));
    PNB_TRY(pnb__tokenizer_configure(c->tokenizer, config, NULL, &clean_assumed, err));
    PNB_TRY(pnb__context_choose(c, name, config, err));
    pnb__json_append_value(&full, config);
    if (full.failed) {
        status = pnb__fail(err, PNB_NOMEM, "out of memory writing the configuration");
        goto done;
    }
    status = pnb_model_init_json(&c->model, c->ctx, full.data, c->opts->seed, err);
done:
    pnb__buf_reset(&full);
    json_decref(config);
    pnb_text_free(merged);
    return status;
}

/* Do --force-image-size and --force-context-length ask for other sizes than the model has? */
static bool wants_other_sizes(const pnb__contrastive *c)
{
    const pnb_model_info *info = pnb_model_get_info(c->model);
    int side = c->opts->force_image_size, context = c->opts->force_context_length;
    return (side > 0 && ((size_t)side != info->vision.image_width ||
                         (size_t)side != info->vision.image_height)) ||
           (context > 0 && (size_t)context != info->text.context_length);
}

/* Puts the loaded weights into a model of the forced sizes, or with fresh uncertainty heads. */
static pnb_status rebuild_model(pnb__contrastive *c, json_t *config, pnb_error *err)
{
    pnb_model *from = c->model; /* mapped: what is copied out of it is read once */
    pnb__buf text = {0};
    pnb_status status;
    c->model = NULL;
    PNB_TRY(force_sizes(c, config, err));
    pnb__json_append_value(&text, config);
    if (text.failed) {
        status = pnb__fail(err, PNB_NOMEM, "out of memory writing the configuration");
        goto done;
    }
    PNB_TRY(pnb_model_init_json(&c->model, c->ctx, text.data, c->opts->seed, err));
    PNB_TRY(pnb__model_retarget(from, c->model, !c->opts->reinit_unc, err));
done:
    pnb__buf_reset(&text);
    pnb_model_free(from);
    return status;
}

/* --pretrained and --resume alike. Other sizes must be asked for: interpolated positions make
 * another model of it, which nobody should get by a typing error. */
static pnb_status load_model(pnb__contrastive *c, const char *dir, bool is_resume, pnb_error *err)
{
    json_t *config = NULL;
    bool clean_assumed;
    pnb_status status;
    PNB_TRY(pnb_model_load(&c->model, c->ctx, dir, err));
    const char *text = pnb_model_config_text(c->model);
    PNB_TRY(pnb__json_load_bytes(&config, text, strlen(text), dir, err));
    PNB_TRY(pnb__tokenizer_configure(c->tokenizer, config, dir, &clean_assumed, err));
    status =
        pnb__model_check_vocabulary(c->model, (size_t)pnb_tokenizer_vocab_size(c->tokenizer), err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", dir);
    /* a resumed run's heads are trained already: reinit_unc has done its work */
    bool resizes = wants_other_sizes(c);
    if (status == PNB_OK && resizes && !c->opts->force_resize_pos_emb)
        status =
            pnb__fail(err, PNB_ARG,
                      "the model in %s was made for pictures of %zu pixels and %zu tokens: "
                      "give --force-resize-pos-emb to interpolate its positions to other sizes",
                      dir, pnb_model_get_info(c->model)->vision.image_width,
                      pnb_model_get_info(c->model)->text.context_length);
    if (status == PNB_OK && (resizes || (c->opts->reinit_unc && !is_resume)))
        status = rebuild_model(c, config, err);
done:
    json_decref(config);
    return status;
}

/* The model's own preprocessing where the folder has it; what pictures become must be what the
 * tower takes, down to the pixel. */
static pnb_status open_preprocess(pnb__contrastive *c, const char *dir, pnb_error *err)
{
    const pnb_tower_info *v = &c->info->vision;
    bool known = false;
    c->preprocess =
        dir != NULL ? pnb__assumed_preprocess(c->model) : pnb__fresh_preprocess(c->model);
    if (dir != NULL) {
        pnb_error why = PNB_ERROR_INIT;
        pnb_preprocess pp;
        pnb_status status = pnb_preprocess_load(&pp, dir, &why);
        known = status == PNB_OK;
        if (known)
            c->preprocess = pp;
        else if (status != PNB_NOT_FOUND)
            return pnb__fail(err, status, "%s", why.text);
    }
    if (!known || c->opts->force_resize_pos_emb) {
        /* other sizes: the shorter side is resized to what is cut out of it */
        bool same = (size_t)c->preprocess.width == v->image_width;
        c->preprocess.resize_to = same ? c->preprocess.resize_to : 0;
        c->preprocess.width = (int)v->image_width;
        c->preprocess.height = (int)v->image_height;
    }
    if ((size_t)c->preprocess.width != v->image_width ||
        (size_t)c->preprocess.height != v->image_height)
        return pnb__fail(
            err, PNB_SHAPE,
            "%s: preprocessing makes %d x %d pictures, the image tower takes %zu x %zu", dir,
            c->preprocess.width, c->preprocess.height, v->image_width, v->image_height);
    return PNB_OK;
}

/* What a fresh model's words are before the first step; the words of a trained one are its own, and
 * a resumed run must not forget them. A file of which nothing is known is of another language or
 * case, which would else be seen after hours. */
pnb_status pnb__contrastive_read_words(pnb__contrastive *c, pnb_error *err)
{
    const char *path = c->opts->word_vectors;
    pnb__param *words = pnb__model_find_param(c->model, PNB__PCME_WORDS);
    pnb__word_table_count count;
    if (path == NULL)
        return PNB_OK;
    if (words == NULL)
        return pnb__fail(err, PNB_ARG,
                         "--word-vectors: a %s model has no embedding of words; those of "
                         "--objective pcme, vse, vsepp and pvse have",
                         c->info->family);
    if (!c->is_fresh)
        return pnb__fail(err, PNB_ARG,
                         "--word-vectors: the words of a trained model have their vectors: leave "
                         "it out with --resume and model directories");
    pnb_status status =
        pnb__word_table_read(words, &c->kernels, c->tokenizer, path, c->opts->seed, &count, err);
    if (status != PNB_OK)
        return status;
    c->n_words = count.n_words;
    c->n_words_found = count.n_exact + count.n_by_fallback;
    return c->n_words_found > 0
               ? PNB_OK
               : pnb__fail(err, PNB_NOT_FOUND,
                           "%s: holds none of the %zu words of the captions: is it of another "
                           "language, or in capitals?",
                           path, count.n_words);
}

/* What a fresh model's pictures are first seen by. A resumed run must not forget what it learned.
 */
pnb_status pnb__contrastive_read_trunk(pnb__contrastive *c, pnb_error *err)
{
    const char *path = c->opts->image_trunk;
    if (path == NULL)
        return PNB_OK;
    if (!c->is_fresh)
        return pnb__fail(err, PNB_ARG,
                         "--image-trunk: a trained model has a trunk of its own: leave it out with "
                         "--resume and model directories");
    pnb_status status = pnb__pcme_read_trunk(c->model, path, &c->n_trunk_arrays, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "--image-trunk");
    return status;
}

/* Tokenizer before model: a fresh model's vocabulary is the tokenizer's. */
pnb_status pnb__contrastive_open_model(pnb__contrastive *c, const char *checkpoint, pnb_error *err)
{
    const char *source = checkpoint != NULL ? checkpoint : c->opts->model;
    if (pnb__starts_with(source, "local-dir:")) /* open_clip's word for a folder */
        source += strlen("local-dir:");
    /* a folder with weights, a folder with a configuration alone, or a configuration's name */
    bool is_dir = pnb__path_is_dir(source), has_weights;
    char *config_path = NULL;
    pnb_status status;
    PNB_TRY(find_weights(source, &has_weights, err));
    PNB_TRY(open_tokenizer(c, is_dir ? source : NULL, has_weights, checkpoint != NULL, err));
    if (has_weights) {
        PNB_TRY(load_model(c, source, checkpoint != NULL, err));
    } else {
        config_path = is_dir ? pnb__path_join(source, "config.json") : pnb__strdup(source);
        if (config_path == NULL) {
            status = pnb__fail_nomem(err, strlen(source));
            goto done;
        }
        PNB_TRY(init_model(c, config_path, err));
    }
    c->is_fresh = !has_weights;
    c->info = pnb_model_get_info(c->model);
    PNB_TRY(open_preprocess(c, is_dir ? source : NULL, err));
    if (c->opts->lora_rank > 0) /* while the file is open: the weights are about to leave it */
        PNB_TRY(pnb_model_weights_sha256(c->model, &c->base_sha256, err));
    PNB_TRY(pnb__model_make_trainable(c->model, err));
    if (c->opts->precision == PNB_TRAIN_AMP_BF16)
        PNB_TRY(pnb__model_train_in_bf16(c->model, err));
    /* the scalars a = exp(logit_scale) and b; SigLIP's b is missing in models of CLIP */
    c->logit_scale = pnb__model_find_param(c->model, "logit_scale");
    c->logit_bias = pnb__model_find_param(c->model, "logit_bias");
    status = pnb__contrastive_lock(c, err);
done:
    pnb__free(config_path);
    return status;
}
