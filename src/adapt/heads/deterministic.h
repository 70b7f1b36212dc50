/* Captions as tuned points: a method, and an ablation of AsymVLM. */
#ifndef PNB_ADAPT_HEADS_DETERMINISTIC_H
#define PNB_ADAPT_HEADS_DETERMINISTIC_H

#include "adapt/heads/learned.h"

void pnb__deterministic_declare(pnb_adapter *a, pnb__learned *l);
void pnb__deterministic_side(pnb__learned_graph *lg, int side, pnb__tensor *x,
                             pnb__learned_side *out);
void pnb__deterministic_loss(pnb__learned_graph *lg);
/* InfoNCE or SigLIP of scores (B,B), rows images, by a->opts.loss; for SigLIP their mean is taken
 * from them, as a constant. */
pnb__tensor *pnb__contrast(pnb__learned_graph *lg, pnb__tensor *scores);
/* Declares scale and, for SigLIP, its bias, which begins at -log B: with B - 1 pairs in B that do
 * not belong together, where a sigmoid that knows nothing should be. */
void pnb__contrast_declare(const pnb_adapter *a, pnb__learned *l, const char *name, double scale);

#endif
