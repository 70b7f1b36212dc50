/* The heads of PCME over a feature map z (C,h,w) (Chun et al. 2021, section 3.2.1;
 * models/image_encoder.py).
 *
 *     v = mean of z over its h w positions
 *     mean = L2(LN(W_f v + b_f + s(W p + b)))     p: local attention over the positions of z
 *     log sigma = W' p' + b' + W_g v + b_g        of the raw features, not of W_f v + b_f */
#include "models/pcme/image_head.h"

#include <stdio.h>

/* "visual.fc" or "text.fc", ... */
static const char *named(char out[64], pnb__side side, const char *name)
{
    snprintf(out, 64, "%s.%s", side == PNB__IMAGE_SIDE ? "visual" : "text", name);
    return out;
}

void pnb__pcme_declare_head(pnb__weights *w, pnb__side side, size_t width,
                            const pnb__pcme_config *c, pnb__pcme_image_head *out)
{
    char name[64];
    size_t shape[2] = {c->embed_dim, width};
    pnb__pcme_declare_linear(w, side, named(name, side, "fc"), shape, out->fc);
    if (c->with_attention)
        pnb__pcme_declare_pie(w, side, named(name, side, "pie_net"), width, c, &out->pie);
    if (!c->with_uncertainty)
        return;
    named(name, side, "uncertain_net");
    pnb__pcme_declare_log_std(w, side, name, width, c, &out->log_std);
    named(name, side, "uncertain_net.fc2");
    pnb__pcme_declare_linear(w, side, name, shape, out->log_std_side);
}

void pnb__pcme_declare_image_head(pnb__weights *w, const pnb__pcme_config *c,
                                  pnb__pcme_image_head *out)
{
    pnb__pcme_declare_head(w, PNB__IMAGE_SIDE, c->image_dim, c, out);
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

pnb__pcme_embedding pnb__pcme_head_apply(pnb__graph *g, const pnb__pcme_image_head *h,
                                         pnb__tensor *x, pnb__tensor *v, pnb__tensor *lengths,
                                         bool unit)
{
    pnb__pcme_embedding out = {.log_std = NULL};
    const pnb__pie_head *pie = h->pie.attention.w1 != NULL ? &h->pie : NULL;
    pnb__pcme_mean(g, pie, linear(g, v, h->fc), x, lengths, unit, &out);
    if (h->log_std.attention.w1 == NULL)
        return out;
    pnb__tensor *side = linear(g, v, h->log_std_side);
    pnb__log_std spread = pnb__log_std_head_apply(g, &h->log_std, side, x, lengths);
    out.log_std = spread.log_std;
    out.log_std_weights = spread.weights;
    return out;
}

pnb__pcme_embedding pnb__pcme_image_head_apply(pnb__graph *g, const pnb__pcme_image_head *h,
                                               pnb__tensor *x, pnb__tensor *pooled, bool unit)
{
    return pnb__pcme_head_apply(g, h, x, pooled != NULL ? pooled : pnb__mean(x, 1), NULL, unit);
}
