/* Texts to tokens and through the blocks (Radford et al. 2021, section 2.4; open_clip's
 * TextTransformer, which prolip/transformer.py extends).
 *
 *     x_0 = [E[id_1]; ..; E[id_T]; UNC?; CLS?] + P_1 .. P_{T+extra}
 *     x_L = blocks(x_0)
 *     e   = LN_final(what is read) projected
 * Padding is attended to as any token, in all three families: CLIP's causal mask alone hides it
 * from the end token, which stands before it. LN_final is applied to the tokens read only; the
 * reference normalises all and drops the rest. */
#include "models/transformer/transformer.h"

/* Positions run on, so [UNC] and [CLS] of a short text sit right after its last token, with the
 * positions that follow it, as in the reference. */
pnb__tensor *pnb__text_tokens(const pnb__text_transformer *w, pnb__graph *g, pnb__tensor *ids)
{
    size_t n_batch = pnb__dim(ids, 0), n = 0;
    pnb__tensor *parts[3];
    parts[n++] = pnb__gather(pnb__param_tensor(g, w->tokens), ids);
    if (w->unc != NULL)
        parts[n++] = pnb__token_apply(g, w->unc, n_batch);
    if (w->cls != NULL)
        parts[n++] = pnb__token_apply(g, w->cls, n_batch);
    pnb__tensor *x = n == 1 ? parts[0] : pnb__concat(parts, n, 1);
    return pnb__add(x, pnb__slice(pnb__param_tensor(g, w->positions), 0, 0, pnb__dim(x, 1)));
}

pnb__tensor *pnb__text_blocks(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                              pnb__tensor *x, size_t n_read)
{
    pnb__block_opts opts = pnb__transformer_opts(&c->text, c->causal);
    x = pnb__transformer_first(g, &c->text, w->blocks, x, &opts);
    return pnb__block_apply_read(g, &w->blocks[c->text.n_layers - 1], x, pnb__dim(x, 1) - n_read,
                                 n_read, &opts);
}

pnb__tensor *pnb__text_ln_final(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                                pnb__tensor *x)
{
    return pnb__norm_apply(g, x, w->ln_w, w->ln_b, c->text.eps);
}

pnb__tensor *pnb__text_project(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                               pnb__tensor *x)
{
    switch (c->text.projection) {
    case PNB__PROJECT_LINEAR: /* SigLIP, ProLIP: a Linear with bias */
        return pnb__linear_apply(g, x, w->proj_w, w->proj_b);
    case PNB__PROJECT_MATRIX: /* CLIP */
        return pnb__transformer_project(g, x, w->proj_w);
    case PNB__PROJECT_NONE:
        break;
    }
    return x;
}
