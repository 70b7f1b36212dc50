/* Rows of a BMP by hand: every layout of a pixel, padding, order of rows, and run lengths with the
 * three things that Pillow does otherwise. */
#include "io/image/formats/bmp.h"
#include "tests/io/image/support.h"

/* Reads `bytes` as 4x2 pixels or what `h` says, and compares. */
static void expect_rows(pnb__bmp h, const char *bytes, size_t n, const char *want)
{
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    h.channels = h.channels > 0 ? h.channels : 1;
    assert_ok(pnb_image_create(&image, h.width, h.height, h.channels, &err), &err);
    assert_ok(pnb__bmp_read_rows(&image, &h, (const unsigned char *)bytes, n, &err), &err);
    assert_memory_equal(image.pixels, want, (size_t)(h.width * h.height * h.channels));
    pnb_image_free(&image);
}

#define ROWS(bytes, want, ...) expect_rows((pnb__bmp){__VA_ARGS__}, bytes, sizeof(bytes) - 1, want)

/* Rows are padded to four bytes and begin at the bottom. */
static void indices(void **state)
{
    (void)state;
    ROWS("\xB0\x40\0\0\0\x80\0\0", "\0\0\0\0\0\0\0\0\1\0\1\0\1\1\0\0\0\0\0\1", .width = 10,
         .height = 2, .bits = 1);
    ROWS("\xB0\x40\0\0\0\x80\0\0", "\1\0\1\1\0\0\0\0\0\1\0\0\0\0\0\0\0\0\1\0", .width = 10,
         .height = 2, .bits = 1, .top_down = true);
    ROWS("\x12\x30\0\0", "\1\2\3", .width = 3, .height = 1, .bits = 4);
    ROWS("\7\x08\xFF\0\1\2\3\0", "\1\2\3\7\x08\xFF", .width = 3, .height = 2, .bits = 8);
    ROWS("xx\xB0\0\0\0", "\xFF\0\xFF", .width = 3, .height = 1, .bits = 1, .data = 2,
         .mode = PNB_IMAGE_BILEVEL);
    /* 8 bits with a palette of black and white are unpacked as single bits */
    ROWS("\xA0\0\0\0", "\xFF\0\xFF", .width = 3, .height = 1, .bits = 8, .mode = PNB_IMAGE_BILEVEL);
}

/* v * 255 / 31 and v * 255 / 63, cut. */
static void colours(void **state)
{
    (void)state;
    ROWS("\xFF\x7F\x01\x40", "\xFF\xFF\xFF\x83\0\x08", .width = 2, .height = 1, .bits = 16,
         .layout = PNB__BMP_555, .channels = 3); /* 16, 0, 1 */
    ROWS("\xFF\xFF\x21\x04", "\xFF\xFF\xFF\0\x85\x08", .width = 2, .height = 1, .bits = 16,
         .layout = PNB__BMP_565, .channels = 3); /* 0, 33, 1 */
    ROWS("\1\2\3\4\5\6\0\0", "\3\2\1\6\5\4", .width = 2, .height = 1, .bits = 24,
         .layout = PNB__BMP_BYTES, .order = {2, 1, 0, 3}, .channels = 3);
    ROWS("\1\2\3\4", "\4\3\2\1", .width = 1, .height = 1, .bits = 32, .layout = PNB__BMP_BYTES,
         .order = {3, 2, 1, 0}, .channels = 4);
}

#define RLE8(bytes, want)                                                                          \
    ROWS(bytes, want, .width = 4, .height = 2, .bits = 8, .is_rle = true, .top_down = true)
#define RLE4(bytes, want)                                                                          \
    ROWS(bytes, want, .width = 4, .height = 2, .bits = 4, .is_rle = true, .top_down = true)

static void run_lengths(void **state)
{
    (void)state;
    RLE8("\2\7\2\x09\0\0\4\5\0\1", "\7\7\x09\x09\5\5\5\5");
    RLE8("\6\7\0\0\1\3\0\1", "\7\7\7\7\3\0\0\0"); /* cut at the end of the row */
    RLE8("\1\7\0\0\1\3\0\1", "\7\0\0\0\3\0\0\0"); /* the rest of a row is zero */
    RLE8("\0\3\1\2\3\0\1\4\0\1", "\1\2\3\4\0\0\0\0");
    RLE8("\1\7\0\2\x09\x09\2\1\1\x08\0\1", "\7\0\0\0\0\0\0\x08"); /* a jump of 2 and a row */
    RLE4("\3\x12\1\x50\0\0\4\x67", "\1\2\1\5\6\7\6\7");
    RLE4("\0\3\x12\x34\1\x50\0\0\0\1", "\1\2\5\0\0\0\0\0"); /* an odd one loses its last */
    ROWS("\2\7\2\x09\0\0\4\5\0\1", "\5\5\5\5\7\7\x09\x09", .width = 4, .height = 2, .bits = 8,
         .is_rle = true);
}

static void runs_that_end_early(void **state)
{
    (void)state;
    const pnb__bmp h = {.width = 4, .height = 2, .bits = 8, .is_rle = true};
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_create(&image, 4, 2, 1, NULL), PNB_OK);
    assert_failed(pnb__bmp_read_rows(&image, &h, (const unsigned char *)"\2\7", 2, &err), &err,
                  PNB_FORMAT, "BMP: the runs end after 2 of 8 pixels: truncated");
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices),
        cmocka_unit_test(colours),
        cmocka_unit_test(run_lengths),
        cmocka_unit_test(runs_that_end_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
