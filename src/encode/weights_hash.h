/* SHA-256 of a model's weights without reading gigabytes each time. */
#ifndef PNB_ENCODE_WEIGHTS_HASH_H
#define PNB_ENCODE_WEIGHTS_HASH_H

#include "penumbra/model.h"

/* Fills hex from, in this order: the name of the file a Hugging Face snapshot links to, the record
 * `<weight file>.sha256` when it fits the file's size and time, the bytes themselves (and then
 * leaves that record, where the directory can be written).
 * Errors  IO */
pnb_status pnb__weights_hash(pnb_model *model, char hex[65], pnb_error *err);

#endif
