/* Opens the parts of a model directory that must agree and checks that they do.
 *
 * The config's text_cfg.tokenizer_kwargs.clean (SigLIP's and ProLIP's "canonicalize") is applied to
 * a loaded tokenizer here, because tokenizer.json has no place for it. */
#include "app/embedder.h"

#include <string.h>

#include "app/weights_hash.h"
#include "base/base.h"
#include "io/json.h"

/* transformers' SiglipTokenizer deletes punctuation and lowers in code; its files only name it. */
static bool has_siglip_class(const char *dir)
{
    char *path = pnb__path_join(dir, "tokenizer_config.json");
    json_t *root = NULL;
    bool found = false;
    if (path != NULL && pnb__path_is_file(path) &&
        pnb__json_load_file(&root, path, 0, NULL) == PNB_OK) {
        const char *name = json_string_value(json_object_get(root, "tokenizer_class"));
        found = name != NULL && strcmp(name, "SiglipTokenizer") == 0;
    }
    json_decref(root);
    pnb__free(path);
    return found;
}

/* Cleaning the config asks for; a tokenizer trained here carries its own and the key is absent. */
static pnb_status apply_clean(pnb__embedder *e, const char *dir, pnb_error *err)
{
    const char *text = pnb_model_config_text(e->model);
    json_t *root = NULL;
    pnb_status status = pnb__json_load_bytes(&root, text, strlen(text), dir, err);
    if (status != PNB_OK)
        return status;
    const json_t *kwargs = json_object_get(json_object_get(root, "text_cfg"), "tokenizer_kwargs");
    const char *name = json_string_value(json_object_get(kwargs, "clean"));
    pnb_clean clean = PNB_CLEAN_NONE;
    if (name != NULL && !pnb_clean_from_name(name, &clean))
        status = pnb__fail(err, PNB_FORMAT,
                           "%s/config.json: tokenizer_kwargs.clean \"%s\" is not one of none, "
                           "lower, whitespace, canonicalize",
                           dir, name);
    else if (name != NULL)
        pnb_tokenizer_set_clean(e->tokenizer, clean);
    else if (has_siglip_class(dir))
        pnb_tokenizer_set_clean(e->tokenizer, PNB_CLEAN_CANONICALIZE);
    json_decref(root);
    return status;
}

static pnb_status open_tokenizer(pnb__embedder *e, const char *dir, pnb_error *err)
{
    pnb_status status = pnb_tokenizer_load(&e->tokenizer, dir, err);
    if (status != PNB_OK)
        return status;
    size_t vocab = (size_t)pnb_tokenizer_vocab_size(e->tokenizer);
    if (vocab > e->info->text.vocab_size)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: tokenizer.json has ids up to %zu, the model knows %zu; it belongs to "
                         "another model",
                         dir, vocab - 1, e->info->text.vocab_size);
    return apply_clean(e, dir, err);
}

static pnb_status open_preprocess(pnb__embedder *e, const char *dir, pnb_error *err)
{
    const pnb_tower_info *v = &e->info->vision;
    pnb_status status = pnb_preprocess_load(&e->preprocess, dir, err);
    if (status != PNB_OK)
        return status;
    if ((size_t)e->preprocess.width != v->image_width ||
        (size_t)e->preprocess.height != v->image_height)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: preprocessor_config.json makes %d x %d pictures, the image tower "
                         "takes %zu x %zu",
                         dir, e->preprocess.width, e->preprocess.height, v->image_width,
                         v->image_height);
    return PNB_OK;
}

/* Last part of the path that is a name: "runs/a/" -> "a", "." -> "."; of a snapshot in Hugging
 * Face's cache, whose own name is a commit id, the repository's. */
static void name_of(const char *dir, char *name, size_t size)
{
    size_t n = strlen(dir);
    const char *repo = strstr(dir, "/models--"), *end = repo ? strstr(repo, "/snapshots/") : NULL;
    if (end != NULL) {
        repo += strlen("/models--");
        snprintf(name, size, "%.*s", (int)(end - repo), repo);
        return;
    }
    while (n > 1 && dir[n - 1] == '/')
        n--;
    size_t start = n;
    while (start > 0 && dir[start - 1] != '/')
        start--;
    snprintf(name, size, "%.*s", (int)(n - start), dir + start);
}

pnb_status pnb__embedder_open(pnb__embedder *e, const pnb_ctx *ctx, const char *dir, int use,
                              pnb_error *err)
{
    static const char scheme[] = "local-dir:";
    *e = (pnb__embedder){0};
    if (pnb__starts_with(dir, scheme))
        dir += sizeof scheme - 1;
    name_of(dir, e->name, sizeof e->name);
    pnb_status status = pnb_model_load(&e->model, ctx, dir, err);
    if (status != PNB_OK)
        return status;
    e->info = pnb_model_get_info(e->model);
    status = pnb__weights_hash(e->model, e->weights_sha256, err);
    if (status != PNB_OK)
        return status;
    return pnb__embedder_add(e, dir, use, err);
}

pnb_status pnb__embedder_add(pnb__embedder *e, const char *dir, int use, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if ((use & PNB__USE_TEXTS) && !e->info->text.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: this model has no text tower", dir);
    if ((use & PNB__USE_PICTURES) && !e->info->vision.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: this model has no image tower", dir);
    if (use & PNB__USE_TEXTS)
        status = open_tokenizer(e, dir, err);
    if (status == PNB_OK && (use & PNB__USE_PICTURES))
        status = open_preprocess(e, dir, err);
    return status;
}

void pnb__embedder_close(pnb__embedder *e)
{
    pnb_tokenizer_free(e->tokenizer);
    pnb_model_free(e->model);
    *e = (pnb__embedder){0};
}

void pnb__embedder_describe(const pnb__embedder *e, bool is_text, uint64_t seed,
                            pnb_embeddings_info *info)
{
    *info = (pnb_embeddings_info){
        .seed = seed, .logit_scale = e->info->logit_scale, .logit_bias = e->info->logit_bias};
    snprintf(info->modality, sizeof info->modality, "%s", is_text ? "text" : "image");
    snprintf(info->model, sizeof info->model, "%s", e->name);
    snprintf(info->weights_sha256, sizeof info->weights_sha256, "%s", e->weights_sha256);
    if (is_text)
        snprintf(info->preprocess, sizeof info->preprocess, "context %zu, clean %s",
                 e->info->text.context_length,
                 e->tokenizer != NULL ? pnb_clean_name(pnb_tokenizer_clean(e->tokenizer))
                                      : "unknown");
    else if (e->preprocess.width > 0)
        pnb_preprocess_describe(&e->preprocess, info->preprocess, sizeof info->preprocess);
}

pnb_family pnb__embedder_family(const pnb__embedder *e)
{
    return e->info->is_probabilistic ? PNB_GAUSSIAN_DIAG : PNB_POINT;
}
