/* CLIP (Radford et al. 2021, sections 2.3 to 2.5; open_clip's CLIP, whose variants are options
 * here): two transformers that end in points.
 *
 *     image  e = LN_post(x_L[CLS]) P_v                P_v (C,D)
 *            e = mean_i LN_post(x_L[i]) P_v           pool_type "avg", i over patches
 *     text   e = LN_final(x_L[end]) P_t               P_t (C,D)
 * Texts are under a causal mask, so position i holds what the words up to i say, and the end token
 * is where a text is read. OpenAI's code finds it as the largest id (the end token has the last id
 * of its vocabulary), transformers as the first eos_token_id: the same place unless a tokenizer was
 * extended. */
#include "models/clip/clip.h"

pnb_family pnb__clip_family(const pnb__config *c)
{
    (void)c;
    return PNB_POINT;
}

/* ---- image ---- */

void pnb__clip_declare_image(pnb__weights *w, const pnb__config *c)
{
    (void)pnb__image_transformer_declare(w, c);
}

/* The vector of each picture that is projected, (B,n,C) -> (B,C): [CLS], or the mean of the patches
 * behind it. */
static pnb__tensor *pool(pnb__tensor *x, const pnb__config *c)
{
    pnb__tensor *pooled = pnb__transformer_token(x, 0);
    if (c->vision.pool == PNB__POOL_AVERAGE)
        pooled = pnb__mean(pnb__slice(x, 1, 1, pnb__dim(x, 1) - 1), 1);
    return pooled;
}

/* LN_post stands before pooling, where it is one row a token, or behind it (final_ln_after_pool):
 * for [CLS] the same numbers, for an average not. */
pnb__dist pnb__clip_image(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                          const pnb__tower_in *in, bool unit)
{
    const pnb__image_transformer *w = weights->tower[PNB__IMAGE_SIDE];
    pnb__tensor *x = pnb__image_tokens(w, c, g, in);
    bool class_only = c->vision.pool == PNB__POOL_CLASS;
    x = pnb__image_blocks(w, c, g, x, class_only ? pnb__config_n_extra(c) : pnb__dim(x, 1));
    if (!c->norm_after_pool)
        x = pnb__image_ln_post(w, c, g, x);
    pnb__tensor *pooled = pool(x, c);
    if (c->norm_after_pool)
        pooled = pnb__image_ln_post(w, c, g, pooled);
    if (w->proj == NULL)
        return (pnb__dist){.mean = pnb__unit_rows(pooled, unit)};
    pnb__tensor *mean = pnb__transformer_project(g, pooled, w->proj);
    return (pnb__dist){.mean = pnb__unit_rows(mean, unit), .activations = pooled};
}

static const pnb__tower_calls image = {.family = pnb__clip_family,
                                       .declare = pnb__clip_declare_image,
                                       .build = pnb__clip_image,
                                       .describe = pnb__transformer_describe_image};

/* ---- text ---- */

static void declare_text(pnb__weights *w, const pnb__config *c)
{
    (void)pnb__text_transformer_declare(w, c);
}

static bool pools_at_id(const pnb__config *c)
{
    return c->text.pool == PNB__POOL_ARGMAX || c->text.pool == PNB__POOL_EOS;
}

/* places[0]: the row b*T + position a text is read at; places[1]: how many tokens that position may
 * see, which is what a causal mask is for a single query. */
static size_t n_places(const pnb__config *c)
{
    if (!pools_at_id(c))
        return 0;
    return c->causal ? 2 : 1;
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

static pnb_status find_places(const pnb__config *c, const int32_t *ids, size_t n, size_t row,
                              int32_t places[PNB__MAX_PLACES], pnb_error *err)
{
    ptrdiff_t at = pooled_position(c, ids, n);
    if (at < 0)
        return pnb__fail(err, PNB_ARG,
                         "text %zu has no end token (id %lld), where this model reads it; "
                         "does the tokenizer belong to it?",
                         row, (long long)c->eos_id);
    places[0] = (int32_t)(row * n) + (int32_t)at;
    places[1] = (int32_t)at + 1;
    return PNB_OK;
}

/* The one token of x_L that is read, (B,T,C) -> (B,1,C). */
static pnb__tensor *read_text(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                              pnb__tensor *x, const pnb__tower_in *in)
{
    const pnb__block *last = &w->blocks[c->text.n_layers - 1];
    pnb__block_opts opts = pnb__transformer_opts(&c->text, c->causal);
    bool at_id = pools_at_id(c);
    if (!at_id && c->text.pool != PNB__POOL_FIRST)
        return pnb__text_blocks(w, c, g, x, 1); /* the last position, padding or not */
    x = pnb__transformer_first(g, &c->text, w->blocks, x, &opts);
    if (at_id)
        return pnb__block_apply_rows(g, last, x, in->places[0], in->places[1], &opts);
    /* a causal mask counts queries from the end, so the first position needs them all */
    if (c->causal)
        return pnb__slice(pnb__block_apply(g, last, x, &opts), 1, 0, 1);
    return pnb__block_apply_read(g, last, x, 0, 1, &opts);
}

static pnb__dist build_text(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                            const pnb__tower_in *in, bool unit)
{
    const pnb__text_transformer *w = weights->tower[PNB__TEXT_SIDE];
    pnb__tensor *x = pnb__text_tokens(w, g, in->ids);
    if (x == NULL)
        return (pnb__dist){0};
    x = read_text(w, c, g, x, in);
    x = pnb__text_ln_final(w, c, g, x);
    x = pnb__transformer_token(x, 0);
    pnb__tensor *mean = pnb__text_project(w, c, g, x);
    return (pnb__dist){.mean = pnb__unit_rows(mean, unit),
                       .activations = c->text.projection != PNB__PROJECT_NONE ? x : NULL};
}

const pnb__tower_calls pnb__clip_text = {.family = pnb__clip_family,
                                         .declare = declare_text,
                                         .build = build_text,
                                         .describe = pnb__transformer_describe_text,
                                         .n_places = n_places,
                                         .find_places = find_places};

/* ---- the family ---- */

const char *pnb__clip_tokenizer_source(const pnb__config *c)
{
    (void)c;
    return "the model's repository, or openai/clip-vit-base-patch32 (tokenizer.json), or open_clip "
           "(bpe_simple_vocab_16e6.txt.gz)";
}

/* transformers' CLIPProcessor makes RGB first and rounds the crop down; open_clip's and OpenAI's
 * transforms resize first and round half to even. */
static void assume_pixels(pnb_preprocess *pp, const json_t *config)
{
    bool is_hugging_face = json_object_get(config, "model_type") != NULL;
    pp->centre = is_hugging_face ? PNB_CENTRE_FLOOR : PNB_CENTRE_ROUND;
    pp->resize_first = !is_hugging_face;
    pp->mode = PNB_FIT_SHORTEST;
}

const pnb__family_calls pnb__clip_calls = {.name = "clip",
                                           .image = &image,
                                           .text = &pnb__clip_text,
                                           .set_sizes = pnb__transformer_set_sizes,
                                           .assume_pixels = assume_pixels,
                                           .tokenizer_source = pnb__clip_tokenizer_source};
