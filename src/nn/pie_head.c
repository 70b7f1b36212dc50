/* The heads of PCME (Chun et al. 2021, section 3.2.1; pie_model.py, uncertainty_module.py) and of
 * PVSE (Song and Soleymani 2019), whose K embeddings PCME takes one of.
 *
 *   mu_k = L2(LN(base + s(W p_k + b))),  log sigma = W' p' + b' + side,  p = local attention of x
 * base and side are the global features: of a picture Linear(GAP), of a caption a GRU's last state.
 * Where paper and code differ: both heads have an attention of their own. */
#include "nn/pie_head.h"

#include "nn/block.h"

#define LAYER_NORM_EPS 1e-5 /* torch's */
#define NORMALIZE_EPS 1e-12 /* F.normalize's */

pnb__pie pnb__pie_head_apply(pnb__graph *g, const pnb__pie_head *h, pnb__tensor *base,
                             pnb__tensor *x, pnb__tensor *lengths, bool unit)
{
    pnb__pooled pooled = pnb__attention_pool_apply(g, &h->attention, x, lengths);
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, h->fc_b), .act = PNB__SIGMOID};
    pnb__tensor *residual = pnb__linear(pooled.vectors, pnb__param_tensor(g, h->fc_w), &opts);
    size_t one[3] = {pnb__dim(base, 0), 1, pnb__dim(base, 1)};
    pnb__tensor *sum = pnb__add(pnb__reshape(base, 3, one), residual); /* base for each k */
    pnb__tensor *mean = pnb__norm_apply(g, sum, h->ln_w, h->ln_b, LAYER_NORM_EPS);
    if (unit)
        mean = pnb__l2_normalize(mean, NORMALIZE_EPS);
    return (pnb__pie){mean, residual, pooled.weights};
}

pnb__log_std pnb__log_std_head_apply(pnb__graph *g, const pnb__log_std_head *h, pnb__tensor *side,
                                     pnb__tensor *x, pnb__tensor *lengths)
{
    pnb__pooled pooled = pnb__attention_pool_apply(g, &h->attention, x, lengths);
    size_t flat[2] = {pnb__dim(x, 0), pnb__dim(x, 2)};
    pnb__linear_opts opts = {
        .bias = pnb__param_tensor(g, h->fc_b), .residual = side, .act = PNB__IDENTITY};
    pnb__tensor *log_std =
        pnb__linear(pnb__reshape(pooled.vectors, 2, flat), pnb__param_tensor(g, h->fc_w), &opts);
    return (pnb__log_std){log_std, pooled.weights};
}

pnb__tensor *pnb__log_var_of_log_std(pnb__tensor *log_std)
{
    return pnb__affine(log_std, 2, 0);
}
