/* An empty set for the rows of a source. */
#ifndef PNB_ENCODE_JOB_EMBED_ROWS_H
#define PNB_ENCODE_JOB_EMBED_ROWS_H

#include "encode/encoder.h"
#include "encode/job/embed_source.h"

/* n rows of zeros with the record of the job that `opts` describe.
 * Errors  UNSUPPORTED (the model has no such rows), ARG (n is 0), NOMEM */
pnb_status pnb__embed_rows_make(pnb_encoder *encoder, const pnb__embed_source *source,
                                const pnb_encode_opts *opts, size_t n, pnb_embeddings **out,
                                pnb_error *err);

#endif
