/* Draws a scene of the `shapes` set: antialiased by 4 x 4 samples a pixel, then blur and occluder
 * when the scene asks for them, then noise on every value. The noise is part of the scene: it is
 * drawn from (seed, scene index). Forms differ in area, extent and holes by design, and have the
 * same dark outline whatever their colour, so that edges look alike: see shapes.h. */
#include "base/loop.h"
#include "data/synth/shapes/shapes.h"

#include <math.h>
#include <string.h>

enum { SUB = 4 }; /* samples a pixel and axis */

static const double OUTLINE = 0.031;      /* width of a line, share of the shorter side */
static const double RING_HOLE = 0.53;     /* share of the ring's radius */
static const float NOISE = 0.04f;         /* difference of two uniforms: std 0.016 */
static const float OCCLUDER_GREY = 0.72f; /* of no shape and no ground */

/* ---- forms, in units of the shape's radius, y up ------------------------------------------- */

/* Half width and half height of the form with its outline, upright. */
static const double EXTENT[PNB__N_FORMS][2] = {
    [PNB__CIRCLE] = {0.97, 0.97}, [PNB__SQUARE] = {0.66, 0.66}, [PNB__STAR] = {1.28, 1.28},
    [PNB__RING] = {1.04, 1.04},   [PNB__BAR] = {1.45, 0.30},    [PNB__POLE] = {0.30, 1.45}};

void pnb__shape_extent(const pnb__shape *s, double half[2])
{
    bool is_round = s->form == PNB__CIRCLE || s->form == PNB__RING || s->form == PNB__STAR;
    double sine = is_round ? 0.0 : fabs(sin(s->angle));
    half[0] = s->radius * (EXTENT[s->form][0] + sine * EXTENT[s->form][1]);
    half[1] = s->radius * (EXTENT[s->form][1] + sine * EXTENT[s->form][0]);
}

/* Five points: fold into half a sector, then the distance to one edge from the tip (1) to the
 * notch. */
static double star_depth(double u, double v)
{
    const double pi = 3.14159265358979323846, sector = 2.0 * pi / 5.0, notch = 0.42;
    double r = hypot(u, v), a = atan2(u, v);
    a -= sector * floor(a / sector + 0.5);
    double x = r * cos(a), y = r * fabs(sin(a));
    double nx = notch * cos(sector / 2.0), ny = notch * sin(sector / 2.0);
    return ((nx - 1.0) * y - ny * (x - 1.0)) / hypot(nx - 1.0, ny);
}

double pnb__shape_depth(int form, double u, double v)
{
    const double *half = EXTENT[form];
    double r;
    switch (form) {
    case PNB__CIRCLE:
        return half[0] - hypot(u, v);
    case PNB__STAR:
        return half[0] * star_depth(u / half[0], v / half[0]);
    case PNB__RING:
        r = hypot(u, v);
        return PNB_MIN(half[0] - r, r - RING_HOLE * half[0]);
    default: /* square, bar, pole */
        return PNB_MIN(half[0] - fabs(u), half[1] - fabs(v));
    }
}

static void cover_pixel(const pnb__shape *s, double outline, int px, int py, float *fill,
                        float *line)
{
    double cosine = cos(s->angle), sine = sin(s->angle);
    int n_fill = 0, n_line = 0;
    for (int j = 0; j < SUB; j++)
        for (int i = 0; i < SUB; i++) {
            double dx = (px + (i + 0.5) / SUB - s->x) / s->radius;
            double dy = (s->y - py - (j + 0.5) / SUB) / s->radius;
            double depth =
                pnb__shape_depth(s->form, cosine * dx + sine * dy, cosine * dy - sine * dx);
            n_fill += depth * s->radius > outline;
            n_line += depth > 0.0 && depth * s->radius <= outline;
        }
    *fill = (float)n_fill / (SUB * SUB);
    *line = (float)n_line / (SUB * SUB);
}

void pnb__shape_coverage(const pnb__shape *s, int width, int height, float *fill, float *line)
{
    double half[2], outline = OUTLINE * PNB_MIN(width, height);
    size_t stride = (size_t)width;
    pnb__shape_extent(s, half);
    int x0 = PNB_MAX((int)floor(s->x - half[0]), 0), y0 = PNB_MAX((int)floor(s->y - half[1]), 0);
    int x1 = PNB_MIN((int)ceil(s->x + half[0]), width);
    int y1 = PNB_MIN((int)ceil(s->y + half[1]), height);
    memset(fill, 0, sizeof *fill * stride * (size_t)height);
    memset(line, 0, sizeof *line * stride * (size_t)height);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            size_t at = (size_t)y * stride + (size_t)x;
            cover_pixel(s, outline, x, y, &fill[at], &line[at]);
        }
}

/* ---- blur ---------------------------------------------------------------------------------- */

/* out += weight in, n values; both were asked for. */
PNB__UNCHECKED static void add_weighted(float *restrict out, const float *restrict in, float weight,
                                        int n)
{
    for (int i = 0; i < n; i++)
        out[i] += weight * in[i];
}

/* Along one row. Each tap is added to all values before the next one is: every sum is taken in the
 * order of the taps, as along a column. Values beyond the ends repeat the last one. */
static void blur_row(const float *in, float *out, int n, const float *kernel, int reach)
{
    PNB__CHECK_REGION(in, (size_t)n * sizeof *in);
    PNB__CHECK_REGION(out, (size_t)n * sizeof *out);
    memset(out, 0, (size_t)n * sizeof *out);
    for (int k = -reach; k <= reach; k++) {
        float weight = kernel[k + reach];
        int first = PNB_MIN(PNB_MAX(-k, 0), n), last = PNB_MAX(PNB_MIN(n - k, n), 0);
        for (int i = 0; i < first; i++)
            out[i] += weight * in[0];
        add_weighted(out + first, in + PNB_MAX(k, 0), weight, PNB_MAX(last - first, 0));
        for (int i = last; i < n; i++)
            out[i] += weight * in[n - 1];
    }
}

/* Row y of the plane blurred along its columns. */
static void blur_column(const float *plane, float *out, int width, int height, int y,
                        const float *kernel, int reach)
{
    PNB__CHECK_REGION(plane, (size_t)width * (size_t)height * sizeof *plane);
    PNB__CHECK_REGION(out, (size_t)width * sizeof *out);
    memset(out, 0, (size_t)width * sizeof *out);
    for (int k = -reach; k <= reach; k++) {
        int row = PNB_MIN(PNB_MAX(y + k, 0), height - 1);
        add_weighted(out, plane + (size_t)row * (size_t)width, kernel[k + reach], width);
    }
}

void pnb__blur_plane(float *plane, int width, int height, double std, float *scratch)
{
    enum { MAX_REACH = 512 };
    float kernel[2 * MAX_REACH + 1] = {0};
    int reach = PNB_MAX(PNB_MIN((int)ceil(3.0 * std), MAX_REACH), 0);
    double total = 0.0;
    for (int k = -reach; k <= reach; k++)
        total += exp(-0.5 * k * k / (std * std));
    for (int k = -reach; k <= reach; k++)
        kernel[k + reach] = (float)(exp(-0.5 * k * k / (std * std)) / total);
    for (int y = 0; y < height; y++)
        blur_row(plane + (size_t)y * (size_t)width, scratch + (size_t)y * (size_t)width, width,
                 kernel, reach);
    for (int y = 0; y < height; y++)
        blur_column(scratch, plane + (size_t)y * (size_t)width, width, height, y, kernel, reach);
}

/* ---- picture ------------------------------------------------------------------------------- */

/* `coverage` has room for two planes. */
static void draw_shapes(const pnb__scene *scene, int width, int height, float *planes,
                        float *coverage)
{
    size_t n = (size_t)width * (size_t)height;
    const float *fill = coverage, *line = coverage + n;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < n; i++)
            planes[c * n + i] = scene->ground[c];
    for (int k = 0; k < scene->n_shapes; k++) {
        pnb__shape_coverage(&scene->shapes[k], width, height, coverage, coverage + n);
        for (size_t c = 0; c < 3; c++)
            for (size_t i = 0; i < n; i++)
                planes[c * n + i] += fill[i] * (scene->shapes[k].rgb[c] - planes[c * n + i]) +
                                     line[i] * (PNB__INK - planes[c * n + i]);
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
    float *planes = pnb__alloc_array(5 * n, sizeof *planes);
    *out = (pnb_image){0};
    if (!planes)
        return pnb__fail_nomem(err, 5 * n * sizeof *planes);
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
