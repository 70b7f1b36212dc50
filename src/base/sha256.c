/* SHA-256 (FIPS 180-4), to say which weights made an embedding set and to spot changed files.
 *
 * Plain C; on x86-64 with the SHA extensions the same compression function in instructions, because
 * weight files are large (1.8 GB/s instead of 0.3). Not used for anything secret. */
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/base.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t load_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static void expand_message(uint32_t w[64], const unsigned char *block)
{
    for (int t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        uint32_t s0 = rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3;
        uint32_t s1 = rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

static void compress_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64];
    expand_message(w, block);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
        uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

#if defined(__x86_64__)
static bool has_sha_instructions(void)
{
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("ssse3"))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & 1u << 29) != 0;
}

/* The instructions keep the state as (a,b,e,f) and (c,d,g,h) and do two rounds at a time; four
 * message words are scheduled from the sixteen before them. */
__attribute__((target("sha,sse4.1,ssse3"))) static void
compress_blocks_sha(uint32_t state[8], const unsigned char *data, size_t n_blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; n_blocks > 0; n_blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++) {
            const void *source = data + 16 * i;
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)source), swap);
        }
        for (int t = 0; t < 16; t++) {
            const void *constants = round_constants + 4 * t;
            __m128i sum = _mm_add_epi32(w[t & 3], _mm_loadu_si128((const __m128i *)constants));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
            if (t < 12) { /* w[t+16..] from w[t..], w[t+1..], w[t+9..], w[t+14..] */
                __m128i next = _mm_sha256msg1_epu32(w[t & 3], w[(t + 1) & 3]);
                next = _mm_add_epi32(next, _mm_alignr_epi8(w[(t + 3) & 3], w[(t + 2) & 3], 4));
                w[t & 3] = _mm_sha256msg2_epu32(next, w[(t + 3) & 3]);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#else
static bool has_sha_instructions(void)
{
    return false;
}
#endif

static void compress_blocks(pnb__sha256 *s, const unsigned char *data, size_t n_blocks)
{
#if defined(__x86_64__)
    if (!s->plain) {
        compress_blocks_sha(s->h, data, n_blocks);
        return;
    }
#endif
    for (; n_blocks > 0; n_blocks--, data += 64)
        compress_block(s->h, data);
}

void pnb__sha256_init(pnb__sha256 *s)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, initial, sizeof initial);
    s->n_bytes = 0;
    s->plain = !has_sha_instructions(); /* asked once a hash: virtual machines trap the question */
    memset(s->tail, 0, sizeof s->tail);
}

void pnb__sha256_update(pnb__sha256 *s, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    size_t n_tail = (size_t)(s->n_bytes % 64);
    s->n_bytes += n;
    if (n_tail > 0) {
        size_t n_taken = PNB_MIN(n, 64 - n_tail);
        memcpy(s->tail + n_tail, bytes, n_taken);
        if (n_tail + n_taken < 64)
            return;
        compress_blocks(s, s->tail, 1);
        bytes += n_taken;
        n -= n_taken;
    }
    compress_blocks(s, bytes, n / 64);
    if (n % 64 > 0)
        memcpy(s->tail, bytes + n / 64 * 64, n % 64);
}

void pnb__sha256_hex(pnb__sha256 *s, char hex[65])
{
    static const unsigned char padding[64] = {0x80};
    uint64_t n_bits = s->n_bytes * 8;
    size_t n_tail = (size_t)(s->n_bytes % 64);
    pnb__sha256_update(s, padding, n_tail < 56 ? 56 - n_tail : 120 - n_tail);
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(n_bits >> (56 - 8 * i) & 0xFF);
    pnb__sha256_update(s, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}
