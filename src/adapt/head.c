/* The multilayer perceptron that every learned method puts on embeddings:
 *   h_0 = x,   h_i = max(0, h_(i-1) W_i^T + b_i),   y = h_(n-1) W_n^T + b_n
 * Depths and widths are the methods' (SPEC sections 5 and 7). */
#include "adapt/head.h"

pnb__tensor *pnb__head_apply(const pnb__head *h, pnb__tensor *x)
{
    for (size_t i = 0; i < h->n_layers; i++) {
        pnb__linear_opts opts = {.bias = h->b[i],
                                 .act = i + 1 < h->n_layers ? PNB__RELU : PNB__IDENTITY};
        x = pnb__linear(x, h->w[i], &opts);
    }
    return x;
}
