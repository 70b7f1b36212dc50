/* Terms of a loss over samples of the distributions (PCME's): how each is built, and what a step
 * draws for them. They are rows of the table in loss_terms.c as all others are; what each computes
 * is said in include/penumbra/loss.h. */
#ifndef PNB_TRAIN_LOSSES_SAMPLED_TERMS_H
#define PNB_TRAIN_LOSSES_SAMPLED_TERMS_H

#include "train/losses/term_build.h"

pnb__tensor *pnb__build_pcme(pnb__term_build *b);
pnb__tensor *pnb__build_pcme_kl(pnb__term_build *b);
pnb__tensor *pnb__build_uniformity(pnb__term_build *b);

/* Which samples a step draws and compares: see pnb__loss_set_step.  Errors  NOMEM */
pnb_status pnb__sampled_set_step(const pnb__loss *loss, uint64_t seed, int64_t step,
                                 const size_t *row_of, pnb_error *err);

#endif
