/* Random masks of the second pass of ProLIP training; every draw is f(seed, step). */
#ifndef PNB_TRAIN_MASK_H
#define PNB_TRAIN_MASK_H

#include "penumbra/tokenizer.h"
#include "penumbra/train.h"

/* Patches that the masked pass keeps: int(n_patches * keep), at least 1. */
size_t pnb__mask_n_kept(size_t n_patches, double keep);
/* Draws `n_kept` of `n_patches` without repetition into kept, ascending; `scratch` holds n_patches
 * entries. The whole batch shares them, as in the reference. */
void pnb__mask_patches(uint64_t seed, int64_t step, size_t n_patches, size_t n_kept,
                       uint32_t *scratch, int32_t *kept);

typedef struct pnb__text_masker {
    const pnb_tokenizer *tokenizer;
    pnb_text_mask mode;
    double prob;
    int32_t mask_id, pad_id;
    uint64_t seed;
} pnb__text_masker;

/* Masks rows of `length` ids into out; `scratch` holds `length` bytes. `draw` numbers the call:
 * one number a step and micro-batch. */
void pnb__mask_texts(const pnb__text_masker *m, uint64_t draw, const int32_t *ids, size_t n_rows,
                     size_t length, unsigned char *scratch, int32_t *out);

#endif
