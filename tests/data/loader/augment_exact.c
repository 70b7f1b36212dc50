/* torchvision.txt: crops and changes of colour as torchvision 0.14 makes them of Pillow's pictures,
 * as hashes of the pixels; and that a whole augmentation is made of exactly these steps. */
#include "tests/data/fixture.h"

#include <math.h>

#include "data/loader/augment_internal.h"

#define PICTURES PNB_SOURCE_DIR "/tests/io/data/image/"
#define EXPECTED PNB_SOURCE_DIR "/tests/data/torchvision.txt"

static uint64_t fnv1a(const pnb_image *image)
{
    uint64_t h = 0xcbf29ce484222325u;
    size_t n = (size_t)image->width * (size_t)image->height * 3;
    for (size_t i = 0; i < n; i++)
        h = (h ^ image->pixels[i]) * 0x100000001b3u;
    return h;
}

static pnb_image load(const char *name)
{
    char path[512];
    pnb_image image;
    snprintf(path, sizeof path, PICTURES "%s", name);
    ASSERT_OK(pnb_image_load(&image, path, NULL, &err));
    return image;
}

static pnb_filter filter_of(const char *name)
{
    int f = 0;
    while (strcmp(name, pnb_filter_name((pnb_filter)f)) != 0)
        f++;
    return (pnb_filter)f;
}

static void crop(pnb_image *image, const char *filter, const char *numbers)
{
    pnb_preprocess pp = pnb_preprocess_default();
    pnb__view view = {.is_cropped = true, .zoom = 1};
    pnb__crop *c = &view.crop;
    pnb_image out;
    assert_int_equal(sscanf(numbers, "%d %d %d %d %d %d", &c->left, &c->top, &c->width, &c->height,
                            &pp.width, &pp.height),
                     6);
    pp.filter = filter_of(filter);
    ASSERT_OK(pnb__augment_place(&pp, image, &view, &out, &err));
    pnb_image_free(image);
    *image = out;
}

static void change(pnb_image *image, const char *operation, const char *numbers)
{
    double v = atof(numbers);
    if (strncmp(operation, "crop-", 5) == 0)
        crop(image, operation + 5, numbers);
    else if (strcmp(operation, "brightness") == 0)
        pnb__colour_brightness(image, (float)v);
    else if (strcmp(operation, "contrast") == 0)
        pnb__colour_contrast(image, (float)v);
    else if (strcmp(operation, "saturation") == 0)
        pnb__colour_saturation(image, (float)v);
    else if (strcmp(operation, "hue") == 0)
        pnb__colour_hue(image, v);
    else
        pnb__colour_grey(image);
}

static void steps_equal_torchvision(void **state)
{
    (void)state;
    char text[256], file[64], operation[32];
    int n_lines = 0, n_wrong = 0, at = 0;
    FILE *f = fopen(EXPECTED, "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        if (text[0] == '#' || sscanf(text, "%63s %31s %n", file, operation, &at) != 2)
            continue;
        unsigned long long hash = strtoull(strrchr(text, ' '), NULL, 16);
        pnb_image image = load(file);
        change(&image, operation, text + at);
        if (fnv1a(&image) != hash) {
            print_error("differs: %s", text);
            n_wrong++;
        }
        pnb_image_free(&image);
        n_lines++;
    }
    fclose(f);
    assert_true(n_lines == 260);
    assert_int_equal(n_wrong, 0);
}

/* RandomResizedCrop with a fixed area and nothing else: what comes out is that crop resized by the
 * filter of the preprocessing or, when one is given, by that. */
static void the_filter_is_the_configured_one(void **state)
{
    (void)state;
    pnb_image image = load("rgb8.png");
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_augment a = pnb_augment_none();
    float got[3 * 16 * 16], want[3 * 16 * 16];
    const uint64_t key[3] = {1, 2, 3};
    pp.width = pp.height = 16;
    a.enabled = a.crop = true;
    a.crop_ratio[0] = a.crop_ratio[1] = 37.0 / 29; /* the whole picture */
    for (int f = -1; f <= (int)PNB_FILTER_HAMMING; f++) {
        pnb_image resized;
        pnb_filter filter = f < 0 ? pp.filter : (pnb_filter)f;
        a.interpolation = f + 1;
        ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, key, got, &err));
        ASSERT_OK(pnb_image_resize(&resized, &image, 16, 16, filter, NULL, &err));
        ASSERT_OK(pnb_image_to_chw(&resized, pp.mean, pp.std, want, &err));
        assert_memory_equal(got, want, sizeof got);
        pnb_image_free(&resized);
    }
    pnb_image_free(&image);
}

/* A crop that pictures with a palette get in their own mode, as open_clip's pipeline does for
 * files: NEAREST, then RGB. */
static void own_modes_are_cropped_first(void **state)
{
    (void)state;
    pnb_image native, want, resized;
    pnb_image_opts opts = pnb_image_opts_default();
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_augment a = pnb_augment_none();
    float got[3 * 16 * 16], chw[3 * 16 * 16];
    const uint64_t key[3] = {1, 2, 3};
    opts.native = true;
    ASSERT_OK(pnb_image_load(&native, PICTURES "pal8.png", &opts, &err));
    assert_int_equal(native.mode, PNB_IMAGE_PALETTE);
    pp.width = pp.height = 16;
    pp.resize_first = a.enabled = a.crop = true;
    a.crop_ratio[0] = a.crop_ratio[1] = (double)native.width / native.height;
    ASSERT_OK(pnb_augment_apply(&a, &pp, &native, NULL, key, got, &err));
    ASSERT_OK(pnb_image_resize(&resized, &native, 16, 16, PNB_FILTER_BICUBIC, NULL, &err));
    ASSERT_OK(pnb_image_to_rgb(&want, &resized, &err));
    ASSERT_OK(pnb_image_to_chw(&want, pp.mean, pp.std, chw, &err));
    assert_memory_equal(got, chw, sizeof got);
    pnb_image_free(&native);
    pnb_image_free(&resized);
    pnb_image_free(&want);
}

/* Share of the erased pixels, mean and variance of what is there. */
static void erasing_is_normal_noise(void **state)
{
    (void)state;
    enum { SIDE = 64, PLANE = SIDE * SIDE, ROUNDS = 300 };
    pnb_image image;
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_augment a = pnb_augment_none();
    static float out[3 * PLANE], plain[3 * PLANE];
    double n_erased = 0, sum = 0, squares = 0, n_values = 0;
    int n_hit = 0;
    ASSERT_OK(pnb_image_create(&image, SIDE, SIDE, 3, &err));
    memset(image.pixels, 200, 3 * PLANE);
    pp.width = pp.height = SIDE;
    a.enabled = true;
    a.erase_p = 0.5;
    a.erase_count = 3;
    ASSERT_OK(pnb_preprocess_apply(&pp, &image, plain, &err));
    for (uint64_t s = 0; s < ROUNDS; s++) {
        const uint64_t key[3] = {1, 2, s};
        size_t n = 0;
        ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, key, out, &err));
        for (size_t i = 0; i < PLANE; i++) {
            bool is_changed = out[i] != plain[i];
            /* all three channels of a box, each with its own noise */
            assert_true(is_changed == (out[PLANE + i] != plain[PLANE + i]));
            n += is_changed;
            for (size_t c = 0; c < 3 && is_changed; c++, n_values++) {
                sum += (double)out[c * PLANE + i];
                squares += (double)out[c * PLANE + i] * (double)out[c * PLANE + i];
            }
        }
        n_hit += n > 0;
        n_erased += (double)n / PLANE;
    }
    assert_in_range(n_hit, 120, 180);
    /* boxes share the area of one: 2% to a third, 17.7% on average, less where they overlap */
    assert_true(n_erased / n_hit > 0.14 && n_erased / n_hit < 0.19);
    assert_true(fabs(sum / n_values) < 0.01);
    assert_true(fabs(squares / n_values - 1) < 0.01);
    pnb_image_free(&image);
}

/* Shrinking by a zoom is antialiased: stripes of one pixel become their mean, not one of the two.
 */
static void zooming_out_is_antialiased(void **state)
{
    (void)state;
    enum { SIDE = 32 };
    pnb_image image;
    pnb_preprocess pp = pnb_preprocess_default();
    float out[3 * SIDE * SIDE];
    ASSERT_OK(pnb_image_create(&image, 4 * SIDE, 4 * SIDE, 3, &err));
    for (size_t i = 0; i < 48 * SIDE * SIDE; i++)
        image.pixels[i] = i / 3 % 2 ? 255 : 0;
    pp.width = pp.height = SIDE;
    for (int c = 0; c < 3; c++) {
        pp.mean[c] = 0;
        pp.std[c] = 1;
    }
    for (int turned = 0; turned < 2; turned++) {
        pnb_augment a = pnb_augment_none();
        a.enabled = true;
        a.zoom[0] = 0.7;
        a.zoom[1] = 0.95;
        a.rotate = turned ? 0.2 : 0;
        for (uint64_t s = 0; s < 20; s++) {
            const uint64_t key[3] = {1, 2, s};
            ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, key, out, &err));
            for (int y = 12; y < 20; y++)
                for (int x = 12; x < 20; x++)
                    assert_true(fabsf(out[y * SIDE + x] - 0.5f) < 0.03f);
        }
    }
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_equal_torchvision),
                                       cmocka_unit_test(the_filter_is_the_configured_one),
                                       cmocka_unit_test(own_modes_are_cropped_first),
                                       cmocka_unit_test(erasing_is_normal_noise),
                                       cmocka_unit_test(zooming_out_is_antialiased)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
