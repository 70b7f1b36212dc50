/* The residual block of ViT and CLIP text towers (Dosovitskiy et al. 2021; open_clip layout).
 *
 *   a = x + LS1 * (attention(LN1(x)) W_out^T + b_out)
 *   y = a + LS2 * (act(LN2(a) W_fc^T + b_fc) W_proj^T + b_proj)
 * Bias, activation, LayerScale and residual are epilogues of the products. A block is a segment:
 * with gradient checkpointing its inside is computed again in backward. */
#include "nn/block.h"

/* (x - mean) / sqrt(var + eps) * w + b over the last axis, var the biased one (1/C). */
pnb__tensor *pnb__norm_apply(pnb__graph *g, pnb__tensor *x, pnb__param *w, pnb__param *b,
                             double eps)
{
    return pnb__layernorm(x, pnb__param_tensor(g, w), pnb__param_tensor(g, b), eps);
}

/* x W^T + b, W (N,K) as torch stores it. */
pnb__tensor *pnb__linear_apply(pnb__graph *g, pnb__tensor *x, pnb__param *w, pnb__param *b)
{
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, b), .act = PNB__IDENTITY};
    return pnb__linear(x, pnb__param_tensor(g, w), &opts);
}

pnb__tensor *pnb__token_apply(pnb__graph *g, pnb__param *token, size_t n_batch)
{
    pnb__tensor *row = pnb__param_tensor(g, token);
    return pnb__broadcast_to(row, 3, (size_t[]){n_batch, 1, pnb__n(row)});
}

/* y = residual + LS * (x W^T + b) */
static pnb__tensor *project(pnb__graph *g, pnb__tensor *x, pnb__param *const wbs[3],
                            pnb__tensor *residual)
{
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, wbs[1]),
                             .col_scale = pnb__param_tensor(g, wbs[2]),
                             .residual = residual,
                             .act = PNB__IDENTITY};
    return pnb__linear(x, pnb__param_tensor(g, wbs[0]), &opts);
}

/* x + LS2 * (act(LN2(x) W_fc^T + b_fc) W_proj^T + b_proj), (B,T,C) -> (B,T,4C) -> (B,T,C).
 * Pre-norm: the sum x runs through all blocks unnormalised, so gradients reach the first one
 * undamped (Xiong et al. 2020). */
static pnb__tensor *hidden(pnb__graph *g, const pnb__block *b, pnb__tensor *x,
                           const pnb__block_opts *opts)
{
    pnb__tensor *h = pnb__norm_apply(g, x, b->ln2_w, b->ln2_b, opts->eps);
    pnb__linear_opts fc = {.bias = pnb__param_tensor(g, b->fc_b), .act = opts->act};
    return pnb__linear(h, pnb__param_tensor(g, b->fc_w), &fc);
}

static pnb__tensor *mlp(pnb__graph *g, const pnb__block *b, pnb__tensor *x,
                        const pnb__block_opts *opts)
{
    pnb__tensor *h = hidden(g, b, x, opts);
    return project(g, h, (pnb__param *const[]){b->proj_w, b->proj_b, b->ls2}, x);
}

pnb__tensor *pnb__block_apply(pnb__graph *g, const pnb__block *b, pnb__tensor *x,
                              const pnb__block_opts *opts)
{
    size_t begin = pnb__segment_begin(g);
    pnb__tensor *h = pnb__norm_apply(g, x, b->ln1_w, b->ln1_b, opts->eps);
    /* q, k, v of all heads in one product (B,T,3C); softmax(q k^T / sqrt(C/H)) v a head */
    pnb__tensor *qkv = pnb__linear_apply(g, h, b->in_w, b->in_b);
    h = pnb__attention(NULL, qkv, opts->n_heads, opts->causal, opts->kv_len);
    x = project(g, h, (pnb__param *const[]){b->out_w, b->out_b, b->ls1}, x);
    x = mlp(g, b, x, opts);
    pnb__segment_end(g, begin, x);
    return x;
}

/* Linear by rows [begin, begin+n) of a packed projection; of the whole where a weight in fewer bits
 * cannot be entered there (widths that are no multiple of the table's group of columns). */
static pnb__tensor *partial_linear(pnb__graph *g, pnb__tensor *x, const pnb__block *b, size_t begin,
                                   size_t n)
{
    if (!pnb__linear_can_begin(g, b->in_w, begin))
        return pnb__slice(pnb__linear_apply(g, x, b->in_w, b->in_b), pnb__n_dims(x) - 1, begin, n);
    pnb__tensor *w = pnb__slice(pnb__param_tensor(g, b->in_w), 0, begin, n);
    pnb__linear_opts opts = {.bias = pnb__slice(pnb__param_tensor(g, b->in_b), 0, begin, n),
                             .act = PNB__IDENTITY};
    return pnb__linear(x, w, &opts);
}

/* y_i for i in [begin, begin+n): LN1 is needed of all tokens, because all are keys and values; rows
 * [0,C) of the packed projection make q of the n tokens, rows [C,3C) k and v of the T. The causal
 * mask counts queries from the end, so it fits where the n tokens are the last ones. */
pnb__tensor *pnb__block_apply_read(pnb__graph *g, const pnb__block *b, pnb__tensor *x, size_t begin,
                                   size_t n, const pnb__block_opts *opts)
{
    size_t width = pnb__dim(x, -1), first = pnb__segment_begin(g);
    if (begin == 0 && n == pnb__dim(x, 1))
        return pnb__block_apply(g, b, x, opts);
    pnb__tensor *h = pnb__norm_apply(g, x, b->ln1_w, b->ln1_b, opts->eps);
    pnb__tensor *q = partial_linear(g, pnb__slice(h, 1, begin, n), b, 0, width);
    pnb__tensor *kv = partial_linear(g, h, b, width, 2 * width);
    if (q == NULL || kv == NULL)
        return NULL;
    h = pnb__attention(q, kv, opts->n_heads, opts->causal, opts->kv_len);
    x = project(g, h, (pnb__param *const[]){b->out_w, b->out_b, b->ls1},
                pnb__slice(x, 1, begin, n));
    x = mlp(g, b, x, opts);
    pnb__segment_end(g, first, x);
    return x;
}

/* y at one row an item, which differs between items: gathered from the flattened (B T, C). A causal
 * mask at position p is, for a single query, the first p + 1 keys: kv_len says so in place of a
 * mask. */
pnb__tensor *pnb__block_apply_rows(pnb__graph *g, const pnb__block *b, pnb__tensor *x,
                                   pnb__tensor *rows, pnb__tensor *kv_len,
                                   const pnb__block_opts *opts)
{
    size_t width = pnb__dim(x, -1), n_batch = pnb__dim(x, 0), n_tokens = pnb__dim(x, 1);
    size_t flat[2] = {n_batch * n_tokens, width}, one[3] = {n_batch, 1, width};
    pnb__tensor *h = pnb__norm_apply(g, x, b->ln1_w, b->ln1_b, opts->eps);
    pnb__tensor *kv = partial_linear(g, h, b, width, 2 * width);
    pnb__tensor *read = pnb__gather(pnb__reshape(h, 2, flat), rows);
    pnb__tensor *residual = pnb__reshape(pnb__gather(pnb__reshape(x, 2, flat), rows), 3, one);
    pnb__tensor *q = partial_linear(g, pnb__reshape(read, 3, one), b, 0, width);
    if (q == NULL || kv == NULL)
        return NULL;
    h = pnb__attention(q, kv, opts->n_heads, false, kv_len);
    x = project(g, h, (pnb__param *const[]){b->out_w, b->out_b, b->ls1}, residual);
    return mlp(g, b, x, opts);
}

/* h = MHA(probe; x), y = h + MLP(LN2(h)): the query is a weight, the same for all items, and LN1 is
 * the caller's (LN_post). No residual around the attention: a probe is no token to add to. */
pnb__tensor *pnb__block_pool(pnb__graph *g, const pnb__block *b, pnb__param *probe, pnb__tensor *x,
                             const pnb__block_opts *opts, pnb__tensor **read)
{
    size_t width = pnb__dim(x, -1);
    *read = NULL;
    pnb__tensor *kv = partial_linear(g, x, b, width, 2 * width);
    pnb__tensor *q = partial_linear(g, pnb__token_apply(g, probe, pnb__dim(x, 0)), b, 0, width);
    if (q == NULL || kv == NULL)
        return NULL;
    pnb__tensor *h = pnb__attention(q, kv, opts->n_heads, false, NULL);
    h = pnb__linear_apply(g, h, b->out_w, b->out_b);
    pnb__tensor *f = hidden(g, b, h, opts);
    *read = pnb__concat((pnb__tensor *const[]){f, h}, 2, 2);
    return project(g, f, (pnb__param *const[]){b->proj_w, b->proj_b, NULL}, h);
}
