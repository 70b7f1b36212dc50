/* Heads on frozen embeddings: layers of Linear and ReLU, weights outside the graph. */
#ifndef PNB_ADAPT_HEAD_H
#define PNB_ADAPT_HEAD_H

#include "tensor/graph.h"

enum { PNB__HEAD_MAX_LAYERS = 8 };

/* Layer i: w[i] (out, in), b[i] (out). */
typedef struct pnb__head {
    size_t n_layers;
    pnb__tensor *w[PNB__HEAD_MAX_LAYERS], *b[PNB__HEAD_MAX_LAYERS];
} pnb__head;

/* x (B, in of layer 0) -> (B, out of the last): ReLU after all layers but the last. */
pnb__tensor *pnb__head_apply(const pnb__head *h, pnb__tensor *x);

#endif
