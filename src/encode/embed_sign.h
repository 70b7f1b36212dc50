/* The signature of an embedding job: two runs with the same one make the same rows. */
#ifndef PNB_ENCODE_EMBED_SIGN_H
#define PNB_ENCODE_EMBED_SIGN_H

#include "encode/embed_job.h"

enum { PNB__EMBED_SIGNATURE_BYTES = 160 };

typedef struct pnb__embed_signed {
    const pnb__app *app;
    const pnb__embedder *encoder;
    const pnb__pictures *pictures; /* or */
    const pnb__captions *captions;
    const pnb__embed_opts *opts;
    const pnb_embeddings_info *info;
    size_t n_inputs;
} pnb__embed_signed;

/* Errors  NOMEM */
pnb_status pnb__embed_sign(const pnb__embed_signed *job, char text[PNB__EMBED_SIGNATURE_BYTES],
                           pnb_error *err);

#endif
