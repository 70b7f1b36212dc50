/* Row 4: residual blocks of convolutions (He et al. 2016) over the ops of src/tensor. Pictures have
 * their channels innermost: (B,H,W,C). */
#ifndef PNB_NN_RESIDUAL_H
#define PNB_NN_RESIDUAL_H

#include "tensor/graph.h"

/* torch's defaults for BatchNorm2d */
#define PNB__BATCHNORM_EPS 1e-5
#define PNB__BATCHNORM_MOMENTUM 0.1

/* A convolution (O,C,K,K) without bias and the batch normalisation of it. mean and var are running
 * buffers: weights that are not trained, but moved by training. conv NULL: there is none. */
typedef struct pnb__conv_norm {
    pnb__param *conv, *w, *b, *mean, *var;
} pnb__conv_norm;

/* Basic block: two 3x3 convolutions, conv[2].conv NULL. Bottleneck: 1x1, 3x3, 1x1. `stride` is that
 * of the first 3x3 (ResNet v1.5). shortcut: 1x1 where the shape changes. */
typedef struct pnb__residual {
    pnb__conv_norm conv[3], shortcut;
    size_t stride;
} pnb__residual;

/* y = relu(norm(conv(x)) + residual), relu and residual if wanted; padding K/2.
 * Whether the moments are those of the batch: where weights are trained and `frozen` is not asked
 * for. Otherwise they are the running ones: in graphs without gradients, and where the weights are
 * fixed or not trained, as when gradients of pixels are wanted or the trunk is locked. */
typedef struct pnb__conv_norm_opts {
    size_t stride;
    bool relu, frozen;
    pnb__tensor *residual;
} pnb__conv_norm_opts;
pnb__tensor *pnb__conv_norm_apply(pnb__graph *g, const pnb__conv_norm *c, pnb__tensor *x,
                                  const pnb__conv_norm_opts *opts);

/* x (B,H,W,C) -> (B, ceil(H / stride), ceil(W / stride), O) */
pnb__tensor *pnb__residual_apply(pnb__graph *g, const pnb__residual *r, pnb__tensor *x,
                                 bool frozen);

#endif
