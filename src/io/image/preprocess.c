/* From any picture to the input of an image tower: resize, centre crop or pad, RGB, normalise.
 *
 *   SHORTEST  short = n, long = int(n * long / short): torchvision.Resize, CLIPProcessor;
 *             not square: both sides / min(w / width, h / height): open_clip's ResizeKeepRatio
 *   LONGEST   both sides / max(w / width, h / height), rounded half to even, then padded
 *   SQUASH    straight to width x height
 *
 * OpenAI's and open_clip's pipelines resize before they convert to RGB, Hugging Face's convert
 * first: palette and bilevel pictures are then resized by NEAREST or by the filter, alpha is
 * premultiplied or not. `resize_first` with a `native` decode gives the former. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "io/image/formats/codec.h"

pnb_preprocess pnb_preprocess_default(void)
{
    pnb_preprocess pp = {
        .width = 224,
        .height = 224,
        .filter = PNB_FILTER_BICUBIC,
        .mean = {0.48145466f, 0.4578275f, 0.40821073f},
        .std = {0.26862954f, 0.26130258f, 0.27577711f},
    };
    return pp;
}

size_t pnb_preprocess_describe(const pnb_preprocess *pp, char *text, size_t capacity)
{
    const char *filter = pnb_filter_name(pp->filter);
    int n = snprintf(text, capacity,
                     "%dx%d %s %s%s resize_to=%d fill=%d order=%s mean=%.8g,%.8g,%.8g "
                     "std=%.8g,%.8g,%.8g",
                     pp->width, pp->height, filter != NULL ? filter : "?",
                     pnb__name_at(PNB_NAMES(PNB_FIT_LIST), pp->mode, "?"),
                     pp->centre == PNB_CENTRE_FLOOR ? " floor" : "", pp->resize_to, pp->fill,
                     pp->resize_first ? "resize,rgb" : "rgb,resize", (double)pp->mean[0],
                     (double)pp->mean[1], (double)pp->mean[2], (double)pp->std[0],
                     (double)pp->std[1], (double)pp->std[2]);
    return n > 0 ? (size_t)n : 0;
}

/* Size of the resized picture, before the crop. In doubles, as Python computes it. */
static pnb_status resized_size(const pnb_preprocess *pp, int w, int h, int *out_w, int *out_h,
                               pnb_error *err)
{
    int side = pp->resize_to;
    int to_w = side > 0 ? side : pp->width, to_h = side > 0 ? side : pp->height;
    double new_w = to_w, new_h = to_h;
    if (pp->mode == PNB_FIT_SHORTEST && to_w == to_h) {
        int longer = PNB_MAX(w, h), shorter = PNB_MIN(w, h);
        double stretched = floor((double)((int64_t)to_w * longer) / shorter);
        new_w = w <= h ? to_w : stretched;
        new_h = w <= h ? stretched : to_h;
    } else if (pp->mode != PNB_FIT_SQUASH) {
        double ratio_w = (double)w / to_w, ratio_h = (double)h / to_h;
        bool take_larger = (pp->mode == PNB_FIT_LONGEST) == (ratio_w > ratio_h);
        double ratio = take_larger ? ratio_w : ratio_h;
        new_w = PNB_MAX(nearbyint(w / ratio), 1.0);
        new_h = PNB_MAX(nearbyint(h / ratio), 1.0);
    }
    if (new_w > INT32_MAX || new_h > INT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "a %dx%d picture is too long to be resized to %dx%d", w, h,
                         to_w, to_h);
    *out_w = (int)new_w;
    *out_h = (int)new_h;
    return PNB_OK;
}

/* First kept pixel; negative where the picture is smaller and padding goes in front. */
static int centre_offset(int size, int wanted, pnb_centre centre)
{
    int d = size - wanted;
    if (centre == PNB_CENTRE_FLOOR)
        return d >= 0 ? d / 2 : -((1 - d) / 2);
    return d >= 0 ? (int)nearbyint(d / 2.0) : -(-d / 2);
}

static pnb_status check_preprocess(const pnb_preprocess *pp, const pnb_image *image, pnb_error *err)
{
    if (image->pixels == NULL || image->width < 1 || image->height < 1)
        return pnb__fail(err, PNB_ARG, "preprocess: the picture is empty");
    if (pp->width < 1 || pp->height < 1 || pp->resize_to < 0 ||
        (int64_t)pp->width * pp->height > PNB_IMAGE_MAX_PIXELS)
        return pnb__fail(err, PNB_ARG,
                         "preprocess to %dx%d (resize_to %d): want 1x1 .. 2^28 pixels", pp->width,
                         pp->height, pp->resize_to);
    if ((unsigned)pp->mode >= PNB_N_FITS || pnb_filter_name(pp->filter) == NULL || pp->fill < 0 ||
        pp->fill > 255)
        return pnb__fail(err, PNB_ARG, "preprocess: mode %d, filter %d or fill %d out of range",
                         (int)pp->mode, (int)pp->filter, pp->fill);
    return PNB_OK;
}

/* Resizes and crops one picture, whatever its mode. */
static pnb_status fit(const pnb_preprocess *pp, const pnb_image *in, pnb_image *out, pnb_error *err)
{
    int w = 0, h = 0;
    pnb_status status = resized_size(pp, in->width, in->height, &w, &h, err);
    if (status != PNB_OK)
        return status;
    int left = centre_offset(w, pp->width, pp->centre);
    int top = centre_offset(h, pp->height, pp->centre);
    bool is_inside = left >= 0 && top >= 0 && left <= w - pp->width && top <= h - pp->height;
    if (is_inside) {
        pnb__resize_job part = {w, h, left, top, pp->width, pp->height, pp->filter, NULL, false};
        return pnb__image_resize_part(out, in, &part, err);
    }
    pnb_image whole;
    status = pnb_image_resize(&whole, in, w, h, pp->filter, NULL, err);
    if (status != PNB_OK)
        return status;
    status = pnb_image_crop(out, &whole, left, top, pp->width, pp->height, pp->fill, err);
    pnb_image_free(&whole);
    return status;
}

pnb_status pnb_preprocess_pixels(const pnb_preprocess *pp, const pnb_image *image, pnb_image *out,
                                 pnb_error *err)
{
    pnb_image rgb = {0}, fitted = {0};
    *out = (pnb_image){0};
    pnb_status status = check_preprocess(pp, image, err);
    if (status != PNB_OK)
        return status;
    bool is_rgb = image->mode == PNB_IMAGE_PLAIN && image->channels == 3;
    if (!is_rgb && !pp->resize_first) {
        PNB_TRY(pnb_image_to_rgb(&rgb, image, err));
        image = &rgb;
        is_rgb = true;
    }
    PNB_TRY(fit(pp, image, &fitted, err));
    if (is_rgb) {
        *out = fitted;
        fitted = (pnb_image){0};
    } else {
        PNB_TRY(pnb_image_to_rgb(out, &fitted, err));
    }
done:
    pnb_image_free(&rgb);
    pnb_image_free(&fitted);
    return status;
}

pnb_status pnb_preprocess_apply(const pnb_preprocess *pp, const pnb_image *image, float *chw,
                                pnb_error *err)
{
    pnb_image pixels;
    pnb_status status = pnb_preprocess_pixels(pp, image, &pixels, err);
    if (status != PNB_OK)
        return status;
    status = pnb_image_to_chw(&pixels, pp->mean, pp->std, chw, err);
    pnb_image_free(&pixels);
    return status;
}
