/* Makes a damaged zip archive agree with itself again, so that a fuzzer's damage reaches the code
 * behind checksums and directory: the directory is found where it lies, its entries are those of
 * the local headers in their order, sizes are what lies between them, checksums those of the data.
 * In place; numbers of zip64 stay in their extra fields. What is no archive stays as it is. */
#ifndef PNB_TESTS_FUZZ_MEND_ZIP_H
#define PNB_TESTS_FUZZ_MEND_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <zlib.h>

enum { ZIP_LOCAL = 30, ZIP_CENTRAL = 46, ZIP_END = 22, ZIP_MAX_UNPACKED = 1 << 20 };

static inline uint64_t zip_get(const uint8_t *p, int n)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static inline void zip_put(uint8_t *p, int n, uint64_t value)
{
    for (int i = 0; i < n; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* Place of the next record "PK" a b at or after `at`; `size` when there is none. */
static inline size_t zip_next(const uint8_t *data, size_t size, size_t at, int a, int b)
{
    for (; at + 4 <= size; at++)
        if (data[at] == 'P' && data[at + 1] == 'K' && data[at + 2] == a && data[at + 3] == b)
            return at;
    return size;
}

/* Numbers of a header that are not all ones are written there, the others into the zip64 field. */
static inline void zip_put_sizes(uint8_t *const at[3], const uint64_t values[3], int n,
                                 uint8_t *extra, size_t n_extra)
{
    uint8_t *wide = NULL;
    size_t left = 0;
    while (n_extra >= 4) {
        size_t length = (size_t)zip_get(extra + 2, 2);
        if (length > n_extra - 4)
            break;
        if (zip_get(extra, 2) == 1 && wide == NULL)
            wide = extra + 4, left = length;
        extra += 4 + length, n_extra -= 4 + length;
    }
    for (int i = 0; i < n; i++) {
        if (zip_get(at[i], 4) != 0xFFFFFFFF) {
            zip_put(at[i], 4, values[i]);
        } else if (wide != NULL && left >= 8) {
            zip_put(wide, 8, values[i]);
            wide += 8, left -= 8;
        }
    }
}

/* Size and checksum of what is unpacked; false: the stream is broken. */
static inline bool zip_unpack(const uint8_t *data, size_t n, uint64_t *n_bytes, uint32_t *crc)
{
    uint8_t block[4096];
    z_stream z = {0};
    int code = Z_OK;
    if (inflateInit2(&z, -15) != Z_OK)
        return false;
    *crc = (uint32_t)crc32(0, NULL, 0);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)n;
    for (*n_bytes = 0; code == Z_OK && *n_bytes < ZIP_MAX_UNPACKED;) {
        z.next_out = block;
        z.avail_out = sizeof block;
        code = inflate(&z, Z_NO_FLUSH);
        *crc = (uint32_t)crc32(*crc, block, (uInt)(sizeof block - z.avail_out));
        *n_bytes += sizeof block - z.avail_out;
    }
    inflateEnd(&z);
    return code == Z_STREAM_END;
}

/* One entry of the directory at `p` and the header at `local`, whose data end before `end`. */
static inline void zip_mend_member(uint8_t *data, size_t local, size_t end, uint8_t *p)
{
    uint8_t *header = data + local;
    size_t n_name = (size_t)zip_get(header + 26, 2), n_extra = (size_t)zip_get(header + 28, 2);
    if (end - local < ZIP_LOCAL + n_name + n_extra)
        return;
    size_t from = local + ZIP_LOCAL + n_name + n_extra;
    size_t to = zip_next(data, end, from, 7, 8); /* a descriptor behind the data */
    uint64_t n_stored = to - from, n_bytes = n_stored;
    uint32_t crc = (uint32_t)crc32(0, data + from, (uInt)n_stored);
    if (zip_get(p + 10, 2) == 8 && !zip_unpack(data + from, (size_t)n_stored, &n_bytes, &crc))
        return;
    size_t n_central_name = (size_t)zip_get(p + 28, 2);
    if (n_central_name == n_name)
        memcpy(header + ZIP_LOCAL, p + ZIP_CENTRAL, n_name);
    memcpy(header + 6, p + 8, 4); /* flags and compression */
    zip_put(p + 16, 4, crc);
    uint64_t values[3] = {n_bytes, n_stored, local};
    zip_put_sizes((uint8_t *const[3]){p + 24, p + 20, p + 42}, values, 3,
                  p + ZIP_CENTRAL + n_central_name, (size_t)zip_get(p + 30, 2));
    bool is_deferred = to < end && zip_get(header + 14, 4) == 0;
    if (!is_deferred) {
        zip_put(header + 14, 4, crc);
        zip_put_sizes((uint8_t *const[3]){header + 22, header + 18, NULL}, values, 2,
                      header + ZIP_LOCAL + n_name, n_extra);
    }
}

/* The records at the end: `n` entries of the directory lie from `at` to `to`. */
static inline void zip_mend_end(uint8_t *data, size_t size, uint64_t n, size_t at, size_t to)
{
    size_t end = zip_next(data, size, to, 5, 6), wide = zip_next(data, size, to, 6, 6);
    size_t locator = zip_next(data, size, to, 6, 7);
    if (size - wide >= 56 && wide < end) {
        zip_put(data + wide + 24, 8, n);
        zip_put(data + wide + 32, 8, n);
        zip_put(data + wide + 40, 8, to - at);
        zip_put(data + wide + 48, 8, at);
        if (size - locator >= 20)
            zip_put(data + locator + 8, 8, wide);
    }
    if (size - end < ZIP_END)
        return;
    uint8_t *p = data + end;
    bool is_wide = zip_get(p + 16, 4) == 0xFFFFFFFF || zip_get(p + 10, 2) == 0xFFFF;
    zip_put(p + 20, 2, size - end - ZIP_END);
    if (is_wide)
        return;
    zip_put(p + 8, 2, n);
    zip_put(p + 10, 2, n);
    zip_put(p + 12, 4, to - at);
    zip_put(p + 16, 4, at);
}

static inline void mend_zip(uint8_t *data, size_t size)
{
    size_t first = zip_next(data, size, 0, 1, 2), at = first, local = 0;
    uint64_t n = 0;
    while (size - at >= ZIP_CENTRAL && zip_next(data, at + 4, at, 1, 2) == at) {
        uint8_t *p = data + at;
        size_t length = ZIP_CENTRAL + (size_t)zip_get(p + 28, 2) + (size_t)zip_get(p + 30, 2) +
                        (size_t)zip_get(p + 32, 2);
        local = zip_next(data, first, local, 3, 4);
        if (length > size - at || first - local < ZIP_LOCAL)
            break;
        zip_mend_member(data, local, zip_next(data, first, local + 4, 3, 4), p);
        local += 4;
        at += length;
        n++;
    }
    if (n > 0)
        zip_mend_end(data, size, n, first, at);
}

#endif
