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
#include "models/keys/key_export.h"

/* Whole or not at all, as a reader of the folder expects it. */
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

/* What the configuration says of tokenizer and cleaning goes along: a model that cuts or cleans
 * captions otherwise is another model. */
pnb_status pnb__carry_text_keys(const pnb_model *m, json_t *root, pnb_error *err)
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

/* Nothing is overwritten: a model that was there is somebody's. */
static pnb_status check_free(const char *dir, pnb_error *err)
{
    return pnb_model_is_dir(dir)
               ? pnb__fail(err, PNB_EXISTS, "%s holds a model already; give another folder", dir)
               : PNB_OK;
}

/* ---- ProLIP out of CLIP and SigLIP ---- */

/* The same two towers as ProLIP has them: tokens and projections of the log-variance are new. */
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

/* All values of a weight, to be freed; *out is NULL where the model has no such weight. */
static pnb_status read_all(pnb_model *m, const char *name, double **out, pnb_error *err)
{
    const pnb__param *p = pnb__model_find_param(m, name);
    *out = NULL;
    if (p == NULL)
        return PNB_OK;
    double *values = pnb__alloc_array(p->n + 1, sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, p->n * sizeof *values);
    pnb_status status = pnb__param_read(p, &m->weights.kernels, 0, p->n, values, err);
    if (status == PNB_OK)
        *out = values;
    else
        pnb__free(values);
    return status;
}

/* n values of a weight, from `first` on. */
static pnb_status write_part(pnb_model *m, const char *name, size_t first, size_t n,
                             const double *values, pnb_error *err)
{
    pnb__param *p = pnb__model_find_param(m, name);
    return pnb__param_write(p, &m->weights.kernels, first, n, values, err);
}

pnb_status pnb__copy_same(pnb_model *from, pnb_model *to, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < to->weights.n && status == PNB_OK; i++) {
        pnb__param *p = &to->weights.items[i].param;
        const pnb__param *q = pnb__model_find_param(from, p->name);
        bool same = q != NULL && q->n_dims == p->n_dims;
        for (int d = 0; same && d < p->n_dims; d++)
            same = p->shape[d] == q->shape[d];
        if (same)
            status = pnb__param_copy(p, q, &to->weights.kernels, err);
    }
    return status;
}

/* N(0, std^2) into n values from `first` on; nothing where there is no such weight. */
static pnb_status draw_normal(pnb_model *m, const char *name, size_t first, size_t n, double std,
                              uint64_t seed, pnb_error *err)
{
    double block[256];
    pnb_status status = PNB_OK;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, pnb__hash_bytes(name, strlen(name), 1));
    if (pnb__model_find_param(m, name) == NULL)
        return PNB_OK;
    for (size_t at = 0; at < n && status == PNB_OK; at += PNB_COUNT(block)) {
        size_t piece = PNB_MIN(PNB_COUNT(block), n - at);
        pnb__rng_normals(&rng, piece, block);
        for (size_t i = 0; i < piece; i++)
            block[i] *= std;
        status = write_part(m, name, first + at, piece, block, err);
    }
    return status;
}

/* Rows of ProLIP: [CLS], [UNC], patches. */
static pnb_status copy_image_positions(pnb_model *from, pnb_model *to, uint64_t seed,
                                       pnb_error *err)
{
    static const char name[] = "visual.positional_embedding";
    size_t width = from->config.vision.width, n = from->info.vision.n_patches * width;
    size_t extra = pnb__config_n_extra(&from->config) * width;
    double *old = NULL, *bias = NULL;
    pnb_status status;
    PNB_TRY(read_all(from, name, &old, err));
    PNB_TRY(read_all(from, "visual.conv1.bias", &bias, err));
    PNB_TRY(extra > 0 ? write_part(to, name, 0, width, old, err)
                      : draw_normal(to, name, 0, width, 0.01, seed + 1, err));
    PNB_TRY(draw_normal(to, name, width, width, 0.01, seed, err));
    for (size_t i = 0; bias != NULL && i < n; i++)
        old[extra + i] += bias[i % width];
    PNB_TRY(write_part(to, name, 2 * width, n, old + extra, err));
done:
    pnb__free(old);
    pnb__free(bias);
    return status;
}

/* [CLS] of the text is what CLIP reads a text at: the embedding of its end token. */
static pnb_status copy_text_cls(pnb_model *from, pnb_model *to, pnb_error *err)
{
    const pnb__config *c = &from->config;
    size_t width = c->text.width;
    if (c->text.pool != PNB__POOL_ARGMAX && c->text.pool != PNB__POOL_EOS)
        return PNB_OK;
    size_t end = c->text.pool == PNB__POOL_EOS ? (size_t)c->eos_id : c->vocab_size - 1;
    const pnb__param *tokens = pnb__model_find_param(from, "text.token_embedding.weight");
    double *row = pnb__alloc_array(width, sizeof *row);
    pnb_status status =
        row == NULL ? pnb__fail_nomem(err, width * sizeof *row)
                    : pnb__param_read(tokens, &from->weights.kernels, end * width, width, row, err);
    if (status == PNB_OK)
        status = write_part(to, "text.cls_emb", 0, width, row, err);
    pnb__free(row);
    return status;
}

/* CLIP's matrix (C,D), transposed into a linear (D,C); the unit matrix where there is none. */
static pnb_status copy_text_projection(pnb_model *from, pnb_model *to, pnb_error *err)
{
    static const char name[] = "text.text_projection.weight";
    size_t width = from->config.text.width, embed = from->config.embed_dim;
    double *matrix = NULL, *linear = NULL;
    pnb_status status = PNB_OK;
    if (pnb__model_find_param(from, name) != NULL)
        return PNB_OK;
    PNB_TRY(read_all(from, "text.text_projection", &matrix, err));
    linear = pnb__alloc_array(embed * width, sizeof *linear);
    if (linear == NULL)
        PNB_TRY(pnb__fail_nomem(err, embed * width * sizeof *linear));
    for (size_t i = 0; i < embed * width; i++) {
        size_t row = i / width, col = i % width;
        linear[i] = matrix != NULL ? matrix[col * embed + row] : (row == col ? 1.0 : 0.0);
    }
    PNB_TRY(write_part(to, name, 0, embed * width, linear, err));
done:
    pnb__free(matrix);
    pnb__free(linear);
    return status;
}

/* The rows of the two tokens that ProLIP appends stay as they were drawn. */
static pnb_status copy_text_positions(pnb_model *from, pnb_model *to, pnb_error *err)
{
    static const char name[] = "text.positional_embedding";
    double *old = NULL;
    pnb_status status = read_all(from, name, &old, err);
    if (status == PNB_OK)
        status = write_part(to, name, 0, from->config.context_length * from->config.text.width, old,
                            err);
    pnb__free(old);
    return status;
}

/* Whatever has a counterpart; the rest stays as it was drawn. */
static pnb_status fill_prolip(pnb_model *from, pnb_model *to, uint64_t seed, pnb_error *err)
{
    pnb_status status;
    size_t width = to->config.vision.width;
    PNB_TRY(pnb__weights_widen(&from->weights, err));
    PNB_TRY(pnb__copy_same(from, to, err));
    PNB_TRY(copy_image_positions(from, to, seed, err));
    PNB_TRY(copy_text_positions(from, to, err));
    PNB_TRY(copy_text_cls(from, to, err));
    PNB_TRY(copy_text_projection(from, to, err));
    PNB_TRY(draw_normal(to, "visual.unc_embedding", 0, width, 0.01, seed, err));
    if (!pnb__config_has_class(&from->config))
        PNB_TRY(draw_normal(to, "visual.class_embedding", 0, width, 0.01, seed, err));
done:
    return status;
}

/* What a user must know before training: what is fresh, and what was left out. */
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

/* A fresh model takes what there is, so that shapes are checked by the one that is written. */
static pnb_status to_prolip(pnb_model *from, const char *out, const pnb_model_convert_opts *o,
                            char *notes, size_t size, pnb_error *err)
{
    pnb_status status = PNB_OK;
    json_t *root = NULL;
    char *text = NULL;
    pnb_model *to = NULL;
    if (!from->config.vision.present || !from->config.text.present)
        PNB_TRY(pnb__fail(err, PNB_UNSUPPORTED, "ProLIP needs both towers, this model has one"));
    if (pnb__family_of(&from->config)->read_config != NULL)
        PNB_TRY(pnb__fail(err, PNB_UNSUPPORTED,
                          "a ProLIP is made of CLIP's or SigLIP's towers, this model is a %s",
                          pnb__family_of(&from->config)->name));
    pnb__config c = prolip_of(&from->config);
    PNB_TRY(pnb__config_write(&root, &c, PNB__KEY_MAPPING_PROLIP, err));
    PNB_TRY(pnb__carry_text_keys(from, root, err));
    if ((text = pnb__config_json_dump(root)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
    PNB_TRY(pnb_model_init_json(&to, from->ctx, text, o->seed, err));
    PNB_TRY(fill_prolip(from, to, o->seed, err));
    PNB_TRY(pnb_model_save(to, out, err));
    note_prolip(&from->config, notes, size);
done:
    json_decref(root);
    pnb__free(text);
    pnb_model_free(to);
    return status;
}

/* ---- renaming ---- */

/* open_clip reads it in its configuration, other layouts beside it. */
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

/* Bits and types as they are; names alone change. */
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
        PNB_TRY(pnb__carry_text_keys(m, root, err));
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

/* A model under `to` names with its own configuration, which may hold tokenizer settings. */
static pnb_status copy_model(const pnb_model *m, const pnb__key_mapping *to, const char *out,
                             pnb_error *err)
{
    pnb_status status = pnb__make_dirs(out, err);
    char *weights = pnb__path_join(out, "model.safetensors");
    char *config = pnb__path_join(out, "config.json");
    if (status == PNB_OK && (weights == NULL || config == NULL))
        status = pnb__fail_nomem(err, 0);
    if (status == PNB_OK)
        status = pnb__weights_write_as(&m->weights, to, weights, err);
    if (status == PNB_OK)
        status = pnb__write_file(config, m->config_text, strlen(m->config_text), err);
    pnb__free(weights);
    pnb__free(config);
    return status;
}

/* Already what is asked for: another folder of the same. */
static pnb_status copy_prolip(const pnb_model *m, const char *out, pnb_error *err)
{
    const pnb__key_mapping to = pnb__key_mapping_of(PNB__KEY_MAPPING_PROLIP, &m->config);
    return copy_model(m, &to, out, err);
}

/* What PCME's own code loads: model.load_state_dict takes img_enc.* and txt_enc.*, the criterion's
 * what stands behind "criterion.". The released names, a and b themselves among them, (1) each as
 * the criterion has them. */
static pnb_status to_pcme(const pnb_model *m, const char *out, pnb_error *err)
{
    const pnb__family_calls *family = pnb__family_of(&m->config);
    pnb__key_mapping to = pnb__family_own_keys(&m->config);
    if (family->plain_scale_key == NULL || !family->scale_is_match)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "PCME's names are those of PCME, VSE and PVSE models, this one is a %s",
                         family->name);
    if (m->config.vision.n_layers > 0 || m->config.text.n_layers > 0)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "PCME's code has a ResNet and GRUs, this model has a transformer");
    to.plain_scale = family->plain_scale_key;
    to.plain_bias = family->plain_bias_key;
    to.n_scale_dims = 1;
    return copy_model(m, &to, out, err);
}

/* Refused before a byte is written where the other layout has no words for this model. */
pnb_status pnb_model_convert(const pnb_ctx *ctx, const char *dir, const char *out,
                             const pnb_model_convert_opts *o, char notes[1024], pnb_error *err)
{
    pnb_model *m = NULL;
    pnb_status status = PNB_OK;
    notes[0] = '\0';
    /* The other layouts would leave it out, and what was asked for would be missed only when the
     * model is trained. */
    if (o->n_unc_layers > 0 && o->to != PNB_KEYS_PCMEPP)
        return pnb__fail(err, PNB_ARG,
                         "blocks of uncertainty are asked for: only PCME++'s layout has them");
    PNB_TRY(check_free(out, err));
    PNB_TRY(pnb_model_load_with(&m, ctx, dir, &o->sizes, err));
    bool is_prolip = m->config.family == PNB__FAMILY_PROLIP;
    if (o->to == PNB_KEYS_PROLIP && is_prolip)
        status = copy_prolip(m, out, err);
    else if (o->to == PNB_KEYS_PCME)
        status = to_pcme(m, out, err);
    else if (o->to == PNB_KEYS_PCMEPP)
        status = pnb__convert_to_pcmepp(m, out, o, notes, err);
    else if (o->to == PNB_KEYS_PROLIP)
        status = to_prolip(m, out, o, notes, 1024, err);
    else
        status = rename_weights(m, out, o, notes, err);
done:
    pnb_model_free(m);
    return status;
}
