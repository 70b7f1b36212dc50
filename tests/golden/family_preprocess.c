/* Golden family preprocess: decodes the case's picture and brings it into the form that the name of
 * each wanted tensor tells.
 *
 *   decoded, size_wh        the RGB picture as the file holds it, and its size
 *   clip{n}                 shorter side to n, centre crop, in the file's own mode, then RGB
 *   rgbfirst{n}, hfclip{n}  the same from RGB; the crop's offset rounded, or (d // 2)
 *   siglip{n}, squash{n}    straight to n x n, from RGB
 *   longest{n}              longer side to n, centred on black, from RGB
 *   {filter}_short{n}       shorter side to n, no crop, from RGB
 *
 * ".u8" are pixels, ".tensor" is normalised; "oriented." applies the EXIF orientation first. */
#include "tests/golden/golden.h"

#include <string.h>

#include "penumbra/image.h"

typedef struct form {
    char kind[64];
    bool is_oriented, is_tensor;
    int width, height;
} form;

/* ---- what a name wants ---- */

/* The picture is the one file of the case that is a picture. */
static char *image_path(const golden_case *c, pnb_error *err)
{
    const json_t *files = json_object_get(c->root, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *name = json_string_value(json_array_get(files, i));
        if (name != NULL && pnb__starts_with(name, "image."))
            return pnb__path_join(c->dir, name);
    }
    pnb__fail(err, PNB_NOT_FOUND, "files of the case hold no image.*");
    return NULL;
}

static pnb_status read_form(const golden_case *c, const char *name, form *f, pnb_error *err)
{
    const pnb_array_view *view = golden_find(c, name);
    const char *rest = name;
    *f = (form){0};
    f->is_oriented = pnb__starts_with(name, "oriented.");
    if (f->is_oriented)
        rest += strlen("oriented.");
    size_t n = strcspn(rest, ".0123456789");
    snprintf(f->kind, sizeof f->kind, "%.*s", (int)n, rest);
    f->is_tensor = pnb__ends_with(name, ".tensor");
    if (view == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "the case has no tensor %s", name);
    if (view->n_dims == 3) {
        f->height = (int)view->shape[f->is_tensor ? 1 : 0];
        f->width = (int)view->shape[f->is_tensor ? 2 : 1];
    }
    return PNB_OK;
}

static bool read_triple(const golden_case *c, const char *key, float out[3])
{
    const json_t *values = golden_value(c, key);
    for (size_t i = 0; i < 3 && json_array_size(values) == 3; i++)
        out[i] = (float)json_number_value(json_array_get(values, i));
    return json_array_size(values) == 3;
}

static pnb_status preprocess_of(const golden_case *c, const form *f, pnb_preprocess *pp,
                                pnb_error *err)
{
    *pp = pnb_preprocess_default();
    pp->width = f->width;
    pp->height = f->height;
    read_triple(c, "clip_mean", pp->mean);
    read_triple(c, "clip_std", pp->std);
    if (strcmp(f->kind, "clip") == 0) {
        pp->resize_first = true;
    } else if (strcmp(f->kind, "hfclip") == 0) {
        pp->centre = PNB_CENTRE_FLOOR;
    } else if (strcmp(f->kind, "longest") == 0) {
        pp->mode = PNB_FIT_LONGEST;
    } else if (strcmp(f->kind, "siglip") == 0 || strcmp(f->kind, "squash") == 0) {
        pp->mode = PNB_FIT_SQUASH;
        for (int i = 0; i < 3; i++)
            pp->mean[i] = pp->std[i] = 0.5f;
    } else if (strcmp(f->kind, "rgbfirst") != 0) {
        return pnb__fail(err, PNB_UNSUPPORTED, "the runner does not know what %s is", f->kind);
    }
    return PNB_OK;
}

/* Filter of a "{filter}_short" name. */
static bool filter_of(const char *kind, pnb_filter *filter)
{
    size_t n = strcspn(kind, "_");
    if (strcmp(kind + n, "_short") != 0)
        return false;
    for (int i = 0; pnb_filter_name((pnb_filter)i) != NULL; i++) {
        const char *name = pnb_filter_name((pnb_filter)i);
        if (strlen(name) == n && memcmp(name, kind, n) == 0) {
            *filter = (pnb_filter)i;
            return true;
        }
    }
    return false;
}

/* ---- making it ---- */

static void give_pixels(golden_case *c, const char *name, const pnb_image *image)
{
    size_t n = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    double *values = pnb__alloc_array(n + 1, sizeof *values);
    for (size_t i = 0; values != NULL && i < n; i++)
        values[i] = image->pixels[i];
    if (values != NULL)
        golden_give(c, name, values, n);
    pnb__free(values);
}

static pnb_status give_form(golden_case *c, const char *path, const char *name, const form *f,
                            pnb_error *err)
{
    pnb_image in = {0}, out = {0};
    pnb_image_opts opts = pnb_image_opts_default();
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_filter filter = PNB_FILTER_BICUBIC;
    float *chw = NULL;
    pnb_status status;
    bool is_whole = strcmp(f->kind, "decoded") == 0 || strcmp(f->kind, "size_wh") == 0;
    bool is_short = filter_of(f->kind, &filter);
    if (!is_whole && !is_short)
        PNB_TRY(preprocess_of(c, f, &pp, err));
    opts.native = !is_whole && !is_short && pp.resize_first;
    opts.exif = f->is_oriented;
    PNB_TRY(pnb_image_load(&in, path, &opts, err));
    if (strcmp(f->kind, "size_wh") == 0) {
        golden_give(c, name, (const double[]){in.width, in.height}, 2);
    } else if (is_whole) {
        give_pixels(c, name, &in);
    } else if (is_short) {
        PNB_TRY(pnb_image_resize(&out, &in, f->width, f->height, filter, NULL, err));
        give_pixels(c, name, &out);
    } else if (f->is_tensor) {
        size_t n = 3 * (size_t)f->width * (size_t)f->height;
        chw = pnb__alloc_array(n + 1, sizeof *chw);
        status = chw != NULL ? pnb_preprocess_apply(&pp, &in, chw, err)
                             : pnb__fail_nomem(err, n * sizeof *chw);
        if (status == PNB_OK)
            golden_give_f32(c, name, chw, n);
    } else {
        PNB_TRY(pnb_preprocess_pixels(&pp, &in, &out, err));
        give_pixels(c, name, &out);
    }
done:
    pnb__free(chw);
    pnb_image_free(&in);
    pnb_image_free(&out);
    return status;
}

pnb_status golden_family_preprocess(golden_case *c, pnb_error *err)
{
    char *path = image_path(c, err);
    pnb_status status = path != NULL ? PNB_OK : PNB_NOT_FOUND;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(c->root, "tensors"), name, value)
    {
        form f;
        if (status != PNB_OK || !golden_wants(c, name))
            continue;
        status = read_form(c, name, &f, err);
        if (status == PNB_OK)
            status = give_form(c, path, name, &f, err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "%s", name);
    }
    pnb__free(path);
    return status;
}
