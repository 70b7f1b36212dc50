/* A family of models that the library does not have, added as any family is: its calls, and a row
 * behind those of the list. Its towers are no transformers: pictures go through a convolution,
 * texts through a GRU that is read where they end; each ends in whatever family of distributions
 * the configuration says:
 *
 *     {"model_type":"toy", "embed_dim":D, "width":C, "image_size":S, "context":T, "words":V,
 *      "image_ends_in":"point", "text_ends_in":"vmf"}
 *
 *     image  f = mean over places of relu(W * pixels)       3x3, stride 2, padding 1; f (C)
 *     text   h_t = GRU(E[id_t], h_{t-1}),  f = h_length      length: up to the last id that is not
 * 0 both   mean = f P^T, and log_var = f Q^T + q (D), kappa = exp(f Q^T + q) (1), or inv_alpha and
 *            beta, exp(f Q^T + q) of (2D)
 *
 * A program that includes this is linked without src/models/family_table.c: this is its table. */
#ifndef PNB_TESTS_MODELS_TOY_FAMILY_H
#define PNB_TESTS_MODELS_TOY_FAMILY_H

#include <string.h>

#include "models/tower.h"

typedef struct toy_config {
    pnb_family ends_in[PNB__N_TOWERS];
    size_t width;
} toy_config;

typedef struct toy_tower {
    pnb__param *conv;                        /* image: (C,3,3,3) */
    pnb__param *words;                       /* text: (V,C) */
    pnb__param *in_w, *in_b, *hid_w, *hid_b; /* GRU: (3C,C), (3C) of both */
    pnb__param *mean_w;                      /* (D,C) */
    pnb__param *spread_w, *spread_b;         /* (n,C), (n); NULL for points */
} toy_tower;

static toy_config toy_of(const pnb__config *c)
{
    toy_config toy;
    pnb__config_get_own(c, &toy, sizeof toy);
    return toy;
}

/* ---- configuration ---- */

static bool toy_claims(const json_t *root)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    return type != NULL && strcmp(type, "toy") == 0;
}

static pnb_status toy_read_config(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    static const char *const keys[] = {"model_type", "embed_dim", "width",         "image_size",
                                       "context",    "words",     "image_ends_in", "text_ends_in"};
    pnb__jobj o = pnb__json_object(root, where, err);
    toy_config toy = {.width = 0};
    pnb__json_check_keys(&o, keys, PNB_COUNT(keys), err);
    out->embed_dim = (size_t)pnb__json_get_int_in(&o, "embed_dim", 1, 1, 64, err);
    out->image_height = out->image_width =
        (size_t)pnb__json_get_int_in(&o, "image_size", 8, 1, 64, err);
    out->context_length = (size_t)pnb__json_get_int_in(&o, "context", 4, 1, 64, err);
    out->vocab_size = (size_t)pnb__json_get_int_in(&o, "words", 2, 1, 4096, err);
    toy.width = (size_t)pnb__json_get_int_in(&o, "width", 1, 1, 64, err);
    const char *image = pnb__json_get_string(&o, "image_ends_in", "point", err);
    const char *text = pnb__json_get_string(&o, "text_ends_in", "point", err);
    if (o.status != PNB_OK)
        return o.status;
    if (!pnb_family_from_name(&toy.ends_in[PNB__IMAGE_SIDE], image) ||
        !pnb_family_from_name(&toy.ends_in[PNB__TEXT_SIDE], text))
        return pnb__fail(err, PNB_ARG, "%s: no family of embeddings is called %s or %s", where,
                         image, text);
    out->vision.present = out->text.present = true;
    out->has_logit_scale = true;
    out->init_logit_scale = 1;
    pnb__config_set_own(out, &toy, sizeof toy);
    return PNB_OK;
}

/* ---- both towers ---- */

static pnb_family toy_image_ends_in(const pnb__config *c)
{
    return toy_of(c).ends_in[PNB__IMAGE_SIDE];
}

static pnb_family toy_text_ends_in(const pnb__config *c)
{
    return toy_of(c).ends_in[PNB__TEXT_SIDE];
}

/* Numbers a row beside the mean. */
static size_t toy_n_spread(pnb_family family, size_t dim)
{
    switch (family) {
    case PNB_GAUSSIAN_DIAG:
        return dim;
    case PNB_VMF:
    case PNB_POWER_SPHERICAL:
        return 1;
    case PNB_GEN_GAUSSIAN:
        return 2 * dim;
    default:
        return 0;
    }
}

static pnb__param *toy_matrix(pnb__weights *w, pnb__side side, const char *name, size_t rows,
                              size_t columns)
{
    return pnb__declare_matrix(w, side, name, (size_t[]){rows, columns}, PNB__INIT_NORMAL, 0.4);
}

static void toy_declare_end(pnb__weights *w, const pnb__config *c, pnb__side side, toy_tower *t)
{
    bool is_text = side == PNB__TEXT_SIDE;
    toy_config toy = toy_of(c);
    size_t n = toy_n_spread(toy.ends_in[side], c->embed_dim);
    t->mean_w = toy_matrix(w, side, is_text ? "text.mean" : "visual.mean", c->embed_dim, toy.width);
    if (n == 0)
        return;
    t->spread_w = toy_matrix(w, side, is_text ? "text.spread.w" : "visual.spread.w", n, toy.width);
    t->spread_b = pnb__declare_vector(w, side, is_text ? "text.spread.b" : "visual.spread.b", n,
                                      PNB__INIT_UNIFORM, 1);
}

/* features (B,C) to what the tower ends in */
static pnb__dist toy_end(const toy_tower *t, const pnb__config *c, pnb__side side, pnb__graph *g,
                         pnb__tensor *features, bool unit)
{
    pnb_family family = toy_of(c).ends_in[side];
    pnb__dist out = {.mean = pnb__linear(features, pnb__param_tensor(g, t->mean_w), NULL)};
    size_t n_batch = pnb__dim(features, 0);
    out.mean = pnb__unit_rows(out.mean, unit && family != PNB_GEN_GAUSSIAN);
    if (family == PNB_POINT)
        return out;
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, t->spread_b), .act = PNB__IDENTITY};
    pnb__tensor *spread = pnb__linear(features, pnb__param_tensor(g, t->spread_w), &opts);
    if (family == PNB_GAUSSIAN_DIAG) {
        out.log_var = spread;
        return out;
    }
    spread = pnb__apply(PNB__EXP, spread);
    if (family == PNB_GEN_GAUSSIAN) {
        out.inv_alpha = pnb__slice(spread, 1, 0, c->embed_dim);
        out.beta = pnb__slice(spread, 1, c->embed_dim, c->embed_dim);
    } else {
        out.kappa = pnb__reshape(spread, 1, &n_batch);
    }
    return out;
}

/* ---- image ---- */

static void toy_declare_image(pnb__weights *w, const pnb__config *c)
{
    toy_tower *t = pnb__declare_tower(w, PNB__IMAGE_SIDE, sizeof *t);
    if (t == NULL)
        return;
    t->conv = pnb__declare(w, PNB__IMAGE_SIDE,
                           &(pnb__declared){.name = "visual.conv",
                                            .n_dims = 4,
                                            .shape = {toy_of(c).width, 3, 3, 3},
                                            .init = PNB__INIT_NORMAL,
                                            .value = 0.3});
    toy_declare_end(w, c, PNB__IMAGE_SIDE, t);
}

static pnb__dist toy_build_image(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                                 const pnb__tower_in *in, bool unit)
{
    const toy_tower *t = w->tower[PNB__IMAGE_SIDE];
    pnb__tensor *x = pnb__permute(in->pixels, (int[]){0, 2, 3, 1}); /* channels innermost */
    x = pnb__conv2d(x, pnb__param_tensor(g, t->conv), &(pnb__conv2d_opts){.stride = 2, .pad = 1});
    x = pnb__apply(PNB__RELU, x);
    size_t places[3] = {pnb__dim(x, 0), pnb__dim(x, 1) * pnb__dim(x, 2), pnb__dim(x, 3)};
    x = pnb__reshape(x, 3, places);
    return toy_end(t, c, PNB__IMAGE_SIDE, g, pnb__mean(x, 1), unit);
}

static const pnb__tower_calls toy_image = {
    .family = toy_image_ends_in, .declare = toy_declare_image, .build = toy_build_image};

/* ---- text ---- */

static void toy_declare_text(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__TEXT_SIDE;
    size_t width = toy_of(c).width;
    toy_tower *t = pnb__declare_tower(w, side, sizeof *t);
    if (t == NULL)
        return;
    t->words = toy_matrix(w, side, "text.words", c->vocab_size, width);
    t->in_w = toy_matrix(w, side, "text.gru.in.w", 3 * width, width);
    t->in_b = pnb__declare_vector(w, side, "text.gru.in.b", 3 * width, PNB__INIT_UNIFORM, 0.5);
    t->hid_w = toy_matrix(w, side, "text.gru.hid.w", 3 * width, width);
    t->hid_b = pnb__declare_vector(w, side, "text.gru.hid.b", 3 * width, PNB__INIT_UNIFORM, 0.5);
    toy_declare_end(w, c, side, t);
}

static size_t toy_n_places(const pnb__config *c)
{
    (void)c;
    return 1;
}

/* The row of the state behind the last word. */
static pnb_status toy_find_places(const pnb__config *c, const int32_t *ids, size_t n, size_t row,
                                  int32_t places[PNB__MAX_PLACES], pnb_error *err)
{
    (void)c;
    size_t length = n;
    while (length > 0 && ids[length - 1] == 0)
        length--;
    if (length == 0)
        return pnb__fail(err, PNB_ARG, "text %zu has no words", row);
    places[0] = (int32_t)(row * n + length - 1);
    return PNB_OK;
}

static pnb__dist toy_build_text(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                                const pnb__tower_in *in, bool unit)
{
    const toy_tower *t = w->tower[PNB__TEXT_SIDE];
    size_t n_batch = pnb__dim(in->ids, 0), n_tokens = pnb__dim(in->ids, 1);
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, t->in_b), .act = PNB__IDENTITY};
    pnb__tensor *gates = pnb__linear(pnb__gather(pnb__param_tensor(g, t->words), in->ids),
                                     pnb__param_tensor(g, t->in_w), &opts);
    pnb__tensor *all = pnb__gru(gates, pnb__param_tensor(g, t->hid_w),
                                pnb__param_tensor(g, t->hid_b), NULL, &(pnb__gru_opts){0});
    all = pnb__reshape(all, 2, (size_t[]){n_batch * n_tokens, toy_of(c).width});
    return toy_end(t, c, PNB__TEXT_SIDE, g, pnb__gather(all, in->places[0]), unit);
}

static const pnb__tower_calls toy_text = {.family = toy_text_ends_in,
                                          .declare = toy_declare_text,
                                          .build = toy_build_text,
                                          .n_places = toy_n_places,
                                          .find_places = toy_find_places};

/* ---- the family, and the list with it ---- */

static const pnb__key_rule toy_image_rules[] = {{"visual.*", "img_enc.*", PNB__KEY_WHOLE}};
static const pnb__key_rule toy_text_rules[] = {
    {"text.gru.*", "txt_enc.rnn.*", PNB__KEY_WHOLE},
    {"text.words", "txt_enc.embed", PNB__KEY_WHOLE},
    {"text.mean", "txt_enc.mean", PNB__KEY_WHOLE},
    {"text.spread.*", "txt_enc.spread.*", PNB__KEY_WHOLE}};
static const pnb__key_mapping_table toy_image_keys = {"toy", toy_image_rules, 1};
static const pnb__key_mapping_table toy_text_keys = {"toy", toy_text_rules, 4};

static const pnb__family_calls toy_calls = {.name = "toy",
                                            .image = &toy_image,
                                            .text = &toy_text,
                                            .claims = toy_claims,
                                            .read_config = toy_read_config,
                                            .image_keys = &toy_image_keys,
                                            .text_keys = &toy_text_keys};

#define TOY_DECLARE(NAME, word) extern const pnb__family_calls pnb__##word##_calls;
PNB__MODEL_FAMILY_LIST(TOY_DECLARE)
#define TOY_ROW(NAME, word) &pnb__##word##_calls,
const pnb__family_calls *const pnb__model_families[] = {PNB__MODEL_FAMILY_LIST(TOY_ROW) &
                                                        toy_calls};
const size_t pnb__n_model_families = PNB_COUNT(pnb__model_families);

#endif
