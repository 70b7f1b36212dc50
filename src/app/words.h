/* Words of a command line made into embedding sets: captions, caption files, pictures. */
#ifndef PNB_APP_WORDS_H
#define PNB_APP_WORDS_H

#include "app/app.h"
#include "app/embedder.h"
#include "penumbra/embeddings.h"

/* Where a set comes from: a file, or words to be encoded. At most one of the three is given. */
typedef struct pnb__words {
    const char *set;              /* embedding set */
    const pnb__text_list *texts;  /* captions; NULL or empty: none */
    const pnb__text_list *images; /* pictures, folders, data sets */
    bool exif;                    /* turn pictures as their EXIF orientation says */
} pnb__words;

bool pnb__words_given(const pnb__words *w);
/* The part of a model that the words need, 0 for a set. */
int pnb__words_use(const pnb__words *w);

/* Loads the set, or encodes the words with `encoder`, opened with what pnb__words_use said.
 * Errors  FORMAT (a caption that is not UTF-8, a picture that cannot be read), and loading */
pnb_status pnb__words_embed(pnb__app *app, pnb__embedder *encoder, const pnb__words *words,
                            pnb_embeddings **out);

/* The embedding of the empty text, one row. */
pnb_status pnb__embed_null_text(pnb__app *app, pnb__embedder *encoder, pnb_embeddings **out);

/* What to show of a row: its caption, else its path, else its id. */
const char *pnb__row_words(const pnb_embeddings *set, size_t row);

#endif
