/* Pictures as plain records: creation, decoding by content, conversion to RGB, cropping.
 *
 * Decoders (formats.c knows them) return a picture in the file's own mode; this file turns it into
 * what the caller asked for, as Pillow's Image.convert does: alpha and palette transparency are
 * dropped without compositing, CMYK uses the naive formula. Resampling lives in resize.c, the
 * pipeline of an encoder in preprocess.c. */
#include "penumbra/image.h"

#include <string.h>

#include "io/image/formats/codec.h"
#include "io/image/formats/formats.h"

#define MAX_FILE_BYTES ((size_t)1 << 30)

pnb_image_opts pnb_image_opts_default(void)
{
    pnb_image_opts opts = {.max_pixels = PNB_IMAGE_DEFAULT_PIXELS};
    return opts;
}

pnb_status pnb_image_create(pnb_image *out, int width, int height, int channels, pnb_error *err)
{
    *out = (pnb_image){0};
    if (width < 1 || height < 1 || channels < 1 || channels > 4)
        return pnb__fail(err, PNB_ARG, "picture of %dx%d with %d channels: want sizes >= 1, 1..4",
                         width, height, channels);
    size_t n_bytes;
    if (pnb__mul_overflows((size_t)width, (size_t)height, &n_bytes) ||
        pnb__mul_overflows(n_bytes, (size_t)channels, &n_bytes))
        return pnb__fail(err, PNB_LIMIT, "picture of %dx%d does not fit in memory", width, height);
    unsigned char *pixels = pnb__alloc_zero(n_bytes, 1);
    if (pixels == NULL)
        return pnb__fail_nomem(err, n_bytes);
    *out = (pnb_image){.width = width, .height = height, .channels = channels, .pixels = pixels};
    return PNB_OK;
}

void pnb_image_free(pnb_image *image)
{
    if (image == NULL)
        return;
    pnb__free(image->pixels);
    pnb__free(image->palette);
    pnb__budget_give(image->budget, image->held_bytes);
    *image = (pnb_image){0};
}

pnb_status pnb__image_check_size(int64_t width, int64_t height, const pnb_image_opts *opts,
                                 pnb_error *err)
{
    if (width < 1 || height < 1)
        return pnb__fail(err, PNB_FORMAT, "the file claims %lldx%lld pixels: want at least 1x1",
                         (long long)width, (long long)height);
    int64_t limit = PNB_MIN(opts->max_pixels, PNB_IMAGE_MAX_PIXELS);
    if (width > INT32_MAX || height > INT32_MAX || width > limit / height)
        return pnb__fail(err, PNB_LIMIT,
                         "the file claims %lldx%lld pixels, the limit is %lld in all; raise "
                         "max_pixels (--max-image-pixels) if it is genuine",
                         (long long)width, (long long)height, (long long)limit);
    return PNB_OK;
}

pnb_status pnb__image_admit(int64_t width, int64_t height, int64_t bytes_per_pixel,
                            const pnb_image_opts *opts, pnb_error *err)
{
    pnb_status status = pnb__image_check_size(width, height, opts, err);
    if (status != PNB_OK || opts->budget == NULL)
        return status;
    int64_t of_rgb = opts->native ? 0 : 3;
    *opts->claimed_bytes = (size_t)(width * height * (bytes_per_pixel + of_rgb));
    pnb__budget_take(opts->budget, *opts->claimed_bytes);
    return PNB_OK;
}

/* What a decode took is given back but for what the picture keeps. */
static void settle_budget(pnb_image *image, pnb_image_budget *budget, size_t claimed)
{
    if (budget == NULL)
        return;
    size_t kept = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    image->budget = budget;
    image->held_bytes = PNB_MIN(kept, claimed);
    pnb__budget_give(budget, claimed - image->held_bytes);
}

/* Replaces `image` by its RGB form unless the options keep it as it is. */
static pnb_status apply_opts(pnb_image *image, const pnb_image_opts *opts, pnb_error *err)
{
    bool is_rgb = image->mode == PNB_IMAGE_PLAIN && image->channels == 3;
    bool is_rgba = image->mode == PNB_IMAGE_PLAIN && image->channels == 4;
    if (opts->native || is_rgb || (is_rgba && opts->keep_alpha))
        return PNB_OK;
    pnb_image rgb;
    pnb_status status = pnb_image_to_rgb(&rgb, image, err);
    if (status != PNB_OK)
        return status;
    pnb_image_free(image);
    *image = rgb;
    return PNB_OK;
}

/* "https://host/cat.jpg" is opened as a file by mistake only; "//" makes it no usual path. */
static bool is_url(const char *path)
{
    const char *at = path + strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789");
    return at > path + 1 && pnb__starts_with(at, "://");
}

pnb_status pnb_image_decode(pnb_image *out, const void *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, pnb_error *err)
{
    pnb_image_opts used = opts != NULL ? *opts : pnb_image_opts_default();
    pnb_image image = {0};
    pnb_status status;
    int orientation = 1;
    size_t claimed = 0;
    *out = (pnb_image){0};
    used.claimed_bytes = &claimed;
    used.exif = used.exif || used.tell_exif; /* a decoder looks for it then */
    if (used.max_pixels < 1)
        return pnb__fail(err, PNB_ARG, "max_pixels is %lld: want at least 1",
                         (long long)used.max_pixels);
    pnb__decode_fn decode = NULL;
    PNB_TRY(pnb__image_decoder(&decode, bytes, n_bytes, err));
    PNB_TRY(decode(&image, bytes, n_bytes, &used, &orientation, err));
    PNB_TRY(apply_opts(&image, &used, err));
    if (opts != NULL && opts->exif && orientation != 1)
        PNB_TRY(pnb__image_orient(&image, orientation, err));
    else if (used.tell_exif)
        image.orientation = orientation;
    settle_budget(&image, used.budget, claimed);
    *out = image;
    image = (pnb_image){0};
    claimed = 0;
done:
    pnb_image_free(&image);
    pnb__budget_give(used.budget, claimed);
    return status;
}

pnb_status pnb_image_load(pnb_image *out, const char *path, const pnb_image_opts *opts,
                          pnb_error *err)
{
    char *bytes = NULL;
    *out = (pnb_image){0};
    if (is_url(path))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s: this is a URL, and nothing is downloaded here: fetch the file first "
                         "(curl -O, or img2dataset for a list of them) and give its path",
                         path);
    size_t n_bytes = 0;
    const char *special = pnb__path_special(path); /* a pipe in a folder may never have a writer */
    if (special != NULL)
        return pnb__fail(err, PNB_FORMAT, "%s is %s, a picture file is wanted", path, special);
    pnb_status status = pnb__read_file(path, MAX_FILE_BYTES, &bytes, &n_bytes, err);
    if (status != PNB_OK)
        return status;
    status = pnb_image_decode(out, bytes, n_bytes, opts, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", path);
    pnb__free(bytes);
    return status;
}

/* Pillow's cmyk2rgb: (255-k) - c*(255-k)/255. */
static void cmyk_row(unsigned char *rgb, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4, rgb += 3) {
        unsigned light = 255u - in[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = (unsigned char)(light - pnb__mul_div_255(in[c], light));
    }
}

static void plain_to_rgb(unsigned char *rgb, const unsigned char *in, size_t n, int channels)
{
    int step = channels >= 3 ? 1 : 0; /* grey repeats its one channel */
    for (size_t i = 0; i < n; i++, in += channels, rgb += 3) {
        rgb[0] = in[0];
        rgb[1] = in[step];
        rgb[2] = in[2 * step];
    }
}

/* Not scaled but clipped, as Pillow does with its mode "I". */
static void grey16_to_rgb(unsigned char *rgb, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t value;
        memcpy(&value, in + 2 * i, 2);
        memset(rgb + 3 * i, PNB_MIN(value, 255), 3);
    }
}

static void palette_to_rgb(unsigned char *rgb, const unsigned char *in, size_t n,
                           const unsigned char *palette)
{
    for (size_t i = 0; i < n; i++)
        memcpy(rgb + 3 * i, palette + 3 * (size_t)in[i], 3);
}

pnb_status pnb_image_to_rgb(pnb_image *out, const pnb_image *in, pnb_error *err)
{
    *out = (pnb_image){0};
    bool has_parts = in->pixels != NULL && (in->mode != PNB_IMAGE_PALETTE || in->palette != NULL);
    bool fits =
        (in->mode == PNB_IMAGE_PLAIN && in->channels >= 1 && in->channels <= 4) ||
        (in->mode == PNB_IMAGE_CMYK && in->channels == 4) ||
        (in->mode == PNB_IMAGE_GREY16 && in->channels == 2) ||
        ((in->mode == PNB_IMAGE_PALETTE || in->mode == PNB_IMAGE_BILEVEL) && in->channels == 1);
    if (!has_parts || !fits)
        return pnb__fail(err, PNB_ARG,
                         "picture record is empty or its mode does not fit %d channels",
                         in->channels);
    pnb_status status = pnb_image_create(out, in->width, in->height, 3, err);
    if (status != PNB_OK)
        return status;
    size_t n = (size_t)in->width * (size_t)in->height;
    if (in->mode == PNB_IMAGE_CMYK)
        cmyk_row(out->pixels, in->pixels, n);
    else if (in->mode == PNB_IMAGE_GREY16)
        grey16_to_rgb(out->pixels, in->pixels, n);
    else if (in->mode == PNB_IMAGE_PALETTE)
        palette_to_rgb(out->pixels, in->pixels, n, in->palette);
    else
        plain_to_rgb(out->pixels, in->pixels, n, in->channels);
    return PNB_OK;
}

static pnb_status copy_palette(pnb_image *out, const pnb_image *in, pnb_error *err)
{
    out->mode = in->mode;
    if (in->palette == NULL)
        return PNB_OK;
    out->palette = pnb__alloc(256 * 3);
    if (out->palette == NULL) {
        pnb_image_free(out);
        return pnb__fail_nomem(err, 256 * 3);
    }
    memcpy(out->palette, in->palette, 256 * 3);
    return PNB_OK;
}

static void fill_pixels(pnb_image *image, pnb_image_mode mode, int fill)
{
    size_t n = (size_t)image->width * (size_t)image->height;
    uint16_t grey = (uint16_t)fill;
    if (mode == PNB_IMAGE_GREY16)
        for (size_t i = 0; i < n; i++)
            memcpy(image->pixels + 2 * i, &grey, sizeof grey);
    else
        memset(image->pixels, fill, n * (size_t)image->channels);
}

pnb_status pnb_image_crop(pnb_image *out, const pnb_image *in, int left, int top, int width,
                          int height, int fill, pnb_error *err)
{
    *out = (pnb_image){0};
    bool is_whole = in->pixels != NULL && (in->mode != PNB_IMAGE_GREY16 || in->channels == 2);
    if (!is_whole || fill < 0 || fill > 255)
        return pnb__fail(err, PNB_ARG, "crop: picture is %s, fill is %d: want a picture and 0..255",
                         is_whole ? "there" : "empty", fill);
    pnb_status status = pnb_image_create(out, width, height, in->channels, err);
    if (status != PNB_OK)
        return status;
    size_t pixel = (size_t)in->channels;
    if (fill != 0)
        fill_pixels(out, in->mode, fill);
    int64_t x0 = PNB_MAX(left, 0), x1 = PNB_MIN((int64_t)left + width, in->width);
    int64_t y0 = PNB_MAX(top, 0), y1 = PNB_MIN((int64_t)top + height, in->height);
    for (int64_t y = y0; y < y1 && x1 > x0; y++)
        memcpy(out->pixels + ((size_t)(y - top) * (size_t)width + (size_t)(x0 - left)) * pixel,
               in->pixels + ((size_t)y * (size_t)in->width + (size_t)x0) * pixel,
               (size_t)(x1 - x0) * pixel);
    return copy_palette(out, in, err);
}

pnb_status pnb_image_to_chw(const pnb_image *image, const float mean[3], const float std[3],
                            float *chw, pnb_error *err)
{
    if (image->pixels == NULL || image->mode != PNB_IMAGE_PLAIN || image->channels != 3)
        return pnb__fail(err, PNB_ARG, "picture with %d channels: want RGB", image->channels);
    size_t n = (size_t)image->width * (size_t)image->height;
    float table[3][256]; /* 256 possible inputs: the divisions are done once */
    for (int c = 0; c < 3; c++) {
        if (!(std[c] > 0))
            return pnb__fail(err, PNB_ARG, "std[%d] is %g: want a positive number", c,
                             (double)std[c]);
        for (int v = 0; v < 256; v++)
            table[c][v] = ((float)v / 255.0f - mean[c]) / std[c];
    }
    const unsigned char *p = image->pixels;
    float *r = chw, *g = chw + n, *b = chw + 2 * n;
    for (size_t i = 0; i < n; i++, p += 3) {
        r[i] = table[0][p[0]];
        g[i] = table[1][p[1]];
        b[i] = table[2][p[2]];
    }
    return PNB_OK;
}
