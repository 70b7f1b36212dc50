/* Embeds a long list of pictures or captions, and goes on where a killed run stopped. */
#ifndef PNB_ENCODE_EMBED_JOB_H
#define PNB_ENCODE_EMBED_JOB_H

#include "encode/embedder.h"
#include "encode/inputs.h"
#include "program/app.h"

typedef enum pnb__embed_format {
    PNB__EMBED_SAFETENSORS,
    PNB__EMBED_NPY,
    PNB__EMBED_JSONL,
    PNB__EMBED_CLIP_RETRIEVAL /* `out` is a folder */
} pnb__embed_format;

typedef struct pnb__embed_opts {
    const char *out;
    FILE *stream; /* the set goes here in place of `out`, without an ids file; or NULL */
    pnb__embed_format format;
    size_t batch_size;
    size_t save_every; /* rows between two parts of the journal */
    bool masked;       /* embed masked copies: the "less informative" side of inclusion */
    double mask_keep;  /* share of patches a masked picture keeps */
    double mask_drop;  /* probability that a token of a masked caption is deleted */
    bool exif;         /* turn pictures as their EXIF orientation says */
    const char *tokenizer, *preprocess; /* files the encoder was opened with; NULL: its folder's */
} pnb__embed_opts;

typedef struct pnb__embed_result {
    size_t n_inputs, n_rows, n_skipped, n_continued; /* continued: taken from the journal */
    size_t n_truncated;                              /* captions longer than the context */
    double seconds;
    double waited_s; /* the encoder's, for inputs of all batches but the first */
} pnb__embed_result;

/* Embeds either `pictures` or `captions` (the other is NULL) into opts->out. Unreadable pictures
 * are reported by pnb__skipped and left out. Progress goes to the log. Finished rows are kept in
 * OUT.journal/ until the end; the same call continues from there, a different one starts anew. What
 * goes to a stream is kept in memory and has no journal.
 * Errors  INTERRUPTED (journal kept), BUSY (another process writes this output), NOT_FOUND (not one
 *         input could be read), and those of the encoder and of writing */
pnb_status pnb__embed_run(pnb__app *app, pnb__embedder *encoder, const pnb__pictures *pictures,
                          const pnb__captions *captions, const pnb__embed_opts *opts,
                          pnb__embed_result *result);

/* The same for one batch in memory, for queries: *out is a new set of all rows. */
pnb_status pnb__embed_captions(pnb__app *app, pnb__embedder *encoder, const pnb__captions *captions,
                               pnb_embeddings **out);
pnb_status pnb__embed_pictures(pnb__app *app, pnb__embedder *encoder, const pnb__pictures *pictures,
                               bool exif, pnb_embeddings **out);

/* All of a long list in memory, with progress; what cannot be read is reported by pnb__skipped and
 * has no row. Either `pictures` or `captions` is NULL.
 * Errors  INTERRUPTED, NOT_FOUND (not one input could be read), and those of the encoder */
pnb_status pnb__embed_all(pnb__app *app, pnb__embedder *encoder, const pnb__pictures *pictures,
                          const pnb__captions *captions, bool exif, pnb_embeddings **out);

/* Encodes a ready tensor, no journal: pixels (B,3,H,W) or token ids (B,T) from a safetensors file.
 * Errors  NOT_FOUND (no array of that rank), SHAPE, and those of the encoder */
pnb_status pnb__embed_tensor(pnb__app *app, pnb__embedder *encoder, const char *path, bool is_text,
                             const pnb__embed_opts *opts, pnb__embed_result *result);

/* Writes a set in the format asked for. */
pnb_status pnb__embed_save(const pnb_embeddings *set, const pnb__embed_opts *opts, pnb_error *err);

#endif
