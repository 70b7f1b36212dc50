/* The signature of an embedding job: two runs with the same one make the same rows. */
#ifndef PNB_ENCODE_JOB_EMBED_SIGN_H
#define PNB_ENCODE_JOB_EMBED_SIGN_H

#include "encode/encoder.h"
#include "encode/job/embed_source.h"

enum { PNB__EMBED_SIGNATURE_BYTES = 160 };

typedef struct pnb__embed_signed {
    const pnb_encoder *encoder;
    const pnb__embed_source *source;
    const pnb_encode_opts *opts;
    const char *maker;
    const pnb_embeddings_info *info;
} pnb__embed_signed;

/* Errors  NOMEM */
pnb_status pnb__embed_sign(const pnb__embed_signed *job, char text[PNB__EMBED_SIGNATURE_BYTES],
                           pnb_error *err);

#endif
