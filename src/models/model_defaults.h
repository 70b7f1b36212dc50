/* What belongs beside the weights of a model and what its configuration says of it. */
#ifndef PNB_MODELS_MODEL_DEFAULTS_H
#define PNB_MODELS_MODEL_DEFAULTS_H

#include <stddef.h>

#include "io/json/json.h"
#include "penumbra/image.h"
#include "penumbra/model.h"
#include "penumbra/tokenizer.h"

/* How pictures are prepared for a model whose folder does not say it: as its family's reference
 * does, at the size of the image tower. */
pnb_preprocess pnb__assumed_preprocess(const pnb_model *model);
/* How pictures of a new model are prepared: as open_clip trains the families it knows, else as the
 * family's own models were. */
pnb_preprocess pnb__fresh_preprocess(const pnb_model *model);

/* Sets the cleaning that a configuration asks for in text_cfg.tokenizer_kwargs.clean, at its root
 * or under open_clip's model_cfg. Where it is silent, a tokenizer_config.json in `dir` that names
 * SiglipTokenizer asks for `canonicalize`; else the tokenizer keeps its own. `config` and `dir` may
 * be NULL. *found: does one of them say? Errors  FORMAT (an unknown name), NOMEM */
pnb_status pnb__apply_clean(pnb_tokenizer *tokenizer, const json_t *config, const char *dir,
                            bool *found, pnb_error *err);

/* Cleaning and padding of a model's tokenizer: what the configuration and the files in `dir` say,
 * then the family's rule. *clean_assumed: nobody asks for the cleaning that was set. Whether the
 * padding is assumed is pnb_tokenizer_padding's to say. Errors  those of pnb__apply_clean */
pnb_status pnb__tokenizer_configure(pnb_tokenizer *tokenizer, const json_t *config, const char *dir,
                                    bool *clean_assumed, pnb_error *err);

/* Whether the files of a CLIP tokenizer pad otherwise than open_clip's own tokenizer, which the
 * configuration asks for by naming none, under a tower that attends to padding. */
bool pnb__pad_unlike_open_clip(const pnb_tokenizer *tokenizer, const json_t *config);

/* A new model's configuration, whose texts are read at the first end token where its text_cfg has
 * pool_type "eos", gets that token's id from the tokenizer.
 * Errors  ARG (a tokenizer without end token), NOMEM */
pnb_status pnb__config_follow_end(json_t *config, const pnb_tokenizer *tokenizer, pnb_error *err);

/* In words, where the tokenizer of such a model is to be had. */
void pnb__tokenizer_source(const pnb_model *model, char *text, size_t size);

#endif
