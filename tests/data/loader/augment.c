/* Augmentation: identity, the meaning of each draw on pictures where it can be computed by hand,
 * the key of the draws, erasing, and refused settings. */
#include "tests/data/fixture.h"

#include <math.h>

enum { SIDE = 32 };

static pnb_preprocess plain(int width, int height)
{
    pnb_preprocess pp = pnb_preprocess_default();
    pp.width = width;
    pp.height = height;
    for (int c = 0; c < 3; c++) {
        pp.mean[c] = 0.0f;
        pp.std[c] = 1.0f;
    }
    return pp;
}

/* Red grows to the right, green downwards, blue is constant. */
static pnb_image ramp(int width, int height)
{
    pnb_image image = {0};
    ASSERT_OK(pnb_image_create(&image, width, height, 3, &err));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            unsigned char *p = image.pixels + 3 * (y * width + x);
            p[0] = (unsigned char)(4 * x);
            p[1] = (unsigned char)(4 * y);
            p[2] = 100;
        }
    return image;
}

static void apply(const pnb_augment *a, const pnb_preprocess *pp, const pnb_image *image,
                  const char *group, uint64_t sample, float *out)
{
    const uint64_t key[3] = {7, 2, sample};
    ASSERT_OK(pnb_augment_apply(a, pp, image, group, key, out, &err));
}

static pnb_augment identity(void)
{
    pnb_augment a = pnb_augment_none();
    a.enabled = true;
    return a;
}

static void test_identity(void **state)
{
    pnb_image image = ramp(SIDE, SIDE);
    pnb_preprocess pp = plain(SIDE, SIDE);
    pnb_augment a = identity();
    float out[3 * SIDE * SIDE], plain_out[3 * SIDE * SIDE];
    (void)state;
    apply(&a, &pp, &image, NULL, 1, out);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < SIDE * SIDE; i++)
            assert_true(fabsf(out[c * SIDE * SIDE + i] - image.pixels[3 * i + c] / 255.0f) < 1e-6f);
    a.enabled = false;
    apply(&a, &pp, &image, NULL, 1, plain_out);
    for (int i = 0; i < 3 * SIDE * SIDE; i++)
        assert_true(fabsf(out[i] - plain_out[i]) < 1e-6f);
    pp = pnb_preprocess_default(); /* normalisation */
    pp.width = pp.height = SIDE;
    a.enabled = true;
    apply(&a, &pp, &image, NULL, 1, out);
    assert_true(fabsf(out[2 * SIDE * SIDE] - (100 / 255.0f - pp.mean[2]) / pp.std[2]) < 1e-5f);
    pnb_image_free(&image);
}

/* Away from the edges a linear ramp stays linear: its slope and offset tell zoom, shift and angle.
 */
static void test_geometry(void **state)
{
    pnb_image image = ramp(SIDE, SIDE);
    pnb_preprocess pp = plain(SIDE, SIDE);
    pnb_augment a = identity();
    float out[3 * SIDE * SIDE];
    const int centre = 16 * SIDE + 16;
    double least = 9, most = 0, turned = 0;
    (void)state;
    a.zoom[0] = 0.5;
    a.zoom[1] = 2.0;
    for (uint64_t s = 0; s < 200; s++) {
        apply(&a, &pp, &image, NULL, s, out);
        double slope = ((double)out[centre + 4] - (double)out[centre - 4]) * 255.0 / 32.0;
        least = PNB_MIN(least, 1 / slope);
        most = PNB_MAX(most, 1 / slope);
    }
    assert_true(least >= 0.48 && least < 0.55 && most <= 2.1 && most > 1.8);

    a = identity();
    a.shift = 0.25; /* content moves right: red falls */
    double left = 0, right = 0;
    for (uint64_t s = 0; s < 200; s++) {
        apply(&a, &pp, &image, NULL, s, out);
        double moved = (image.pixels[3 * centre] - (double)out[centre] * 255.0) / 4.0;
        left = PNB_MIN(left, moved);
        right = PNB_MAX(right, moved);
    }
    assert_true(left >= -8.2 && left < -7 && right <= 8.2 && right > 7);

    a = identity();
    a.rotate = 0.3;
    for (uint64_t s = 0; s < 50; s++) {
        apply(&a, &pp, &image, NULL, s, out);
        const float *red = out + centre, *green = red + SIDE * SIDE;
        double dx = ((double)red[8] - (double)red[-8]) * 255.0 / 64.0;
        double dy = ((double)green[8] - (double)green[-8]) * 255.0 / 64.0;
        assert_true(fabs(dx * dx + dy * dy - 1.0) < 0.05); /* a turn keeps lengths */
        assert_true(fabs(atan2(dy, dx)) <= 0.32);
        turned = PNB_MAX(turned, fabs(atan2(dy, dx)));
    }
    assert_true(turned > 0.25);
    pnb_image_free(&image);
}

static void test_flip(void **state)
{
    pnb_image image = ramp(SIDE, SIDE);
    pnb_preprocess pp = plain(SIDE, SIDE);
    pnb_augment a = identity();
    const pnb_augment small = pnb_augment_small();
    float out[3 * SIDE * SIDE];
    int n_flipped = 0;
    (void)state;
    a.flip = 0.5;
    a.no_flip_groups = small.no_flip_groups;
    a.n_no_flip_groups = small.n_no_flip_groups;
    for (uint64_t s = 0; s < 400; s++) {
        apply(&a, &pp, &image, "Animals & Nature", s, out);
        bool is_flipped = out[0] > out[SIDE - 1];
        if (is_flipped)
            assert_true(fabsf(out[0] * 255.0f - 4.0f * (SIDE - 1)) < 1e-3f);
        n_flipped += is_flipped;
        apply(&a, &pp, &image, s % 2 ? "Flags" : "shapes", s, out);
        assert_true(out[0] < out[SIDE - 1]);
    }
    assert_in_range(n_flipped, 160, 240);
    pnb_augment_no_flip(&a);
    apply(&a, &pp, &image, NULL, 3, out);
    assert_true(out[0] < out[SIDE - 1]);
    pnb_image_free(&image);
}

static void test_crop_and_shrink(void **state)
{
    pnb_image image = ramp(60, 40);
    pnb_preprocess pp = plain(10, 10);
    pnb_augment a = identity();
    float out[3 * 100];
    (void)state;
    a.crop = true;
    a.crop_scale[0] = a.crop_scale[1] = 1.0; /* all of it, whatever the aspect */
    a.crop_ratio[0] = a.crop_ratio[1] = 1.5;
    apply(&a, &pp, &image, NULL, 1, out);
    for (int i = 0; i < 9; i++) /* averages over equal parts of a ramp rise in equal steps */
        assert_true(fabsf((out[i + 1] - out[i]) * 255.0f - 24.0f) < (i % 8 ? 1.1f : 4.1f));
    a.crop_scale[0] = 0.25;
    a.crop_scale[1] = 0.5;
    for (uint64_t s = 0; s < 100; s++) {
        apply(&a, &pp, &image, NULL, s, out);
        double width = ((double)out[9] - (double)out[0]) * 255.0 / 4.0 / 0.9;
        double height = ((double)out[190] - (double)out[100]) * 255.0 / 4.0 / 0.9;
        double share = width * height / 2400.0;
        assert_true(share > 0.2 && share < 0.56);
        assert_true(fabs(width / height - 1.5) < 0.2);
    }
    pnb_image_free(&image);
}

static void test_colour(void **state)
{
    pnb_image image = ramp(SIDE, SIDE);
    pnb_preprocess pp = plain(SIDE, SIDE);
    pnb_augment a = identity();
    const int centre = 16 * SIDE + 16, plane = SIDE * SIDE;
    float out[3 * SIDE * SIDE];
    (void)state;
    a.grey_p = 1.0;
    apply(&a, &pp, &image, NULL, 1, out);
    for (int i = 0; i < plane; i++)
        assert_true(out[i] == out[plane + i] && out[i] == out[2 * plane + i]);
    a = identity();
    a.gain = 0.2;
    double low = 9, high = 0;
    for (uint64_t s = 0; s < 200; s++) {
        apply(&a, &pp, &image, NULL, s, out);
        double gain = (double)out[2 * plane + centre] * 255.0 / 100.0;
        low = PNB_MIN(low, gain);
        high = PNB_MAX(high, gain);
        double other = (double)out[centre] * 255.0 / image.pixels[3 * centre];
        assert_true(other > 0.79 && other < 1.21);
    }
    assert_true(low >= 0.795 && low < 0.83 && high <= 1.205 && high > 1.17);
    a = identity();
    a.jitter_p = 1.0;
    a.jitter[3] = 0.5; /* a turn of the hue keeps the largest and the smallest channel */
    for (uint64_t s = 0; s < 50; s++) {
        apply(&a, &pp, &image, NULL, s, out);
        float most = 0, least = 1;
        for (int c = 0; c < 3; c++) {
            most = PNB_MAX(most, out[c * plane + centre]);
            least = PNB_MIN(least, out[c * plane + centre]);
        }
        assert_true(fabsf(most * 255.0f - 100.0f) < 1e-2f && fabsf(least * 255.0f - 64.0f) < 1.1f);
    }
    pnb_image_free(&image);
}

static void test_key(void **state)
{
    pnb_image image = ramp(SIDE, SIDE);
    pnb_preprocess pp = plain(SIDE, SIDE);
    pnb_augment a = pnb_augment_published();
    float first[3 * SIDE * SIDE], second[3 * SIDE * SIDE];
    const uint64_t keys[4][3] = {{1, 2, 3}, {1, 2, 4}, {1, 3, 3}, {2, 2, 3}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, keys[0], first, &err));
        ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, keys[i], second, &err));
        assert_true((memcmp(first, second, sizeof first) == 0) == (i == 0));
    }
    pnb_image_free(&image);
}

static void test_refused(void **state)
{
    pnb_image image = ramp(4, 4);
    pnb_preprocess pp = plain(4, 4);
    float out[48];
    const uint64_t key[3] = {0};
    (void)state;
    for (int i = 0; i < 11; i++) {
        pnb_augment a = identity();
        pnb_error error = PNB_ERROR_INIT;
        if (i == 0)
            a.flip = 1.5;
        else if (i == 1)
            a.zoom[0] = 0.0;
        else if (i == 2)
            a.crop_scale[0] = 2.0;
        else if (i == 3)
            a.jitter[1] = NAN;
        else if (i == 4)
            a.rotate = -1;
        else if (i == 5)
            a.erase_p = 1.5;
        else if (i == 6) {
            a.erase_p = 0.5;
            a.erase_count = 0;
        } else if (i == 7)
            a.interpolation = 9;
        else if (i == 8) {
            a.n_crop_scales = 2;
            a.crop_scales[0] = 1;
        } else if (i == 9)
            a.n_crop_scales = PNB_MAX_CROP_SCALES + 1;
        else
            pp.std[1] = 0.0f;
        assert_int_equal(pnb_augment_apply(&a, &pp, &image, NULL, key, out, &error), PNB_ARG);
        assert_non_null(strstr(error.text, "augmentation"));
    }
    pnb_image_free(&image);
}

/* Share of the erased pixels, mean and variance of what is there. */
static void erasing_is_normal_noise(void **state)
{
    (void)state;
    enum { WIDE = 64, PLANE = WIDE * WIDE, ROUNDS = 300 };
    pnb_image image;
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_augment a = pnb_augment_none();
    static float out[3 * PLANE], plain[3 * PLANE];
    double n_erased = 0, sum = 0, squares = 0, n_values = 0;
    int n_hit = 0;
    ASSERT_OK(pnb_image_create(&image, WIDE, WIDE, 3, &err));
    memset(image.pixels, 200, 3 * PLANE);
    pp.width = pp.height = WIDE;
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

/* PCME's: one box of zeros, where its noise would have been. */
static void erasing_can_be_a_constant(void **state)
{
    (void)state;
    enum { WIDE = 32, PLANE = WIDE * WIDE, ROUNDS = 200 };
    pnb_image image;
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_augment noise = pnb_augment_none();
    static float filled[3 * PLANE], noisy[3 * PLANE], plain[3 * PLANE];
    int n_hit = 0;
    ASSERT_OK(pnb_image_create(&image, WIDE, WIDE, 3, &err));
    memset(image.pixels, 200, 3 * PLANE);
    pp.width = pp.height = WIDE;
    noise.enabled = true;
    noise.erase_p = 0.2;
    ASSERT_OK(pnb_preprocess_apply(&pp, &image, plain, &err));
    pnb_augment a = noise;
    a.erase_const = true;
    for (uint64_t s = 0; s < ROUNDS; s++) {
        const uint64_t key[3] = {1, 2, s};
        bool is_hit = false;
        ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, key, filled, &err));
        ASSERT_OK(pnb_augment_apply(&noise, &pp, &image, NULL, key, noisy, &err));
        for (size_t i = 0; i < 3 * PLANE; i++) {
            bool is_changed = noisy[i] != plain[i];
            assert_true(filled[i] == (is_changed ? 0 : plain[i]));
            is_hit = is_hit || is_changed;
        }
        n_hit += is_hit;
    }
    assert_in_range(n_hit, 20, 60); /* a fifth of 200, within 3.5 standard deviations */
    pnb_image_free(&image);
    ASSERT_OK(pnb_image_create(&image, 1, 1, 3, &err)); /* a box is never the whole picture */
    memset(image.pixels, 200, 3);
    pp.width = pp.height = 1;
    a.erase_p = 1;
    ASSERT_OK(pnb_preprocess_apply(&pp, &image, plain, &err));
    ASSERT_OK(pnb_augment_apply(&a, &pp, &image, NULL, (const uint64_t[3]){1, 2, 3}, filled, &err));
    assert_memory_equal(filled, plain, 3 * sizeof *plain);
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_identity),
                                       cmocka_unit_test(test_geometry),
                                       cmocka_unit_test(test_flip),
                                       cmocka_unit_test(test_crop_and_shrink),
                                       cmocka_unit_test(test_colour),
                                       cmocka_unit_test(test_key),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(erasing_is_normal_noise),
                                       cmocka_unit_test(erasing_can_be_a_constant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
