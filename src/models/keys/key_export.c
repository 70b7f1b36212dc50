/* Writing a model under the names of another layout.
 *
 * open_clip and Hugging Face store the same numbers, so their bits are moved as they are. ProLIP is
 * another model: the start of fine-tuning (SPEC 3.3; ProLIP section 4.1) takes every weight that
 * has a counterpart and draws the rest. Patch positions keep their rows behind a new one for [UNC];
 * a bias of the patch embedding, which ProLIP lacks, is the same number in every patch and moves
 * into those positions; [CLS] of the text starts as the embedding of the end token CLIP is read at.
 */
#include <math.h>
#include <string.h>

#include "models/config/builtin.h"
#include "models/config/config_write.h"
#include "models/model.h"

static pnb_status save_config(json_t *root, const char *dir, const char *name, pnb_error *err)
{
    char *path = pnb__path_join(dir, name), *text = pnb__config_json_dump(root);
    pnb_status status = path == NULL || text == NULL
                            ? pnb__fail_nomem(err, 0)
                            : pnb__write_file(path, text, strlen(text), err);
    pnb__free(path);
    pnb__free(text);
    return status;
}

/* The tokenizer's settings of a configuration in open_clip's dialect; they are no part of the
 * architecture, so the writer does not know them. */
static pnb_status carry_text_keys(const pnb_model *m, json_t *root, pnb_error *err)
{
    static const char *const keys[] = {"hf_tokenizer_name", "tokenizer_kwargs", "tokenizer_mode"};
    json_t *old = NULL, *model = json_object_get(root, "model_cfg");
    json_t *text = json_object_get(model != NULL ? model : root, "text_cfg");
    pnb_status status =
        pnb__json_load_bytes(&old, m->config_text, strlen(m->config_text), "configuration", err);
    for (size_t i = 0; status == PNB_OK && text != NULL && i < PNB_COUNT(keys); i++) {
        json_t *value = json_object_get(json_object_get(old, "text_cfg"), keys[i]);
        if (value != NULL)
            json_object_set(text, keys[i], value);
    }
    json_decref(old);
    return status;
}

static pnb_status check_free(const char *dir, pnb_error *err)
{
    return pnb_model_is_dir(dir)
               ? pnb__fail(err, PNB_EXISTS, "%s holds a model already; give another folder", dir)
               : PNB_OK;
}

/* ---- ProLIP out of CLIP and SigLIP ---- */

static pnb__config prolip_of(const pnb__config *c)
{
    pnb__config p = *c;
    p.family = PNB__FAMILY_PROLIP;
    p.text_unc_source =
        c->text.width == c->embed_dim ? PNB_TEXT_UNC_PROJECTED_MEAN : PNB_TEXT_UNC_TOKEN;
    p.has_logit_scale = true;
    p.init_logit_scale = log(1 / 0.07);
    if (!c->has_logit_bias || c->init_logit_bias == 0)
        p.init_logit_bias = -10;
    p.has_logit_bias = true;
    p.vision.has_unc = p.text.has_unc = true;
    p.vision.init_unc_bias = p.text.init_unc_bias = -10;
    p.vision.init_unc_std = pow((double)p.vision.width, -0.5);
    p.text.init_unc_std = pow((double)p.text.width, -0.5);
    p.vision.pool = PNB__POOL_CLASS;
    p.vision.projection = PNB__PROJECT_MATRIX;
    p.conv_bias = p.norm_after_pool = false;
    p.text.pool = PNB__POOL_APPENDED;
    p.text.projection = PNB__PROJECT_LINEAR;
    p.causal = false;
    return p;
}

static float *values(pnb_model *m, const char *name)
{
    pnb__param *p = pnb__model_find_param(m, name);
    return p == NULL ? NULL : p->data;
}

static void copy_same(pnb_model *from, pnb_model *to)
{
    for (size_t i = 0; i < to->weights.n; i++) {
        pnb__param *p = &to->weights.items[i].param;
        const pnb__param *q = pnb__model_find_param(from, p->name);
        bool same = q != NULL && q->n_dims == p->n_dims;
        for (int d = 0; same && d < p->n_dims; d++)
            same = p->shape[d] == q->shape[d];
        if (same)
            memcpy(p->data, q->data, p->n * sizeof(float));
    }
}

static void draw_normal(pnb_model *m, const char *name, size_t first, size_t n, double std,
                        uint64_t seed)
{
    float *x = values(m, name);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, pnb__hash_bytes(name, strlen(name), 1));
    for (size_t i = 0; x != NULL && i < n; i++)
        x[first + i] = (float)(std * pnb__rng_normal(&rng));
}

static void copy_image_positions(pnb_model *from, pnb_model *to, uint64_t seed)
{
    static const char name[] = "visual.positional_embedding";
    const pnb__config *c = &from->config;
    size_t width = c->vision.width, n_patches = from->info.vision.n_patches;
    size_t old_extra = pnb__config_n_extra(c);
    const float *old = values(from, name), *bias = values(from, "visual.conv1.bias");
    float *fresh = values(to, name);
    if (old_extra > 0)
        memcpy(fresh, old, width * sizeof *fresh);
    else
        draw_normal(to, name, 0, width, 0.01, seed + 1);
    draw_normal(to, name, width, width, 0.01, seed);
    for (size_t i = 0; i < n_patches * width; i++)
        fresh[2 * width + i] = old[old_extra * width + i] + (bias != NULL ? bias[i % width] : 0);
}

static void copy_text_ends(pnb_model *from, pnb_model *to)
{
    const pnb__config *c = &from->config;
    size_t width = c->text.width, embed = c->embed_dim;
    memcpy(values(to, "text.positional_embedding"), values(from, "text.positional_embedding"),
           c->context_length * width * sizeof(float));
    if (c->text.pool == PNB__POOL_ARGMAX || c->text.pool == PNB__POOL_EOS) {
        size_t end = c->text.pool == PNB__POOL_EOS ? (size_t)c->eos_id : c->vocab_size - 1;
        memcpy(values(to, "text.cls_emb"),
               values(from, "text.token_embedding.weight") + end * width, width * sizeof(float));
    }
    const float *matrix = values(from, "text.text_projection");
    float *linear = values(to, "text.text_projection.weight");
    bool stored = pnb__model_find_param(from, "text.text_projection.weight") != NULL;
    for (size_t i = 0; i < embed * width && !stored; i++) {
        size_t row = i / width, col = i % width;
        linear[i] = matrix != NULL ? matrix[col * embed + row] : (row == col ? 1.0F : 0.0F);
    }
}

static void fill_prolip(pnb_model *from, pnb_model *to, uint64_t seed)
{
    copy_same(from, to);
    copy_image_positions(from, to, seed);
    copy_text_ends(from, to);
    draw_normal(to, "visual.unc_embedding", 0, to->config.vision.width, 0.01, seed);
    if (!pnb__config_has_class(&from->config))
        draw_normal(to, "visual.class_embedding", 0, to->config.vision.width, 0.01, seed);
}

static void note_prolip(const pnb__config *c, char *notes, size_t size)
{
    bool head = c->vision.pool == PNB__POOL_MAP;
    snprintf(notes, size,
             "fresh: [UNC] of both towers with its projections, the last two text positions%s%s%s; "
             "left out: %s%s; a caption's log-variance is read from %s; embeddings change until it "
             "is trained",
             c->text.pool == PNB__POOL_ARGMAX || c->text.pool == PNB__POOL_EOS
                 ? ""
                 : ", [CLS] of the text",
             head ? ", the class token and projection of the image tower" : "",
             c->has_logit_bias ? "" : ", the logit bias",
             c->causal ? "the causal mask of the text" : "nothing of the text tower",
             head ? ", the image tower's attention head" : "",
             c->text.width == c->embed_dim ? "its projected mean"
                                           : "[UNC], because text width and embed_dim differ");
}

static pnb_status to_prolip(pnb_model *from, const char *out, const pnb_model_convert_opts *o,
                            char *notes, size_t size, pnb_error *err)
{
    pnb_status status = PNB_OK;
    json_t *root = NULL;
    char *text = NULL;
    pnb_model *to = NULL;
    if (!from->config.vision.present || !from->config.text.present)
        PNB_TRY(pnb__fail(err, PNB_UNSUPPORTED, "ProLIP needs both towers, this model has one"));
    pnb__config c = prolip_of(&from->config);
    PNB_TRY(pnb__config_write(&root, &c, PNB__KEY_MAPPING_PROLIP, err));
    PNB_TRY(carry_text_keys(from, root, err));
    if ((text = pnb__config_json_dump(root)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
    PNB_TRY(pnb_model_init_json(&to, from->ctx, text, o->seed, err));
    fill_prolip(from, to, o->seed);
    PNB_TRY(pnb_model_save(to, out, err));
    note_prolip(&from->config, notes, size);
done:
    json_decref(root);
    pnb__free(text);
    pnb_model_free(to);
    return status;
}

/* ---- renaming ---- */

static pnb_status add_preprocess(json_t *root, const char *text, pnb_error *err)
{
    json_t *value = NULL;
    if (text == NULL)
        return PNB_OK;
    pnb_status status = pnb__json_load_bytes(&value, text, strlen(text), "preprocess_cfg", err);
    if (status == PNB_OK)
        json_object_set_new(root, "preprocess_cfg", value);
    return status;
}

/* How texts are cleaned stands in open_clip's configuration, and in transformers in the class of
 * the tokenizer: say so where it does not come along. */
static pnb_status note_cleaning(const pnb_model *m, pnb__key_mapping_kind kind, char notes[1024],
                                pnb_error *err)
{
    json_t *old = NULL;
    pnb_status status =
        pnb__json_load_bytes(&old, m->config_text, strlen(m->config_text), "configuration", err);
    const json_t *kwargs = json_object_get(json_object_get(old, "text_cfg"), "tokenizer_kwargs");
    const char *clean = json_string_value(json_object_get(kwargs, "clean"));
    if (kind == PNB__KEY_MAPPING_HF && clean != NULL)
        snprintf(notes, 1024,
                 "captions were cleaned by tokenizer_kwargs.clean \"%s\"; config.json of Hugging "
                 "Face has no place for it",
                 clean);
    else if (kind == PNB__KEY_MAPPING_OPEN_CLIP && pnb__key_mapping_is_hf(&m->weights.layout) &&
             m->config.family == PNB__FAMILY_SIGLIP)
        snprintf(notes, 1024,
                 "Hugging Face's configuration does not say how captions are cleaned; open_clip's "
                 "SigLIP models have text_cfg.tokenizer_kwargs {\"clean\": \"canonicalize\"}");
    json_decref(old);
    return status;
}

static pnb_status rename_weights(const pnb_model *m, const char *out,
                                 const pnb_model_convert_opts *o, char notes[1024], pnb_error *err)
{
    static const struct {
        const char *config, *weights;
    } files[] = {{"config.json", "model.safetensors"},
                 {"open_clip_config.json", "open_clip_model.safetensors"},
                 {"config.json", "model.safetensors"}};
    pnb__key_mapping_kind kind = (pnb__key_mapping_kind)o->to;
    pnb__key_mapping to = pnb__key_mapping_of(kind, &m->config);
    pnb_status status = PNB_OK;
    json_t *root = NULL;
    char *path = NULL;
    PNB_TRY(pnb__config_write(&root, &m->config, kind, err));
    if (kind != PNB__KEY_MAPPING_HF)
        PNB_TRY(carry_text_keys(m, root, err));
    if (kind == PNB__KEY_MAPPING_OPEN_CLIP)
        PNB_TRY(add_preprocess(root, o->preprocess_json, err));
    PNB_TRY(note_cleaning(m, kind, notes, err));
    PNB_TRY(pnb__make_dirs(out, err));
    if ((path = pnb__path_join(out, files[kind].weights)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
    PNB_TRY(pnb__weights_write_as(&m->weights, &to, path, err));
    PNB_TRY(save_config(root, out, files[kind].config, err));
done:
    json_decref(root);
    pnb__free(path);
    return status;
}

/* A ProLIP model as ProLIP: its own configuration, which may hold tokenizer settings. */
static pnb_status copy_prolip(const pnb_model *m, const char *out, pnb_error *err)
{
    pnb__key_mapping to = pnb__key_mapping_of(PNB__KEY_MAPPING_PROLIP, &m->config);
    pnb_status status = pnb__make_dirs(out, err);
    char *weights = pnb__path_join(out, "model.safetensors");
    char *config = pnb__path_join(out, "config.json");
    if (status == PNB_OK && (weights == NULL || config == NULL))
        status = pnb__fail_nomem(err, 0);
    if (status == PNB_OK)
        status = pnb__weights_write_as(&m->weights, &to, weights, err);
    if (status == PNB_OK)
        status = pnb__write_file(config, m->config_text, strlen(m->config_text), err);
    pnb__free(weights);
    pnb__free(config);
    return status;
}

pnb_status pnb_model_convert(const pnb_ctx *ctx, const char *dir, const char *out,
                             const pnb_model_convert_opts *o, char notes[1024], pnb_error *err)
{
    pnb_model *m = NULL;
    pnb_ctx host = *ctx;
    pnb_status status = PNB_OK;
    host.device = PNB_DEVICE_CPU; /* values are copied in host memory */
    notes[0] = '\0';
    PNB_TRY(check_free(out, err));
    PNB_TRY(pnb_model_load_with(&m, &host, dir, &o->sizes, err));
    bool is_prolip = m->config.family == PNB__FAMILY_PROLIP;
    if (o->to == PNB_LAYOUT_PROLIP && is_prolip)
        status = copy_prolip(m, out, err);
    else if (o->to == PNB_LAYOUT_PROLIP)
        status = to_prolip(m, out, o, notes, 1024, err);
    else
        status = rename_weights(m, out, o, notes, err);
done:
    pnb_model_free(m);
    return status;
}
