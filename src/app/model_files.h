/* The files of a model folder beside configuration and weights. */
#ifndef PNB_APP_MODEL_FILES_H
#define PNB_APP_MODEL_FILES_H

#include <stddef.h>

#include "penumbra/error.h"

/* Copies the tokenizer and preprocessing files that `from` has into `to`, byte for byte; *n counts
 * them. Errors  IO, NOMEM */
pnb_status pnb__model_files_copy(const char *from, const char *to, size_t *n, pnb_error *err);

#endif
