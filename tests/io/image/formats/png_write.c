/* PNG writing: the same pixels back, the same bytes each time, a header that says what it is, and
 * files that appear whole or not at all. */
#include "tests/io/image/support.h"

static void png_round_trip_is_exact(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        pnb_image in, out;
        unsigned char *bytes, *again;
        size_t n, n_again;
        pnb_image_opts opts = pnb_image_opts_default();
        opts.native = true;
        assert_int_equal(pnb_image_create(&in, 17, 11, channels, NULL), PNB_OK);
        size_t n_pixels = (size_t)(17 * 11 * channels);
        for (size_t i = 0; i < n_pixels; i++)
            in.pixels[i] = (unsigned char)(i * i * 31 + i);
        assert_int_equal(pnb_image_encode_png(&in, &bytes, &n, NULL), PNB_OK);
        assert_int_equal(pnb_image_encode_png(&in, &again, &n_again, NULL), PNB_OK);
        assert_int_equal(n, n_again);
        assert_memory_equal(bytes, again, n);
        assert_int_equal(pnb_image_decode(&out, bytes, n, &opts, NULL), PNB_OK);
        assert_int_equal(out.channels, channels);
        assert_memory_equal(in.pixels, out.pixels, n_pixels);
        pnb_image_bytes_free(bytes);
        pnb_image_bytes_free(again);
        pnb_image_free(&in);
        pnb_image_free(&out);
    }
}

static void png_file_appears_or_not(void **state)
{
    scratch *s = *state;
    pnb_image in, out;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_create(&in, 2, 2, 3, NULL), PNB_OK);
    const char *path = scratch_path(s, "a.png");
    assert_int_equal(pnb_image_save_png(&in, path, &err), PNB_OK);
    assert_int_equal(pnb_image_load(&out, path, NULL, &err), PNB_OK);
    pnb_image_free(&out);
    assert_int_not_equal(pnb_image_save_png(&in, "/nonexistent/a.png", &err), PNB_OK);
    assert_non_null(strstr(err.text, "a.png"));
    in.mode = PNB_IMAGE_BILEVEL;
    assert_int_equal(pnb_image_save_png(&in, path, NULL), PNB_ARG);
    pnb_image_free(&in);
}

/* Signature, then IHDR: size, 8 bits, the colour type of the standard, no interlacing; IEND at the
 * end. */
static void headers_of_the_standard(void **state)
{
    (void)state;
    static const unsigned char color_type[] = {0, 0, 4, 2, 6};
    for (int channels = 1; channels <= 4; channels++) {
        pnb_image in;
        unsigned char *bytes;
        size_t n;
        assert_int_equal(pnb_image_create(&in, 300, 2, channels, NULL), PNB_OK);
        assert_int_equal(pnb_image_encode_png(&in, &bytes, &n, NULL), PNB_OK);
        assert_memory_equal(bytes, "\x89PNG\r\n\x1a\n\0\0\0\x0DIHDR\0\0\1\x2C\0\0\0\2\x08", 25);
        assert_int_equal(bytes[25], color_type[channels]);
        assert_memory_equal(bytes + 26, "\0\0\0", 3);
        assert_memory_equal(bytes + n - 8, "IEND\xAE\x42\x60\x82", 8);
        pnb_image_bytes_free(bytes);
        pnb_image_free(&in);
    }
    pnb_image_bytes_free(NULL);
}

static void what_is_refused(void **state)
{
    scratch *s = *state;
    pnb_image empty = {0}, grey16;
    unsigned char *bytes = (unsigned char *)s->dir;
    size_t n = 7;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_image_encode_png(&empty, &bytes, &n, &err), &err, PNB_ARG,
                  "PNG: the picture is empty");
    assert_true(bytes == NULL && n == 0);
    pnb_image flat = {.width = 2, .channels = 1, .pixels = (unsigned char *)s->dir}; /* no rows */
    assert_int_equal(pnb_image_encode_png(&flat, &bytes, &n, NULL), PNB_ARG);
    assert_int_equal(pnb_image_create(&grey16, 2, 2, 2, NULL), PNB_OK);
    grey16.mode = PNB_IMAGE_GREY16;
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb_image_save_png(&grey16, scratch_path(s, "b.png"), &err), &err, PNB_ARG,
                  "convert it");
    assert_int_not_equal(access(s->path, F_OK), 0);
    pnb_image_free(&grey16);
}

#ifdef PNB_FAULTS
static pnb_status save(scratch *s, pnb_error *err)
{
    unsigned char pixels[12] = {1, 2, 3};
    const pnb_image in = {.width = 2, .height = 2, .channels = 3, .pixels = pixels};
    return pnb_image_save_png(&in, scratch_path(s, "c.png"), err);
}

static void out_of_memory(void **state)
{
    fail_every_allocation(save, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_round_trip_is_exact), cmocka_unit_test(png_file_appears_or_not),
        cmocka_unit_test(headers_of_the_standard), cmocka_unit_test(what_is_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
