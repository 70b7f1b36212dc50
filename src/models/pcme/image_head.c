/* The heads of PCME over a feature map z (C,h,w) (Chun et al. 2021, section 3.2.1;
 * models/image_encoder.py).
 *
 *     v = mean of z over its h w positions
 *     mean = L2(LN(W_f v + b_f + s(W p + b)))     p: local attention over the positions of z
 *     log sigma = W' p' + b' + W_g v + b_g        of the raw features, not of W_f v + b_f */
#include "models/pcme/image_head.h"

#define SIDE PNB__IMAGE_SIDE

void pnb__pcme_declare_image_head(pnb__weights *w, const pnb__pcme_config *c,
                                  pnb__pcme_image_head *out)
{
    size_t shape[2] = {c->embed_dim, c->image_dim};
    pnb__pcme_declare_linear(w, SIDE, "visual.fc", shape, out->fc);
    if (c->with_attention)
        pnb__pcme_declare_pie(w, SIDE, "visual.pie_net", c->image_dim, c, &out->pie);
    if (!c->with_uncertainty)
        return;
    pnb__pcme_declare_log_std(w, SIDE, "visual.uncertain_net", c->image_dim, c, &out->log_std);
    pnb__pcme_declare_linear(w, SIDE, "visual.uncertain_net.fc2", shape, out->log_std_side);
}

static pnb__tensor *linear(pnb__graph *g, pnb__tensor *x, pnb__param *const wb[2])
{
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, wb[1]), .act = PNB__IDENTITY};
    return pnb__linear(x, pnb__param_tensor(g, wb[0]), &opts);
}

pnb__tensor *pnb__pcme_positions_of(pnb__tensor *features)
{
    size_t n_batch = pnb__dim(features, 0), channels = pnb__dim(features, 1);
    size_t n = pnb__dim(features, 2) * pnb__dim(features, 3);
    pnb__tensor *flat = pnb__reshape(features, 3, (size_t[]){n_batch, channels, n});
    return pnb__permute(flat, (const int[]){0, 2, 1});
}

pnb__pcme_embedding pnb__pcme_image_head_apply(pnb__graph *g, const pnb__pcme_image_head *h,
                                               pnb__tensor *x, pnb__tensor *pooled, bool unit)
{
    pnb__pcme_embedding out = {.log_std = NULL};
    pnb__tensor *v = pooled != NULL ? pooled : pnb__mean(x, 1);
    const pnb__pie_head *pie = h->pie.attention.w1 != NULL ? &h->pie : NULL;
    pnb__pcme_mean(g, pie, linear(g, v, h->fc), x, NULL, unit, &out);
    if (h->log_std.attention.w1 == NULL)
        return out;
    pnb__tensor *side = linear(g, v, h->log_std_side);
    pnb__log_std spread = pnb__log_std_head_apply(g, &h->log_std, side, x, NULL);
    out.log_std = spread.log_std;
    out.log_std_weights = spread.weights;
    return out;
}
