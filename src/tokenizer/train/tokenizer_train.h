/* Training of tokenizers: what tokenizer_train.c and tokenizer_train_bpe.c share. */
#ifndef PNB_TOKENIZER_TRAIN_TOKENIZER_TRAIN_H
#define PNB_TOKENIZER_TRAIN_TOKENIZER_TRAIN_H

#include "base/map.h"

/* Distinct words and how often each was seen. All zero is empty. */
typedef struct pnb__word {
    size_t start; /* in text */
    uint32_t n;
    int64_t count;
} pnb__word;

typedef struct pnb__query {
    pnb__buf text;
    pnb__word *at;
    size_t n;
    pnb__key_map places; /* in `at` */
} pnb__query;

/* Learns merges over the bytes of the words until there are max_tokens byte-level tokens (256 bytes
 * included) or no pair is seen min_count times. Appends to `vocab` the members `"piece": id` from
 * first_id on and to `merges` the members `"left right"`, both comma-separated JSON. */
typedef struct pnb__bpe_goal {
    int first_id, max_tokens;
    int64_t min_count;
} pnb__bpe_goal;
pnb_status pnb__train_bpe(const pnb__query *words, const pnb__bpe_goal *goal, pnb__buf *vocab,
                          pnb__buf *merges, pnb_error *err);

#endif
