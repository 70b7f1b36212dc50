/* PNG by libspng. The rows are taken raw and unpacked here, because what Pillow makes of each
 * colour type and depth is part of the result:
 *   grey 1 bit -> mode "1" (0/255), 2 and 4 bit -> scaled to 0..255, 16 bit -> mode "I"
 *   grey+alpha, RGB, RGBA of 16 bit -> their high bytes;  palette -> indices and a palette
 * Transparency of palette and key colours is used only for keep_alpha. Writing: png_write.c. */
#include <string.h>

#include <spng.h>

#include "io/image/formats/codec.h"

#define MAX_CHUNK_BYTES ((size_t)64 << 20)
#define ZLIB_WINDOW_BYTES ((size_t)64 << 10)
#define MAX_DEFLATE_RATIO 1032 /* zlib cannot expand more */

static pnb_status fail_png(pnb_error *err, int code)
{
    /* the lack of zlib's window, which decode_pixels did not get at a second try either */
    void *room = pnb__alloc(ZLIB_WINDOW_BYTES);
    bool no_room = room == NULL && code == SPNG_EIDAT_STREAM;
    pnb__free(room);
    if (code == SPNG_EMEM || code == SPNG_EZLIB_INIT || no_room)
        return pnb__fail(err, PNB_NOMEM, "PNG: out of memory");
    if (code == SPNG_EOVERFLOW)
        return pnb__fail(err, PNB_LIMIT, "PNG: the claimed size overflows");
    bool is_short = code == SPNG_IO_EOF || code == SPNG_EIDAT_TOO_SHORT;
    return pnb__fail(err, PNB_FORMAT, "PNG: %s%s", spng_strerror(code),
                     is_short ? ": the file is truncated" : "");
}

static spng_ctx *open_png(const unsigned char *bytes, size_t n_bytes)
{
    struct spng_alloc alloc = {.malloc_fn = pnb__alloc,
                               .realloc_fn = pnb__realloc,
                               .calloc_fn = pnb__alloc_zero,
                               .free_fn = pnb__free};
    spng_ctx *ctx = spng_ctx_new2(&alloc, 0);
    if (ctx == NULL)
        return NULL;
    spng_set_chunk_limits(ctx, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES);
    spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
    if (spng_set_png_buffer(ctx, bytes, n_bytes) != 0) {
        spng_ctx_free(ctx);
        return NULL;
    }
    return ctx;
}

/* Spreads samples of 1, 2 or 4 bits to bytes. `scale` 1 keeps palette indices. */
static void unpack_bits(unsigned char *out, const unsigned char *in, int width, int depth,
                        int scale)
{
    int mask = (1 << depth) - 1;
    for (int x = 0; x < width; x++) {
        int bit = x * depth;
        int value = in[bit >> 3] >> (8 - depth - (bit & 7)) & mask;
        out[x] = (unsigned char)(value * scale);
    }
}

/* One raw row (big-endian 16 bit) to 8-bit samples. */
static void unpack_row(unsigned char *out, const unsigned char *in, const struct spng_ihdr *h,
                       int channels)
{
    size_t n = (size_t)h->width * (size_t)channels;
    bool is_grey = h->color_type == SPNG_COLOR_TYPE_GRAYSCALE;
    if (h->bit_depth == 8)
        memcpy(out, in, n);
    else if (h->bit_depth < 8)
        unpack_bits(out, in, (int)h->width, h->bit_depth,
                    is_grey ? 255 / ((1 << h->bit_depth) - 1) : 1);
    else if (is_grey)
        for (size_t i = 0; i < h->width; i++) {
            uint16_t value = (uint16_t)(in[2 * i] << 8 | in[2 * i + 1]);
            memcpy(out + 2 * i, &value, 2);
        }
    else
        for (size_t i = 0; i < n; i++)
            out[i] = in[2 * i];
}

static bool is_grey16(const struct spng_ihdr *h)
{
    return h->color_type == SPNG_COLOR_TYPE_GRAYSCALE && h->bit_depth == 16;
}

/* Of the decoded picture; a 16-bit grey takes two bytes. */
static int channels_of(const struct spng_ihdr *h)
{
    if (is_grey16(h))
        return 2;
    switch (h->color_type) {
    case SPNG_COLOR_TYPE_TRUECOLOR:
        return 3;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        return 4;
    default:
        return 1;
    }
}

/* Indices past the end of the palette show the grey of their number, as in Pillow. */
static pnb_status read_palette(pnb_image *image, spng_ctx *ctx, pnb_error *err)
{
    struct spng_plte plte;
    int code = spng_get_plte(ctx, &plte);
    if (code != 0)
        return fail_png(err, code);
    image->palette = pnb__alloc(256 * 3);
    if (image->palette == NULL)
        return pnb__fail_nomem(err, 256 * 3);
    for (size_t i = 0; i < 256; i++)
        memset(image->palette + 3 * i, (int)i, 3);
    for (uint32_t i = 0; i < plte.n_entries && i < 256; i++) {
        image->palette[3 * i] = plte.entries[i].red;
        image->palette[3 * i + 1] = plte.entries[i].green;
        image->palette[3 * i + 2] = plte.entries[i].blue;
    }
    image->mode = PNB_IMAGE_PALETTE;
    return PNB_OK;
}

/* Where the pixels of Adam7's passes lie. */
static const int pass_x[] = {0, 4, 0, 2, 0, 1, 0}, pass_dx[] = {8, 8, 4, 4, 2, 2, 1};

/* Rows as they come, each unpacked at once: the file's own form of a picture, twice as large at 16
 * bits, is never whole in memory. */
static int read_rows(pnb_image *image, spng_ctx *ctx, const struct spng_ihdr *h, size_t n_raw_row,
                     unsigned char *raw, unsigned char *line)
{
    size_t channels = (size_t)image->channels, row = (size_t)image->width * channels;
    int code = spng_decode_image(ctx, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    while (code == 0) {
        struct spng_row_info info;
        struct spng_ihdr part = *h; /* the pass as a picture of its own */
        code = spng_get_row_info(ctx, &info);
        if (code != 0)
            return code;
        code = spng_decode_scanline(ctx, raw, n_raw_row);
        if (code != 0 && code != SPNG_EOI)
            return code;
        unsigned char *out = image->pixels + info.row_num * row;
        if (!h->interlace_method) {
            unpack_row(out, raw, h, (int)channels);
            continue;
        }
        uint32_t first = (uint32_t)pass_x[info.pass], step = (uint32_t)pass_dx[info.pass];
        part.width = (h->width - first + step - 1) / step;
        unpack_row(line, raw, &part, (int)channels);
        for (uint32_t x = 0; x < part.width; x++)
            memcpy(out + (first + x * step) * channels, line + x * channels, channels);
    }
    return code == SPNG_EOI ? 0 : code;
}

static pnb_status decode_native(pnb_image *image, spng_ctx *ctx, const struct spng_ihdr *h,
                                pnb_error *err)
{
    pnb_status status = PNB_OK;
    int channels = channels_of(h);
    size_t n_raw = 0;
    unsigned char *raw = NULL, *line = NULL;
    int code = spng_decoded_image_size(ctx, SPNG_FMT_RAW, &n_raw);
    if (code != 0)
        return fail_png(err, code);
    PNB_TRY(pnb_image_create(image, (int)h->width, (int)h->height, channels, err));
    if (h->color_type == SPNG_COLOR_TYPE_INDEXED)
        PNB_TRY(read_palette(image, ctx, err));
    else if (h->color_type == SPNG_COLOR_TYPE_GRAYSCALE && h->bit_depth == 1)
        image->mode = PNB_IMAGE_BILEVEL;
    else if (is_grey16(h))
        image->mode = PNB_IMAGE_GREY16;
    if (h->bit_depth == 8) {
        code = spng_decode_image(ctx, image->pixels, n_raw, SPNG_FMT_RAW, 0);
    } else {
        size_t raw_row = n_raw / h->height;
        raw = pnb__alloc_zero(raw_row, 1);
        line = pnb__alloc_zero((size_t)image->width * (size_t)channels, 1);
        if (raw == NULL || line == NULL) {
            status = pnb__fail_nomem(err, raw_row);
            goto done;
        }
        code = read_rows(image, ctx, h, raw_row, raw, line);
    }
    if (code != 0)
        status = fail_png(err, code);
done:
    pnb__free(raw);
    pnb__free(line);
    return status;
}

static pnb_status decode_rgba(pnb_image *image, spng_ctx *ctx, const struct spng_ihdr *h,
                              pnb_error *err)
{
    pnb_status status = pnb_image_create(image, (int)h->width, (int)h->height, 4, err);
    if (status != PNB_OK)
        return status;
    size_t n_bytes = (size_t)h->width * h->height * 4;
    int code = spng_decode_image(ctx, image->pixels, n_bytes, SPNG_FMT_RGBA8, SPNG_DECODE_TRNS);
    return code != 0 ? fail_png(err, code) : PNB_OK;
}

/* The size is checked against the limit, and against what so many bytes can hold, before memory is
 * taken for it. */
static pnb_status read_header(spng_ctx *ctx, size_t n_bytes, const pnb_image_opts *opts,
                              struct spng_ihdr *h, pnb_error *err)
{
    int code = spng_get_ihdr(ctx, h);
    if (code != 0)
        return fail_png(err, code);
    pnb_status status = pnb__image_check_size(h->width, h->height, opts, err);
    if (status != PNB_OK)
        return status;
    int depth = is_grey16(h) ? 8 : h->bit_depth; /* of what channels_of counts */
    int64_t bits = (int64_t)h->width * h->height * channels_of(h) * depth;
    if (bits / 8 / MAX_DEFLATE_RATIO > (int64_t)n_bytes)
        return pnb__fail(err, PNB_FORMAT,
                         "PNG: the header claims %ux%u pixels but only %zu bytes follow", h->width,
                         h->height, n_bytes);
    return PNB_OK;
}

static pnb_status decode_once(pnb_image *image, spng_ctx *ctx, const struct spng_ihdr *h,
                              bool with_alpha, pnb_error *err)
{
    pnb_status status =
        with_alpha ? decode_rgba(image, ctx, h, err) : decode_native(image, ctx, h, err);
    if (status != PNB_OK)
        pnb_image_free(image);
    return status;
}

/* zlib asks for its window late, and libspng tells its lack as a broken stream, by an allocator
 * that cannot leave word. So what seems broken is read once more: a file fails again, a lack that
 * has passed does not, and one that has not shows at the start or to fail_png. */
static pnb_status decode_pixels(pnb_image *image, spng_ctx *ctx, const unsigned char *bytes,
                                size_t n_bytes, const struct spng_ihdr *h, bool with_alpha,
                                pnb_error *err)
{
    pnb_error first = PNB_ERROR_INIT;
    pnb_status status = decode_once(image, ctx, h, with_alpha, &first);
    if (status == PNB_OK)
        return status;
    if (status != PNB_FORMAT)
        return pnb__fail(err, status, "%s", first.text);
    spng_ctx *again = open_png(bytes, n_bytes);
    if (again == NULL)
        return pnb__fail_nomem(err, n_bytes);
    status = decode_once(image, again, h, with_alpha, err);
    spng_ctx_free(again);
    return status;
}

pnb_status pnb__png_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                           const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    pnb_status status;
    pnb_image image = {0};
    struct spng_ihdr header;
    struct spng_trns trns;
    struct spng_exif exif;
    *out = (pnb_image){0};
    spng_ctx *ctx = open_png(bytes, n_bytes);
    if (ctx == NULL)
        return pnb__fail_nomem(err, n_bytes);
    PNB_TRY(read_header(ctx, n_bytes, opts, &header, err));
    bool has_alpha = (header.color_type & 4) != 0 || spng_get_trns(ctx, &trns) == 0;
    PNB_TRY(pnb__image_admit(header.width, header.height, has_alpha ? 4 : channels_of(&header),
                             opts, err));
    bool with_alpha = opts->keep_alpha && has_alpha && !opts->native;
    PNB_TRY(decode_pixels(&image, ctx, bytes, n_bytes, &header, with_alpha, err));
    if (opts->exif && spng_get_exif(ctx, &exif) == 0)
        *orientation = pnb__exif_orientation((const unsigned char *)exif.data, exif.length);
    *out = image;
    image = (pnb_image){0};
done:
    pnb_image_free(&image);
    spng_ctx_free(ctx);
    return status;
}
