/* Reading config.json of ProLIP: the constructor arguments of the reference (prolip/model.py), plus
 * Penumbra's own `text_uncertainty_source`. Every key must be known: a misspelt one would otherwise
 * build another model without a word. Keys of the reference that only have one accepted value here
 * (timm or Hugging Face towers, attentional pooling) are refused with that value named. */
#include "models/config.h"

#include <math.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 16, MAX_LAYERS = 1024, MAX_PIXELS = 1 << 14, MAX_VOCAB = 1 << 24 };

static const char *const top_keys[] = {
    "embed_dim",       "vision_cfg",       "text_cfg",
    "quick_gelu",      "init_logit_scale", "init_logit_bias",
    "cast_dtype",      "output_dict",      "text_uncertainty_source",
    "text_unc_source", "model_type"};

static const char *const vision_keys[] = {"layers",
                                          "width",
                                          "head_width",
                                          "mlp_ratio",
                                          "patch_size",
                                          "image_size",
                                          "ls_init_value",
                                          "attentional_pool",
                                          "attn_pooler_queries",
                                          "attn_pooler_heads",
                                          "no_ln_pre",
                                          "pos_embed_type",
                                          "pool_type",
                                          "output_tokens",
                                          "act_kwargs",
                                          "norm_kwargs",
                                          "embed_unc",
                                          "init_unc_bias",
                                          "timm_model_name",
                                          "timm_model_pretrained",
                                          "timm_pool",
                                          "timm_proj",
                                          "timm_proj_bias",
                                          "timm_drop",
                                          "timm_drop_path"};

static const char *const text_keys[] = {"context_length",
                                        "vocab_size",
                                        "hf_tokenizer_name",
                                        "tokenizer_kwargs",
                                        "width",
                                        "heads",
                                        "layers",
                                        "mlp_ratio",
                                        "ls_init_value",
                                        "embed_cls",
                                        "embed_unc",
                                        "pad_id",
                                        "no_causal_mask",
                                        "final_ln_after_pool",
                                        "pool_type",
                                        "proj_bias",
                                        "output_tokens",
                                        "act_kwargs",
                                        "norm_kwargs",
                                        "init_unc_bias",
                                        "hf_model_name",
                                        "hf_model_pretrained",
                                        "hf_proj_type",
                                        "hf_pooler_type",
                                        "text_uncertainty_source",
                                        "text_unc_source"};

static pnb_status unsupported(pnb__jobj *o, const char *key, const char *wanted, pnb_error *err)
{
    o->status = pnb__fail(err, PNB_UNSUPPORTED, "%s: %s must be %s for a ProLIP model", o->where,
                          key, wanted);
    return o->status;
}

static void require_false(pnb__jobj *o, const char *key, pnb_error *err)
{
    if (pnb__json_has(o, key) && pnb__json_get_bool(o, key, false, err))
        unsupported(o, key, "false", err);
}

static void require_absent(pnb__jobj *o, const char *key, pnb_error *err)
{
    if (pnb__json_has(o, key))
        unsupported(o, key, "null", err);
}

/* norm_kwargs {"eps": x}; absent or null means torch's 1e-5. */
static double read_eps(pnb__jobj *o, pnb_error *err)
{
    json_t *kwargs = pnb__json_get_object(o, "norm_kwargs", err);
    if (kwargs == NULL)
        return 1e-5;
    static const char *const allowed[] = {"eps"};
    pnb__jobj norm = pnb__json_object(kwargs, o->where, err);
    pnb__json_check_keys(&norm, allowed, PNB_COUNT(allowed), err);
    double eps = pnb__json_get_double(&norm, "eps", 1e-5, err);
    if (norm.status == PNB_OK && !(eps > 0 && eps < 1))
        norm.status = pnb__fail(err, PNB_ARG, "%s: norm_kwargs.eps is %g, it must be in (0, 1)",
                                o->where, eps);
    if (o->status == PNB_OK)
        o->status = norm.status;
    return eps;
}

static void read_common(pnb__tower_config *t, pnb__jobj *o, pnb_error *err)
{
    t->width = (size_t)pnb__json_get_int_in(o, "width", 768, 1, MAX_WIDTH, err);
    t->n_layers = (size_t)pnb__json_get_int_in(o, "layers", 12, 1, MAX_LAYERS, err);
    double ratio = pnb__json_get_double(o, "mlp_ratio", 4.0, err);
    if (o->status == PNB_OK && !(ratio > 0 && ratio <= 64 && (double)t->width * ratio >= 1))
        o->status =
            pnb__fail(err, PNB_ARG, "%s: mlp_ratio is %g, it must be in (0, 64]", o->where, ratio);
    t->mlp_width = o->status == PNB_OK ? (size_t)((double)t->width * ratio) : 1; /* as int(w*r) */
    t->has_layer_scale = pnb__json_has(o, "ls_init_value");
    t->ls_init = pnb__json_get_double(o, "ls_init_value", 0, err);
    t->init_unc_bias = pnb__json_get_double(o, "init_unc_bias", -10, err);
    t->eps = read_eps(o, err);
    require_false(o, "output_tokens", err);
    require_absent(o, "act_kwargs", err);
}

static void read_image_size(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    json_t *size = json_object_get(o->obj, "image_size");
    if (json_is_array(size)) {
        float hw[2] = {0, 0};
        pnb__json_get_floats(o, "image_size", hw, 2, err);
        c->image_height = hw[0] >= 1 && hw[0] <= MAX_PIXELS ? (size_t)hw[0] : 0;
        c->image_width = hw[1] >= 1 && hw[1] <= MAX_PIXELS ? (size_t)hw[1] : 0;
    } else {
        c->image_height = c->image_width =
            (size_t)pnb__json_get_int_in(o, "image_size", 224, 1, MAX_PIXELS, err);
    }
    if (o->status == PNB_OK && (c->image_height < c->patch || c->image_width < c->patch))
        o->status = pnb__fail(err, PNB_ARG, "%s: image_size %zux%zu does not hold one %zu px patch",
                              o->where, c->image_height, c->image_width, c->patch);
}

static void read_vision(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    pnb__json_check_keys(o, vision_keys, PNB_COUNT(vision_keys), err);
    read_common(&c->vision, o, err);
    c->vision.has_unc = pnb__json_get_bool(o, "embed_unc", false, err);
    size_t head_width = (size_t)pnb__json_get_int_in(o, "head_width", 64, 1, MAX_WIDTH, err);
    c->vision.n_heads = c->vision.width / head_width; /* rounded down, as the reference does */
    if (o->status == PNB_OK && (c->vision.n_heads == 0 || c->vision.width % c->vision.n_heads != 0))
        o->status =
            pnb__fail(err, PNB_ARG,
                      "%s: width %zu with head_width %zu gives %zu heads, which do not share "
                      "the width evenly",
                      o->where, c->vision.width, head_width, c->vision.n_heads);
    c->patch = (size_t)pnb__json_get_int_in(o, "patch_size", 16, 1, MAX_PIXELS, err);
    read_image_size(c, o, err);
    c->no_ln_pre = pnb__json_get_bool(o, "no_ln_pre", false, err);
    const char *pool = pnb__json_get_string(o, "pool_type", "tok", err);
    c->pool_avg = o->status == PNB_OK && strcmp(pool, "avg") == 0;
    if (o->status == PNB_OK && strcmp(pool, "tok") != 0 && (!c->pool_avg || c->vision.has_unc))
        unsupported(o, "pool_type", "\"tok\" (or \"avg\" without embed_unc)", err);
    const char *positions = pnb__json_get_string(o, "pos_embed_type", "learnable", err);
    c->sincos_positions = o->status == PNB_OK && strcmp(positions, "sin_cos_2d") == 0;
    if (o->status == PNB_OK && !c->sincos_positions && strcmp(positions, "learnable") != 0)
        unsupported(o, "pos_embed_type", "\"learnable\" or \"sin_cos_2d\"", err);
    require_false(o, "attentional_pool", err);
    require_absent(o, "timm_model_name", err);
}

static void read_unc_source(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    const char *key =
        pnb__json_has(o, "text_uncertainty_source") ? "text_uncertainty_source" : "text_unc_source";
    const char *source = pnb__json_get_string(o, key, NULL, err);
    if (source == NULL || o->status != PNB_OK)
        return;
    if (strcmp(source, "projected_mean") == 0)
        c->text_unc_source = PNB_TEXT_UNC_PROJECTED_MEAN;
    else if (strcmp(source, "unc_token") == 0)
        c->text_unc_source = PNB_TEXT_UNC_TOKEN;
    else
        o->status = pnb__fail(err, PNB_ARG,
                              "%s: %s is \"%s\", it must be \"projected_mean\" or \"unc_token\"",
                              o->where, key, source);
}

static void read_text(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    pnb__json_check_keys(o, text_keys, PNB_COUNT(text_keys), err);
    read_common(&c->text, o, err);
    c->text.n_heads = (size_t)pnb__json_get_int_in(o, "heads", 12, 1, MAX_WIDTH, err);
    if (o->status == PNB_OK && c->text.width % c->text.n_heads != 0)
        o->status = pnb__fail(err, PNB_ARG, "%s: width %zu is not a multiple of %zu heads",
                              o->where, c->text.width, c->text.n_heads);
    c->text.has_unc = pnb__json_get_bool(o, "embed_unc", true, err);
    c->context_length = (size_t)pnb__json_get_int_in(o, "context_length", 64, 1, MAX_WIDTH, err);
    c->vocab_size = (size_t)pnb__json_get_int_in(o, "vocab_size", 32100, 1, MAX_VOCAB, err);
    c->text_proj_bias = pnb__json_get_bool(o, "proj_bias", true, err);
    if (!pnb__json_get_bool(o, "no_causal_mask", true, err))
        unsupported(o, "no_causal_mask", "true", err);
    if (!pnb__json_get_bool(o, "embed_cls", true, err))
        unsupported(o, "embed_cls", "true", err);
    require_absent(o, "hf_model_name", err);
    read_unc_source(c, o, err);
}

static pnb_status check_whole(const pnb__config *c, const char *where, pnb_error *err)
{
    if (c->text.has_unc != c->vision.has_unc)
        return pnb__fail(err, PNB_ARG, "%s: embed_unc must be the same for both towers", where);
    if (c->text.has_unc && c->text_unc_source == PNB_TEXT_UNC_PROJECTED_MEAN &&
        c->text.width != c->embed_dim)
        return pnb__fail(err, PNB_ARG,
                         "%s: text width %zu differs from embed_dim %zu, which only "
                         "text_uncertainty_source \"unc_token\" allows",
                         where, c->text.width, c->embed_dim);
    if (c->sincos_positions && c->image_height != c->image_width)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: sin_cos_2d positions need a square image_size",
                         where);
    return PNB_OK;
}

/* init_logit_scale and init_logit_bias: null or 0 means "no such weight" in the reference. */
static void read_logit(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    const double default_scale = log(1 / 0.07);
    bool null_scale = json_is_null(json_object_get(o->obj, "init_logit_scale"));
    c->init_logit_scale =
        null_scale ? 0 : pnb__json_get_double(o, "init_logit_scale", default_scale, err);
    c->init_logit_bias = pnb__json_get_double(o, "init_logit_bias", 0, err);
    c->has_logit_scale = c->init_logit_scale != 0;
    c->has_logit_bias = c->init_logit_bias != 0;
}

pnb_status pnb__config_read(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    pnb__config c = {.text_unc_source = PNB_TEXT_UNC_PROJECTED_MEAN};
    char vision_where[300], text_where[300];
    snprintf(vision_where, sizeof vision_where, "%.280s: vision_cfg", where);
    snprintf(text_where, sizeof text_where, "%.280s: text_cfg", where);
    pnb__jobj top = pnb__json_object(root, where, err);
    pnb__json_check_keys(&top, top_keys, PNB_COUNT(top_keys), err);
    c.embed_dim = (size_t)pnb__json_get_int_in(&top, "embed_dim", 0, 1, MAX_WIDTH, err);
    c.quick_gelu = pnb__json_get_bool(&top, "quick_gelu", false, err);
    read_logit(&c, &top, err);
    json_t *vision = pnb__json_get_object(&top, "vision_cfg", err);
    json_t *text = pnb__json_get_object(&top, "text_cfg", err);
    if (top.status == PNB_OK && (c.embed_dim == 0 || vision == NULL || text == NULL))
        top.status =
            pnb__fail(err, PNB_FORMAT, "%s: needs embed_dim, vision_cfg and text_cfg", where);
    if (top.status != PNB_OK)
        return top.status;
    pnb__jobj v = pnb__json_object(vision, vision_where, err);
    read_vision(&c, &v, err);
    if (v.status != PNB_OK)
        return v.status;
    pnb__jobj t = pnb__json_object(text, text_where, err);
    read_text(&c, &t, err);
    if (t.status == PNB_OK)
        read_unc_source(&c, &top, err);
    if (t.status != PNB_OK || top.status != PNB_OK)
        return t.status != PNB_OK ? t.status : top.status;
    pnb_status status = check_whole(&c, where, err);
    if (status == PNB_OK)
        *out = c;
    return status;
}
