/* BMP: every depth, header, mask and run length as Pillow decodes it; what the header may say;
 * files that are damaged or lie. */
#include "tests/io/image/support.h"

static const char *const FILES[] = {"b8.bmp", "b24.bmp", "b32m4_124.bmp", "r8.bmp", "r4.bmp"};

HOSTILE_TESTS(6) /* the padding of a row or the mark of the end may be missing */

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(".bmp", false, 66);
}

/* Most significant byte first. */
static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void lying_sizes_are_refused(void **state)
{
    (void)state;
    size_t n;
    unsigned char *small = read_file("b24.bmp", &n);
    expect_refusal(small, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
    pnb__free(small);
    unsigned char *bmp = read_file("b24.bmp", &n);
    put_u32(bmp + 18, 0x803E0000); /* 16000 wide, little-endian */
    put_u32(bmp + 22, 0x803E0000);
    expect_refusal(bmp, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "16000x16000");
    pnb__free(bmp);
}

/* A header of 40 bytes for 2x2 pixels, 2 colours and 8 bytes of pixels behind it. */
static void make_header(unsigned char file[70], unsigned bits, unsigned compression)
{
    static const unsigned char head[] = "BM\0\0\0\0\0\0\0\0\x3E\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1";
    memset(file, 0, 70);
    memcpy(file, head, sizeof head - 1);
    file[28] = (unsigned char)bits;
    file[30] = (unsigned char)compression;
    file[46] = 2;
    memcpy(file + 54, "\0\0\0\0\xFF\xFF\xFF", 7);
}

static void headers_are_checked(void **state)
{
    (void)state;
    static const struct {
        unsigned bits, compression;
        pnb_status want;
        const char *says;
    } cases[] = {{2, 0, PNB_UNSUPPORTED, "BMP: 2 bits a pixel"},
                 {8, 4, PNB_UNSUPPORTED, "BMP: compression 4"},
                 {8, 2, PNB_FORMAT, "run lengths of 4 bits over 8 bits a pixel"},
                 {4, 1, PNB_FORMAT, "run lengths of 8 bits over 4 bits a pixel"},
                 {16, 3, PNB_UNSUPPORTED, "16 bits with masks"},
                 {32, 0, PNB_FORMAT, "2x2 pixels of 32 bits take 16 bytes, 8 follow: truncated"}};
    unsigned char file[70];
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        make_header(file, cases[i].bits, cases[i].compression);
        expect_refusal(file, sizeof file, 100, cases[i].want, cases[i].says);
    }
    make_header(file, 8, 0);
    file[14] = 41;
    expect_refusal(file, sizeof file, 100, PNB_UNSUPPORTED, "a header of 41 bytes");
    make_header(file, 8, 0);
    file[46] = 5;
    expect_refusal(file, sizeof file, 100, PNB_FORMAT, "the data ends after 70 bytes: truncated");
    make_header(file, 8, 0);
    file[18] = 0;
    expect_refusal(file, sizeof file, 100, PNB_FORMAT, "0x2 pixels");
}

/* Two colours black and white are no palette but a bilevel picture; others, in the file's order
 * blue, green, red, are. Negative heights run from the top. */
static void palettes(void **state)
{
    (void)state;
    unsigned char file[70];
    pnb_image image;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = true;
    make_header(file, 1, 0);
    file[62] = 0x80; /* the bottom row */
    assert_int_equal(pnb_image_decode(&image, file, sizeof file, &opts, NULL), PNB_OK);
    assert_int_equal(image.mode, PNB_IMAGE_BILEVEL);
    assert_memory_equal(image.pixels, "\0\0\xFF\0", 4);
    pnb_image_free(&image);
    memcpy(file + 58, "\x0A\x14\x1E", 3);
    memset(file + 22, 0xFF, 4);
    file[22] = 0xFE; /* -2 rows */
    assert_int_equal(pnb_image_decode(&image, file, sizeof file, &opts, NULL), PNB_OK);
    assert_int_equal(image.mode, PNB_IMAGE_PALETTE);
    assert_memory_equal(image.pixels, "\1\0\0\0", 4);
    assert_memory_equal(image.palette + 3, "\x1E\x14\x0A\2\2\2", 6); /* missing ones are grey */
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_equal_pillow),         cmocka_unit_test(lying_sizes_are_refused),
        cmocka_unit_test(headers_are_checked),         cmocka_unit_test(palettes),
        cmocka_unit_test(truncated_everywhere),        cmocka_unit_test(damaged_bytes_do_no_harm),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
