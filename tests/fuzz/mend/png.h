/* Makes the checksums of a damaged PNG right again, so that a fuzzer's damage comes past them and
 * reaches the code behind. In place; a last chunk that claims too much claims what is
 * there. What is no PNG stays as it is. */
#ifndef PNB_TESTS_FUZZ_MEND_PNG_H
#define PNB_TESTS_FUZZ_MEND_PNG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <zlib.h>

static inline void png_put(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (24 - 8 * i));
}

static inline void mend_png(uint8_t *data, size_t size)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    enum { AROUND = 12 }; /* length, type and checksum of a chunk */
    size_t at = sizeof signature;
    if (size < at || memcmp(data + 1, "PNG", 3) != 0)
        return;
    memcpy(data, signature, sizeof signature);
    while (size - at >= AROUND) {
        uint8_t *p = data + at;
        size_t length = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        if (length > size - at - AROUND) {
            length = size - at - AROUND;
            png_put(p, (uint32_t)length);
        }
        png_put(p + 8 + length, (uint32_t)crc32(0, p + 4, (uInt)length + 4));
        at += AROUND + length;
    }
}

#endif
