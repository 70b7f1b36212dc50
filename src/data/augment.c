/* Augmentation of training pictures, SPEC of the recipes in penumbra/dataset.h.
 *
 * Geometry is one affine map from the output pixel to the source, read with bilinear weights
 *   p = centre + (box / size) * F * R(-angle) * (o - size/2 - shift) / zoom        F: flip
 * and clamped at the edges (the border colour continues). Where the source is more than 1.5 times
 * finer than the output, n x n such points are averaged for a pixel. Colour follows torchvision's
 * definitions of brightness, contrast, saturation and hue, on floats instead of 8 bits; the
 * published code resizes with a bicubic filter on 8 bits, so pixels differ from it slightly. Every
 * number is a function of (seed, epoch, sample). */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/dataset.h"

static const char *const NO_FLIP_GROUPS[] = {"Symbols", "Flags", "shapes"};

pnb_augment pnb_augment_none(void)
{
    return (pnb_augment){.crop_scale = {1, 1}, .crop_ratio = {1, 1}, .zoom = {1, 1}};
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
    const double p[] = {a->flip, a->jitter_p, a->grey_p};
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
    return PNB_OK;
}

static double between(pnb__rng *r, double low, double high)
{
    return low + (high - low) * pnb__rng_uniform(r);
}

/* ---- geometry ------------------------------------------------------------------------------ */

/* Part of the source in its pixels. */
typedef struct region {
    double cx, cy, width, height;
} region;

/* The part that evaluation would use: all, the centred part, or all with borders. */
static region whole_region(const pnb_preprocess *pp, const pnb_image *image)
{
    double w = image->width, h = image->height, aspect = (double)pp->width / pp->height;
    region r = {w / 2, h / 2, w, h};
    bool is_wider = w > h * aspect;
    if (pp->mode == PNB_FIT_SHORTEST ? is_wider : (pp->mode == PNB_FIT_LONGEST && !is_wider))
        r.width = h * aspect;
    else if (pp->mode != PNB_FIT_SQUASH)
        r.height = w / aspect;
    return r;
}

/* torchvision's RandomResizedCrop.get_params. */
static region random_crop(const pnb_augment *a, const pnb_image *image, pnb__rng *rng)
{
    double w = image->width, h = image->height;
    for (int i = 0; i < 10; i++) {
        double area = w * h * between(rng, a->crop_scale[0], a->crop_scale[1]);
        double ratio = exp(between(rng, log(a->crop_ratio[0]), log(a->crop_ratio[1])));
        double cw = round(sqrt(area * ratio)), ch = round(sqrt(area / ratio));
        if (cw < 1 || ch < 1 || cw > w || ch > h)
            continue;
        double left = (double)pnb__rng_below(rng, (uint64_t)(w - cw) + 1);
        double top = (double)pnb__rng_below(rng, (uint64_t)(h - ch) + 1);
        return (region){left + cw / 2, top + ch / 2, cw, ch};
    }
    region r = {w / 2, h / 2, w, h}; /* the whole picture, cut to the allowed ratios */
    if (w / h < a->crop_ratio[0])
        r.height = w / a->crop_ratio[0];
    else if (w / h > a->crop_ratio[1])
        r.width = h * a->crop_ratio[1];
    return r;
}

/* source = origin + x * dx + y * dy for the centre of output pixel (x, y). */
typedef struct affine {
    double origin[2], dx[2], dy[2];
} affine;

static affine draw_affine(const pnb_augment *a, const pnb_preprocess *pp, const pnb_image *image,
                          const char *group, pnb__rng *rng)
{
    region r = a->crop ? random_crop(a, image, rng) : whole_region(pp, image);
    double zoom = exp(between(rng, log(a->zoom[0]), log(a->zoom[1])));
    double angle = between(rng, -a->rotate, a->rotate);
    double shift_x = between(rng, -a->shift, a->shift) * pp->width;
    double shift_y = between(rng, -a->shift, a->shift) * pp->height;
    bool flip = pnb__rng_uniform(rng) < a->flip;
    for (size_t i = 0; group && i < a->n_no_flip_groups; i++)
        if (!strcmp(group, a->no_flip_groups[i]))
            flip = false;
    double scale_x = (flip ? -1.0 : 1.0) * r.width / pp->width / zoom;
    double scale_y = r.height / pp->height / zoom;
    double cosine = cos(angle), sine = sin(angle);
    affine m = {.dx = {scale_x * cosine, -scale_y * sine},
                .dy = {scale_x * sine, scale_y * cosine}};
    double ox = 0.5 - pp->width / 2.0 - shift_x, oy = 0.5 - pp->height / 2.0 - shift_y;
    m.origin[0] = r.cx + ox * m.dx[0] + oy * m.dy[0];
    m.origin[1] = r.cy + ox * m.dx[1] + oy * m.dy[1];
    return m;
}

/* Adds the bilinear value at (x, y), in pixel-edge coordinates, to sum[0..2]. */
static void add_tap(const pnb_image *image, double x, double y, float sum[3])
{
    double cx = PNB_MIN(PNB_MAX(x - 0.5, 0.0), (double)image->width - 1.0);
    double cy = PNB_MIN(PNB_MAX(y - 0.5, 0.0), (double)image->height - 1.0);
    int x0 = (int)cx, y0 = (int)cy;
    size_t step_x = x0 + 1 < image->width ? 3 : 0;
    size_t step_y = y0 + 1 < image->height ? (size_t)image->width * 3 : 0;
    float fx = (float)(cx - x0), fy = (float)(cy - y0);
    const unsigned char *p = image->pixels + ((size_t)y0 * (size_t)image->width + (size_t)x0) * 3;
    for (int c = 0; c < 3; c++) {
        float top = (float)p[c] + fx * ((float)p[step_x + (size_t)c] - (float)p[c]);
        float low = (float)p[step_y + (size_t)c];
        low += fx * ((float)p[step_y + step_x + (size_t)c] - low);
        sum[c] += top + fy * (low - top);
    }
}

/* Source pixels a step of one output pixel passes, at most 8 points a side are averaged. */
static int taps_of(const affine *m)
{
    double step = PNB_MAX(hypot(m->dx[0], m->dx[1]), hypot(m->dy[0], m->dy[1]));
    return PNB_MIN(PNB_MAX((int)lround(step), 1), 8);
}

static void warp(const pnb_image *image, const affine *m, int width, int height, float *planes)
{
    int n = taps_of(m);
    size_t plane = (size_t)width * (size_t)height;
    float share = 1.0f / (float)(n * n);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float sum[3] = {0};
            for (int k = 0; k < n * n; k++) {
                int row = k / n, column = k % n;
                double ox = x + (column + 0.5) / n - 0.5, oy = y + (row + 0.5) / n - 0.5;
                add_tap(image, m->origin[0] + ox * m->dx[0] + oy * m->dy[0],
                        m->origin[1] + ox * m->dx[1] + oy * m->dy[1], sum);
            }
            float *out = planes + (size_t)y * (size_t)width + (size_t)x;
            for (size_t c = 0; c < 3; c++)
                out[c * plane] = sum[c] * share;
        }
}

/* ---- colour, on planes of 0..255 ------------------------------------------------------------ */

static float clamp255(float v)
{
    return PNB_MIN(PNB_MAX(v, 0.0f), 255.0f);
}

static float luminance(const float *p, size_t plane, size_t i)
{
    return 0.2989f * p[i] + 0.587f * p[plane + i] + 0.114f * p[2 * plane + i];
}

static void scale_brightness(float *p, size_t plane, float factor)
{
    for (size_t i = 0; i < 3 * plane; i++)
        p[i] = clamp255(p[i] * factor);
}

static void scale_contrast(float *p, size_t plane, float factor)
{
    double sum = 0.0;
    for (size_t i = 0; i < plane; i++)
        sum += (double)luminance(p, plane, i);
    float mean = (float)(sum / (double)plane);
    for (size_t i = 0; i < 3 * plane; i++)
        p[i] = clamp255(mean + factor * (p[i] - mean));
}

/* factor 0 is grey. */
static void scale_saturation(float *p, size_t plane, float factor)
{
    for (size_t i = 0; i < plane; i++) {
        float grey = luminance(p, plane, i);
        for (size_t c = 0; c < 3; c++)
            p[c * plane + i] = clamp255(grey + factor * (p[c * plane + i] - grey));
    }
}

/* Turns the hue by `turn` of a full circle: RGB to HSV and back. */
static void turn_hue(float *p, size_t plane, float turn)
{
    for (size_t i = 0; i < plane; i++) {
        float r = p[i], g = p[plane + i], b = p[2 * plane + i];
        float high = PNB_MAX(r, PNB_MAX(g, b)), low = PNB_MIN(r, PNB_MIN(g, b));
        float chroma = high - low;
        if (chroma <= 0.0f)
            continue;
        float hue = high == r   ? (g - b) / chroma
                    : high == g ? 2.0f + (b - r) / chroma
                                : 4.0f + (r - g) / chroma;
        hue = hue / 6.0f + turn;
        hue = (hue - floorf(hue)) * 6.0f;
        const float offset[3] = {5.0f, 3.0f, 1.0f};
        for (size_t c = 0; c < 3; c++) {
            float k = fmodf(offset[c] + hue, 6.0f);
            float part = PNB_MIN(PNB_MIN(k, 4.0f - k), 1.0f);
            p[c * plane + i] = high - chroma * PNB_MAX(part, 0.0f);
        }
    }
}

static void jitter(const pnb_augment *a, float *p, size_t plane, pnb__rng *rng)
{
    uint32_t order[4] = {0, 1, 2, 3};
    double draw[4];
    for (int i = 0; i < 4; i++)
        draw[i] = between(rng, -a->jitter[i], a->jitter[i]);
    pnb__rng_shuffle(rng, order, 4);
    for (int i = 0; i < 4; i++) {
        float value = (float)draw[order[i]];
        if (a->jitter[order[i]] <= 0)
            continue;
        switch (order[i]) {
        case 0:
            scale_brightness(p, plane, 1.0f + value);
            break;
        case 1:
            scale_contrast(p, plane, 1.0f + value);
            break;
        case 2:
            scale_saturation(p, plane, 1.0f + value);
            break;
        default:
            turn_hue(p, plane, value);
            break;
        }
    }
}

static void change_colour(const pnb_augment *a, float *p, size_t plane, pnb__rng *rng)
{
    for (size_t c = 0; c < 3; c++) {
        float gain = (float)between(rng, 1.0 - a->gain, 1.0 + a->gain);
        if (a->gain > 0)
            for (size_t i = 0; i < plane; i++)
                p[c * plane + i] = clamp255(p[c * plane + i] * gain);
    }
    if (pnb__rng_uniform(rng) < a->jitter_p)
        jitter(a, p, plane, rng);
    if (pnb__rng_uniform(rng) < a->grey_p)
        scale_saturation(p, plane, 0.0f);
}

pnb_status pnb_augment_apply(const pnb_augment *a, const pnb_preprocess *pp, const pnb_image *image,
                             const char *group, const uint64_t seed_epoch_sample[3], float *out,
                             pnb_error *err)
{
    pnb_status status = check(a, err);
    if (status != PNB_OK)
        return status;
    if (!a->enabled)
        return pnb_preprocess_apply(pp, image, out, err);
    if (image->channels != 3 || image->width < 1 || image->height < 1)
        return pnb__fail(err, PNB_ARG,
                         "augmentation: a picture of %d x %d with %d channels, wanted RGB",
                         image->width, image->height, image->channels);
    if (pp->width < 1 || pp->height < 1 || pp->width > 16384 || pp->height > 16384)
        return pnb__fail(err, PNB_ARG, "augmentation: output of %d x %d", pp->width, pp->height);
    pnb__rng rng;
    uint64_t key[2] = {seed_epoch_sample[0], seed_epoch_sample[1]};
    pnb__rng_init(&rng, pnb__hash_bytes(key, sizeof key, 0x61756731), seed_epoch_sample[2]);
    affine m = draw_affine(a, pp, image, group, &rng);
    size_t plane = (size_t)pp->width * (size_t)pp->height;
    warp(image, &m, pp->width, pp->height, out);
    change_colour(a, out, plane, &rng);
    for (size_t c = 0; c < 3; c++) {
        if (!(pp->std[c] > 0))
            return pnb__fail(err, PNB_ARG, "augmentation: std[%zu] is %g, wanted > 0", c,
                             (double)pp->std[c]);
        float scale = 1.0f / (255.0f * pp->std[c]), offset = pp->mean[c] / pp->std[c];
        for (size_t i = 0; i < plane; i++)
            out[c * plane + i] = out[c * plane + i] * scale - offset;
    }
    return PNB_OK;
}
