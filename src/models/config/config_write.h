/* A configuration in the words of a layout. */
#ifndef PNB_MODELS_CONFIG_CONFIG_WRITE_H
#define PNB_MODELS_CONFIG_CONFIG_WRITE_H

#include "models/keys/key_mapping.h"

/* The JSON that describes `c` in that layout's dialect (open_clip: the whole of
 * open_clip_config.json without preprocess_cfg). What was written is read back and must describe
 * the same model, so a dialect that lacks a word for something is noticed here.
 * Errors  UNSUPPORTED (naming what cannot be said), NOMEM */
pnb_status pnb__config_write(json_t **out, const pnb__config *c, pnb__key_mapping_kind kind,
                             pnb_error *err);

#endif
