/* The two towers as graphs, for every family: what pnb__config says decides, not a model's name.
 *
 * ProLIP (Chun et al., ICLR 2025, section 3; prolip/transformer.py). Image: patches by a stride-p
 * convolution, tokens [CLS],[UNC],patches, positions for all, ln_pre, blocks, ln_post on what is
 * read; mean = ln_post(ln_post(CLS)) proj (twice, as in released weights), log_var =
 * Linear(ln_post(UNC)). Text: tokens, [UNC], [CLS] appended, no mask of any kind, blocks, mean =
 * Linear(ln_final(CLS)); log_var from the projected mean (released weights; the paper says
 * otherwise, docs/numerics.md#prolip-text-log-variance) or from ln_final([UNC]).
 * CLIP (Radford et al. 2021): the same without [UNC]; text under a causal mask, read at its end
 * token. SigLIP (Zhai et al. 2023): no class token, an attention head with a learnt query instead
 * and no image projection; text without mask, read at the last position.
 * The last block computes queries, output projection and MLP only for the tokens read here. */
#include "models/prolip/prolip.h"

#include "models/model.h"

/* What F.normalize adds: x / max(||x||, 1e-12). */
#define PNB__NORMALIZE_EPS 1e-12

static pnb__block_opts block_opts(const pnb__tower_config *t, bool causal)
{
    return (pnb__block_opts){.n_heads = t->n_heads, .eps = t->eps, .act = t->act, .causal = causal};
}

/* All blocks but the last. */
static pnb__tensor *run_first_blocks(pnb__graph *g, const pnb__tower_config *t,
                                     const pnb__block *blocks, pnb__tensor *x,
                                     const pnb__block_opts *opts)
{
    for (size_t i = 0; i + 1 < t->n_layers; i++)
        x = pnb__block_apply(g, &blocks[i], x, opts);
    return x;
}

/* Token i of (B, T, C) as (B, C). */
static pnb__tensor *token(pnb__tensor *x, size_t i)
{
    pnb__tensor *one = pnb__slice(x, 1, i, 1);
    return pnb__reshape(one, 2, (size_t[]){pnb__dim(x, 0), pnb__dim(x, 2)});
}

static pnb__tensor *raw_linear(pnb__graph *g, pnb__tensor *x, pnb__param *w)
{
    pnb__linear_opts opts = {.act = PNB__IDENTITY, .transpose_w = true};
    return pnb__linear(x, pnb__param_tensor(g, w), &opts);
}

/* Patch rows (B, N, C): a stride-p convolution without bias is a product over patch pixels. */
static pnb__tensor *embed_patches(const pnb_model *m, pnb__graph *g, const pnb__image_in *in)
{
    const pnb__config *c = &m->config;
    size_t n_features = 3 * c->patch * c->patch, n_batch = pnb__dim(in->pixels, 0);
    pnb__tensor *patches = pnb__patchify(in->pixels, c->patch);
    if (in->kept != NULL) {
        patches = pnb__reshape(patches, 2, (size_t[]){pnb__n(patches) / n_features, n_features});
        patches = pnb__gather(patches, in->kept);
    }
    pnb__tensor *w = pnb__reshape(pnb__param_tensor(g, m->weights.vision.conv), 2,
                                  (size_t[]){c->vision.width, n_features});
    pnb__linear_opts opts = {.act = PNB__IDENTITY};
    if (m->weights.vision.conv_b != NULL)
        opts.bias = pnb__param_tensor(g, m->weights.vision.conv_b);
    patches = pnb__linear(patches, w, &opts);
    return pnb__reshape(patches, 3,
                        (size_t[]){n_batch,
                                   n_batch ? pnb__n(patches) / n_batch / c->vision.width : 0,
                                   c->vision.width});
}

/* Position rows of the tokens present: the extra ones first, then every or the kept patches. */
static pnb__tensor *image_positions(const pnb_model *m, pnb__graph *g, const pnb__image_in *in)
{
    pnb__tensor *all = pnb__param_tensor(g, m->weights.vision.positions);
    if (in->kept == NULL)
        return all;
    size_t n_extra = pnb__config_n_extra(&m->config);
    if (n_extra == 0)
        return pnb__gather(all, in->kept_positions);
    pnb__tensor *patches = pnb__slice(all, 0, n_extra, pnb__dim(all, 0) - n_extra);
    pnb__tensor *parts[2] = {pnb__slice(all, 0, 0, n_extra),
                             pnb__gather(patches, in->kept_positions)};
    return pnb__concat(parts, 2, 0);
}

static pnb__tensor *image_tokens(const pnb_model *m, pnb__graph *g, const pnb__image_in *in)
{
    const pnb__vision_weights *w = &m->weights.vision;
    size_t n_batch = pnb__dim(in->pixels, 0), n = 0;
    pnb__tensor *parts[3];
    if (w->cls != NULL)
        parts[n++] = pnb__token_apply(g, w->cls, n_batch);
    if (w->unc != NULL)
        parts[n++] = pnb__token_apply(g, w->unc, n_batch);
    parts[n++] = embed_patches(m, g, in);
    pnb__tensor *x = n == 1 ? parts[0] : pnb__concat(parts, n, 1);
    x = pnb__add(x, image_positions(m, g, in));
    if (w->ln_pre_w != NULL)
        x = pnb__norm_apply(g, x, w->ln_pre_w, w->ln_pre_b, m->config.vision.eps);
    return x;
}

static pnb__tensor *finish_mean(pnb__tensor *mean, bool normalize)
{
    return normalize ? pnb__l2_normalize(mean, PNB__NORMALIZE_EPS) : mean;
}

/* The vector of each picture that is projected. `x` holds the tokens that are read. */
static pnb__tensor *pool_image(const pnb_model *m, pnb__graph *g, pnb__tensor *x)
{
    const pnb__config *c = &m->config;
    const pnb__vision_weights *w = &m->weights.vision;
    pnb__block_opts opts = block_opts(&c->vision, false);
    if (c->vision.pool == PNB__POOL_MAP)
        return token(pnb__block_pool(g, &w->head, w->probe, x, &opts), 0);
    pnb__tensor *pooled = token(x, 0);
    if (c->vision.pool == PNB__POOL_AVERAGE)
        pooled = pnb__mean(pnb__slice(x, 1, 1, pnb__dim(x, 1) - 1), 1);
    if (c->vision.has_unc || c->norm_after_pool) /* with [UNC] for the second time */
        pooled = pnb__norm_apply(g, pooled, w->ln_post_w, w->ln_post_b, c->vision.eps);
    return pooled;
}

pnb__dist pnb__prolip_image(pnb_model *m, pnb__graph *g, const pnb__image_in *in, bool normalize)
{
    const pnb__config *c = &m->config;
    const pnb__vision_weights *w = &m->weights.vision;
    pnb__tensor *x = image_tokens(m, g, in);
    pnb__block_opts opts = block_opts(&c->vision, false);
    bool class_only = c->vision.pool == PNB__POOL_CLASS;
    size_t n_read = class_only ? pnb__config_n_extra(c) : pnb__dim(x, 1);
    x = run_first_blocks(g, &c->vision, w->blocks, x, &opts);
    x = pnb__block_apply_read(g, &w->blocks[c->vision.n_layers - 1], x, 0, n_read, &opts);
    if (!c->norm_after_pool)
        x = pnb__norm_apply(g, x, w->ln_post_w, w->ln_post_b, c->vision.eps);
    pnb__dist out = {0};
    pnb__tensor *pooled = pool_image(m, g, x);
    if (c->vision.has_unc)
        out.log_var = pnb__linear_apply(g, token(x, 1), w->unc_w, w->unc_b);
    if (w->proj != NULL)
        pooled = raw_linear(g, pooled, w->proj);
    out.mean = finish_mean(pooled, normalize);
    return out;
}

/* Positions run on, so [UNC] and [CLS] of a short text sit right after its last token. */
static pnb__tensor *text_tokens(const pnb_model *m, pnb__graph *g, pnb__tensor *ids)
{
    const pnb__text_weights *w = &m->weights.text;
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

/* The tokens of the last block that are read: (B, n, C). */
static pnb__tensor *read_text(pnb_model *m, pnb__graph *g, pnb__tensor *x, const pnb__text_in *in,
                              size_t n_read)
{
    const pnb__config *c = &m->config;
    const pnb__block *last = &m->weights.text.blocks[c->text.n_layers - 1];
    pnb__block_opts opts = block_opts(&c->text, c->causal);
    size_t n_tokens = pnb__dim(x, 1);
    if (in->rows != NULL)
        return pnb__block_apply_rows(g, last, x, in->rows, in->visible, &opts);
    if (c->text.pool != PNB__POOL_FIRST)
        return pnb__block_apply_read(g, last, x, n_tokens - n_read, n_read, &opts);
    /* a causal mask counts queries from the end, so the first position needs them all */
    if (c->causal)
        return pnb__slice(pnb__block_apply(g, last, x, &opts), 1, 0, 1);
    return pnb__block_apply_read(g, last, x, 0, 1, &opts);
}

static pnb__tensor *project_text(const pnb_model *m, pnb__graph *g, pnb__tensor *pooled)
{
    const pnb__text_weights *w = &m->weights.text;
    switch (m->config.text.projection) {
    case PNB__PROJECT_LINEAR:
        return pnb__linear_apply(g, pooled, w->proj_w, w->proj_b);
    case PNB__PROJECT_MATRIX:
        return raw_linear(g, pooled, w->proj_w);
    case PNB__PROJECT_NONE:
        break;
    }
    return pooled;
}

pnb__dist pnb__text_tower(pnb_model *m, pnb__graph *g, const pnb__text_in *in, bool normalize)
{
    const pnb__config *c = &m->config;
    const pnb__text_weights *w = &m->weights.text;
    bool from_token = c->text.has_unc && c->text_unc_source == PNB_TEXT_UNC_TOKEN;
    pnb__tensor *x = text_tokens(m, g, in->ids);
    pnb__block_opts opts = block_opts(&c->text, c->causal);
    size_t n_read = from_token ? 2 : 1;
    if (x == NULL)
        return (pnb__dist){0};
    x = run_first_blocks(g, &c->text, w->blocks, x, &opts);
    x = read_text(m, g, x, in, n_read);
    x = pnb__norm_apply(g, x, w->ln_w, w->ln_b, c->text.eps);
    pnb__tensor *mean = project_text(m, g, token(x, n_read - 1));
    pnb__dist out = {.mean = finish_mean(mean, normalize)};
    if (c->text.has_unc)
        out.log_var = pnb__linear_apply(g, from_token ? token(x, 0) : mean, w->unc_w, w->unc_b);
    return out;
}

pnb__dist pnb__prolip_text(pnb_model *m, pnb__graph *g, pnb__tensor *ids, bool normalize)
{
    return pnb__text_tower(m, g, &(pnb__text_in){.ids = ids}, normalize);
}
