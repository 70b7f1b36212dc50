/* data/image/expected.txt: what Pillow 9.4 decodes and resizes from the files beside it, as hashes.
 * Covers every PNG colour type and depth, plain and interlaced; JPEG subsamplings, progressive,
 * grey, CMYK; WebP lossy, lossless, with alpha; GIF with local, short and grey palettes,
 * interlaced, beside and beyond the screen, transparent; BMP of every depth, header, mask and run
 * length; TIFF in strips, tiles and planes, of every depth, colour, byte order and orientation;
 * EXIF turns; four filters in each picture mode; and that the plain C loops and the fast ones give
 * the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "io/image/resample.h"
#include "penumbra/image.h"

#define DATA PNB_SOURCE_DIR "/tests/io/data/image/"

static uint64_t fnv1a(const unsigned char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

typedef struct line {
    char file[64], op[32];
    int width, height;
    unsigned long long hash;
} line;

static pnb_filter filter_of(const char *name)
{
    for (int f = PNB_FILTER_NEAREST; f <= PNB_FILTER_HAMMING; f++)
        if (strcmp(name, pnb_filter_name((pnb_filter)f)) == 0)
            return (pnb_filter)f;
    fail_msg("filter %s", name);
    return PNB_FILTER_NEAREST;
}

/* The picture that one line of the table describes. */
static void make(const line *l, pnb_image *out)
{
    char path[512];
    pnb_error err = PNB_ERROR_INIT;
    pnb_image in, resized;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.exif = strcmp(l->op, "exif") == 0;
    opts.native = strncmp(l->op, "native-", 7) == 0;
    snprintf(path, sizeof path, DATA "%s", l->file);
    if (pnb_image_load(&in, path, &opts, &err) != PNB_OK)
        fail_msg("%s", err.text);
    if (strchr(l->op, '-') == NULL) {
        *out = in;
        return;
    }
    pnb_box box = {3.5, 2.25, 30.75, 28};
    const pnb_box *used = strncmp(l->op, "box-", 4) == 0 ? &box : NULL;
    pnb_filter filter = filter_of(strchr(l->op, '-') + 1);
    if (pnb_image_resize(&resized, &in, l->width, l->height, filter, used, &err) != PNB_OK)
        fail_msg("%s %s: %s", l->file, l->op, err.text);
    assert_int_equal(pnb_image_to_rgb(out, &resized, NULL), PNB_OK);
    pnb_image_free(&resized);
    pnb_image_free(&in);
}

/* GIF and TIFF need libraries that a build may lack. */
static bool is_readable(const char *file)
{
    const char *formats = pnb_image_formats();
    if (pnb__ends_with(file, ".gif"))
        return strstr(formats, "GIF") != NULL;
    return !pnb__ends_with(file, ".tif") || strstr(formats, "TIFF") != NULL;
}

static void pixels_equal_pillow(void **state)
{
    (void)state;
    char text[256];
    int n_lines = 0, n_wrong = 0;
    FILE *f = fopen(DATA "expected.txt", "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        line l;
        pnb_image got;
        if (sscanf(text, "%63s %31s %d %d %llx", l.file, l.op, &l.width, &l.height, &l.hash) != 5 ||
            !is_readable(l.file))
            continue;
        make(&l, &got);
        size_t n = (size_t)got.width * (size_t)got.height * 3;
        bool same =
            got.width == l.width && got.height == l.height && fnv1a(got.pixels, n) == l.hash;
        if (!same)
            print_error("differs: %s", text);
        n_wrong += !same;
        n_lines++;
        pnb_image_free(&got);
    }
    fclose(f);
    assert_true(n_lines > 1000);
    assert_int_equal(n_wrong, 0);
}

/* Random weights, also negative and extreme ones, through both sets of loops. */
static void fast_loops_equal_plain(void **state)
{
    (void)state;
    enum { N_IN = 300, N_OUT = 41, STRIDE = 28, ROW = 300 * 3 };
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    static unsigned char in[ROW * 40 + 64], a[ROW], b[ROW];
    int first[N_OUT], count[N_OUT];
    int32_t weight[N_OUT * STRIDE] = {0};
    int16_t low[N_OUT * STRIDE] = {0}, high[N_OUT * STRIDE] = {0};
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)pnb__rng_u32(&rng);
    for (int i = 0; i < N_OUT; i++) {
        count[i] = 1 + (int)pnb__rng_below(&rng, STRIDE);
        first[i] = (int)pnb__rng_below(&rng, 12);
        for (int j = 0; j < count[i]; j++) {
            int32_t w = (int32_t)pnb__rng_below(&rng, 1 << 21) - (1 << 20);
            weight[i * STRIDE + j] = w;
            high[i * STRIDE + j] = (int16_t)((w + (1 << 14)) >> 15);
            low[i * STRIDE + j] = (int16_t)(w - high[i * STRIDE + j] * (1 << 15));
        }
    }
    pnb__taps taps = {N_OUT, STRIDE, first, count, weight, low, high, NULL};
    pnb__resampler plain = pnb__resampler_plain(), best = pnb__resampler_best();
    for (int channels = 1; channels <= 4; channels++) {
        plain.horizontal(a, in, &taps, channels);
        best.horizontal(b, in, &taps, channels);
        assert_memory_equal(a, b, (size_t)(N_OUT * channels));
    }
    static const size_t widths[] = {1, 3, 15, 16, 17, 48, 255, ROW};
    for (size_t k = 0; k < PNB_COUNT(widths); k++) {
        for (int y = 0; y < N_OUT; y++) {
            plain.vertical(a, in, widths[k], &taps, y);
            best.vertical(b, in, widths[k], &taps, y);
            assert_memory_equal(a, b, widths[k]);
        }
    }
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pixels_equal_pillow),
                                       cmocka_unit_test(heif_is_near_its_source),
                                       cmocka_unit_test(fast_loops_equal_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
