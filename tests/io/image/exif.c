/* EXIF orientation: found in both byte orders, absent or damaged it is 1; what each of the eight
 * turns into upright. */
#include "tests/io/image/support.h"

/* One directory with two entries, the orientation second. */
static size_t make_block(unsigned char out[38], bool big, unsigned value)
{
    static const unsigned char little[] = "II*\0\x08\0\0\0\2\0\x0F\1\2\0\4\0\0\0abc\0"
                                          "\x12\1\3\0\1\0\0\0v\0\0\0\0\0\0\0";
    static const unsigned char large[] = "MM\0*\0\0\0\x08\0\2\1\x0F\0\2\0\0\0\4"
                                         "abc\0"
                                         "\1\x12\0\3\0\0\0\1\0v\0\0\0\0\0\0";
    memcpy(out, big ? large : little, 38);
    out[big ? 31 : 30] = (unsigned char)value;
    return 38;
}

static void orientations_are_found(void **state)
{
    (void)state;
    unsigned char block[38];
    for (int big = 0; big < 2; big++)
        for (unsigned value = 0; value <= 10; value++) {
            size_t n = make_block(block, big, value);
            int want = value >= 1 && value <= 8 ? (int)value : 1;
            assert_int_equal(pnb__exif_orientation(block, n), want);
        }
}

/* Its own bytes, so that ASan sees one that is read behind them. */
static int orientation_of(const unsigned char *block, size_t n)
{
    unsigned char *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, block, n);
    int found = pnb__exif_orientation(copy, n);
    free(copy);
    return found;
}

static void damage_counts_for_nothing(void **state)
{
    (void)state;
    unsigned char block[38];
    for (int big = 0; big < 2; big++) {
        size_t n = make_block(block, big, 6);
        for (size_t cut = 0; cut < 34; cut++) /* all of the entry is wanted */
            assert_int_equal(orientation_of(block, cut), 1);
        assert_int_equal(orientation_of(block, 34), 6);
        block[0] = 'X';
        assert_int_equal(orientation_of(block, n), 1);
        make_block(block, big, 6);
        block[big ? 9 : 8] = 1; /* one entry: the orientation is not reached */
        assert_int_equal(orientation_of(block, n), 1);
        make_block(block, big, 6);
        memset(block + 4, 0xFF, 4); /* a directory far away */
        assert_int_equal(orientation_of(block, n), 1);
    }
}

/* Of the EXIF standard: where the first row and the first column of the file stand when the picture
 * is upright. Pixel (column x, row y) of a 3x2 file has the value 10 y + x. */
static void turns_make_it_upright(void **state)
{
    (void)state;
    static const struct {
        int width, height;
        unsigned char want[6];
    } cases[9] = {{0, 0, {0}},
                  {3, 2, {0, 1, 2, 10, 11, 12}},  /* top, left */
                  {3, 2, {2, 1, 0, 12, 11, 10}},  /* top, right */
                  {3, 2, {12, 11, 10, 2, 1, 0}},  /* bottom, right */
                  {3, 2, {10, 11, 12, 0, 1, 2}},  /* bottom, left */
                  {2, 3, {0, 10, 1, 11, 2, 12}},  /* left, top */
                  {2, 3, {10, 0, 11, 1, 12, 2}},  /* right, top */
                  {2, 3, {12, 2, 11, 1, 10, 0}},  /* right, bottom */
                  {2, 3, {2, 12, 1, 11, 0, 10}}}; /* left, bottom */
    for (int o = 1; o <= 8; o++)
        for (int channels = 1; channels <= 3; channels += 2) {
            pnb_image image;
            assert_int_equal(pnb_image_create(&image, 3, 2, channels, NULL), PNB_OK);
            for (int i = 0; i < 6 * channels; i++)
                image.pixels[i] =
                    (unsigned char)(i / channels / 3 * 10 + i / channels % 3 + i % channels * 100);
            assert_int_equal(pnb__image_orient(&image, o, NULL), PNB_OK);
            assert_true(image.width == cases[o].width && image.height == cases[o].height);
            for (int i = 0; i < 6 * channels; i++)
                assert_int_equal(image.pixels[i], cases[o].want[i / channels] + i % channels * 100);
            pnb_image_free(&image);
        }
}

static void palettes_go_along(void **state)
{
    (void)state;
    pnb_image image;
    assert_int_equal(pnb_image_create(&image, 2, 1, 1, NULL), PNB_OK);
    image.mode = PNB_IMAGE_PALETTE;
    unsigned char *palette = image.palette = pnb__alloc_zero(256, 3);
    assert_int_equal(pnb__image_orient(&image, 9, NULL), PNB_OK); /* no orientation: as it is */
    assert_int_equal(image.width, 2);
    assert_int_equal(pnb__image_orient(&image, 6, NULL), PNB_OK);
    assert_true(image.width == 1 && image.height == 2 && image.mode == PNB_IMAGE_PALETTE);
    assert_ptr_equal(image.palette, palette);
#ifdef PNB_FAULTS
    pnb__alloc_fail_after(0);
    assert_int_equal(pnb__image_orient(&image, 6, NULL), PNB_NOMEM);
    pnb__alloc_fail_after(-1);
    assert_true(image.width == 1 && image.palette == palette); /* as it was */
#endif
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orientations_are_found),
        cmocka_unit_test(damage_counts_for_nothing),
        cmocka_unit_test(turns_make_it_upright),
        cmocka_unit_test(palettes_go_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
