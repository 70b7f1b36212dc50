/* AVIF and HEIC: near the picture they were made of, and what is refused. */
#include "tests/io/image/support.h"

/* AVIF and HEIC lose something and decoders may differ by a step, so they are held against the
 * picture they were made of; the colours under alpha are those of the picture too. */
static void heif_is_near_its_source(void **state)
{
    (void)state;
    static const char *const names[] = {"a.avif", "a.heic", "al.avif", "al.heic"};
    pnb_error err = PNB_ERROR_INIT;
    pnb_image source;
    if (strstr(pnb_image_formats(), "AVIF") == NULL)
        skip();
    assert_int_equal(pnb_image_load(&source, DATA "heif_a.png", NULL, &err), PNB_OK);
    for (size_t k = 0; k < PNB_COUNT(names); k++) {
        pnb_image image;
        char path[512];
        double sum = 0;
        snprintf(path, sizeof path, DATA "heif_%s", names[k]);
        if (pnb_image_load(&image, path, NULL, &err) != PNB_OK)
            fail_msg("%s", err.text);
        assert_int_equal(image.width, source.width);
        assert_int_equal(image.height, source.height);
        assert_int_equal(image.channels, 3);
        size_t n = (size_t)image.width * (size_t)image.height * 3;
        for (size_t i = 0; i < n; i++)
            sum += abs(image.pixels[i] - source.pixels[i]);
        print_message("%s: mean difference %.2f\n", names[k], sum / (double)n);
        assert_true(sum / (double)n < 12);
        pnb_image_free(&image);
    }
    pnb_image_free(&source);
}

/* One step more than the limit, damage, and files that are cut short. */
static void what_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"heif_a.avif", "heif_a.heic"};
    if (strstr(pnb_image_formats(), "AVIF") == NULL)
        skip();
    for (size_t k = 0; k < PNB_COUNT(names); k++) {
        size_t n;
        pnb_image image;
        unsigned char *bytes = read_file(names[k], &n);
        assert_int_equal(pnb_image_decode(&image, bytes, n, NULL, NULL), PNB_OK);
        int64_t n_pixels = (int64_t)image.width * image.height;
        pnb_image_free(&image);
        expect_refusal(bytes, n, n_pixels - 1, PNB_LIMIT, "the limit is");
        expect_refusal(bytes, n / 2, 1 << 24, PNB_FORMAT, "HEIF:");
        expect_refusal(bytes, 24, 1 << 24, PNB_FORMAT, "HEIF:");
        pnb__free(bytes);
    }
}

/* Alpha is dropped, or kept when asked for, over the same colours. */
static void alpha_is_kept_when_asked(void **state)
{
    (void)state;
    pnb_image plain, with;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.keep_alpha = true;
    if (strstr(pnb_image_formats(), "AVIF") == NULL)
        skip();
    assert_int_equal(pnb_image_load(&plain, DATA "heif_al.avif", NULL, NULL), PNB_OK);
    assert_int_equal(pnb_image_load(&with, DATA "heif_al.avif", &opts, NULL), PNB_OK);
    assert_true(plain.channels == 3 && with.channels == 4);
    int n_seen = 0;
    for (int i = 0; i < plain.width * plain.height; i++) {
        assert_memory_equal(plain.pixels + 3 * i, with.pixels + 4 * i, 3);
        n_seen += with.pixels[4 * i + 3] < 255;
    }
    assert_true(n_seen > 0);
    pnb_image_free(&plain);
    pnb_image_free(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heif_is_near_its_source),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(alpha_is_kept_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
