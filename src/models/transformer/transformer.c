/* What image and text transformers have in common around their blocks (src/nn/block.c).
 *
 *     x_0 = tokens + positions                      (B,T,C)
 *     x_l = block_l(x_{l-1}),  l = 1 .. L           pre-norm residual blocks
 *     e   = projection of what is read from x_L     (B,C) -> (B,D)
 * Only a token or two of x_L are read. In the last block keys and values come from all tokens, but
 * queries, output projection and MLP are computed for the tokens read alone: the same numbers for
 * 1/L of the work less (block.h). */
#include "models/transformer/transformer.h"

pnb__block_opts pnb__transformer_opts(const pnb__tower_config *t, bool causal)
{
    return (pnb__block_opts){.n_heads = t->n_heads, .eps = t->eps, .act = t->act, .causal = causal};
}

pnb__tensor *pnb__transformer_run(pnb__graph *g, const pnb__block *blocks, size_t n, pnb__tensor *x,
                                  const pnb__block_opts *opts)
{
    for (size_t i = 0; i < n; i++)
        x = pnb__block_apply(g, &blocks[i], x, opts);
    return x;
}

pnb__tensor *pnb__transformer_first(pnb__graph *g, const pnb__tower_config *t,
                                    const pnb__block *blocks, pnb__tensor *x,
                                    const pnb__block_opts *opts)
{
    return pnb__transformer_run(g, blocks, t->n_layers - 1, x, opts);
}

pnb__tensor *pnb__transformer_token(pnb__tensor *x, size_t i)
{
    pnb__tensor *one = pnb__slice(x, 1, i, 1);
    return pnb__reshape(one, 2, (size_t[]){pnb__dim(x, 0), pnb__dim(x, 2)});
}

/* CLIP's projections are stored as P with e = x P, not as the weight of a Linear (x W^T). */
pnb__tensor *pnb__transformer_project(pnb__graph *g, pnb__tensor *x, pnb__param *p)
{
    pnb__linear_opts opts = {.act = PNB__IDENTITY, .transpose_w = true};
    return pnb__linear(x, pnb__param_tensor(g, p), &opts);
}

/* ---- what reports say ---- */

/* Where activation and eps come from is said too: they stand in no weight, and defaults differ. */
static void describe(pnb_tower_info *out, const pnb__tower_config *t)
{
    out->activation = pnb__act_name(t->act);
    out->activation_source = t->act_source;
    out->layernorm_source = t->eps_source;
    out->pooling = pnb__pool_name(t->pool);
    out->has_projection = t->projection != PNB__PROJECT_NONE;
    out->width = t->width;
    out->n_layers = t->n_layers;
    out->n_heads = t->n_heads;
    out->mlp_width = t->mlp_width;
    out->layernorm_eps = t->eps;
    out->quick_gelu = t->act == PNB__QUICK_GELU;
    out->has_unc = t->has_unc;
    out->has_layer_scale = t->has_layer_scale;
}

void pnb__transformer_describe_image(pnb_tower_info *out, const pnb__config *c)
{
    describe(out, &c->vision);
    out->has_ln_pre = !c->no_ln_pre;
    out->patch = c->patch;
    out->n_patches = (c->image_height / c->patch) * (c->image_width / c->patch);
}

void pnb__transformer_describe_text(pnb_tower_info *out, const pnb__config *c)
{
    describe(out, &c->text);
    out->causal = c->causal;
}

/* ---- another size ---- */

/* Only positions depend on the size of the input: blocks see tokens, however many. So another
 * picture size or context is another position table (position_resize.h) and no other weight. */
pnb_status pnb__transformer_set_sizes(pnb__config *c, const pnb_model_load_opts *o,
                                      pnb__resize *resize, pnb_error *err)
{
    if ((o->image_height == 0) != (o->image_width == 0))
        return pnb__fail(err, PNB_ARG, "give both sides of the image size or none");
    size_t height = o->image_height ? o->image_height : c->image_height;
    size_t width = o->image_width ? o->image_width : c->image_width;
    if (c->vision.present && (height != c->image_height || width != c->image_width)) {
        if (height < c->patch || width < c->patch || height > PNB__MAX_PIXELS ||
            width > PNB__MAX_PIXELS)
            return pnb__fail(err, PNB_ARG, "image size %zux%zu: want %zu to %d", height, width,
                             c->patch, PNB__MAX_PIXELS);
        resize->old_height = c->image_height / c->patch;
        resize->old_width = c->image_width / c->patch;
        c->image_height = height;
        c->image_width = width;
    }
    if (c->text.present && o->context_length != 0 && o->context_length != c->context_length) {
        if (o->context_length > PNB__MAX_WIDTH)
            return pnb__fail(err, PNB_ARG, "context length %zu: want 1 to %d", o->context_length,
                             PNB__MAX_WIDTH);
        resize->text = true;
        c->context_length = o->context_length;
    }
    return PNB_OK;
}
