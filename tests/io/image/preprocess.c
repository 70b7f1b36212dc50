/* From any picture to the input of a tower, against what Pillow and torchvision made of the same
 * files (tests/golden/preprocess): decoded and resized pixels agree exactly, normalised tensors to
 * the last bit. Sizes and places by hand. */
#include <glob.h>

#include "penumbra/safetensors.h"
#include "tests/io/image/support.h"

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

/* Pillow 9.4 opens 16-bit grey in mode "I" and clips to 8 bits only when it converts: what
 * Image.resize((20, 12), filter).convert("RGB") makes of data/image/grey16_edges.png. */
static void grey16_is_resized_before_it_saturates(void **state)
{
    (void)state;
    static const char *const names[] = {"bilinear", "bicubic", "lanczos", "box", "hamming"};
    static const pnb_filter filters[] = {PNB_FILTER_BILINEAR, PNB_FILTER_BICUBIC,
                                         PNB_FILTER_LANCZOS, PNB_FILTER_BOX, PNB_FILTER_HAMMING};
    pnb_image in, want, got;
    pnb_image_opts opts = pnb_image_opts_default();
    pnb_preprocess pp = pnb_preprocess_default();
    opts.native = pp.resize_first = true;
    pp.mode = PNB_FIT_SQUASH;
    pp.width = 20;
    pp.height = 12;
    assert_int_equal(pnb_image_load(&in, DATA "grey16_edges.png", &opts, NULL), PNB_OK);
    assert_int_equal(in.mode, PNB_IMAGE_GREY16);
    for (size_t i = 0; i < PNB_COUNT(filters); i++) {
        char path[512];
        snprintf(path, sizeof path, DATA "grey16_edges_%s.png", names[i]);
        assert_int_equal(pnb_image_load(&want, path, NULL, NULL), PNB_OK);
        pp.filter = filters[i];
        assert_int_equal(pnb_preprocess_pixels(&pp, &in, &got, NULL), PNB_OK);
        assert_memory_equal(got.pixels, want.pixels, 3 * 20 * 12);
        pnb_image_free(&got);
        pp.resize_first = false;
        assert_int_equal(pnb_preprocess_pixels(&pp, &in, &got, NULL), PNB_OK);
        assert_memory_not_equal(got.pixels, want.pixels, 3 * 20 * 12);
        pnb_image_free(&got);
        pp.resize_first = true;
        pnb_image_free(&want);
    }
    in.channels = 1;
    assert_int_equal(pnb_preprocess_pixels(&pp, &in, &got, NULL), PNB_ARG);
    pnb_image_free(&in);
}

/* A 1 x 3000 strip grows to 67 million pixels under SHORTEST; only the crop may be computed. */
static void long_strips_stay_cheap(void **state)
{
    (void)state;
    pnb_image strip, out;
    pnb_preprocess pp = pnb_preprocess_default();
    assert_int_equal(pnb_image_create(&strip, 1, 300000, 3, NULL), PNB_OK);
    assert_int_equal(pnb_preprocess_pixels(&pp, &strip, &out, NULL), PNB_OK);
    assert_int_equal(out.width, 224);
    pnb_image_free(&out);
    pnb_image_free(&strip);
    assert_int_equal(pnb_image_create(&strip, 1 << 26, 1, 1, NULL), PNB_OK);
    assert_int_equal(pnb_preprocess_pixels(&pp, &strip, &out, NULL), PNB_LIMIT);
    pnb_image_free(&strip);
}

/* Of a picture whose pixel (x, y) is 10 y + x, NEAREST keeps values: what is seen tells where it
 * lay. */
static void expect_grey(const pnb_preprocess *pp, int width, int height, const char *want)
{
    pnb_image in, out;
    pnb_error err = PNB_ERROR_INIT;
    pnb__buf got = {0};
    assert_ok(pnb_image_create(&in, width, height, 1, &err), &err);
    for (int i = 0; i < width * height; i++)
        in.pixels[i] = (unsigned char)(10 * (i / width) + i % width);
    assert_ok(pnb_preprocess_pixels(pp, &in, &out, &err), &err);
    assert_true(out.width == pp->width && out.height == pp->height && out.channels == 3);
    for (int i = 0; i < out.width * out.height; i++)
        pnb__buf_printf(&got, "%d%s", out.pixels[3 * i], (i + 1) % out.width ? " " : "|");
    assert_string_equal(got.data, want);
    pnb__buf_reset(&got);
    pnb_image_free(&in);
    pnb_image_free(&out);
}

static void places_by_hand(void **state)
{
    (void)state;
    pnb_preprocess pp = pnb_preprocess_default();
    pp.filter = PNB_FILTER_NEAREST;
    pp.width = pp.height = 2;
    expect_grey(&pp, 4, 2, "1 2|11 12|"); /* the shorter side fits, the middle is kept */
    expect_grey(&pp, 2, 4, "10 11|20 21|");
    expect_grey(&pp, 5, 2, "2 3|12 13|"); /* 3 pixels over: round(1.5) = 2 in front */
    pp.centre = PNB_CENTRE_FLOOR;
    expect_grey(&pp, 5, 2, "1 2|11 12|");
    pp.mode = PNB_FIT_SQUASH;
    expect_grey(&pp, 4, 2, "1 3|11 13|");
    pp.mode = PNB_FIT_LONGEST;
    pp.width = pp.height = 4;
    pp.fill = 9;
    expect_grey(&pp, 4, 2, "9 9 9 9|0 1 2 3|10 11 12 13|9 9 9 9|");
    expect_grey(&pp, 4, 1, "9 9 9 9|9 9 9 9|0 1 2 3|9 9 9 9|");
    pp.centre = PNB_CENTRE_ROUND;
    expect_grey(&pp, 4, 1, "9 9 9 9|0 1 2 3|9 9 9 9|9 9 9 9|");
    pp.mode = PNB_FIT_SHORTEST; /* resized to 2, of which 1 is kept */
    pp.width = pp.height = 1;
    pp.resize_to = 2;
    expect_grey(&pp, 4, 4, "11|");
}

static void what_is_refused(void **state)
{
    (void)state;
    pnb_image in, out, none = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_create(&in, 2, 2, 3, NULL), PNB_OK);
    pnb_preprocess pp = pnb_preprocess_default();
    assert_failed(pnb_preprocess_pixels(&pp, &none, &out, &err), &err, PNB_ARG,
                  "the picture is empty");
    for (int i = 0; i < 7; i++) {
        pp = pnb_preprocess_default();
        pp.width = i == 0 ? 0 : i == 1 ? 1 << 20 : pp.width;
        pp.height = i == 1 ? 1 << 20 : pp.height;
        pp.resize_to = i == 2 ? -1 : 0;
        pp.mode = i == 3 ? PNB_N_FITS : pp.mode;
        pp.filter = i == 4 ? PNB_N_FILTERS : pp.filter;
        pp.fill = i == 5 ? 256 : i == 6 ? -1 : 0;
        err = (pnb_error)PNB_ERROR_INIT;
        assert_failed(pnb_preprocess_pixels(&pp, &in, &out, &err), &err, PNB_ARG,
                      i < 3 ? "want 1x1 .. 2^28 pixels" : "out of range");
        assert_null(out.pixels);
    }
    pp = pnb_preprocess_default();
    pp.std[1] = 0;
    pp.width = pp.height = 1;
    float chw[3];
    assert_int_equal(pnb_preprocess_apply(&pp, &in, chw, NULL), PNB_ARG);
    pnb_image_free(&in);
}

/* Every field is in the line, and its length is told where it does not fit. */
static void described_in_one_line(void **state)
{
    (void)state;
    pnb_preprocess pp = {96,   64, 32,           PNB_FIT_LONGEST, PNB_FILTER_BOX, PNB_CENTRE_FLOOR,
                         true, 7,  {0, 0.5f, 1}, {1, 2, 3}};
    static const char want[] =
        "96x64 box longest floor resize_to=32 fill=7 order=resize,rgb mean=0,0.5,1 std=1,2,3";
    char text[200], cut[10];
    assert_int_equal(pnb_preprocess_describe(&pp, text, sizeof text), sizeof want - 1);
    assert_string_equal(text, want);
    assert_int_equal(pnb_preprocess_describe(&pp, cut, sizeof cut), sizeof want - 1);
    assert_string_equal(cut, "96x64 box");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases_agree_exactly),
        cmocka_unit_test(grey16_is_resized_before_it_saturates),
        cmocka_unit_test(long_strips_stay_cheap),
        cmocka_unit_test(places_by_hand),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(described_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
