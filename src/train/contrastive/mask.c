/* Masked pictures and captions for the inclusion losses (SPEC of ProLIP, section "masked inputs").
 *
 * Pictures lose patches, captions lose tokens: either the drawn tokens become the mask token, as
 * published, or they are deleted and the caption closes up, which makes a shorter and more general
 * caption. Padding and special tokens are never drawn. */
#include "train/contrastive/mask.h"

#include "base/base.h"

/* Streams of the generator: the purpose in the high bits, the number of the draw below. */
static const uint64_t patch_stream = (uint64_t)0x7061 << 48;
static const uint64_t text_stream = (uint64_t)0x7465 << 48;

/* int(n keep) as the reference, and one at least: a picture without a patch has no distribution. */
size_t pnb__mask_n_kept(size_t n_patches, double keep)
{
    size_t n = (size_t)((double)n_patches * keep);
    return PNB_MAX(n, (size_t)1);
}

/* Patches in the order of the picture: positions rise as in an unmasked one. By insertion, as there
 * are a few dozen. */
static void sort_ascending(int32_t *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int32_t item = items[i];
        size_t j = i;
        for (; j > 0 && items[j - 1] > item; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

/* The first n_kept places of a Fisher-Yates shuffle of 0..n_patches-1: every subset is as likely.
 * One draw for the batch keeps its rows the same length. */
void pnb__mask_patches(uint64_t seed, int64_t step, size_t n_patches, size_t n_kept,
                       uint32_t *scratch, int32_t *kept)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, patch_stream ^ (uint64_t)step);
    for (size_t i = 0; i < n_patches; i++)
        scratch[i] = (uint32_t)i;
    for (size_t i = 0; i < n_kept; i++) {
        size_t j = i + (size_t)pnb__rng_below(&rng, n_patches - i);
        uint32_t chosen = scratch[j];
        scratch[j] = scratch[i];
        scratch[i] = chosen;
        kept[i] = (int32_t)chosen;
    }
    sort_ascending(kept, n_kept);
}

/* Token i goes where u_i < prob and it may: each by itself, so the share varies from row to row. */
static void mask_row(const pnb__text_masker *m, pnb__rng *rng, const int32_t *ids, size_t length,
                     const unsigned char *maskable, int32_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        bool drawn = pnb__rng_uniform(rng) < m->prob && maskable[i] != 0;
        if (drawn && m->mode == PNB_TEXT_MASK_DELETE)
            continue;
        out[n++] = drawn ? m->mask_id : ids[i];
    }
    while (n < length) /* a caption that lost tokens closes up and ends in padding */
        out[n++] = m->pad_id;
}

/* One stream a draw, rows one after the other: a row's mask depends on the batch it stands in. */
void pnb__mask_texts(const pnb__text_masker *m, uint64_t draw, const int32_t *ids, size_t n_rows,
                     size_t length, unsigned char *scratch, int32_t *out)
{
    pnb__rng rng;
    pnb__rng_init(&rng, m->seed, text_stream ^ draw);
    for (size_t r = 0; r < n_rows; r++) {
        pnb_tokenizer_text_mask(m->tokenizer, ids + r * length, length, scratch);
        mask_row(m, &rng, ids + r * length, length, scratch, out + r * length);
    }
}
