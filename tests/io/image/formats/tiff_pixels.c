/* Pixels of a TIFF by hand: every kind of sample, planes of their own, tiles, and alpha that the
 * colours were multiplied by. */
#include "tests/io/image/tiff_maker.h"

#ifdef PNB_HAVE_TIFF

/* What tags beside the usual ones say; 0: the tag is not there. */
typedef struct form {
    uint32_t width, bits, samples, photometric, format, planar, extra;
} form;

static void expect_row(const form *f, const void *bytes, size_t n, int channels, const void *want)
{
    tiff_maker m;
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    begin_tiff(&m, f->width, 1, f->bits, f->samples, f->photometric, bytes, n);
    if (f->format > 0)
        put_short(&m, 339, f->format);
    if (f->extra > 0)
        put_short(&m, 338, f->extra);
    if (f->planar > 0) { /* a strip for each plane */
        uint32_t offset[4], size[4];
        for (uint32_t i = 0; i < f->samples; i++) {
            size[i] = (uint32_t)n / f->samples;
            offset[i] = 8 + i * size[i];
        }
        put_short(&m, 284, 2);
        put_tag(&m, 273, TAG_LONG, f->samples, offset);
        put_tag(&m, 279, TAG_LONG, f->samples, size);
    }
    assert_ok(finish_tiff(&m, &image, &err), &err);
    assert_true(image.width == (int)f->width && image.height == 1);
    assert_int_equal(image.channels, channels);
    assert_memory_equal(image.pixels, want, (size_t)channels * f->width);
    pnb_image_free(&image);
}

#define ROW(channels, bytes, want, ...)                                                            \
    expect_row(&(const form){__VA_ARGS__}, bytes, sizeof(bytes) - 1, channels, want)

static void bits_are_spread(void **state)
{
    (void)state;
    ROW(1, "\xB0\x40", "\xFF\0\xFF\xFF\0\0\0\0\0\xFF", .width = 10, .bits = 1, .samples = 1,
        .photometric = 1);
    ROW(1, "\xB0\x40", "\0\xFF\0\0\xFF\xFF\xFF\xFF\xFF\0", .width = 10, .bits = 1, .samples = 1);
    ROW(1, "\x1B\x40", "\0\x55\xAA\xFF\x55", .width = 5, .bits = 2, .samples = 1, .photometric = 1);
    ROW(1, "\x1F\x70", "\xEE\0\x88", .width = 3, .bits = 4, .samples = 1); /* white is zero */
}

static void bytes_and_words(void **state)
{
    (void)state;
    ROW(1, "\1\2\xFF", "\1\2\xFF", .width = 3, .bits = 8, .samples = 1, .photometric = 1);
    ROW(1, "\1\2\xFF", "\xFE\xFD\0", .width = 3, .bits = 8, .samples = 1);
    ROW(3, "\1\2\3\4\5\6", "\1\2\3\4\5\6", .width = 2, .bits = 8, .samples = 3, .photometric = 2);
    ROW(3, "\1\2\3\4\5\6", "\1\3\5\2\4\6", .width = 2, .bits = 8, .samples = 3, .photometric = 2,
        .planar = 2);
    /* a sample behind the colours that is not called alpha is dropped */
    ROW(3, "\1\2\3\x63\4\5\6\x63", "\1\2\3\4\5\6", .width = 2, .bits = 8, .samples = 4,
        .photometric = 2);
    ROW(4, "\1\2\3\x63", "\1\2\3\x63", .width = 1, .bits = 8, .samples = 4, .photometric = 2,
        .extra = 2);
    ROW(3, "\x99\1\x99\2\x99\3", "\1\2\3", .width = 1, .bits = 16, .samples = 3,
        .photometric = 2); /* high bytes */
    ROW(4, "\1\2\3\4", "\1\2\3\4", .width = 1, .bits = 8, .samples = 4, .photometric = 5);
}

static void grey_of_more_than_eight_bits(void **state)
{
    (void)state;
    const uint16_t whole[2] = {1, 65534}, twelve[3] = {0xABC, 0xDEF, 0x123}, cut[3] = {0, 65535, 7};
    const int32_t wide[3] = {-5, 70000, 7};
    const int16_t narrow[2] = {-1, 300};
    const uint16_t from_narrow[2] = {0, 300};
    expect_row(&(const form){.width = 2, .bits = 16, .samples = 1, .photometric = 1}, whole, 4, 2,
               whole);
    expect_row(&(const form){.width = 2, .bits = 16, .samples = 1}, whole, 4, 2,
               whole); /* Pillow forgets to invert */
    ROW(2, "\xAB\xCD\xEF\x12\x30", (const char *)twelve, .width = 3, .bits = 12, .samples = 1,
        .photometric = 1);
    expect_row(&(const form){.width = 3, .bits = 32, .samples = 1, .photometric = 1, .format = 2},
               wide, 12, 2, cut);
    expect_row(&(const form){.width = 3, .bits = 32, .samples = 1, .photometric = 1}, wide, 12, 2,
               cut);
    expect_row(&(const form){.width = 2, .bits = 16, .samples = 1, .photometric = 1, .format = 2},
               narrow, 4, 2, from_narrow);
}

static void floats_are_cut(void **state)
{
    (void)state;
    const float values[6] = {-1.0f, 0.9f, 254.9f, 300.0f, __builtin_nanf(""), 17.0f};
    expect_row(&(const form){.width = 6, .bits = 32, .samples = 1, .photometric = 1, .format = 3},
               values, sizeof values, 1, "\0\0\xFE\xFF\0\x11");
}

/* c * 255 / a, cut; under an alpha of 0 there is no colour. */
static void colours_over_alpha(void **state)
{
    (void)state;
    ROW(4, "\x32\x64\0\x64\1\2\3\0\1\2\3\xFF\xFF\0\0\x40",
        "\x7F\xFF\0\x64\0\0\0\0\1\2\3\xFF\xFF\0\0\x40", .width = 4, .bits = 8, .samples = 4,
        .photometric = 2, .extra = 1);
}

/* Four tiles of 16x16 over 20x18 pixels, of which most of three lies outside. */
static void tiles_are_laid_side_by_side(void **state)
{
    (void)state;
    unsigned char tiles[4][16][16];
    uint32_t offset[4], size[4];
    tiff_maker m;
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    for (uint32_t t = 0; t < 4; t++) {
        for (uint32_t y = 0; y < 16; y++)
            for (uint32_t x = 0; x < 16; x++)
                tiles[t][y][x] = (unsigned char)(7 * (16 * (t / 2) + y) + 16 * (t % 2) + x);
        offset[t] = 8 + t * 256;
        size[t] = 256;
    }
    begin_tiff(&m, 20, 18, 8, 1, 1, tiles, sizeof tiles);
    drop_tag(&m, 273); /* no strips */
    drop_tag(&m, 278);
    drop_tag(&m, 279);
    put_short(&m, 322, 16);
    put_short(&m, 323, 16);
    put_tag(&m, 324, TAG_LONG, 4, offset);
    put_tag(&m, 325, TAG_LONG, 4, size);
    assert_ok(finish_tiff(&m, &image, &err), &err);
    for (int y = 0; y < 18; y++)
        for (int x = 0; x < 20; x++)
            assert_int_equal(image.pixels[20 * y + x], (unsigned char)(7 * y + x));
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_spread),
        cmocka_unit_test(bytes_and_words),
        cmocka_unit_test(grey_of_more_than_eight_bits),
        cmocka_unit_test(floats_are_cut),
        cmocka_unit_test(colours_over_alpha),
        cmocka_unit_test(tiles_are_laid_side_by_side),
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
