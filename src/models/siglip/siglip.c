/* SigLIP (Zhai et al. 2023): CLIP trained with a sigmoid loss, whose image tower is read by an
 * attention head (Zhai et al. 2022, "Scaling Vision Transformers", section 3.3; big_vision's
 * MAPHead, timm's AttentionPoolLatent, transformers' SiglipMultiheadAttentionPoolingHead).
 *
 *     h = MHA(q = probe W_q, k = LN_post(x_L) W_k, v = LN_post(x_L) W_v)   one learnt query
 *     e = h + MLP(LN(h))                                                  (B,C), D = C
 * There is no class token and no projection: all patches are read, and the width is the
 * embedding's. The text tower is CLIP's without a mask, read at the last position, which is padding
 * for all but full texts: SigLIP was trained so, and padding is therefore part of a text. */
#include "models/siglip/siglip.h"

#include "models/clip/clip.h"

/* ---- image ---- */

static void declare_image(pnb__weights *w, const pnb__config *c)
{
    pnb__image_transformer *v = pnb__image_transformer_declare(w, c);
    if (v != NULL)
        pnb__image_head_declare(w, v, &c->vision);
}

static pnb__dist build_image(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                             const pnb__tower_in *in, bool unit)
{
    const pnb__image_transformer *w = weights->tower[PNB__IMAGE_SIDE];
    pnb__block_opts opts = pnb__transformer_opts(&c->vision, false);
    pnb__tensor *x = pnb__image_tokens(w, c, g, in);
    x = pnb__image_blocks(w, c, g, x, pnb__dim(x, 1));
    x = pnb__image_ln_post(w, c, g, x);
    pnb__tensor *read;
    pnb__tensor *mean = pnb__block_pool(g, &w->head, w->probe, x, &opts, &read); /* (B,1,C) */
    return (pnb__dist){.mean = pnb__unit_rows(pnb__transformer_token(mean, 0), unit),
                       .activations = pnb__transformer_token(read, 0)};
}

static const pnb__tower_calls image = {.family = pnb__clip_family,
                                       .declare = declare_image,
                                       .build = build_image,
                                       .describe = pnb__transformer_describe_image};

/* ---- the family ---- */

/* SiglipImageProcessor: the whole picture squashed to a square, mean and std 0.5 of every channel.
 * Whether RGB comes first is the library's, as in CLIP. */
static void assume_pixels(pnb_preprocess *pp, const json_t *config)
{
    bool is_hugging_face = json_object_get(config, "model_type") != NULL;
    pp->centre = is_hugging_face ? PNB_CENTRE_FLOOR : PNB_CENTRE_ROUND;
    pp->resize_first = !is_hugging_face;
    pp->mode = PNB_FIT_SQUASH;
    for (int i = 0; i < 3; i++)
        pp->mean[i] = pp->std[i] = 0.5F;
}

/* A vocabulary of 49,408 is CLIP's, whatever the family. */
const char *pnb__siglip_tokenizer_source(const pnb__config *c)
{
    enum { CLIP_VOCAB = 49408 };
    if (c->vocab_size == CLIP_VOCAB)
        return pnb__clip_tokenizer_source(c);
    return "the model's repository (tokenizer.json or spiece.model; SigLIP and ProLIP B/16: "
           "timm/ViT-B-16-SigLIP)";
}

const pnb__family_calls pnb__siglip_calls = {.name = "siglip",
                                             .image = &image,
                                             .text = &pnb__clip_text,
                                             .set_sizes = pnb__transformer_set_sizes,
                                             .assume_pixels = assume_pixels,
                                             .trained_clean = PNB_CLEAN_CANONICALIZE,
                                             .tokenizer_source = pnb__siglip_tokenizer_source};
