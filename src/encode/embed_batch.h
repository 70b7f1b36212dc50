/* One batch of the embedding job: inputs read and prepared, then encoded. */
#ifndef PNB_ENCODE_EMBED_BATCH_H
#define PNB_ENCODE_EMBED_BATCH_H

#include "encode/embed_ahead.h"
#include "encode/embed_job.h"

typedef struct pnb__embed_batch {
    const pnb__pictures *pictures; /* or */
    const pnb__captions *captions;
    pnb__embedder *encoder;
    const pnb__embed_opts *opts;
    uint64_t seed;
    int64_t max_pixels;       /* of a picture */
    pnb_image_budget *budget; /* of the decodes of all readers */
    size_t capacity, n;       /* rows */
    size_t *input;            /* (n) number of the input of each row */
    float *pixels;            /* (capacity, 3, H, W) */
    int32_t *tokens;          /* (capacity, T) */
    bool *ok, *cut;           /* (capacity) readable; longer than the context */
    pnb_error *why;           /* (capacity) */
    pnb__embed_ahead *ahead;  /* pictures: reads the following ones; NULL before the first fill */
    int32_t *kept;            /* patches a masked batch sees, ascending */
    uint64_t *stamps; /* per input, the caller's: of each picture before it is read; or NULL */
    size_t n_kept;
} pnb__embed_batch;

pnb_status pnb__embed_batch_init(pnb__embed_batch *b, pnb__embedder *encoder,
                                 const pnb__pictures *pictures, const pnb__captions *captions,
                                 const pnb__embed_opts *opts, uint64_t seed, pnb_error *err);
void pnb__embed_batch_free(pnb__embed_batch *b);

/* Called for every input left out. */
typedef pnb_status (*pnb__embed_skip_fn)(void *user, size_t input, const char *why);

/* Fills the batch from inputs *next .. end - 1 and moves *next; inputs that cannot be read are
 * handed to `skip` and replaced by the following ones. n is 0 when nothing is left. */
pnb_status pnb__embed_batch_fill(pnb__embed_batch *b, const pnb_ctx *ctx, size_t *next, size_t end,
                                 pnb__embed_skip_fn skip, void *user, pnb_error *err);
pnb_status pnb__embed_batch_encode(pnb__embed_batch *b, float *mean, float *log_var,
                                   pnb_error *err);

#endif
