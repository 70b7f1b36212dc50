/* Normal random numbers: Box-Muller, z = sqrt(-2 ln u) cos(2 pi v), of one block of pnb__rng a
 * number.
 *
 * Logarithm and cosine are series of their own and not the C library's: in loops that make vectors,
 * with the same bits for one number and for many, on every processor and under every library. Both
 * are within 2e-15 of the true z, relative, or 1e-15 absolute where the cosine vanishes. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/loop.h"
#include "base/random/rng.h"
#include "base/wide.h"

#define LANES 64 /* numbers made together: their words stay in the first cache */
#define TWO_PI 6.283185307179586477
#define LN_2 0.69314718055994530942
#define MANTISSA ((uint64_t)1 << 52)
#define ROOT_HALF_BITS 0x3FE6A09E667F3BCDu /* of the double next to sqrt(1/2) */
#define TWO_52 0x1p52
#define TWO_52_BITS 0x4330000000000000u

/* The 53 upper bits of two words as a share of 2^53: [0, 1), exact. */
PNB__UNCHECKED PNB__INLINE double share_of(uint32_t upper, uint32_t lower)
{
    return (double)upper * 0x1p-32 + (double)(int32_t)(lower >> 11) * 0x1p-53;
}

PNB__UNCHECKED PNB__INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

PNB__UNCHECKED PNB__INLINE double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ln x, x in [2^-53, 1]: x = 2^k m, m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)),
 * |s| <= 0.1716: the series to s^21 leaves 1e-18 of it. Bits less those of sqrt(1/2) have k in
 * their exponent; k becomes a double as the end of one of 2^52 and more, since not every processor
 * converts vectors of 64 bits. */
PNB__UNCHECKED PNB__INLINE double log_of(double x)
{
    uint64_t above = bits_of(x) - ROOT_HALF_BITS + (uint64_t)1023 * MANTISSA;
    double k = double_of(above >> 52 | TWO_52_BITS) - (TWO_52 + 1023.0);
    double m = double_of((above & (MANTISSA - 1)) + ROOT_HALF_BITS);
    double s = (m - 1.0) / (m + 1.0), w = s * s, p = 1.0 / 21;
    p = p * w + 1.0 / 19;
    p = p * w + 1.0 / 17;
    p = p * w + 1.0 / 15;
    p = p * w + 1.0 / 13;
    p = p * w + 1.0 / 11;
    p = p * w + 1.0 / 9;
    p = p * w + 1.0 / 7;
    p = p * w + 1.0 / 5;
    p = p * w + 1.0 / 3;
    return k * LN_2 + (2.0 * s + 2.0 * s * w * p);
}

/* cos(2 pi v), v in [0, 1): v - q/4 is exact, and lies within an eighth; of its angle, at most
 * pi/4, Taylor's series of the cosine to a^18 and of the sine to a^19 leave 1e-19. */
PNB__UNCHECKED PNB__INLINE double cos_of(double v)
{
    double shifted = 4.0 * v + TWO_52; /* ends in q, the nearest whole number to 4 v */
    double a = TWO_PI * (v - 0.25 * (shifted - TWO_52)), w = a * a;
    double c = -1.0 / 6402373705728000, s = -1.0 / 121645100408832000;
    c = c * w + 1.0 / 20922789888000;
    s = s * w + 1.0 / 355687428096000;
    c = c * w - 1.0 / 87178291200;
    s = s * w - 1.0 / 1307674368000;
    c = c * w + 1.0 / 479001600;
    s = s * w + 1.0 / 6227020800;
    c = c * w - 1.0 / 3628800;
    s = s * w - 1.0 / 39916800;
    c = c * w + 1.0 / 40320;
    s = s * w + 1.0 / 362880;
    c = c * w - 1.0 / 720;
    s = s * w - 1.0 / 5040;
    c = c * w + 1.0 / 24;
    s = s * w + 1.0 / 120;
    c = c * w - 0.5;
    s = s * w - 1.0 / 6;
    c = c * w + 1.0;
    s = a + a * w * s;
    /* cos(a + q pi/2) for q = 0 .. 4: c, -s, -c, s, c */
    uint64_t q = bits_of(shifted), is_odd = 0 - (q & 1);
    uint64_t value = (bits_of(c) & ~is_odd) | (bits_of(s) & is_odd);
    return double_of(value ^ ((q + 1) & 2) << 62);
}

PNB__UNCHECKED PNB__INLINE double normal_of(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3)
{
    double u = 1.0 - share_of(w0, w1); /* (0, 1]: the logarithm stays finite */
    return sqrt(-2.0 * log_of(u)) * cos_of(share_of(w2, w3));
}

double pnb__rng_normal_of(const uint32_t words[4])
{
    return normal_of(words[0], words[1], words[2], words[3]);
}

PNB__UNCHECKED double pnb__rng_normal(pnb__rng *r)
{
    uint32_t words[4]; /* its own: nothing to check */
    for (int i = 0; i < 4; i++)
        words[i] = pnb__rng_u32(r);
    return pnb__rng_normal_of(words);
}

/* The blocks first .. first + LANES of a stream, word by word and side by side, and their normals.
 */
PNB__UNCHECKED PNB__WIDE static void fill(const pnb__rng *r, uint64_t first, double out[LANES])
{
    PNB__CHECK_REGION(out, LANES * sizeof *out);
    uint32_t c[4][LANES];
    uint32_t k0 = (uint32_t)r->seed, k1 = (uint32_t)(r->seed >> 32);
    for (uint64_t i = 0; i < LANES; i++) {
        c[0][i] = (uint32_t)(first + i);
        c[1][i] = (uint32_t)((first + i) >> 32);
        c[2][i] = (uint32_t)r->stream;
        c[3][i] = (uint32_t)(r->stream >> 32);
    }
    for (int round = 0; round < PNB__PHILOX_ROUNDS; round++) {
#pragma omp simd
        for (size_t i = 0; i < LANES; i++) {
            const pnb__philox was = {c[0][i], c[1][i], c[2][i], c[3][i]};
            const pnb__philox is = pnb__philox_round(was, k0, k1);
            c[0][i] = is.c0;
            c[1][i] = is.c1;
            c[2][i] = is.c2;
            c[3][i] = is.c3;
        }
        k0 += PNB__PHILOX_WEYL_0;
        k1 += PNB__PHILOX_WEYL_1;
    }
#pragma omp simd
    for (size_t i = 0; i < LANES; i++)
        out[i] = normal_of(c[0][i], c[1][i], c[2][i], c[3][i]);
}

void pnb__rng_normals(pnb__rng *r, size_t n, double *out)
{
    double some[LANES];
    uint64_t first = r->counter / 4;
    size_t begin = 0;
    for (; begin + LANES <= n; begin += LANES)
        fill(r, first + begin, out + begin);
    if (begin < n) {
        fill(r, first + begin, some);
        memcpy(out + begin, some, (n - begin) * sizeof *out);
    }
    r->counter += 4 * (uint64_t)n;
    r->n_left = 0;
}
