/* WebP by libwebp: still pictures, lossy or lossless. Animations are refused by name. A picture
 * with alpha is decoded without premultiplication, so that dropping the alpha gives the stored
 * colours, as Pillow does. */
#include <string.h>

#include <webp/decode.h>

#include "io/image/formats/codec.h"

static pnb_status fail_webp(pnb_error *err, VP8StatusCode code, size_t n_bytes)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return pnb__fail(err, PNB_NOMEM, "WebP: out of memory");
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return pnb__fail(err, PNB_FORMAT, "WebP: the data ends after %zu bytes: truncated",
                         n_bytes);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return pnb__fail(err, PNB_UNSUPPORTED, "WebP: a feature that libwebp does not decode");
    default:
        return pnb__fail(err, PNB_FORMAT, "WebP: damaged data (libwebp status %d)", (int)code);
    }
}

static uint32_t read_u32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Walks the RIFF chunks for "EXIF"; some writers put "Exif\0\0" in front of the TIFF block. */
static int find_orientation(const unsigned char *bytes, size_t n_bytes)
{
    size_t at = 12;
    while (n_bytes - at >= 8) {
        size_t size = read_u32(bytes + at + 4), left = n_bytes - at - 8;
        const unsigned char *data = bytes + at + 8;
        if (size > left)
            return 1;
        if (memcmp(bytes + at, "EXIF", 4) == 0) {
            size_t skip = size >= 6 && memcmp(data, "Exif\0", 6) == 0 ? 6 : 0;
            return pnb__exif_orientation(data + skip, size - skip);
        }
        size += size & 1; /* chunks are padded to even sizes */
        if (size > left)
            return 1;
        at += 8 + size;
    }
    return 1;
}

pnb_status pnb__webp_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    WebPDecoderConfig config;
    *out = (pnb_image){0};
    if (!WebPInitDecoderConfig(&config))
        return pnb__fail(err, PNB_UNSUPPORTED, "WebP: libwebp has another version than its header");
    VP8StatusCode code = WebPGetFeatures(bytes, n_bytes, &config.input);
    if (code != VP8_STATUS_OK)
        return fail_webp(err, code, n_bytes);
    if (config.input.has_animation)
        return pnb__fail(err, PNB_UNSUPPORTED, "WebP: an animation; want a still picture");
    int width = config.input.width, height = config.input.height;
    int channels = config.input.has_alpha ? 4 : 3;
    /* beside the pixels libwebp keeps what the lossless coder predicts from, 4 bytes a pixel */
    pnb_status status = pnb__image_admit(width, height, channels + 4, opts, err);
    if (status != PNB_OK)
        return status;
    status = pnb_image_create(out, width, height, channels, err);
    if (status != PNB_OK)
        return status;
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->pixels;
    config.output.u.RGBA.stride = width * channels;
    config.output.u.RGBA.size = (size_t)width * (size_t)height * (size_t)channels;
    code = WebPDecode(bytes, n_bytes, &config);
    WebPFreeDecBuffer(&config.output);
    if (code != VP8_STATUS_OK) {
        pnb_image_free(out);
        return fail_webp(err, code, n_bytes);
    }
    if (opts->exif)
        *orientation = find_orientation(bytes, n_bytes);
    return PNB_OK;
}
