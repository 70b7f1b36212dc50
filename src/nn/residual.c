/* The blocks of ResNet (He et al. 2016, figure 5; torchvision's resnet.py).
 *
 *   basic       y = relu(n2(conv3x3(relu(n1(conv3x3_s(x))))) + s(x))
 *   bottleneck  y = relu(n3(conv1x1(relu(n2(conv3x3_s(relu(n1(conv1x1(x)))))))) + s(x))
 * s(x) is x, or n(conv1x1_s(x)) where the shape changes. The paper has the stride of a bottleneck
 * on its first 1x1, torchvision on the 3x3 ("v1.5"): torchvision is followed, since weights are
 * its. A block is a segment: with gradient checkpointing its inside is computed again in backward.
 */
#include "nn/residual.h"

pnb__tensor *pnb__conv_norm_apply(pnb__graph *g, const pnb__conv_norm *c, pnb__tensor *x,
                                  const pnb__conv_norm_opts *opts)
{
    bool training = pnb__graph_has_grad(g) && !pnb__graph_is_frozen(g) && !opts->frozen &&
                    c->w->trainable && !c->mean->fixed;
    pnb__batchnorm_opts norm = {.w = pnb__param_tensor(g, c->w),
                                .b = pnb__param_tensor(g, c->b),
                                .running_mean = pnb__param_tensor(g, c->mean),
                                .running_var = pnb__param_tensor(g, c->var),
                                .residual = opts->residual,
                                .relu = opts->relu,
                                .training = training,
                                .eps = PNB__BATCHNORM_EPS,
                                .momentum = PNB__BATCHNORM_MOMENTUM};
    return pnb__conv2d_batchnorm(x, pnb__param_tensor(g, c->conv), opts->stride,
                                 c->conv->shape[2] / 2, &norm);
}

pnb__tensor *pnb__residual_apply(pnb__graph *g, const pnb__residual *r, pnb__tensor *x, bool frozen)
{
    size_t begin = pnb__segment_begin(g);
    bool is_basic = r->conv[2].conv == NULL;
    int n = is_basic ? 2 : 3, strided = is_basic ? 0 : 1;
    pnb__conv_norm_opts last = {.stride = 1, .relu = true, .frozen = frozen, .residual = x};
    if (r->shortcut.conv != NULL)
        last.residual = pnb__conv_norm_apply(
            g, &r->shortcut, x, &(pnb__conv_norm_opts){.stride = r->stride, .frozen = frozen});
    for (int i = 0; i + 1 < n; i++) {
        pnb__conv_norm_opts opts = {
            .stride = i == strided ? r->stride : 1, .relu = true, .frozen = frozen};
        x = pnb__conv_norm_apply(g, &r->conv[i], x, &opts);
    }
    x = last.residual == NULL ? NULL : pnb__conv_norm_apply(g, &r->conv[n - 1], x, &last);
    pnb__segment_end(g, begin, x);
    return x;
}
