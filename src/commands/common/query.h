/* Words of a command line made into embedding sets: captions, caption files, pictures. */
#ifndef PNB_COMMANDS_COMMON_QUERY_H
#define PNB_COMMANDS_COMMON_QUERY_H

#include "encode/encoder.h"
#include "penumbra/embeddings.h"
#include "program/app.h"

/* Where a set comes from: a file, or words to be encoded. At most one of the three is given. */
typedef struct pnb__query {
    const char *set;       /* embedding set */
    pnb__text_list texts;  /* captions */
    pnb__text_list images; /* pictures, folders, data sets */
    bool exif;             /* turn pictures as their EXIF orientation says */
} pnb__query;

bool pnb__query_given(const pnb__query *w);
/* Whether --query-text, --query-image and --queries name one kind of query, and --model and --exif
 * are there where it needs them and only there. */
pnb_status pnb__query_check(pnb__app *app, const pnb__query *w, const char *model);
/* The part of a model that the words need, 0 for a set. */
int pnb__query_use(const pnb__query *w);

/* Loads the set, or encodes the words with `encoder`, opened with what pnb__query_use said.
 * Errors  FORMAT (a caption that is not UTF-8, a picture that cannot be read), and loading */
pnb_status pnb__query_embed(pnb__app *app, pnb_encoder *encoder, const pnb__query *words,
                            pnb_embeddings **out);

/* The embedding of the empty text, one row. */
pnb_status pnb__embed_null_text(pnb__app *app, pnb_encoder *encoder, pnb_embeddings **out);

#endif
