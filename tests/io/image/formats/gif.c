/* GIF: local, short and grey palettes, interlaced, beside and beyond the screen, transparent, as
 * Pillow decodes them; files that are damaged or lie. Without giflib they are refused by its name.
 */
#include "tests/io/image/support.h"

#ifdef PNB_HAVE_GIF

static const char *const FILES[] = {"inter.gif", "offsett.gif", "local.gif"};

HOSTILE_TESTS(6) /* what ends the codes may be missing */

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(".gif", false, 26);
}

static void lying_sizes_are_refused(void **state)
{
    (void)state;
    size_t n;
    unsigned char *small = read_file("plain.gif", &n);
    expect_refusal(small, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
    pnb__free(small);
    unsigned char *gif = read_file("plain.gif", &n);
    size_t at = 13 + 192; /* the picture's header behind the screen's and its palette */
    assert_int_equal(gif[at], ',');
    memcpy(gif + 6, "\x80\x3E\x80\x3E", 4);
    memcpy(gif + at + 5, "\x80\x3E\x80\x3E", 4);
    expect_refusal(gif, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "16000x16000");
    pnb__free(gif);
}

static void files_without_a_image(void **state)
{
    (void)state;
    static const unsigned char ended[] = "GIF89a\2\0\2\0\0\0\0;";
    static const unsigned char flat[] = "GIF89a\2\0\2\0\0\0\0,\0\0\0\0\0\0\2\0\0\2\0;";
    expect_refusal(ended, sizeof ended - 1, 100, PNB_FORMAT, "GIF: holds no picture");
    expect_refusal(flat, sizeof flat - 1, 100, PNB_FORMAT, "GIF: a picture of 0x2 pixels");
    expect_refusal(ended, 6, 100, PNB_FORMAT, "the file is truncated");
}

/* One pixel, by hand: palettes of four colours for the screen and for the picture (NULL: none). */
static void decode_pixel(pnb_image *image, const unsigned char *global, const unsigned char *local,
                         unsigned index)
{
    const unsigned char screen[] = {1, 0, 1, 0, global != NULL ? 0x81 : 0, 0, 0};
    const unsigned char block[] = {',', 0, 0, 0, 0, 1, 0, 1, 0, local != NULL ? 0x81 : 0};
    /* codes of three bits: clear, the index, end */
    const unsigned codes = 4u | index << 3 | 5u << 6;
    const unsigned char data[] = {2, 2, codes & 0xFF, (unsigned char)(codes >> 8), 0, ';'};
    const pnb_image_opts opts = {.max_pixels = 1};
    pnb__buf b = {0};
    int orientation = 1;
    pnb_error err = PNB_ERROR_INIT;
    pnb__buf_append(&b, "GIF89a", 6);
    pnb__buf_append(&b, screen, sizeof screen);
    pnb__buf_append(&b, global, global != NULL ? 12 : 0);
    pnb__buf_append(&b, block, sizeof block);
    pnb__buf_append(&b, local, local != NULL ? 12 : 0);
    pnb__buf_append(&b, data, sizeof data);
    assert_ok(pnb__gif_decode(image, (unsigned char *)b.data, b.size, &opts, &orientation, &err),
              &err);
    assert_int_equal(image->pixels[0], index);
    pnb__buf_reset(&b);
}

/* A ramp of greys is no palette, whichever byte makes it one; the picture's goes before the
 * screen's unless it is a ramp. */
static void palettes(void **state)
{
    (void)state;
    static const unsigned char ramp[12] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    pnb_image image;
    decode_pixel(&image, ramp, NULL, 2);
    assert_true(image.mode == PNB_IMAGE_PLAIN && image.channels == 1 && image.palette == NULL);
    pnb_image_free(&image);
    for (size_t i = 0; i < sizeof ramp; i++) {
        unsigned char colours[12];
        memcpy(colours, ramp, sizeof ramp);
        colours[i] = 200;
        decode_pixel(&image, i % 2 ? colours : NULL, i % 2 ? ramp : colours, 3);
        assert_int_equal(image.mode, PNB_IMAGE_PALETTE);
        assert_memory_equal(image.palette, colours, 12);
        assert_memory_equal(image.palette + 12, "\4\4\4\5\5\5", 6); /* past its end: grey */
        pnb_image_free(&image);
    }
    static const unsigned char red[12] = {255, 0, 0}, blue[12] = {0, 0, 255};
    decode_pixel(&image, red, blue, 0);
    assert_memory_equal(image.palette, blue, 12);
    pnb_image_free(&image);
    decode_pixel(&image, NULL, NULL, 1);
    assert_null(image.palette);
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(palettes),
        cmocka_unit_test(pixels_equal_pillow),
        cmocka_unit_test(lying_sizes_are_refused),
        cmocka_unit_test(files_without_a_image),
        cmocka_unit_test(truncated_everywhere),
        cmocka_unit_test(damaged_bytes_do_no_harm),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void its_library_is_named(void **state)
{
    (void)state;
    expect_refusal((const unsigned char *)"GIF89a......", 12, 100, PNB_UNSUPPORTED, "giflib");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(its_library_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
