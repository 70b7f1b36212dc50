/* A model directory opened for use: weights, tokenizer and preprocessing that belong together. */
#ifndef PNB_ENCODE_EMBEDDER_H
#define PNB_ENCODE_EMBEDDER_H

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"
#include "penumbra/model.h"
#include "program/app.h"
#include "program/result.h"

enum { PNB__MAX_ASSUMED = 512 };

typedef struct pnb__embedder {
    pnb_model *model;
    const pnb_model_info *info; /* of model */
    pnb_tokenizer *tokenizer;   /* NULL unless asked for */
    pnb_preprocess preprocess;  /* set when pictures were asked for */
    int64_t max_image_pixels;   /* of a picture; 0: the library's default */
    char *dir;                  /* as opened */
    char name[128];             /* of the directory, for records */
    char weights_sha256[65];
    char assumed[PNB__MAX_ASSUMED]; /* a sentence on what no file says of pictures; or empty */
    char assumed_texts[PNB__MAX_ASSUMED]; /* the same of captions */
} pnb__embedder;

enum { PNB__USE_PICTURES = 1, PNB__USE_TEXTS = 2 };

/* What is wanted besides the weights, and where it lies; NULL: in the model's directory. */
typedef struct pnb__embedder_parts {
    int use;
    const char *tokenizer, *preprocess;
} pnb__embedder_parts;

/* Opens `dir` with the parts that `parts->use` names. Without preprocessing there the family's is
 * assumed; without a tokenizer there is an error that says where to get it.
 * Release with pnb__embedder_close, after a failure too.
 * Errors  those of the loaders; SHAPE (preprocessing and image tower differ in size; vocabulary
 *         larger than the embedding table) */
pnb_status pnb__embedder_open(pnb__embedder *e, const pnb_ctx *ctx, const char *dir,
                              const pnb__embedder_parts *parts, pnb_error *err);
/* Opens tokenizer or preprocessing of an embedder that has none yet; what could be opened stays set
 * after a failure. */
pnb_status pnb__embedder_add(pnb__embedder *e, const char *dir, const pnb__embedder_parts *parts,
                             pnb_error *err);
/* For commands: pnb__embedder_open of what --model names, a warning where something is assumed. The
 * error is app->err. */
pnb_status pnb__embedder_open_named(pnb__embedder *e, pnb__app *app, const char *name,
                                    const pnb__embedder_parts *parts);
void pnb__embedder_close(pnb__embedder *e);

/* Fills the record that an embedding set of this model carries. */
void pnb__embedder_describe(const pnb__embedder *e, bool is_text, uint64_t seed,
                            pnb_embeddings_info *info);

/* The tokenizer's part of a result: ids, what pads and who says so, cleaning. */
void pnb__describe_tokenizer(const pnb_tokenizer *tokenizer, pnb__result *r);

/* Family of the sets this model makes. */
pnb_family pnb__embedder_family(const pnb__embedder *e);

#endif
