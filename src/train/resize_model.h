/* Weights of one model for another that differs in picture size, context or uncertainty heads. */
#ifndef PNB_TRAIN_RESIZE_MODEL_H
#define PNB_TRAIN_RESIZE_MODEL_H

#include "models/prolip/prolip.h"

/* Copies the weights of `from` into `to`, a model in f32 of the same widths; position embeddings
 * are interpolated where the sizes differ. keep_uncertainty false: the uncertainty tokens and heads
 * of `to` stay as they were initialised.
 * Errors  SHAPE (another weight differs), NOMEM */
pnb_status pnb__model_retarget(pnb_model *from, pnb_model *to, bool keep_uncertainty,
                               pnb_error *err);

/* Rows of a from[0] x from[1] grid, `width` numbers each, to to[0] x to[1], bicubic. */
pnb_status pnb__resize_grid(const float *in, const size_t from[2], float *out, const size_t to[2],
                            size_t width, pnb_error *err);
/* `from` rows and n_extra rows behind them, to `to` rows and the same extra ones. */
void pnb__resize_context(const float *in, size_t from, float *out, size_t to, size_t n_extra,
                         size_t width);

#endif
