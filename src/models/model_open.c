/* Opening a model directory, and making a new model.
 *
 * Configuration and weights are found by name; the family is told by the configuration, the names
 * of the arrays by the keys. Opening maps the weights and checks names and shapes; whether values
 * are finite is checked for a tower when it first encodes (model_encode.c), so that a text query
 * does not read the image tower. The configuration is kept as text: it is saved as it came, with
 * keys that no tower reads, and later readers ask it for the tokenizer's settings. */
#include <string.h>

#include "models/config/builtin.h"
#include "models/config/config_write.h"
#include "models/lora/lora.h"
#include "models/model.h"

static bool has_part(const pnb__key_mapping *layout, const char *name, const pnb__weight_file *file)
{
    pnb__key_mapping_part at[3];
    return pnb__key_mapping_parts(layout, name, at) > 0 &&
           pnb__weight_file_lookup(file, at[0].key) != NULL;
}

/* Points of a family whose a and b are those of a match probability, which points have not. */
static bool is_point_pair(const pnb__config *c)
{
    const pnb__family_calls *family = pnb__family_of(c);
    return family->scale_is_match && family->image->family(c) == PNB_POINT;
}

/* A tower of the configuration that the file has no array of is not there: towers are distributed
 * alone with the whole model's configuration. Their file may keep the pair's numbers or not. A
 * projection that is not stored (CLIPVisionModel) leaves the embedding as wide as the tower. */
pnb_status pnb__config_fit(pnb__config *c, const pnb__key_mapping *layout,
                           const pnb__weight_file *file, pnb_error *err)
{
    c->vision.present &= layout->vision != NULL;
    c->text.present &= layout->text != NULL;
    if (!c->vision.present && !c->text.present)
        return pnb__fail(err, PNB_FORMAT,
                         "%s holds an %s tower only, its configuration describes the other one",
                         file->path, layout->vision != NULL ? "image" : "text");
    bool is_pair = c->vision.present && c->text.present;
    if (!is_pair || is_point_pair(c)) { /* the pair's numbers may be gone */
        c->has_logit_scale = has_part(layout, "logit_scale", file);
        c->has_logit_bias = has_part(layout, "logit_bias", file);
    } else if (pnb__family_of(c)->plain_scale_key != NULL &&
               !has_part(layout, "logit_scale", file)) {
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s has neither %s nor logit_scale, a of its match probability: take the "
                         "whole checkpoint, with the criterion and not the model alone",
                         file->path, pnb__family_of(c)->plain_scale_key);
    }
    if (!c->projection_from_file)
        return PNB_OK;
    pnb__tower_config *t = c->vision.present ? &c->vision : &c->text;
    pnb__key_mapping_part parts[3];
    pnb__key_mapping_parts(layout, c->vision.present ? "visual.proj" : "text.text_projection",
                           parts);
    if (pnb__weight_file_lookup(file, parts[0].key) == NULL) {
        t->projection = PNB__PROJECT_NONE;
        c->embed_dim = t->width;
    }
    return PNB_OK;
}

/* Another picture size or context than the model was trained at, by its family's rule; *resize
 * receives what the file still has of what is asked for. Pictures of another size are finer or
 * coarser grids of the same patches, longer texts have positions between the old ones. */
static pnb_status set_sizes(pnb__config *c, const pnb_model_load_opts *o, pnb__resize *resize,
                            pnb_error *err)
{
    const pnb__family_calls *family = pnb__family_of(c);
    *resize = (pnb__resize){0};
    if (o == NULL)
        return PNB_OK;
    if (family->set_sizes != NULL)
        return family->set_sizes(c, o, resize, err);
    bool asked = o->image_height != 0 || o->image_width != 0 || o->context_length != 0;
    return asked ? pnb__fail(err, PNB_UNSUPPORTED,
                             "models of family %s are opened at their own size; take the image "
                             "size and context length back",
                             family->name)
                 : PNB_OK;
}

/* The forced sizes under the names the configuration has them by, so that a model which is saved
 * again describes itself as it is now. */
static void force_text(json_t *root, const pnb_model_load_opts *o)
{
    static const char *const vision[] = {"vision_cfg", "vision_config"};
    static const char *const text[] = {"text_cfg", "text_config"};
    if (o == NULL)
        return;
    json_t *model = json_object_get(root, "model_cfg");
    model = json_is_object(model) ? model : root;
    for (size_t i = 0; i < 2; i++) {
        json_t *v = json_object_get(model, vision[i]), *t = json_object_get(model, text[i]);
        bool square = o->image_height == o->image_width;
        /* i 0: open_clip's words, sections vision_cfg and text_cfg; i 1: transformers' */
        if (v == NULL && t == NULL && i == 1 &&
            json_object_get(model, "hidden_size") != NULL) /* a tower alone */
            v = t = model;
        if (json_is_object(v) && o->image_height > 0 && o->image_width > 0)
            json_object_set_new(v, "image_size",
                                square ? json_integer((json_int_t)o->image_height)
                                       : json_pack("[I,I]", (json_int_t)o->image_height,
                                                   (json_int_t)o->image_width));
        if (json_is_object(t) && o->context_length > 0)
            json_object_set_new(t, i == 0 ? "context_length" : "max_position_embeddings",
                                json_integer((json_int_t)o->context_length));
    }
}

/* The part of a configuration file that later readers ask for keys: model_cfg of open_clip. */
static char *config_text(json_t *root)
{
    json_t *model = json_object_get(root, "model_cfg");
    return pnb__config_json_dump(json_is_object(model) ? model : root);
}

/* From the file, from the arrays that a family knows by their names, or from the shapes of OpenAI's
 * weights, written down as open_clip would say it. */
static pnb_status read_config(pnb_model *m, const pnb__model_files *files,
                              const pnb__weight_file *weights, const pnb_model_load_opts *opts,
                              pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = PNB_OK;
    if (files->config == NULL)
        PNB_TRY(pnb__family_config_of(&m->config, &root, weights, err));
    if (files->config == NULL && root != NULL) {
        force_text(root, opts);
        m->config_text = config_text(root);
    } else if (files->config == NULL) {
        PNB_TRY(pnb__config_from_shapes(&m->config, weights, err));
        PNB_TRY(pnb__config_write(&root, &m->config, PNB__KEY_MAPPING_OPEN_CLIP, err));
        force_text(root, opts);
        m->config_text = config_text(root);
    } else {
        PNB_TRY(pnb__json_load_file(&root, files->config, 0, err));
        PNB_TRY(pnb__family_read_config(&m->config, root, files->config, err));
        force_text(root, opts);
        m->config_text = config_text(root);
    }
    if (m->config_text == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
done:
    json_decref(root);
    return status;
}

/* The order matters: the family's tables of names need the configuration, what the file lacks
 * corrects it, sizes are forced on what is left, and only then are there weights to load. */
pnb_status pnb__model_open(pnb_model **out, const pnb_ctx *ctx, const pnb__model_files *files,
                           pnb__real real, const pnb_model_load_opts *opts, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb_model *m = NULL;
    pnb__weight_file weights = {0};
    pnb__key_mapping layout;
    pnb__resize resize;
    *out = NULL;
    PNB_TRY(pnb__model_create(&m, ctx, err));
    PNB_TRY(pnb__weight_file_open(&weights, files->weights, err));
    PNB_TRY(read_config(m, files, &weights, opts, err));
    PNB_TRY(pnb__family_detect_keys(&layout, &m->config, &weights, err));
    PNB_TRY(pnb__config_fit(&m->config, &layout, &weights, err));
    PNB_TRY(set_sizes(&m->config, opts, &resize, err));
    PNB_TRY(pnb__weights_declare(&m->weights, &m->config, ctx, real, err));
    m->weights.file = weights; /* the map is the model's from here on */
    m->weights.layout = layout;
    weights = (pnb__weight_file){0};
    PNB_TRY(pnb__weights_load(&m->weights, &m->config, &resize, err));
    PNB_TRY(pnb__model_fill_info(m, err));
done:
    pnb__weight_file_close(&weights);
    if (status != PNB_OK) {
        pnb_model_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}

/* open_clip's file first: it says all that a config.json beside it says, which some folders keep
 * for other loaders. */
pnb_status pnb__model_find_config(char **out, const char *dir, pnb_error *err)
{
    static const char *const names[] = {"open_clip_config.json", "config.json"};
    *out = NULL;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *path = pnb__path_join(dir, names[i]);
        if (path == NULL)
            return pnb__fail_nomem(err, 0);
        if (pnb__path_is_file(path)) {
            *out = path;
            return PNB_OK;
        }
        pnb__free(path);
    }
    return PNB_OK;
}

/* A configuration may be missing (OpenAI's file alone), weights may not. A LoRA adapter has neither
 * under a model's names, and whoever trained one takes its folder for a model's. */
static pnb_status load_dir(pnb_model **out, const pnb_ctx *ctx, const char *dir, pnb__real real,
                           const pnb_model_load_opts *opts, pnb_error *err)
{
    pnb_status status = PNB_OK;
    char *config = NULL, *weights = NULL;
    *out = NULL;
    if (!pnb__path_is_dir(dir))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s is not a directory; a model is a directory with a configuration "
                         "(config.json or open_clip_config.json) and weights",
                         dir);
    PNB_TRY(pnb__model_find_config(&config, dir, err));
    if (config == NULL && !pnb__weight_file_exists(dir)) {
        PNB_TRY(pnb__lora_refuse_dir(dir, err));
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                          "%s has neither config.json nor open_clip_config.json nor weights", dir));
    }
    PNB_TRY(pnb__weight_file_find(&weights, dir, err));
    pnb__model_files files = {config, weights};
    status = pnb__model_open(out, ctx, &files, real, opts, err);
done:
    pnb__free(weights);
    pnb__free(config);
    return status;
}

pnb_status pnb__model_load_real(pnb_model **out, const pnb_ctx *ctx, const char *dir,
                                pnb__real real, pnb_error *err)
{
    return load_dir(out, ctx, dir, real, NULL, err);
}

pnb_status pnb_model_load(pnb_model **out, const pnb_ctx *ctx, const char *dir, pnb_error *err)
{
    return load_dir(out, ctx, dir, PNB__F32, NULL, err);
}

pnb_status pnb_model_load_with(pnb_model **out, const pnb_ctx *ctx, const char *dir,
                               const pnb_model_load_opts *opts, pnb_error *err)
{
    return load_dir(out, ctx, dir, PNB__F32, opts, err);
}

pnb_status pnb_model_init_json(pnb_model **out, const pnb_ctx *ctx, const char *config_json,
                               uint64_t seed, pnb_error *err)
{
    return pnb_model_init(out, ctx, config_json, seed, err);
}

/* New weights are finite by construction and need no check. */
pnb_status pnb_model_init(pnb_model **out, const pnb_ctx *ctx, const char *config, uint64_t seed,
                          pnb_error *err)
{
    *out = NULL;
    json_t *root = NULL;
    pnb_model *m = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__config_json_load(&root, config, err));
    PNB_TRY(pnb__model_create(&m, ctx, err));
    PNB_TRY(pnb__family_read_config(&m->config, root, config[0] == '{' ? "configuration" : config,
                                    err));
    if ((m->config_text = config_text(root)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
    PNB_TRY(pnb__weights_declare(&m->weights, &m->config, ctx, PNB__F32, err));
    PNB_TRY(pnb__weights_init(&m->weights, seed, err));
    m->checked[PNB__IMAGE_SIDE] = m->checked[PNB__TEXT_SIDE] = true;
    PNB_TRY(pnb__model_fill_info(m, err));
done:
    json_decref(root);
    if (status != PNB_OK) {
        pnb_model_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}
