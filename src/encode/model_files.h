/* The files of a model folder beside configuration and weights. */
#ifndef PNB_ENCODE_MODEL_FILES_H
#define PNB_ENCODE_MODEL_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "penumbra/image.h"

/* Copies the tokenizer and preprocessing files that `from` has into `to`, byte for byte; *n counts
 * them. Without `with_preprocess` preprocessor_config.json is left out. Errors  IO, NOMEM */
pnb_status pnb__model_files_copy(const char *from, const char *to, bool with_preprocess, size_t *n,
                                 pnb_error *err);

/* Writes preprocessor_config.json into `dir` unless it is there. Errors  IO, NOMEM */
pnb_status pnb__model_files_add_preprocess(const char *dir, const pnb_preprocess *pp,
                                           pnb_error *err);

#endif
