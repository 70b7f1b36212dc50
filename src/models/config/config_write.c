/* Writing configurations: the constructor arguments of open_clip and ProLIP, and transformers'
 * config.json. Values equal to a dialect's default are left out where the original tools leave them
 * out too.
 *
 * Nothing here decides whether a dialect can express a model: the result is read back by the same
 * readers that open folders and compared field by field. */
#include "models/config/config_write.h"

#include <math.h>
#include <string.h>

#include "models/tower.h"

static void put_int(json_t *o, const char *key, size_t value)
{
    json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void put_text(json_t *o, const char *key, const char *value)
{
    json_object_set_new(o, key, json_string(value));
}

static void put_real(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, json_real(value));
}

static void put_flag(json_t *o, const char *key, bool value)
{
    json_object_set_new(o, key, json_boolean(value));
}

static json_t *image_size(const pnb__config *c)
{
    return c->image_height == c->image_width
               ? json_integer((json_int_t)c->image_height)
               : json_pack("[I,I]", (json_int_t)c->image_height, (json_int_t)c->image_width);
}

/* The number r for which int(width * r) is the MLP's width: the quotient, unless rounding down
 * makes it one less; then half a unit more, which no rounding reaches. */
static double mlp_ratio(const pnb__tower_config *t)
{
    double ratio = (double)t->mlp_width / (double)t->width;
    if ((size_t)((double)t->width * ratio) == t->mlp_width)
        return ratio;
    return ((double)t->mlp_width + 0.5) / (double)t->width;
}

/* ---- open_clip and ProLIP ---- */

/* What both towers share, without what open_clip's defaults say: mlp_ratio 4, eps 1e-5, plain GELU
 * (quick_gelu is a key of the whole model). */
static void put_tower(json_t *o, const pnb__tower_config *t)
{
    put_int(o, "width", t->width);
    put_int(o, "layers", t->n_layers);
    if (t->mlp_width != 4 * t->width)
        put_real(o, "mlp_ratio", mlp_ratio(t));
    if (t->has_layer_scale)
        put_real(o, "ls_init_value", t->ls_init);
    if (t->eps != 1e-5)
        json_object_set_new(o, "norm_kwargs", json_pack("{s:f}", "eps", t->eps));
    if (t->act == PNB__GELU_TANH)
        json_object_set_new(o, "act_kwargs", json_pack("{s:s}", "approximate", "tanh"));
    if (t->has_unc) {
        put_flag(o, "embed_unc", true);
        put_real(o, "init_unc_bias", t->init_unc_bias);
        if (fabs(t->init_unc_std * sqrt((double)t->width) - 1) > 1e-12) /* not the reference's */
            put_real(o, "init_unc_std", t->init_unc_std);
    }
}

/* timm's registered SigLIP towers; other sizes go through timm_model_kwargs. */
static const struct {
    const char *name;
    size_t width, n_layers, n_heads, mlp_width, patch, image;
    pnb__unary act;
} timm_towers[] = {
    {"vit_base_patch16_siglip_224", 768, 12, 12, 3072, 16, 224, PNB__GELU},
    {"vit_base_patch16_siglip_256", 768, 12, 12, 3072, 16, 256, PNB__GELU},
    {"vit_base_patch16_siglip_384", 768, 12, 12, 3072, 16, 384, PNB__GELU},
    {"vit_base_patch16_siglip_512", 768, 12, 12, 3072, 16, 512, PNB__GELU},
    {"vit_base_patch32_siglip_256", 768, 12, 12, 3072, 32, 256, PNB__GELU_TANH},
    {"vit_large_patch16_siglip_256", 1024, 24, 16, 4096, 16, 256, PNB__GELU},
    {"vit_large_patch16_siglip_384", 1024, 24, 16, 4096, 16, 384, PNB__GELU},
    {"vit_large_patch16_siglip_512", 1024, 24, 16, 4096, 16, 512, PNB__GELU_TANH},
    {"vit_so400m_patch14_siglip_224", 1152, 27, 16, 4304, 14, 224, PNB__GELU},
    {"vit_so400m_patch14_siglip_384", 1152, 27, 16, 4304, 14, 384, PNB__GELU},
    {"vit_so400m_patch16_siglip_256", 1152, 27, 16, 4304, 16, 256, PNB__GELU_TANH},
    {"vit_so400m_patch16_siglip_384", 1152, 27, 16, 4304, 16, 384, PNB__GELU_TANH},
    {"vit_so400m_patch16_siglip_512", 1152, 27, 16, 4304, 16, 512, PNB__GELU_TANH},
    {"vit_giantopt_patch16_siglip_256", 1536, 40, 16, 6144, 16, 256, PNB__GELU_TANH},
    {"vit_giantopt_patch16_siglip_384", 1536, 40, 16, 6144, 16, 384, PNB__GELU_TANH},
};

static const char *timm_act(pnb__unary act)
{
    return act == PNB__GELU_TANH ? "gelu_tanh" : act == PNB__QUICK_GELU ? "quick_gelu" : "gelu";
}

/* SigLIP's image tower, which open_clip has by name from timm: the registered model of that shape,
 * or the first one with every number changed. What is written names no pretrained weights to fetch.
 */
static void put_timm(json_t *o, const pnb__config *c)
{
    const pnb__tower_config *t = &c->vision;
    size_t i = 0, n = PNB_COUNT(timm_towers);
    while (i < n &&
           !(timm_towers[i].width == t->width && timm_towers[i].n_layers == t->n_layers &&
             timm_towers[i].n_heads == t->n_heads && timm_towers[i].mlp_width == t->mlp_width &&
             timm_towers[i].patch == c->patch && timm_towers[i].image == c->image_height &&
             c->image_height == c->image_width))
        i++;
    size_t named = i < n ? i : 0; /* any registered name will do where all numbers are given */
    put_text(o, "timm_model_name", timm_towers[named].name);
    put_flag(o, "timm_model_pretrained", false);
    put_text(o, "timm_pool", "map");
    put_text(o, "timm_proj", "none");
    json_object_set_new(o, "image_size", image_size(c));
    json_t *kwargs = json_object();
    if (i == n) {
        json_object_set_new(kwargs, "img_size", image_size(c));
        put_int(kwargs, "patch_size", c->patch);
        put_int(kwargs, "embed_dim", t->width);
        put_int(kwargs, "depth", t->n_layers);
        put_int(kwargs, "num_heads", t->n_heads);
        put_real(kwargs, "mlp_ratio", mlp_ratio(t));
    }
    if (timm_towers[named].act != t->act)
        put_text(kwargs, "act_layer", timm_act(t->act));
    if (json_object_size(kwargs) > 0)
        json_object_set(o, "timm_model_kwargs", kwargs);
    json_decref(kwargs);
}

/* head_width is written even where it is 64: it stands in no shape of the weights. */
static json_t *vision_cfg(const pnb__config *c)
{
    json_t *o = json_object();
    if (c->vision.pool == PNB__POOL_MAP) {
        put_timm(o, c);
        return o;
    }
    json_object_set_new(o, "image_size", image_size(c));
    put_int(o, "patch_size", c->patch);
    put_int(o, "head_width", c->vision.width / c->vision.n_heads);
    put_tower(o, &c->vision);
    if (c->no_ln_pre)
        put_flag(o, "no_ln_pre", true);
    if (c->vision.pool == PNB__POOL_AVERAGE)
        put_text(o, "pool_type", "avg");
    if (c->norm_after_pool)
        put_flag(o, "final_ln_after_pool", true);
    if (c->sincos_positions)
        put_text(o, "pos_embed_type", "sin_cos_2d");
    return o;
}

/* argmax is the default and is left out; an end token that is the last id is found by it too. */
static void put_text_pool(json_t *o, const pnb__config *c)
{
    switch (c->text.pool) {
    case PNB__POOL_FIRST:
        put_text(o, "pool_type", "first");
        break;
    case PNB__POOL_APPENDED:
        put_flag(o, "embed_cls", true);
        put_text(o, "pool_type", "last");
        break;
    case PNB__POOL_LAST:
        put_text(o, "pool_type", "last");
        break;
    case PNB__POOL_EOS: /* the largest id is found by open_clip's default just as well */
        if ((size_t)c->eos_id + 1 == c->vocab_size)
            break;
        put_text(o, "pool_type", "eos");
        put_int(o, "eos_id", (size_t)c->eos_id);
        break;
    default:
        break;
    }
}

/* ProLIP's own configurations always say proj_bias, whose default is another one in open_clip. */
static json_t *text_cfg(const pnb__config *c)
{
    json_t *o = json_object();
    put_int(o, "context_length", c->context_length);
    put_int(o, "vocab_size", c->vocab_size);
    put_int(o, "heads", c->text.n_heads);
    put_tower(o, &c->text);
    if (!c->causal)
        put_flag(o, "no_causal_mask", true);
    put_text_pool(o, c);
    if (c->text.projection == PNB__PROJECT_NONE)
        put_text(o, "proj_type", "none");
    if (c->text.projection == PNB__PROJECT_LINEAR || c->family == PNB__FAMILY_PROLIP)
        put_flag(o, "proj_bias", c->text.projection == PNB__PROJECT_LINEAR);
    return o;
}

/* open_clip's whole-model quick_gelu reaches both towers, but not one of timm, which says its
 * activation by name. init_logit_bias says by its presence that there is such a weight; its value
 * is where training began, -10 where the source does not say. custom_text keeps the text tower
 * under "text.", where SigLIP's weights have it. */
static json_t *model_cfg(const pnb__config *c)
{
    json_t *o = json_object();
    put_int(o, "embed_dim", c->embed_dim);
    if ((c->vision.act == PNB__QUICK_GELU && c->vision.pool != PNB__POOL_MAP) ||
        c->text.act == PNB__QUICK_GELU)
        put_flag(o, "quick_gelu", true);
    if (c->has_logit_bias)
        put_real(o, "init_logit_bias", c->init_logit_bias != 0 ? c->init_logit_bias : -10);
    if (c->vision.pool == PNB__POOL_MAP)
        put_flag(o, "custom_text", true);
    if (c->text.has_unc)
        put_text(o, "text_uncertainty_source", pnb_text_unc_source_name(c->text_unc_source));
    json_object_set_new(o, "vision_cfg", vision_cfg(c));
    json_object_set_new(o, "text_cfg", text_cfg(c));
    return o;
}

/* ---- Hugging Face ----
 *
 *     open_clip                         transformers
 *     width, layers                     hidden_size, num_hidden_layers
 *     width / head_width, heads         num_attention_heads
 *     int(width * mlp_ratio)            intermediate_size
 *     quick_gelu, act_kwargs            hidden_act
 *     norm_kwargs.eps                   layer_norm_eps
 *     context_length                    max_position_embeddings
 *     embed_dim                         projection_dim (CLIP), projection_size (SigLIP's texts)
 *     pool_type, eos_id                 eos_token_id (CLIP); SigLIP reads the last position
 *     no_causal_mask                    model_type: CLIP has the mask, SigLIP none
 *
 * What one side has no word for (LayerScale, average pooling, [UNC]) is noticed when the result is
 * read back. */

/* Everything is written out, defaults too: transformers' differ between CLIP and SigLIP, and
 * changed between its versions. */
static void put_hf_tower(json_t *o, const pnb__tower_config *t)
{
    static const struct {
        pnb__unary act;
        const char *name;
    } acts[] = {{PNB__QUICK_GELU, "quick_gelu"},
                {PNB__GELU, "gelu"},
                {PNB__GELU_TANH, "gelu_pytorch_tanh"}};
    put_int(o, "hidden_size", t->width);
    put_int(o, "intermediate_size", t->mlp_width);
    put_int(o, "num_hidden_layers", t->n_layers);
    put_int(o, "num_attention_heads", t->n_heads);
    put_real(o, "layer_norm_eps", t->eps);
    for (size_t i = 0; i < PNB_COUNT(acts); i++)
        if (acts[i].act == t->act)
            put_text(o, "hidden_act", acts[i].name);
}

static void put_hf_vision(json_t *o, const pnb__config *c)
{
    put_hf_tower(o, &c->vision);
    json_object_set_new(o, "image_size", image_size(c));
    put_int(o, "patch_size", c->patch);
}

static void put_hf_text(json_t *o, const pnb__config *c, bool siglip)
{
    put_hf_tower(o, &c->text);
    put_int(o, "vocab_size", c->vocab_size);
    put_int(o, "max_position_embeddings", c->context_length);
    if (siglip) {
        put_int(o, "projection_size", c->embed_dim);
    } else if (c->text.pool == PNB__POOL_EOS) {
        put_int(o, "eos_token_id", (size_t)c->eos_id);
    } else { /* as OpenAI's own files: 2 stands for "position of the largest id", not for id 2 */
        put_int(o, "bos_token_id", 0);
        put_int(o, "pad_token_id", 1);
        put_int(o, "eos_token_id", 2);
    }
}

/* One tower as transformers' class for it: WithProjection where the projection is stored. */
static json_t *hf_alone(const pnb__config *c, bool siglip)
{
    bool is_text = c->text.present;
    const pnb__tower_config *t = is_text ? &c->text : &c->vision;
    char type[32], class[48];
    snprintf(type, sizeof type, "%s_%s_model", siglip ? "siglip" : "clip",
             is_text ? "text" : "vision");
    snprintf(class, sizeof class, "%s%sModel%s", siglip ? "Siglip" : "CLIP",
             is_text ? "Text" : "Vision",
             !siglip && t->projection != PNB__PROJECT_NONE ? "WithProjection" : "");
    json_t *o = json_pack("{s:s, s:[s]}", "model_type", type, "architectures", class);
    is_text ? put_hf_text(o, c, siglip) : put_hf_vision(o, c);
    if (!siglip)
        put_int(o, "projection_dim", c->embed_dim);
    return o;
}

/* Both towers, each in its section, with the width they share at the top; SigLIP's is the image
 * tower's own and stands nowhere. */
static json_t *hf_config(const pnb__config *c)
{
    bool siglip = c->vision.present ? c->vision.pool == PNB__POOL_MAP : !c->causal;
    if (!c->vision.present || !c->text.present)
        return hf_alone(c, siglip);
    json_t *o = json_pack("{s:s, s:[s]}", "model_type", siglip ? "siglip" : "clip", "architectures",
                          siglip ? "SiglipModel" : "CLIPModel");
    json_t *vision =
        json_pack("{s:s}", "model_type", siglip ? "siglip_vision_model" : "clip_vision_model");
    json_t *text =
        json_pack("{s:s}", "model_type", siglip ? "siglip_text_model" : "clip_text_model");
    put_hf_vision(vision, c);
    put_hf_text(text, c, siglip);
    json_object_set_new(o, "vision_config", vision);
    json_object_set_new(o, "text_config", text);
    if (!siglip) {
        put_int(o, "projection_dim", c->embed_dim);
        put_real(o, "logit_scale_init_value", c->init_logit_scale);
    }
    return o;
}

/* ---- reading back ---- */

typedef struct difference {
    bool differs;
    const char *what;
} difference;

/* The first setting that came back another one, in words; NULL for none. The initial values of new
 * weights are not compared: they do not change a trained model. */
static const char *compare_towers(const pnb__tower_config *a, const pnb__tower_config *b,
                                  bool any_projection)
{
    const difference list[] = {
        {a->width != b->width, "width"},
        {a->n_layers != b->n_layers, "layers"},
        {a->n_heads != b->n_heads, "heads"},
        {a->mlp_width != b->mlp_width, "MLP width"},
        {a->eps != b->eps, "LayerNorm eps"},
        {a->act != b->act, "activation"},
        {a->has_layer_scale != b->has_layer_scale, "LayerScale"},
        {a->has_unc != b->has_unc, "[UNC] token"},
        {!any_projection && a->projection != b->projection, "projection"},
    };
    for (size_t i = 0; i < PNB_COUNT(list); i++)
        if (list[i].differs)
            return list[i].what;
    return NULL;
}

/* First position of the largest id and first position of an id that is the largest: the same. One
 * dialect has the first, the other the second, for the same models. */
static bool same_text_pool(const pnb__config *a, const pnb__config *b)
{
    int64_t last = (int64_t)a->vocab_size - 1;
    int64_t id_a = a->text.pool == PNB__POOL_ARGMAX ? last : a->eos_id;
    int64_t id_b = b->text.pool == PNB__POOL_ARGMAX ? last : b->eos_id;
    bool ends_a = a->text.pool == PNB__POOL_ARGMAX || a->text.pool == PNB__POOL_EOS;
    bool ends_b = b->text.pool == PNB__POOL_ARGMAX || b->text.pool == PNB__POOL_EOS;
    return ends_a || ends_b ? ends_a && ends_b && id_a == id_b : a->text.pool == b->text.pool;
}

/* `any`: a tower alone, whose projection the weights tell and the configuration cannot. */
static const char *compare(const pnb__config *a, const pnb__config *b)
{
    const char *what = NULL;
    bool any = b->projection_from_file;
    if (a->vision.present) {
        what = compare_towers(&a->vision, &b->vision, any);
        const difference list[] = {
            {a->vision.pool != b->vision.pool, "image pooling"},
            {a->image_height != b->image_height || a->image_width != b->image_width, "image size"},
            {a->patch != b->patch, "patch size"},
            {a->no_ln_pre != b->no_ln_pre, "norm in front of the image blocks"},
            {a->conv_bias != b->conv_bias, "bias of the patch embedding"},
            {a->norm_after_pool != b->norm_after_pool, "norm after pooling"},
            {a->sincos_positions != b->sincos_positions, "fixed image positions"},
        };
        for (size_t i = 0; what == NULL && i < PNB_COUNT(list); i++)
            what = list[i].differs ? list[i].what : NULL;
    }
    if (a->text.present && what == NULL) {
        what = compare_towers(&a->text, &b->text, any);
        const difference list[] = {
            {!same_text_pool(a, b), "text pooling"},
            {a->context_length != b->context_length, "context length"},
            {a->vocab_size != b->vocab_size, "vocabulary"},
            {a->causal != b->causal, "causal mask"},
        };
        for (size_t i = 0; what == NULL && i < PNB_COUNT(list); i++)
            what = list[i].differs ? list[i].what : NULL;
    }
    if (what == NULL && a->embed_dim != b->embed_dim && !any)
        what = "embedding width";
    bool pair = a->vision.present && a->text.present;
    if (what == NULL && pair && a->has_logit_bias != b->has_logit_bias)
        what = a->has_logit_bias ? "logit bias" : "missing logit bias";
    return what;
}

/* Does a dialect of config/ describe it? A family with a configuration of its own has towers that
 * are no transformers, or more than a dialect has words for. */
static bool is_of_a_dialect(const pnb__config *c)
{
    return pnb__family_of(c)->read_config == NULL;
}

pnb_status pnb__config_write(json_t **out, const pnb__config *c, pnb__key_mapping_kind kind,
                             pnb_error *err)
{
    static const char *const names[] = {"ProLIP's", "open_clip's", "Hugging Face's"};
    pnb__config again;
    pnb_error why = PNB_ERROR_INIT;
    *out = NULL;
    if (!is_of_a_dialect(c))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s layout cannot describe this model (a %s); nothing was written",
                         names[kind], pnb__family_of(c)->name);
    json_t *root = kind == PNB__KEY_MAPPING_HF ? hf_config(c) : model_cfg(c);
    if (kind == PNB__KEY_MAPPING_OPEN_CLIP)
        root = json_pack("{s:o}", "model_cfg", root);
    if (!json_is_complete(root)) {
        json_decref(root);
        return pnb__fail_nomem(err, 0);
    }
    /* transformers has classes for towers alone; open_clip's constructor makes two always */
    if (kind != PNB__KEY_MAPPING_HF && (!c->vision.present || !c->text.present)) {
        json_decref(root);
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s configuration describes two towers, this model has one", names[kind]);
    }
    pnb_status status = pnb__config_read(&again, root, "written configuration", &why);
    const char *what = status == PNB_OK ? compare(c, &again) : why.text;
    /* our reader knows ProLIP's words inside model_cfg, but open_clip itself does not */
    if (what == NULL && kind == PNB__KEY_MAPPING_OPEN_CLIP && c->family == PNB__FAMILY_PROLIP)
        what = c->text.has_unc ? "[UNC] token" : "appended [CLS] token"; /* ProLIP's own words */
    if (what != NULL) {
        json_decref(root);
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s layout cannot describe this model (%s); nothing was written",
                         names[kind], what);
    }
    *out = root;
    return PNB_OK;
}
