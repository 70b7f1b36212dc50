/* One batch of the embedding job: inputs read and prepared, then encoded. */
#ifndef PNB_ENCODE_JOB_EMBED_BATCH_H
#define PNB_ENCODE_JOB_EMBED_BATCH_H

#include "encode/encoder.h"
#include "encode/job/embed_ahead.h"
#include "encode/job/embed_source.h"

typedef struct pnb__embed_batch {
    const pnb__embed_source *source;
    pnb_encoder *encoder;
    pnb__worker *worker;
    const pnb_encode_opts *opts;
    int64_t max_pixels;       /* of a picture */
    pnb_image_budget *budget; /* of the decodes of all readers */
    size_t capacity, n;       /* rows */
    size_t n_run;             /* that are encoded: n, and as many copies as inputs were left out */
    size_t width;             /* floats or ids of a row */
    size_t *input;            /* (n) number of the input of each row */
    float *pixels;            /* (capacity, 3, H, W), or */
    int32_t *tokens;          /* (capacity, T) */
    bool *cut;                /* (capacity) longer than the context */
    bool *unknown;            /* (capacity) no word of it is known */
    pnb_error *why;           /* (capacity) its status: readable */
    pnb__embed_ahead *ahead;  /* pictures: reads the following ones; NULL before the first fill */
    size_t ahead_at, ahead_end; /* input it has next, and where it stops */
    int32_t *kept;              /* patches a masked batch sees, ascending */
    uint64_t *stamps; /* per input, the caller's: of each picture before it is read; or NULL */
    size_t n_kept;
    pnb_embeddings *raw; /* (capacity) rows of the tower on their way through an adapter, or of one
                          * augmented pass; or NULL */
    double *sums;        /* (2,n,D) over passes */
    void *pass;          /* (capacity) inputs of one pass */
} pnb__embed_batch;

/* The source, the encoder and the options must outlive the batch. */
pnb_status pnb__embed_batch_init(pnb__embed_batch *b, pnb_encoder *encoder,
                                 const pnb__embed_source *source, const pnb_encode_opts *opts,
                                 pnb_error *err);
void pnb__embed_batch_free(pnb__embed_batch *b);

/* Called for every input left out. */
typedef pnb_status (*pnb__embed_skip_fn)(void *user, size_t input, const char *why);

/* Fills the batch from inputs *next .. end - 1 and moves *next by its capacity, or to `end`: what a
 * batch is made of follows from where the list is cut, whoever embeds it. Inputs that cannot be
 * read are handed to `skip`, and the batch is smaller; n is 0 when none could be, or nothing is
 * left. */
pnb_status pnb__embed_batch_fill(pnb__embed_batch *b, size_t *next, size_t end,
                                 pnb__embed_skip_fn skip, void *user, pnb_error *err);
/* Into rows first .. first + n of a set of the side's family, which has room for n_run; `number`
 * counts the rows before them in the whole output, of which the set may be a part. */
pnb_status pnb__embed_batch_encode(pnb__embed_batch *b, pnb_embeddings *set, size_t first,
                                   size_t number, pnb_error *err);

#endif
