/* Which pictures can be read: by their first bytes, by the endings of names, and how those are
 * named that can not. */
#include "io/image/formats/formats.h"
#include "tests/io/image/support.h"

static void strange_files_are_named(void **state)
{
    (void)state;
    expect_refusal((const unsigned char *)"", 0, 100, PNB_FORMAT, "empty");
    expect_refusal((const unsigned char *)"nothing at all", 14, 100, PNB_FORMAT, "JPEG, PNG, WebP");
    expect_refusal((const unsigned char *)"8BPS\0\1......", 12, 100, PNB_UNSUPPORTED, "Photoshop");
    expect_refusal((const unsigned char *)"\0\0\0\x0CJXL \r\n\x87\n", 12, 100, PNB_UNSUPPORTED,
                   "JPEG XL");
#ifndef PNB_HAVE_GIF
    expect_refusal((const unsigned char *)"GIF89a......", 12, 100, PNB_UNSUPPORTED, "giflib");
#endif
#ifndef PNB_HAVE_TIFF
    expect_refusal((const unsigned char *)"II*\0........", 12, 100, PNB_UNSUPPORTED, "libtiff");
#endif
#ifndef PNB_HAVE_HEIF
    expect_refusal((const unsigned char *)"\0\0\0\x20"
                                          "ftypavif",
                   12, 100, PNB_UNSUPPORTED, "libheif");
#endif
    expect_refusal((const unsigned char *)"x", 1, 0, PNB_ARG, "max_pixels");
}

static void decoders_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        pnb__decode_fn want;
    } cases[] = {
        {"\xFF\xD8\xFF", 3, pnb__jpeg_decode},
        {"\x89PNG\r\n\x1a\n", 8, pnb__png_decode},
        {"RIFF....WEBP", 12, pnb__webp_decode},
        {"BM", 2, pnb__bmp_decode},
#ifdef PNB_HAVE_GIF
        {"GIF8", 4, pnb__gif_decode},
#endif
#ifdef PNB_HAVE_TIFF
        {"II*\0", 4, pnb__tiff_decode},
        {"MM\0*", 4, pnb__tiff_decode},
        {"II+\0", 4, pnb__tiff_decode},
#endif
#ifdef PNB_HAVE_HEIF
        {"\0\0\0\x20"
         "ftypavif",
         12, pnb__heif_decode},
        {"\0\0\0\x20"
         "ftypheic",
         12, pnb__heif_decode},
        {"\0\0\0\x20"
         "ftypmif1",
         12, pnb__heif_decode},
#endif
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__decode_fn found = NULL;
        pnb_error err = PNB_ERROR_INIT;
        const unsigned char *bytes = (const unsigned char *)cases[i].bytes;
        assert_ok(pnb__image_decoder(&found, bytes, cases[i].n, &err), &err);
        if (found != cases[i].want)
            fail_msg("case %zu has another decoder", i);
        /* one byte less is none of them */
        err = (pnb_error)PNB_ERROR_INIT;
        assert_int_not_equal(pnb__image_decoder(&found, bytes, cases[i].n - 1, &err), PNB_OK);
    }
}

static void unread_formats_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {{"\0\0\0\x0CjP  ", 8, "JPEG 2000 is not read"},
                 {"\xFF\x4F\xFF\x51", 4, "JPEG 2000"},
                 {"\xFF\x0A", 2, "JPEG XL is not read"},
                 {"\0\0\1\0", 4, "Windows icon"},
                 {"<svg xmlns", 10, "SVG"},
                 {"qoif", 4, "QOI"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        expect_refusal((const unsigned char *)cases[i].bytes, cases[i].n, 100, PNB_UNSUPPORTED,
                       cases[i].says);
    expect_refusal((const unsigned char *)"RIFF....WAVE", 12, 100, PNB_FORMAT, "this is");
    expect_refusal((const unsigned char *)"\0\1\2\3", 4, 100, PNB_FORMAT,
                   "not a picture this build reads (4 bytes)");
}

/* In any case, whatever the folder; hidden files and mere endings are no pictures. */
static void names_are_told(void **state)
{
    (void)state;
    static const char *const images[] = {"a.jpg",    "A.JPEG",  "d/e.f/b.PnG",
                                         "x.y.webp", "raw.NEF", "a.0.jpg"};
    static const char *const others[] = {
        "a.txt", "jpg", ".jpg", "d/.hidden.png", "a.jpg.txt", "a.", "a.jp", "a.jpgx", ""};
    for (size_t i = 0; i < PNB_COUNT(images); i++)
        if (!pnb__image_is_named(images[i]))
            fail_msg("%s is a picture", images[i]);
    for (size_t i = 0; i < PNB_COUNT(others); i++)
        if (pnb__image_is_named(others[i]))
            fail_msg("'%s' is no picture", others[i]);
    assert_true(pnb__image_is_key("jpg;0.jpg;png", "0.JPG") && pnb__image_is_key("jpg", "jpg"));
    assert_false(pnb__image_is_key("jpg;png", "jp") || pnb__image_is_key("jpg;png", "g;p") ||
                 pnb__image_is_key("", "jpg") || pnb__image_is_key("jpg;png", ""));
    assert_true(pnb__starts_with(pnb__image_keys(), "jpg;png;jpeg;webp;"));
}

/* What is read and what is missing are the same formats together in every build. */
static void lists_of_formats(void **state)
{
    (void)state;
    static const char *const all[] = {"JPEG", "PNG", "WebP", "BMP", "GIF", "TIFF", "AVIF", "HEIC"};
    for (size_t i = 0; i < PNB_COUNT(all); i++) {
        bool is_read = strstr(pnb_image_formats(), all[i]) != NULL;
        assert_int_not_equal(is_read, strstr(pnb_image_formats_missing(), all[i]) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strange_files_are_named),  cmocka_unit_test(decoders_are_found),
        cmocka_unit_test(unread_formats_are_named), cmocka_unit_test(names_are_told),
        cmocka_unit_test(lists_of_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
