/* Local attention over positions (Lin et al. 2017, "A structured self-attentive sentence
 * embedding"; the attention of PVSE and PCME).
 *
 *   S = w2 tanh(w1 x) (K,T) of each item,  A = softmax(S) over positions,  y_k = sum_t A_kt x_t
 * Scores of positions beyond a length are -inf, so their weight is exactly 0. */
#include "nn/attention_pool.h"

/* Scores (B,T,K) with positions last: (B,K,T). One row of them is a view. */
static pnb__tensor *positions_last(pnb__tensor *scores)
{
    size_t n_batch = pnb__dim(scores, 0), n = pnb__dim(scores, 1), n_heads = pnb__dim(scores, 2);
    if (n_heads == 1)
        return pnb__reshape(scores, 3, (size_t[]){n_batch, 1, n});
    return pnb__permute(scores, (const int[]){0, 2, 1});
}

pnb__pooled pnb__attention_pool_apply(pnb__graph *g, const pnb__attention_pool *p, pnb__tensor *x,
                                      pnb__tensor *lengths)
{
    size_t n_batch = pnb__dim(x, 0), n = pnb__dim(x, 1);
    pnb__linear_opts bent = {.act = PNB__TANH};
    pnb__tensor *hidden = pnb__linear(x, pnb__param_tensor(g, p->w1), &bent);
    pnb__tensor *scores = positions_last(pnb__linear(hidden, pnb__param_tensor(g, p->w2), NULL));
    if (lengths != NULL) {
        pnb__tensor *mask = pnb__length_mask(lengths, n);
        scores = pnb__add(scores, pnb__reshape(mask, 3, (size_t[]){n_batch, 1, n}));
    }
    pnb__tensor *weights = pnb__softmax(scores);
    return (pnb__pooled){pnb__matmul(weights, false, x, false), weights};
}
