/* TIFF files put together tag by tag: little-endian, one picture, without compression. */
#ifndef TESTS_IO_IMAGE_TIFF_MAKER_H
#define TESTS_IO_IMAGE_TIFF_MAKER_H

#include "tests/io/image/support.h"

typedef struct tiff_maker {
    pnb__buf file; /* header, pixels, values that do not fit their entry; then the directory */
    unsigned char entry[24][12];
    uint16_t tag[24];
    size_t n;
} tiff_maker;

enum { TAG_SHORT = 3, TAG_LONG = 4 };

/* n values of 16 or 32 bits under a tag; a tag that is there already is replaced. */
static inline void put_tag(tiff_maker *m, uint16_t tag, uint16_t type, uint32_t n,
                           const uint32_t *values)
{
    size_t at = 0;
    unsigned char bytes[4 * 256] = {0};
    size_t each = type == TAG_SHORT ? 2 : 4;
    while (at < m->n && m->tag[at] < tag)
        at++;
    if (at == m->n || m->tag[at] != tag) { /* entries are in the order of their tags */
        memmove(&m->entry[at + 1], &m->entry[at], (m->n - at) * sizeof m->entry[0]);
        memmove(&m->tag[at + 1], &m->tag[at], (m->n - at) * sizeof m->tag[0]);
        m->n++;
    }
    for (uint32_t i = 0; i < n; i++)
        memcpy(bytes + each * i, &values[i], each);
    m->tag[at] = tag;
    memcpy(m->entry[at], &tag, 2);
    memcpy(m->entry[at] + 2, &type, 2);
    memcpy(m->entry[at] + 4, &n, 4);
    memcpy(m->entry[at] + 8, bytes, 4);
    if (each * n > 4) {
        uint32_t offset = (uint32_t)m->file.size;
        memcpy(m->entry[at] + 8, &offset, 4);
        pnb__buf_append(&m->file, bytes, each * n);
    }
}

static inline void put_short(tiff_maker *m, uint16_t tag, uint32_t value)
{
    put_tag(m, tag, TAG_SHORT, 1, &value);
}

static inline void drop_tag(tiff_maker *m, uint16_t tag)
{
    for (size_t at = 0; at < m->n; at++)
        if (m->tag[at] == tag) {
            m->n--;
            memmove(&m->entry[at], &m->entry[at + 1], (m->n - at) * sizeof m->entry[0]);
            memmove(&m->tag[at], &m->tag[at + 1], (m->n - at) * sizeof m->tag[0]);
        }
}

/* Header, pixels in one strip, and the tags that every picture has. */
static inline void begin_tiff(tiff_maker *m, uint32_t width, uint32_t height, uint32_t bits,
                              uint32_t samples, uint32_t photometric, const void *pixels, size_t n)
{
    const uint32_t every[8] = {bits, bits, bits, bits, bits, bits, bits, bits}, offset = 8,
                   size = (uint32_t)n;
    *m = (tiff_maker){.n = 0};
    pnb__buf_append(&m->file, "II*\0\0\0\0\0", 8);
    pnb__buf_append(&m->file, pixels, n);
    pnb__buf_append(&m->file, "\0", n % 2);
    put_short(m, 256, width);
    put_short(m, 257, height);
    put_tag(m, 258, TAG_SHORT, samples, every);
    put_short(m, 259, 1);
    put_short(m, 262, photometric);
    put_tag(m, 273, TAG_LONG, 1, &offset);
    put_short(m, 277, samples);
    put_short(m, 278, height);
    put_tag(m, 279, TAG_LONG, 1, &size);
}

/* The directory; free m->file. */
static inline void end_tiff(tiff_maker *m)
{
    uint32_t at = (uint32_t)m->file.size;
    uint16_t n = (uint16_t)m->n;
    pnb__buf_append(&m->file, &n, 2);
    pnb__buf_append(&m->file, m->entry, m->n * sizeof m->entry[0]);
    pnb__buf_append(&m->file, "\0\0\0\0", 4);
    memcpy(m->file.data + 4, &at, 4);
}

/* Decodes it in its own mode, and lets go of the file. */
static inline pnb_status finish_tiff(tiff_maker *m, pnb_image *image, pnb_error *err)
{
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = true;
    end_tiff(m);
    pnb_status status = pnb_image_decode(image, m->file.data, m->file.size, &opts, err);
    pnb__buf_reset(&m->file);
    return status;
}

#endif
