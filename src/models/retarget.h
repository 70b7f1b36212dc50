/* Weights of one model for another that differs in picture size, context or uncertainty heads. */
#ifndef PNB_MODELS_RETARGET_H
#define PNB_MODELS_RETARGET_H

#include "models/model.h"

/* Copies the weights of `from` into `to`, a model in f32 of the same widths; position embeddings
 * are interpolated where the sizes differ, by LongProLIP's rule. keep_uncertainty false: the
 * uncertainty tokens and heads of `to` stay as they were initialised. Errors  SHAPE (another weight
 * differs), NOMEM */
pnb_status pnb__model_retarget(pnb_model *from, pnb_model *to, bool keep_uncertainty,
                               pnb_error *err);

#endif
