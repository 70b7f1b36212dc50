/* BMP: rows of pixels, plain or in run lengths, as Pillow reads them. 5 and 6 bits are scaled by
 * v * 255 / 31 and v * 255 / 63, cut. Run lengths (Microsoft's RLE8 and RLE4):
 *
 *   n v        n pixels of v, cut at the end of the row (RLE4: the two halves of v in turn)
 *   0 0        end of the row       0 1   end of the picture
 *   0 2 . . x y   jump, over zeros   0 n ...   n pixels as they are, padded to an even place
 *
 * Three things that Pillow does to files others would read otherwise are kept, because the
 * reference encoders saw its pixels so: 8 bits with a palette of black and white are unpacked as
 * single bits, an odd number of plain pixels in RLE4 loses its last one, and a jump takes the two
 * bytes behind its own for x and y. */
#include "io/image/formats/bmp.h"

#include <string.h>

static void unpack_565(unsigned char *out, const unsigned char *in, int width, bool six)
{
    for (int x = 0; x < width; x++, in += 2, out += 3) {
        unsigned v = in[0] | (unsigned)in[1] << 8;
        unsigned green = six ? (v >> 5 & 63) * 255 / 63 : (v >> 5 & 31) * 255 / 31;
        out[0] = (unsigned char)((v >> (six ? 11 : 10) & 31) * 255 / 31);
        out[1] = (unsigned char)green;
        out[2] = (unsigned char)((v & 31) * 255 / 31);
    }
}

static void unpack_bytes(unsigned char *out, const unsigned char *in, const pnb__bmp *h)
{
    size_t step = (size_t)h->bits / 8, channels = (size_t)h->channels;
    for (int x = 0; x < h->width; x++, in += step, out += channels)
        for (size_t c = 0; c < channels; c++)
            out[c] = in[h->order[c]];
}

static void unpack_indices(unsigned char *out, const unsigned char *in, int width, int bits,
                           int scale)
{
    int mask = (1 << bits) - 1;
    for (int x = 0; x < width; x++) {
        int at = x * bits;
        out[x] = (unsigned char)((in[at >> 3] >> (8 - bits - (at & 7)) & mask) * scale);
    }
}

static void unpack_row(unsigned char *out, const unsigned char *in, const pnb__bmp *h)
{
    if (h->layout == PNB__BMP_BYTES)
        unpack_bytes(out, in, h);
    else if (h->layout != PNB__BMP_INDEX)
        unpack_565(out, in, h->width, h->layout == PNB__BMP_565);
    else if (h->mode == PNB_IMAGE_BILEVEL)
        unpack_indices(out, in, h->width, h->bits == 8 ? 1 : h->bits, 255);
    else if (h->bits == 8)
        memcpy(out, in, (size_t)h->width);
    else
        unpack_indices(out, in, h->width, h->bits, 1);
}

static unsigned char *row_of(pnb_image *image, const pnb__bmp *h, size_t y)
{
    size_t row = (size_t)h->width * (size_t)h->channels;
    return image->pixels + (h->top_down ? y : (size_t)h->height - 1 - y) * row;
}

/* ---- run lengths ---- */

/* The pixels come in file order, rows from the bottom or the top, without padding. */
typedef struct runs {
    const unsigned char *bytes;
    size_t n_bytes, at;
    pnb_image *image;
    const pnb__bmp *h;
    size_t n, total, x; /* pixels written, wanted; column that Pillow counts */
    bool is_rle4, is_ended;
} runs;

/* Pixels past the end of the picture are dropped. */
static void put(runs *r, unsigned value, size_t times)
{
    size_t width = (size_t)r->h->width;
    for (size_t i = 0; i < times && r->n < r->total; i++, r->n++) {
        unsigned char *p = row_of(r->image, r->h, r->n / width) + r->n % width;
        *p = (unsigned char)(r->h->mode == PNB_IMAGE_BILEVEL ? (value != 0) * 255u : value);
    }
}

static void put_run(runs *r, size_t n, unsigned value)
{
    size_t width = (size_t)r->h->width;
    if (r->x + n > width)
        n = width > r->x ? width - r->x : 0;
    for (size_t i = 0; r->is_rle4 && i < n; i++)
        put(r, i % 2 == 0 ? value >> 4 : value & 15, 1);
    if (!r->is_rle4)
        put(r, value, n);
    r->x += n;
}

static void put_plain(runs *r, size_t n)
{
    size_t n_bytes = r->is_rle4 ? n / 2 : n;
    for (size_t i = 0; i < n_bytes && r->at < r->n_bytes; i++, r->at++) {
        unsigned v = r->bytes[r->at];
        if (r->is_rle4) {
            put(r, v >> 4, 1);
            put(r, v & 15, 1);
        } else {
            put(r, v, 1);
        }
    }
    r->x += n;
    r->at += r->at % 2;
}

static void jump(runs *r)
{
    size_t width = (size_t)r->h->width;
    if (r->n_bytes - r->at < 4) {
        r->at = r->n_bytes;
        return;
    }
    size_t skip = r->bytes[r->at + 2] + (size_t)r->bytes[r->at + 3] * width;
    r->at += 4;
    r->n += PNB_MIN(skip, r->total - r->n); /* the room is zero already */
    r->x = r->n % width;
}

static void end_row(runs *r)
{
    size_t width = (size_t)r->h->width, over = r->n % width;
    if (over != 0)
        r->n = PNB_MIN(r->n + width - over, r->total);
    r->x = 0;
}

static pnb_status read_runs(pnb_image *image, const pnb__bmp *h, const unsigned char *bytes,
                            size_t n_bytes, pnb_error *err)
{
    runs r = {.bytes = bytes,
              .n_bytes = n_bytes,
              .at = h->data,
              .image = image,
              .h = h,
              .total = (size_t)h->width * (size_t)h->height,
              .is_rle4 = h->bits == 4};
    while (r.n < r.total && !r.is_ended && r.at + 2 <= n_bytes) {
        unsigned n = bytes[r.at], value = bytes[r.at + 1];
        r.at += 2;
        if (n > 0)
            put_run(&r, n, value);
        else if (value == 0)
            end_row(&r);
        else if (value == 1)
            r.is_ended = true;
        else if (value == 2)
            jump(&r);
        else
            put_plain(&r, value);
    }
    if (r.n < r.total && !r.is_ended)
        return pnb__fail(err, PNB_FORMAT, "BMP: the runs end after %zu of %zu pixels: truncated",
                         r.n, r.total);
    return PNB_OK;
}

pnb_status pnb__bmp_read_rows(pnb_image *image, const pnb__bmp *h, const unsigned char *bytes,
                              size_t n_bytes, pnb_error *err)
{
    if (h->is_rle)
        return read_runs(image, h, bytes, n_bytes, err);
    size_t row = ((size_t)h->width * (size_t)h->bits + 31) / 32 * 4;
    for (size_t y = 0; y < (size_t)h->height; y++)
        unpack_row(row_of(image, h, y), bytes + h->data + y * row, h);
    return PNB_OK;
}
