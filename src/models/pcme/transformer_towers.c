/* PCME's heads (section 3.2.1) where the feature map is a transformer's last layer:
 *
 *     image   x = LN_post(x_L) of the patches (B,N,C)     v = their mean, or LN_post(x_L[CLS])
 *     text    x = LN_final(x_L) of the tokens (B,T,C)     v = that of the last word
 *     mean = L2(LN(W_f v + b_f + s(W p + b)))             p: local attention over x
 *     log sigma = W' p' + b' + W_g v + b_g
 * The patches are the places that GAP takes the mean of in the paper. A caption is read as the GRU
 * reads it, at its last word, up to where attention sees it too: under a causal mask, so that the
 * padding behind changes nothing. Words are states that know those in front of them, where the
 * paper's attention sees bare word vectors. */
#include "models/pcme/transformer_towers.h"

#include "models/pcme/image_head.h"
#include "models/pcme/text_tower.h"
#include "models/transformer/transformer.h"

/* ---- configuration ---- */

bool pnb__pcme_is_vit(const json_t *vision_cfg)
{
    return json_object_get(vision_cfg, "patch_size") != NULL;
}

bool pnb__pcme_is_text_transformer(const json_t *text_cfg)
{
    return json_object_get(text_cfg, "layers") != NULL;
}

/* Words of open_clip for what stands behind a tower's blocks: here that is the heads. */
static const char *const image_ends[] = {"timm_model_name", "embed_unc", "init_unc_bias",
                                         "init_unc_std", "final_ln_after_pool"};
static const char *const text_ends[] = {"pool_type", "proj_bias",           "proj_type",
                                        "embed_cls", "embed_unc",           "pad_id",
                                        "eos_id",    "init_unc_bias",       "init_unc_std",
                                        "bos_id",    "final_ln_after_pool", "no_causal_mask"};

static pnb_status refuse_ends(const json_t *section, const char *name, const char *const *words,
                              size_t n, const char *where, pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (json_object_get(section, words[i]) != NULL)
            return pnb__fail(err, PNB_UNSUPPORTED,
                             "%s: %s: %s says how a transformer ends; in a PCME model the heads "
                             "are its end: take it away",
                             where, name, words[i]);
    return PNB_OK;
}

/* {"embed_dim": D, "vision_cfg": .., "text_cfg": ..} with {} for a section of the other kind. */
static json_t *plain_of(const json_t *root)
{
    json_t *vision = json_object_get(root, "vision_cfg"), *text = json_object_get(root, "text_cfg");
    return json_pack("{s:I, s:o, s:o}", "embed_dim", (json_int_t)2, "vision_cfg",
                     pnb__pcme_is_vit(vision) ? json_deep_copy(vision) : json_object(), "text_cfg",
                     pnb__pcme_is_text_transformer(text) ? json_deep_copy(text) : json_object());
}

/* A tower of the other kind is described by its own reader, behind this one. */
static void forget_others(pnb__config *out, const json_t *vision, const json_t *text)
{
    if (!pnb__pcme_is_vit(vision)) {
        out->vision = (pnb__tower_config){.present = false};
        out->patch = 0;
    }
    if (!pnb__pcme_is_text_transformer(text))
        out->text = (pnb__tower_config){.present = false};
    out->vision.projection = out->text.projection = PNB__PROJECT_NONE;
}

pnb_status pnb__pcme_read_transformers(pnb__config *out, const json_t *root, const char *where,
                                       pnb_error *err)
{
    const json_t *vision = json_object_get(root, "vision_cfg");
    const json_t *text = json_object_get(root, "text_cfg");
    json_t *plain = NULL;
    pnb_status status = PNB_OK;
    if (!pnb__pcme_is_vit(vision) && !pnb__pcme_is_text_transformer(text))
        return PNB_OK;
    if (pnb__pcme_is_vit(vision))
        PNB_TRY(refuse_ends(vision, "vision_cfg", image_ends, PNB_COUNT(image_ends), where, err));
    if (pnb__pcme_is_text_transformer(text))
        PNB_TRY(refuse_ends(text, "text_cfg", text_ends, PNB_COUNT(text_ends), where, err));
    plain = plain_of(root);
    if (plain == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
    PNB_TRY(pnb__config_read(out, plain, where, err));
    forget_others(out, vision, text);
done:
    json_decref(plain);
    return status;
}

/* ---- weights ---- */

/* What stands in w->tower of either side: the transformer's own struct lies beside it. */
typedef struct tower {
    const void *trunk; /* pnb__image_transformer or pnb__text_transformer */
    pnb__pcme_image_head head;
} tower;

/* Behind the transformer, so that a trunk's weights come first as they do in the reference. */
static void declare_heads(pnb__weights *w, pnb__side side, size_t width, const void *trunk,
                          const pnb__pcme_config *heads)
{
    tower *t = trunk != NULL ? pnb__declare_tower(w, side, sizeof *t) : NULL;
    if (t == NULL)
        return;
    t->trunk = trunk;
    pnb__pcme_declare_head(w, side, width, heads, &t->head);
}

void pnb__pcme_declare_vit(pnb__weights *w, const pnb__config *c, const pnb__pcme_config *heads)
{
    declare_heads(w, PNB__IMAGE_SIDE, c->vision.width, pnb__image_transformer_declare(w, c), heads);
}

void pnb__pcme_declare_text_transformer(pnb__weights *w, const pnb__config *c,
                                        const pnb__pcme_config *heads)
{
    declare_heads(w, PNB__TEXT_SIDE, c->text.width, pnb__text_transformer_declare(w, c), heads);
}

/* ---- graphs ---- */

/* All tokens are read, so the last block is computed for all of them. A masked picture has the
 * patches that it keeps. */
pnb__dist pnb__pcme_build_vit(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                              const pnb__tower_in *in, bool unit)
{
    const tower *t = w->tower[PNB__IMAGE_SIDE];
    const pnb__image_transformer *v = t->trunk;
    const pnb__block_opts opts = pnb__transformer_opts(&c->vision, false);
    const size_t n_extra = pnb__config_n_extra(c);
    pnb__tensor *x = pnb__image_tokens(v, c, g, in);
    x = pnb__transformer_run(g, v->blocks, c->vision.n_layers, x, &opts);
    if (x == NULL)
        return (pnb__dist){0};
    x = pnb__image_ln_post(v, c, g, x);
    pnb__tensor *patches = pnb__slice(x, 1, n_extra, pnb__dim(x, 1) - n_extra);
    pnb__tensor *own =
        c->vision.pool == PNB__POOL_CLASS ? pnb__transformer_token(x, 0) : pnb__mean(patches, 1);
    pnb__pcme_embedding e = pnb__pcme_head_apply(g, &t->head, patches, own, NULL, unit);
    return pnb__pcme_dist(&e);
}

pnb__dist pnb__pcme_build_text_transformer(const pnb__weights *w, const pnb__config *c,
                                           pnb__graph *g, const pnb__tower_in *in, bool unit)
{
    const tower *t = w->tower[PNB__TEXT_SIDE];
    const pnb__text_transformer *v = t->trunk;
    const pnb__block_opts opts = pnb__transformer_opts(&c->text, true);
    pnb__tensor *x = pnb__text_tokens(v, g, in->ids);
    x = pnb__transformer_run(g, v->blocks, c->text.n_layers, x, &opts);
    if (x == NULL)
        return (pnb__dist){0};
    x = pnb__text_ln_final(v, c, g, x);
    size_t rows[2] = {pnb__dim(x, 0) * pnb__dim(x, 1), pnb__dim(x, 2)};
    pnb__tensor *last = pnb__gather(pnb__reshape(x, 2, rows), in->places[PNB__PCME_LAST_ROW]);
    pnb__pcme_embedding e =
        pnb__pcme_head_apply(g, &t->head, x, last, in->places[PNB__PCME_LENGTH], unit);
    return pnb__pcme_dist(&e);
}
