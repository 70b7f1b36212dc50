/* Random numbers as a function of (seed, stream, counter): Philox4x32-10.
 *
 *   key = seed, 128-bit counter = (counter, stream); ten rounds of
 *   (c0,c1,c2,c3) <- (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))
 *   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 *
 * pnb__rng counts 32-bit words, four to a block, so its three numbers are its whole state and the
 * block it holds is only a cache. A normal takes two uniforms (Box-Muller, cosine half): no spare
 * value has to be remembered. Not for cryptography. */
#include <math.h>

#include "base/base.h"

#define N_ROUNDS 10
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u /* golden ratio */
#define WEYL_1 0xBB67AE85u /* sqrt(3) - 1 */
#define TWO_PI 6.283185307179586477

static uint32_t low(uint64_t x)
{
    return (uint32_t)(x & 0xFFFFFFFFu);
}

static uint32_t high(uint64_t x)
{
    return (uint32_t)(x >> 32);
}

void pnb__rng_block(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t k0 = low(seed), k1 = high(seed);
    uint32_t c0 = low(counter), c1 = high(counter), c2 = low(stream), c3 = high(stream);
    for (int round = 0; round < N_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0;
        uint64_t p1 = (uint64_t)MULTIPLIER_1 * c2;
        c0 = high(p1) ^ c1 ^ k0;
        c1 = low(p1);
        c2 = high(p0) ^ c3 ^ k1;
        c3 = low(p0);
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
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

static double uniform_of(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

static double normal_of(uint64_t first, uint64_t second)
{
    double u = 1.0 - uniform_of(first); /* (0, 1]: the logarithm stays finite */
    return sqrt(-2.0 * log(u)) * cos(TWO_PI * uniform_of(second));
}

double pnb__rng_uniform(pnb__rng *r)
{
    return uniform_of(pnb__rng_u64(r));
}

double pnb__rng_normal(pnb__rng *r)
{
    uint64_t first = pnb__rng_u64(r);
    return normal_of(first, pnb__rng_u64(r));
}

#define LANES 64 /* blocks made together: their words stay in the first cache */

/* Blocks first .. first + LANES of a stream, word by word: the rounds are those of pnb__rng_block,
 * side by side. */
static void fill_blocks(const pnb__rng *r, uint64_t first, uint32_t c[4][LANES])
{
    uint32_t k0 = low(r->seed), k1 = high(r->seed);
    for (uint64_t i = 0; i < LANES; i++) {
        c[0][i] = low(first + i);
        c[1][i] = high(first + i);
        c[2][i] = low(r->stream);
        c[3][i] = high(r->stream);
    }
    for (int round = 0; round < N_ROUNDS; round++) {
#pragma omp simd
        for (size_t i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)MULTIPLIER_0 * c[0][i], p1 = (uint64_t)MULTIPLIER_1 * c[2][i];
            c[0][i] = high(p1) ^ c[1][i] ^ k0;
            c[1][i] = low(p1);
            c[2][i] = high(p0) ^ c[3][i] ^ k1;
            c[3][i] = low(p0);
        }
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
}

void pnb__rng_normals(const pnb__rng *r, size_t n, double *out)
{
    uint32_t c[4][LANES];
    for (size_t begin = 0; begin < n; begin += LANES) {
        size_t here = PNB_MIN(n - begin, (size_t)LANES);
        fill_blocks(r, r->counter / 4 + begin, c);
        for (size_t i = 0; i < here; i++)
            out[begin + i] =
                normal_of((uint64_t)c[0][i] << 32 | c[1][i], (uint64_t)c[2][i] << 32 | c[3][i]);
    }
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
