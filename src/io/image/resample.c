/* The two passes of the resampler in plain C and in AVX2, the same bytes from both.
 *
 * The exact sum of 8-bit pixels and 22-bit weights needs 32-bit products, which x86 multiplies
 * slowly. Splitting a weight into high * 2^15 + low makes both parts fit the 16-bit multiply-add
 * (two taps per instruction); sums are taken modulo 2^32, so the split loses nothing. */
#include "io/image/resample.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_AVX2 1
#endif

#define HALF (1 << (PNB__RESAMPLE_BITS - 1))

static inline unsigned char clip8(int32_t sum)
{
    int32_t v = sum >> PNB__RESAMPLE_BITS;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void horizontal_plain(unsigned char *out, const unsigned char *in, const pnb__taps *taps,
                             int channels)
{
    for (int x = 0; x < taps->n; x++) {
        const int32_t *w = taps->weight + (size_t)x * (size_t)taps->stride;
        const unsigned char *p = in + (size_t)taps->first[x] * (size_t)channels;
        int32_t sum[4] = {HALF, HALF, HALF, HALF};
        for (int j = 0; j < taps->count[x]; j++)
            for (int c = 0; c < channels; c++)
                sum[c] += *p++ * w[j];
        for (int c = 0; c < channels; c++)
            *out++ = clip8(sum[c]);
    }
}

#define CHUNK 256

static void vertical_plain(unsigned char *out, const unsigned char *in, size_t row_bytes,
                           const pnb__taps *taps, int y)
{
    const int32_t *w = taps->weight + (size_t)y * (size_t)taps->stride;
    int32_t sum[CHUNK];
    for (size_t start = 0; start < row_bytes; start += CHUNK) {
        size_t n = row_bytes - start < CHUNK ? row_bytes - start : CHUNK;
        const unsigned char *p = in + (size_t)taps->first[y] * row_bytes + start;
        for (size_t i = 0; i < n; i++)
            sum[i] = HALF;
        for (int j = 0; j < taps->count[y]; j++, p += row_bytes)
            for (size_t i = 0; i < n; i++)
                sum[i] += p[i] * w[j];
        for (size_t i = 0; i < n; i++)
            out[start + i] = clip8(sum[i]);
    }
}

pnb__resampler pnb__resampler_plain(void)
{
    pnb__resampler r = {horizontal_plain, vertical_plain};
    return r;
}

#ifdef HAVE_AVX2
#define AVX2 __attribute__((target("avx2")))

/* (high * 2^15 + low + HALF) >> BITS, still 32 bit; clipping is left to the saturating packs. */
AVX2 static inline __m256i finish_sum(__m256i low, __m256i high)
{
    __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, 15));
    return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(HALF)), PNB__RESAMPLE_BITS);
}

/* Four taps of three channels at once. Each 128-bit half of a register holds the 16-bit pairs
 * (p0.r p1.r)(p0.g p1.g)(p0.b p1.b)(0 0) of two taps. */
AVX2 static void horizontal_avx2_rgb(unsigned char *out, const unsigned char *in,
                                     const pnb__taps *taps)
{
    const __m256i pairs =
        _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                         -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i spread = _mm256_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6,
                                            7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
    for (int x = 0; x < taps->n; x++) {
        const int16_t *low = taps->low + (size_t)x * (size_t)taps->stride;
        const int16_t *high = taps->high + (size_t)x * (size_t)taps->stride;
        const unsigned char *p = in + (size_t)taps->first[x] * 3;
        __m256i sum_low = _mm256_setzero_si256(), sum_high = _mm256_setzero_si256();
        for (int j = 0; j < taps->count[x]; j += 4, p += 12) {
            __m128i four = _mm_loadu_si128((const __m128i *)(const void *)p);
            __m256i pixels = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(four), pairs);
            long long w;
            memcpy(&w, low + j, sizeof w);
            __m256i wl = _mm256_shuffle_epi8(_mm256_set1_epi64x(w), spread);
            memcpy(&w, high + j, sizeof w);
            __m256i wh = _mm256_shuffle_epi8(_mm256_set1_epi64x(w), spread);
            sum_low = _mm256_add_epi32(sum_low, _mm256_madd_epi16(pixels, wl));
            sum_high = _mm256_add_epi32(sum_high, _mm256_madd_epi16(pixels, wh));
        }
        /* the two halves are partial sums of the same output pixel */
        sum_low = _mm256_add_epi32(sum_low, _mm256_permute2x128_si256(sum_low, sum_low, 1));
        sum_high = _mm256_add_epi32(sum_high, _mm256_permute2x128_si256(sum_high, sum_high, 1));
        __m128i v = _mm256_castsi256_si128(finish_sum(sum_low, sum_high));
        v = _mm_packus_epi16(_mm_packs_epi32(v, v), v);
        uint32_t rgb = (uint32_t)_mm_cvtsi128_si32(v);
        memcpy(out, &rgb, 3);
        out += 3;
    }
}

AVX2 static void horizontal_avx2(unsigned char *out, const unsigned char *in, const pnb__taps *taps,
                                 int channels)
{
    if (channels == 3)
        horizontal_avx2_rgb(out, in, taps);
    else
        horizontal_plain(out, in, taps, channels);
}

/* 16 bytes of one output row. Rows are taken two at a time; an odd last one is paired with itself
 * and a weight of zero. */
AVX2 static inline __m128i vertical_16(const unsigned char *p, size_t row_bytes, const int16_t *low,
                                       const int16_t *high, int count)
{
    __m256i l0 = _mm256_setzero_si256(), l1 = l0, h0 = l0, h1 = l0;
    for (int j = 0; j < count; j += 2, p += 2 * row_bytes) {
        const unsigned char *next = j + 1 < count ? p + row_bytes : p;
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)next);
        __m256i first = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        __m256i second = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
        int32_t w;
        memcpy(&w, low + j, sizeof w);
        __m256i wl = _mm256_set1_epi32(w);
        memcpy(&w, high + j, sizeof w);
        __m256i wh = _mm256_set1_epi32(w);
        l0 = _mm256_add_epi32(l0, _mm256_madd_epi16(first, wl));
        l1 = _mm256_add_epi32(l1, _mm256_madd_epi16(second, wl));
        h0 = _mm256_add_epi32(h0, _mm256_madd_epi16(first, wh));
        h1 = _mm256_add_epi32(h1, _mm256_madd_epi16(second, wh));
    }
    __m256i words = _mm256_packs_epi32(finish_sum(l0, h0), finish_sum(l1, h1));
    words = _mm256_permute4x64_epi64(words, 0xD8); /* packs works within halves: put in order */
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

AVX2 static void vertical_avx2(unsigned char *out, const unsigned char *in, size_t row_bytes,
                               const pnb__taps *taps, int y)
{
    if (row_bytes < 16) {
        vertical_plain(out, in, row_bytes, taps, y);
        return;
    }
    const int16_t *low = taps->low + (size_t)y * (size_t)taps->stride;
    const int16_t *high = taps->high + (size_t)y * (size_t)taps->stride;
    const unsigned char *p = in + (size_t)taps->first[y] * row_bytes;
    for (size_t x = 0; x < row_bytes; x += 16) {
        if (x + 16 > row_bytes)
            x = row_bytes - 16; /* the last block overlaps the one before */
        __m128i v = vertical_16(p + x, row_bytes, low, high, taps->count[y]);
        _mm_storeu_si128((__m128i *)(void *)(out + x), v);
    }
}
#endif

pnb__resampler pnb__resampler_best(void)
{
#ifdef HAVE_AVX2
    if (__builtin_cpu_supports("avx2")) {
        pnb__resampler r = {horizontal_avx2, vertical_avx2};
        return r;
    }
#endif
    return pnb__resampler_plain();
}
