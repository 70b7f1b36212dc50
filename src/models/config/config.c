/* Reading the constructor arguments of open_clip's CLIP (open_clip/model.py) and of ProLIP, which
 * extends them (prolip/model.py), plus Penumbra's own `text_uncertainty_source`; bare as ProLIP's
 * config.json, or inside open_clip_config.json's "model_cfg".
 *
 * Every key must be known: a misspelt one would otherwise build another model without a word. Keys
 * that only have one accepted value here are refused with that value named. A model is ProLIP when
 * a tower has [CLS] or [UNC] appended; the two dialects differ in their defaults. Hugging Face's
 * dialect is read by config_hf.c, timm's tower names by config_timm.c. */
#include "models/config/config.h"

#include <math.h>
#include <string.h>

/* Of the whole model. init_logit_* are where a and b of logit = a cos + b start; custom_text,
 * cast_dtype and output_dict choose among open_clip's classes and casts and change no number;
 * text_unc_source is the older word for Penumbra's own text_uncertainty_source. */
static const char *const top_keys[] = {"embed_dim",
                                       "vision_cfg",
                                       "text_cfg",
                                       "quick_gelu",
                                       "init_logit_scale",
                                       "init_logit_bias",
                                       "nonscalar_logit_scale",
                                       "custom_text",
                                       "cast_dtype",
                                       "output_dict",
                                       "text_uncertainty_source",
                                       "text_unc_source",
                                       "model_type"};

/* CLIPVisionCfg. Sizes; ls_init_value is LayerScale (Touvron et al. 2021), patch_dropout (FLIP, Li
 * et al. 2023) is of training alone; attentional pooling is CoCa's; pos_embed_type and
 * final_ln_after_pool are open_clip's variants; block_type to scale_fc build other blocks and are
 * refused below; embed_unc and init_unc_* are ProLIP's; timm_* hand the tower over to timm. */
static const char *const vision_keys[] = {"layers",
                                          "width",
                                          "head_width",
                                          "mlp_ratio",
                                          "patch_size",
                                          "image_size",
                                          "image_seq_len",
                                          "ls_init_value",
                                          "patch_dropout",
                                          "attentional_pool",
                                          "attn_pooler_queries",
                                          "attn_pooler_heads",
                                          "no_ln_pre",
                                          "pos_embed_type",
                                          "final_ln_after_pool",
                                          "pool_type",
                                          "output_tokens",
                                          "act_kwargs",
                                          "norm_kwargs",
                                          "block_type",
                                          "qk_norm",
                                          "scaled_cosine_attn",
                                          "scale_heads",
                                          "scale_attn_inner",
                                          "scale_attn",
                                          "scale_fc",
                                          "embed_unc",
                                          "init_unc_bias",
                                          "init_unc_std",
                                          "timm_model_name",
                                          "timm_model_pretrained",
                                          "timm_model_kwargs",
                                          "timm_pool",
                                          "timm_proj",
                                          "timm_proj_bias",
                                          "timm_drop",
                                          "timm_drop_path"};

/* CLIPTextCfg. vocab_size counts the rows of the token table, which may be more than the
 * tokenizer's ids; tokenizer_* and pad_id, bos_id are the tokenizer's business, eos_id is read
 * where texts are pooled at it; embed_cls and embed_unc append ProLIP's two tokens; hf_model_name
 * would be another transformer altogether. */
static const char *const text_keys[] = {"text_arch",
                                        "context_length",
                                        "variable_text",
                                        "vocab_size",
                                        "hf_tokenizer_name",
                                        "tokenizer_mode",
                                        "tokenizer_kwargs",
                                        "width",
                                        "heads",
                                        "layers",
                                        "mlp_ratio",
                                        "ls_init_value",
                                        "embed_cls",
                                        "embed_unc",
                                        "pad_id",
                                        "bos_id",
                                        "eos_id",
                                        "no_causal_mask",
                                        "final_ln_after_pool",
                                        "pool_type",
                                        "proj_bias",
                                        "proj_type",
                                        "output_tokens",
                                        "act_kwargs",
                                        "norm_kwargs",
                                        "block_type",
                                        "qk_norm",
                                        "scaled_cosine_attn",
                                        "scale_heads",
                                        "scale_attn_inner",
                                        "scale_attn",
                                        "scale_fc",
                                        "init_unc_bias",
                                        "init_unc_std",
                                        "hf_model_name",
                                        "hf_model_pretrained",
                                        "hf_model_config",
                                        "hf_proj_type",
                                        "hf_pooler_type",
                                        "text_uncertainty_source",
                                        "text_unc_source"};

/* Options of both towers that build another block than nn/block.c: extra norms of queries and keys,
 * scaled cosine attention (Liu et al. 2022), gains on heads (NormFormer, Shleifer et al. 2021),
 * attention over texts of varying length. A value that switches one off is fine. */
static const char *const must_be_false[] = {"output_tokens",      "qk_norm",     "attentional_pool",
                                            "scaled_cosine_attn", "scale_heads", "scale_attn_inner",
                                            "scale_attn",         "scale_fc",    "variable_text"};
static const char *const must_be_null[] = {"block_type", "image_seq_len"};

pnb_status pnb__config_unsupported(pnb__jobj *o, const char *key, const char *wanted,
                                   pnb_error *err)
{
    if (o->status == PNB_OK)
        o->status = pnb__fail(err, PNB_UNSUPPORTED,
                              "%s: %s must be %s; other values build a model "
                              "that is not implemented",
                              o->where, key, wanted);
    return o->status;
}

const char *pnb__pool_name(pnb__pool pool)
{
    static const char *const names[] = {"class token",
                                        "average of patches",
                                        "attention head",
                                        "appended [CLS]",
                                        "first position",
                                        "last position",
                                        "position of the largest id",
                                        "first end token"};
    return (size_t)pool < PNB_COUNT(names) ? names[pool] : "unknown";
}

/* gelu is x Phi(x); gelu_tanh its approximation by tanh, off by at most 5e-4; quick_gelu OpenAI's
 * x s(1.702 x), off by up to 0.02. Through a dozen blocks that is enough to spoil a cosine, so
 * reports tell the source of the choice too. */
const char *pnb__act_name(pnb__unary act)
{
    return act == PNB__QUICK_GELU ? "quick_gelu" : act == PNB__GELU_TANH ? "gelu_tanh" : "gelu";
}

/* ---- both towers ----
 *
 * Everything that decides what a tower computes ends in a pnb__tower_config; where a value comes
 * from is kept for those that no shape of a weight could contradict: activation and eps. */

/* norm_kwargs {"eps": x}; absent or null means torch's 1e-5. */
static void read_eps(pnb__tower_config *t, pnb__jobj *o, pnb_error *err)
{
    t->eps = 1e-5;
    t->eps_source = "default of torch";
    json_t *kwargs = pnb__json_get_object(o, "norm_kwargs", err);
    if (kwargs == NULL)
        return;
    static const char *const allowed[] = {"eps"};
    pnb__jobj norm = pnb__json_object(kwargs, o->where, err);
    pnb__json_check_keys(&norm, allowed, PNB_COUNT(allowed), err);
    t->eps = pnb__json_get_double(&norm, "eps", 1e-5, err);
    t->eps_source = "norm_kwargs.eps";
    if (norm.status == PNB_OK && !(t->eps > 0 && t->eps < 1))
        norm.status = pnb__fail(err, PNB_ARG, "%s: norm_kwargs.eps is %g, it must be in (0, 1)",
                                o->where, t->eps);
    if (o->status == PNB_OK)
        o->status = norm.status;
}

/* quick_gelu of the whole model, or GELU with act_kwargs {"approximate": "none"|"tanh"}. */
static void read_act(pnb__tower_config *t, pnb__jobj *o, bool quick_gelu, pnb_error *err)
{
    t->act = quick_gelu ? PNB__QUICK_GELU : PNB__GELU;
    t->act_source = quick_gelu ? "quick_gelu" : "default of open_clip (no quick_gelu)";
    json_t *kwargs = pnb__json_get_object(o, "act_kwargs", err);
    if (kwargs == NULL || json_object_size(kwargs) == 0)
        return;
    static const char *const allowed[] = {"approximate"};
    pnb__jobj act = pnb__json_object(kwargs, o->where, err);
    pnb__json_check_keys(&act, allowed, PNB_COUNT(allowed), err);
    const char *form = pnb__json_get_string(&act, "approximate", "none", err);
    if (o->status == PNB_OK)
        o->status = act.status;
    if (o->status != PNB_OK)
        return;
    if (quick_gelu || (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0)) {
        pnb__config_unsupported(o, "act_kwargs",
                                "{\"approximate\": \"none\" or \"tanh\"} without quick_gelu", err);
        return;
    }
    t->act = strcmp(form, "tanh") == 0 ? PNB__GELU_TANH : PNB__GELU;
    t->act_source = "act_kwargs.approximate";
}

static void read_refused(pnb__jobj *o, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(must_be_false); i++)
        if (pnb__json_has(o, must_be_false[i]) &&
            pnb__json_get_bool(o, must_be_false[i], false, err))
            pnb__config_unsupported(o, must_be_false[i], "false", err);
    for (size_t i = 0; i < PNB_COUNT(must_be_null); i++)
        if (pnb__json_has(o, must_be_null[i]))
            pnb__config_unsupported(o, must_be_null[i], "null", err);
}

/* What both towers have. The MLP is int(width * mlp_ratio) wide, rounded down as the reference
 * does: 1152 * 3.7362 is 4304. init_unc_std is Penumbra's: the spread of the log-variance head's
 * matrix, C^-1/2 where the file does not say, as in the reference. */
static void read_common(pnb__tower_config *t, pnb__jobj *o, size_t width, pnb_error *err)
{
    t->present = true;
    t->width = (size_t)pnb__json_get_int_in(o, "width", (int64_t)width, 1, PNB__MAX_WIDTH, err);
    t->n_layers = (size_t)pnb__json_get_int_in(o, "layers", 12, 1, PNB__MAX_LAYERS, err);
    double ratio = pnb__json_get_double(o, "mlp_ratio", 4.0, err);
    if (o->status == PNB_OK && !(ratio > 0 && ratio <= 64 && (double)t->width * ratio >= 1))
        o->status =
            pnb__fail(err, PNB_ARG, "%s: mlp_ratio is %g, it must be in (0, 64]", o->where, ratio);
    t->mlp_width = o->status == PNB_OK ? (size_t)((double)t->width * ratio) : 1; /* as int(w*r) */
    t->has_layer_scale = pnb__json_has(o, "ls_init_value");
    t->ls_init = pnb__json_get_double(o, "ls_init_value", 0, err);
    t->init_unc_bias = pnb__json_get_double(o, "init_unc_bias", -10, err);
    t->init_unc_std =
        pnb__json_get_double(o, "init_unc_std", 1 / sqrt((double)PNB_MAX(t->width, 1)), err);
    if (o->status == PNB_OK && !(t->init_unc_std >= 0 && t->init_unc_std <= 1))
        o->status = pnb__fail(err, PNB_ARG, "%s: init_unc_std is %g, it must be in [0, 1]",
                              o->where, t->init_unc_std);
    read_eps(t, o, err);
    read_refused(o, err);
}

void pnb__config_check_heads(const pnb__tower_config *t, pnb__jobj *o, const char *key,
                             pnb_error *err)
{
    if (o->status == PNB_OK && (t->n_heads == 0 || t->width % t->n_heads != 0))
        o->status = pnb__fail(err, PNB_ARG, "%s: width %zu is not a multiple of %zu heads (%s)",
                              o->where, t->width, t->n_heads, key);
}

/* ---- image tower ---- */

/* A number is a square. Pixels that fill no whole patch at the right and lower edge are not seen: a
 * stride-p convolution without padding leaves them out. */
void pnb__config_image_size(pnb__config *c, pnb__jobj *o, size_t fallback, pnb_error *err)
{
    json_t *size = json_object_get(o->obj, "image_size");
    if (json_is_array(size)) {
        float hw[2] = {0, 0};
        pnb__json_get_floats(o, "image_size", hw, 2, err);
        c->image_height = hw[0] >= 1 && hw[0] <= PNB__MAX_PIXELS ? (size_t)hw[0] : 0;
        c->image_width = hw[1] >= 1 && hw[1] <= PNB__MAX_PIXELS ? (size_t)hw[1] : 0;
    } else {
        c->image_height = c->image_width = (size_t)pnb__json_get_int_in(
            o, "image_size", (int64_t)fallback, 1, PNB__MAX_PIXELS, err);
    }
    if (o->status == PNB_OK && (c->image_height < c->patch || c->image_width < c->patch))
        o->status = pnb__fail(err, PNB_ARG, "%s: image_size %zux%zu does not hold one %zu px patch",
                              o->where, c->image_height, c->image_width, c->patch);
}

/* "tok" reads the class token, "avg" the mean of the patches behind it. With embed_unc the
 * reference reads [CLS] and [UNC] by their places, so nothing else can be asked for. "sin_cos_2d"
 * positions are computed and fixed (He et al. 2022, as MAE's code lays them out), "learnable" ones
 * are weights. */
static void read_vision_pool(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    const char *pool = pnb__json_get_string(o, "pool_type", "tok", err);
    bool average = o->status == PNB_OK && strcmp(pool, "avg") == 0;
    c->vision.pool = average ? PNB__POOL_AVERAGE : PNB__POOL_CLASS;
    c->norm_after_pool = pnb__json_get_bool(o, "final_ln_after_pool", false, err);
    if (o->status == PNB_OK && strcmp(pool, "tok") != 0 && (!average || c->vision.has_unc))
        pnb__config_unsupported(o, "pool_type", "\"tok\" (or \"avg\" without embed_unc)", err);
    if (c->vision.has_unc && c->norm_after_pool)
        pnb__config_unsupported(o, "final_ln_after_pool", "false with embed_unc", err);
    const char *positions = pnb__json_get_string(o, "pos_embed_type", "learnable", err);
    c->sincos_positions = o->status == PNB_OK && strcmp(positions, "sin_cos_2d") == 0;
    if (o->status == PNB_OK && !c->sincos_positions && strcmp(positions, "learnable") != 0)
        pnb__config_unsupported(o, "pos_embed_type", "\"learnable\" or \"sin_cos_2d\"", err);
}

/* Heads follow from head_width, 64 where the file is silent: the one number of a tower that stands
 * in no shape of its weights, so a wrong one gives other embeddings without any error. A list of
 * layers is CLIP's ResNet. */
static void read_vision(pnb__config *c, pnb__jobj *o, bool quick_gelu, pnb_error *err)
{
    pnb__json_check_keys(o, vision_keys, PNB_COUNT(vision_keys), err);
    c->vision.has_unc = pnb__json_get_bool(o, "embed_unc", false, err);
    if (pnb__json_has(o, "timm_model_name")) {
        pnb__config_read_timm(c, o, err);
        return;
    }
    if (json_is_array(json_object_get(o->obj, "layers"))) {
        pnb__config_unsupported(o, "layers",
                                "a number: a list is CLIP's ResNet image tower, and "
                                "only vision transformers are read; layers",
                                err);
        return;
    }
    read_common(&c->vision, o, 768, err);
    read_act(&c->vision, o, quick_gelu, err);
    c->vision.projection = PNB__PROJECT_MATRIX;
    size_t head_width = (size_t)pnb__json_get_int_in(o, "head_width", 64, 1, PNB__MAX_WIDTH, err);
    c->vision.n_heads = c->vision.width / head_width; /* rounded down, as the reference does */
    pnb__config_check_heads(&c->vision, o, "head_width", err);
    c->patch = (size_t)pnb__json_get_int_in(o, "patch_size", 16, 1, PNB__MAX_PIXELS, err);
    pnb__config_image_size(c, o, 224, err);
    c->no_ln_pre = pnb__json_get_bool(o, "no_ln_pre", false, err);
    read_vision_pool(c, o, err);
}

/* ---- text tower ----
 *
 * One transformer for all: what differs between ProLIP, CLIP and SigLIP is the mask, the place a
 * text is read at, the projection, and the tokens appended. */

const char *pnb_text_unc_source_name(pnb_text_unc_source source)
{
    return source == PNB_TEXT_UNC_TOKEN ? "unc_token" : "projected_mean";
}

/* Released checkpoints lack the key and mean projected_mean, which their code computes. */
static void read_unc_source(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    const char *key =
        pnb__json_has(o, "text_uncertainty_source") ? "text_uncertainty_source" : "text_unc_source";
    const char *source = pnb__json_get_string(o, key, NULL, err);
    if (source == NULL || o->status != PNB_OK)
        return;
    if (strcmp(source, pnb_text_unc_source_name(PNB_TEXT_UNC_PROJECTED_MEAN)) == 0)
        c->text_unc_source = PNB_TEXT_UNC_PROJECTED_MEAN;
    else if (strcmp(source, pnb_text_unc_source_name(PNB_TEXT_UNC_TOKEN)) == 0)
        c->text_unc_source = PNB_TEXT_UNC_TOKEN;
    else
        o->status = pnb__fail(err, PNB_ARG,
                              "%s: %s is \"%s\", it must be \"projected_mean\" or \"unc_token\"",
                              o->where, key, source);
}

/* ProLIP reads its appended token whatever pool_type says; a name that means nothing is a mistake.
 */
static void check_appended_pool(pnb__jobj *o, pnb_error *err)
{
    static const char *const known[] = {"first", "last", "argmax", "eos", "none"};
    const char *name = pnb__json_get_string(o, "pool_type", "last", err);
    size_t i = 0;
    while (o->status == PNB_OK && i < PNB_COUNT(known) && strcmp(name, known[i]) != 0)
        i++;
    if (i == PNB_COUNT(known))
        pnb__config_unsupported(o, "pool_type", "first, last, argmax, eos or none", err);
}

/* Where a text without [CLS] is read. open_clip's default, argmax, finds the end token as the
 * largest id: right for CLIP's vocabulary, whose last id it is. */
static void read_text_pool(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    static const struct {
        const char *name;
        pnb__pool pool;
    } pools[] = {{"first", PNB__POOL_FIRST},
                 {"last", PNB__POOL_LAST},
                 {"argmax", PNB__POOL_ARGMAX},
                 {"eos", PNB__POOL_EOS}};
    const char *name = pnb__json_get_string(o, "pool_type", "argmax", err);
    size_t i = 0;
    while (o->status == PNB_OK && i < PNB_COUNT(pools) && strcmp(name, pools[i].name) != 0)
        i++;
    if (i == PNB_COUNT(pools)) {
        pnb__config_unsupported(o, "pool_type", "first, last, argmax or eos", err);
        return;
    }
    c->text.pool = pools[i].pool;
    c->eos_id = pnb__json_get_int_in(o, "eos_id", -1, 0, PNB__MAX_VOCAB, err);
    if (o->status == PNB_OK && c->text.pool == PNB__POOL_EOS &&
        (c->eos_id < 0 || (size_t)c->eos_id >= c->vocab_size))
        o->status =
            pnb__fail(err, PNB_ARG, "%s: pool_type \"eos\" needs an eos_id below vocab_size %zu",
                      o->where, c->vocab_size);
}

/* proj_bias makes the projection a Linear, x W^T + b, else it is CLIP's matrix, x P. The default is
 * the dialect's: ProLIP has the bias, open_clip has not. */
static void read_text_projection(pnb__config *c, pnb__jobj *o, bool is_prolip, pnb_error *err)
{
    bool bias = pnb__json_get_bool(o, "proj_bias", is_prolip, err);
    const char *type = pnb__json_get_string(o, "proj_type", "linear", err);
    if (o->status != PNB_OK)
        return;
    if (strcmp(type, "none") == 0 && !is_prolip)
        c->text.projection = PNB__PROJECT_NONE;
    else if (strcmp(type, "linear") == 0)
        c->text.projection = bias ? PNB__PROJECT_LINEAR : PNB__PROJECT_MATRIX;
    else
        pnb__config_unsupported(o, "proj_type", is_prolip ? "linear" : "linear or none", err);
}

/* The dialects' defaults differ: ProLIP is 768 wide with 12 heads, 64 tokens of a T5 vocabulary of
 * 32,100, no mask and both tokens appended; open_clip 512 wide with 8 heads, 77 tokens of CLIP's
 * 49,408, under a causal mask. */
static void read_text(pnb__config *c, pnb__jobj *o, bool quick_gelu, pnb_error *err)
{
    bool is_prolip = c->family == PNB__FAMILY_PROLIP;
    pnb__json_check_keys(o, text_keys, PNB_COUNT(text_keys), err);
    if (pnb__json_has(o, "hf_model_name"))
        pnb__config_unsupported(o, "hf_model_name",
                                "null: Hugging Face text towers are not read; "
                                "it",
                                err);
    const char *arch = pnb__json_get_string(o, "text_arch", "clip", err);
    if (o->status == PNB_OK && strcmp(arch, "clip") != 0)
        pnb__config_unsupported(o, "text_arch", "\"clip\"", err);
    read_common(&c->text, o, is_prolip ? 768 : 512, err);
    read_act(&c->text, o, quick_gelu, err);
    c->text.n_heads =
        (size_t)pnb__json_get_int_in(o, "heads", is_prolip ? 12 : 8, 1, PNB__MAX_WIDTH, err);
    pnb__config_check_heads(&c->text, o, "heads", err);
    c->text.has_unc = pnb__json_get_bool(o, "embed_unc", is_prolip, err);
    c->context_length = (size_t)pnb__json_get_int_in(o, "context_length", is_prolip ? 64 : 77, 1,
                                                     PNB__MAX_WIDTH, err);
    c->vocab_size = (size_t)pnb__json_get_int_in(o, "vocab_size", is_prolip ? 32100 : 49408, 1,
                                                 PNB__MAX_VOCAB, err);
    read_text_projection(c, o, is_prolip, err);
    c->causal = !pnb__json_get_bool(o, "no_causal_mask", is_prolip, err);
    bool has_cls = pnb__json_get_bool(o, "embed_cls", is_prolip, err);
    if (!is_prolip) {
        read_text_pool(c, o, err);
        return;
    }
    check_appended_pool(o, err);
    c->text.pool = PNB__POOL_APPENDED;
    if (c->causal)
        pnb__config_unsupported(o, "no_causal_mask", "true in a ProLIP model", err);
    if (!has_cls)
        pnb__config_unsupported(o, "embed_cls", "true in a ProLIP model", err);
    read_unc_source(c, o, err);
}

/* ---- the whole ---- */

/* What no section shows alone: both towers with [UNC] or none; W of a log-variance that is read
 * from the projected mean is (D, C) and takes D numbers, so C = D; a tower without projection ends
 * in its own width; the fixed positions are those of a square grid. */
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
    const pnb__tower_config *towers[] = {&c->vision, &c->text};
    for (size_t i = 0; i < PNB_COUNT(towers); i++)
        if (towers[i]->projection == PNB__PROJECT_NONE && towers[i]->width != c->embed_dim)
            return pnb__fail(err, PNB_ARG,
                             "%s: the %s tower has no projection, so its width %zu must be the "
                             "embed_dim %zu",
                             where, i == 0 ? "image" : "text", towers[i]->width, c->embed_dim);
    return PNB_OK;
}

/* init_logit_scale and init_logit_bias: in ProLIP null or 0 means "no such weight"; open_clip
 * always has the scale, and the bias unless it is null. */
static void read_logit(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    const double default_scale = log(1 / 0.07);
    bool is_prolip = c->family == PNB__FAMILY_PROLIP;
    bool null_scale = json_is_null(json_object_get(o->obj, "init_logit_scale"));
    c->init_logit_scale =
        null_scale ? 0 : pnb__json_get_double(o, "init_logit_scale", default_scale, err);
    c->init_logit_bias = pnb__json_get_double(o, "init_logit_bias", 0, err);
    c->has_logit_scale = !is_prolip || c->init_logit_scale != 0;
    c->has_logit_bias = is_prolip ? c->init_logit_bias != 0 : pnb__json_has(o, "init_logit_bias");
}

static bool is_true(const json_t *section, const char *key)
{
    return json_is_true(json_object_get(section, key));
}

/* The family is told by what only ProLIP has, before the sections are read, since their defaults
 * depend on it; read_vision makes it SigLIP where timm builds the image tower. */
static pnb_status read_model_cfg(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    pnb__config c = {.text_unc_source = PNB_TEXT_UNC_PROJECTED_MEAN, .eos_id = -1};
    char vision_where[300], text_where[300];
    snprintf(vision_where, sizeof vision_where, "%.280s: vision_cfg", where);
    snprintf(text_where, sizeof text_where, "%.280s: text_cfg", where);
    pnb__jobj top = pnb__json_object(root, where, err);
    if (top.status == PNB_OK && pnb__json_has(&top, "multimodal_cfg"))
        return pnb__config_unsupported(&top, "multimodal_cfg", "absent (CoCa models are not read)",
                                       err);
    pnb__json_check_keys(&top, top_keys, PNB_COUNT(top_keys), err);
    c.embed_dim = (size_t)pnb__json_get_int_in(&top, "embed_dim", 0, 1, PNB__MAX_WIDTH, err);
    bool quick_gelu = pnb__json_get_bool(&top, "quick_gelu", false, err);
    json_t *vision = pnb__json_get_object(&top, "vision_cfg", err);
    json_t *text = pnb__json_get_object(&top, "text_cfg", err);
    if (top.status == PNB_OK && (c.embed_dim == 0 || vision == NULL || text == NULL))
        top.status =
            pnb__fail(err, PNB_FORMAT, "%s: needs embed_dim, vision_cfg and text_cfg", where);
    if (top.status != PNB_OK)
        return top.status;
    bool is_prolip =
        is_true(text, "embed_cls") || is_true(text, "embed_unc") || is_true(vision, "embed_unc");
    c.family = is_prolip ? PNB__FAMILY_PROLIP : PNB__FAMILY_CLIP;
    read_logit(&c, &top, err);
    if (top.status != PNB_OK)
        return top.status;
    pnb__jobj v = pnb__json_object(vision, vision_where, err);
    read_vision(&c, &v, quick_gelu, err);
    if (v.status != PNB_OK)
        return v.status;
    pnb__jobj t = pnb__json_object(text, text_where, err);
    read_text(&c, &t, quick_gelu, err);
    if (t.status == PNB_OK)
        read_unc_source(&c, &top, err);
    if (t.status != PNB_OK || top.status != PNB_OK)
        return t.status != PNB_OK ? t.status : top.status;
    pnb_status status = check_whole(&c, where, err);
    if (status == PNB_OK)
        *out = c;
    return status;
}

/* open_clip_config.json: {"model_cfg": ..., "preprocess_cfg": ...}. */
static pnb_status read_open_clip(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    static const char *const keys[] = {"model_cfg", "preprocess_cfg"};
    char inner[300];
    snprintf(inner, sizeof inner, "%.280s: model_cfg", where);
    pnb__jobj o = pnb__json_object(root, where, err);
    pnb__json_check_keys(&o, keys, PNB_COUNT(keys), err);
    json_t *model = pnb__json_get_object(&o, "model_cfg", err);
    return o.status == PNB_OK ? read_model_cfg(out, model, inner, err) : o.status;
}

/* model_type is Hugging Face's sign, but open_clip writes it into some files too, beside
 * vision_cfg. */
pnb_status pnb__config_read(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    if (json_is_object(json_object_get(root, "model_cfg")))
        return read_open_clip(out, root, where, err);
    if (json_object_get(root, "model_type") != NULL && json_object_get(root, "vision_cfg") == NULL)
        return pnb__config_read_hf(out, root, where, err);
    return read_model_cfg(out, root, where, err);
}
