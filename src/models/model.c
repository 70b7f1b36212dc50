/* Opening, saving and running a model directory.
 *
 * Configuration and weights are found by name, the layout of the keys is told by the keys.
 * Opening maps the weights and checks names and shapes; whether values are finite is checked for a
 * tower when it first encodes, so that a text query does not read the image tower. A worker's
 * towers are planned for a batch size at first use and kept, so a steady loop of equal batches
 * allocates nothing; workers share the weights and nothing else. */
#include "models/model.h"

#include <math.h>
#include <string.h>

#include "models/config/builtin.h"
#include "models/config/config_write.h"
#include "models/quantized_weights.h"

static void fill_tower_info(pnb_tower_info *out, const pnb__tower_config *t,
                            const pnb__key_mapping_table *names)
{
    *out = (pnb_tower_info){.present = t->present,
                            .activation = pnb__act_name(t->act),
                            .activation_source = t->act_source,
                            .layernorm_source = t->eps_source,
                            .pooling = pnb__pool_name(t->pool),
                            .key_names = pnb__key_mapping_name(names),
                            .has_projection = t->projection != PNB__PROJECT_NONE,
                            .width = t->width,
                            .n_layers = t->n_layers,
                            .n_heads = t->n_heads,
                            .mlp_width = t->mlp_width,
                            .layernorm_eps = t->eps,
                            .quick_gelu = t->act == PNB__QUICK_GELU,
                            .has_unc = t->has_unc,
                            .has_layer_scale = t->has_layer_scale};
}

static double read_scalar(const pnb_model *m, const pnb__param *p, double fallback)
{
    if (p == NULL || p->data == NULL)
        return fallback;
    return pnb__param_read_scalar(p, &m->weights.kernels);
}

void pnb__model_fill_info(pnb_model *m)
{
    const pnb__config *c = &m->config;
    pnb_model_info *info = &m->info;
    const pnb__tower_config *some = c->vision.present ? &c->vision : &c->text;
    *info = (pnb_model_info){.family = pnb__family_name(c->family),
                             .embed_dim = c->embed_dim,
                             .is_probabilistic = some->has_unc,
                             .has_logit_bias = m->weights.logit_bias != NULL,
                             .text_unc_source = c->text_unc_source};
    if (c->vision.present) {
        fill_tower_info(&info->vision, &c->vision, m->weights.layout.vision);
        info->vision.has_ln_pre = !c->no_ln_pre;
        info->vision.image_height = c->image_height;
        info->vision.image_width = c->image_width;
        info->vision.patch = c->patch;
        info->vision.n_patches = (c->image_height / c->patch) * (c->image_width / c->patch);
    }
    if (c->text.present) {
        fill_tower_info(&info->text, &c->text, m->weights.layout.text);
        info->text.causal = c->causal;
        info->text.context_length = c->context_length;
        info->text.vocab_size = c->vocab_size;
    }
    for (size_t i = 0; i < m->weights.n; i++)
        info->n_params += m->weights.items[i].param.n;
    info->weight_bytes = pnb__quantized_total_bytes(&m->weights);
    info->weights_stored = pnb__quantized_describe(&m->weights);
    info->logit_scale = exp(read_scalar(m, m->weights.logit_scale, 0));
    info->logit_bias = read_scalar(m, m->weights.logit_bias, 0);
}

static void reset_plan(pnb__plan *e)
{
    pnb__graph_free(e->graph);
    memset(e, 0, sizeof *e);
}

void pnb__towers_reset(pnb__towers *t)
{
    reset_plan(&t->image);
    reset_plan(&t->text);
}

void pnb__model_replan(pnb_model *m)
{
    pnb__towers_reset(&m->own);
    m->version++;
}

void pnb_model_free(pnb_model *m)
{
    if (m == NULL)
        return;
    pnb__towers_reset(&m->own);
    pnb__weights_reset(&m->weights);
    pnb__free(m->config_text);
    pnb__free(m);
}

static pnb_status create(pnb_model **out, const pnb_ctx *ctx, pnb_error *err)
{
    *out = pnb__alloc_zero(1, sizeof **out);
    if (*out == NULL)
        return pnb__fail_nomem(err, sizeof **out);
    (*out)->ctx = ctx;
    return PNB_OK;
}

pnb_status pnb__config_fit(pnb__config *c, const pnb__key_mapping *layout,
                           const pnb__weight_file *file, pnb_error *err)
{
    c->vision.present &= layout->vision != NULL;
    c->text.present &= layout->text != NULL;
    if (!c->vision.present && !c->text.present)
        return pnb__fail(err, PNB_FORMAT,
                         "%s holds an %s tower only, its configuration describes the other one",
                         file->path, layout->vision != NULL ? "image" : "text");
    if (!c->vision.present || !c->text.present) { /* towers alone: the pair's numbers may be gone */
        char key[32];
        snprintf(key, sizeof key, "%slogit_scale", layout->prefix);
        c->has_logit_scale = pnb__weight_file_lookup(file, key) != NULL;
        snprintf(key, sizeof key, "%slogit_bias", layout->prefix);
        c->has_logit_bias = pnb__weight_file_lookup(file, key) != NULL;
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

/* Changes the sizes of a configuration; *resize receives what the file still has. */
static pnb_status force_sizes(pnb__config *c, const pnb_model_load_opts *o, pnb__resize *resize,
                              pnb_error *err)
{
    *resize = (pnb__resize){0};
    if (o == NULL)
        return PNB_OK;
    if ((o->image_height == 0) != (o->image_width == 0))
        return pnb__fail(err, PNB_ARG, "give both sides of the image size or none");
    size_t height = o->image_height ? o->image_height : c->image_height;
    size_t width = o->image_width ? o->image_width : c->image_width;
    if (c->vision.present && (height != c->image_height || width != c->image_width)) {
        if (height < c->patch || width < c->patch || height > PNB__MAX_PIXELS ||
            width > PNB__MAX_PIXELS)
            return pnb__fail(err, PNB_ARG, "image size %zux%zu: want %zu to %d", height, width,
                             c->patch, PNB__MAX_PIXELS);
        resize->old_height = c->image_height / c->patch;
        resize->old_width = c->image_width / c->patch;
        c->image_height = height;
        c->image_width = width;
    }
    if (c->text.present && o->context_length != 0 && o->context_length != c->context_length) {
        if (o->context_length > PNB__MAX_WIDTH)
            return pnb__fail(err, PNB_ARG, "context length %zu: want 1 to %d", o->context_length,
                             PNB__MAX_WIDTH);
        resize->text = true;
        c->context_length = o->context_length;
    }
    return PNB_OK;
}

/* The forced sizes under the names the configuration has them by. */
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

static pnb_status read_config(pnb_model *m, const pnb__model_files *files,
                              const pnb__weight_file *weights, const pnb_model_load_opts *opts,
                              pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = PNB_OK;
    if (files->config == NULL) {
        PNB_TRY(pnb__config_from_shapes(&m->config, weights, err));
        PNB_TRY(pnb__config_write(&root, &m->config, PNB__KEY_MAPPING_OPEN_CLIP, err));
        force_text(root, opts);
        m->config_text = config_text(root);
    } else {
        PNB_TRY(pnb__json_load_file(&root, files->config, 0, err));
        PNB_TRY(pnb__config_read(&m->config, root, files->config, err));
        force_text(root, opts);
        m->config_text = config_text(root);
    }
    if (m->config_text == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
done:
    json_decref(root);
    return status;
}

pnb_status pnb__model_open(pnb_model **out, const pnb_ctx *ctx, const pnb__model_files *files,
                           pnb__real real, const pnb_model_load_opts *opts, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb_model *m = NULL;
    pnb__weight_file weights = {0};
    pnb__key_mapping layout;
    pnb__resize resize;
    *out = NULL;
    PNB_TRY(create(&m, ctx, err));
    PNB_TRY(pnb__weight_file_open(&weights, files->weights, err));
    PNB_TRY(read_config(m, files, &weights, opts, err));
    PNB_TRY(pnb__key_mapping_detect(&layout, &weights, err));
    PNB_TRY(pnb__config_fit(&m->config, &layout, &weights, err));
    PNB_TRY(force_sizes(&m->config, opts, &resize, err));
    PNB_TRY(pnb__weights_declare(&m->weights, &m->config, ctx, real, err));
    m->weights.file = weights;
    m->weights.layout = layout;
    weights = (pnb__weight_file){0};
    PNB_TRY(pnb__weights_load(&m->weights, &m->config, &resize, err));
    pnb__model_fill_info(m);
done:
    pnb__weight_file_close(&weights);
    if (status != PNB_OK) {
        pnb_model_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}

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
    if (config == NULL && !pnb__weight_file_exists(dir))
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                          "%s has neither config.json nor open_clip_config.json nor weights", dir));
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

pnb_status pnb_model_init(pnb_model **out, const pnb_ctx *ctx, const char *config, uint64_t seed,
                          pnb_error *err)
{
    *out = NULL;
    json_t *root = NULL;
    pnb_model *m = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__config_json_load(&root, config, err));
    PNB_TRY(create(&m, ctx, err));
    PNB_TRY(pnb__config_read(&m->config, root, config[0] == '{' ? "configuration" : config, err));
    if ((m->config_text = config_text(root)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
    PNB_TRY(pnb__weights_declare(&m->weights, &m->config, ctx, PNB__F32, err));
    PNB_TRY(pnb__weights_init(&m->weights, seed, err));
    m->checked_image = m->checked_text = true;
    pnb__model_fill_info(m);
done:
    json_decref(root);
    if (status != PNB_OK) {
        pnb_model_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}

pnb_status pnb_model_save(const pnb_model *m, const char *dir, pnb_error *err)
{
    pnb_status status = pnb__make_dirs(dir, err);
    if (status != PNB_OK)
        return status;
    char *weights = pnb__path_join(dir, "model.safetensors");
    char *config = pnb__path_join(dir, "config.json");
    if (weights == NULL || config == NULL)
        status = pnb__fail_nomem(err, 0);
    if (status == PNB_OK)
        status = pnb__weights_save(&m->weights, weights, err);
    if (status == PNB_OK)
        status = pnb__write_file(config, m->config_text, strlen(m->config_text), err);
    pnb__free(weights);
    pnb__free(config);
    return status;
}

const pnb_model_info *pnb_model_get_info(const pnb_model *m)
{
    return &m->info;
}

const char *pnb_model_config_text(const pnb_model *m)
{
    return m->config_text;
}

bool pnb_model_is_dir(const char *dir)
{
    char *config = NULL;
    bool found = pnb__path_is_dir(dir) &&
                 ((pnb__model_find_config(&config, dir, NULL) == PNB_OK && config != NULL) ||
                  pnb__weight_file_exists(dir));
    pnb__free(config);
    return found;
}

const char *pnb_model_weights_path(const pnb_model *m)
{
    return m->weights.file.path != NULL ? m->weights.file.path : "";
}

pnb_status pnb_model_weights_sha256(pnb_model *m, const char **hex, pnb_error *err)
{
    *hex = m->sha256;
    if (m->sha256[0] != '\0' || pnb__weight_file_count(&m->weights.file) == 0)
        return PNB_OK;
    return pnb__weight_file_sha256(&m->weights.file, m->sha256, err);
}

/* ---- encoding ---- */

static pnb_status check_weights(pnb_model *m, bool text, pnb_error *err)
{
    atomic_bool *checked = text ? &m->checked_text : &m->checked_image;
    if (atomic_load(checked))
        return PNB_OK;
    pnb_status status = pnb__weights_check_finite(&m->weights, m->ctx, text, err);
    if (status == PNB_OK)
        atomic_store(checked, true);
    return status;
}

/* Towers of before the weights were stored differently read what is gone. */
static void drop_stale(const pnb_model *m, pnb__towers *t)
{
    if (t->version != m->version)
        pnb__towers_reset(t);
    t->version = m->version;
}

/* Plans graph e->graph so that both forms of the mean can be read. */
static pnb_status finish_plan(pnb__plan *e, pnb_error *err)
{
    e->unit = (pnb__dist){pnb__l2_normalize(e->raw.mean, 1e-12), e->raw.log_var};
    pnb__keep(e->raw.mean);
    pnb__keep(e->unit.mean);
    pnb__keep(e->raw.log_var);
    pnb_status status = pnb__graph_plan(e->graph, NULL, err);
    if (status != PNB_OK)
        reset_plan(e);
    return status;
}

static pnb_status plan_image(pnb_model *m, pnb__towers *t, size_t n_batch, size_t n_kept,
                             pnb_error *err)
{
    pnb__plan *e = &t->image;
    drop_stale(m, t);
    if (e->graph != NULL && e->n_batch == n_batch && e->n_kept == n_kept)
        return PNB_OK;
    reset_plan(e);
    pnb_status status = pnb__graph_create(&e->graph, m->ctx, m->weights.kernels.real, false, err);
    if (status != PNB_OK)
        return status;
    e->n_batch = n_batch;
    e->n_kept = n_kept;
    const pnb__config *c = &m->config;
    e->input =
        pnb__input(e->graph, PNB__REAL, 4, (size_t[]){n_batch, 3, c->image_height, c->image_width});
    if (n_kept > 0) {
        e->kept = pnb__input(e->graph, PNB__INT32, 2, (size_t[]){n_batch, n_kept});
        e->kept_positions = pnb__input(e->graph, PNB__INT32, 1, &n_kept);
    }
    pnb__image_in in = {e->input, e->kept, e->kept_positions};
    e->raw = pnb__prolip_image(m, e->graph, &in, false);
    return finish_plan(e, err);
}

static bool pools_at_id(const pnb__config *c)
{
    return c->text.pool == PNB__POOL_ARGMAX || c->text.pool == PNB__POOL_EOS;
}

static pnb_status plan_text(pnb_model *m, pnb__towers *t, size_t n_batch, size_t n_tokens,
                            pnb_error *err)
{
    pnb__plan *e = &t->text;
    drop_stale(m, t);
    if (e->graph != NULL && e->n_batch == n_batch && e->n_tokens == n_tokens)
        return PNB_OK;
    reset_plan(e);
    pnb_status status = pnb__graph_create(&e->graph, m->ctx, m->weights.kernels.real, false, err);
    if (status != PNB_OK)
        return status;
    e->n_batch = n_batch;
    e->n_tokens = n_tokens;
    e->input = pnb__input(e->graph, PNB__INT32, 2, (size_t[]){n_batch, n_tokens});
    if (pools_at_id(&m->config)) {
        e->rows = pnb__input(e->graph, PNB__INT32, 1, &n_batch);
        if (m->config.causal)
            e->visible = pnb__input(e->graph, PNB__INT32, 1, &n_batch);
    }
    pnb__text_in in = {e->input, e->rows, e->visible};
    e->raw = pnb__text_tower(m, e->graph, &in, false);
    return finish_plan(e, err);
}

/* Where a text is read: the first largest id, or the first end token; -1 when it has none. */
static ptrdiff_t pooled_position(const pnb__config *c, const int32_t *ids, size_t n)
{
    ptrdiff_t best = c->text.pool == PNB__POOL_EOS ? -1 : 0;
    for (size_t i = 0; i < n; i++) {
        if (c->text.pool == PNB__POOL_EOS && ids[i] == c->eos_id)
            return (ptrdiff_t)i;
        if (c->text.pool == PNB__POOL_ARGMAX && ids[i] > ids[best])
            best = (ptrdiff_t)i;
    }
    return best;
}

/* Fills the inputs that say where each text is read; under a causal mask a position sees what is
 * before it and itself. */
static pnb_status write_rows(const pnb_model *m, const pnb__plan *e, const int32_t *ids,
                             pnb_error *err)
{
    if (e->rows == NULL)
        return PNB_OK;
    pnb_status status = PNB_OK;
    int32_t *rows = pnb__alloc_array(2 * e->n_batch, sizeof *rows);
    if (rows == NULL)
        return pnb__fail_nomem(err, 2 * e->n_batch * sizeof *rows);
    for (size_t b = 0; b < e->n_batch; b++) {
        ptrdiff_t at = pooled_position(&m->config, ids + b * e->n_tokens, e->n_tokens);
        if (at < 0)
            PNB_TRY(pnb__fail(err, PNB_ARG,
                              "text %zu has no end token (id %lld), where this model reads it; "
                              "does the tokenizer belong to it?",
                              b, (long long)m->config.eos_id));
        rows[b] = (int32_t)(b * e->n_tokens) + (int32_t)at;
        rows[e->n_batch + b] = (int32_t)at + 1;
    }
    pnb__write_i32(e->rows, rows);
    if (e->visible != NULL)
        pnb__write_i32(e->visible, rows + e->n_batch);
done:
    pnb__free(rows);
    return status;
}

static pnb_status check_finite(const char *what, const float *x, size_t n, size_t width,
                               pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return pnb__fail(err, PNB_NUMERIC, "the %s of item %zu is not finite", what, i / width);
    return PNB_OK;
}

static pnb_status run_plan(const pnb_model *m, const pnb__plan *e, const pnb_encode_out *out,
                           pnb_error *err)
{
    size_t n = e->n_batch * m->config.embed_dim;
    pnb_status status = pnb__graph_run(e->graph, err);
    if (status != PNB_OK)
        return status;
    if (out->mean != NULL) {
        pnb__read_f32(out->skip_normalize ? e->raw.mean : e->unit.mean, out->mean);
        status = check_finite("mean", out->mean, n, m->config.embed_dim, err);
    }
    if (status != PNB_OK || out->log_var == NULL)
        return status;
    if (e->raw.log_var == NULL) {
        for (size_t i = 0; i < n; i++)
            out->log_var[i] = -INFINITY;
        return PNB_OK;
    }
    pnb__read_f32(e->raw.log_var, out->log_var);
    return check_finite("log-variance", out->log_var, n, m->config.embed_dim, err);
}

pnb_status pnb_model_encode_image(pnb_model *m, const float *pixels, size_t n_batch,
                                  const pnb_encode_out *out, pnb_error *err)
{
    return pnb_model_encode_image_kept(m, pixels, n_batch, NULL, 0, out, err);
}

static pnb_status check_kept(const pnb_model *m, const int32_t *kept, size_t n_kept, pnb_error *err)
{
    for (size_t i = 0; i < n_kept; i++)
        if (kept[i] < 0 || (size_t)kept[i] >= m->info.vision.n_patches)
            return pnb__fail(err, PNB_ARG, "kept patch %d is outside the %zu patches", kept[i],
                             m->info.vision.n_patches);
    return PNB_OK;
}

/* Flat patch-row numbers of every picture from the one list they share. */
static pnb_status write_kept(const pnb__plan *e, const int32_t *kept, size_t n_patches,
                             pnb_error *err)
{
    int32_t *flat = pnb__alloc_array(e->n_batch * e->n_kept, sizeof *flat);
    if (flat == NULL)
        return pnb__fail_nomem(err, e->n_batch * e->n_kept * sizeof *flat);
    for (size_t b = 0; b < e->n_batch; b++)
        for (size_t i = 0; i < e->n_kept; i++)
            flat[b * e->n_kept + i] = (int32_t)(b * n_patches) + kept[i];
    pnb__write_i32(e->kept, flat);
    pnb__write_i32(e->kept_positions, kept);
    pnb__free(flat);
    return PNB_OK;
}

pnb_status pnb_model_encode_image_kept(pnb_model *m, const float *pixels, size_t n_batch,
                                       const int32_t *kept, size_t n_kept,
                                       const pnb_encode_out *out, pnb_error *err)
{
    return pnb__towers_encode_image(&m->own, m, pixels, n_batch, kept, n_kept, out, err);
}

pnb_status pnb__towers_encode_image(pnb__towers *t, pnb_model *m, const float *pixels,
                                    size_t n_batch, const int32_t *kept, size_t n_kept,
                                    const pnb_encode_out *out, pnb_error *err)
{
    if (n_batch == 0)
        return PNB_OK;
    if (!m->config.vision.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "this model has no image tower");
    if (n_batch > INT32_MAX / PNB_MAX(m->info.vision.n_patches, (size_t)1))
        return pnb__fail(err, PNB_LIMIT, "a batch of %zu pictures is too large", n_batch);
    pnb_status status = check_kept(m, kept, n_kept, err);
    if (status == PNB_OK)
        status = check_weights(m, false, err);
    if (status == PNB_OK)
        status = plan_image(m, t, n_batch, n_kept, err);
    if (status == PNB_OK && n_kept > 0)
        status = write_kept(&t->image, kept, m->info.vision.n_patches, err);
    if (status != PNB_OK)
        return status;
    pnb__write_f32(t->image.input, pixels);
    return run_plan(m, &t->image, out, err);
}

pnb_status pnb_model_encode_text(pnb_model *m, const int32_t *ids, size_t n_batch, size_t n_tokens,
                                 const pnb_encode_out *out, pnb_error *err)
{
    return pnb__towers_encode_text(&m->own, m, ids, n_batch, n_tokens, out, err);
}

pnb_status pnb__towers_encode_text(pnb__towers *t, pnb_model *m, const int32_t *ids, size_t n_batch,
                                   size_t n_tokens, const pnb_encode_out *out, pnb_error *err)
{
    if (n_batch == 0)
        return PNB_OK;
    if (!m->config.text.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "this model has no text tower");
    if (n_tokens == 0 || n_tokens > m->config.context_length)
        return pnb__fail(err, PNB_SHAPE, "texts have %zu tokens, the model's context is 1 to %zu",
                         n_tokens, m->config.context_length);
    for (size_t i = 0; i < n_batch * n_tokens; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= m->config.vocab_size)
            return pnb__fail(err, PNB_ARG,
                             "token id %d of text %zu is outside the vocabulary of %zu; does the "
                             "tokenizer belong to this model?",
                             ids[i], i / n_tokens, m->config.vocab_size);
    pnb_status status = check_weights(m, true, err);
    if (status == PNB_OK)
        status = plan_text(m, t, n_batch, n_tokens, err);
    if (status == PNB_OK)
        status = write_rows(m, &t->text, ids, err);
    if (status != PNB_OK)
        return status;
    pnb__write_i32(t->text.input, ids);
    return run_plan(m, &t->text, out, err);
}

double pnb_model_flops(pnb_model *m, bool text, size_t n_batch)
{
    if (text ? !m->config.text.present : !m->config.vision.present)
        return 0;
    pnb__towers *t = &m->own;
    pnb_status status = text ? plan_text(m, t, n_batch, m->config.context_length, NULL)
                             : plan_image(m, t, n_batch, 0, NULL);
    return status == PNB_OK ? pnb__graph_flops(text ? t->text.graph : t->image.graph) : 0;
}

/* ---- for training ---- */

size_t pnb__model_n_params(const pnb_model *m)
{
    return m->weights.n;
}

pnb__param *pnb__model_param(pnb_model *m, size_t i)
{
    return &m->weights.items[i].param;
}

pnb__param *pnb__model_find_param(pnb_model *m, const char *name)
{
    for (size_t i = 0; i < m->weights.n; i++)
        if (strcmp(m->weights.items[i].param.name, name) == 0)
            return &m->weights.items[i].param;
    return NULL;
}

pnb_status pnb__model_make_trainable(pnb_model *m, pnb_error *err)
{
    const pnb__config *c = &m->config;
    if (!c->vision.present || !c->text.present || c->text.pool != PNB__POOL_APPENDED)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "training wants a ProLIP model, this is %s%s; `penumbra convert DIR --to "
                         "prolip --out NEW` makes one that starts from it",
                         pnb__family_name(c->family),
                         !c->vision.present || !c->text.present ? " with one tower" : "");
    return pnb__weights_make_owned(&m->weights, err);
}

void pnb__model_weights_changed(pnb_model *m)
{
    m->sha256[0] = '\0';
    m->checked_image = m->checked_text = false;
    m->info.logit_scale = exp(read_scalar(m, m->weights.logit_scale, 0));
    m->info.logit_bias = read_scalar(m, m->weights.logit_bias, 0);
}

const pnb_ctx *pnb__model_ctx(const pnb_model *m)
{
    return m->ctx;
}

pnb__real pnb__model_real(const pnb_model *m)
{
    return m->weights.kernels.real;
}
