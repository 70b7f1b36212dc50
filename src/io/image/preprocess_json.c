/* Preprocessing from configuration files: preprocessor_config.json of Hugging Face in its old form
 * ("size": 224) and its new one ("size": {"shortest_edge": 224}), and the "preprocess_cfg" of
 * open_clip_config.json.
 *
 * Written is the new form; what it has no word for (longest, fill, centre rule, order) stands in an
 * object "penumbra" that other readers ignore. What cannot be followed exactly is refused by name,
 * because a wrong resize changes embeddings without any sign. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "io/image/formats/codec.h"
#include "io/json/json.h"

#define MAX_CONFIG_BYTES ((size_t)16 << 20)
#define MAX_SIDE 16384

/* PIL's numbers: 0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, 4 box, 5 hamming. */
static const pnb_filter pil_filters[] = {PNB_FILTER_NEAREST,  PNB_FILTER_LANCZOS,
                                         PNB_FILTER_BILINEAR, PNB_FILTER_BICUBIC,
                                         PNB_FILTER_BOX,      PNB_FILTER_HAMMING};

/* What Hugging Face's classes take for keys that a file leaves out. */
typedef struct processor {
    const char *prefix; /* of image_processor_type or feature_extractor_type */
    int resample;
    bool is_square;     /* a number as "size" means both sides, and there is no crop */
    bool has_half_mean; /* mean and std 0.5; otherwise OpenAI's */
} processor;

static const processor processors[] = {
    {"CLIPImageProcessor", 3, false, false}, {"CLIPFeatureExtractor", 3, false, false},
    {"SiglipImageProcessor", 3, true, true}, {"ViTImageProcessor", 2, true, true},
    {"ViTFeatureExtractor", 2, true, true},
};
#define DEFAULT_SIDE 224 /* of all of them */

/* A configuration being read, and what it did not say. */
typedef struct reading {
    pnb__jobj *o;
    pnb_preprocess *pp;
    const processor *class; /* NULL when the file names none of those above */
    pnb__buf notes;
    pnb_error *err;
} reading;

static void note(reading *r, const char *key, const char *value)
{
    pnb__buf_printf(&r->notes, "%s%s %s", r->notes.size > 0 ? ", " : "", key, value);
}

static int pil_number(pnb_filter filter)
{
    for (size_t i = 0; i < PNB_COUNT(pil_filters); i++)
        if (pil_filters[i] == filter)
            return (int)i;
    return 3;
}

static int side_of(pnb__jobj *o, const char *key, pnb_error *err)
{
    return (int)pnb__json_get_int_in(o, key, 0, 1, MAX_SIDE, err);
}

/* "size" or "crop_size": a number, or an object. Absent parts stay 0. */
typedef struct size_spec {
    int shortest, longest, width, height;
    bool is_number;
} size_spec;

static size_spec read_size(pnb__jobj *o, const char *key, pnb_error *err)
{
    size_spec spec = {0};
    json_t *value = json_object_get(o->obj, key);
    if (json_is_object(value)) {
        pnb__jobj inner = pnb__json_object(value, key, err);
        spec.shortest = side_of(&inner, "shortest_edge", err);
        spec.longest = side_of(&inner, "longest_edge", err);
        spec.width = side_of(&inner, "width", err);
        spec.height = side_of(&inner, "height", err);
        if (o->status == PNB_OK)
            o->status = inner.status;
    } else if (value != NULL) {
        spec.is_number = true;
        spec.shortest = spec.width = spec.height = side_of(o, key, err);
    }
    return spec;
}

/* Mean and standard deviation under these keys; `is_half` tells what stands in for absent ones. */
static void read_moments(reading *r, pnb__jobj *o, const char *mean, const char *std, bool is_half)
{
    const char *assumed = is_half ? "0.5" : "OpenAI's";
    for (int c = 0; c < 3 && is_half; c++)
        r->pp->mean[c] = r->pp->std[c] = 0.5f;
    if (!pnb__json_has(o, mean))
        note(r, mean, assumed);
    if (!pnb__json_has(o, std))
        note(r, std, assumed);
    pnb__json_get_floats(o, mean, r->pp->mean, 3, r->err);
    pnb__json_get_floats(o, std, r->pp->std, 3, r->err);
}

static pnb_status check_switches(reading *r)
{
    pnb__jobj *o = r->o;
    bool resize = pnb__json_get_bool(o, "do_resize", true, r->err);
    bool rescale = pnb__json_get_bool(o, "do_rescale", true, r->err);
    bool normalize = pnb__json_get_bool(o, "do_normalize", true, r->err);
    double factor = pnb__json_get_double(o, "rescale_factor", 1.0 / 255, r->err);
    if (o->status != PNB_OK)
        return o->status;
    if (!resize || !rescale || fabs(factor * 255 - 1) > 1e-4)
        return pnb__fail(r->err, PNB_UNSUPPORTED,
                         "%s: do_resize %s, do_rescale %s, rescale_factor %g: only resizing and "
                         "1/255 are known",
                         o->where, resize ? "true" : "false", rescale ? "true" : "false", factor);
    for (int c = 0; c < 3 && !normalize; c++) {
        r->pp->mean[c] = 0;
        r->pp->std[c] = 1;
    }
    if (normalize)
        read_moments(r, o, "image_mean", "image_std", r->class != NULL && r->class->has_half_mean);
    return o->status;
}

/* Absent sizes and the meaning of a number, as the class has them. */
static void complete_sizes(reading *r, size_spec *size, size_spec *crop, bool crops)
{
    if (!pnb__json_has(r->o, "size")) {
        size->is_number = true;
        size->shortest = size->width = size->height = DEFAULT_SIDE;
        note(r, "size", "224");
    }
    if (r->class->is_square) {
        size->shortest = 0;
        *crop = (size_spec){0};
    } else if (size->is_number) {
        size->width = size->height = 0;
    }
    if (crops && crop->width == 0 && size->longest == 0) {
        crop->width = crop->height = DEFAULT_SIDE;
        note(r, "crop_size", "224");
    }
}

static pnb_status read_geometry(reading *r)
{
    pnb__jobj *o = r->o;
    pnb_preprocess *pp = r->pp;
    size_spec size = read_size(o, "size", r->err), crop = read_size(o, "crop_size", r->err);
    bool has_crop = crop.width > 0 && crop.height > 0;
    bool is_exact = size.width > 0 && size.height > 0 && !size.is_number;
    bool crops =
        pnb__json_get_bool(o, "do_center_crop", r->class != NULL || has_crop || !is_exact, r->err);
    if (o->status != PNB_OK)
        return o->status;
    if (r->class != NULL) {
        crops = crops && !r->class->is_square;
        complete_sizes(r, &size, &crop, crops);
        has_crop = crop.width > 0 && crop.height > 0;
    }
    if (crops && size.shortest > 0) {
        pp->mode = PNB_FIT_SHORTEST;
        pp->width = has_crop ? crop.width : size.shortest;
        pp->height = has_crop ? crop.height : size.shortest;
        pp->resize_to = size.shortest;
    } else if (size.width > 0 && size.height > 0 &&
               (!crops || !has_crop || (crop.width == size.width && crop.height == size.height))) {
        pp->mode = PNB_FIT_SQUASH;
        pp->width = size.width;
        pp->height = size.height;
    } else if (size.longest > 0 && has_crop) {
        pp->mode = PNB_FIT_LONGEST;
        pp->width = crop.width;
        pp->height = crop.height;
        pp->resize_to = size.longest;
    } else if (json_object_get(o->obj, "size") != NULL || r->class != NULL) {
        return pnb__fail(r->err, PNB_UNSUPPORTED,
                         "%s: \"size\" and \"crop_size\" do not fix one size for every picture",
                         o->where);
    } else {
        note(r, "size", "224");
    }
    if (pp->resize_to == pp->width && pp->width == pp->height)
        pp->resize_to = 0;
    return PNB_OK;
}

/* Into an enum that counts from 0. */
static pnb_status read_choice(pnb__jobj *o, const char *key, const char *names, void *out,
                              pnb_error *err)
{
    const char *name = pnb__json_get_string(o, key, NULL, err);
    if (name == NULL)
        return o->status;
    if (pnb__name_choose(out, key, names, name, NULL) == PNB_OK)
        return PNB_OK;
    return pnb__fail(err, PNB_UNSUPPORTED, "%s: %s \"%s\" is not known", o->where, key, name);
}

/* The object "penumbra": the exact fields, over what was guessed from the rest. */
static pnb_status read_own(pnb__jobj *o, pnb_preprocess *pp, pnb_error *err)
{
    json_t *value = pnb__json_get_object(o, "penumbra", err);
    if (value == NULL)
        return o->status;
    pnb__jobj own = pnb__json_object(value, "penumbra", err);
    int mode = (int)pp->mode, centre = (int)pp->centre;
    pnb_status status = read_choice(&own, "mode", PNB_NAMES(PNB_FIT_LIST), &mode, err);
    if (status == PNB_OK)
        status = read_choice(&own, "centre", "round\0floor\0", &centre, err);
    if (status != PNB_OK)
        return status;
    pp->mode = (pnb_fit)mode;
    pp->centre = (pnb_centre)centre;
    pp->width = (int)pnb__json_get_int_in(&own, "width", pp->width, 1, MAX_SIDE, err);
    pp->height = (int)pnb__json_get_int_in(&own, "height", pp->height, 1, MAX_SIDE, err);
    pp->resize_to = (int)pnb__json_get_int_in(&own, "resize_to", pp->resize_to, 0, MAX_SIDE, err);
    pp->fill = (int)pnb__json_get_int_in(&own, "fill", pp->fill, 0, 255, err);
    pp->resize_first = pnb__json_get_bool(&own, "resize_first", pp->resize_first, err);
    return own.status;
}

/* The class that the file names; it decides what absent keys mean. */
static pnb_status find_class(reading *r)
{
    const char *name = pnb__json_get_string(r->o, "image_processor_type", NULL, r->err);
    if (name == NULL)
        name = pnb__json_get_string(r->o, "feature_extractor_type", NULL, r->err);
    for (size_t i = 0; name != NULL && i < PNB_COUNT(processors); i++)
        if (pnb__starts_with(name, processors[i].prefix))
            r->class = &processors[i];
    if (pnb__json_has(r->o, "max_num_patches"))
        return pnb__fail(r->err, PNB_UNSUPPORTED,
                         "%s: max_num_patches: pictures of varying size are not supported",
                         r->o->where);
    if (r->class == NULL && !pnb__json_has(r->o, "penumbra"))
        note(r, "image_processor_type", "CLIPImageProcessor");
    return r->o->status;
}

static pnb_status read_hugging_face(reading *r)
{
    pnb_status status;
    pnb__jobj *o = r->o;
    r->pp->centre = PNB_CENTRE_FLOOR;
    PNB_TRY(find_class(r));
    int64_t resample =
        pnb__json_get_int(o, "resample", r->class != NULL ? r->class->resample : 3, r->err);
    if (o->status != PNB_OK)
        return o->status;
    if (resample < 0 || resample >= (int64_t)PNB_COUNT(pil_filters))
        return pnb__fail(r->err, PNB_UNSUPPORTED,
                         "%s: resample %lld: want 0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, "
                         "4 box or 5 hamming",
                         o->where, (long long)resample);
    r->pp->filter = pil_filters[resample];
    if (!pnb__json_has(o, "resample"))
        note(r, "resample", pnb_filter_name(r->pp->filter));
    PNB_TRY(check_switches(r));
    PNB_TRY(read_geometry(r));
    PNB_TRY(read_own(o, r->pp, r->err));
done:
    return status;
}

/* A size of open_clip: a number or [height, width]. */
static pnb_status read_pair(pnb__jobj *o, const char *key, pnb_preprocess *pp, pnb_error *err)
{
    json_t *value = json_object_get(o->obj, key);
    if (value == NULL || json_is_null(value))
        return PNB_OK;
    json_t *h = json_is_array(value) ? json_array_get(value, 0) : value;
    json_t *w = json_is_array(value) ? json_array_get(value, 1) : value;
    bool is_ok = json_is_integer(h) && json_is_integer(w) && json_integer_value(h) >= 1 &&
                 json_integer_value(w) >= 1 && json_integer_value(h) <= MAX_SIDE &&
                 json_integer_value(w) <= MAX_SIDE;
    if (!is_ok)
        return pnb__fail(err, PNB_FORMAT, "%s: %s: want a size or [height, width] up to %d",
                         o->where, key, MAX_SIDE);
    pp->height = (int)json_integer_value(h);
    pp->width = (int)json_integer_value(w);
    return PNB_OK;
}

static pnb_status read_fill(pnb__jobj *o, pnb_preprocess *pp, pnb_error *err)
{
    json_t *value = json_object_get(o->obj, "fill_color");
    if (json_is_array(value)) {
        json_t *first = json_array_get(value, 0);
        for (size_t i = 1; i < json_array_size(value); i++)
            if (!json_equal(first, json_array_get(value, i)))
                return pnb__fail(err, PNB_UNSUPPORTED, "%s: fill_color is not a grey", o->where);
        value = first;
    }
    if (value == NULL || json_is_null(value))
        return PNB_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 255)
        return pnb__fail(err, PNB_FORMAT, "%s: fill_color: want 0..255", o->where);
    pp->fill = (int)json_integer_value(value);
    return PNB_OK;
}

/* open_clip takes "random" as bicubic when it does not train. */
static pnb_status read_interpolation(reading *r, pnb__jobj *o)
{
    static const char names[] = "nearest\0bilinear\0bicubic\0lanczos\0random\0";
    int filter = (int)r->pp->filter;
    pnb_status status = read_choice(o, "interpolation", names, &filter, r->err);
    r->pp->filter = filter < 4 ? (pnb_filter)filter : PNB_FILTER_BICUBIC;
    return status;
}

/* open_clip sets the size to the image tower's, whatever preprocess_cfg says. */
static pnb_status read_open_clip(reading *r)
{
    pnb_status status;
    pnb_error *err = r->err;
    pnb_preprocess *pp = r->pp;
    int mode = (int)pp->mode, colour = 0;
    pp->resize_first = true;
    json_t *empty = json_object(), *config = json_object_get(r->o->obj, "preprocess_cfg");
    pnb__jobj o = pnb__json_object(config != NULL ? config : empty, "preprocess_cfg", err);
    PNB_TRY(o.status);
    json_t *model = json_object_get(r->o->obj, "model_cfg");
    json_t *vision = json_object_get(model, "vision_cfg");
    bool has_tower = json_object_get(vision, "image_size") != NULL;
    PNB_TRY(read_pair(&o, "size", pp, err));
    if (has_tower) {
        pnb__jobj tower = pnb__json_object(vision, "vision_cfg", err);
        PNB_TRY(read_pair(&tower, "image_size", pp, err));
    } else if (!pnb__json_has(&o, "size")) {
        note(r, "size", "224");
    }
    PNB_TRY(read_fill(&o, pp, err));
    PNB_TRY(read_choice(&o, "mode", "RGB\0", &colour, err));
    PNB_TRY(read_choice(&o, "resize_mode", PNB_NAMES(PNB_FIT_LIST), &mode, err));
    PNB_TRY(read_interpolation(r, &o));
    pp->mode = (pnb_fit)mode;
    if (!pnb__json_has(&o, "interpolation"))
        note(r, "interpolation", "bicubic");
    if (!pnb__json_has(&o, "resize_mode"))
        note(r, "resize_mode", "shortest");
    read_moments(r, &o, "mean", "std", false);
    status = o.status;
done:
    json_decref(empty);
    return status;
}

/* Name of the first of these files that the folder has, or NULL. */
static const char *find_config(const char *dir)
{
    static const char *const names[] = {"preprocessor_config.json", "open_clip_config.json"};
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        if (pnb__path_has_file(dir, names[i]))
            return names[i];
    return NULL;
}

static pnb_status check_std(const pnb_preprocess *pp, const char *where, pnb_error *err)
{
    for (int c = 0; c < 3; c++)
        if (!(pp->std[c] > 0) || !isfinite(pp->std[c]) || !isfinite(pp->mean[c]))
            return pnb__fail(err, PNB_FORMAT, "%s: mean %g, std %g: want finite, std > 0", where,
                             (double)pp->mean[c], (double)pp->std[c]);
    return PNB_OK;
}

pnb_status pnb_preprocess_load_noted(pnb_preprocess *out, const char *path, char *assumed,
                                     size_t size, pnb_error *err)
{
    pnb_status status = PNB_OK;
    json_t *root = NULL;
    bool is_dir = pnb__path_is_dir(path);
    const char *name = is_dir ? find_config(path) : NULL;
    pnb_preprocess pp = pnb_preprocess_default();
    pnb__jobj o = {0};
    reading r = {.o = &o, .pp = &pp, .err = err};
    if (is_dir && name == NULL)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s: neither preprocessor_config.json nor open_clip_config.json there",
                         path);
    char *found = is_dir ? pnb__path_join(path, name) : pnb__strdup(path);
    if (found == NULL)
        return pnb__fail_nomem(err, strlen(path));
    PNB_TRY(pnb__json_load_file(&root, found, MAX_CONFIG_BYTES, err));
    o = pnb__json_object(root, found, err);
    PNB_TRY(o.status);
    if (pnb__json_has(&o, "preprocess_cfg") || pnb__json_has(&o, "model_cfg"))
        PNB_TRY(read_open_clip(&r));
    else
        PNB_TRY(read_hugging_face(&r));
    PNB_TRY(check_std(&pp, found, err));
    if (r.notes.failed) {
        status = pnb__fail_nomem(err, r.notes.size);
        goto done;
    }
    if (assumed != NULL && size > 0)
        snprintf(assumed, size, "%s", r.notes.data != NULL ? r.notes.data : "");
    *out = pp;
done:
    pnb__buf_reset(&r.notes);
    json_decref(root);
    pnb__free(found);
    return status;
}

pnb_status pnb_preprocess_load(pnb_preprocess *out, const char *path, pnb_error *err)
{
    return pnb_preprocess_load_noted(out, path, NULL, 0, err);
}

static void write_floats(pnb__buf *b, const char *key, const float v[3])
{
    pnb__buf_printf(b, "  \"%s\": [%.9g, %.9g, %.9g],\n", key, (double)v[0], (double)v[1],
                    (double)v[2]);
}

/* What is written must be read again. */
static pnb_status check_fields(const pnb_preprocess *pp, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    if ((unsigned)pp->mode >= PNB_N_FITS || pnb_filter_name(pp->filter) == NULL)
        return pnb__fail(err, PNB_ARG, "preprocess: mode %d or filter %d out of range",
                         (int)pp->mode, (int)pp->filter);
    if (pp->width < 1 || pp->width > MAX_SIDE || pp->height < 1 || pp->height > MAX_SIDE ||
        pp->resize_to < 0 || pp->resize_to > MAX_SIDE || pp->fill < 0 || pp->fill > 255)
        return pnb__fail(err, PNB_ARG,
                         "preprocess: %dx%d, resize_to %d, fill %d: want sides of 1 to %d, 0 to "
                         "255",
                         pp->width, pp->height, pp->resize_to, pp->fill, MAX_SIDE);
    if (check_std(pp, "preprocess", &why) != PNB_OK)
        return pnb__fail(err, PNB_ARG, "%s", why.text);
    return PNB_OK;
}

pnb_status pnb_preprocess_save(const pnb_preprocess *pp, const char *path, pnb_error *err)
{
    pnb__buf b = {0};
    const char *key = pp->mode == PNB_FIT_LONGEST ? "longest_edge" : "shortest_edge";
    pnb_status status = check_fields(pp, err);
    if (status != PNB_OK)
        return status;
    pnb__buf_printf(&b, "{\n  \"crop_size\": {\"height\": %d, \"width\": %d},\n", pp->height,
                    pp->width);
    pnb__buf_printf(&b, "  \"do_center_crop\": %s,\n",
                    pp->mode == PNB_FIT_SQUASH ? "false" : "true");
    pnb__buf_puts(&b, "  \"do_convert_rgb\": true,\n  \"do_normalize\": true,\n"
                      "  \"do_rescale\": true,\n  \"do_resize\": true,\n");
    write_floats(&b, "image_mean", pp->mean);
    write_floats(&b, "image_std", pp->std);
    pnb__buf_printf(&b,
                    "  \"penumbra\": {\"mode\": \"%s\", \"centre\": \"%s\", \"width\": %d, "
                    "\"height\": %d, \"resize_to\": %d, \"fill\": %d, \"resize_first\": %s},\n",
                    pnb__name_at(PNB_NAMES(PNB_FIT_LIST), pp->mode, NULL),
                    pp->centre == PNB_CENTRE_FLOOR ? "floor" : "round", pp->width, pp->height,
                    pp->resize_to, pp->fill, pp->resize_first ? "true" : "false");
    pnb__buf_printf(&b, "  \"resample\": %d,\n  \"rescale_factor\": 0.00392156862745098,\n",
                    pil_number(pp->filter));
    if (pp->mode == PNB_FIT_SQUASH)
        pnb__buf_printf(&b, "  \"size\": {\"height\": %d, \"width\": %d}\n}\n", pp->height,
                        pp->width);
    else
        pnb__buf_printf(&b, "  \"size\": {\"%s\": %d}\n}\n", key,
                        pp->resize_to > 0 ? pp->resize_to : PNB_MIN(pp->width, pp->height));
    return pnb__buf_write(&b, path, err);
}
