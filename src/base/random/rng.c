/* Random numbers as a function of (seed, stream, counter): Philox4x32-10 (base/rng.h), key = seed,
 * 128-bit counter = (counter, stream).
 *
 * pnb__rng counts 32-bit words, four to a block, so its three numbers are its whole state and the
 * block it holds is only a cache. A normal takes two uniforms (rng_normal.c), so that no
 * spare value has to be remembered. Not for cryptography. */
#include "base/random/rng.h"

#include "base/base.h"

void pnb__rng_block(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    pnb__philox c = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                     (uint32_t)(stream >> 32)};
    for (int round = 0; round < PNB__PHILOX_ROUNDS; round++) {
        c = pnb__philox_round(c, k0, k1);
        k0 += PNB__PHILOX_WEYL_0;
        k1 += PNB__PHILOX_WEYL_1;
    }
    out[0] = c.c0, out[1] = c.c1, out[2] = c.c2, out[3] = c.c3;
}

void pnb__rng_init(pnb__rng *r, uint64_t seed, uint64_t stream)
{
    *r = (pnb__rng){.seed = seed, .stream = stream};
}

uint32_t pnb__rng_u32(pnb__rng *r)
{
    unsigned word = (unsigned)(r->counter % 4);
    if (word == 0 || r->n_left == 0)
        pnb__rng_block(r->seed, r->stream, r->counter / 4, r->block);
    r->counter++;
    r->n_left = 3 - word;
    return r->block[word];
}

uint64_t pnb__rng_u64(pnb__rng *r)
{
    uint64_t first = pnb__rng_u32(r);
    return first << 32 | pnb__rng_u32(r);
}

uint64_t pnb__rng_below(pnb__rng *r, uint64_t n)
{
    /* 2^64 mod n values at the bottom would make small results more likely: draw again. */
    uint64_t n_rejected = (0 - n) % n;
    uint64_t x;
    do {
        x = pnb__rng_u64(r);
    } while (x < n_rejected);
    return x % n;
}

double pnb__rng_uniform(pnb__rng *r)
{
    return (double)(pnb__rng_u64(r) >> 11) * 0x1p-53;
}

void pnb__rng_shuffle(pnb__rng *r, uint32_t *items, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)pnb__rng_below(r, i);
        uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

/* FNV-1a over the bytes, then the finisher of SplitMix64, because FNV alone leaves the low bits of
 * short keys poorly mixed. */
uint64_t pnb__hash_bytes(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *bytes = data;
    uint64_t h = 0xCBF29CE484222325u ^ (seed * 0x9E3779B97F4A7C15u);
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001B3u;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    return h ^ h >> 31;
}
