/* Row 4: local attention that pools the positions of an item into K vectors. */
#ifndef PNB_NN_ATTENTION_POOL_H
#define PNB_NN_ATTENTION_POOL_H

#include "tensor/graph.h"

/* w1 (hidden,C) and w2 (K,hidden), no biases; PCME has hidden = C / 2. */
typedef struct pnb__attention_pool {
    pnb__param *w1, *w2;
} pnb__attention_pool;

typedef struct pnb__pooled {
    pnb__tensor *vectors; /* (B,K,C) */
    pnb__tensor *weights; /* (B,K,T), each row sums to 1 */
} pnb__pooled;

/* A = softmax over positions of w2 tanh(w1 x), then y_k = sum_t A_kt x_t, of x (B,T,C).
 * lengths (B) int32, each at least 1, or NULL: positions beyond have no weight, whatever stands
 * there as long as it is finite. All NULL where building failed.
 * Source  Lin et al. 2017, section 2.1 (equations 5, 6, 7); Song and Soleymani 2019 (PVSE) */
pnb__pooled pnb__attention_pool_apply(pnb__graph *g, const pnb__attention_pool *p, pnb__tensor *x,
                                      pnb__tensor *lengths);

#endif
