/* A set alone on a stream that is open already. */
#ifndef PNB_COMMANDS_EMBED_EMBED_STREAM_H
#define PNB_COMMANDS_EMBED_EMBED_STREAM_H

#include <stdio.h>

#include "penumbra/encode.h"

/* Writes the set in the format; clip-retrieval's has no stream and is written as safetensors. The
 * stream stays open. Errors  IO, NOMEM */
pnb_status pnb__embed_stream(const pnb_embeddings *set, pnb_encode_format format, FILE *stream,
                             pnb_error *err);

#endif
