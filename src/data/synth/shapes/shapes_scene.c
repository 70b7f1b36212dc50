/* Draws the scenes of the `shapes` set: how many shapes, which form, colour and size, where, and
 * how the scene is made ambiguous. Every number comes from the counter-based generator keyed by
 * (seed, scene index), so scenes can be made in any order by any thread.
 *
 * Sizes are shares of the picture (radius 0.225 and 0.18 of the shorter side): as large as three
 * shapes without overlap allow, because small forms are not told apart by a short training run.
 * Rendering is left to shapes_render.c, captions to shapes_query.c. */
#include "data/synth/shapes/shapes.h"

#include <math.h>

static const char *const FORM_NAMES[PNB__N_FORMS] = {"circle", "square", "star",
                                                     "ring",   "bar",    "pole"};
static const char *const COLOUR_NAMES[PNB__N_COLOURS] = {"red",  "pink",   "yellow", "green",
                                                         "blue", "purple", "black"};
static const char *const SIZE_NAMES[PNB__N_SIZES] = {"small", "large"};
static const float COLOUR_RGB[PNB__N_COLOURS][3] = {
    {0.84f, 0.13f, 0.13f}, {0.95f, 0.55f, 0.72f}, {0.94f, 0.84f, 0.14f}, {0.15f, 0.62f, 0.22f},
    {0.14f, 0.31f, 0.82f}, {0.55f, 0.20f, 0.66f}, {0.10f, 0.10f, 0.11f}};
static const double SIZE_RADIUS[PNB__N_SIZES] = {0.18, 0.225};

static const double MAX_ANGLE = 0.06;       /* radians */
static const double COLOUR_NOISE = 0.06;    /* +- a channel */
static const double RELATION_MARGIN = 0.22; /* of the width: closer centres have no relation */
static const double MIDDLE = 0.16;          /* half width of the middle, share of the picture */

const char *pnb__form_name(int form)
{
    return FORM_NAMES[form];
}

const char *pnb__colour_name(int colour)
{
    return COLOUR_NAMES[colour];
}

const char *pnb__size_name(int size)
{
    return SIZE_NAMES[size];
}

void pnb__colour_rgb(int colour, float rgb[3])
{
    for (int c = 0; c < 3; c++)
        rgb[c] = COLOUR_RGB[colour][c];
}

double pnb__size_radius(int size, int width, int height)
{
    return SIZE_RADIUS[size] * PNB_MIN(width, height);
}

static double between(pnb__rng *r, double low, double high)
{
    return low + (high - low) * pnb__rng_uniform(r);
}

static void draw_attributes(pnb__shape *s, const pnb_shapes_opts *opts, pnb__rng *r)
{
    s->form = (int)pnb__rng_below(r, PNB__N_FORMS);
    s->colour = (int)pnb__rng_below(r, PNB__N_COLOURS);
    s->size = (int)pnb__rng_below(r, PNB__N_SIZES);
    s->radius = pnb__size_radius(s->size, opts->width, opts->height);
    s->angle = between(r, -MAX_ANGLE, MAX_ANGLE);
    s->is_grey = false;
    for (int c = 0; c < 3; c++) {
        double value = COLOUR_RGB[s->colour][c] + between(r, -COLOUR_NOISE, COLOUR_NOISE);
        s->rgb[c] = (float)PNB_MIN(PNB_MAX(value, 0.0), 1.0);
    }
}

/* Radius of the circle around a shape. */
static double reach_of(const pnb__shape *s, const double half[2])
{
    bool is_round = s->form == PNB__CIRCLE || s->form == PNB__RING || s->form == PNB__STAR;
    return is_round ? PNB_MAX(half[0], half[1]) : hypot(half[0], half[1]);
}

/* Boxes or circles apart by a gap, and far enough in one direction that a caption can relate them.
 */
static bool is_clear(const pnb__shape *a, const pnb__shape *b, int width)
{
    double ha[2], hb[2], dx = fabs(a->x - b->x), dy = fabs(a->y - b->y), gap = 0.01 * width;
    pnb__shape_extent(a, ha);
    pnb__shape_extent(b, hb);
    bool boxes_apart = dx > ha[0] + hb[0] + gap || dy > ha[1] + hb[1] + gap;
    bool circles_apart = hypot(dx, dy) > reach_of(a, ha) + reach_of(b, hb) + gap;
    return (boxes_apart || circles_apart) && PNB_MAX(dx, dy) > RELATION_MARGIN * width;
}

/* One try to place every shape inside the picture without overlap. */
static bool try_places(pnb__scene *scene, const pnb_shapes_opts *opts, pnb__rng *r)
{
    for (int i = 0; i < scene->n_shapes; i++) {
        pnb__shape *s = &scene->shapes[i];
        double half[2], margin = 0.01 * opts->width;
        pnb__shape_extent(s, half);
        s->x = between(r, half[0] + margin, opts->width - half[0] - margin);
        s->y = between(r, half[1] + margin, opts->height - half[1] - margin);
        for (int j = 0; j < i; j++)
            if (!is_clear(s, &scene->shapes[j], opts->width))
                return false;
    }
    return true;
}

/* Covers one shape from one side by a rectangle; a strength of 1 hides it all. */
static void draw_occluder(pnb__scene *scene, pnb__rng *r)
{
    pnb__ambiguity *a = &scene->ambiguity;
    a->has_occluder = true;
    a->occluded = (int)pnb__rng_below(r, (uint64_t)scene->n_shapes);
    const pnb__shape *s = &scene->shapes[a->occluded];
    double half[2], share = between(r, 0.4, 1.05);
    pnb__shape_extent(s, half);
    double x0 = s->x - half[0] - 1.0, x1 = s->x + half[0] + 1.0;
    double y0 = s->y - half[1] - 1.0, y1 = s->y + half[1] + 1.0;
    double reach_x = share * (x1 - x0), reach_y = share * (y1 - y0);
    switch (pnb__rng_below(r, 4)) {
    case 0:
        x1 = x0 + reach_x;
        break;
    case 1:
        x0 = x1 - reach_x;
        break;
    case 2:
        y1 = y0 + reach_y;
        break;
    default:
        y0 = y1 - reach_y;
        break;
    }
    a->box[0] = x0;
    a->box[1] = y0;
    a->box[2] = x1;
    a->box[3] = y1;
}

static void draw_grey(pnb__scene *scene, pnb__rng *r)
{
    int first = (int)pnb__rng_below(r, (uint64_t)scene->n_shapes);
    for (int i = 0; i < scene->n_shapes; i++) {
        if (i != first && pnb__rng_uniform(r) < 0.5)
            continue;
        pnb__shape *s = &scene->shapes[i];
        s->is_grey = true;
        s->rgb[0] = s->rgb[1] = s->rgb[2] = 0.55f;
        scene->ambiguity.n_grey++;
    }
}

static void draw_ambiguity(pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index)
{
    pnb__rng r;
    pnb__rng_init(&r, opts->seed, (2ULL << 56) | index);
    if (pnb__rng_uniform(&r) < opts->blur_p)
        scene->ambiguity.blur = opts->width * between(&r, 0.25 * opts->max_blur, opts->max_blur);
    if (pnb__rng_uniform(&r) < opts->occlude_p)
        draw_occluder(scene, &r);
    if (pnb__rng_uniform(&r) < opts->grey_p)
        draw_grey(scene, &r);
}

void pnb__scene_draw(pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index)
{
    enum { N_TRIES = 20000 };
    pnb__rng r;
    pnb__rng_init(&r, opts->seed, (1ULL << 56) | index);
    *scene = (pnb__scene){.n_shapes = 1 + (int)pnb__rng_below(&r, PNB__MAX_SHAPES)};
    float tint = (float)between(&r, 0.92, 0.98);
    for (int c = 0; c < 3; c++)
        scene->ground[c] = tint + (float)between(&r, -0.015, 0.015);
    bool is_placed = false;
    while (!is_placed) { /* three large shapes fit in about one try of a thousand */
        for (int i = 0; i < scene->n_shapes; i++)
            draw_attributes(&scene->shapes[i], opts, &r);
        for (int i = 0; i < N_TRIES && !is_placed; i++)
            is_placed = try_places(scene, opts, &r);
    }
    scene->ambiguity.n_consistent = 1.0;
    draw_ambiguity(scene, opts, index);
}

int pnb__shape_place(const pnb__shape *s, int width, int height)
{
    double x = s->x / width - 0.5, y = s->y / height - 0.5;
    if (fabs(x) < MIDDLE && fabs(y) < MIDDLE)
        return 4;
    return (y < 0 ? 0 : 2) + (x < 0 ? 0 : 1);
}

bool pnb__shape_relation(const pnb__shape *a, const pnb__shape *b, pnb__relation r, int width)
{
    double margin = RELATION_MARGIN * width;
    switch (r) {
    case PNB__LEFT_OF:
        return a->x + margin < b->x;
    case PNB__RIGHT_OF:
        return b->x + margin < a->x;
    case PNB__ABOVE:
        return a->y + margin < b->y;
    default:
        return b->y + margin < a->y;
    }
}
