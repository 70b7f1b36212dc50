/* TIFF: strips row by row and tiles one by one, turned into the picture as tiff.c decided.
 *
 * Planes of their own are read one after the other into their channel. One strip row or one tile is
 * held at a time; only kinds that libtiff itself turns into RGBA pass through a copy of the whole.
 */
#include "io/image/formats/tiff.h"

#include <math.h>
#include <string.h>

/* A run of pixels from libtiff: `step` samples from one pixel to the next. */
typedef struct run {
    const unsigned char *in;
    unsigned char *out;
    size_t n, step;
    int n_channels; /* to fill, from the first of `out` */
} run;

static void put_bits(const run *r, const pnb__tiff *t)
{
    unsigned mask = (1u << t->bits) - 1;
    for (size_t i = 0; i < r->n; i++) {
        size_t at = i * t->bits;
        unsigned v = (unsigned)r->in[at >> 3] >> (8 - t->bits - (at & 7)) & mask;
        r->out[i] = (unsigned char)((t->invert ? mask - v : v) * t->scale);
    }
}

static void put_bytes(const run *r, const pnb__tiff *t)
{
    unsigned char flip = t->invert ? 255 : 0;
    for (size_t i = 0; i < r->n; i++)
        for (int c = 0; c < r->n_channels; c++)
            r->out[i * (size_t)t->channels + (size_t)c] = r->in[i * r->step + (size_t)c] ^ flip;
}

static uint16_t load_u16(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void put_words(const run *r, const pnb__tiff *t)
{
    for (size_t i = 0; i < r->n; i++)
        for (int c = 0; c < r->n_channels; c++)
            r->out[i * (size_t)t->channels + (size_t)c] =
                (unsigned char)(load_u16(r->in + 2 * (i * r->step + (size_t)c)) >> 8);
}

/* Two pixels of 12 bits lie in three bytes. */
static void put_grey16(const run *r, const pnb__tiff *t)
{
    for (size_t i = 0; i < r->n; i++) {
        const unsigned char *p = r->in + (t->bits == 12 ? i / 2 * 3 : 2 * i);
        uint16_t v = load_u16(p);
        if (t->bits == 12)
            v = (uint16_t)(i % 2 == 0 ? p[0] << 4 | p[1] >> 4 : (p[1] & 15) << 8 | p[2]);
        memcpy(r->out + 2 * i, &v, sizeof v);
    }
}

/* Pillow's mode I holds signed 32 bits: larger numbers without a sign turn negative there too. */
static void put_int(const run *r, const pnb__tiff *t)
{
    for (size_t i = 0; i < r->n; i++) {
        int32_t v;
        if (t->bits == 32)
            memcpy(&v, r->in + 4 * i, sizeof v);
        else
            v = (int16_t)load_u16(r->in + 2 * i);
        uint16_t cut = (uint16_t)PNB_MIN(PNB_MAX(v, 0), UINT16_MAX);
        memcpy(r->out + 2 * i, &cut, sizeof cut);
    }
}

static void put_float(const run *r)
{
    for (size_t i = 0; i < r->n; i++) {
        float v;
        memcpy(&v, r->in + 4 * i, sizeof v);
        r->out[i] = (unsigned char)(v >= 255 ? 255 : v > 0 ? v : 0); /* NaN: 0 */
    }
}

static void put_run(const run *r, const pnb__tiff *t)
{
    switch (t->kind) {
    case PNB__TIFF_BITS:
        put_bits(r, t);
        break;
    case PNB__TIFF_BYTES:
        put_bytes(r, t);
        break;
    case PNB__TIFF_WORDS:
        put_words(r, t);
        break;
    case PNB__TIFF_GREY16:
        put_grey16(r, t);
        break;
    case PNB__TIFF_INT:
        put_int(r, t);
        break;
    default:
        put_float(r);
        break;
    }
}

/* The run at column x, row y of the picture; channel 0 and on, or one plane's. */
static run run_at(const pnb_image *image, const pnb__tiff *t, size_t x, size_t y, int plane)
{
    bool is_plane = plane >= 0;
    size_t pixel = y * (size_t)image->width + x;
    run r = {.out = image->pixels + pixel * (size_t)image->channels + (is_plane ? plane : 0),
             .step = is_plane ? 1 : t->samples,
             .n_channels = is_plane ? 1 : PNB_MIN(t->channels, (int)t->samples)};
    return r;
}

static bool read_strips(pnb_image *image, TIFF *tiff, const pnb__tiff *t, int plane,
                        unsigned char *room)
{
    for (uint32_t y = 0; y < t->height; y++) {
        if (TIFFReadScanline(tiff, room, y, (uint16_t)PNB_MAX(plane, 0)) != 1)
            return false;
        run r = run_at(image, t, 0, y, plane);
        r.in = room;
        r.n = t->width;
        put_run(&r, t);
    }
    return true;
}

static bool read_tiles(pnb_image *image, TIFF *tiff, const pnb__tiff *t, int plane,
                       unsigned char *room)
{
    size_t row = (size_t)TIFFTileRowSize(tiff);
    for (uint32_t y = 0; y < t->height; y += t->tile_height)
        for (uint32_t x = 0; x < t->width; x += t->tile_width) {
            if (TIFFReadTile(tiff, room, x, y, 0, (uint16_t)PNB_MAX(plane, 0)) < 0)
                return false;
            uint32_t n_rows = PNB_MIN(t->tile_height, t->height - y);
            for (uint32_t k = 0; k < n_rows; k++) {
                run r = run_at(image, t, x, y + k, plane);
                r.in = room + k * row;
                r.n = PNB_MIN(t->tile_width, t->width - x);
                put_run(&r, t);
            }
        }
    return true;
}

/* Colours over alpha, as Pillow's RGBa -> RGBA when it unpacks. */
static void divide_by_alpha(pnb_image *image)
{
    size_t n = (size_t)image->width * (size_t)image->height;
    unsigned char *p = image->pixels;
    for (size_t i = 0; i < n; i++, p += 4)
        for (int c = 0; c < 3 && p[3] != 255; c++) {
            unsigned v = p[3] != 0 ? p[c] * 255u / p[3] : 0;
            p[c] = (unsigned char)PNB_MIN(v, 255u);
        }
}

/* libtiff makes RGBA of the whole, with the corner of the file's first pixel at the top left. */
static pnb_status read_rgba(pnb_image *image, TIFF *tiff, const pnb__tiff *t, pnb_error *err)
{
    char message[1024] = "";
    TIFFRGBAImage rgba;
    size_t n = (size_t)t->width * t->height;
    if (!TIFFRGBAImageBegin(&rgba, tiff, 1, message))
        return pnb__fail(err, PNB_FORMAT, "TIFF: %s", message);
    rgba.orientation = rgba.req_orientation = ORIENTATION_TOPLEFT;
    uint32_t *raster = NULL;
    pnb_status status = PNB_ALLOC(raster, n, err);
    if (status == PNB_OK && !TIFFRGBAImageGet(&rgba, raster, t->width, t->height))
        status = PNB_FORMAT;
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        image->pixels[3 * i] = (unsigned char)TIFFGetR(raster[i]);
        image->pixels[3 * i + 1] = (unsigned char)TIFFGetG(raster[i]);
        image->pixels[3 * i + 2] = (unsigned char)TIFFGetB(raster[i]);
    }
    pnb__free(raster);
    TIFFRGBAImageEnd(&rgba);
    return status;
}

pnb_status pnb__tiff_read_pixels(pnb_image *image, TIFF *tiff, const pnb__tiff *t, pnb_error *err)
{
    if (t->kind == PNB__TIFF_RGBA)
        return read_rgba(image, tiff, t, err);
    bool by_planes = t->planar == PLANARCONFIG_SEPARATE && t->samples > 1;
    tmsize_t size = t->is_tiled ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff);
    size_t row = ((size_t)t->tile_width * t->bits * (by_planes ? 1 : t->samples) + 7) / 8;
    if (size < 0 || (size_t)size < row * t->tile_height)
        return PNB_FORMAT;
    unsigned char *room = pnb__alloc_zero((size_t)size, 1);
    if (room == NULL)
        return pnb__fail_nomem(err, (size_t)size);
    bool is_read = true;
    for (int plane = by_planes ? 0 : -1; is_read && plane < (by_planes ? t->channels : 0); plane++)
        is_read = t->is_tiled ? read_tiles(image, tiff, t, plane, room)
                              : read_strips(image, tiff, t, plane, room);
    pnb__free(room);
    if (is_read && t->is_premultiplied)
        divide_by_alpha(image);
    return is_read ? PNB_OK : PNB_FORMAT;
}
