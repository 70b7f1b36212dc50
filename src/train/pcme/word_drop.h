/* Words that captions lose in training; every draw is f(seed, draw). */
#ifndef PNB_TRAIN_PCME_WORD_DROP_H
#define PNB_TRAIN_PCME_WORD_DROP_H

#include "penumbra/tokenizer.h"

typedef struct pnb__word_drop {
    const pnb_tokenizer *tokenizer; /* must have an unknown token */
    double prob;                    /* of each word to become that token: 0.1 as published */
    bool removes; /* as released: of n words int(n prob), drawn anew, are taken out besides */
    uint64_t seed;
} pnb__word_drop;

/* n_rows captions of `length` ids into out, which closes up and ends in padding where words were
 * taken out; start, end and padding stay. `scratch` holds `length` bytes. `draw` numbers the call:
 * one number a step and micro-batch.
 * Source  PCME section 4.1 ("word dropping to <unk>"); datasets/_transforms.py: tokenize */
void pnb__word_drop_texts(const pnb__word_drop *d, uint64_t draw, const int32_t *ids, size_t n_rows,
                          size_t length, unsigned char *scratch, int32_t *out);

#endif
