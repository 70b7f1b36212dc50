/* Augmentation of training pictures: the recipes, the draws, and their order.
 *
 *   place (augment_geometry.c), channel gain, jitter in a random order, grey (augment_colour.c),
 * all on 8 bits as open_clip's PIL pipeline; then (x/255 - mean) / std; then random erasing
 *
 * Erasing is timm's RandomErasing: with probability erase_p, 1 to erase_count boxes of 2% to 1/3 of
 * the area (shared by the count) and an aspect of 0.3 to 1/0.3 are filled after normalisation, in
 * mode "pixel" with normal noise, as open_clip's create_transform asks for, in mode "const" with 0,
 * as PCME's code. Every number is a function of (seed, epoch, sample). */
#include <math.h>
#include <string.h>

#include "data/loader/augment_internal.h"

static const char *const NO_FLIP_GROUPS[] = {"Symbols", "Flags", "shapes"};

pnb_augment pnb_augment_none(void)
{
    return (pnb_augment){
        .crop_scale = {1, 1}, .crop_ratio = {1, 1}, .zoom = {1, 1}, .erase_count = 1};
}

pnb_augment pnb_augment_published(void)
{
    pnb_augment a = pnb_augment_none();
    a.enabled = a.crop = true;
    a.crop_scale[0] = 0.8;
    a.crop_ratio[0] = 3.0 / 4.0;
    a.crop_ratio[1] = 4.0 / 3.0;
    for (int i = 0; i < 3; i++)
        a.jitter[i] = 0.32;
    a.jitter[3] = 0.08;
    a.jitter_p = 0.8;
    a.grey_p = 0.2;
    return a;
}

pnb_augment pnb_augment_small(void)
{
    pnb_augment a = pnb_augment_none();
    a.enabled = true;
    a.zoom[0] = 0.85;
    a.zoom[1] = 1.25;
    a.shift = 0.125;
    a.rotate = 0.2;
    a.flip = 0.5;
    a.gain = 0.15;
    a.no_flip_groups = NO_FLIP_GROUPS;
    a.n_no_flip_groups = PNB_COUNT(NO_FLIP_GROUPS);
    return a;
}

void pnb_augment_no_flip(pnb_augment *a)
{
    a->flip = 0.0;
}

static pnb_status check(const pnb_augment *a, pnb_error *err)
{
    const double p[] = {a->flip, a->jitter_p, a->grey_p, a->erase_p};
    for (size_t i = 0; i < PNB_COUNT(p); i++)
        if (!(p[i] >= 0 && p[i] <= 1))
            return pnb__fail(err, PNB_ARG, "augmentation: probability %g, wanted 0..1", p[i]);
    if (!(a->crop_scale[0] > 0 && a->crop_scale[0] <= a->crop_scale[1] && a->crop_scale[1] <= 1))
        return pnb__fail(err, PNB_ARG,
                         "augmentation: crop scale (%g, %g), wanted 0 < low <= high <= 1",
                         a->crop_scale[0], a->crop_scale[1]);
    if (!(a->crop_ratio[0] > 0 && a->crop_ratio[0] <= a->crop_ratio[1] && a->crop_ratio[1] < 100))
        return pnb__fail(err, PNB_ARG, "augmentation: crop ratio (%g, %g), wanted 0 < low <= high",
                         a->crop_ratio[0], a->crop_ratio[1]);
    if (a->n_crop_scales > PNB_MAX_CROP_SCALES)
        return pnb__fail(err, PNB_ARG, "augmentation: %zu crop scales, wanted at most %d",
                         a->n_crop_scales, (int)PNB_MAX_CROP_SCALES);
    for (size_t i = 0; i < a->n_crop_scales; i++)
        if (!(a->crop_scales[i] > 0 && a->crop_scales[i] <= 1))
            return pnb__fail(err, PNB_ARG, "augmentation: crop scale %g, wanted above 0 to 1",
                             a->crop_scales[i]);
    if (!(a->zoom[0] >= 0.05 && a->zoom[0] <= a->zoom[1] && a->zoom[1] <= 20))
        return pnb__fail(err, PNB_ARG,
                         "augmentation: zoom (%g, %g), wanted 0.05 <= low <= high <= 20",
                         a->zoom[0], a->zoom[1]);
    const double widths[] = {a->shift,     a->gain,      a->jitter[0],
                             a->jitter[1], a->jitter[2], 2 * a->jitter[3]};
    for (size_t i = 0; i < PNB_COUNT(widths); i++)
        if (!(widths[i] >= 0 && widths[i] <= 1))
            return pnb__fail(
                err, PNB_ARG,
                "augmentation: shift, gain and jitter must lie in 0..1 (hue in 0..0.5)");
    if (!(a->rotate >= 0 && a->rotate <= 7))
        return pnb__fail(err, PNB_ARG, "augmentation: rotation of %g radians", a->rotate);
    if (a->erase_p > 0 && (a->erase_count < 1 || a->erase_count > 1000))
        return pnb__fail(err, PNB_ARG, "augmentation: %d erased boxes, wanted 1..1000",
                         a->erase_count);
    if (a->interpolation < 0 ||
        (a->interpolation > 0 && pnb_filter_name((pnb_filter)(a->interpolation - 1)) == NULL))
        return pnb__fail(err, PNB_ARG, "augmentation: filter %d is unknown", a->interpolation - 1);
    return PNB_OK;
}

static double between(pnb__rng *r, double low, double high)
{
    return low + (high - low) * pnb__rng_uniform(r);
}

static pnb_status check_image(const pnb_preprocess *pp, const pnb_image *image, pnb_error *err)
{
    if (image->pixels == NULL || image->width < 1 || image->height < 1)
        return pnb__fail(err, PNB_ARG, "augmentation: the picture is empty");
    if (pp->width < 1 || pp->height < 1 || pp->width > 16384 || pp->height > 16384)
        return pnb__fail(err, PNB_ARG, "augmentation: output of %d x %d", pp->width, pp->height);
    for (int c = 0; c < 3; c++)
        if (!(pp->std[c] > 0))
            return pnb__fail(err, PNB_ARG, "augmentation: std[%d] is %g, wanted > 0", c,
                             (double)pp->std[c]);
    return PNB_OK;
}

/* ---- draws --------------------------------------------------------------------------------- */

static pnb__view draw_view(const pnb_augment *a, const pnb_preprocess *pp, const pnb_image *image,
                           const char *group, pnb__rng *rng)
{
    pnb__view v = {.is_cropped = a->crop};
    if (a->crop)
        v.crop = a->n_crop_scales > 0
                     ? pnb__augment_draw_scaled_crop(a, image, pp->width, pp->height, rng)
                     : pnb__augment_draw_crop(a, image->width, image->height, rng);
    v.zoom = exp(between(rng, log(a->zoom[0]), log(a->zoom[1])));
    v.angle = between(rng, -a->rotate, a->rotate);
    v.shift_x = between(rng, -a->shift, a->shift) * pp->width;
    v.shift_y = between(rng, -a->shift, a->shift) * pp->height;
    v.is_turned = a->zoom[0] != 1 || a->zoom[1] != 1 || a->rotate > 0 || a->shift > 0;
    v.flip = pnb__rng_uniform(rng) < a->flip;
    for (size_t i = 0; group && i < a->n_no_flip_groups; i++)
        if (!strcmp(group, a->no_flip_groups[i]))
            v.flip = false;
    return v;
}

static void jitter(const pnb_augment *a, pnb_image *image, pnb__rng *rng)
{
    uint32_t order[4] = {0, 1, 2, 3};
    double draw[4];
    for (int i = 0; i < 4; i++)
        draw[i] = between(rng, -a->jitter[i], a->jitter[i]);
    pnb__rng_shuffle(rng, order, 4);
    for (int i = 0; i < 4; i++) {
        double value = draw[order[i]];
        if (a->jitter[order[i]] <= 0)
            continue;
        switch (order[i]) {
        case 0:
            pnb__colour_brightness(image, (float)(1.0 + value));
            break;
        case 1:
            pnb__colour_contrast(image, (float)(1.0 + value));
            break;
        case 2:
            pnb__colour_saturation(image, (float)(1.0 + value));
            break;
        default:
            pnb__colour_hue(image, value);
            break;
        }
    }
}

static void change_colour(const pnb_augment *a, pnb_image *image, pnb__rng *rng)
{
    double gain[3];
    for (int c = 0; c < 3; c++)
        gain[c] = between(rng, 1.0 - a->gain, 1.0 + a->gain);
    if (a->gain > 0)
        pnb__colour_gain(image, gain);
    if (pnb__rng_uniform(rng) < a->jitter_p)
        jitter(a, image, rng);
    if (pnb__rng_uniform(rng) < a->grey_p)
        pnb__colour_grey(image);
}

/* n pixels of one channel: 0 is the mean of the normalisation. */
static void erase_row(float *p, int n, bool is_const, pnb__rng *rng)
{
    for (int x = 0; x < n; x++)
        p[x] = is_const ? 0 : (float)pnb__rng_normal(rng);
}

/* One box, if one that fits is found in ten draws. */
static void erase_box(float *out, int width, int height, int count, bool is_const, pnb__rng *rng)
{
    const double low = log(0.3), high = log(1 / 0.3);
    for (int attempt = 0; attempt < 10; attempt++) {
        double area = between(rng, 0.02, 1.0 / 3) * width * height / count;
        double ratio = exp(between(rng, low, high));
        int h = (int)nearbyint(sqrt(area * ratio)), w = (int)nearbyint(sqrt(area / ratio));
        if (w >= width || h >= height)
            continue;
        size_t top = (size_t)pnb__rng_below(rng, (uint64_t)(height - h) + 1);
        size_t left = (size_t)pnb__rng_below(rng, (uint64_t)(width - w) + 1);
        for (size_t c = 0; c < 3; c++)
            for (size_t y = 0; y < (size_t)h; y++)
                erase_row(out + (c * (size_t)height + top + y) * (size_t)width + left, w, is_const,
                          rng);
        return;
    }
}

static void erase(const pnb_augment *a, const pnb_preprocess *pp, float *out, pnb__rng *rng)
{
    if (a->erase_p <= 0 || pnb__rng_uniform(rng) >= a->erase_p)
        return;
    int count = 1 + (int)pnb__rng_below(rng, (uint64_t)a->erase_count);
    for (int i = 0; i < count; i++)
        erase_box(out, pp->width, pp->height, count, a->erase_const, rng);
}

pnb_status pnb_augment_apply(const pnb_augment *a, const pnb_preprocess *pp, const pnb_image *image,
                             const char *group, const uint64_t seed_epoch_sample[3], float *out,
                             pnb_error *err)
{
    pnb_image rgb = {0}, placed = {0};
    pnb_preprocess used = *pp;
    pnb_status status = check(a, err);
    if (status != PNB_OK)
        return status;
    if (!a->enabled)
        return pnb_preprocess_apply(pp, image, out, err);
    PNB_TRY(check_image(pp, image, err));
    if (a->interpolation > 0)
        used.filter = (pnb_filter)(a->interpolation - 1);
    pnb__rng rng;
    uint64_t key[2] = {seed_epoch_sample[0], seed_epoch_sample[1]};
    pnb__rng_init(&rng, pnb__hash_bytes(key, sizeof key, 0x61756731), seed_epoch_sample[2]);
    pnb__view view = draw_view(a, pp, image, group, &rng);
    bool is_rgb = image->mode == PNB_IMAGE_PLAIN && image->channels == 3;
    if (view.is_turned && !is_rgb) {
        PNB_TRY(pnb_image_to_rgb(&rgb, image, err));
        image = &rgb;
    }
    PNB_TRY(pnb__augment_place(&used, image, &view, &placed, err));
    change_colour(a, &placed, &rng);
    PNB_TRY(pnb_image_to_chw(&placed, pp->mean, pp->std, out, err));
    erase(a, pp, out, &rng);
done:
    pnb_image_free(&rgb);
    pnb_image_free(&placed);
    return status;
}
