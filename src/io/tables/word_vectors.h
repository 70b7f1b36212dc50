/* Files of word vectors: GloVe and fastText text, word2vec text and binary, fastText models. */
#ifndef PNB_IO_TABLES_WORD_VECTORS_H
#define PNB_IO_TABLES_WORD_VECTORS_H

#include "io/tables/wanted_words.h"

/* Reads the file once from front to back; memory does not grow with it. A word that the file lacks
 * is looked for without its hyphens, full stops and apostrophes, and up to its first slash, as
 * PCME's code does (wanted_words.h). A word that stands twice has its last vector, as in torchtext.
 *     text    word v1 ... vD, with or without a first line "N D"; a word may hold spaces
 *     binary  "N D\n", then N times the word, a space and D little-endian floats (word2vec's .bin)
 *     model   fastText's .bin (fasttext_model.h)
 * Errors  NOT_FOUND, IO, FORMAT (another width, no number, the end too soon: by line or word),
 * UNSUPPORTED (compressed fastText models, packed files: what to use in their place), LIMIT, NOMEM
 */
pnb_status pnb__word_vectors_read(const char *path, pnb__wanted_words *wanted, pnb_error *err);

#endif
