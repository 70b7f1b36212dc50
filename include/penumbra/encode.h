/* Pictures and texts to embedding sets, with a model folder that is opened once.
 *
 *     pnb_encoder *encoder = NULL;
 *     pnb_embeddings *set = NULL;
 *     if (pnb_encoder_open(&encoder, ctx, "model", NULL, &err) == PNB_OK &&
 *         pnb_encode_texts(encoder, texts, n, NULL, &set, &err) == PNB_OK)
 *         ... set->mean (N,D), set->log_var (N,D) ...
 *
 * An encoder may be used by several threads at once; each call plans what it needs for itself or
 * takes over what an earlier call planned. The same inputs in the same batches have the same bits
 * whatever else is encoded meanwhile. */
#ifndef PENUMBRA_ENCODE_H
#define PENUMBRA_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"
#include "penumbra/error.h"
#include "penumbra/image.h"
#include "penumbra/model.h"
#include "penumbra/peers.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model folder ---- */

/* Weights, tokenizer and preprocessing that belong together. */
typedef struct pnb_encoder pnb_encoder;

/* Sides of a model: what is opened, what is encoded. */
typedef enum pnb_encode_side { PNB_ENCODE_IMAGES = 1, PNB_ENCODE_TEXTS = 2 } pnb_encode_side;

/* What is opened, and what replaces files of the folder; all zero is the usual. */
typedef struct pnb_encoder_opts {
    int sides; /* PNB_ENCODE_...; 0: those that the weights have */
    /* A file or folder in place of what lies in the model's folder; NULL: that one. */
    const char *tokenizer, *preprocess;
    int64_t max_image_pixels; /* of a picture; 0: PNB_IMAGE_DEFAULT_PIXELS. Larger are refused */
    pnb_precision precision;  /* of the products (penumbra/model.h); 0: floats */
} pnb_encoder_opts;

/* Opens a model folder on `ctx`, which must outlive the encoder. Weights stay a read-only file map;
 * their hash is read from the record beside them or computed and left there. Without preprocessing
 * in the folder its family's is assumed (pnb_encoder_assumed); a tokenizer is never assumed. `opts`
 * may be NULL. Free with pnb_encoder_free.
 * Errors  those of pnb_model_load; NOT_FOUND (no tokenizer), UNSUPPORTED (no tower for a side),
 * SHAPE (preprocessing or tokenizer of another model) */
pnb_status pnb_encoder_open(pnb_encoder **out, const pnb_ctx *ctx, const char *dir,
                            const pnb_encoder_opts *opts, pnb_error *err);
void pnb_encoder_free(pnb_encoder *encoder); /* NULL is fine; no call may be running */

/* Sizes, family and scale of the model; lives as long as the encoder. */
const pnb_model_info *pnb_encoder_model_info(const pnb_encoder *encoder);

/* A sentence on what no file says of a side and was assumed, "" for nothing. */
const char *pnb_encoder_assumed(const pnb_encoder *encoder, pnb_encode_side side);

/* Makes a folder of a model and an adapter (adapt.h) that was learned from its embeddings: the
 * model's files, and the adapter's in the folder `adapter`. An encoder of it puts every row of a
 * side that is adapted through the adapter, and its sets are those that pnb_adapter_apply makes of
 * the model's own. Weight files are hard links where that can be, else copies; `out` appears whole.
 * Errors  EXISTS (out is there), ARG (learned from another model: the text has both), SHAPE,
 *         UNSUPPORTED (the model has an adapter already), IO, NOMEM, and those of opening both */
pnb_status pnb_encoder_attach(const pnb_ctx *ctx, const char *model, const char *adapter,
                              const char *out, pnb_error *err);

/* The record that sets of one side carry: model, SHA-256 of the weights, preprocessing, scale. */
void pnb_encoder_describe(const pnb_encoder *encoder, pnb_encode_side side, uint64_t seed,
                          pnb_embeddings_info *info);

/* ---- encoding ---- */

/* How inputs are prepared and who hears of it; watch and skipped are called during the call only,
 * on its thread. */
typedef struct pnb_encode_opts {
    size_t batch_size; /* inputs encoded together */
    uint64_t seed;     /* of masked copies; kept in the set's record */
    bool exif;         /* turn pictures as their EXIF orientation says */
    bool raw;          /* means with the lengths that the projection gave them; else unit rows */
    /* Rows are what the last projection reads, points of its width, with a link "activations" in
     * their chain: what bayesvlm (adapt.h) learns from. UNSUPPORTED where a tower ends in none */
    bool activations;
    /* 0, or 2 and more augmented passes an input: the rows are Gaussians of their mean and variance
     * (docs/numerics.md#ttda). Not with masked, activations, ready rows or an adapter: ARG */
    size_t ttda;
    size_t match_samples; /* the set's (embeddings.h); 0: 7 for models with a and b of match_prob */
    bool masked;          /* encode masked copies: the "less informative" side of inclusion */
    double mask_keep;     /* share of its patches a masked picture keeps, in (0, 1] */
    double mask_drop;     /* probability that a token of a masked text is deleted */
    /* Called before each batch with the inputs behind it, those of an earlier run included, and at
     * the end with `total` twice; false stops with INTERRUPTED. */
    pnb_watch watch;
    /* Called on the caller's thread for each input that is left out, because it cannot be read: its
     * name and the reason. NULL: the first such input ends the call with FORMAT. */
    void (*skipped)(void *user, const char *what, const char *why);
    void *skipped_user;
    /* Processes that encode the list together, all of which make the call with the same inputs:
     * each encodes its share, the rows are those of one process, byte by byte, and what is skipped
     * is told on all of them at the end. pnb_encode_to_file: rank 0 writes, in a folder that all
     * see, and the others do not wait for it. NULL: this process alone */
    pnb_peers *ranks;
} pnb_encode_opts;

/* Batches of 32, no masking (keep 0.25 and drop 0.75 where it is asked for), nobody watches. */
pnb_encode_opts pnb_encode_opts_default(void);

/* What a run did. */
typedef struct pnb_encode_result {
    size_t n_inputs, n_rows, n_skipped;
    size_t n_continued;       /* inputs taken from the journal of an earlier run */
    size_t n_truncated;       /* texts longer than the model's context */
    size_t n_unknown;         /* texts of which a list of words knows none */
    double seconds, waited_s; /* waited: for inputs of all batches but the first */
} pnb_encode_result;

/* Texts in UTF-8 to a new set of n rows with their text and their number as id.
 * Shape   texts (N) -> the arrays of the family that the text tower ends in (pnb_tower_info): mean
 *         (N,D), unit rows but for gen_gaussian, with log_var (N,D), kappa (N), ... beside it
 * Errors  NOT_FOUND (n is 0), ARG (a NULL text, options out of range), FORMAT (not UTF-8), LIMIT,
 * UNSUPPORTED (opened without this side), INTERRUPTED, NOMEM, and those of pnb_model_encode_text */
pnb_status pnb_encode_texts(pnb_encoder *encoder, const char *const *texts, size_t n,
                            const pnb_encode_opts *opts, pnb_embeddings **out, pnb_error *err);

/* Decoded pictures of any size to a new set of n rows, their number as id. The pictures stay the
 * caller's. For pipelines that resize before they convert to RGB decode with pnb_image_opts.native.
 * Errors  as above, for pictures: ARG without pixels, or with other than 1 to 4 channels */
pnb_status pnb_encode_images(pnb_encoder *encoder, const pnb_image *images, size_t n,
                             const pnb_encode_opts *opts, pnb_embeddings **out, pnb_error *err);

/* All that `paths` name to a new set; what is skipped has no row.
 *   IMAGES  picture files, folders, globs, tar shards, csv, tsv and jsonl data sets
 *   TEXTS   text files (one a line), .jsonl, .csv or .tsv with the column "title", tar shards,
 *           folders; every line and caption is held in memory
 * Errors  NOT_FOUND (nothing there, or not one input could be read), and as above */
pnb_status pnb_encode_files(pnb_encoder *encoder, pnb_encode_side side, const char *const *paths,
                            size_t n, const pnb_encode_opts *opts, pnb_embeddings **out,
                            pnb_error *err);

/* ---- long jobs ---- */

/* How a set is written; all but JSONL keep names in a file of their own. */
typedef enum pnb_encode_format {
    PNB_ENCODE_SAFETENSORS,   /* NAME.safetensors, NAME.ids.jsonl beside it names its rows */
    PNB_ENCODE_NPY,           /* NAME.npy, with the same */
    PNB_ENCODE_JSONL,         /* a row a line, names among them */
    PNB_ENCODE_CLIP_RETRIEVAL /* a folder as the tool of that name reads it: means and metadata */
} pnb_encode_format;

/* Where the set goes. */
typedef struct pnb_encode_file {
    const char *out; /* a file, or the folder of clip-retrieval */
    pnb_encode_format format;
    size_t save_every; /* rows between two parts of the journal; a part is also saved every 20 s */
    const char *maker; /* the program and its version: another one begins anew; NULL: not told */
} pnb_encode_file;

/* pnb_encode_files into a file, for lists that do not fit into memory or take hours. Finished rows
 * are kept in OUT.journal/ until the end; the same call continues there after a crash or an
 * interruption, with the rows of a run without one, a different call begins anew. Pictures that
 * were replaced meanwhile are made again. `result` may be NULL.
 * Errors  INTERRUPTED (the journal is
 * kept), BUSY (another process writes this output), IO, and those of pnb_encode_files */
pnb_status pnb_encode_to_file(pnb_encoder *encoder, pnb_encode_side side, const char *const *paths,
                              size_t n, const pnb_encode_opts *opts, const pnb_encode_file *file,
                              pnb_encode_result *result, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
