/* The arrays of a model folder, whatever file holds them. */
#ifndef PNB_MODELS_WEIGHT_FILE_H
#define PNB_MODELS_WEIGHT_FILE_H

#include "base/base.h"
#include "penumbra/checkpoint.h"

typedef struct pnb__weight_file {
    pnb_checkpoint *arrays;
    char *path;
} pnb__weight_file;

/* Path of the first weight file of a folder in open_clip's order of search, allocated.
 * Errors  NOT_FOUND (the text lists the names) */
pnb_status pnb__weight_file_find(char **path, const char *dir, pnb_error *err);
pnb_status pnb__weight_file_open(pnb__weight_file *f, const char *path, pnb_error *err);
/* Is there any weight file in dir? */
bool pnb__weight_file_exists(const char *dir);
void pnb__weight_file_close(pnb__weight_file *f); /* an empty record is fine */

size_t pnb__weight_file_count(const pnb__weight_file *f);
const pnb_array_view *pnb__weight_file_at(const pnb__weight_file *f, size_t i);
const pnb_array_view *pnb__weight_file_lookup(const pnb__weight_file *f, const char *name);
/* What was tolerated while opening, or NULL. */
const char *pnb__weight_file_warning(const pnb__weight_file *f);
/* Value of a safetensors metadata key, or NULL. */
const char *pnb__weight_file_metadata(const pnb__weight_file *f, const char *key);
/* Whether it is as it was when it was opened.  Errors  IO: the text names what was written to */
pnb_status pnb__weight_file_check(const pnb__weight_file *f, pnb_error *err);
pnb_status pnb__weight_file_sha256(const pnb__weight_file *f, char hex[65], pnb_error *err);

#endif
