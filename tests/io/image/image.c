/* Pictures as records: made, cropped, turned into RGB and into floats; files that are none. */
#include <sys/stat.h>

#include "tests/io/image/support.h"

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    pnb_image in, out, none = {0};
    float chw[3 * 16], mean[3] = {0}, std[3] = {1, 1, 0};
    assert_int_equal(pnb_image_create(&in, 0, 4, 3, NULL), PNB_ARG);
    assert_int_equal(pnb_image_create(&in, 4, 4, 5, NULL), PNB_ARG);
    assert_int_equal(pnb_image_create(&in, 4, 4, 3, NULL), PNB_OK);
    assert_int_equal(pnb_image_to_rgb(&out, &none, NULL), PNB_ARG);
    assert_int_equal(pnb_image_crop(&out, &in, 0, 0, 2, 2, 256, NULL), PNB_ARG);
    assert_int_equal(pnb_image_to_chw(&in, mean, std, chw, NULL), PNB_ARG);
    in.mode = PNB_IMAGE_GREY16; /* but three channels */
    assert_int_equal(pnb_image_crop(&out, &in, 0, 0, 2, 2, 1, NULL), PNB_ARG);
    in.mode = PNB_IMAGE_PALETTE; /* but no palette */
    assert_int_equal(pnb_image_to_rgb(&out, &in, NULL), PNB_ARG);
    pnb_image_free(&in);
}

static void crop_pads_with_fill(void **state)
{
    (void)state;
    pnb_image in, out;
    assert_int_equal(pnb_image_create(&in, 3, 2, 1, NULL), PNB_OK);
    for (int i = 0; i < 6; i++)
        in.pixels[i] = (unsigned char)(i + 1);
    assert_int_equal(pnb_image_crop(&out, &in, -1, 1, 5, 2, 9, NULL), PNB_OK);
    static const unsigned char want[] = {9, 4, 5, 6, 9, 9, 9, 9, 9, 9};
    assert_memory_equal(out.pixels, want, sizeof want);
    pnb_image_free(&out);
    assert_int_equal(pnb_image_crop(&out, &in, INT32_MAX, INT32_MIN, 2, 1, 7, NULL), PNB_OK);
    assert_int_equal(out.pixels[0], 7);
    pnb_image_free(&out);
    pnb_image_free(&in);
}

/* The fill is the grey, not both of its bytes: at 16 bits 0x8080 would show as white. */
static void crop_pads_grey16_with_fill(void **state)
{
    (void)state;
    pnb_image in, out, rgb;
    assert_int_equal(pnb_image_create(&in, 1, 1, 2, NULL), PNB_OK);
    in.mode = PNB_IMAGE_GREY16;
    assert_int_equal(pnb_image_crop(&out, &in, 0, 0, 2, 1, 128, NULL), PNB_OK);
    assert_int_equal(pnb_image_to_rgb(&rgb, &out, NULL), PNB_OK);
    static const unsigned char want[] = {0, 0, 0, 128, 128, 128};
    assert_memory_equal(rgb.pixels, want, sizeof want);
    pnb_image_free(&rgb);
    pnb_image_free(&out);
    pnb_image_free(&in);
}

static void alpha_is_kept_when_asked(void **state)
{
    (void)state;
    pnb_image image;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.keep_alpha = true;
    static const char *const with[] = {"rgba8.png", "la16.png", "pal4_i.png", "alpha.webp"};
    for (size_t i = 0; i < PNB_COUNT(with); i++) {
        char path[512];
        snprintf(path, sizeof path, DATA "%s", with[i]);
        assert_int_equal(pnb_image_load(&image, path, &opts, NULL), PNB_OK);
        assert_int_equal(image.channels, 4);
        bool has_partial = false;
        for (int k = 0; k < image.width * image.height; k++)
            has_partial |= image.pixels[4 * k + 3] != 255;
        assert_true(has_partial);
        pnb_image_free(&image);
    }
    assert_int_equal(
        pnb_image_load(&image, PNB_SOURCE_DIR "/tests/io/data/image/rgb8.png", &opts, NULL),
        PNB_OK);
    assert_int_equal(image.channels, 3);
    pnb_image_free(&image);
}

static void a_url_is_no_image(void **state)
{
    (void)state;
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    memset(&image, 0xFF, sizeof image);
    assert_int_equal(pnb_image_load(&image, "https://x.org/cat.jpg", NULL, &err), PNB_NOT_FOUND);
    assert_null(image.pixels);
    assert_non_null(strstr(err.text, "this is a URL"));
    pnb_error_reset(&err);
    assert_int_equal(pnb_image_decode(&image, "a red star\n", 11, NULL, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "this is text"));
}

static void files_are_named(void **state)
{
    (void)state;
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_load(&image, "/nonexistent/a.png", NULL, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "a.png"));
    pnb_error_reset(&err);
    assert_int_equal(pnb_image_load(&image, DATA "expected.txt", NULL, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "expected.txt"));
}

/* Each mode by hand; CMYK is (255-k) - c (255-k) / 255, rounded; 16 bits are cut, not scaled. */
static void every_mode_to_rgb(void **state)
{
    (void)state;
    static unsigned char palette[768];
    palette[3 * 7] = 70;
    palette[3 * 7 + 1] = 71;
    palette[3 * 7 + 2] = 72;
    static const struct {
        pnb_image_mode mode;
        int channels;
        unsigned char in[8], want[6];
    } cases[] = {
        {PNB_IMAGE_PLAIN, 1, {9, 200}, {9, 9, 9, 200, 200, 200}},
        {PNB_IMAGE_PLAIN, 2, {9, 0, 200, 255}, {9, 9, 9, 200, 200, 200}}, /* alpha is dropped */
        {PNB_IMAGE_PLAIN, 3, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
        {PNB_IMAGE_PLAIN, 4, {1, 2, 3, 0, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6}},
        {PNB_IMAGE_BILEVEL, 1, {0, 255}, {0, 0, 0, 255, 255, 255}},
        {PNB_IMAGE_PALETTE, 1, {7, 0}, {70, 71, 72, 0, 0, 0}},
        {PNB_IMAGE_GREY16, 2, {200, 0, 0, 1}, {200, 200, 200, 255, 255, 255}},
        {PNB_IMAGE_CMYK, 4, {0, 255, 100, 0, 51, 0, 255, 127}, {255, 0, 155, 102, 128, 0}},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        unsigned char pixels[8];
        memcpy(pixels, cases[i].in, 8);
        const pnb_image in = {.width = 2,
                              .height = 1,
                              .channels = cases[i].channels,
                              .pixels = pixels,
                              .mode = cases[i].mode,
                              .palette = palette};
        pnb_image out;
        assert_int_equal(pnb_image_to_rgb(&out, &in, NULL), PNB_OK);
        assert_true(out.channels == 3 && out.mode == PNB_IMAGE_PLAIN && out.palette == NULL);
        assert_memory_equal(out.pixels, cases[i].want, 6);
        pnb_image_free(&out);
    }
}

/* What it owned is given back, and it holds nothing; once more does no harm. */
static void freeing(void **state)
{
    (void)state;
    pnb_image image = {.width = 1, .height = 1, .channels = 1, .mode = PNB_IMAGE_PALETTE};
    image.pixels = pnb__alloc_zero(1, 1);
    image.palette = pnb__alloc_zero(256, 3);
    pnb_image_free(&image);
    assert_true(image.pixels == NULL && image.palette == NULL && image.width == 0);
    pnb_image_free(&image);
    pnb_image_free(NULL);
}

/* A record whose mode does not fit its channels is refused before a pixel is read. */
static void modes_fit_their_channels(void **state)
{
    (void)state;
    static const struct {
        pnb_image_mode mode;
        int channels;
    } bad[] = {{PNB_IMAGE_CMYK, 1},    {PNB_IMAGE_CMYK, 3},    {PNB_IMAGE_GREY16, 1},
               {PNB_IMAGE_PALETTE, 3}, {PNB_IMAGE_BILEVEL, 4}, {PNB_IMAGE_PLAIN, 5},
               {PNB_IMAGE_PLAIN, 0},   {(pnb_image_mode)9, 1}};
    unsigned char *pixel = malloc(1), palette[768] = {0};
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        const pnb_image in = {.width = 1,
                              .height = 1,
                              .channels = bad[i].channels,
                              .pixels = pixel,
                              .mode = bad[i].mode,
                              .palette = palette};
        pnb_image out;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(pnb_image_to_rgb(&out, &in, &err), &err, PNB_ARG, "its mode does not fit");
        assert_null(out.pixels);
    }
    free(pixel);
}

/* (x/255 - mean) / std, planes one behind the other. */
static void floats_by_planes(void **state)
{
    (void)state;
    static unsigned char pixels[] = {0, 51, 255, 102, 204, 0};
    const pnb_image in = {.width = 2, .height = 1, .channels = 3, .pixels = pixels};
    const float mean[3] = {0.5f, 0.25f, 0}, std[3] = {0.5f, 0.25f, 1};
    const float want[6] = {-1,
                           (102 / 255.0f - 0.5f) / 0.5f,
                           (51 / 255.0f - 0.25f) / 0.25f,
                           (204 / 255.0f - 0.25f) / 0.25f,
                           1,
                           0};
    float got[6];
    assert_int_equal(pnb_image_to_chw(&in, mean, std, got, NULL), PNB_OK);
    assert_memory_equal(got, want, sizeof want);
}

/* A pipe in a folder may never have a writer: it is told without being opened. */
static void pipes_are_not_opened(void **state)
{
    scratch *s = *state;
    pnb_image image = {.width = 5};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(mkfifo(scratch_path(s, "a.png"), 0600), 0);
    assert_failed(pnb_image_load(&image, s->path, NULL, &err), &err, PNB_FORMAT, "is a pipe");
    assert_int_equal(image.width, 0);
    err = (pnb_error)PNB_ERROR_INIT;
    image.width = 5; /* a failure leaves an empty picture, a URL's too */
    assert_failed(pnb_image_load(&image, "http://x/a.png", NULL, &err), &err, PNB_NOT_FOUND, "URL");
    assert_int_equal(image.width, 0);
    err = (pnb_error)PNB_ERROR_INIT; /* a drive of one letter is no scheme */
    assert_failed(pnb_image_load(&image, "c://a.png", NULL, &err), &err, PNB_NOT_FOUND,
                  "c://a.png");
    assert_null(strstr(err.text, "URL"));
}

static void sizes_are_limited(void **state)
{
    (void)state;
    const pnb_image_opts opts = {.max_pixels = 12};
    static const struct {
        int64_t width, height;
        pnb_status want;
    } cases[] = {{4, 3, PNB_OK},
                 {12, 1, PNB_OK},
                 {13, 1, PNB_LIMIT},
                 {4, 4, PNB_LIMIT},
                 {0, 3, PNB_FORMAT},
                 {3, -1, PNB_FORMAT},
                 {INT64_MAX, 2, PNB_LIMIT},
                 {1, INT64_MAX, PNB_LIMIT}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        assert_int_equal(pnb__image_check_size(cases[i].width, cases[i].height, &opts, NULL),
                         cases[i].want);
    pnb_error err = PNB_ERROR_INIT;
    pnb_image image;
    assert_failed(pnb_image_create(&image, INT32_MAX, INT32_MAX, 4, &err), &err, PNB_NOMEM,
                  "memory");
    assert_int_equal(pnb_image_opts_default().max_pixels, 178956970); /* Pillow's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments_are_refused), cmocka_unit_test(crop_pads_with_fill),
        cmocka_unit_test(crop_pads_grey16_with_fill),  cmocka_unit_test(alpha_is_kept_when_asked),
        cmocka_unit_test(a_url_is_no_image),           cmocka_unit_test(files_are_named),
        cmocka_unit_test(every_mode_to_rgb),           cmocka_unit_test(freeing),
        cmocka_unit_test(modes_fit_their_channels),    cmocka_unit_test(floats_by_planes),
        cmocka_unit_test(pipes_are_not_opened),        cmocka_unit_test(sizes_are_limited),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
