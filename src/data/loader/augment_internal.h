/* Inside of pnb_augment_apply: geometry (augment_geometry.c) and colour (augment_colour.c) on 8-bit
 * pictures; augment.c draws the numbers. */
#ifndef PNB_DATA_LOADER_AUGMENT_INTERNAL_H
#define PNB_DATA_LOADER_AUGMENT_INTERNAL_H

#include "base/base.h"
#include "penumbra/dataset.h"

/* Part of the source in its pixels. */
typedef struct pnb__crop {
    int left, top, width, height;
} pnb__crop;

/* What was drawn for the place of a picture. */
typedef struct pnb__view {
    bool is_cropped; /* false: the part that evaluation would use */
    pnb__crop crop;
    double zoom, angle, shift_x, shift_y; /* shifts in output pixels */
    bool is_turned;                       /* any of the four above may differ from nothing */
    bool flip;
} pnb__view;

/* torchvision's RandomResizedCrop.get_params on a picture of width x height. */
pnb__crop pnb__augment_draw_crop(const pnb_augment *a, int width, int height, pnb__rng *rng);

/* TSN's GroupMultiScaleCrop (crop_scales, max_distort 1, more_fix_crop) on the same, for an output
 * of out_width x out_height. */
pnb__crop pnb__augment_draw_scaled_crop(const pnb_augment *a, const pnb_image *image, int out_width,
                                        int out_height, pnb__rng *rng);

/* 8-bit RGB of pp's size. Nothing but a crop: torchvision's resized_crop on Pillow's picture, bit
 * for bit, then the flip. Else one map about the centre: see augment_geometry.c. `pp->filter` is
 * the filter. Errors  ARG, LIMIT, NOMEM */
pnb_status pnb__augment_place(const pnb_preprocess *pp, const pnb_image *image,
                              const pnb__view *view, pnb_image *out, pnb_error *err);

/* torchvision's adjust_* and to_grayscale on Pillow's pictures, bit for bit, in place. */
void pnb__colour_brightness(pnb_image *image, float factor);
void pnb__colour_contrast(pnb_image *image, float factor);
void pnb__colour_saturation(pnb_image *image, float factor);
void pnb__colour_hue(pnb_image *image, double turn); /* -0.5..0.5 of a circle */
void pnb__colour_grey(pnb_image *image);
/* Each channel times its own factor, rounded. */
void pnb__colour_gain(pnb_image *image, const double gain[3]);

#endif
