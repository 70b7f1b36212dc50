/* A model directory opened for use: weights, tokenizer and preprocessing that belong together. */
#ifndef PNB_APP_ENCODER_H
#define PNB_APP_ENCODER_H

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"
#include "penumbra/model.h"

typedef struct pnb__encoder {
    pnb_model *model;
    const pnb_model_info *info; /* of model */
    pnb_tokenizer *tokenizer;   /* NULL unless asked for */
    pnb_preprocess preprocess;  /* set when pictures were asked for */
    char name[128];             /* of the directory, for records */
} pnb__encoder;

enum { PNB__USE_PICTURES = 1, PNB__USE_TEXTS = 2 };

/* Opens `dir` ("local-dir:" in front is accepted). Tokenizer and preprocessing are required for
 * what `use` names: a model whose preprocessing is unknown would embed silently wrong.
 * Release with pnb__encoder_close, after a failure too.
 * Errors  those of the loaders; SHAPE (preprocessing and image tower differ in size; vocabulary
 *         larger than the embedding table) */
pnb_status pnb__encoder_open(pnb__encoder *e, const pnb_ctx *ctx, const char *dir, int use,
                             pnb_error *err);
void pnb__encoder_close(pnb__encoder *e);

/* Fills the record that an embedding set of this model carries. */
void pnb__encoder_describe(const pnb__encoder *e, bool is_text, uint64_t seed,
                           pnb_embeddings_info *info);

/* Family of the sets this model makes. */
pnb_family pnb__encoder_family(const pnb__encoder *e);

#endif
