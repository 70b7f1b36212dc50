/* Captions of the `shapes` set: existential statements with a structured query behind each.
 *
 *   level 0  a star · a red shape · three shapes (exactly)
 *   level 1  a red star
 *   level 2  a small red star · a red star left of a circle · a red star left of a shape
 *   level 3  a small red star at the top left · a small red star left of a large blue ring
 *            ... and a green square (a third shape, anywhere)
 *
 * The objects of a query bind to different shapes of the scene. A statement of level l + 1 is made
 * from one of level l by saying more, so levels are nested by construction. 32 words in all, at
 * most 14 a caption, and those of frames where they are asked for. A scene gets every statement of
 * levels 0 and 1 that is true of it, and a draw of those at levels 2 and 3; which other scenes a
 * caption is true of is decided by pnb__query_matches alone. */
#include "data/synth/shapes/shapes.h"

#include <string.h>

static const char *const RELATION_TEXT[PNB__N_RELATIONS] = {"left of", "right of", "above",
                                                            "below"};
static const char *const PLACE_TEXT[PNB__N_PLACES] = {"at the top left", "at the top right",
                                                      "at the bottom left", "at the bottom right",
                                                      "at the middle"};
static const char *const COUNT_TEXT[PNB__MAX_SHAPES + 1] = {"", "one shape", "two shapes",
                                                            "three shapes"};

/* ---- meaning ------------------------------------------------------------------------------ */

static bool object_fits(const pnb__object *o, const pnb__shape *s)
{
    return (o->form == PNB__ANY || o->form == s->form) &&
           (o->colour == PNB__ANY || o->colour == s->colour) &&
           (o->size == PNB__ANY || o->size == s->size);
}

/* Binds object `k` and the ones after it to shapes not in `used`. */
static bool bind(const pnb__shape_query *q, const pnb__scene *scene, const pnb_shapes_opts *opts,
                 int k, int bound[PNB__MAX_SHAPES])
{
    if (k >= q->n_objects || k >= PNB__MAX_SHAPES)
        return q->relation == PNB__ANY ||
               pnb__shape_relation(&scene->shapes[bound[0]], &scene->shapes[bound[1]],
                                   (pnb__relation)q->relation, opts->width);
    for (int i = 0; i < scene->n_shapes; i++) {
        bool is_used = false;
        for (int j = 0; j < k; j++)
            is_used |= bound[j] == i;
        const pnb__shape *s = &scene->shapes[i];
        if (is_used || !object_fits(&q->objects[k], s))
            continue;
        if (k == 0 && q->place != PNB__ANY &&
            q->place != pnb__shape_place(s, opts->width, opts->height))
            continue;
        bound[k] = i;
        if (bind(q, scene, opts, k + 1, bound))
            return true;
    }
    return false;
}

bool pnb__query_matches(const pnb__shape_query *q, const pnb__scene *scene,
                        const pnb_shapes_opts *opts)
{
    int bound[PNB__MAX_SHAPES] = {0};
    if (q->count && q->count != scene->n_shapes)
        return false;
    return q->n_objects <= scene->n_shapes && bind(q, scene, opts, 0, bound);
}

/* ---- captions of a scene ------------------------------------------------------------------ */

typedef struct query_list {
    pnb__shape_query *items;
    int n;
} query_list;

static const pnb__object OPEN = {PNB__ANY, PNB__ANY, PNB__ANY};

static pnb__shape_query query_of(unsigned char level)
{
    return (pnb__shape_query){
        .level = level, .relation = PNB__ANY, .place = PNB__ANY, .objects = {OPEN, OPEN, OPEN}};
}

static pnb__object object_of(const pnb__shape *s, bool colour, bool size)
{
    return (pnb__object){(unsigned char)s->form, (unsigned char)(colour ? s->colour : PNB__ANY),
                         (unsigned char)(size ? s->size : PNB__ANY)};
}

static void add(query_list *list, const pnb__shape_query *q)
{
    for (int i = 0; i < list->n; i++)
        if (pnb__query_pack(&list->items[i]) == pnb__query_pack(q))
            return;
    list->items[list->n++] = *q;
}

static void add_simple(query_list *list, const pnb__scene *scene)
{
    for (int i = 0; i < scene->n_shapes; i++) {
        pnb__shape_query q = query_of(0);
        q.n_objects = 1;
        q.objects[0].form = (unsigned char)scene->shapes[i].form;
        add(list, &q);
    }
    for (int i = 0; i < scene->n_shapes; i++) {
        pnb__shape_query q = query_of(0);
        q.n_objects = 1;
        q.objects[0].colour = (unsigned char)scene->shapes[i].colour;
        add(list, &q);
    }
    pnb__shape_query count = query_of(0);
    count.count = (unsigned char)scene->n_shapes;
    add(list, &count);
    for (int i = 0; i < scene->n_shapes; i++) {
        pnb__shape_query q = query_of(1);
        q.n_objects = 1;
        q.objects[0] = object_of(&scene->shapes[i], true, false);
        add(list, &q);
    }
}

/* Every true relation between two shapes of the scene, at level 2 or 3. */
static void add_relations(query_list *list, const pnb__scene *scene, const pnb_shapes_opts *opts,
                          unsigned char level, bool third)
{
    for (int i = 0; i < scene->n_shapes; i++)
        for (int j = 0; j < scene->n_shapes; j++)
            for (int r = 0; r < PNB__N_RELATIONS; r++) {
                const pnb__shape *a = &scene->shapes[i], *b = &scene->shapes[j];
                if (i == j || !pnb__shape_relation(a, b, (pnb__relation)r, opts->width))
                    continue;
                pnb__shape_query q = query_of(level);
                q.n_objects = 2;
                q.relation = (unsigned char)r;
                q.objects[0] = object_of(a, true, level == 3);
                q.objects[1] = object_of(b, level == 3, level == 3);
                if (third) {
                    q.n_objects = 3;
                    q.objects[2] = object_of(&scene->shapes[3 - i - j], true, false);
                }
                add(list, &q);
                if (level == 2) {
                    q.objects[1] = OPEN;
                    add(list, &q);
                }
            }
}

/* Keeps `keep` of the items from `first` on, chosen by `r`, in the order they had. */
static void thin(query_list *list, int first, int keep, pnb__rng *r)
{
    int kept = first;
    for (int i = first; i < list->n; i++) {
        int wanted = keep - (kept - first), left = list->n - i;
        if (wanted > 0 && (int)pnb__rng_below(r, (uint64_t)left) < wanted)
            list->items[kept++] = list->items[i];
    }
    list->n = kept;
}

int pnb__scene_queries(const pnb__scene *scene, const pnb_shapes_opts *opts, uint64_t index,
                       pnb__shape_query *out)
{
    /* Relations kept at level 2, and those without a third object at level 3, by shapes. */
    static const int KEEP_LEVEL_2[PNB__MAX_SHAPES + 1] = {0, 0, 3, 5};
    static const int KEEP_LEVEL_3[PNB__MAX_SHAPES + 1] = {0, 0, 4, 2};
    enum { KEEP_THIRD = 8 };
    pnb__shape_query room[128];
    query_list list = {room, 0};
    pnb__rng r;
    pnb__rng_init(&r, opts->seed, (3ULL << 56) | index);
    add_simple(&list, scene);
    for (int i = 0; i < scene->n_shapes; i++) {
        pnb__shape_query q = query_of(2);
        q.n_objects = 1;
        q.objects[0] = object_of(&scene->shapes[i], true, true);
        add(&list, &q);
    }
    int first = list.n;
    add_relations(&list, scene, opts, 2, false);
    thin(&list, first, KEEP_LEVEL_2[scene->n_shapes], &r);
    if (scene->n_shapes == 1) {
        pnb__shape_query q = query_of(3);
        q.n_objects = 1;
        q.objects[0] = object_of(&scene->shapes[0], true, true);
        q.place = (unsigned char)pnb__shape_place(&scene->shapes[0], opts->width, opts->height);
        add(&list, &q);
    }
    first = list.n;
    add_relations(&list, scene, opts, 3, false);
    thin(&list, first, KEEP_LEVEL_3[scene->n_shapes], &r);
    if (scene->n_shapes == 3) {
        first = list.n;
        add_relations(&list, scene, opts, 3, true);
        thin(&list, first, KEEP_THIRD, &r);
    }
    memcpy(out, list.items, (size_t)list.n * sizeof *out);
    return list.n;
}

/* ---- text and identity -------------------------------------------------------------------- */

/* Writes at text + n and returns the new length; every caption fits PNB__QUERY_TEXT. */
static int object_text(char *text, int n, const pnb__object *o)
{
    const char *size = o->size == PNB__ANY ? "" : pnb__size_name(o->size);
    const char *colour = o->colour == PNB__ANY ? "" : pnb__colour_name(o->colour);
    const char *form = o->form == PNB__ANY ? "shape" : pnb__form_name(o->form);
    return n + snprintf(text + n, (size_t)(PNB__QUERY_TEXT - n), "a %s%s%s%s%s", size,
                        *size ? " " : "", colour, *colour ? " " : "", form);
}

void pnb__query_text(const pnb__shape_query *q, char text[PNB__QUERY_TEXT])
{
    int n = 0;
    if (q->count) {
        snprintf(text, PNB__QUERY_TEXT, "%s", COUNT_TEXT[q->count]);
        return;
    }
    n = object_text(text, 0, &q->objects[0]);
    if (q->place != PNB__ANY)
        n += snprintf(text + n, (size_t)(PNB__QUERY_TEXT - n), " %s", PLACE_TEXT[q->place]);
    if (q->relation != PNB__ANY) {
        n += snprintf(text + n, (size_t)(PNB__QUERY_TEXT - n), " %s ", RELATION_TEXT[q->relation]);
        n = object_text(text, n, &q->objects[1]);
    }
    if (q->n_objects == 3) {
        n += snprintf(text + n, (size_t)(PNB__QUERY_TEXT - n), " and ");
        object_text(text, n, &q->objects[2]);
    }
}

/* Before and behind a caption, of 2 to 8 words: what a caption leaves open is not told by its
 * length then. Each is drawn for a caption, and the same wherever it stands. */
static const struct {
    const char *before, *behind;
} frames[] = {{"this shows ", ""},
              {"a picture of ", ""},
              {"somebody has drawn ", " here"},
              {"one can see ", " in this picture"},
              {"look closely and you may see ", ""},
              {"as far as one can tell there may be ", ""}};

void pnb__query_say(const pnb__shape_query *q, const pnb_shapes_opts *opts,
                    char text[PNB__QUERY_TEXT])
{
    char bare[PNB__QUERY_TEXT];
    pnb__rng r;
    pnb__query_text(q, bare);
    pnb__rng_init(&r, opts->seed, (4ULL << 56) | pnb__query_pack(q));
    bool is_framed = pnb__rng_uniform(&r) < opts->wordy;
    size_t f = (size_t)pnb__rng_below(&r, PNB_COUNT(frames));
    snprintf(text, PNB__QUERY_TEXT, "%s%s%s", is_framed ? frames[f].before : "", bare,
             is_framed ? frames[f].behind : "");
}

/* From the top: level 2 bits, count 2, objects 2, relation 3, place 3, three objects of 9. */
uint64_t pnb__query_pack(const pnb__shape_query *q)
{
    uint64_t packed = q->level;
    packed = packed << 2 | q->count;
    packed = packed << 2 | q->n_objects;
    packed = packed << 3 | q->relation;
    packed = packed << 3 | q->place;
    for (int i = 0; i < PNB__MAX_SHAPES; i++) {
        packed = packed << 3 | q->objects[i].colour;
        packed = packed << 3 | q->objects[i].form;
        packed = packed << 3 | q->objects[i].size;
    }
    return packed;
}

static unsigned char take(uint64_t *packed, unsigned bits)
{
    unsigned char value = (unsigned char)(*packed & ((1U << bits) - 1U));
    *packed >>= bits;
    return value;
}

void pnb__query_unpack(uint64_t packed, pnb__shape_query *q)
{
    for (int i = PNB__MAX_SHAPES - 1; i >= 0; i--) {
        q->objects[i].size = take(&packed, 3);
        q->objects[i].form = take(&packed, 3);
        q->objects[i].colour = take(&packed, 3);
    }
    q->place = take(&packed, 3);
    q->relation = take(&packed, 3);
    q->n_objects = take(&packed, 2);
    q->count = take(&packed, 2);
    q->level = take(&packed, 2);
}

void pnb__query_id(uint64_t packed, char id[PNB__QUERY_ID])
{
    snprintf(id, PNB__QUERY_ID, "s%u-%010llx", (unsigned)(packed >> 37),
             (unsigned long long)(packed & ((1ULL << 37) - 1)));
}
