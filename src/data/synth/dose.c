/* Doses: pictures that show a known share less than they did.
 *
 *   erase   a grey rectangle with the picture's proportions over the share d, anywhere
 *   shrink  sides times sqrt(1 - d), by the mean of what is covered, and back by a triangle: the
 *           size of the picture does not tell the dose
 *   grey    x + d (luma - x), luma = 0.299 R + 0.587 G + 0.114 B
 *   mix     (1 - d/2) x + d/2 y: at d = 1 nobody can say which of the two is meant, one bit
 *
 * Values are rounded to the nearest. */
#include "data/synth/dose.h"

#include <math.h>
#include <string.h>

enum { GREY = 127 };

static void erase(pnb_image *image, double dose, pnb__rng *rng)
{
    double side = sqrt(dose), across = pnb__rng_uniform(rng), down = pnb__rng_uniform(rng);
    int width = (int)lround(side * image->width), height = (int)lround(side * image->height);
    int left = (int)lround(across * (image->width - width));
    int top = (int)lround(down * (image->height - height));
    for (int y = top; y < top + height; y++)
        memset(image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)left), GREY,
               3 * (size_t)width);
}

static pnb_status shrink(pnb_image *image, double dose, pnb_error *err)
{
    int width = image->width, height = image->height;
    double side = sqrt(1.0 - dose);
    pnb_image small = {0}, back = {0};
    pnb_status status;
    PNB_TRY(pnb_image_resize(&small, image, PNB_MAX(1, (int)lround(side * width)),
                             PNB_MAX(1, (int)lround(side * height)), PNB_FILTER_BOX, NULL, err));
    PNB_TRY(pnb_image_resize(&back, &small, width, height, PNB_FILTER_BILINEAR, NULL, err));
    pnb_image_free(image);
    *image = back;
done:
    pnb_image_free(&small);
    return status;
}

static unsigned char between(unsigned char a, double b, double weight)
{
    return (unsigned char)lround((1.0 - weight) * a + weight * b);
}

static void lose_colour(pnb_image *image, double dose)
{
    size_t n = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < n; i++) {
        unsigned char *rgb = image->pixels + 3 * i;
        double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        for (int c = 0; c < 3; c++)
            rgb[c] = between(rgb[c], luma, dose);
    }
}

static pnb_status mix(pnb_image *image, double dose, const pnb_image *other, pnb_error *err)
{
    size_t n = 3 * (size_t)image->width * (size_t)image->height;
    pnb_image fitted = {0};
    pnb_status status = pnb_image_resize(&fitted, other, image->width, image->height,
                                         PNB_FILTER_BILINEAR, NULL, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        image->pixels[i] = between(image->pixels[i], fitted.pixels[i], 0.5 * dose);
    pnb_image_free(&fitted);
    return status;
}

pnb_status pnb__dose_apply(pnb_image *image, pnb_change change, double dose, pnb__rng *rng,
                           const pnb_image *other, pnb_error *err)
{
    switch (change) {
    case PNB_CHANGE_ERASE:
        erase(image, dose, rng);
        return PNB_OK;
    case PNB_CHANGE_SHRINK:
        return shrink(image, dose, err);
    case PNB_CHANGE_GREY:
        lose_colour(image, dose);
        return PNB_OK;
    case PNB_CHANGE_MIX:
        return mix(image, dose, other, err);
    default:
        return PNB_OK;
    }
}
