/* TIFF: strips, tiles and planes, every depth, colour, byte order and orientation as Pillow decodes
 * them; tags that Pillow does not know, and files that are damaged or lie. */
#include "tests/io/image/tiff_maker.h"

#ifdef PNB_HAVE_TIFF

static const char *const FILES[] = {
    "t_RGB_tiff_lzw.tif",   "t_RGB_packbits.tif", "t_YCbCr_jpeg.tif", "tile16x16_le1.tif",
    "t_YCbCr_tiff_lzw.tif", "pl8_4_2_le8.tif",    "orient6.tif",      "t_1_group4.tif"};

HOSTILE_TESTS(400) /* a tag that has a default may be missing */

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(".tif", false, 83);
}

static void lying_sizes_are_refused(void **state)
{
    (void)state;
    size_t n;
    unsigned char *strips = read_file("t_RGB_packbits.tif", &n);
    expect_refusal(strips, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
    pnb__free(strips);
    unsigned char *tiles = read_file("tile16x16_le1.tif", &n);
    expect_refusal(tiles, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
    pnb__free(tiles);
}

typedef struct tag_case {
    uint32_t bits, samples, photometric, format, extra;
    const char *says;
} tag_case;

/* Forms that Pillow refuses are refused by what they are. */
static void other_forms_are_named(void **state)
{
    (void)state;
    static const tag_case cases[] = {
        {8, 3, 8, 1, 0, "photometric 8"},         /* CIE Lab */
        {16, 2, 1, 1, 2, "2 samples of 16 bits"}, /* grey with alpha */
        {8, 2, 0, 1, 2, "photometric 0"},         /* the same, white is zero */
        {8, 1, 1, 2, 0, "format 2"},              /* signed bytes */
        {64, 1, 1, 3, 0, "1 samples of 64 bits"}, /* doubles */
        {32, 3, 2, 1, 0, "3 samples of 32 bits"},
        {8, 2, 2, 1, 0, "2 samples of 8 bits"},
        {8, 8, 2, 1, 0, "TIFF: 8 samples of 8 bits a pixel"},
    };
    static const unsigned char pixels[64];
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const tag_case *c = &cases[i];
        tiff_maker m;
        pnb_image image;
        pnb_error err = PNB_ERROR_INIT;
        begin_tiff(&m, 2, 2, c->bits, c->samples, c->photometric, pixels, sizeof pixels);
        put_short(&m, 339, c->format);
        if (c->extra > 0)
            put_short(&m, 338, c->extra);
        assert_failed(finish_tiff(&m, &image, &err), &err, PNB_UNSUPPORTED, c->says);
    }
}

static void claims_and_parts_that_lack(void **state)
{
    (void)state;
    static const unsigned char pixels[4] = {1, 2, 3, 4};
    tiff_maker m;
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    begin_tiff(&m, 60000, 60000, 8, 1, 1, pixels, 4);
    assert_failed(finish_tiff(&m, &image, &err), &err, PNB_LIMIT, "60000x60000");
    err = (pnb_error)PNB_ERROR_INIT;
    begin_tiff(&m, 5000, 5000, 8, 1, 1, pixels, 4);
    assert_failed(finish_tiff(&m, &image, &err), &err, PNB_FORMAT,
                  "the header claims 5000x5000 pixels but only");
    err = (pnb_error)PNB_ERROR_INIT;
    begin_tiff(&m, 2, 2, 4, 1, 3, pixels, 4);
    assert_failed(finish_tiff(&m, &image, &err), &err, PNB_FORMAT, "Colormap");
}

/* High bytes of the three columns; entries that the file lacks show the grey of their number. */
static void palettes(void **state)
{
    (void)state;
    static const unsigned char pixels[] = {0x1B, 0}; /* 0 1 2 3 in 2 bits */
    const uint32_t map[12] = {0x100,  0x200,  0x300,  0x400,  0x1100, 0x1200,
                              0x1300, 0x1400, 0x2100, 0x2200, 0x2300, 0x24FF};
    tiff_maker m;
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    begin_tiff(&m, 4, 1, 2, 1, 3, pixels, 1);
    put_tag(&m, 320, TAG_SHORT, 12, map);
    assert_ok(finish_tiff(&m, &image, &err), &err);
    assert_int_equal(image.mode, PNB_IMAGE_PALETTE);
    assert_memory_equal(image.pixels, "\0\1\2\3", 4);
    assert_memory_equal(image.palette + 6, "\x03\x13\x23\x04\x14\x24\4\4\4", 9);
    pnb_image_free(&image);
}

/* Applied always, as by Pillow for this format alone; values outside 1..8 turn nothing. */
static void orientations_are_applied(void **state)
{
    (void)state;
    static const unsigned char pixels[] = {1, 2, 3, 4, 5, 6};
    static const struct {
        uint32_t orientation;
        int width;
        unsigned char want[6];
    } cases[] = {
        {1, 3, {1, 2, 3, 4, 5, 6}}, {3, 3, {6, 5, 4, 3, 2, 1}}, {6, 2, {4, 1, 5, 2, 6, 3}}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        tiff_maker m;
        pnb_image image;
        pnb_error err = PNB_ERROR_INIT;
        begin_tiff(&m, 3, 2, 8, 1, 1, pixels, 6);
        put_short(&m, 274, cases[i].orientation);
        assert_ok(finish_tiff(&m, &image, &err), &err);
        assert_int_equal(image.width, cases[i].width);
        assert_memory_equal(image.pixels, cases[i].want, 6);
        pnb_image_free(&image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_equal_pillow),
        cmocka_unit_test(lying_sizes_are_refused),
        cmocka_unit_test(other_forms_are_named),
        cmocka_unit_test(claims_and_parts_that_lack),
        cmocka_unit_test(palettes),
        cmocka_unit_test(orientations_are_applied),
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
    expect_refusal((const unsigned char *)"II*\0........", 12, 100, PNB_UNSUPPORTED, "libtiff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(its_library_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
