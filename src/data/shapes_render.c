/* Draws a scene of the `shapes` set: every shape with a dark outline, so that its form looks the
 * same in every colour, antialiased by 4 x 4 samples a pixel, then blur and occluder when the scene
 * asks for them, then noise on every value. The noise is part of the scene: it is drawn from (seed,
 * scene index, row). */
#include "data/shapes.h"

#include <math.h>
#include <string.h>

enum { SUB = 4 }; /* samples a pixel and axis */

static const double OUTLINE_WIDTH = 0.13; /* of the radius */
static const float NOISE = 0.04f;         /* difference of two uniforms: std 0.016 */
static const float OCCLUDER_GREY = 0.72f; /* of no shape and no ground */

/* ---- forms, in the unit circle, y up ------------------------------------------------------- */

/* Five points: fold into half a sector, then the distance to the edge from tip (1) to notch. */
static bool covers_star(double u, double v, double inset)
{
    const double pi = 3.14159265358979323846, sector = 2.0 * pi / 5.0, notch = 0.45;
    double r = hypot(u, v), a = atan2(u, v);
    a -= sector * floor(a / sector + 0.5);
    double x = r * cos(a), y = r * fabs(sin(a));
    double nx = notch * cos(sector / 2.0), ny = notch * sin(sector / 2.0);
    return ((nx - 1.0) * y - ny * (x - 1.0)) / hypot(nx - 1.0, ny) > inset;
}

static bool covers_box(double u, double v, double half_width, double half_height, double inset)
{
    return fabs(u) < half_width - inset && fabs(v) < half_height - inset;
}

bool pnb__shape_covers(int form, double u, double v, double inset)
{
    const double half_side = 0.70710678118654752, half_length = 0.92, half_width = 0.36;
    double r = hypot(u, v);
    switch (form) {
    case PNB__CIRCLE:
        return r < 0.92 - inset;
    case PNB__SQUARE:
        return covers_box(u, v, half_side, half_side, inset);
    case PNB__STAR:
        return r < 1.0 && covers_star(u, v, inset);
    case PNB__RING:
        return r < 0.97 - inset && r > 0.50 + inset;
    case PNB__BAR:
        return covers_box(u, v, half_length, half_width, inset);
    default: /* PNB__POLE */
        return covers_box(u, v, half_width, half_length, inset);
    }
}

static float pixel_coverage(const pnb__shape *s, double inset, int px, int py, double cosine,
                            double sine)
{
    int n_in = 0;
    for (int j = 0; j < SUB; j++)
        for (int i = 0; i < SUB; i++) {
            double dx = (px + (i + 0.5) / SUB - s->x) / s->radius;
            double dy = (s->y - py - (j + 0.5) / SUB) / s->radius;
            n_in +=
                pnb__shape_covers(s->form, cosine * dx + sine * dy, cosine * dy - sine * dx, inset);
        }
    return (float)n_in / (SUB * SUB);
}

void pnb__shape_coverage(const pnb__shape *s, bool inside, int width, int height, float *coverage)
{
    double inset = inside ? OUTLINE_WIDTH : 0.0;
    int x0 = PNB_MAX((int)floor(s->x - s->radius), 0),
        y0 = PNB_MAX((int)floor(s->y - s->radius), 0);
    int x1 = PNB_MIN((int)ceil(s->x + s->radius), width);
    int y1 = PNB_MIN((int)ceil(s->y + s->radius), height);
    double cosine = cos(s->angle), sine = sin(s->angle);
    memset(coverage, 0, sizeof *coverage * (size_t)width * (size_t)height);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            coverage[(size_t)y * (size_t)width + (size_t)x] =
                pixel_coverage(s, inset, x, y, cosine, sine);
}

/* ---- blur ---------------------------------------------------------------------------------- */

/* One pass along a line of n values `step` apart; values beyond the ends repeat the last one. */
static void blur_line(const float *in, float *out, int n, size_t step, const float *kernel,
                      int reach)
{
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
        for (int k = -reach; k <= reach; k++) {
            int j = PNB_MIN(PNB_MAX(i + k, 0), n - 1);
            sum += kernel[k + reach] * in[(size_t)j * step];
        }
        out[(size_t)i * step] = sum;
    }
}

void pnb__blur_plane(float *plane, int width, int height, double std, float *scratch)
{
    enum { MAX_REACH = 512 };
    float kernel[2 * MAX_REACH + 1];
    int reach = PNB_MIN((int)ceil(3.0 * std), MAX_REACH);
    double total = 0.0;
    for (int k = -reach; k <= reach; k++)
        total += exp(-0.5 * k * k / (std * std));
    for (int k = -reach; k <= reach; k++)
        kernel[k + reach] = (float)(exp(-0.5 * k * k / (std * std)) / total);
    for (int y = 0; y < height; y++)
        blur_line(plane + (size_t)y * (size_t)width, scratch + (size_t)y * (size_t)width, width, 1,
                  kernel, reach);
    for (int x = 0; x < width; x++)
        blur_line(scratch + x, plane + x, height, (size_t)width, kernel, reach);
}

/* ---- picture ------------------------------------------------------------------------------- */

static void draw_shapes(const pnb__scene *scene, int width, int height, float *planes,
                        float *coverage)
{
    size_t n = (size_t)width * (size_t)height;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < n; i++)
            planes[c * n + i] = scene->ground[c];
    for (int k = 0; k < scene->n_shapes; k++)
        for (int inside = 0; inside < 2; inside++) { /* all of it dark, then the colour inside */
            pnb__shape_coverage(&scene->shapes[k], inside == 1, width, height, coverage);
            for (size_t c = 0; c < 3; c++) {
                float from = inside ? PNB__OUTLINE_RGB : scene->ground[c];
                float to = inside ? scene->shapes[k].rgb[c] : PNB__OUTLINE_RGB;
                for (size_t i = 0; i < n; i++)
                    planes[c * n + i] += coverage[i] * (to - from);
            }
        }
}

static void draw_occluder(const pnb__ambiguity *a, int width, int height, float *planes)
{
    size_t n = (size_t)width * (size_t)height;
    int x0 = PNB_MAX((int)lround(a->box[0]), 0), x1 = PNB_MIN((int)lround(a->box[2]), width);
    int y0 = PNB_MAX((int)lround(a->box[1]), 0), y1 = PNB_MIN((int)lround(a->box[3]), height);
    for (size_t c = 0; c < 3; c++)
        for (int y = y0; y < y1; y++)
            for (int x = x0; x < x1; x++)
                planes[c * n + (size_t)y * (size_t)width + (size_t)x] = OCCLUDER_GREY;
}

static void add_noise(const float *planes, uint64_t seed, uint64_t index, pnb_image *out)
{
    size_t width = (size_t)out->width, n = width * (size_t)out->height;
    pnb__rng r;
    pnb__rng_init(&r, seed, (4ULL << 56) | index);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) {
            uint32_t bits = pnb__rng_u32(&r);
            float noise = (float)(int)((bits & 0xffff) - (bits >> 16)) / 65536.0f * NOISE;
            float value = (planes[c * n + i] + noise) * 255.0f + 0.5f;
            out->pixels[i * 3 + c] = (unsigned char)PNB_MIN(PNB_MAX(value, 0.0f), 255.0f);
        }
}

pnb_status pnb__scene_render(const pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index,
                             pnb_image *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = (size_t)opts->width * (size_t)opts->height;
    float *planes = pnb__alloc_array(4 * n, sizeof *planes);
    *out = (pnb_image){0};
    if (!planes)
        return pnb__fail_nomem(err, 4 * n * sizeof *planes);
    PNB_TRY(pnb_image_create(out, opts->width, opts->height, 3, err));
    draw_shapes(scene, opts->width, opts->height, planes, planes + 3 * n);
    if (scene->ambiguity.blur > 0)
        for (size_t c = 0; c < 3; c++)
            pnb__blur_plane(planes + c * n, opts->width, opts->height, scene->ambiguity.blur,
                            planes + 3 * n);
    if (scene->ambiguity.has_occluder)
        draw_occluder(&scene->ambiguity, opts->width, opts->height, planes);
    add_noise(planes, opts->seed, index, out);
done:
    pnb__free(planes);
    return status;
}
