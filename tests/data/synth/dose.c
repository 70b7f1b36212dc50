/* Doses by what is left of a picture: nothing changes at 0, and a known share at d. */
#include "data/synth/dose.h"

#include "tests/prob/support.h"

enum { WIDTH = 40, HEIGHT = 30 };

/* A picture in which no two neighbours are alike and nothing is grey. */
static pnb_image colourful(void)
{
    pnb_image image = {0};
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    assert_ok(pnb_image_create(&image, WIDTH, HEIGHT, 3, err));
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        image.pixels[3 * i] = (unsigned char)(140 + pnb__rng_below(&rng, 100));
        image.pixels[3 * i + 1] = (unsigned char)pnb__rng_below(&rng, 100);
        image.pixels[3 * i + 2] = (unsigned char)pnb__rng_below(&rng, 256);
    }
    return image;
}

static pnb_image dosed(pnb_change change, double dose, const pnb_image *other)
{
    pnb_image image = colourful();
    pnb__rng rng;
    pnb__rng_init(&rng, 8, 0);
    assert_ok(pnb__dose_apply(&image, change, dose, &rng, other, err));
    assert_true(image.width == WIDTH && image.height == HEIGHT && image.channels == 3);
    return image;
}

static double mean_difference(const pnb_image *a, const pnb_image *b)
{
    double sum = 0;
    for (size_t i = 0; i < 3 * WIDTH * HEIGHT; i++)
        sum += abs((int)a->pixels[i] - b->pixels[i]);
    return sum / (3 * WIDTH * HEIGHT);
}

static void no_dose_changes_nothing(void **state)
{
    (void)state;
    pnb_image plain = colourful(), other = colourful();
    for (int c = 0; c < PNB_N_CHANGES; c++) {
        pnb_image image = dosed((pnb_change)c, 0.0, &other);
        assert_near(mean_difference(&image, &plain), 0, 0, 0);
        pnb_image_free(&image);
    }
    pnb_image_free(&plain);
    pnb_image_free(&other);
}

static void the_share_is_erased(void **state)
{
    (void)state;
    for (int k = 1; k <= 4; k++) {
        double dose = k / 4.0;
        pnb_image image = dosed(PNB_CHANGE_ERASE, dose, NULL);
        size_t n = 0;
        for (size_t i = 0; i < WIDTH * HEIGHT; i++)
            n += image.pixels[3 * i] == 127 && image.pixels[3 * i + 1] == 127;
        assert_near((double)n / (WIDTH * HEIGHT), dose, 0.03, 0);
        pnb_image_free(&image);
    }
}

/* Spread of the colours of a pixel around its luma falls by the dose. */
static void the_share_of_colour_is_lost(void **state)
{
    (void)state;
    pnb_image plain = colourful(), half = dosed(PNB_CHANGE_GREY, 0.5, NULL),
              grey = dosed(PNB_CHANGE_GREY, 1.0, NULL);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        const unsigned char *a = plain.pixels + 3 * i, *b = half.pixels + 3 * i,
                            *c = grey.pixels + 3 * i;
        assert_true(c[0] == c[1] && c[1] == c[2]);
        assert_near(b[0] - b[1], 0.5 * (a[0] - a[1]), 1.01, 0);
        assert_near(c[0], 0.299 * a[0] + 0.587 * a[1] + 0.114 * a[2], 0.51, 0);
    }
    pnb_image_free(&plain);
    pnb_image_free(&half);
    pnb_image_free(&grey);
}

/* Of a full mix nobody can say which is meant: the mean of both. */
static void mixing(void **state)
{
    (void)state;
    pnb_image plain = colourful(), other = colourful();
    memset(other.pixels, 10, 3 * WIDTH * HEIGHT);
    pnb_image full = dosed(PNB_CHANGE_MIX, 1.0, &other),
              little = dosed(PNB_CHANGE_MIX, 0.2, &other);
    for (size_t i = 0; i < 3 * WIDTH * HEIGHT; i++) {
        assert_near(full.pixels[i], 0.5 * (plain.pixels[i] + 10), 0.51, 0);
        assert_near(little.pixels[i], 0.9 * plain.pixels[i] + 1, 0.51, 0);
    }
    pnb_image_free(&plain);
    pnb_image_free(&other);
    pnb_image_free(&full);
    pnb_image_free(&little);
}

/* What is left of random pixels after resizing down to the share 1 - d falls as the dose rises. */
static void shrinking(void **state)
{
    (void)state;
    pnb_image plain = colourful();
    double last = 0;
    for (int k = 1; k <= 4; k++) {
        pnb_image image = dosed(PNB_CHANGE_SHRINK, k / 4.0, NULL);
        double lost = mean_difference(&image, &plain);
        assert_true(lost > last + 1);
        last = lost;
        if (k == 4) /* one pixel */
            for (size_t i = 3; i < 3 * WIDTH * HEIGHT; i++)
                assert_int_equal(image.pixels[i], image.pixels[i % 3]);
        pnb_image_free(&image);
    }
    pnb_image_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_dose_changes_nothing),
        cmocka_unit_test(the_share_is_erased),
        cmocka_unit_test(the_share_of_colour_is_lost),
        cmocka_unit_test(mixing),
        cmocka_unit_test(shrinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
