/* Files of word vectors: GloVe and fastText text, word2vec text and binary. */
#ifndef PNB_IO_TABLES_WORD_VECTORS_H
#define PNB_IO_TABLES_WORD_VECTORS_H

#include "base/base.h"

/* How the vector of a wanted word was found. */
typedef enum pnb__word_found {
    PNB__WORD_MISSING,
    PNB__WORD_BY_FALLBACK, /* without - . ' and what is behind a / */
    PNB__WORD_EXACT
} pnb__word_found;

/* The words whose vectors are wanted, and where they go. */
typedef struct pnb__wanted_words {
    const char *const *words; /* (n) terminated, UTF-8 */
    size_t n, dim;
    float *rows;          /* (n,dim): rows of missing words stay as they are */
    unsigned char *found; /* (n) pnb__word_found */
} pnb__wanted_words;

/* Reads the file once from front to back; memory does not grow with it. A word that the file lacks
 * is looked for without its hyphens, full stops and apostrophes, and up to its first slash, as
 * PCME's code does (caption_encoder.py: init_weights). A word that stands twice has its last
 * vector, as in torchtext. text    word v1 ... vD, with or without a first line "N D"; a word may
 * hold spaces binary  "N D\n", then N times the word, a space and D little-endian floats
 * (word2vec's .bin) Errors  NOT_FOUND, IO, FORMAT (another width, no number, the end too soon: by
 * line or word), UNSUPPORTED (fastText's .bin, packed files: what to use in their place), LIMIT,
 * NOMEM */
pnb_status pnb__word_vectors_read(const char *path, pnb__wanted_words *wanted, pnb_error *err);

#endif
