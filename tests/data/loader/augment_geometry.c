/* Where the pixels come from: torchvision's crops to the bit, the filter that was asked for, and
 * maps that can be told on pictures of points. */
#include "tests/data/loader/torchvision.h"

#include <math.h>

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

static bool run_crop(pnb_image *image, const char *operation, const char *numbers)
{
    if (strncmp(operation, "crop-", 5) != 0)
        return false;
    crop(image, operation + 5, numbers);
    return true;
}

static void crops_equal_torchvision(void **state)
{
    (void)state;
    expect_torchvision(run_crop, 120);
}

/* RandomResizedCrop with a fixed area and nothing else: what comes out is that crop resized by the
 * filter of the preprocessing or, when one is given, by that. */
static void the_filter_is_the_configured_one(void **state)
{
    (void)state;
    pnb_image image = load_image("rgb8.png");
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
    ASSERT_OK(pnb_image_load(&native, IMAGES "pal8.png", &opts, &err));
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

/* Shares, ratios and places of drawn crops stay in their limits and fill them. */
static void drawn_crops(void **state)
{
    (void)state;
    enum { W = 300, H = 200, N = 2000 };
    pnb_augment a = pnb_augment_published();
    double least = 1, most = 0, flattest = 9, steepest = 0;
    int rightmost = 0, lowest = 0;
    a.crop_scale[0] = 0.3;
    for (uint64_t i = 0; i < N; i++) {
        pnb__rng rng;
        pnb__rng_init(&rng, 5, i);
        pnb__crop c = pnb__augment_draw_crop(&a, W, H, &rng);
        assert_true(c.left >= 0 && c.top >= 0 && c.left + c.width <= W && c.top + c.height <= H);
        double share = (double)c.width * c.height / (W * H), ratio = (double)c.width / c.height;
        least = PNB_MIN(least, share);
        most = PNB_MAX(most, share);
        flattest = PNB_MIN(flattest, ratio);
        steepest = PNB_MAX(steepest, ratio);
        rightmost = PNB_MAX(rightmost, c.left);
        lowest = PNB_MAX(lowest, c.top);
    }
    assert_true(least > 0.29 && least < 0.31 && most < 1.01 && most > 0.85);
    assert_true(flattest > 0.74 && flattest < 0.77 && steepest < 1.35 && steepest > 1.3);
    assert_true(rightmost > 80 && lowest > 40);
    /* what cannot be drawn: the middle, cut to the nearest ratio */
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    a.crop_scale[0] = a.crop_scale[1] = 1;
    pnb__crop c = pnb__augment_draw_crop(&a, 400, 100, &rng);
    assert_true(c.width == 133 && c.height == 100 && c.left == 133 && c.top == 0);
    c = pnb__augment_draw_crop(&a, 30, 400, &rng);
    assert_true(c.width == 30 && c.height == 40 && c.left == 0 && c.top == 180);
    c = pnb__augment_draw_crop(&a, 1, 1, &rng);
    assert_true(c.width == 1 && c.height == 1 && c.left == 0 && c.top == 0);
}

enum { SIDE = 33, MIDDLE = 16 };

/* One white pixel on black, `dx` right of and `dy` below the middle, through a view. */
static pnb_image seen_through(const pnb__view *view, int dx, int dy)
{
    pnb_image image, out;
    pnb_preprocess pp = pnb_preprocess_default();
    pp.width = pp.height = SIDE;
    ASSERT_OK(pnb_image_create(&image, SIDE, SIDE, 3, &err));
    memset(image.pixels, 0, 3 * SIDE * SIDE);
    memset(image.pixels + 3 * ((MIDDLE + dy) * SIDE + MIDDLE + dx), 255, 3);
    ASSERT_OK(pnb__augment_place(&pp, &image, view, &out, &err));
    assert_true(out.width == SIDE && out.height == SIDE && out.channels == 3);
    pnb_image_free(&image);
    return out;
}

/* The brightest pixel is there. */
static void point_is_at(pnb__view view, int dx, int dy, int want_dx, int want_dy)
{
    pnb_image out = seen_through(&view, dx, dy);
    int best = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        if (out.pixels[3 * i] > out.pixels[3 * best])
            best = i;
    assert_int_equal(best % SIDE - MIDDLE, want_dx);
    assert_int_equal(best / SIDE - MIDDLE, want_dy);
    pnb_image_free(&out);
}

/* Content is mirrored, turned about the middle with the clock, grown by the zoom, then shifted.
 */
static void points_move(void **state)
{
    (void)state;
    const double quarter = acos(-1.0) / 2;
    const pnb__view still = {.zoom = 1}, moved = {.zoom = 1, .is_turned = true};
    pnb__view v = still;
    point_is_at(v, 5, -3, 5, -3);
    v.flip = true;
    point_is_at(v, 5, -3, -5, -3);
    v = moved;
    v.shift_x = 4;
    v.shift_y = -2;
    point_is_at(v, 5, -3, 9, -5);
    v.flip = true;
    point_is_at(v, 5, -3, -1, -5);
    v = moved;
    v.zoom = 2;
    pnb_image out = seen_through(&v, 4, 0); /* its four pixels lie at 7.5 to 8.5 */
    assert_true(out.pixels[3 * (MIDDLE * SIDE + MIDDLE + 8)] > 100);
    pnb_image_free(&out);
    v = moved;
    v.angle = quarter;
    point_is_at(v, 6, 0, 0, 6);
    v.angle = -quarter;
    point_is_at(v, 6, 0, 0, -6);
    v.angle = 2 * quarter;
    point_is_at(v, 6, -2, -6, 2);
}

/* Beyond the source its border goes on, whichever way the content was moved. */
static void border_goes_on(void **state)
{
    (void)state;
    pnb_image image, out;
    pnb_preprocess pp = pnb_preprocess_default();
    pp.width = pp.height = SIDE;
    ASSERT_OK(pnb_image_create(&image, SIDE, SIDE, 3, &err));
    for (int i = 0; i < SIDE * SIDE; i++)
        memset(image.pixels + 3 * i, i % SIDE < 3 ? 50 : 200, 3);
    for (int turned = 0; turned < 2; turned++) {
        pnb__view v = {.zoom = 1, .is_turned = true, .shift_x = 10, .angle = turned ? 1e-9 : 0};
        ASSERT_OK(pnb__augment_place(&pp, &image, &v, &out, &err));
        for (int i = 0; i < SIDE * SIDE; i++)
            assert_true(abs(out.pixels[3 * i] - (i % SIDE < 13 ? 50 : 200)) <= 1);
        pnb_image_free(&out);
    }
    pnb_image_free(&image);
}

/* TSN's crops: sides of the list at most one place apart, the output's own size where it is near,
 * at 13 places; and everything there is comes. */
static void scaled_crops(void **state)
{
    (void)state;
    enum { WIDTH = 100, HEIGHT = 64, OUT = 47, ROUNDS = 4000 };
    static const int sides[] = {64, 56, OUT, 42}; /* int(64 s), but 48 is near 47 */
    const pnb_image image = {.width = WIDTH, .height = HEIGHT, .channels = 3};
    pnb_augment a = pnb_augment_none();
    int seen[4][4] = {{0}}, at[5][5] = {{0}};
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 6);
    a.enabled = a.crop = true;
    a.n_crop_scales = 4;
    memcpy(a.crop_scales, (double[]){1, 0.875, 0.75, 0.66}, 4 * sizeof(double));
    for (int r = 0; r < ROUNDS; r++) {
        pnb__crop c = pnb__augment_draw_scaled_crop(&a, &image, OUT, OUT, &rng);
        int i = 0, j = 0, dx = (WIDTH - c.width) / 4, dy = (HEIGHT - c.height) / 4;
        while (i < 4 && sides[i] != c.height)
            i++;
        while (j < 4 && sides[j] != c.width)
            j++;
        assert_true(i < 4 && j < 4 && abs(i - j) <= 1);
        seen[i][j]++;
        int x = dx > 0 ? c.left / dx : 0, y = dy > 0 ? c.top / dy : 0;
        assert_true(c.left == x * dx && c.top == y * dy && x <= 4 && y <= 4);
        assert_true(dy == 0 || x % 2 == y % 2); /* corners, middles, half way: never between */
        at[y][x]++;
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) /* ten pairs, 400 expected of each */
            assert_true(abs(i - j) > 1 ? seen[i][j] == 0 : seen[i][j] > 320 && seen[i][j] < 480);
    assert_true(at[1][1] > 150 && at[3][3] > 150 && at[2][2] > 150 && at[4][0] > 150);
    /* nothing is larger than the picture, and a picture of one pixel has a crop */
    const pnb_image dot = {.width = 1, .height = 1, .channels = 3};
    for (int r = 0; r < 100; r++) {
        pnb__crop c = pnb__augment_draw_scaled_crop(&a, &dot, 3, 3, &rng);
        assert_true(c.width == 1 && c.height == 1 && c.left == 0 && c.top == 0);
    }
}

/* Scale 1 alone of a square picture is the picture, whatever was drawn. */
static void a_scale_of_one_is_the_image(void **state)
{
    (void)state;
    pnb_image image = load_image("rgb8.png"), square, resized;
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_augment a = pnb_augment_none();
    float got[3 * 16 * 16], want[3 * 16 * 16];
    pp.width = pp.height = 16;
    a.enabled = a.crop = true;
    a.crop_scales[0] = 1;
    a.n_crop_scales = 1;
    ASSERT_OK(pnb_image_resize(&square, &image, 24, 24, pp.filter, NULL, &err));
    ASSERT_OK(pnb_image_resize(&resized, &square, 16, 16, pp.filter, NULL, &err));
    ASSERT_OK(pnb_image_to_chw(&resized, pp.mean, pp.std, want, &err));
    for (uint64_t s = 0; s < 8; s++) {
        const uint64_t key[3] = {1, 2, s};
        ASSERT_OK(pnb_augment_apply(&a, &pp, &square, NULL, key, got, &err));
        assert_memory_equal(got, want, sizeof got);
    }
    pnb_image_free(&image);
    pnb_image_free(&square);
    pnb_image_free(&resized);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scaled_crops),
                                       cmocka_unit_test(a_scale_of_one_is_the_image),
                                       cmocka_unit_test(crops_equal_torchvision),
                                       cmocka_unit_test(the_filter_is_the_configured_one),
                                       cmocka_unit_test(own_modes_are_cropped_first),
                                       cmocka_unit_test(zooming_out_is_antialiased),
                                       cmocka_unit_test(drawn_crops),
                                       cmocka_unit_test(points_move),
                                       cmocka_unit_test(border_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
