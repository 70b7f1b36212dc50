/* JPEG: subsamplings, progressive, grey and CMYK as Pillow decodes them, EXIF turns; files that are
 * damaged or lie. */
#include "tests/io/image/support.h"

static const char *const FILES[] = {"q95_2.jpg", "prog.jpg", "cmyk.jpg", "grey.jpg", "exif6.jpg"};

HOSTILE_TESTS(0)

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(".jpg", false, 37);
}

/* Adobe's CMYK is stored inverted; natively 255 is full ink, as in Pillow. */
static void modes_of_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        pnb_image_mode mode;
        int channels;
    } cases[] = {{"cmyk.jpg", PNB_IMAGE_CMYK, 4},
                 {"ycck.jpg", PNB_IMAGE_CMYK, 4},
                 {"grey.jpg", PNB_IMAGE_PLAIN, 1},
                 {"q95_0.jpg", PNB_IMAGE_PLAIN, 3}};
    pnb_image_opts opts = pnb_image_opts_default();
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_image image, rgb, converted;
        char path[512];
        pnb_error err = PNB_ERROR_INIT;
        snprintf(path, sizeof path, DATA "%s", cases[i].file);
        opts.native = true;
        assert_ok(pnb_image_load(&image, path, &opts, &err), &err);
        assert_int_equal(image.mode, cases[i].mode);
        assert_int_equal(image.channels, cases[i].channels);
        opts.native = false;
        assert_ok(pnb_image_load(&rgb, path, &opts, &err), &err);
        assert_ok(pnb_image_to_rgb(&converted, &image, &err), &err);
        assert_memory_equal(rgb.pixels, converted.pixels, (size_t)(rgb.width * rgb.height * 3));
        pnb_image_free(&image);
        pnb_image_free(&rgb);
        pnb_image_free(&converted);
    }
}

static void set_jpeg_size(unsigned char *jpeg, size_t n, unsigned width, unsigned height)
{
    for (size_t i = 2; i + 9 < n; i++) {
        if (jpeg[i] == 0xFF && (jpeg[i + 1] == 0xC0 || jpeg[i + 1] == 0xC2)) {
            jpeg[i + 5] = (unsigned char)(height >> 8);
            jpeg[i + 6] = (unsigned char)height;
            jpeg[i + 7] = (unsigned char)(width >> 8);
            jpeg[i + 8] = (unsigned char)width;
            return;
        }
    }
    fail_msg("no frame header");
}

static void lying_sizes_are_refused(void **state)
{
    (void)state;
    size_t n;
    static const char *const jpegs[] = {"q95_2.jpg", "prog.jpg"};
    for (size_t i = 0; i < PNB_COUNT(jpegs); i++) {
        unsigned char *jpeg = read_file(jpegs[i], &n);
        set_jpeg_size(jpeg, n, 65000, 65000);
        expect_refusal(jpeg, n, PNB_IMAGE_MAX_PIXELS, PNB_LIMIT, "65000x65000");
        set_jpeg_size(jpeg, n, 16000, 16000);
        expect_refusal(jpeg, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "only");
        set_jpeg_size(jpeg, n, 37, 400);
        expect_refusal(jpeg, n, 100, PNB_LIMIT, "max_pixels");
        pnb__free(jpeg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_equal_pillow),      cmocka_unit_test(modes_of_the_file),
        cmocka_unit_test(lying_sizes_are_refused),  cmocka_unit_test(truncated_everywhere),
        cmocka_unit_test(damaged_bytes_do_no_harm), cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
