/* Where the pixels of a training picture come from.
 *
 * A crop alone is torchvision's RandomResizedCrop: cut out, then resized as Pillow does, so that
 * the filter does not look beyond the crop. Zoom, shift and turn are one map from the output pixel
 * o to the source,
 *
 *   p = centre + step * F * R(-angle) * (o - size/2 - shift)      step: part / size / zoom, F: flip
 *
 * done in two steps: all scaling by Pillow's antialiased filter, on a grid in which one pixel is
 * one pixel of the output, then the turn at that scale with the cubic of the same filter family
 * (bilinear and narrower filters: bilinear). Without a turn the grid is the output's own and the
 * second step is a copy. Pixels beyond the source continue its border. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "data/loader/augment_internal.h"
#include "io/image/formats/codec.h"

pnb__crop pnb__augment_draw_crop(const pnb_augment *a, int width, int height, pnb__rng *rng)
{
    double w = width, h = height, low = log(a->crop_ratio[0]), high = log(a->crop_ratio[1]);
    for (int i = 0; i < 10; i++) {
        double share =
            a->crop_scale[0] + (a->crop_scale[1] - a->crop_scale[0]) * pnb__rng_uniform(rng);
        double ratio = exp(low + (high - low) * pnb__rng_uniform(rng)), area = w * h * share;
        double cw = nearbyint(sqrt(area * ratio)), ch = nearbyint(sqrt(area / ratio));
        if (cw < 1 || ch < 1 || cw > w || ch > h)
            continue;
        pnb__crop c = {.width = (int)cw, .height = (int)ch};
        c.left = (int)pnb__rng_below(rng, (uint64_t)(width - c.width) + 1);
        c.top = (int)pnb__rng_below(rng, (uint64_t)(height - c.height) + 1);
        return c;
    }
    pnb__crop c = {0, 0, width, height}; /* the middle, cut to the allowed ratios */
    if (w / h < a->crop_ratio[0])
        c.height = (int)PNB_MAX(nearbyint(w / a->crop_ratio[0]), 1.0);
    else if (w / h > a->crop_ratio[1])
        c.width = (int)PNB_MAX(nearbyint(h * a->crop_ratio[1]), 1.0);
    c.left = (width - c.width) / 2;
    c.top = (height - c.height) / 2;
    return c;
}

/* One side: a share of the shorter side, or the output's own size where that is less than 3 pixels
 * away and fits, so that nothing need be resized. */
static int scaled_side(int shorter, double share, int out, int most)
{
    int side = PNB_MAX((int)(shorter * share), 1);
    return abs(side - out) < 3 && out <= most ? out : side;
}

/* Places of 13 crops in quarters of what is left over: corners, middle, middles of the sides, and
 * half way from the corners. */
static const int places[][2] = {{0, 0}, {4, 0}, {0, 4}, {4, 4}, {2, 2}, {0, 2}, {4, 2},
                                {2, 4}, {2, 0}, {1, 1}, {3, 1}, {1, 3}, {3, 3}};

pnb__crop pnb__augment_draw_scaled_crop(const pnb_augment *a, const pnb_image *image, int out_width,
                                        int out_height, pnb__rng *rng)
{
    size_t pairs[3 * PNB_MAX_CROP_SCALES][2], n = 0;
    int shorter = PNB_MIN(image->width, image->height);
    for (size_t i = 0; i < a->n_crop_scales; i++)
        for (size_t j = i > 0 ? i - 1 : 0; j < a->n_crop_scales && j <= i + 1; j++, n++) {
            pairs[n][0] = i;
            pairs[n][1] = j;
        }
    const size_t *pair = pairs[pnb__rng_below(rng, n)];
    const int *place = places[pnb__rng_below(rng, PNB_COUNT(places))];
    pnb__crop c = {.height =
                       scaled_side(shorter, a->crop_scales[pair[0]], out_height, image->height),
                   .width = scaled_side(shorter, a->crop_scales[pair[1]], out_width, image->width)};
    c.left = place[0] * ((image->width - c.width) / 4);
    c.top = place[1] * ((image->height - c.height) / 4);
    return c;
}

static void mirror(pnb_image *image)
{
    size_t row = 3 * (size_t)image->width;
    for (int y = 0; y < image->height; y++) {
        unsigned char *a = image->pixels + (size_t)y * row, *b = a + row - 3;
        for (; a < b; a += 3, b -= 3) {
            unsigned char kept[3];
            memcpy(kept, a, 3);
            memcpy(a, b, 3);
            memcpy(b, kept, 3);
        }
    }
}

/* Replaces the picture by its RGB form unless it is RGB. */
static pnb_status make_rgb(pnb_image *image, pnb_error *err)
{
    pnb_image rgb;
    if (image->mode == PNB_IMAGE_PLAIN && image->channels == 3)
        return PNB_OK;
    pnb_status status = pnb_image_to_rgb(&rgb, image, err);
    pnb_image_free(image);
    *image = rgb;
    return status;
}

static pnb_status resized_crop(const pnb_preprocess *pp, const pnb_image *image, const pnb__crop *c,
                               pnb_image *out, pnb_error *err)
{
    pnb_image part = {0};
    pnb_status status;
    PNB_TRY(pnb_image_crop(&part, image, c->left, c->top, c->width, c->height, 0, err));
    if (!pp->resize_first)
        PNB_TRY(make_rgb(&part, err));
    PNB_TRY(pnb_image_resize(out, &part, pp->width, pp->height, pp->filter, NULL, err));
    status = make_rgb(out, err);
done:
    pnb_image_free(&part);
    return status;
}

/* ---- scaling ---- */

/* One axis of the scaled grid, in units of an output pixel from the centre of the map. */
typedef struct grid {
    double first; /* its left edge */
    double step;  /* source pixels in one */
    double from;  /* left edge in the source */
    int n;
} grid;

/* The grid lies at `origin` plus whole pixels; it covers what of [low, high] lies over the source:
 * only pixels whose middle is in there, and always one. */
static grid plan_grid(double centre, double step, int n_source, double origin, double low,
                      double high)
{
    double left = -centre / step - origin, right = left + n_source / step;
    double first = PNB_MAX(ceil(left - 0.5), floor(low - origin + 1e-9));
    first = PNB_MIN(first, PNB_MAX(floor(right - 0.5), ceil(left - 0.5)));
    double last = PNB_MIN(floor(right + 0.5), ceil(high - origin - 1e-9));
    grid g = {.first = origin + first, .step = step, .n = (int)PNB_MAX(last - first, 1.0)};
    g.from = centre + step * g.first;
    return g;
}

static pnb_status scale(const pnb_image *image, const grid *x, const grid *y, pnb_filter filter,
                        pnb_image *out, pnb_error *err)
{
    pnb_box box = {x->from, y->from, x->from + x->n * x->step, y->from + y->n * y->step};
    pnb__resize_job job = {.full_width = x->n,
                           .full_height = y->n,
                           .width = x->n,
                           .height = y->n,
                           .filter = filter,
                           .box = &box,
                           .may_leave = true};
    return pnb__image_resize_part(out, image, &job, err);
}

/* ---- without a turn: the grid is the output's ---- */

static int clamp_to(int i, int n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static pnb_status spread(const pnb_image *scaled, int first_x, int first_y, pnb_image *out,
                         pnb_error *err)
{
    int width = out->width, height = out->height;
    pnb_status status = pnb_image_create(out, width, height, 3, err);
    for (int y = 0; status == PNB_OK && y < height; y++) {
        size_t row = (size_t)clamp_to(y - first_y, scaled->height) * (size_t)scaled->width;
        unsigned char *p = out->pixels + 3 * (size_t)y * (size_t)width;
        for (int x = 0; x < width; x++)
            memcpy(p + 3 * (size_t)x,
                   scaled->pixels + 3 * (row + (size_t)clamp_to(x - first_x, scaled->width)), 3);
    }
    return status;
}

/* ---- the turn ---- */

/* RGB and one lane to spare; two pixels side by side, which AVX takes in one instruction. */
typedef float v4 __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef unsigned char u8x4 __attribute__((vector_size(4)));

/* Weights of the four neighbours at f behind the second: c0 + f (c1 + f (c2 + f c3)). */
typedef struct kernel {
    v4 c0, c1, c2, c3;
    bool is_nearest;
} kernel;

static kernel choose_kernel(pnb_filter filter)
{
    kernel cubic = {
        {0, 1, 0, 0}, {-0.5f, 0, 0.5f, 0}, {1, -2.5f, 2, -0.5f}, {-0.5f, 1.5f, -1.5f, 0.5f}, false};
    kernel linear = {.c0 = {0, 1, 0, 0}, .c1 = {0, -1, 1, 0}};
    linear.is_nearest = filter == PNB_FILTER_NEAREST;
    return filter == PNB_FILTER_BICUBIC || filter == PNB_FILTER_LANCZOS ? cubic : linear;
}

enum { PAD = 2 }; /* pixels of border around the scaled picture */

/* Pixel (x, y) of the output reads the room at start + x * dx + y * dy. The room is the scaled
 * picture in floats with its border repeated, row_length pixels a row. */
typedef struct turn {
    double start[2], dx[2], dy[2];
    kernel kernel;
    const pnb_image *scaled;
    v4 *room;
    size_t row_length;
} turn;

/* The bodies below are compiled twice, for any machine and for AVX2; without fused operations and
 * in one order of sums both give the same bits. */

PNB__INLINE void fill_room_body(const turn *t)
{
    const pnb_image *in = t->scaled;
    size_t width = (size_t)in->width, n_rows = (size_t)in->height + 2 * PAD;
    for (size_t y = 0; y < n_rows; y++) {
        size_t row = (size_t)clamp_to((int)y - PAD, in->height) * width;
        const unsigned char *p = in->pixels + 3 * row;
        v4 *to = t->room + y * t->row_length;
        for (size_t x = 0; x + 1 < width; x++, p += 3) {
            u8x4 pixel; /* and one byte of the next, in the lane to spare */
            memcpy(&pixel, p, 4);
            to[PAD + x] = __builtin_convertvector(pixel, v4);
        }
        to[PAD + width - 1] = (v4){p[0], p[1], p[2], 0};
        for (size_t k = 0; k < PAD; k++) {
            to[k] = to[PAD];
            to[PAD + width + k] = to[PAD + width - 1];
        }
    }
}

PNB__INLINE float cut_to(double v, int n)
{
    return (float)PNB_MIN(PNB_MAX(v, (double)PAD), (double)(n - 1 + PAD));
}

/* The value at (x, y), neither negative, as the border is in front: odd and even columns apart. */
PNB__INLINE v4 sample_body(const turn *t, float x, float y)
{
    const kernel *k = &t->kernel;
    int ix = (int)x, iy = (int)y;
    float fx = x - (float)ix, fy = y - (float)iy;
    v4 wx = k->c0 + fx * (k->c1 + fx * (k->c2 + fx * k->c3));
    v4 wy = k->c0 + fy * (k->c1 + fy * (k->c2 + fy * k->c3));
    v8 first = {wx[0], wx[0], wx[0], wx[0], wx[1], wx[1], wx[1], wx[1]};
    v8 second = {wx[2], wx[2], wx[2], wx[2], wx[3], wx[3], wx[3], wx[3]};
    const v4 *p = t->room + (size_t)(iy - 1) * t->row_length + (size_t)(ix - 1);
    v8 sum = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int j = 0; j < 4; j++, p += t->row_length) {
        v8 a, b;
        memcpy(&a, p, sizeof a);
        memcpy(&b, p + 2, sizeof b);
        sum += wy[j] * (a * first + b * second);
    }
    v4 halves[2];
    memcpy(halves, &sum, sizeof halves);
    return halves[0] + halves[1];
}

PNB__INLINE void read_turned_body(const turn *t, pnb_image *out)
{
    unsigned char *p = out->pixels;
    double half = t->kernel.is_nearest ? 0.5 : 0;
    fill_room_body(t);
    for (int y = 0; y < out->height; y++) {
        double from_u = t->start[0] + y * t->dy[0] + half;
        double from_v = t->start[1] + y * t->dy[1] + half;
        for (int x = 0; x < out->width; x++, p += 3) {
            float u = cut_to(from_u + x * t->dx[0], t->scaled->width);
            float v = cut_to(from_v + x * t->dx[1], t->scaled->height);
            if (t->kernel.is_nearest) {
                u = (float)(int)u;
                v = (float)(int)v;
            }
            v4 value = sample_body(t, u, v) + 0.5f;
            for (int c = 0; c < 3; c++)
                p[c] = (unsigned char)PNB_MIN(PNB_MAX(value[c], 0.0f), 255.0f);
        }
    }
}

static void read_turned_plain(const turn *t, pnb_image *out)
{
    read_turned_body(t, out);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static void read_turned_avx2(const turn *t, pnb_image *out)
{
    read_turned_body(t, out);
}
#endif

static void read_turned(const turn *t, pnb_image *out)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) {
        read_turned_avx2(t, out);
        return;
    }
#endif
    read_turned_plain(t, out);
}

/* ---- the map ---- */

/* The part of the source that the output shows before zoom and shift. */
typedef struct part {
    double cx, cy, width, height;
} part;

/* What evaluation would use: all, the centred part, or all with borders. */
static part evaluated_part(const pnb_preprocess *pp, const pnb_image *image)
{
    double w = image->width, h = image->height, aspect = (double)pp->width / pp->height;
    part r = {w / 2, h / 2, w, h};
    bool is_wider = w > h * aspect;
    if (pp->mode == PNB_FIT_SHORTEST ? is_wider : (pp->mode == PNB_FIT_LONGEST && !is_wider))
        r.width = h * aspect;
    else if (pp->mode != PNB_FIT_SQUASH)
        r.height = w / aspect;
    return r;
}

/* Half the size of the box around the turned output, and its middle, in output pixels. */
static void reach_of(const pnb_preprocess *pp, const pnb__view *v, double middle[2], double half[2])
{
    double c = cos(v->angle), s = sin(v->angle), sign = v->flip ? -1 : 1;
    middle[0] = sign * (-v->shift_x * c - v->shift_y * s);
    middle[1] = v->shift_x * s - v->shift_y * c;
    half[0] = (fabs(c) * pp->width + fabs(s) * pp->height) / 2;
    half[1] = (fabs(s) * pp->width + fabs(c) * pp->height) / 2;
}

static pnb_status turn_scaled(const pnb_preprocess *pp, const pnb__view *v, const pnb_image *scaled,
                              const grid *gx, const grid *gy, pnb_image *out, pnb_error *err)
{
    double c = cos(v->angle), s = sin(v->angle), sign = v->flip ? -1 : 1;
    double ox = 0.5 - pp->width / 2.0 - v->shift_x, oy = 0.5 - pp->height / 2.0 - v->shift_y;
    turn t = {.dx = {sign * c, -s}, .dy = {sign * s, c}};
    t.start[0] = ox * t.dx[0] + oy * t.dy[0] - gx->first - 0.5 + PAD;
    t.start[1] = ox * t.dx[1] + oy * t.dy[1] - gy->first - 0.5 + PAD;
    t.kernel = choose_kernel(pp->filter);
    t.scaled = scaled;
    t.row_length = (size_t)scaled->width + 2 * PAD;
    size_t n = t.row_length * ((size_t)scaled->height + 2 * PAD);
    if (PNB_ALLOC(t.room, n, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_status status = pnb_image_create(out, pp->width, pp->height, 3, err);
    if (status == PNB_OK)
        read_turned(&t, out);
    pnb__free(t.room);
    return status;
}

static pnb_status move_and_turn(const pnb_preprocess *pp, const pnb_image *image,
                                const pnb__view *v, pnb_image *out, pnb_error *err)
{
    const pnb__crop *k = &v->crop;
    part r = v->is_cropped
                 ? (part){k->left + k->width / 2.0, k->top + k->height / 2.0, k->width, k->height}
                 : evaluated_part(pp, image);
    double middle[2], half[2], step_x = r.width / pp->width / v->zoom;
    double step_y = r.height / pp->height / v->zoom;
    bool is_straight = v->angle == 0;
    double margin = is_straight ? 0 : PAD;
    pnb_image scaled = {0};
    pnb_status status;
    reach_of(pp, v, middle, half);
    double low_x = middle[0] - half[0], low_y = middle[1] - half[1];
    grid gx = plan_grid(r.cx, step_x, image->width, is_straight ? low_x : -r.cx / step_x,
                        low_x - margin, middle[0] + half[0] + margin);
    grid gy = plan_grid(r.cy, step_y, image->height, is_straight ? low_y : -r.cy / step_y,
                        low_y - margin, middle[1] + half[1] + margin);
    PNB_TRY(scale(image, &gx, &gy, pp->filter, &scaled, err));
    if (!is_straight) {
        status = turn_scaled(pp, v, &scaled, &gx, &gy, out, err);
        goto done;
    }
    *out = (pnb_image){.width = pp->width, .height = pp->height};
    PNB_TRY(
        spread(&scaled, (int)lround(gx.first - low_x), (int)lround(gy.first - low_y), out, err));
    if (v->flip)
        mirror(out);
done:
    pnb_image_free(&scaled);
    return status;
}

pnb_status pnb__augment_place(const pnb_preprocess *pp, const pnb_image *image,
                              const pnb__view *view, pnb_image *out, pnb_error *err)
{
    *out = (pnb_image){0};
    if (view->is_turned)
        return move_and_turn(pp, image, view, out, err);
    pnb_status status = view->is_cropped ? resized_crop(pp, image, &view->crop, out, err)
                                         : pnb_preprocess_pixels(pp, image, out, err);
    if (status == PNB_OK && view->flip)
        mirror(out);
    return status;
}
