/* Reading config.json of Hugging Face CLIP and SigLIP (transformers' configuration_clip.py and
 * configuration_siglip.py): the two-tower models and their towers alone.
 *
 * transformers leaves out what equals its default, so the defaults below are part of the format.
 * Keys that cannot change an embedding (generation, labels, training) are known and passed over;
 * any other key is an error, because it could. Old CLIP files carry a section twice
 * ("text_config" and "text_config_dict"): they must agree. */
#include <math.h>
#include <string.h>

#include "models/config/config.h"

/* No bearing on what a trained tower computes. */
static const char *const passive_keys[] = {
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "length_penalty",
    "logit_scale_init_value",
    "max_length",
    "min_length",
    "model_type",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "projection_dim",
    "projection_size",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tie_word_embeddings",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
};

/* What decides a tower; absent ones have the defaults below. projection_dim and projection_size
 * stand among the passive keys because each section repeats them: the one that counts is read by
 * hand. */
static const char *const tower_keys[] = {
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "hidden_act",  "layer_norm_eps",    "vocab_size",        "max_position_embeddings",
    "image_size",  "patch_size",        "num_channels",      "vision_use_head",
};

static const char *const top_keys[] = {"text_config", "vision_config", "text_config_dict",
                                       "vision_config_dict"};

/* What transformers fills in where a section is silent. */
typedef struct hf_defaults {
    size_t width, mlp_width, n_heads;
    const char *act;
    double eps;
} hf_defaults;

/* By siglip, then text. CLIP's are those of ViT-B/32, SigLIP's those of base-patch16-224. */
static const hf_defaults defaults[2][2] = {
    {{768, 3072, 12, "quick_gelu", 1e-5}, {512, 2048, 8, "quick_gelu", 1e-5}},
    {{768, 3072, 12, "gelu_pytorch_tanh", 1e-6}, {768, 3072, 12, "gelu_pytorch_tanh", 1e-6}},
};

enum { CLIP_PROJECTION = 512, CLIP_EOS = 49407, LEGACY_EOS = 2 };

static const char *const model_types[] = {"clip",   "clip_vision_model",   "clip_text_model",
                                          "siglip", "siglip_vision_model", "siglip_text_model"};

/* The lists are short and read once a model: no table. */
static bool is_listed(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

/* `is_tower`: a section, or the whole file of a tower alone. */
static void check_keys(pnb__jobj *o, bool is_tower, bool is_top, pnb_error *err)
{
    const char *key;
    json_t *value;
    if (o->status != PNB_OK)
        return;
    json_object_foreach(o->obj, key, value)
    {
        bool known = is_listed(key, passive_keys, PNB_COUNT(passive_keys)) ||
                     (is_tower && is_listed(key, tower_keys, PNB_COUNT(tower_keys))) ||
                     (is_top && is_listed(key, top_keys, PNB_COUNT(top_keys)));
        if (known)
            continue;
        const char *near = pnb__nearest_name(key, tower_keys, PNB_COUNT(tower_keys));
        o->status =
            pnb__fail(err, PNB_FORMAT, "%s: \"%s\" is not a key of this model type%s%s%s", o->where,
                      key, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return;
    }
}

/* transformers' word for an activation. CLIP's default is quick_gelu, as OpenAI trained; a model
 * that was trained by open_clip and converted must say "gelu" here, and `check` tells where a file
 * is silent. */
static void read_act(pnb__tower_config *t, pnb__jobj *o, const char *fallback, pnb_error *err)
{
    static const struct {
        const char *name;
        pnb__unary act;
    } acts[] = {{"quick_gelu", PNB__QUICK_GELU},
                {"gelu", PNB__GELU},
                {"gelu_pytorch_tanh", PNB__GELU_TANH},
                {"gelu_new", PNB__GELU_TANH}}; /* the same formula, written out in Python */
    const char *name = pnb__json_get_string(o, "hidden_act", fallback, err);
    t->act_source = pnb__json_has(o, "hidden_act") ? "hidden_act" : "default of transformers";
    for (size_t i = 0; o->status == PNB_OK && i < PNB_COUNT(acts); i++)
        if (strcmp(name, acts[i].name) == 0) {
            t->act = acts[i].act;
            return;
        }
    pnb__config_unsupported(o, "hidden_act", "quick_gelu, gelu or gelu_pytorch_tanh", err);
}

/* Unlike open_clip's dialect, this one names the width of the MLP and the number of heads outright.
 */
static void read_common(pnb__tower_config *t, pnb__jobj *o, const hf_defaults *d, pnb_error *err)
{
    t->present = true;
    t->width =
        (size_t)pnb__json_get_int_in(o, "hidden_size", (int64_t)d->width, 1, PNB__MAX_WIDTH, err);
    t->mlp_width = (size_t)pnb__json_get_int_in(o, "intermediate_size", (int64_t)d->mlp_width, 1,
                                                64 * PNB__MAX_WIDTH, err);
    t->n_layers = (size_t)pnb__json_get_int_in(o, "num_hidden_layers", 12, 1, PNB__MAX_LAYERS, err);
    t->n_heads = (size_t)pnb__json_get_int_in(o, "num_attention_heads", (int64_t)d->n_heads, 1,
                                              PNB__MAX_WIDTH, err);
    pnb__config_check_heads(t, o, "num_attention_heads", err);
    t->eps = pnb__json_get_double(o, "layer_norm_eps", d->eps, err);
    t->eps_source =
        pnb__json_has(o, "layer_norm_eps") ? "layer_norm_eps" : "default of transformers";
    if (o->status == PNB_OK && !(t->eps > 0 && t->eps < 1))
        o->status = pnb__fail(err, PNB_ARG, "%s: layer_norm_eps is %g, it must be in (0, 1)",
                              o->where, t->eps);
    read_act(t, o, d->act, err);
}

/* CLIP: class token, LayerNorm before the blocks, no bias of the patch embedding, projection.
 * SigLIP: none of the first two, a bias, and an attention head in place of the projection; without
 * its head (vision_use_head false) it has no embedding. */
static void read_vision(pnb__config *c, pnb__jobj *o, bool siglip, pnb_error *err)
{
    read_common(&c->vision, o, &defaults[siglip][0], err);
    c->patch =
        (size_t)pnb__json_get_int_in(o, "patch_size", siglip ? 16 : 32, 1, PNB__MAX_PIXELS, err);
    pnb__config_image_size(c, o, 224, err);
    if (pnb__json_get_int(o, "num_channels", 3, err) != 3)
        pnb__config_unsupported(o, "num_channels", "3", err);
    if (!pnb__json_get_bool(o, "vision_use_head", true, err))
        pnb__config_unsupported(o, "vision_use_head", "true", err);
    /* the towers of the two differ in these four, which no key names: the model type is all there
     * is */
    c->vision.pool = siglip ? PNB__POOL_MAP : PNB__POOL_CLASS;
    c->vision.projection = siglip ? PNB__PROJECT_NONE : PNB__PROJECT_MATRIX;
    c->no_ln_pre = c->conv_bias = siglip;
}

/* transformers' CLIP pools at the first end token; files from before that fix say eos_token_id 2,
 * which stands for "position of the largest id". */
static void read_clip_pool(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    c->eos_id = pnb__json_get_int_in(o, "eos_token_id", CLIP_EOS, 0, PNB__MAX_VOCAB, err);
    c->text.pool = c->eos_id == LEGACY_EOS ? PNB__POOL_ARGMAX : PNB__POOL_EOS;
    if (o->status == PNB_OK && (size_t)c->eos_id >= c->vocab_size)
        o->status =
            pnb__fail(err, PNB_ARG,
                      "%s: texts are pooled at eos_token_id %lld%s, which is outside "
                      "vocab_size %zu",
                      o->where, (long long)c->eos_id,
                      pnb__json_has(o, "eos_token_id") ? "" : " (the default)", c->vocab_size);
}

/* SigLIP's texts are read at the last position without a mask and projected by a Linear with bias
 * (text_model.head); CLIP's at the end token under a causal mask, by a matrix. */
static void read_text(pnb__config *c, pnb__jobj *o, bool siglip, pnb_error *err)
{
    read_common(&c->text, o, &defaults[siglip][1], err);
    c->vocab_size = (size_t)pnb__json_get_int_in(o, "vocab_size", siglip ? 32000 : 49408, 1,
                                                 PNB__MAX_VOCAB, err);
    c->context_length = (size_t)pnb__json_get_int_in(o, "max_position_embeddings", siglip ? 64 : 77,
                                                     1, PNB__MAX_WIDTH, err);
    c->causal = !siglip;
    c->text.pool = PNB__POOL_LAST;
    c->text.projection = siglip ? PNB__PROJECT_LINEAR : PNB__PROJECT_MATRIX;
    if (!siglip)
        read_clip_pool(c, o, err);
}

/* The doubled section of old files: same values, or nobody can say which one holds. */
static void check_doubled(pnb__jobj *top, const char *section, const char *doubled, pnb_error *err)
{
    const char *key;
    json_t *value, *first = json_object_get(top->obj, section);
    json_t *second = json_object_get(top->obj, doubled);
    if (top->status != PNB_OK || !json_is_object(second))
        return;
    json_object_foreach(second, key, value)
    {
        bool matters = is_listed(key, tower_keys, PNB_COUNT(tower_keys));
        if (matters && !json_equal(value, json_object_get(first, key))) {
            top->status = pnb__fail(err, PNB_FORMAT, "%s: %s and %s disagree about %s", top->where,
                                    section, doubled, key);
            return;
        }
    }
}

/* One section of a two-tower file. Keys that are missing have their defaults, but a section that is
 * missing makes it a file of something else. */
static pnb_status read_section(pnb__config *c, pnb__jobj *top, bool is_text, bool siglip,
                               pnb_error *err)
{
    char where[300];
    const char *name = is_text ? "text_config" : "vision_config";
    snprintf(where, sizeof where, "%.270s: %s", top->where, name);
    json_t *value = pnb__json_get_object(top, name, err);
    if (top->status == PNB_OK && value == NULL)
        return pnb__fail(err, PNB_FORMAT, "%s is missing", where);
    if (top->status != PNB_OK)
        return top->status;
    pnb__jobj o = pnb__json_object(value, where, err);
    check_keys(&o, true, false, err);
    is_text ? read_text(c, &o, siglip, err) : read_vision(c, &o, siglip, err);
    if (siglip && is_text)
        c->embed_dim = (size_t)pnb__json_get_int_in(&o, "projection_size", (int64_t)c->text.width,
                                                    1, PNB__MAX_WIDTH, err);
    check_doubled(top, name, is_text ? "text_config_dict" : "vision_config_dict", err);
    return o.status != PNB_OK ? o.status : top->status;
}

/* Both sections, then what is the pair's: CLIP's shared width projection_dim, which both towers are
 * projected to; SigLIP has none for pictures, so its texts must be projected to the image tower's
 * own width. SigLIP adds the bias b, which starts at -10 (Zhai et al. 2023, section 3.2): with one
 * pair right among B, logits near 0 would begin with a large loss of the wrong ones. */
static pnb_status read_pair(pnb__config *c, pnb__jobj *top, bool siglip, pnb_error *err)
{
    pnb_status status = PNB_OK;
    check_keys(top, false, true, err);
    PNB_TRY(top->status);
    PNB_TRY(read_section(c, top, true, siglip, err));
    PNB_TRY(read_section(c, top, false, siglip, err));
    c->has_logit_scale = true;
    c->has_logit_bias = siglip;
    c->init_logit_scale = pnb__json_get_double(top, "logit_scale_init_value", log(1 / 0.07), err);
    c->init_logit_bias = siglip ? -10 : 0; /* no key has it */
    if (!siglip)
        c->embed_dim = (size_t)pnb__json_get_int_in(top, "projection_dim", CLIP_PROJECTION, 1,
                                                    PNB__MAX_WIDTH, err);
    else if (c->embed_dim != c->vision.width)
        status =
            pnb__fail(err, PNB_ARG, "%s: texts are projected to %zu, the image tower is %zu wide",
                      top->where, c->embed_dim, c->vision.width);
    if (status == PNB_OK)
        status = top->status;
done:
    return status;
}

/* A tower alone: the whole file is its section. Is it stored with its projection? CLIPVisionModel
 * is without, CLIPVisionModelWithProjection with it; "architectures" may say or not, so the weights
 * are asked (pnb__config_fit). SigLIP's towers alone carry theirs always. */
static void read_alone(pnb__config *c, pnb__jobj *o, bool is_text, bool siglip, pnb_error *err)
{
    check_keys(o, true, false, err);
    is_text ? read_text(c, o, siglip, err) : read_vision(c, o, siglip, err);
    pnb__tower_config *t = is_text ? &c->text : &c->vision;
    if (siglip) {
        c->embed_dim = t->width;
        if (is_text)
            c->embed_dim = (size_t)pnb__json_get_int_in(o, "projection_size", (int64_t)t->width, 1,
                                                        PNB__MAX_WIDTH, err);
        return;
    }
    c->projection_from_file = true;
    c->embed_dim =
        (size_t)pnb__json_get_int_in(o, "projection_dim", CLIP_PROJECTION, 1, PNB__MAX_WIDTH, err);
}

/* Places in model_types: the pair, its image tower, its text tower, of CLIP and then of SigLIP. */
pnb_status pnb__config_read_hf(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    pnb__config c = {.text_unc_source = PNB_TEXT_UNC_PROJECTED_MEAN, .eos_id = -1};
    pnb__jobj top = pnb__json_object(root, where, err);
    const char *type = pnb__json_get_string(&top, "model_type", "", err);
    if (top.status != PNB_OK)
        return top.status;
    size_t i = 0;
    while (i < PNB_COUNT(model_types) && strcmp(type, model_types[i]) != 0)
        i++;
    if (i == PNB_COUNT(model_types))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: model_type \"%s\" is not read; clip, siglip and their vision and "
                         "text towers (clip_vision_model, ...) are",
                         where, type);
    bool siglip = i >= 3;
    c.family = siglip ? PNB__FAMILY_SIGLIP : PNB__FAMILY_CLIP;
    if (i % 3 != 0)
        read_alone(&c, &top, i % 3 == 2, siglip, err);
    else
        top.status = read_pair(&c, &top, siglip, err);
    if (top.status == PNB_OK)
        *out = c;
    return top.status;
}
