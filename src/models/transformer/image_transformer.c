/* Pictures to tokens and through the blocks (Dosovitskiy et al. 2021, section 3.1; open_clip's
 * VisionTransformer, which prolip/transformer.py extends).
 *
 *     z_i = W_conv patch_i (+ b)            i = 1 .. N, a stride-p convolution
 *     x_0 = [CLS?; UNC?; z_1 .. z_N] + P    P one row a token, extra tokens included
 *     x_0 = LN_pre(x_0)                     CLIP and ProLIP; SigLIP (timm) has none
 *     x_L = blocks(x_0)
 * The order [CLS], [UNC], patches is ProLIP's code; paper and code agree that patches do not see
 * which tokens are extra. A masked picture (ProLIP section 3.3) runs the kept patches alone, each
 * with the position of its place, so its cost falls with what is hidden. */
#include "models/transformer/transformer.h"

/* Patch rows (B,N,C). A convolution whose kernel is its stride is one product over the pixels of a
 * patch, (B*N, 3pp) times W (C, 3pp)^T: the pixels of a patch in the order channel, row, column. */
static pnb__tensor *embed_patches(const pnb__image_transformer *w, const pnb__config *c,
                                  pnb__graph *g, const pnb__tower_in *in)
{
    size_t n_features = 3 * c->patch * c->patch, n_batch = pnb__dim(in->pixels, 0);
    pnb__tensor *patches = pnb__patchify(in->pixels, c->patch);
    if (in->kept != NULL) { /* before the product: what is hidden is not multiplied */
        patches = pnb__reshape(patches, 2, (size_t[]){pnb__n(patches) / n_features, n_features});
        patches = pnb__gather(patches, in->kept);
    }
    pnb__tensor *conv =
        pnb__reshape(pnb__param_tensor(g, w->conv), 2, (size_t[]){c->vision.width, n_features});
    pnb__linear_opts opts = {.act = PNB__IDENTITY};
    if (w->conv_b != NULL)
        opts.bias = pnb__param_tensor(g, w->conv_b);
    patches = pnb__linear(patches, conv, &opts);
    return pnb__reshape(patches, 3,
                        (size_t[]){n_batch,
                                   n_batch ? pnb__n(patches) / n_batch / c->vision.width : 0,
                                   c->vision.width});
}

/* Position rows of the tokens present: the extra ones first, then every or the kept patches. The
 * kept ones are shared by the batch, so one (extra+K, C) table serves all items. */
static pnb__tensor *positions(const pnb__image_transformer *w, const pnb__config *c, pnb__graph *g,
                              const pnb__tower_in *in)
{
    pnb__tensor *all = pnb__param_tensor(g, w->positions);
    if (in->kept == NULL)
        return all;
    size_t n_extra = pnb__config_n_extra(c);
    if (n_extra == 0)
        return pnb__gather(all, in->kept_positions);
    pnb__tensor *patches = pnb__slice(all, 0, n_extra, pnb__dim(all, 0) - n_extra);
    pnb__tensor *parts[2] = {pnb__slice(all, 0, 0, n_extra),
                             pnb__gather(patches, in->kept_positions)};
    return pnb__concat(parts, 2, 0);
}

pnb__tensor *pnb__image_tokens(const pnb__image_transformer *w, const pnb__config *c, pnb__graph *g,
                               const pnb__tower_in *in)
{
    size_t n_batch = pnb__dim(in->pixels, 0), n = 0;
    pnb__tensor *parts[3];
    if (w->cls != NULL)
        parts[n++] = pnb__token_apply(g, w->cls, n_batch);
    if (w->unc != NULL)
        parts[n++] = pnb__token_apply(g, w->unc, n_batch);
    parts[n++] = embed_patches(w, c, g, in);
    pnb__tensor *x = n == 1 ? parts[0] : pnb__concat(parts, n, 1);
    x = pnb__add(x, positions(w, c, g, in));
    if (w->ln_pre_w != NULL)
        x = pnb__norm_apply(g, x, w->ln_pre_w, w->ln_pre_b, c->vision.eps);
    return x;
}

pnb__tensor *pnb__image_blocks(const pnb__image_transformer *w, const pnb__config *c, pnb__graph *g,
                               pnb__tensor *x, size_t n_read)
{
    pnb__block_opts opts = pnb__transformer_opts(&c->vision, false);
    x = pnb__transformer_first(g, &c->vision, w->blocks, x, &opts);
    return pnb__block_apply_read(g, &w->blocks[c->vision.n_layers - 1], x, 0, n_read, &opts);
}

pnb__tensor *pnb__image_ln_post(const pnb__image_transformer *w, const pnb__config *c,
                                pnb__graph *g, pnb__tensor *x)
{
    return pnb__norm_apply(g, x, w->ln_post_w, w->ln_post_b, c->vision.eps);
}
