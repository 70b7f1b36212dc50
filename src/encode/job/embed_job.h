/* Embeds a list of inputs, into memory or into a file that a killed run goes on with. */
#ifndef PNB_ENCODE_JOB_EMBED_JOB_H
#define PNB_ENCODE_JOB_EMBED_JOB_H

#include "encode/encoder.h"
#include "encode/job/embed_source.h"

/* All of a source in memory; what is skipped has no row. `result` may be NULL.
 * Errors  INTERRUPTED, NOT_FOUND (not one input could be read), FORMAT (an input cannot be read and
 *         opts->skipped is NULL), and those of the encoder */
pnb_status pnb__embed_set(pnb_encoder *encoder, const pnb__embed_source *source,
                          const pnb_encode_opts *opts, pnb_embeddings **out,
                          pnb_encode_result *result, pnb_error *err);

/* The same into file->out. Finished rows are kept in OUT.journal/ until the end; the same call
 * continues from there, a different one starts anew.
 * Errors  INTERRUPTED (journal kept), BUSY (another process writes this output), and those of
 *         pnb__embed_set and of writing */
pnb_status pnb__embed_file(pnb_encoder *encoder, const pnb__embed_source *source,
                           const pnb_encode_opts *opts, const pnb_encode_file *file,
                           pnb_encode_result *result, pnb_error *err);

/* Writes a set in the format asked for. */
pnb_status pnb__embed_save(const pnb_embeddings *set, pnb_encode_format format, const char *path,
                           pnb_error *err);

#endif
