/* A model directory opened for use: weights, tokenizer and preprocessing that belong together. */
#ifndef PNB_ENCODE_ENCODER_H
#define PNB_ENCODE_ENCODER_H

#include "encode/worker.h"
#include "penumbra/adapt.h"
#include "penumbra/encode.h"

enum { PNB__MAX_ASSUMED = 512 };

/* All zero is empty. Encoding reads everything and changes the pool of workers only. */
struct pnb_encoder {
    pnb_model *model;
    const pnb_model_info *info; /* of model */
    pnb_tokenizer *tokenizer;   /* NULL unless asked for */
    pnb_preprocess preprocess;  /* set when pictures were asked for */
    int64_t max_image_pixels;   /* of a picture; 0: the library's default */
    char *dir;                  /* as opened */
    char *parts[2];             /* tokenizer and preprocessing that were named, or NULL */
    char name[128];             /* of the directory, for records */
    char weights_sha256[65];
    char assumed[PNB__MAX_ASSUMED]; /* a sentence on what no file says of pictures; or empty */
    char assumed_texts[PNB__MAX_ASSUMED]; /* the same of captions */
    pnb_adapter *adapter; /* beside the model; NULL: rows are what the towers end in */
    bool is_borrowed;     /* model and tokenizer are somebody else's */
    pnb__workers workers;
};

/* Opens `dir` with the sides that `parts` names, 0: the weights alone. Without preprocessing there
 * the family's is assumed; without a tokenizer there is an error that says where to get it.
 * Release with pnb__encoder_reset, after a failure too.
 * Errors  those of the loaders; SHAPE (preprocessing and image tower differ in size; vocabulary
 *         larger than the embedding table) */
pnb_status pnb__encoder_init(pnb_encoder *e, const pnb_ctx *ctx, const char *dir,
                             const pnb_encoder_opts *parts, pnb_error *err);
/* An encoder of a model that is open already, with the weights that it has now: those of a training
 * between two steps. All must outlive it; `name` is for records. Release with pnb__encoder_reset.
 * Errors  NOMEM, those of hashing the weights */
pnb_status pnb__encoder_borrow(pnb_encoder *e, const char *name, pnb_model *model,
                               const pnb_tokenizer *tokenizer, const pnb_preprocess *preprocess,
                               pnb_error *err);
/* Opens tokenizer or preprocessing of an encoder that has none yet; what could be opened stays set
 * after a failure. */
pnb_status pnb__encoder_add(pnb_encoder *e, const char *dir, const pnb_encoder_opts *parts,
                            pnb_error *err);
void pnb__encoder_reset(pnb_encoder *e);

/* Family and width of the sets that one side of this model makes, through its adapter where it has
 * one for that side. */
pnb_family pnb__encoder_family(const pnb_encoder *e, pnb_encode_side side);
size_t pnb__encoder_dim(const pnb_encoder *e, pnb_encode_side side);
/* Room for n such rows, with the arrays that the adapter fills.  Errors  NOMEM */
pnb_status pnb__encoder_make_rows(const pnb_encoder *e, pnb_encode_side side, size_t n,
                                  pnb_embeddings **out, pnb_error *err);
/* Whether rows of a side go through an adapter. */
bool pnb__encoder_adapts(const pnb_encoder *e, pnb_encode_side side);
/* What the preprocessing of rows says that have the lengths the projection gave them. */
#define PNB__LENGTHS_KEPT ", lengths kept"
/* Whether the adapter of a side learned from such rows, and is given such. */
bool pnb__encoder_keeps_lengths(const pnb_encoder *e, pnb_encode_side side);
/* Room for n rows of one side as the tower ends in them. Errors  ARG (n is 0), NOMEM */
pnb_status pnb__encoder_make_set(const pnb_encoder *e, pnb_encode_side side, size_t n,
                                 pnb_embeddings **out, pnb_error *err);
/* PNB_OK for a model without an adapter; UNSUPPORTED, `what` needs the towers alone. */
pnb_status pnb__encoder_need_plain(const pnb_encoder *e, const char *what, pnb_error *err);

/* ---- attached.c ---- */

/* Opens the adapter in DIR/adapter of an encoder whose model is open, where there is one, and takes
 * the name of the model that it was learned from.
 * Errors  those of pnb_adapter_load; ARG (learned from another model: the text has both), SHAPE */
pnb_status pnb__encoder_open_adapter(pnb_encoder *e, const pnb_ctx *ctx, pnb_error *err);

#endif
