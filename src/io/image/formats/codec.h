/* The decoders behind pnb_image_decode. Each returns the picture in the file's own mode. */
#ifndef PNB_IO_IMAGE_CODEC_H
#define PNB_IO_IMAGE_CODEC_H

#include "base/base.h"
#include "penumbra/image.h"

/* On failure *out is empty. `exif` receives the raw EXIF block when opts->exif asks for it. */
pnb_status pnb__jpeg_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err);
pnb_status pnb__png_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                           const pnb_image_opts *opts, int *orientation, pnb_error *err);
pnb_status pnb__webp_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err);

pnb_status pnb__bmp_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                           const pnb_image_opts *opts, int *orientation, pnb_error *err);
/* Each of these is there when its library is: PNB_HAVE_GIF, PNB_HAVE_TIFF, PNB_HAVE_HEIF. */
pnb_status pnb__gif_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                           const pnb_image_opts *opts, int *orientation, pnb_error *err);
pnb_status pnb__tiff_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err);
pnb_status pnb__heif_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err);

/* ---- jpeg_write.c ---- How many bytes an RGB picture takes as a JPEG of this quality, 1 to 100.
 * Errors  ARG (not RGB, a side of more than 65,500), NOMEM */
pnb_status pnb__jpeg_size(const pnb_image *image, int quality, size_t *n_bytes, pnb_error *err);
/* Appends such a JPEG. */
pnb_status pnb__jpeg_encode(const pnb_image *image, int quality, pnb__buf *out, pnb_error *err);

/* ---- formats.c ---- Endings of picture files, in any case; those of formats that stay unread too,
 * so that each such file is reported. `keys` is a ';' list. */
bool pnb__image_is_named(const char *path);
bool pnb__image_is_key(const char *keys, const char *ending);
/* All of them, in the order in which a sample of a tar shard prefers them. */
const char *pnb__image_keys(void);

/* Refuses sizes < 1 and more than max_pixels. Decoders call it before they allocate. */
pnb_status pnb__image_check_size(int64_t width, int64_t height, const pnb_image_opts *opts,
                                 pnb_error *err);

/* The same, and takes of opts->budget what the decode will need at most: so many bytes a pixel, and
 * those of the RGB picture made of it. Decoders call it once, when they know the header. */
pnb_status pnb__image_admit(int64_t width, int64_t height, int64_t bytes_per_pixel,
                            const pnb_image_opts *opts, pnb_error *err);

/* ---- budget.c ---- */
void pnb__budget_take(pnb_image_budget *b, size_t n_bytes); /* waits */
void pnb__budget_give(pnb_image_budget *b, size_t n_bytes);

/* Orientation 1..8 of a TIFF block ("II*\0" ...), 1 when there is none or it is damaged. */
int pnb__exif_orientation(const unsigned char *tiff, size_t n_bytes);
/* Turns the picture in place so that orientation `o` becomes 1. */
pnb_status pnb__image_orient(pnb_image *image, int o, pnb_error *err);

/* Rounded a*b/255 as Pillow's MULDIV255. */
static inline unsigned pnb__mul_div_255(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* Columns [left, left+width) and rows [top, top+height) of what resizing `in` to full_width x
 * full_height would give: only these are computed. */
typedef struct pnb__resize_job {
    int full_width, full_height;
    int left, top, width, height;
    pnb_filter filter;
    const pnb_box *box; /* NULL: all of `in` */
    bool may_leave; /* the box may reach beyond the picture, by less than half an output pixel */
} pnb__resize_job;
pnb_status pnb__image_resize_part(pnb_image *out, const pnb_image *in, const pnb__resize_job *job,
                                  pnb_error *err);

#endif
