/* PCME++ (Chun, ICLR 2024, section 3.2; released folders as hf_models/ of naver-ai/pcmepp runs
 * them): CLIP's two transformers, whose last U blocks stand twice, once for the mean and once for
 * the log-variance.
 *
 *     x_l  = block_l(x_{l-1}),  l = 1 .. L - U        shared by both
 *     m    = block_L(.. block_{L-U+1}(x_{L-U}))       the tower's own last blocks
 *     v    = unc_U(.. unc_1(x_{L-U}))                 uncertainty_transformer, other weights
 *     image  mu = LN_post(m[CLS]) P                   log sigma^2 = v[CLS] Q
 *     text   mu = LN_final(m[end]) P, causal mask     log sigma^2 = v[end] Q
 * P and Q (C,D) are bare matrices; in front of Q stands no norm, so that v keeps its length. The
 * reference calls log sigma^2 "std"; its loss and its reports take exp of it as a variance, unlike
 * PCME's log sigma. Its config.json is the arguments of the constructor, open_clip's beside
 * "unc_layers", U, of both sections.
 *
 * a and b are those of s(-a csd + b). Ours has log a, as all models do; a released file has them as
 * "negative_scale" and "shift", beside CLIP's "logit_scale", which no probability of it reads. */
#include <math.h>
#include <string.h>

#include "models/clip/clip.h"

/* What is kept beside the configuration of the transformers: U of each tower, and the log-variance
 * that a new one starts near. */
typedef struct settings {
    size_t n_unc[PNB__N_TOWERS];
    double start[PNB__N_TOWERS];
} settings;

static settings settings_of(const pnb__config *c)
{
    settings s;
    pnb__config_get_own(c, &s, sizeof s);
    return s;
}

/* ---- configuration ---- */

static bool has_unc_layers(const json_t *root, const char *section)
{
    return json_object_get(json_object_get(root, section), "unc_layers") != NULL;
}

/* No other family has this word; ProLIP's are embed_unc, and open_clip refuses it. */
static bool claims(const json_t *root)
{
    return has_unc_layers(root, "vision_cfg") || has_unc_layers(root, "text_cfg");
}

/* Arguments that the reference's class takes and does not look at: it has neither timm's nor
 * transformers' towers, and its text tower ends in a matrix whatever `proj` says. */
static const char *const unread[] = {"n_queries",
                                     "timm_model_name",
                                     "timm_model_pretrained",
                                     "timm_pool",
                                     "timm_proj",
                                     "timm_proj_bias",
                                     "timm_drop",
                                     "timm_drop_path",
                                     "hf_model_name",
                                     "hf_model_pretrained",
                                     "proj",
                                     "pooler_type"};
/* Towers that its code can build and no released model is. */
static const char *const must_be_false[] = {"global_average_pool", "input_patchnorm"};
/* Words of ProLIP's captions. */
static const char *const of_prolip[] = {"text_uncertainty_source", "text_unc_source"};

/* What only this family has is taken out of one section, and open_clip's words are left. */
static pnb_status take_own(json_t *root, pnb__side side, settings *s, const char *where,
                           pnb_error *err)
{
    const char *name = side == PNB__IMAGE_SIDE ? "vision_cfg" : "text_cfg";
    char inner[300];
    snprintf(inner, sizeof inner, "%.280s: %s", where, name);
    pnb__jobj o = pnb__json_object(json_object_get(root, name), inner, err);
    s->n_unc[side] = (size_t)pnb__json_get_int_in(&o, "unc_layers", 2, 1, PNB__MAX_LAYERS, err);
    s->start[side] = pnb__json_get_double(&o, "init_unc_bias", 0, err);
    for (size_t i = 0; i < PNB_COUNT(must_be_false); i++)
        if (pnb__json_has(&o, must_be_false[i]) &&
            pnb__json_get_bool(&o, must_be_false[i], false, err))
            pnb__config_unsupported(&o, must_be_false[i], "false", err);
    for (size_t i = 0; i < PNB_COUNT(of_prolip); i++)
        if (pnb__json_has(&o, of_prolip[i]))
            pnb__config_unsupported(&o, of_prolip[i], "absent in a PCME++ model", err);
    if (o.status == PNB_OK && (json_is_true(json_object_get(o.obj, "embed_cls")) ||
                               json_is_true(json_object_get(o.obj, "embed_unc"))))
        return pnb__fail(
            err, PNB_FORMAT,
            "%s: unc_layers is PCME++'s, embed_cls and embed_unc are ProLIP's; a model "
            "has one of them",
            inner);
    if (o.status != PNB_OK)
        return o.status;
    json_object_del(o.obj, "unc_layers");
    for (size_t i = 0; i < PNB_COUNT(must_be_false); i++)
        json_object_del(o.obj, must_be_false[i]);
    for (size_t i = 0; i < PNB_COUNT(unread); i++)
        json_object_del(o.obj, unread[i]);
    return PNB_OK;
}

/* Of what open_clip's words can say, the towers above. */
static pnb_status check_towers(const pnb__config *c, const settings *s, const char *where,
                               pnb_error *err)
{
    bool at_id = c->text.pool == PNB__POOL_ARGMAX || c->text.pool == PNB__POOL_EOS;
    if (c->vision.pool != PNB__POOL_CLASS || !at_id || !c->causal ||
        c->text.projection != PNB__PROJECT_MATRIX)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: a PCME++ reads pictures at the class token and texts, under a causal "
                         "mask, at the end token, and projects without a bias; take the settings "
                         "that say otherwise away",
                         where);
    const pnb__tower_config *towers[PNB__N_TOWERS] = {&c->vision, &c->text};
    for (pnb__side side = PNB__IMAGE_SIDE; side < PNB__N_TOWERS; side++)
        if (s->n_unc[side] > towers[side]->n_layers)
            return pnb__fail(err, PNB_ARG,
                             "%s: %s has unc_layers %zu, which must be at most its layers, %zu",
                             where, side == PNB__IMAGE_SIDE ? "vision_cfg" : "text_cfg",
                             s->n_unc[side], towers[side]->n_layers);
    return PNB_OK;
}

/* a = b = 5, where the reference's loss starts them, unless the configuration says. */
static pnb_status read_config(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    settings s = {.n_unc = {0}};
    pnb_status status = PNB_OK;
    json_t *plain = json_deep_copy(root);
    if (plain == NULL)
        return pnb__fail_nomem(err, 0);
    PNB_TRY(take_own(plain, PNB__IMAGE_SIDE, &s, where, err));
    PNB_TRY(take_own(plain, PNB__TEXT_SIDE, &s, where, err));
    PNB_TRY(pnb__config_read(out, plain, where, err));
    PNB_TRY(check_towers(out, &s, where, err));
    if (json_object_get(root, "init_logit_scale") == NULL)
        out->init_logit_scale = log(5);
    if (json_object_get(root, "init_logit_bias") == NULL)
        out->init_logit_bias = 5;
    out->has_logit_scale = out->has_logit_bias = true;
    pnb__config_set_own(out, &s, sizeof s);
done:
    json_decref(plain);
    return status;
}

/* ---- towers ---- */

static pnb_family ends_in(const pnb__config *c)
{
    (void)c;
    return PNB_GAUSSIAN_DIAG;
}

/* Q has no bias to start a log-variance l with, as ProLIP's head has. Where one is asked for, the
 * second bias of the last block starts around 1 and Q around l / C: v Q is then l (1 + mean of v
 * without that bias), and behind LN_pre that mean is near 0. At l = 0 all starts as in the
 * reference, where D variances of 1 outweigh every distance of unit means. */
static void start_near(pnb__weights *w, const pnb__block *blocks, size_t n, const pnb__param *q,
                       double l)
{
    if (l == 0 || w->failed || q == NULL) /* NULL: they are counted */
        return;
    pnb__declare_around(w, blocks[n - 1].proj_b, 1);
    pnb__declare_around(w, q, l / (double)q->shape[0]);
}

/* The blocks of v and Q, behind all that CLIP's tower has. */
static void declare_image(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__IMAGE_SIDE;
    pnb__image_transformer *v = pnb__image_transformer_declare(w, c);
    if (v == NULL)
        return;
    const settings s = settings_of(c);
    v->unc_blocks = pnb__transformer_declare_blocks(w, side, "visual.uncertainty_transformer",
                                                    &c->vision, s.n_unc[side]);
    v->unc_w = pnb__declare_matrix(w, side, "visual.uncertainty_proj",
                                   (size_t[]){c->vision.width, c->embed_dim}, PNB__INIT_NORMAL,
                                   c->vision.init_unc_std);
    start_near(w, v->unc_blocks, s.n_unc[side], v->unc_w, s.start[side]);
}

static void declare_text(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__TEXT_SIDE;
    pnb__text_transformer *t = pnb__text_transformer_declare(w, c);
    if (t == NULL)
        return;
    const settings s = settings_of(c);
    t->unc_blocks = pnb__transformer_declare_blocks(w, side, "text.uncertainty_transformer",
                                                    &c->text, s.n_unc[side]);
    t->unc_w = pnb__declare_matrix(w, side, "text.uncertainty_text_projection",
                                   (size_t[]){c->text.width, c->embed_dim}, PNB__INIT_NORMAL,
                                   c->text.init_unc_std);
    start_near(w, t->unc_blocks, s.n_unc[side], t->unc_w, s.start[side]);
}

/* Where each item is read: token 0, or the places of the text. */
typedef struct place {
    pnb__tensor *rows, *kv_len; /* NULL: token 0 */
} place;

/* n blocks, of which the last one is computed for the token that is read alone. (B,T,C) -> (B,C) */
static pnb__tensor *run_to(pnb__graph *g, const pnb__block *blocks, size_t n, pnb__tensor *x,
                           const place *at, const pnb__block_opts *opts)
{
    x = pnb__transformer_run(g, blocks, n - 1, x, opts);
    if (at->rows != NULL)
        x = pnb__block_apply_rows(g, &blocks[n - 1], x, at->rows, at->kv_len, opts);
    else
        x = pnb__block_apply_read(g, &blocks[n - 1], x, 0, 1, opts);
    return x == NULL ? NULL : pnb__transformer_token(x, 0);
}

/* Both ways start from the same x_{L-U}: its gradient is the sum of theirs. */
static pnb__dist build_image(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                             const pnb__tower_in *in, bool unit)
{
    const pnb__image_transformer *w = weights->tower[PNB__IMAGE_SIDE];
    const pnb__block_opts opts = pnb__transformer_opts(&c->vision, false);
    const place at = {NULL, NULL};
    size_t n_unc = settings_of(c).n_unc[PNB__IMAGE_SIDE], n_shared = c->vision.n_layers - n_unc;
    pnb__tensor *x = pnb__image_tokens(w, c, g, in);
    x = pnb__transformer_run(g, w->blocks, n_shared, x, &opts);
    if (x == NULL)
        return (pnb__dist){0};
    pnb__tensor *v = run_to(g, w->unc_blocks, n_unc, x, &at, &opts);
    pnb__tensor *m = run_to(g, w->blocks + n_shared, n_unc, x, &at, &opts);
    m = pnb__image_ln_post(w, c, g, m);
    pnb__tensor *mean = pnb__transformer_project(g, m, w->proj);
    return (pnb__dist){.mean = pnb__unit_rows(mean, unit),
                       .log_var = pnb__transformer_project(g, v, w->unc_w),
                       .activations = m};
}

static pnb__dist build_text(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                            const pnb__tower_in *in, bool unit)
{
    const pnb__text_transformer *w = weights->tower[PNB__TEXT_SIDE];
    const pnb__block_opts opts = pnb__transformer_opts(&c->text, true);
    const place at = {in->places[0], in->places[1]};
    size_t n_unc = settings_of(c).n_unc[PNB__TEXT_SIDE], n_shared = c->text.n_layers - n_unc;
    pnb__tensor *x = pnb__text_tokens(w, g, in->ids);
    if (x == NULL)
        return (pnb__dist){0};
    x = pnb__transformer_run(g, w->blocks, n_shared, x, &opts);
    if (x == NULL)
        return (pnb__dist){0};
    pnb__tensor *v = run_to(g, w->unc_blocks, n_unc, x, &at, &opts);
    pnb__tensor *m = run_to(g, w->blocks + n_shared, n_unc, x, &at, &opts);
    m = pnb__text_ln_final(w, c, g, m);
    return (pnb__dist){.mean = pnb__unit_rows(pnb__text_project(w, c, g, m), unit),
                       .log_var = pnb__transformer_project(g, v, w->unc_w),
                       .activations = m};
}

/* Both paths read a text where CLIP reads it. */
static size_t n_places(const pnb__config *c)
{
    return pnb__clip_text.n_places(c);
}

static pnb_status find_places(const pnb__config *c, const int32_t *ids, size_t n, size_t row,
                              int32_t places[PNB__MAX_PLACES], pnb_error *err)
{
    return pnb__clip_text.find_places(c, ids, n, row, places, err);
}

/* "log-variance by 2 blocks of its own behind block 10 of 12" */
static void describe(pnb_tower_info *out, size_t n_layers, size_t n_unc)
{
    snprintf(out->architecture, sizeof out->architecture,
             "log-variance by %zu block%s of its own behind block %zu of %zu", n_unc,
             n_unc == 1 ? "" : "s", n_layers - n_unc, n_layers);
}

static void describe_image(pnb_tower_info *out, const pnb__config *c)
{
    pnb__transformer_describe_image(out, c);
    describe(out, c->vision.n_layers, settings_of(c).n_unc[PNB__IMAGE_SIDE]);
}

static void describe_text(pnb_tower_info *out, const pnb__config *c)
{
    pnb__transformer_describe_text(out, c);
    describe(out, c->text.n_layers, settings_of(c).n_unc[PNB__TEXT_SIDE]);
}

static const pnb__tower_calls image = {
    .family = ends_in, .declare = declare_image, .build = build_image, .describe = describe_image};
static const pnb__tower_calls text = {.family = ends_in,
                                      .declare = declare_text,
                                      .build = build_text,
                                      .describe = describe_text,
                                      .n_places = n_places,
                                      .find_places = find_places};

/* ---- names in files ---- */

/* The released names: open_clip's, the text tower at the top, and the second path beside the
 * first. New models are saved under them too. */
static const pnb__key_rule image_rules[] = {{"visual.*", "visual.*", PNB__KEY_WHOLE}};
static const pnb__key_rule text_rules[] = {
    {"text.token_embedding.weight", "token_embedding.weight", PNB__KEY_WHOLE},
    {"text.positional_embedding", "positional_embedding", PNB__KEY_WHOLE},
    {"text.transformer.*", "transformer.*", PNB__KEY_WHOLE},
    {"text.uncertainty_transformer.*", "uncertainty_transformer.*", PNB__KEY_WHOLE},
    {"text.ln_final.*", "ln_final.*", PNB__KEY_WHOLE},
    {"text.text_projection", "text_projection", PNB__KEY_WHOLE},
    {"text.uncertainty_text_projection", "uncertainty_text_projection", PNB__KEY_WHOLE},
};
static const pnb__key_mapping_table image_keys = {"PCME++", image_rules, PNB_COUNT(image_rules)};
static const pnb__key_mapping_table text_keys = {"PCME++", text_rules, PNB_COUNT(text_rules)};

/* ---- the family ---- */

/* hf_example.py: transformers' CLIPProcessor, that is the shorter side to 224 by Pillow's bicubic,
 * the middle rounded down, RGB first, CLIP's mean and deviation. */
static void assume_pixels(pnb_preprocess *pp, const json_t *config)
{
    (void)config;
    pp->centre = PNB_CENTRE_FLOOR;
    pp->resize_first = false;
    pp->mode = PNB_FIT_SHORTEST;
}

/* What its code lays over CLIP's two towers: here the last projections. */
static bool is_head(const char *name)
{
    static const char *const names[] = {"visual.proj", "visual.uncertainty_proj",
                                        "text.text_projection", "text.uncertainty_text_projection"};
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What stands still in a first phase: the image tower (img_backbone_freeze_epochs), but for the
 * blocks of the log-variance, which no CLIP has. */
static bool is_trunk(const char *name)
{
    return pnb__starts_with(name, "visual.") && !is_head(name) &&
           !pnb__starts_with(name, "visual.uncertainty_transformer.");
}

const pnb__family_calls pnb__pcmepp_calls = {.name = "pcmepp",
                                             .image = &image,
                                             .text = &text,
                                             .claims = claims,
                                             .read_config = read_config,
                                             .image_keys = &image_keys,
                                             .text_keys = &text_keys,
                                             .plain_scale_key = "negative_scale",
                                             .plain_bias_key = "shift",
                                             .measure = "csd",
                                             .scale_is_distance = true,
                                             .set_sizes = pnb__transformer_set_sizes,
                                             .assume_pixels = assume_pixels,
                                             .tokenizer_source = pnb__clip_tokenizer_source,
                                             .trains = true,
                                             .is_trunk = is_trunk,
                                             .is_head = is_head};
