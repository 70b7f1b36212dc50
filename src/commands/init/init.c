/* A fresh model directory: configuration with overrides, weights, tokenizer, preprocessing.
 *
 * The vocabulary follows the tokenizer and the preprocessing follows the image size, so that the
 * parts cannot disagree. The weights are the models room's business. */
#include "commands/init/init.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "io/json/json.h"
#include "models/model_defaults.h"
#include "penumbra/model.h"

/* The options that change the configuration, as one JSON object on top of the user's own. */
static pnb_status make_overrides(const pnb__model_dir_opts *o, const pnb_tokenizer *tokenizer,
                                 char **out, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = PNB_OK;
    const char *user = o->overrides != NULL ? o->overrides : "{}";
    PNB_TRY(pnb__json_load_bytes(&root, user, strlen(user), "--override", err));
    const char *const sections[] = {"text_cfg", "text_cfg", "vision_cfg"};
    const char *const keys[] = {"vocab_size", "context_length", "image_size"};
    const int64_t values[] = {tokenizer != NULL ? pnb_tokenizer_vocab_size(tokenizer)
                                                : PNB__INT_UNSET,
                              o->context_length, o->image_size};
    for (size_t i = 0; i < PNB_COUNT(keys); i++) {
        if (values[i] == PNB__INT_UNSET)
            continue;
        json_t *section = json_object_get(root, sections[i]);
        if (section == NULL) {
            section = json_object();
            json_object_set_new(root, sections[i], section);
        }
        if (json_object_set_new(section, keys[i], json_integer(values[i])) != 0)
            status =
                !json_is_complete(root) || section == NULL
                    ? pnb__fail_nomem(err, 64)
                    : pnb__fail(err, PNB_FORMAT, "--override: %s is not an object", sections[i]);
    }
    *out = status == PNB_OK ? json_dumps(root, 0) : NULL;
    if (status == PNB_OK && *out == NULL)
        status = pnb__fail_nomem(err, 64);
done:
    json_decref(root);
    return status;
}

/* The merged configuration, with the end token of the tokenizer where there is one to follow. */
static pnb_status make_config(const pnb__model_dir_opts *o, const pnb_tokenizer *tokenizer,
                              char **out, pnb_error *err)
{
    json_t *root = NULL;
    char *overrides = NULL, *merged = NULL;
    pnb_status status;
    *out = NULL;
    PNB_TRY(make_overrides(o, tokenizer, &overrides, err));
    PNB_TRY(pnb_model_config_merge(o->config, overrides, &merged, err));
    PNB_TRY(pnb__json_load_bytes(&root, merged, strlen(merged), o->config, err));
    if (tokenizer != NULL)
        PNB_TRY(pnb__config_follow_end(root, tokenizer, err));
    if ((*out = json_dumps(root, JSON_REAL_PRECISION(17))) == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(merged)));
done:
    json_decref(root);
    pnb__free(overrides);
    pnb_text_free(merged);
    return status;
}

static pnb_status save_preprocess(const pnb_model *model, const char *dir, pnb_error *err)
{
    const pnb_preprocess pp = pnb__fresh_preprocess(model);
    char *path = pnb__path_join(dir, "preprocessor_config.json");
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    pnb_status status = pnb_preprocess_save(&pp, path, err);
    pnb__free(path);
    return status;
}

static pnb_status check_free(const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, "model.safetensors");
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    bool taken = pnb__path_is_file(path);
    pnb__free(path);
    return taken ? pnb__fail(err, PNB_EXISTS, "%s holds a model already; give another --out", dir)
                 : PNB_OK;
}

static void report(const pnb__model_dir_opts *o, const pnb_model_info *info, uint64_t seed,
                   pnb__result *r)
{
    pnb__result_text(r, "dir", "written", o->dir);
    pnb__result_text(r, "config", "configuration", o->config);
    pnb__result_int(r, "n_params", "parameters", (int64_t)info->n_params);
    pnb__result_int(r, "embed_dim", "embedding width", (int64_t)info->embed_dim);
    pnb__result_int(r, "image_size", "image size", (int64_t)info->vision.image_width);
    pnb__result_int(r, "context_length", "context", (int64_t)info->text.context_length);
    pnb__result_int(r, "vocab_size", "vocabulary", (int64_t)info->text.vocab_size);
    if (info->vision.has_unc || info->text.has_unc)
        pnb__result_text(r, "text_uncertainty_source", "text log-variance from",
                         pnb_text_unc_source_name(info->text_unc_source));
    pnb__result_int(r, "seed", "seed", (int64_t)seed);
}

pnb_status pnb__model_dir_create(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__model_dir_opts *opts = args;
    uint64_t seed = (uint64_t)app->common.seed;
    pnb_tokenizer *tokenizer = NULL;
    pnb_model *model = NULL;
    char *config = NULL;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(check_free(opts->dir, err));
    if (opts->tokenizer != NULL)
        PNB_TRY(pnb_tokenizer_load(&tokenizer, opts->tokenizer, err));
    PNB_TRY(make_config(opts, tokenizer, &config, err));
    PNB_TRY(pnb_model_init_json(&model, app->ctx, config, seed, err));
    PNB_TRY(pnb_model_save(model, opts->dir, err));
    PNB_TRY(save_preprocess(model, opts->dir, err));
    if (tokenizer != NULL)
        PNB_TRY(pnb_tokenizer_save(tokenizer, opts->dir, err));
    else
        pnb__say(app, "no tokenizer was given: put a tokenizer.json into %s before embedding text",
                 opts->dir);
    report(opts, pnb_model_get_info(model), seed, r);
done:
    pnb__free(config);
    pnb_model_free(model);
    pnb_tokenizer_free(tokenizer);
    return status;
}
