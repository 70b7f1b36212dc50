/* Pictures that are damaged or lie: an error with a text, nothing leaked, and no large allocation
 * for a claim the bytes cannot keep. Also the arguments a caller can get wrong, and memory running
 * out at every allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "base/base.h"
#include "penumbra/image.h"

#define DATA PNB_SOURCE_DIR "/tests/io/data/image/"

static const char *const files[] = {
    "rgb8.png",
    "rgba16_i.png",
    "pal4_i.png",
    "grey1.png",
    "q95_2.jpg",
    "prog.jpg",
    "cmyk.jpg",
    "grey.jpg",
    "lossy.webp",
    "alpha.webp",
    "exif6.jpg",
    "b8.bmp",
    "b24.bmp",
    "b32m4_124.bmp",
    "r8.bmp",
    "r4.bmp",
    "lossless.webp",
#ifdef PNB_HAVE_GIF
    "inter.gif",
    "offsett.gif",
    "local.gif",
#endif
#ifdef PNB_HAVE_TIFF
    "t_RGB_tiff_lzw.tif",
    "t_RGB_packbits.tif",
    "t_YCbCr_jpeg.tif",
    "tile16x16_le1.tif",
    "t_YCbCr_tiff_lzw.tif",
    "pl8_4_2_le8.tif",
    "orient6.tif",
    "t_1_group4.tif",
#endif
};

static unsigned char *read_file(const char *name, size_t *n)
{
    char path[512], *bytes;
    snprintf(path, sizeof path, DATA "%s", name);
    assert_int_equal(pnb__read_file(path, 1 << 20, &bytes, n, NULL), PNB_OK);
    return (unsigned char *)bytes;
}

/* Decodes a copy of exactly n bytes, so that ASan sees any read behind it. */
static pnb_status decode_exact(const unsigned char *bytes, size_t n, pnb_error *err)
{
    pnb_image image;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.exif = true;
    opts.max_pixels = 1 << 24;
    unsigned char *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, bytes, n);
    pnb_status status = pnb_image_decode(&image, copy, n, &opts, err);
    if (status != PNB_OK)
        assert_null(image.pixels);
    pnb_image_free(&image);
    free(copy);
    return status;
}

static void truncated_everywhere(void **state)
{
    (void)state;
    for (size_t f = 0; f < PNB_COUNT(files); f++) {
        size_t n;
        unsigned char *bytes = read_file(files[f], &n);
        /* a PNG may lack its IEND chunk (12 bytes), as in Pillow; a GIF what ends its codes, a BMP
         * the padding of a row or the mark of the end; a TIFF a tag that has a default */
        const char *ending = strchr(files[f], '.');
        size_t spare = strcmp(ending, ".png") == 0                                  ? 16
                       : strcmp(ending, ".tif") == 0                                ? 400
                       : strcmp(ending, ".gif") == 0 || strcmp(ending, ".bmp") == 0 ? 6
                                                                                    : 0;
        for (size_t cut = 0; cut + spare < n; cut += cut < 64 || cut + 64 > n ? 1 : 7) {
            pnb_error err = PNB_ERROR_INIT;
            pnb_status status = decode_exact(bytes, cut, &err);
            bool is_refused = status == PNB_FORMAT || status == PNB_LIMIT;
            if (!is_refused || err.text[0] == '\0')
                fail_msg("%s cut at %zu of %zu: %s", files[f], cut, n, pnb_status_name(status));
        }
        pnb__free(bytes);
    }
}

static void damaged_bytes_do_no_harm(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 0);
    for (size_t f = 0; f < PNB_COUNT(files); f++) {
        size_t n;
        unsigned char *bytes = read_file(files[f], &n);
        for (int round = 0; round < 60; round++) {
            unsigned char old[3];
            size_t at[3];
            for (int k = 0; k < 3; k++) {
                at[k] = (size_t)pnb__rng_below(&rng, n);
                old[k] = bytes[at[k]];
                bytes[at[k]] = (unsigned char)pnb__rng_u32(&rng);
            }
            pnb_error err = PNB_ERROR_INIT;
            if (decode_exact(bytes, n, &err) != PNB_OK)
                assert_true(err.text[0] != '\0');
            for (int k = 2; k >= 0; k--)
                bytes[at[k]] = old[k];
        }
        pnb__free(bytes);
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

static void set_jpeg_size(unsigned char *jpeg, size_t n, unsigned width, unsigned height)
{
    for (size_t i = 2; i + 9 < n; i++) {
        if (jpeg[i] == 0xFF && (jpeg[i + 1] == 0xC0 || jpeg[i + 1] == 0xC2)) {
            jpeg[i + 5] = (unsigned char)(height >> 8);
            jpeg[i + 6] = (unsigned char)height;
            jpeg[i + 7] = (unsigned char)(width >> 8);
            jpeg[i + 8] = (unsigned char)width;
            return;
        }
    }
    fail_msg("no frame header");
}

static void expect_refusal(const unsigned char *bytes, size_t n, int64_t max_pixels,
                           pnb_status want, const char *text)
{
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.max_pixels = max_pixels;
    pnb_status status = pnb_image_decode(&image, bytes, n, &opts, &err);
    if (status != want)
        fail_msg("%s instead of %s: %s", pnb_status_name(status), pnb_status_name(want), err.text);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
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
    static const char *const jpegs[] = {"q95_2.jpg", "prog.jpg"};
    for (size_t i = 0; i < PNB_COUNT(jpegs); i++) {
        unsigned char *jpeg = read_file(jpegs[i], &n);
        set_jpeg_size(jpeg, n, 65000, 65000);
        expect_refusal(jpeg, n, PNB_IMAGE_MAX_PIXELS, PNB_LIMIT, "65000x65000");
        set_jpeg_size(jpeg, n, 16000, 16000);
        expect_refusal(jpeg, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "only");
        set_jpeg_size(jpeg, n, 37, 400);
        expect_refusal(jpeg, n, 100, PNB_LIMIT, "max_pixels");
        pnb__free(jpeg);
    }
    unsigned char *webp = read_file("lossy.webp", &n);
    expect_refusal(webp, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
    pnb__free(webp);
    static const char *const others[] = {
        "b24.bmp",
#ifdef PNB_HAVE_GIF
        "plain.gif",
#endif
#ifdef PNB_HAVE_TIFF
        "t_RGB_packbits.tif",
        "tile16x16_le1.tif",
#endif
    };
    for (size_t i = 0; i < PNB_COUNT(others); i++) {
        unsigned char *bytes = read_file(others[i], &n);
        expect_refusal(bytes, n, 37 * 29 - 1, PNB_LIMIT, "37x29");
        pnb__free(bytes);
    }
    unsigned char *bmp = read_file("b24.bmp", &n);
    put_u32(bmp + 18, 0x803E0000); /* 16000 wide, little-endian */
    put_u32(bmp + 22, 0x803E0000);
    expect_refusal(bmp, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "16000x16000");
    pnb__free(bmp);
#ifdef PNB_HAVE_GIF
    unsigned char *gif = read_file("plain.gif", &n);
    size_t at = 13 + 192; /* the picture's header behind the screen's and its palette */
    assert_int_equal(gif[at], ',');
    memcpy(gif + 6, "\x80\x3E\x80\x3E", 4);
    memcpy(gif + at + 5, "\x80\x3E\x80\x3E", 4);
    expect_refusal(gif, n, PNB_IMAGE_MAX_PIXELS, PNB_FORMAT, "16000x16000");
    pnb__free(gif);
#endif
}

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
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_load(&image, "/nonexistent/a.png", NULL, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "a.png"));
    pnb_error_reset(&err);
    assert_int_equal(pnb_image_load(&image, DATA "expected.txt", NULL, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "expected.txt"));
    pnb_error_reset(&err);
    memset(&image, 0xFF, sizeof image);
    assert_int_equal(pnb_image_load(&image, "https://host/cat.jpg", NULL, &err), PNB_NOT_FOUND);
    assert_null(image.pixels);
}

/* A row so long that the number of a filter's weights is no int. */
static void a_row_of_billions_is_refused(void **state)
{
    (void)state;
    unsigned char pixel = 7; /* no other is looked at */
    static const pnb_filter filters[] = {PNB_FILTER_BILINEAR, PNB_FILTER_BICUBIC,
                                         PNB_FILTER_LANCZOS};
    for (size_t i = 0; i < PNB_COUNT(filters); i++) {
        pnb_image out, row = {.width = INT32_MAX, .height = 1, .channels = 1, .pixels = &pixel};
        assert_int_equal(pnb_image_resize(&out, &row, 1, 1, filters[i], NULL, NULL), PNB_LIMIT);
        assert_null(out.pixels);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    pnb_image in, out, none = {0};
    float chw[3 * 16], mean[3] = {0}, std[3] = {1, 1, 0};
    pnb_box outside = {0, 0, 5, 4}, inverted = {3, 0, 2, 4}, nan = {0, 0, 0.0 / 0.0, 4};
    assert_int_equal(pnb_image_create(&in, 0, 4, 3, NULL), PNB_ARG);
    assert_int_equal(pnb_image_create(&in, 4, 4, 5, NULL), PNB_ARG);
    assert_int_equal(pnb_image_create(&in, 4, 4, 3, NULL), PNB_OK);
    assert_int_equal(pnb_image_resize(&out, &none, 2, 2, PNB_FILTER_BICUBIC, NULL, NULL), PNB_ARG);
    assert_int_equal(pnb_image_resize(&out, &in, 0, 2, PNB_FILTER_BICUBIC, NULL, NULL), PNB_ARG);
    assert_int_equal(pnb_image_resize(&out, &in, 1 << 20, 1 << 20, PNB_FILTER_NEAREST, NULL, NULL),
                     PNB_LIMIT);
    assert_int_equal(pnb_image_resize(&out, &in, 2, 2, (pnb_filter)9, NULL, NULL), PNB_ARG);
    assert_int_equal(pnb_image_resize(&out, &in, 2, 2, PNB_FILTER_BICUBIC, &outside, NULL),
                     PNB_ARG);
    assert_int_equal(pnb_image_resize(&out, &in, 2, 2, PNB_FILTER_BICUBIC, &inverted, NULL),
                     PNB_ARG);
    assert_int_equal(pnb_image_resize(&out, &in, 2, 2, PNB_FILTER_BICUBIC, &nan, NULL), PNB_ARG);
    assert_int_equal(pnb_image_to_rgb(&out, &none, NULL), PNB_ARG);
    assert_int_equal(pnb_image_crop(&out, &in, 0, 0, 2, 2, 256, NULL), PNB_ARG);
    assert_int_equal(pnb_image_to_chw(&in, mean, std, chw, NULL), PNB_ARG);
    pnb_image flat = in;
    unsigned char *bytes;
    size_t n;
    flat.height = 0;
    assert_int_equal(pnb_image_encode_png(&flat, &bytes, &n, NULL), PNB_ARG);
    in.mode = PNB_IMAGE_GREY16; /* but three channels */
    assert_int_equal(pnb_image_crop(&out, &in, 0, 0, 2, 2, 1, NULL), PNB_ARG);
    in.mode = PNB_IMAGE_PALETTE; /* but no palette */
    assert_int_equal(pnb_image_to_rgb(&out, &in, NULL), PNB_ARG);
    pnb_image_free(&in);
}

/* Threads that decode with one budget. */
typedef struct crowd {
    const unsigned char *bytes;
    size_t n_bytes;
    pnb_image_budget *budget;
    pthread_mutex_t lock;
    int n_inside, most_inside, n_done;
} crowd;

static void *decode_some(void *user)
{
    crowd *c = user;
    for (int i = 0; i < 20; i++) {
        pnb_image image;
        pnb_image_opts opts = pnb_image_opts_default();
        opts.budget = c->budget;
        bool is_decoded = pnb_image_decode(&image, c->bytes, c->n_bytes, &opts, NULL) == PNB_OK;
        pthread_mutex_lock(&c->lock);
        c->n_done += is_decoded;
        c->n_inside++;
        c->most_inside = PNB_MAX(c->most_inside, c->n_inside);
        pthread_mutex_unlock(&c->lock);
        sched_yield();
        pthread_mutex_lock(&c->lock);
        c->n_inside--;
        pthread_mutex_unlock(&c->lock);
        pnb_image_free(&image);
    }
    return NULL;
}

/* A picture that needs more than half of the budget, or more than all of it, is alone in memory;
 * one that needs little is not; and nobody waits for ever. */
static void a_budget_is_shared(void **state)
{
    (void)state;
    enum { N_THREADS = 4 };
    static const struct {
        int64_t pixels;
        int most;
    } cases[] = {{37 * 29, 1}, {37 * 29 / 8, 1}, {37 * 29 * 100, N_THREADS}};
    crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned char *bytes = read_file("rgb8.png", &c.n_bytes);
    c.bytes = bytes;
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        pthread_t threads[N_THREADS];
        c.n_done = c.most_inside = 0;
        assert_int_equal(pnb_image_budget_create(&c.budget, cases[k].pixels, NULL), PNB_OK);
        for (int i = 0; i < N_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, decode_some, &c), 0);
        for (int i = 0; i < N_THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(c.n_done, 20 * N_THREADS);
        assert_in_range(c.most_inside, 1, cases[k].most);
        pnb_image_budget_free(c.budget);
    }
    /* damage gives back what was taken: a second decode would wait for ever */
    assert_int_equal(pnb_image_budget_create(&c.budget, 10, NULL), PNB_OK);
    for (size_t f = 0; f < PNB_COUNT(files); f++) {
        size_t n;
        unsigned char *damaged = read_file(files[f], &n);
        pnb_image image;
        pnb_image_opts opts = pnb_image_opts_default();
        opts.budget = c.budget;
        (void)pnb_image_decode(&image, damaged, n * 2 / 3, &opts, NULL);
        pnb_image_free(&image);
        assert_int_equal(pnb_image_decode(&image, damaged, n, &opts, NULL), PNB_OK);
        pnb_image_free(&image);
        pnb__free(damaged);
    }
    pnb_image_budget_free(c.budget);
    pnb__free(bytes);
}

/* A 1 x 3000 strip grows to 67 million pixels under SHORTEST; only the crop may be computed. */
static void long_strips_stay_cheap(void **state)
{
    (void)state;
    pnb_image strip, out;
    pnb_preprocess pp = pnb_preprocess_default();
    assert_int_equal(pnb_image_create(&strip, 1, 300000, 3, NULL), PNB_OK);
    assert_int_equal(pnb_preprocess_pixels(&pp, &strip, &out, NULL), PNB_OK);
    assert_int_equal(out.width, 224);
    pnb_image_free(&out);
    pnb_image_free(&strip);
    assert_int_equal(pnb_image_create(&strip, 1 << 26, 1, 1, NULL), PNB_OK);
    assert_int_equal(pnb_preprocess_pixels(&pp, &strip, &out, NULL), PNB_LIMIT);
    pnb_image_free(&strip);
}

#ifdef PNB_FAULTS
static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    for (size_t f = 0; f < PNB_COUNT(files); f++) {
        size_t n;
        unsigned char *bytes = read_file(files[f], &n);
        pnb_status status = PNB_NOMEM;
        for (long k = 0; status != PNB_OK; k++) {
            pnb_image image, out = {0};
            pnb_preprocess pp = pnb_preprocess_default();
            pnb_image_opts opts = pnb_image_opts_default();
            opts.native = opts.exif = pp.resize_first = true;
            pnb__alloc_fail_after(k);
            status = pnb_image_decode(&image, bytes, n, &opts, NULL);
            if (status == PNB_OK)
                status = pnb_preprocess_pixels(&pp, &image, &out, NULL);
            pnb__alloc_fail_after(-1);
            assert_true(status == PNB_OK || status == PNB_NOMEM || status == PNB_FORMAT);
            assert_true(k < 200);
            pnb_image_free(&image);
            pnb_image_free(&out);
        }
        pnb__free(bytes);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_everywhere),         cmocka_unit_test(damaged_bytes_do_no_harm),
        cmocka_unit_test(lying_sizes_are_refused),      cmocka_unit_test(strange_files_are_named),
        cmocka_unit_test(wrong_arguments_are_refused),  cmocka_unit_test(long_strips_stay_cheap),
        cmocka_unit_test(a_row_of_billions_is_refused), cmocka_unit_test(a_budget_is_shared),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_run_out_anywhere),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
