/* Between the tags of a TIFF (tiff.c) and its pixels (tiff_pixels.c). */
#ifndef PNB_IO_IMAGE_TIFF_H
#define PNB_IO_IMAGE_TIFF_H

#include <tiffio.h>

#include "io/image/formats/codec.h"

typedef enum pnb__tiff_kind {
    PNB__TIFF_BITS,   /* grey or palette of 1, 2 or 4 bits, scaled to `scale` a step */
    PNB__TIFF_BYTES,  /* `channels` of `samples` samples a pixel, 8 bits */
    PNB__TIFF_WORDS,  /* the same of 16 bits, high bytes kept */
    PNB__TIFF_GREY16, /* grey of 12 or 16 bits, kept whole */
    PNB__TIFF_INT,    /* grey of 16 or 32 bits with or without a sign, cut to 16 bits without one */
    PNB__TIFF_FLOAT,  /* grey in floats, cut to 0..255 */
    PNB__TIFF_RGBA    /* YCbCr: libtiff makes RGB of it */
} pnb__tiff_kind;

/* What the tags say, and what becomes of it. */
typedef struct pnb__tiff {
    uint32_t width, height, tile_width, tile_height;
    uint16_t bits, samples, photometric, planar, format, compression, orientation;
    uint16_t n_extra, extra; /* of the first one beside the colours */
    bool is_tiled;
    pnb__tiff_kind kind;
    int channels; /* of the picture; the samples behind them are dropped */
    pnb_image_mode mode;
    unsigned scale;
    bool invert, is_premultiplied, is_signed;
} pnb__tiff;

/* Fills `image`, which has the size, mode and channels of the tags. False when libtiff gives up: it
 * has said why to its error handler. */
pnb_status pnb__tiff_read_pixels(pnb_image *image, TIFF *tiff, const pnb__tiff *t, pnb_error *err);

#endif
