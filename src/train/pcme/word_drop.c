/* Dropped words of PCME's captions.
 *
 * Each word becomes <unk> with probability p by itself. The released code then also takes int(n p)
 * of the n words out of the sentence, one after the other and whatever they are by then, which the
 * paper does not say; `removes` does that too. <start> and <end> are never drawn. */
#include "train/pcme/word_drop.h"

#include <string.h>

#include "base/base.h"

/* The purpose in the high bits of the generator's stream, the number of the draw below. */
static const uint64_t word_stream = (uint64_t)0x7764 << 48;

/* Word number `at` of those that are maskable: its place in the row. */
static size_t place_of(const unsigned char *maskable, size_t length, size_t at)
{
    size_t i = 0;
    for (size_t seen = 0; i < length; i++)
        if (maskable[i] != 0 && seen++ == at)
            break;
    return i;
}

/* Takes id `at` out; what is behind it moves up. */
static void take_out(int32_t *row, unsigned char *maskable, size_t length, size_t at, int32_t pad)
{
    for (size_t i = at; i < length; i++) {
        bool is_last = i + 1 == length;
        row[i] = is_last ? pad : row[i + 1];
        maskable[i] = is_last ? 0 : maskable[i + 1];
    }
}

static void drop_row(const pnb__word_drop *d, pnb__rng *rng, unsigned char *maskable, size_t length,
                     int32_t *row)
{
    size_t n = pnb_tokenizer_text_mask(d->tokenizer, row, length, maskable);
    int32_t unknown = pnb_tokenizer_unk_id(d->tokenizer), pad = pnb_tokenizer_pad_id(d->tokenizer);
    for (size_t i = 0; i < length; i++)
        if (maskable[i] != 0 && pnb__rng_uniform(rng) < d->prob)
            row[i] = unknown;
    size_t n_out = d->removes ? (size_t)((double)n * d->prob) : 0;
    for (size_t k = 0; k < n_out; k++) {
        size_t word = (size_t)pnb__rng_below(rng, n - k);
        take_out(row, maskable, length, place_of(maskable, length, word), PNB_MAX(pad, 0));
    }
}

void pnb__word_drop_texts(const pnb__word_drop *d, uint64_t draw, const int32_t *ids, size_t n_rows,
                          size_t length, unsigned char *scratch, int32_t *out)
{
    pnb__rng rng;
    pnb__rng_init(&rng, d->seed, word_stream ^ draw);
    memcpy(out, ids, n_rows * length * sizeof *out);
    for (size_t r = 0; r < n_rows; r++)
        drop_row(d, &rng, scratch, length, out + r * length);
}
