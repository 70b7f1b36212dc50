/* The word embedding of PCME from published word vectors. */
#ifndef PNB_MODELS_PCME_WORD_TABLE_H
#define PNB_MODELS_PCME_WORD_TABLE_H

#include "models/pcme/text_tower.h"
#include "penumbra/tokenizer.h"

typedef struct pnb__word_table_count {
    size_t n_words, n_exact, n_by_fallback; /* the rest has no vector */
} pnb__word_table_count;

/* Rows of `words` (V,C) from a file of vectors of C numbers (io/tables/word_vectors.h says of which
 * forms, and how a word with hyphens, full stops or apostrophes is looked for). Words that the file
 * lacks, <pad> and <unk> among them, get N(0,1) by seed and row, as torch's Embedding starts; V is
 * the tokenizer's vocabulary. `words` is written when all of it was read.
 * Errors  SHAPE (another V), those of pnb__word_vectors_read */
pnb_status pnb__word_table_read(pnb__param *words, const pnb__kernels *k, const pnb_tokenizer *tok,
                                const char *path, uint64_t seed, pnb__word_table_count *count,
                                pnb_error *err);

#endif
