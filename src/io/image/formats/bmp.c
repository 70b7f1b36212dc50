/* BMP: the header, told as Pillow's BmpImagePlugin tells it, because what it makes of one is part
 * of the result. There is no maintained C library for this format alone among Debian's packages.
 *
 *   14 bytes     "BM", size, reserved, offset of the pixels
 *   12 bytes     OS/2: width, height, planes, bits of 16 bits each
 *   40..124      width, height, planes, bits, compression, ..., colours, ..., masks
 *   palette      blue, green, red (and a spare byte but in OS/2), `colours` of them
 *
 * A palette that is a grey ramp is dropped: the picture is grey (mode L), or bilevel when it has
 * two colours. Without masks the fourth byte of 32 bits is no alpha. Rows: bmp_rows.c. */
#include "io/image/formats/bmp.h"

#include <string.h>

enum { RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };
enum { FILE_HEADER = 14, MAX_COLORS = 65536 };

static uint32_t read_u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_u32(const unsigned char *p)
{
    return read_u16(p) | read_u16(p + 2) << 16;
}

/* What the header says, before it is judged. */
typedef struct fields {
    const unsigned char *bytes;
    size_t n_bytes, size; /* of the file; of the second header */
    size_t after;         /* first byte behind the headers and masks */
    int64_t width, height;
    uint32_t bits, compression, colors, offset, mask[4];
    bool top_down;
    size_t palette_step;
} fields;

static pnb_status fail_short(const fields *f, pnb_error *err)
{
    return pnb__fail(err, PNB_FORMAT, "BMP: the data ends after %zu bytes: truncated", f->n_bytes);
}

/* The masks lie in the header from 56 bytes on, behind it in the header of 40. */
static pnb_status read_masks(fields *f, pnb_error *err)
{
    size_t n = f->size >= 56 ? 4 : 3;
    const unsigned char *p = f->bytes + FILE_HEADER + 40;
    if (f->size >= 56) {
        for (size_t i = 0; i < n; i++)
            f->mask[i] = read_u32(p + 4 * i);
        return PNB_OK;
    }
    p = f->bytes + f->after;
    if (f->n_bytes - f->after < 12)
        return fail_short(f, err);
    for (size_t i = 0; i < n; i++)
        f->mask[i] = read_u32(p + 4 * i);
    f->after += 12;
    return PNB_OK;
}

static pnb_status read_fields(fields *f, pnb_error *err)
{
    const unsigned char *h = f->bytes + FILE_HEADER;
    if (f->n_bytes < FILE_HEADER + 4)
        return fail_short(f, err);
    f->size = read_u32(h);
    f->offset = read_u32(f->bytes + 10);
    if (f->size != 12 && f->size != 40 && f->size != 64 && f->size != 108 && f->size != 124)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "BMP: a header of %zu bytes: want 12, 40, 64, 108 or 124", f->size);
    if (f->n_bytes < FILE_HEADER + f->size)
        return fail_short(f, err);
    f->after = FILE_HEADER + f->size;
    f->palette_step = f->size == 12 ? 3 : 4;
    if (f->size == 12) {
        f->width = read_u16(h + 4);
        f->height = read_u16(h + 6);
        f->bits = read_u16(h + 10);
        return PNB_OK;
    }
    f->top_down = h[11] == 0xFF;
    f->width = read_u32(h + 4);
    f->height = f->top_down ? ((int64_t)1 << 32) - read_u32(h + 8) : read_u32(h + 8);
    f->bits = read_u16(h + 14);
    f->compression = read_u32(h + 16);
    f->colors = read_u32(h + 32);
    return f->compression == BITFIELDS ? read_masks(f, err) : PNB_OK;
}

/* The layouts of masks that Pillow knows. */
typedef struct mask_rule {
    uint32_t bits, mask[4];
    pnb__bmp_layout layout;
    unsigned char order[4];
    int channels;
} mask_rule;

static const mask_rule mask_rules[] = {
    {32, {0xFF0000, 0xFF00, 0xFF, 0}, PNB__BMP_BYTES, {2, 1, 0, 3}, 3},
    {32, {0xFF000000, 0xFF0000, 0xFF00, 0}, PNB__BMP_BYTES, {3, 2, 1, 0}, 3},
    {32, {0xFF000000, 0xFF0000, 0xFF00, 0xFF}, PNB__BMP_BYTES, {3, 2, 1, 0}, 4},
    {32, {0xFF, 0xFF00, 0xFF0000, 0xFF000000}, PNB__BMP_BYTES, {0, 1, 2, 3}, 4},
    {32, {0xFF0000, 0xFF00, 0xFF, 0xFF000000}, PNB__BMP_BYTES, {2, 1, 0, 3}, 4},
    {32, {0, 0, 0, 0}, PNB__BMP_BYTES, {2, 1, 0, 3}, 4},
    {24, {0xFF0000, 0xFF00, 0xFF, 0}, PNB__BMP_BYTES, {2, 1, 0, 3}, 3},
    {16, {0xF800, 0x7E0, 0x1F, 0}, PNB__BMP_565, {0}, 3},
    {16, {0x7C00, 0x3E0, 0x1F, 0}, PNB__BMP_555, {0}, 3},
};

/* The fourth mask counts with 32 bits only. */
static pnb_status apply_masks(pnb__bmp *h, const fields *f, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(mask_rules); i++) {
        const mask_rule *r = &mask_rules[i];
        if (r->bits != f->bits || memcmp(r->mask, f->mask, r->bits == 32 ? 16 : 12) != 0)
            continue;
        h->layout = r->layout;
        h->channels = r->channels;
        memcpy(h->order, r->order, sizeof h->order);
        return PNB_OK;
    }
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "BMP: %u bits with masks %08x %08x %08x %08x: want 555, 565 or whole bytes",
                     f->bits, f->mask[0], f->mask[1], f->mask[2], f->mask[3]);
}

static pnb_status choose_layout(pnb__bmp *h, const fields *f, pnb_error *err)
{
    h->bits = (int)f->bits;
    h->channels = f->bits <= 8 ? 1 : 3;
    h->layout = f->bits <= 8 ? PNB__BMP_INDEX : f->bits == 16 ? PNB__BMP_555 : PNB__BMP_BYTES;
    memcpy(h->order, "\2\1\0\3", 4);
    h->is_rle = f->compression == RLE8 || f->compression == RLE4;
    if (f->bits != 1 && f->bits != 4 && f->bits != 8 && f->bits != 16 && f->bits != 24 &&
        f->bits != 32)
        return pnb__fail(err, PNB_UNSUPPORTED, "BMP: %u bits a pixel: want 1, 4, 8, 16, 24 or 32",
                         f->bits);
    if (f->compression > BITFIELDS)
        return pnb__fail(err, PNB_UNSUPPORTED, "BMP: compression %u: want none, RLE or bit fields",
                         f->compression);
    if (h->is_rle && f->bits != (f->compression == RLE8 ? 8u : 4u))
        return pnb__fail(err, PNB_FORMAT, "BMP: run lengths of %d bits over %u bits a pixel",
                         f->compression == RLE8 ? 8 : 4, f->bits);
    return f->compression == BITFIELDS ? apply_masks(h, f, err) : PNB_OK;
}

/* Pixels start where the file says; a file that forgets its palette in that number is put right. */
static size_t find_data(const fields *f, size_t behind_palette)
{
    size_t offset = f->offset;
    if (offset == FILE_HEADER + f->size && f->bits <= 8)
        offset += 4 * (size_t)f->colors;
    return offset != 0 ? offset : behind_palette;
}

/* A palette whose entries are their own number (two: black and white) makes a grey picture. */
static bool is_grey_ramp(const unsigned char *palette, size_t step, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        unsigned value = n == 2 ? 255 * i : i;
        const unsigned char *p = palette + step * i;
        if (value > 255 || p[0] != value || p[1] != value || p[2] != value)
            return false;
    }
    return true;
}

/* Entries that the file lacks show the grey of their number, as in Pillow. */
static pnb_status make_palette(pnb_image *image, const fields *f, pnb_error *err)
{
    image->palette = pnb__alloc(256 * 3);
    if (image->palette == NULL)
        return pnb__fail_nomem(err, 256 * 3);
    for (size_t i = 0; i < 256; i++) {
        const unsigned char *p = f->bytes + f->after + f->palette_step * i;
        for (size_t c = 0; c < 3; c++)
            image->palette[3 * i + c] = i < f->colors ? p[2 - c] : (unsigned char)i;
    }
    return PNB_OK;
}

/* Reads the header into `h` and leaves the palette's place in `f`. */
static pnb_status read_header(pnb__bmp *h, fields *f, const pnb_image_opts *opts, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(read_fields(f, err));
    PNB_TRY(pnb__image_check_size(f->width, f->height, opts, err));
    PNB_TRY(choose_layout(h, f, err));
    h->width = (int)f->width;
    h->height = (int)f->height;
    h->top_down = f->top_down;
    if (f->bits > 8) {
        h->data = find_data(f, f->after);
        goto done;
    }
    if (f->colors == 0)
        f->colors = 1u << f->bits;
    if (f->colors > MAX_COLORS)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "BMP: a palette of %u colours", f->colors));
    if ((f->n_bytes - f->after) / f->palette_step < f->colors)
        PNB_TRY(fail_short(f, err));
    h->n_colors = f->colors;
    h->data = find_data(f, f->after + f->palette_step * f->colors);
    h->mode = PNB_IMAGE_PALETTE;
    if (is_grey_ramp(f->bytes + f->after, f->palette_step, f->colors))
        h->mode = f->colors == 2 ? PNB_IMAGE_BILEVEL : PNB_IMAGE_PLAIN;
done:
    return status;
}

/* Rows without compression take what they take, so a false claim shows before memory is taken; one
 * byte of run lengths stands for 255 pixels at most, a jump of four for 256 rows. */
static pnb_status check_claim(const pnb__bmp *h, const fields *f, pnb_error *err)
{
    uint64_t left = f->n_bytes > h->data ? f->n_bytes - h->data : 0;
    uint64_t row = ((uint64_t)h->width * (uint64_t)h->bits + 7) / 8, step = (row + 3) / 4 * 4;
    uint64_t wanted = h->is_rle ? 1 : step * (uint64_t)(h->height - 1) + row;
    if (left < wanted)
        return pnb__fail(
            err, PNB_FORMAT, "BMP: %dx%d pixels of %d bits take %llu bytes, %llu follow: truncated",
            h->width, h->height, h->bits, (unsigned long long)wanted, (unsigned long long)left);
    return PNB_OK;
}

pnb_status pnb__bmp_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                           const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    fields f = {.bytes = bytes, .n_bytes = n_bytes};
    pnb__bmp h = {0};
    pnb_image image = {0};
    pnb_status status;
    (void)orientation;
    *out = (pnb_image){0};
    PNB_TRY(read_header(&h, &f, opts, err));
    PNB_TRY(check_claim(&h, &f, err));
    PNB_TRY(pnb__image_admit(h.width, h.height, h.channels, opts, err));
    PNB_TRY(pnb_image_create(&image, h.width, h.height, h.channels, err));
    image.mode = h.mode;
    if (h.mode == PNB_IMAGE_PALETTE)
        PNB_TRY(make_palette(&image, &f, err));
    PNB_TRY(pnb__bmp_read_rows(&image, &h, bytes, n_bytes, err));
    *out = image;
    image = (pnb_image){0};
done:
    pnb_image_free(&image);
    return status;
}
