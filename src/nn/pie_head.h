/* Row 4: the heads of PCME and PVSE, which look at an item's positions beside its global feature:
 * polysemous instance embeddings (PIE-Net) for the mean, and the logarithm of the deviation. */
#ifndef PNB_NN_PIE_HEAD_H
#define PNB_NN_PIE_HEAD_H

#include "nn/attention_pool.h"

typedef struct pnb__pie_head {
    pnb__attention_pool attention; /* K heads over (B,T,C) */
    pnb__param *fc_w, *fc_b;       /* (D,C), (D) */
    pnb__param *ln_w, *ln_b;       /* (D) */
} pnb__pie_head;

typedef struct pnb__pie {
    pnb__tensor *mean;     /* (B,K,D) */
    pnb__tensor *residual; /* (B,K,D): sigmoid(fc(pooled)) */
    pnb__tensor *weights;  /* (B,K,T) of the attention */
} pnb__pie;

/* LN(base + sigmoid(fc(pooled_k))) for each of K heads, from base (B,D) and x (B,T,C). unit: with
 * L2 norm 1, as PCME compares means. lengths as in attention_pool.h. Source  PCME section 3.2.1;
 * PVSE equation 1 */
pnb__pie pnb__pie_head_apply(pnb__graph *g, const pnb__pie_head *h, pnb__tensor *base,
                             pnb__tensor *x, pnb__tensor *lengths, bool unit);

typedef struct pnb__log_std_head {
    pnb__attention_pool attention; /* one head */
    pnb__param *fc_w, *fc_b;       /* (D,C), (D) */
} pnb__log_std_head;

typedef struct pnb__log_std {
    pnb__tensor *log_std; /* (B,D) */
    pnb__tensor *weights; /* (B,1,T) of the attention */
} pnb__log_std;

/* log sigma = fc(pooled) + side, from side (B,D) and x (B,T,C). No sigmoid, LayerNorm or L2 norm:
 * the range of a deviation is not bounded (PCME section 3.2.1). */
pnb__log_std pnb__log_std_head_apply(pnb__graph *g, const pnb__log_std_head *h, pnb__tensor *side,
                                     pnb__tensor *x, pnb__tensor *lengths);

/* log sigma^2 = 2 log sigma: from what the head says to what embedding sets hold. */
pnb__tensor *pnb__log_var_of_log_std(pnb__tensor *log_std);

#endif
