/* Every case of tests/golden/preprocess: what Pillow and torchvision made of the same files.
 * Decoded and resized pixels must agree exactly, normalised tensors to the last bit. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "penumbra/image.h"
#include "penumbra/safetensors.h"

typedef struct golden {
    char dir[512], image_path[640];
    pnb_safetensors *tensors;
    int n_compared;
} golden;

static void load_image(const golden *g, bool native, bool exif, pnb_image *out)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = native;
    opts.exif = exif;
    if (pnb_image_load(out, g->image_path, &opts, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

static void compare_pixels(golden *g, const char *name, const pnb_image *got)
{
    const pnb_array_view *want = pnb_safetensors_find(g->tensors, name);
    if (want->shape[0] != got->height || want->shape[1] != got->width || got->channels != 3)
        fail_msg("%s %s: %dx%dx%d, want %dx%d", g->dir, name, got->width, got->height,
                 got->channels, (int)want->shape[1], (int)want->shape[0]);
    const unsigned char *w = want->data;
    for (size_t i = 0; i < want->n_bytes; i++)
        if (w[i] != got->pixels[i])
            fail_msg("%s %s: byte %zu is %d, want %d", g->dir, name, i, got->pixels[i], w[i]);
    g->n_compared++;
}

static void compare_tensor(golden *g, const char *name, const float *got)
{
    const pnb_array_view *want = pnb_safetensors_find(g->tensors, name);
    const float *w = want->data;
    for (size_t i = 0; i < want->n_bytes / sizeof *w; i++)
        if (!(got[i] == w[i]))
            fail_msg("%s %s: value %zu is %.9g, want %.9g", g->dir, name, i, (double)got[i],
                     (double)w[i]);
    g->n_compared++;
}

/* What the first word of a tensor's name stands for. */
static bool preprocess_for(const char *kind, int size, pnb_preprocess *pp)
{
    *pp = pnb_preprocess_default();
    pp->width = pp->height = size;
    if (strcmp(kind, "clip") == 0) {
        pp->resize_first = true;
    } else if (strcmp(kind, "rgbfirst") == 0) {
        return true;
    } else if (strcmp(kind, "hfclip") == 0) {
        pp->centre = PNB_CENTRE_FLOOR;
    } else if (strcmp(kind, "longest") == 0) {
        pp->mode = PNB_FIT_LONGEST;
    } else if (strcmp(kind, "siglip") == 0) {
        pp->mode = PNB_FIT_SQUASH;
        for (int c = 0; c < 3; c++)
            pp->mean[c] = pp->std[c] = 0.5f;
    } else {
        return false;
    }
    return true;
}

static void check_bilinear(golden *g, const char *name)
{
    const pnb_array_view *want = pnb_safetensors_find(g->tensors, name);
    pnb_image in, out;
    load_image(g, false, false, &in);
    assert_int_equal(pnb_image_resize(&out, &in, (int)want->shape[1], (int)want->shape[0],
                                      PNB_FILTER_BILINEAR, NULL, NULL),
                     PNB_OK);
    compare_pixels(g, name, &out);
    pnb_image_free(&in);
    pnb_image_free(&out);
}

static void check_pipeline(golden *g, const char *name, const char *kind, int size, bool exif)
{
    pnb_preprocess pp;
    pnb_image in, out;
    if (!preprocess_for(kind, size, &pp))
        fail_msg("%s: tensor %s is of an unknown kind", g->dir, name);
    load_image(g, pp.resize_first, exif, &in);
    if (strstr(name, ".tensor") != NULL) {
        float *chw = malloc(sizeof(float) * 3 * (size_t)size * (size_t)size);
        assert_int_equal(pnb_preprocess_apply(&pp, &in, chw, NULL), PNB_OK);
        compare_tensor(g, name, chw);
        free(chw);
    } else {
        assert_int_equal(pnb_preprocess_pixels(&pp, &in, &out, NULL), PNB_OK);
        compare_pixels(g, name, &out);
        pnb_image_free(&out);
    }
    pnb_image_free(&in);
}

static void check_one(golden *g, const char *name)
{
    char kind[64];
    int size = 0;
    pnb_image image;
    bool turned = strncmp(name, "oriented.", 9) == 0;
    const char *rest = turned ? name + 9 : name;
    if (strcmp(rest, "decoded") == 0) {
        load_image(g, false, false, &image);
        compare_pixels(g, name, &image);
        pnb_image_free(&image);
    } else if (strcmp(rest, "size_wh") == 0) {
        load_image(g, false, true, &image);
        int64_t want[2];
        assert_int_equal(pnb_array_to_i64(pnb_safetensors_find(g->tensors, name), want, NULL),
                         PNB_OK);
        assert_int_equal(image.width, want[0]);
        assert_int_equal(image.height, want[1]);
        pnb_image_free(&image);
        g->n_compared++;
    } else if (strncmp(rest, "bilinear_short", 14) == 0) {
        check_bilinear(g, name);
    } else if (sscanf(rest, "%63[a-z]%d.", kind, &size) == 2) {
        check_pipeline(g, name, kind, size, turned);
    } else {
        fail_msg("%s: tensor %s is of an unknown kind", g->dir, name);
    }
}

static void check_case(const char *image_path, int *n_compared)
{
    golden g = {.n_compared = 0};
    char tensors[1024];
    pnb_error err = PNB_ERROR_INIT;
    snprintf(g.image_path, sizeof g.image_path, "%s", image_path);
    snprintf(g.dir, sizeof g.dir, "%.*s", (int)(strrchr(image_path, '/') - image_path), image_path);
    snprintf(tensors, sizeof tensors, "%s/tensors.safetensors", g.dir);
    if (pnb_safetensors_open(&g.tensors, tensors, &err) != PNB_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < pnb_safetensors_count(g.tensors); i++)
        check_one(&g, pnb_safetensors_at(g.tensors, i)->name);
    pnb_safetensors_free(g.tensors);
    *n_compared += g.n_compared;
}

static void all_cases_agree_exactly(void **state)
{
    (void)state;
    glob_t found;
    int n_compared = 0;
    assert_int_equal(glob(PNB_SOURCE_DIR "/tests/golden/preprocess/*/image.*", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_case(found.gl_pathv[i], &n_compared);
    assert_int_equal(found.gl_pathc, 11);
    assert_true(n_compared >= 80);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases_agree_exactly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
