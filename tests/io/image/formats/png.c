/* PNG: every colour type and depth, plain and interlaced, as Pillow decodes it; files that are
 * damaged or lie. */
#include "tests/io/image/support.h"

static const char *const FILES[] = {"rgb8.png", "rgba16_i.png", "pal4_i.png", "grey1.png"};

HOSTILE_TESTS(16) /* a file may lack its IEND chunk, 12 bytes, as in Pillow */

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(".png", false, 33);
}

/* Grey of 1 bit is bilevel, of 16 bits whole; indices keep their palette. */
static void modes_of_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        pnb_image_mode mode;
        int channels;
    } cases[] = {{"grey1.png", PNB_IMAGE_BILEVEL, 1}, {"grey4_i.png", PNB_IMAGE_PLAIN, 1},
                 {"grey16.png", PNB_IMAGE_GREY16, 2}, {"pal2.png", PNB_IMAGE_PALETTE, 1},
                 {"la16.png", PNB_IMAGE_PLAIN, 2},    {"rgba16_i.png", PNB_IMAGE_PLAIN, 4}};
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = true;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_image image;
        char path[512];
        pnb_error err = PNB_ERROR_INIT;
        snprintf(path, sizeof path, DATA "%s", cases[i].file);
        assert_ok(pnb_image_load(&image, path, &opts, &err), &err);
        assert_int_equal(image.mode, cases[i].mode);
        assert_int_equal(image.channels, cases[i].channels);
        assert_int_equal(image.palette != NULL, cases[i].mode == PNB_IMAGE_PALETTE);
        pnb_image_free(&image);
    }
}

static uint32_t crc32_of(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void set_png_size(unsigned char *png, uint32_t width, uint32_t height)
{
    put_u32(png + 16, width);
    put_u32(png + 20, height);
    put_u32(png + 29, crc32_of(png + 12, 17));
}

static void lying_sizes_are_refused(void **state)
{
    (void)state;
    size_t n;
    unsigned char *png = read_file("rgb8.png", &n);
    set_png_size(png, 100000, 100000);
    expect_refusal(png, n, PNB_IMAGE_MAX_PIXELS, PNB_LIMIT, "100000x100000");
    set_png_size(png, 0x7FFFFFFF, 0x7FFFFFFF);
    expect_refusal(png, n, INT64_MAX, PNB_LIMIT, "size");
    set_png_size(png, 20000, 20000); /* no option allows more than 2^28 */
    expect_refusal(png, n, INT64_MAX, PNB_LIMIT, "268435456");
    set_png_size(png, 16000, 16000); /* within the limit, but not in these few bytes */
    expect_refusal(png, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "only");
    set_png_size(png, 37, 30); /* one row more than there is */
    expect_refusal(png, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "truncated");
    set_png_size(png, 0, 29);
    expect_refusal(png, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "PNG");
    pnb__free(png);
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
