/* WebP: lossy, lossless and with alpha as Pillow decodes them; EXIF turns; files that are damaged
 * or lie; animations by name. */
#include "tests/io/image/support.h"

static const char *const FILES[] = {"lossy.webp", "alpha.webp", "lossless.webp"};

HOSTILE_TESTS(0)

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(".webp", false, 6);
}

static void lying_sizes_are_refused(void **state)
{
    (void)state;
    size_t n;
    unsigned char *webp = read_file("lossy.webp", &n);
    expect_refusal(webp, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
    pnb__free(webp);
}

static void animations_are_refused(void **state)
{
    (void)state;
    /* VP8X with its animation bit, 16x16 */
    static const unsigned char file[] =
        "RIFF\x16\0\0\0WEBPVP8X\x0A\0\0\0\x02\0\0\0\x0F\0\0\x0F\0\0";
    expect_refusal(file, sizeof file - 1, 1 << 20, PNB_UNSUPPORTED, "WebP: an animation");
}

/* The EXIF chunk stands behind the pixels, with the six bytes of JPEG in front or not; one that
 * claims more than there is counts for nothing. */
static void orientations_are_found(void **state)
{
    (void)state;
    static const unsigned char turn[] = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0";
    size_t n;
    unsigned char *bytes = read_file("lossy.webp", &n);
    for (int with_head = 0; with_head < 2; with_head++)
        for (int cut = 0; cut < 2; cut++) {
            pnb__buf b = {0};
            pnb_image image;
            pnb_error err = PNB_ERROR_INIT;
            int orientation = 1;
            const pnb_image_opts opts = {.max_pixels = 1 << 20, .exif = true};
            uint32_t size = (uint32_t)(sizeof turn - 1) + (with_head ? 6u : 0u) + (cut ? 99u : 0u);
            pnb__buf_append(&b, bytes, n);
            pnb__buf_append(&b, "EXIF", 4);
            pnb__buf_append(&b, &size, 4);
            pnb__buf_append(&b, "Exif\0", with_head ? 6 : 0);
            pnb__buf_append(&b, turn, sizeof turn - 1);
            assert_ok(pnb__webp_decode(&image, (unsigned char *)b.data, b.size, &opts, &orientation,
                                       &err),
                      &err);
            assert_int_equal(orientation, cut ? 1 : 6);
            pnb_image_free(&image);
            pnb__buf_reset(&b);
        }
    pnb__free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_equal_pillow),         cmocka_unit_test(lying_sizes_are_refused),
        cmocka_unit_test(animations_are_refused),      cmocka_unit_test(orientations_are_found),
        cmocka_unit_test(truncated_everywhere),        cmocka_unit_test(damaged_bytes_do_no_harm),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
