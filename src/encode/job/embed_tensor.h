/* A ready tensor as the source of an embedding job. */
#ifndef PNB_ENCODE_JOB_EMBED_TENSOR_H
#define PNB_ENCODE_JOB_EMBED_TENSOR_H

#include "encode/encoder.h"
#include "encode/job/embed_source.h"

typedef struct pnb__embed_tensor {
    void *values;
    size_t row_bytes;
    pnb__embed_source source; /* rows without names; `t` must stay where it is */
} pnb__embed_tensor;

/* Reads pixels (B,3,H,W) or token ids (B,T). Release with pnb__embed_tensor_reset, after a failure
 * too.  Errors  NOT_FOUND (no array of that rank), SHAPE, ARG (no token id), those of reading */
pnb_status pnb__embed_tensor_load(pnb__embed_tensor *t, const pnb_encoder *encoder,
                                  const char *path, bool is_text, pnb_error *err);
void pnb__embed_tensor_reset(pnb__embed_tensor *t);

#endif
