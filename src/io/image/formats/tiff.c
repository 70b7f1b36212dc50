/* TIFF by libtiff: the first picture of the file, with the colour rules of Pillow's
 * TiffImagePlugin.
 *
 *   grey 1 bit -> bilevel, 2, 4 -> scaled to 0..255, 8 (white-is-zero inverted), 12 and 16 -> whole
 *   32 bits and signed -> cut at 0 and 65535, floats -> cut to 0..255
 *   palette 1, 2, 4, 8 -> indices, high bytes of the palette;  CMYK and RGB 8, 16 -> high bytes
 *   YCbCr -> RGB (in JPEG by libjpeg, else by libtiff);  premultiplied colours are divided again
 *
 * What Pillow does not know (CIE Lab, grey with alpha of 16 bits, ...) is refused by name. The
 * orientation is applied, as Pillow does for this format alone. libtiff must be 4.5, because before
 * it had no error handler without globals and no limit on its memory. */
#include "io/image/formats/tiff.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TIFF_SAMPLES = 6, MAX_FILE_ALLOC = 1 << 30 };

/* What libtiff reads from, and what it says. */
typedef struct reader {
    const unsigned char *bytes;
    uint64_t n_bytes, at;
    char message[200];
} reader;

static tmsize_t read_bytes(thandle_t user, void *out, tmsize_t n)
{
    reader *r = user;
    uint64_t left = r->at < r->n_bytes ? r->n_bytes - r->at : 0;
    uint64_t count = PNB_MIN((uint64_t)PNB_MAX(n, 0), left);
    if (count > 0)
        memcpy(out, r->bytes + r->at, (size_t)count);
    r->at += count;
    return (tmsize_t)count;
}

static tmsize_t write_bytes(thandle_t user, void *bytes, tmsize_t n)
{
    (void)user, (void)bytes, (void)n;
    return 0;
}

static toff_t seek_bytes(thandle_t user, toff_t offset, int whence)
{
    reader *r = user;
    uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? r->at : r->n_bytes;
    r->at = from + offset;
    return r->at;
}

static int close_bytes(thandle_t user)
{
    (void)user;
    return 0;
}

static toff_t size_bytes(thandle_t user)
{
    return ((reader *)user)->n_bytes;
}

static int map_bytes(thandle_t user, void **base, toff_t *size)
{
    const reader *r = user;
    *base = (void *)(uintptr_t)r->bytes;
    *size = r->n_bytes;
    return 1;
}

static void unmap_bytes(thandle_t user, void *base, toff_t size)
{
    (void)user, (void)base, (void)size;
}

/* The first message counts; the rest follow from it. */
static int on_error(TIFF *tiff, void *user, const char *module, const char *fmt, va_list ap)
{
    reader *r = user;
    (void)tiff, (void)module;
    if (r->message[0] == '\0')
        vsnprintf(r->message, sizeof r->message, fmt, ap);
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *fmt, va_list ap)
{
    (void)tiff, (void)user, (void)module, (void)fmt, (void)ap; /* decoded around */
    return 1;
}

static TIFF *open_tiff(reader *r)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options == NULL)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, r);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_FILE_ALLOC);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", r, read_bytes, write_bytes, seek_bytes,
                                   close_bytes, size_bytes, map_bytes, unmap_bytes, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

static pnb_status fail_tiff(pnb_error *err, const reader *r)
{
    bool is_short = strstr(r->message, "Read error") != NULL;
    return pnb__fail(err, PNB_FORMAT, "TIFF: %s%s", r->message[0] ? r->message : "damaged",
                     is_short ? ": the file is truncated" : "");
}

static uint16_t get_u16(TIFF *tiff, uint32_t tag, uint16_t fallback)
{
    uint16_t value;
    return TIFFGetField(tiff, tag, &value) == 1 ? value : fallback;
}

static void read_tags(pnb__tiff *t, TIFF *tiff)
{
    uint16_t *extra = NULL;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &t->width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &t->height);
    t->compression = get_u16(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    t->photometric = get_u16(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE);
    if (t->compression == COMPRESSION_OJPEG)
        t->photometric = PHOTOMETRIC_YCBCR;
    t->bits = get_u16(tiff, TIFFTAG_BITSPERSAMPLE, 1);
    t->samples = get_u16(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
    t->format = get_u16(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    t->planar = get_u16(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    t->orientation = get_u16(tiff, TIFFTAG_ORIENTATION, 1);
    if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &t->n_extra, &extra) == 1 && t->n_extra > 0)
        t->extra = extra[0];
    else
        t->n_extra = 0;
    t->is_tiled = TIFFIsTiled(tiff) != 0;
    t->tile_width = t->width;
    t->tile_height = 1;
    if (t->is_tiled) {
        TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &t->tile_width);
        TIFFGetField(tiff, TIFFTAG_TILELENGTH, &t->tile_height);
    }
}

/* Of one sample, or with alpha of 8 bits beside black-is-zero. */
static bool choose_grey(pnb__tiff *t)
{
    bool is_uint = t->format == SAMPLEFORMAT_UINT, is_white_zero = t->photometric == 0;
    t->channels = t->samples;
    t->kind = PNB__TIFF_BYTES;
    if (t->samples == 2)
        return is_uint && t->bits == 8 && !is_white_zero && t->extra == EXTRASAMPLE_UNASSALPHA;
    t->invert = is_white_zero;
    if (t->samples != 1 || t->n_extra > 0)
        return false;
    if (is_uint && t->bits == 8)
        return true;
    if (is_uint && (t->bits == 1 || t->bits == 2 || t->bits == 4)) {
        t->kind = PNB__TIFF_BITS;
        t->scale = 255 / ((1u << t->bits) - 1);
        t->mode = t->bits == 1 ? PNB_IMAGE_BILEVEL : PNB_IMAGE_PLAIN;
        return true;
    }
    t->invert = false; /* Pillow forgets to */
    if (t->format == SAMPLEFORMAT_IEEEFP && t->bits == 32) {
        t->kind = PNB__TIFF_FLOAT;
        return true;
    }
    t->mode = PNB_IMAGE_GREY16;
    t->channels = 2;
    t->is_signed = t->format == SAMPLEFORMAT_INT;
    t->kind = is_uint && t->bits != 32 ? PNB__TIFF_GREY16 : PNB__TIFF_INT;
    return (is_uint && (t->bits == 12 || t->bits == 16 || t->bits == 32)) ||
           (t->is_signed && (t->bits == 16 || t->bits == 32));
}

static bool choose_colour(pnb__tiff *t, int n_colours)
{
    int n_extra = t->samples - n_colours;
    bool has_alpha = n_colours == 3 && n_extra > 0 && t->extra != EXTRASAMPLE_UNSPECIFIED;
    t->kind = t->bits == 16 ? PNB__TIFF_WORDS : PNB__TIFF_BYTES;
    t->channels = n_colours + (has_alpha ? 1 : 0);
    t->mode = n_colours == 4 ? PNB_IMAGE_CMYK : PNB_IMAGE_PLAIN;
    t->is_premultiplied = has_alpha && t->extra == EXTRASAMPLE_ASSOCALPHA;
    return t->format == SAMPLEFORMAT_UINT && (t->bits == 8 || t->bits == 16) && n_extra >= 0 &&
           t->samples <= MAX_TIFF_SAMPLES;
}

static bool choose_palette(pnb__tiff *t)
{
    bool has_alpha = t->samples == 2 && t->bits == 8;
    t->kind = t->bits == 8 ? PNB__TIFF_BYTES : PNB__TIFF_BITS;
    t->scale = 1;
    t->channels = 1;
    t->mode = PNB_IMAGE_PALETTE;
    return t->format == SAMPLEFORMAT_UINT && (t->samples == 1 || has_alpha) &&
           (t->bits == 1 || t->bits == 2 || t->bits == 4 || t->bits == 8);
}

static bool choose_ycbcr(pnb__tiff *t)
{
    bool by_libjpeg = t->compression == COMPRESSION_JPEG && t->planar == PLANARCONFIG_CONTIG;
    t->kind = by_libjpeg ? PNB__TIFF_BYTES : PNB__TIFF_RGBA;
    t->channels = 3;
    return t->bits == 8 && t->samples == 3;
}

static pnb_status choose_kind(pnb__tiff *t, pnb_error *err)
{
    bool is_known = false;
    if (t->photometric == PHOTOMETRIC_MINISWHITE || t->photometric == PHOTOMETRIC_MINISBLACK)
        is_known = choose_grey(t);
    else if (t->photometric == PHOTOMETRIC_RGB)
        is_known = choose_colour(t, 3);
    else if (t->photometric == PHOTOMETRIC_PALETTE)
        is_known = choose_palette(t);
    else if (t->photometric == PHOTOMETRIC_SEPARATED)
        is_known = choose_colour(t, 4);
    else if (t->photometric == PHOTOMETRIC_YCBCR)
        is_known = choose_ycbcr(t);
    if (is_known)
        return PNB_OK;
    return pnb__fail(
        err, PNB_UNSUPPORTED,
        "TIFF: %u samples of %u bits, format %u, photometric %u: want grey, RGB, CMYK, "
        "YCbCr or a palette in a form that Pillow reads",
        t->samples, t->bits, t->format, t->photometric);
}

/* The picture, a tile, and against the bytes there are where the compression has a bound: deflate
 * 1032, LZW 4096 bytes a code of 9 bits at least, packed bits 64; others are left to their data. */
static pnb_status check_claim(const pnb__tiff *t, size_t n_bytes, const pnb_image_opts *opts,
                              pnb_error *err)
{
    pnb_status status = pnb__image_check_size(t->width, t->height, opts, err);
    if (status == PNB_OK)
        status = pnb__image_check_size(t->tile_width, t->tile_height, opts, err);
    if (status != PNB_OK)
        return status;
    if (t->samples < 1 || t->samples > MAX_TIFF_SAMPLES || t->bits < 1 || t->bits > 64)
        return pnb__fail(err, PNB_UNSUPPORTED, "TIFF: %u samples of %u bits a pixel", t->samples,
                         t->bits);
    uint64_t ratio = t->compression == COMPRESSION_NONE       ? 1
                     : t->compression == COMPRESSION_PACKBITS ? 64
                                                              : 1 << 16;
    uint64_t bits = (uint64_t)t->width * t->height * t->samples * t->bits;
    if (t->photometric != PHOTOMETRIC_YCBCR && bits / 8 / ratio > n_bytes)
        return pnb__fail(err, PNB_FORMAT,
                         "TIFF: the header claims %ux%u pixels but only %zu bytes follow", t->width,
                         t->height, n_bytes);
    return PNB_OK;
}

static pnb_status make_palette(pnb_image *image, TIFF *tiff, const pnb__tiff *t, pnb_error *err)
{
    uint16_t *map[3] = {NULL};
    if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]) != 1)
        return pnb__fail(err, PNB_FORMAT, "TIFF: indices without a palette");
    image->palette = pnb__alloc(256 * 3);
    if (image->palette == NULL)
        return pnb__fail_nomem(err, 256 * 3);
    for (size_t i = 0; i < 256; i++)
        for (size_t c = 0; c < 3; c++)
            image->palette[3 * i + c] =
                i < (size_t)1 << t->bits ? (unsigned char)(map[c][i] >> 8) : (unsigned char)i;
    return PNB_OK;
}

static pnb_status decode(pnb_image *image, TIFF *tiff, size_t n_bytes, const pnb_image_opts *opts,
                         pnb_error *err)
{
    pnb__tiff t = {0};
    pnb_status status;
    read_tags(&t, tiff);
    PNB_TRY(check_claim(&t, n_bytes, opts, err));
    PNB_TRY(choose_kind(&t, err));
    if (t.photometric == PHOTOMETRIC_YCBCR && t.kind == PNB__TIFF_BYTES)
        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    int64_t tile = t.is_tiled || t.kind == PNB__TIFF_RGBA ? 8 : 1; /* and strips of libtiff's own */
    PNB_TRY(pnb__image_admit(t.width, t.height, t.channels + tile, opts, err));
    PNB_TRY(pnb_image_create(image, (int)t.width, (int)t.height, t.channels, err));
    image->mode = t.mode;
    if (t.mode == PNB_IMAGE_PALETTE)
        PNB_TRY(make_palette(image, tiff, &t, err));
    PNB_TRY(pnb__tiff_read_pixels(image, tiff, &t, err));
    PNB_TRY(pnb__image_orient(image, t.orientation, err));
done:
    return status;
}

pnb_status pnb__tiff_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    reader r = {.bytes = bytes, .n_bytes = n_bytes};
    pnb_image image = {0};
    (void)orientation; /* done here */
    *out = (pnb_image){0};
    TIFF *tiff = open_tiff(&r);
    if (tiff == NULL)
        return fail_tiff(err, &r);
    pnb_error own = PNB_ERROR_INIT;
    pnb_status status = decode(&image, tiff, n_bytes, opts, &own);
    TIFFClose(tiff);
    if (status == PNB_OK) {
        *out = image;
        return PNB_OK;
    }
    pnb_image_free(&image);
    return own.status != PNB_OK ? pnb__fail(err, status, "%s", own.text) : fail_tiff(err, &r);
}
