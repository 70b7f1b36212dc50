/* What the ways out of one model into another share. */
#ifndef PNB_MODELS_KEYS_KEY_EXPORT_H
#define PNB_MODELS_KEYS_KEY_EXPORT_H

#include "io/json/json.h"
#include "models/model.h"

/* ---- key_export.c ---- */

/* The tokenizer's settings of a configuration in open_clip's dialect; they are no part of the
 * architecture, so the writer does not know them. NOMEM */
pnb_status pnb__carry_text_keys(const pnb_model *m, json_t *root, pnb_error *err);
/* Values of every weight of `to` that `from` has under that name in that shape. */
pnb_status pnb__copy_same(pnb_model *from, pnb_model *to, pnb_error *err);

/* ---- pcmepp_start.c ---- */

/* CLIP's two towers as a PCME++: its code loads CLIP's weights and draws the rest, the blocks and
 * projections of the log-variance. The scale and bias start at a = b = 5.
 * Errors  UNSUPPORTED (towers that PCME++ does not have, named), NOMEM, those of saving */
pnb_status pnb__convert_to_pcmepp(pnb_model *from, const char *out, const pnb_model_convert_opts *o,
                                  char notes[1024], pnb_error *err);

#endif
