/* ProLIP (Chun et al., ICLR 2025, section 3; prolip/transformer.py): two transformers that end in
 * Gaussians N(mu, diag(exp(s))). Each has a token [UNC] beside [CLS], which gathers what the
 * log-variance s is made of, at the price of one token more.
 *
 *     image  y  = LN_post(x_L[CLS], x_L[UNC])          tokens [CLS],[UNC],patches
 *            mu = LN_post(y[CLS]) P                    P (C,D)
 *            s  = y[UNC] W^T + b                       W (D,C)
 *     text   y  = LN_final(x_L[UNC], x_L[CLS])         tokens text,[UNC],[CLS]; no mask of any kind
 *            mu = y[CLS] W_p^T + b_p                   W_p (D,C)
 *            s  = mu W^T + b        released weights   W (D,D), C = D
 *            s  = y[UNC] W^T + b    the paper          W (D,C)
 * Paper and reference code differ twice, and weights decide for the code: [CLS] of a picture is
 * normalised by LN_post a second time, and a caption's log-variance is read from its projected mean
 * before L2, not from [UNC] (docs/numerics.md#prolip-text-log-variance).
 * The bias b starts at -10 (section 3.1): exp(-10) is 4.5e-5 a dimension, so that training starts
 * close to points, which makes it stable. */
#include "models/clip/clip.h"
#include "models/siglip/siglip.h"

/* A ProLIP whose configuration has [CLS] but no [UNC] ends in points. */
static pnb_family image_family(const pnb__config *c)
{
    return c->vision.has_unc ? PNB_GAUSSIAN_DIAG : PNB_POINT;
}

static pnb_family text_family(const pnb__config *c)
{
    return c->text.has_unc ? PNB_GAUSSIAN_DIAG : PNB_POINT;
}

/* ---- image ---- */

static void declare_image(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__IMAGE_SIDE;
    pnb__image_transformer *v = pnb__image_transformer_declare(w, c);
    if (v == NULL || !c->vision.has_unc)
        return;
    v->unc_w = pnb__declare_matrix(w, side, "visual.uncertainty_proj.weight",
                                   (size_t[]){c->embed_dim, c->vision.width}, PNB__INIT_NORMAL,
                                   c->vision.init_unc_std);
    v->unc_b = pnb__declare_vector(w, side, "visual.uncertainty_proj.bias", c->embed_dim,
                                   PNB__INIT_CONSTANT, c->vision.init_unc_bias);
}

static pnb__dist build_image(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                             const pnb__tower_in *in, bool unit)
{
    enum { CLS, UNC, N_READ };
    const pnb__image_transformer *w = weights->tower[PNB__IMAGE_SIDE];
    if (!c->vision.has_unc)
        return pnb__clip_image(weights, c, g, in, unit);
    pnb__tensor *x = pnb__image_tokens(w, c, g, in);
    x = pnb__image_blocks(w, c, g, x, N_READ);
    x = pnb__image_ln_post(w, c, g, x);
    pnb__dist out = {0};
    pnb__tensor *cls = pnb__transformer_token(x, CLS);
    cls = pnb__image_ln_post(w, c, g, cls); /* for the second time, as released weights want it */
    out.log_var = pnb__linear_apply(g, pnb__transformer_token(x, UNC), w->unc_w, w->unc_b);
    out.mean = pnb__unit_rows(pnb__transformer_project(g, cls, w->proj), unit);
    out.activations = cls;
    return out;
}

static const pnb__tower_calls image = {.family = image_family,
                                       .declare = declare_image,
                                       .build = build_image,
                                       .describe = pnb__transformer_describe_image};

/* ---- text ---- */

static void declare_text(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__TEXT_SIDE;
    pnb__text_transformer *t = pnb__text_transformer_declare(w, c);
    if (t == NULL || !c->text.has_unc)
        return;
    t->unc_w = pnb__declare_matrix(w, side, "text.text_uncertainty_projection.weight",
                                   (size_t[]){c->embed_dim, c->text.width}, PNB__INIT_NORMAL,
                                   c->text.init_unc_std);
    t->unc_b = pnb__declare_vector(w, side, "text.text_uncertainty_projection.bias", c->embed_dim,
                                   PNB__INIT_CONSTANT, c->text.init_unc_bias);
}

/* [UNC] of the last block is computed only where the log-variance is read from it. */
static pnb__dist build_text(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                            const pnb__tower_in *in, bool unit)
{
    const pnb__text_transformer *w = weights->tower[PNB__TEXT_SIDE];
    bool from_token = c->text.has_unc && c->text_unc_source == PNB_TEXT_UNC_TOKEN;
    size_t n_read = from_token ? 2 : 1; /* the last ones: [UNC],[CLS], or [CLS] */
    pnb__tensor *x = pnb__text_tokens(w, g, in->ids);
    if (x == NULL)
        return (pnb__dist){0};
    x = pnb__text_blocks(w, c, g, x, n_read);
    x = pnb__text_ln_final(w, c, g, x);
    pnb__tensor *cls = pnb__transformer_token(x, n_read - 1);
    pnb__tensor *mean = pnb__text_project(w, c, g, cls);
    pnb__dist out = {.mean = pnb__unit_rows(mean, unit)};
    if (c->text.projection != PNB__PROJECT_NONE)
        out.activations = cls;
    if (c->text.has_unc)
        out.log_var = pnb__linear_apply(g, from_token ? pnb__transformer_token(x, 0) : mean,
                                        w->unc_w, w->unc_b);
    return out;
}

static const pnb__tower_calls text = {.family = text_family,
                                      .declare = declare_text,
                                      .build = build_text,
                                      .describe = pnb__transformer_describe_text};

/* ---- the family ---- */

/* Released folders hold weights and constructor arguments alone; their pictures are prepared by
 * transformers' CLIPProcessor (README of the reference). */
static void assume_pixels(pnb_preprocess *pp, const json_t *config)
{
    (void)config;
    pp->centre = PNB_CENTRE_FLOOR;
    pp->resize_first = false;
    pp->mode = PNB_FIT_SHORTEST;
}

const pnb__family_calls pnb__prolip_calls = {.name = "prolip",
                                             .image = &image,
                                             .text = &text,
                                             .set_sizes = pnb__transformer_set_sizes,
                                             .assume_pixels = assume_pixels,
                                             .tokenizer_source = pnb__siglip_tokenizer_source,
                                             .trains = true};
