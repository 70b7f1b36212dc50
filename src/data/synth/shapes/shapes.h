/* The `shapes` set: a scene is 1-3 shapes, a query is a caption with its meaning. Internal. */
#ifndef PNB_DATA_SYNTH_SHAPES_H
#define PNB_DATA_SYNTH_SHAPES_H

#include "base/base.h"
#include "penumbra/image.h"
#include "penumbra/synth.h"

/* A bar lies, a pole stands. Chosen to differ in area and in the direction of their edges: a short
 * training run tells such forms apart, but not, say, a triangle from a star. */
typedef enum pnb__form {
    PNB__CIRCLE,
    PNB__SQUARE,
    PNB__STAR,
    PNB__RING,
    PNB__BAR,
    PNB__POLE,
    PNB__N_FORMS
} pnb__form;

enum {
    PNB__N_COLOURS = 7,
    PNB__N_SIZES = 2,
    PNB__N_COMBOS = PNB__N_FORMS * PNB__N_COLOURS * PNB__N_SIZES,
    PNB__MAX_SHAPES = 3,
    PNB__N_PLACES = 5,
    PNB__ANY = 7 /* an attribute a query leaves open; fits the three bits of a packed query */
};

/* Value of every channel of an outline: the same around every colour and around grey. */
#define PNB__INK 0.12f

typedef enum pnb__relation {
    PNB__LEFT_OF,
    PNB__RIGHT_OF,
    PNB__ABOVE,
    PNB__BELOW,
    PNB__N_RELATIONS
} pnb__relation;

typedef struct pnb__shape {
    int form, colour, size;
    double x, y;   /* centre in pixels, y down */
    double radius; /* unit of its form, in pixels: see pnb__shape_extent */
    double angle;
    float rgb[3]; /* as drawn: palette colour plus noise, or grey */
    bool is_grey;
} pnb__shape;

/* How a scene was made ambiguous and what an observer can still tell: see shapes_ambiguity.c. */
typedef struct pnb__ambiguity {
    double blur; /* standard deviation in pixels, 0 none */
    bool has_occluder;
    int occluded;          /* index of the covered shape */
    double box[4];         /* x0 y0 x1 y1 of the occluder */
    double occluded_share; /* of the shape's area */
    int n_grey;            /* shapes drawn in grey */
    double entropy_bits;   /* over the scene, sum of the shapes' */
    double form_bits, colour_bits, size_bits;
    double n_consistent; /* scenes an observer cannot tell from this one, 1 when clear */
} pnb__ambiguity;

typedef struct pnb__scene {
    int n_shapes;
    pnb__shape shapes[PNB__MAX_SHAPES];
    float ground[3];
    pnb__ambiguity ambiguity;
} pnb__scene;

/* One statement. Objects bind to different shapes; PNB__ANY leaves an attribute open. */
typedef struct pnb__object {
    unsigned char form, colour, size;
} pnb__object;
typedef struct pnb__shape_query {
    unsigned char level, count /* exact number of shapes, 0 open */, n_objects;
    unsigned char relation; /* of object 0 to object 1, PNB__ANY none */
    unsigned char place;    /* of object 0, PNB__ANY open */
    pnb__object objects[PNB__MAX_SHAPES];
} pnb__shape_query;

enum { PNB__MAX_SCENE_QUERIES = 40, PNB__QUERY_TEXT = 160, PNB__QUERY_ID = 24 };

/* ---- shapes_scene.c ---- */
const char *pnb__form_name(int form);
const char *pnb__colour_name(int colour);
const char *pnb__size_name(int size);
void pnb__colour_rgb(int colour, float rgb[3]);
double pnb__size_radius(int size, int width, int height);
/* Scene `index` of the set: the same for the same options and index. */
void pnb__scene_draw(pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index);
/* Where a shape lies: 0-3 top left, top right, bottom left, bottom right; 4 the middle. */
int pnb__shape_place(const pnb__shape *s, int width, int height);
bool pnb__shape_relation(const pnb__shape *a, const pnb__shape *b, pnb__relation r, int width);

/* ---- shapes_query.c ---- */
bool pnb__query_matches(const pnb__shape_query *q, const pnb__scene *scene,
                        const pnb_shapes_opts *opts);
/* The captions of a scene, at most PNB__MAX_SCENE_QUERIES, levels ascending; returns how many. */
int pnb__scene_queries(const pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index,
                       pnb__shape_query *out);
void pnb__query_text(const pnb__shape_query *q, char text[PNB__QUERY_TEXT]);
/* The text as the set has it: within words that say nothing more where opts->wordy wants it. */
void pnb__query_say(const pnb__shape_query *q, const pnb_shapes_opts *opts,
                    char text[PNB__QUERY_TEXT]);
uint64_t pnb__query_pack(const pnb__shape_query *q); /* ordered by level first */
void pnb__query_unpack(uint64_t packed, pnb__shape_query *q);
void pnb__query_id(uint64_t packed, char id[PNB__QUERY_ID]);

/* ---- shapes_render.c ---- */
/* Distance of a point inside the form to its edge, 0 or less outside; in units of the radius, y up.
 */
double pnb__shape_depth(int form, double u, double v);
/* Half width and half height of the box around a shape, in pixels. */
void pnb__shape_extent(const pnb__shape *s, double half[2]);
/* Coverage 0..1 by one shape's fill and by its outline, on the whole picture, 16 samples a pixel.
 */
void pnb__shape_coverage(const pnb__shape *s, int width, int height, float *fill, float *line);
/* Separable Gaussian blur in place; `scratch` has width*height values. */
void pnb__blur_plane(float *plane, int width, int height, double std, float *scratch);
/* Renders to 8 bits RGB with the scene's noise. `out` is allocated; free with pnb_image_free. */
pnb_status pnb__scene_render(const pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index,
                             pnb_image *out, pnb_error *err);

/* ---- shapes_ambiguity.c ---- */
/* Fills the entropy fields of scene->ambiguity. */
pnb_status pnb__scene_ambiguity(pnb__scene *scene, const pnb_shapes_opts *opts, pnb_error *err);

#endif
