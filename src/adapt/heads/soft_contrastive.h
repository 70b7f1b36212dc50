/* PCME's soft contrastive loss in a graph. */
#ifndef PNB_ADAPT_HEADS_SOFT_CONTRASTIVE_H
#define PNB_ADAPT_HEADS_SOFT_CONTRASTIVE_H

#include "tensor/graph.h"

/* One side: mean, log_var (B,D); noise (B,J,D) of N(0,1). */
typedef struct pnb__sampled_side {
    pnb__tensor *mean, *log_var, *noise;
} pnb__sampled_side;

/* Sum over all B^2 pairs of
 *   log J^2 - logsumexp_jk log s(2 m l_jk),  l_jk = -scale sqrt(|x_j - y_k|^2 + 1e-6) + shift
 * with x = mean + exp(log_var/2) noise, m = 1 for matching rows and -1 else: `signs` (B,B). Both
 * directions of the reference are this one sum; it adds them up.
 * Source  PCME Eq. (5) to (7); the 2 under the sigmoid and 1e-6 are its code's */
pnb__tensor *pnb__soft_contrastive(pnb__sampled_side images, pnb__sampled_side texts,
                                   pnb__tensor *scale, pnb__tensor *shift, pnb__tensor *signs);
/* -1/2 sum_{B,D} (1 + l - m^2 - e^l), l = log_var: the divergence from N(0, I). */
pnb__tensor *pnb__sampled_divergence(pnb__sampled_side side);

#endif
