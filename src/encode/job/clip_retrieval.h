/* Sets in the layout of clip-retrieval. */
#ifndef PNB_ENCODE_JOB_CLIP_RETRIEVAL_H
#define PNB_ENCODE_JOB_CLIP_RETRIEVAL_H

#include "penumbra/embeddings.h"
#include "penumbra/error.h"

/* Writes DIR/img_emb/img_emb_0.npy or DIR/text_emb/text_emb_0.npy (by the set's modality) and
 * DIR/metadata/metadata_0.parquet: row i of all is one sample. Metadata are written with the
 * pictures, and with captions where no pictures are there.
 * Errors  SHAPE (the other side is there and has another number of rows), IO, NOMEM */
pnb_status pnb__clip_retrieval_save(const pnb_embeddings *set, const char *dir, pnb_error *err);

/* The same refusal before the work, for `n` rows to come. */
pnb_status pnb__clip_retrieval_check(const char *dir, bool is_text, size_t n, pnb_error *err);

#endif
