/* What the ranks of a training must have in common, and how they find out. */
#ifndef PNB_TRAIN_AGREE_H
#define PNB_TRAIN_AGREE_H

#include "train/trainer.h"

/* Options and processor: before anything is opened. Errors  ARG (the rank and the first option that
 * differs), those of other ranks */
pnb_status pnb__agree_options(const pnb__trainer *t, pnb_error *err);
/* Samples and weights: before the first step.  Errors  ARG (the rank, and what it has) */
pnb_status pnb__agree_start(const pnb__trainer *t, pnb_error *err);
/* The weights, before they are saved: another processor that rounds otherwise, or a bit that fell
 * over, shows here.  Errors  as above */
pnb_status pnb__agree_weights(const pnb__trainer *t, pnb_error *err);

#endif
