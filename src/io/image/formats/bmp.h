/* Between the header of a BMP (bmp.c) and its rows (bmp_rows.c). */
#ifndef PNB_IO_IMAGE_BMP_H
#define PNB_IO_IMAGE_BMP_H

#include "io/image/formats/codec.h"

/* How the bytes of a pixel become channels: Pillow's raw modes. */
typedef enum pnb__bmp_layout {
    PNB__BMP_INDEX, /* 1, 4 or 8 bits: an index or a grey value */
    PNB__BMP_555,
    PNB__BMP_565,
    PNB__BMP_BYTES /* 3 or 4 bytes; `order` tells where each channel lies */
} pnb__bmp_layout;

typedef struct pnb__bmp {
    int width, height, bits;
    bool top_down, is_rle;
    unsigned n_colors;
    pnb__bmp_layout layout;
    unsigned char order[4]; /* of red, green, blue, alpha among the bytes */
    int channels;
    pnb_image_mode mode;
    size_t data; /* where the pixels start */
} pnb__bmp;

/* Fills `image`, which has the size, mode and channels of the header. */
pnb_status pnb__bmp_read_rows(pnb_image *image, const pnb__bmp *h, const unsigned char *bytes,
                              size_t n_bytes, pnb_error *err);

#endif
