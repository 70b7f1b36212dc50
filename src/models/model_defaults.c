/* Tokenizer and preprocessing of a model folder, as far as the configuration decides them.
 *
 * What a folder leaves open about pictures is taken as its family's reference does, which the
 * family knows (tower.h). Cleaning of captions is the configuration's business in open_clip and
 * that of a class in transformers, whose files only name it. Reading the files is the io room's
 * business. */
#include "models/model_defaults.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "models/model.h"
#include "tokenizer/text.h"

/* The configuration as it came, or NULL out of memory: jansson takes a NULL as an object without
 * the key that is asked for. */
static json_t *config_of(const pnb_model *model)
{
    const char *text = pnb_model_config_text(model);
    json_t *root = NULL;
    if (pnb__json_load_bytes(&root, text, strlen(text), "configuration", NULL) != PNB_OK)
        return NULL;
    return root;
}

pnb_preprocess pnb__assumed_preprocess(const pnb_model *model)
{
    const pnb__family_calls *family = pnb__family_of(&model->config);
    pnb_preprocess pp = pnb_preprocess_default();
    json_t *config = config_of(model);
    pp.width = (int)model->info.vision.image_width;
    pp.height = (int)model->info.vision.image_height;
    if (family->assume_pixels != NULL)
        family->assume_pixels(&pp, config);
    json_decref(config);
    return pp;
}

pnb_preprocess pnb__fresh_preprocess(const pnb_model *model)
{
    pnb_preprocess pp = pnb_preprocess_default();
    if (pnb__family_of(&model->config)->claims != NULL)
        return pnb__assumed_preprocess(model);
    pp.width = (int)model->info.vision.image_width;
    pp.height = (int)model->info.vision.image_height;
    return pp;
}

/* transformers' SiglipTokenizer deletes punctuation and lowers in code; its files only name it. */
static pnb_status find_siglip_class(const char *dir, bool *found, pnb_error *err)
{
    static const char file[] = "tokenizer_config.json";
    json_t *root = NULL;
    *found = false;
    if (dir == NULL || !pnb__path_has_file(dir, file))
        return PNB_OK;
    char *path = pnb__path_join(dir, file);
    pnb_status status = path != NULL ? pnb__json_load_file(&root, path, 0, NULL) : PNB_NOMEM;
    if (status == PNB_OK) {
        const char *name = json_string_value(json_object_get(root, "tokenizer_class"));
        *found = name != NULL && strcmp(name, "SiglipTokenizer") == 0;
    }
    json_decref(root);
    pnb__free(path);
    return status == PNB_NOMEM ? pnb__fail_nomem(err, strlen(dir)) : PNB_OK;
}

/* text_cfg of ProLIP and open_clip; NULL in Hugging Face's dialect. */
static const json_t *text_of(const json_t *config)
{
    const json_t *open_clip = json_object_get(config, "model_cfg");
    return json_object_get(open_clip != NULL ? open_clip : config, "text_cfg");
}

/* Cleaning is part of what a model was trained on: "A Red Star." and "a red star" are other tokens,
 * and without it embeddings are near the right ones, which nobody notices. */
pnb_status pnb__apply_clean(pnb_tokenizer *tokenizer, const json_t *config, const char *dir,
                            bool *found, pnb_error *err)
{
    const json_t *kwargs = json_object_get(text_of(config), "tokenizer_kwargs");
    const json_t *said = json_object_get(kwargs, "clean");
    const char *name = json_string_value(said);
    pnb_clean clean = PNB_CLEAN_CANONICALIZE;
    bool is_siglip = false;
    pnb_status status = name == NULL ? find_siglip_class(dir, &is_siglip, err) : PNB_OK;
    *found = (said != NULL && !json_is_null(said)) || is_siglip;
    if (status != PNB_OK || (name == NULL && !is_siglip))
        return status;
    if (name != NULL && !pnb_clean_from_name(name, &clean))
        return pnb__fail(err, PNB_FORMAT,
                         "configuration: tokenizer_kwargs.clean \"%.40s\" is not one of none, "
                         "lower, whitespace, canonicalize",
                         name);
    pnb_tokenizer_set_clean(tokenizer, clean);
    return PNB_OK;
}

/* The cleaning that stands in no file: open_clip's HFTokenizer collapses white space, and SigLIP
 * was trained on canonicalized captions, whichever files its folder has. */
static void assume_clean(pnb_tokenizer *tokenizer, const json_t *config, bool *assumed)
{
    const json_t *text = text_of(config);
    const char *name = json_string_value(json_object_get(text, "hf_tokenizer_name"));
    const char *type = json_string_value(json_object_get(config, "model_type"));
    bool is_siglip = type != NULL && strcmp(type, "siglip") == 0;
    if (name != NULL && name[0] != '\0') {
        pnb_tokenizer_set_clean(tokenizer, PNB_CLEAN_WHITESPACE);
    } else if (is_siglip && pnb__tok_is_siglip(tokenizer)) {
        pnb_tokenizer_set_clean(tokenizer, PNB_CLEAN_CANONICALIZE);
        *assumed = true;
    }
}

/* open_clip pads CLIP's texts with 0 ("!"), behind the end token and out of the causal mask's
 * sight; transformers pads with the end token itself. For a model without a mask the id matters. */
pnb_status pnb__tokenizer_configure(pnb_tokenizer *tokenizer, const json_t *config, const char *dir,
                                    bool *clean_assumed, pnb_error *err)
{
    const json_t *text = text_of(config);
    bool says = false;
    *clean_assumed = false;
    pnb_status status = pnb__apply_clean(tokenizer, config, dir, &says, err);
    if (status != PNB_OK)
        return status;
    if (!says)
        assume_clean(tokenizer, config, clean_assumed);
    if (text != NULL && pnb_tokenizer_padding(tokenizer).assumed && pnb__tok_is_clip(tokenizer))
        pnb__tok_assume_pad(tokenizer, 0, PNB__PAD_AS_OPEN_CLIP);
    return PNB_OK;
}

/* ProLIP's H/14 names no tokenizer, so the reference takes open_clip's own, which pads with 0; the
 * files of a CLIP model laid beside it pad with the end token, and padding is attended to. */
bool pnb__pad_unlike_open_clip(const pnb_tokenizer *tokenizer, const json_t *config)
{
    const json_t *text = text_of(config);
    const char *name = json_string_value(json_object_get(text, "hf_tokenizer_name"));
    return json_is_true(json_object_get(text, "no_causal_mask")) &&
           (name == NULL || name[0] == '\0') && pnb__tok_is_clip(tokenizer) &&
           pnb_tokenizer_padding(tokenizer).id != 0;
}

pnb_status pnb__config_follow_end(json_t *config, const pnb_tokenizer *tokenizer, pnb_error *err)
{
    json_t *text = json_object_get(config, "text_cfg");
    const char *pool = json_string_value(json_object_get(text, "pool_type"));
    int id = pnb_tokenizer_eos_id(tokenizer);
    if (pool == NULL || strcmp(pool, "eos") != 0)
        return PNB_OK;
    if (id < 0)
        return pnb__fail(err, PNB_ARG,
                         "the model reads texts at their end token (pool_type \"eos\"), and the "
                         "tokenizer has none");
    return json_object_set_new(text, "eos_id", json_integer(id)) == 0 ? PNB_OK
                                                                      : pnb__fail_nomem(err, 0);
}

void pnb__tokenizer_source(const pnb_model *model, char *text, size_t size)
{
    const pnb__family_calls *family = pnb__family_of(&model->config);
    json_t *config = config_of(model);
    const char *name = json_string_value(
        json_object_get(json_object_get(config, "text_cfg"), "hf_tokenizer_name"));
    if (name != NULL && name[0] != '\0')
        snprintf(text, size, "the repository %s (hf_tokenizer_name)", name);
    else
        snprintf(text, size, "%s",
                 family->tokenizer_source != NULL ? family->tokenizer_source(&model->config)
                                                  : "the model's repository");
    json_decref(config);
}
