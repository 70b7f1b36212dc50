/* PCME (Chun et al. 2021) and its baselines as a family of models: a ResNet and its heads over
 * pictures, word vectors and bi-GRUs over captions.
 *
 *     config.json  {"model_type": "pcme", "embed_dim": D, "n_embeddings": K,
 *                   "attention": bool, "uncertainty": bool,
 *                   "init_logit_scale": log a, "init_logit_bias": b, "init_log_std": log sigma,
 *                   "vision_cfg": {"trunk": "resnet152", "image_size": 224, "frozen_norm": bool},
 *                   "text_cfg": {"vocab_size": V, "word_dim": 300, "context_length": T}}
 * A trunk may be described in place of named: "base", "layers" (four), "bottleneck". Or it is a
 * transformer in open_clip's words: a vision_cfg with "patch_size", a text_cfg with "layers"
 * (transformer_towers.h); each side by itself.
 *
 * a and b are those of the match probability s(2 (-a |z_i - z_t| + b)), the reference's
 * negative_scale and shift. Ours has log a, as all models do; a released file has a itself under
 * "criterion.", beside the arrays of its "model". */
#include <math.h>
#include <string.h>

#include "models/pcme/image_head.h"
#include "models/pcme/text_tower.h"
#include "models/pcme/transformer_towers.h"
#include "models/resnet/resnet.h"
#include "models/transformer/transformer.h"

#define CNN "visual.cnn."

/* What is kept beside the configuration that every family has. */
typedef struct settings {
    pnb__resnet_config trunk;
    pnb__pcme_config heads;
    bool is_vit, is_text_transformer; /* in place of the trunk, of words and GRUs */
} settings;

static settings settings_of(const pnb__config *c)
{
    settings s;
    pnb__config_get_own(c, &s, sizeof s);
    return s;
}

/* ---- configuration ---- */

/* No other family has this word; released files come without a configuration. */
static bool claims(const json_t *root)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    return type != NULL && strcmp(type, "pcme") == 0;
}

/* "layers": [3, 4, 6, 3] */
static void read_layers(pnb__jobj *o, pnb__resnet_config *trunk, pnb_error *err)
{
    const json_t *layers = json_object_get(o->obj, "layers");
    if (o->status != PNB_OK)
        return;
    if (json_array_size(layers) != PNB__RESNET_STAGES) {
        o->status = pnb__fail(err, PNB_FORMAT, "%s: layers must be %d numbers of blocks", o->where,
                              (int)PNB__RESNET_STAGES);
        return;
    }
    for (size_t i = 0; i < PNB__RESNET_STAGES; i++) {
        json_int_t n = json_integer_value(json_array_get(layers, i));
        trunk->layers[i] = n > 0 ? (size_t)n : 0; /* 0 is refused with the rest */
    }
}

/* One of the two ways to say which ResNet it is: by name, or block by block for a narrow one. */
static void read_trunk(pnb__jobj *o, pnb__resnet_config *trunk, pnb_error *err)
{
    const char *name = pnb__json_get_string(o, "trunk", NULL, err);
    bool is_described = json_object_get(o->obj, "layers") != NULL;
    if (o->status != PNB_OK)
        return;
    if ((name != NULL) == is_described) {
        o->status = pnb__fail(err, PNB_FORMAT,
                              "%s: a trunk is named by \"trunk\" or described by \"layers\", "
                              "\"base\" and \"bottleneck\": one of the two",
                              o->where);
    } else if (name != NULL) {
        o->status = pnb__resnet_config_named(trunk, name, err);
    } else {
        trunk->base = (size_t)pnb__json_get_int_in(o, "base", 64, 1, 1024, err);
        trunk->bottleneck = pnb__json_get_bool(o, "bottleneck", true, err);
        read_layers(o, trunk, err);
    }
    trunk->frozen = pnb__json_get_bool(o, "frozen_norm", false, err);
}

/* The trunk and the pictures it takes; the heads learn from it how many channels there are. */
static pnb_status read_image(pnb__config *out, json_t *section, settings *s, pnb_error *err)
{
    static const char *const keys[] = {"trunk",      "base",       "layers",
                                       "bottleneck", "image_size", "frozen_norm"};
    pnb__jobj o = pnb__json_object(section, "vision_cfg", err);
    pnb__json_check_keys(&o, keys, PNB_COUNT(keys), err);
    pnb__config_image_size(out, &o, 224, err);
    read_trunk(&o, &s->trunk, err);
    if (o.status == PNB_OK)
        o.status = pnb__resnet_config_check(&s->trunk, out->image_height, out->image_width, err);
    s->heads.image_dim = pnb__resnet_width(&s->trunk);
    out->vision.present = true;
    return o.status;
}

/* The vocabulary's size is the tokenizer's where a model is made anew. */
static pnb_status read_text(pnb__config *out, json_t *section, settings *s, pnb_error *err)
{
    static const char *const keys[] = {"vocab_size", "word_dim", "context_length",
                                       "tokenizer_kwargs"};
    pnb__jobj o = pnb__json_object(section, "text_cfg", err);
    pnb__json_check_keys(&o, keys, PNB_COUNT(keys), err);
    out->vocab_size = (size_t)pnb__json_get_int_in(&o, "vocab_size", 2, 2, PNB__MAX_VOCAB, err);
    out->context_length = (size_t)pnb__json_get_int_in(&o, "context_length", 64, 1, 4096, err);
    s->heads.word_dim = (size_t)pnb__json_get_int_in(&o, "word_dim", 300, 2, PNB__MAX_WIDTH, err);
    s->heads.vocab_size = out->vocab_size;
    out->text.present = true;
    return o.status;
}

/* Transformers first, whose reader knows nothing of what is there already: it is put back. */
static pnb_status read_towers(pnb__config *out, json_t *root, settings *s, const char *where,
                              pnb_error *err)
{
    json_t *vision = json_object_get(root, "vision_cfg"), *text = json_object_get(root, "text_cfg");
    pnb__config read = *out;
    pnb_status status = pnb__pcme_read_transformers(&read, root, where, err);
    read.embed_dim = out->embed_dim;
    read.n_embeddings = out->n_embeddings;
    read.has_logit_scale = read.has_logit_bias = true;
    read.init_logit_scale = out->init_logit_scale;
    read.init_logit_bias = out->init_logit_bias;
    *out = read;
    s->is_vit = pnb__pcme_is_vit(vision);
    s->is_text_transformer = pnb__pcme_is_text_transformer(text);
    s->heads.image_dim = out->vision.width;
    s->heads.word_dim = out->text.width;
    s->heads.vocab_size = out->vocab_size;
    if (status == PNB_OK && !s->is_vit)
        status = read_image(out, vision, s, err);
    if (status == PNB_OK && !s->is_text_transformer)
        status = read_text(out, text, s, err);
    return status;
}

/* A row of a set is all K embeddings beside each other, so that is the width that the rest sees. a
 * and b default to those of PCME on CUB. */
static pnb_status read_config(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    static const char *const keys[] = {
        "model_type",       "embed_dim",       "n_embeddings", "attention",  "uncertainty",
        "init_logit_scale", "init_logit_bias", "init_log_std", "vision_cfg", "text_cfg"};
    settings s = {.trunk = {.base = 0}};
    pnb__jobj o = pnb__json_object(root, where, err);
    pnb__json_check_keys(&o, keys, PNB_COUNT(keys), err);
    out->embed_dim = (size_t)pnb__json_get_int_in(&o, "embed_dim", 1024, 2, PNB__MAX_WIDTH, err);
    out->init_logit_scale = pnb__json_get_double(&o, "init_logit_scale", log(5), err);
    out->init_logit_bias = pnb__json_get_double(&o, "init_logit_bias", 5, err);
    out->has_logit_scale = out->has_logit_bias = true;
    s.heads.embed_dim = out->embed_dim;
    s.heads.n_embeddings = (size_t)pnb__json_get_int_in(&o, "n_embeddings", 1, 1, 64, err);
    out->n_embeddings = s.heads.n_embeddings;
    out->embed_dim *= s.heads.n_embeddings;
    s.heads.init_log_std = pnb__json_get_double(&o, "init_log_std", 0, err);
    s.heads.with_attention = pnb__json_get_bool(&o, "attention", true, err);
    s.heads.with_uncertainty = pnb__json_get_bool(&o, "uncertainty", true, err);
    json_t *vision = pnb__json_get_object(&o, "vision_cfg", err);
    json_t *text = pnb__json_get_object(&o, "text_cfg", err);
    pnb_status status = o.status;
    if (status == PNB_OK && (vision == NULL || text == NULL))
        status = pnb__fail(err, PNB_FORMAT, "%s: vision_cfg and text_cfg are both wanted", where);
    if (status == PNB_OK)
        status = read_towers(out, root, &s, where, err);
    if (status == PNB_OK)
        status = pnb__pcme_config_check(&s.heads, where, err);
    pnb__config_set_own(out, &s, sizeof s);
    return status;
}

/* ---- towers ---- */

/* What stands in w->tower of the image side. */
typedef struct image_tower {
    pnb__resnet trunk;
    pnb__pcme_image_head head;
} image_tower;

/* Gaussians with the uncertainty head (PCME), points without (VSE, PVSE); both towers alike. */
static pnb_family ends_in(const pnb__config *c)
{
    return settings_of(c).heads.with_uncertainty ? PNB_GAUSSIAN_DIAG : PNB_POINT;
}

/* The trunk first: the order of the reference's files. */
static void declare_image(pnb__weights *w, const pnb__config *c)
{
    settings s = settings_of(c);
    if (s.is_vit) {
        pnb__pcme_declare_vit(w, c, &s.heads);
        return;
    }
    image_tower *t = pnb__declare_tower(w, PNB__IMAGE_SIDE, sizeof *t);
    image_tower counted = {.head = {.fc = {NULL}}};
    t = t != NULL ? t : &counted;
    pnb__resnet_declare(w, &t->trunk, CNN, &s.trunk);
    pnb__pcme_declare_image_head(w, &s.heads, &t->head);
}

/* z (B,h,w,C) as positions (B, h w, C), which the heads attend to, and its mean v (B,C). */
static pnb__dist build_image(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                             const pnb__tower_in *in, bool unit)
{
    settings s = settings_of(c);
    if (s.is_vit)
        return pnb__pcme_build_vit(w, c, g, in, unit);
    const image_tower *t = w->tower[PNB__IMAGE_SIDE];
    pnb__resnet_out z = pnb__resnet_build(&t->trunk, &s.trunk, g, in->pixels);
    pnb__tensor *x =
        pnb__reshape(z.map, 3,
                     (size_t[]){pnb__dim(z.map, 0), pnb__dim(z.map, 1) * pnb__dim(z.map, 2),
                                pnb__dim(z.map, 3)});
    pnb__pcme_embedding e = pnb__pcme_image_head_apply(g, &t->head, x, z.pooled, unit);
    return pnb__pcme_dist(&e);
}

/* Word vectors, then GRU and heads, in the reference's order. */
static void declare_text(pnb__weights *w, const pnb__config *c)
{
    settings s = settings_of(c);
    if (s.is_text_transformer)
        pnb__pcme_declare_text_transformer(w, c, &s.heads);
    else
        pnb__pcme_declare_text(w, &s.heads);
}

static pnb__dist build_text(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                            const pnb__tower_in *in, bool unit)
{
    return settings_of(c).is_text_transformer ? pnb__pcme_build_text_transformer(w, c, g, in, unit)
                                              : pnb__pcme_build_text(w, c, g, in, unit);
}

/* What a transformer's own words do not tell: where the heads read it. */
static void describe_heads(pnb_tower_info *out, const char *own, bool with_attention)
{
    out->pooling = own;
    snprintf(out->architecture, sizeof out->architecture, "heads of PCME over its %s%s",
             out->n_patches > 0 ? "patches" : "tokens", with_attention ? "; local attention" : "");
}

/* "ResNet 3-8-36-3 of 64, 2048 channels; local attention" */
static void describe_image(pnb_tower_info *out, const pnb__config *c)
{
    settings s = settings_of(c);
    const size_t *n = s.trunk.layers;
    if (s.is_vit) {
        pnb__transformer_describe_image(out, c);
        describe_heads(out, out->pooling, s.heads.with_attention);
        return;
    }
    snprintf(out->architecture, sizeof out->architecture,
             "ResNet %zu-%zu-%zu-%zu of %zu, %zu channels%s", n[0], n[1], n[2], n[3], s.trunk.base,
             pnb__resnet_width(&s.trunk), s.heads.with_attention ? "; local attention" : "");
}

/* "bi-GRU over words of 300, 1024 states; local attention" */
static void describe_text(pnb_tower_info *out, const pnb__config *c)
{
    settings s = settings_of(c);
    if (s.is_text_transformer) {
        pnb__transformer_describe_text(out, c);
        describe_heads(out, "last word", s.heads.with_attention);
        return;
    }
    snprintf(out->architecture, sizeof out->architecture, "bi-GRU over words of %zu, %zu states%s",
             s.heads.word_dim, s.heads.embed_dim,
             s.heads.with_attention ? "; local attention" : "");
}

static const pnb__tower_calls image = {
    .family = ends_in, .declare = declare_image, .build = build_image, .describe = describe_image};
static const pnb__tower_calls text = {.family = ends_in,
                                      .declare = declare_text,
                                      .build = build_text,
                                      .describe = describe_text,
                                      .n_places = pnb__pcme_n_places,
                                      .find_places = pnb__pcme_find_places};

/* ---- the family ---- */

/* The reference's validation: the shorter side to 256 by Pillow's bilinear, the middle 224, RGB
 * first, ImageNet's mean and deviation (datasets/_transforms.py). In other sizes alike. */
static void assume_pixels(pnb_preprocess *pp, const json_t *config)
{
    static const float mean[3] = {0.485F, 0.456F, 0.406F}, std[3] = {0.229F, 0.224F, 0.225F};
    (void)config;
    pp->filter = PNB_FILTER_BILINEAR;
    pp->mode = PNB_FIT_SHORTEST;
    pp->centre = PNB_CENTRE_ROUND;
    pp->resize_to = pp->width * 8 / 7;
    memcpy(pp->mean, mean, sizeof mean);
    memcpy(pp->std, std, sizeof std);
}

/* Convolutions and GRUs take any size; a transformer has a table of positions to resize. Each tower
 * is asked for its own sizes alone. */
static pnb_status set_sizes(pnb__config *c, const pnb_model_load_opts *o, pnb__resize *resize,
                            pnb_error *err)
{
    settings s = settings_of(c);
    pnb_model_load_opts of_tables = *o;
    if (!s.is_text_transformer) {
        of_tables.context_length = 0;
        if (o->context_length > 0)
            c->context_length = o->context_length;
    }
    if (s.is_vit || (o->image_height == 0 && o->image_width == 0))
        return pnb__transformer_set_sizes(c, &of_tables, resize, err);
    c->image_height = o->image_height;
    c->image_width = o->image_width;
    of_tables.image_height = of_tables.image_width = 0;
    pnb_status status = pnb__transformer_set_sizes(c, &of_tables, resize, err);
    return status == PNB_OK
               ? pnb__resnet_config_check(&s.trunk, c->image_height, c->image_width, err)
               : status;
}

/* What `check` and errors tell who has a released file alone. */
static const char *tokenizer_source(const pnb__config *c)
{
    (void)c;
    return "the vocabulary it was trained with (vocab.pkl as released, vocab.txt, or "
           "tokenizer.json)";
}

/* What stands behind a trunk. The GRU that reads the words is trained from nothing as well. */
static bool is_head(const char *name)
{
    static const char *const heads[] = {"visual.fc.", "visual.pie_net.", "visual.uncertain_net.",
                                        "text.fc.",   "text.pie_net.",   "text.uncertain_net.",
                                        "text.rnn."};
    for (size_t i = 0; i < PNB_COUNT(heads); i++)
        if (pnb__starts_with(name, heads[i]))
            return true;
    return false;
}

/* What comes from elsewhere: the ResNet, and the word vectors (img_finetune, txt_finetune); or the
 * transformers. */
static bool is_trunk(const char *name)
{
    return (pnb__starts_with(name, "visual.") || pnb__starts_with(name, "text.")) && !is_head(name);
}

/* Layer norms see one item at a time. */
static bool needs_whole_batch(const pnb__config *c)
{
    settings s = settings_of(c);
    return !s.is_vit && !s.trunk.frozen;
}

const pnb__family_calls pnb__pcme_calls = {.name = "pcme",
                                           .image = &image,
                                           .text = &text,
                                           .claims = claims,
                                           .read_config = read_config,
                                           .config_of = pnb__pcme_config_of,
                                           .image_keys = &pnb__pcme_image_keys,
                                           .text_keys = &pnb__pcme_text_keys,
                                           .point_text_keys = &pnb__pcme_point_text_keys,
                                           .plain_scale_key = "criterion.negative_scale",
                                           .plain_bias_key = "criterion.shift",
                                           .set_sizes = set_sizes,
                                           .measure = "match_prob",
                                           .scale_is_match = true,
                                           .assume_pixels = assume_pixels,
                                           .tokenizer_source = tokenizer_source,
                                           .rows_are_words = true,
                                           .trains = true,
                                           .is_trunk = is_trunk,
                                           .is_head = is_head,
                                           .needs_whole_batch = needs_whole_batch};
