/* Thumbnails: their size, their pixels, pictures of every mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/image/thumbnail.h"

/* Left half dark, right half light. */
static pnb_image halves(int width, int height, int channels)
{
    pnb_image image;
    assert_int_equal(pnb_image_create(&image, width, height, channels, NULL), PNB_OK);
    for (size_t i = 0; i < (size_t)width * (size_t)height * (size_t)channels; i++)
        image.pixels[i] = i / (size_t)channels % (size_t)width < (size_t)width / 2 ? 20 : 230;
    return image;
}

static void check(int width, int height, int channels, int small_width, int small_height)
{
    pnb_image large = halves(width, height, channels), small;
    pnb__buf bytes = {0};
    assert_int_equal(pnb__thumbnail_make(&large, &bytes, NULL), PNB_OK);
    assert_int_equal(pnb_image_decode(&small, bytes.data, bytes.size, NULL, NULL), PNB_OK);
    assert_int_equal(small.width, small_width);
    assert_int_equal(small.height, small_height);
    if (small_width > 20) {
        size_t middle = (size_t)(small_height / 2) * (size_t)small_width * 3;
        assert_true(abs(small.pixels[middle + 6] - 20) < 8);
        assert_true(abs(small.pixels[middle + (size_t)(small_width - 3) * 3] - 230) < 8);
    }
    pnb_image_free(&small);
    pnb_image_free(&large);
    pnb__buf_reset(&bytes);
}

static void sizes_and_modes(void **state)
{
    (void)state;
    check(1000, 500, 3, 256, 128);
    check(300, 900, 3, 85, 256);
    check(100, 40, 3, 100, 40);
    check(256, 256, 4, 256, 256);
    check(2000, 1000, 1, 256, 128);
    check(5000, 1, 3, 256, 1);
}

/* The left half is the upper one when the picture is turned as it says, large or small. */
static void as_it_was_held(void **state)
{
    (void)state;
    for (int side = 60; side <= 600; side += 540) {
        pnb_image image = halves(side, side / 2, 3), small;
        pnb__buf bytes = {0};
        image.orientation = 6; /* a quarter to the right */
        assert_int_equal(pnb__thumbnail_make(&image, &bytes, NULL), PNB_OK);
        assert_int_equal(image.width, side); /* the picture itself stays */
        assert_int_equal(pnb_image_decode(&small, bytes.data, bytes.size, NULL, NULL), PNB_OK);
        assert_int_equal(small.height, PNB_MIN(side, (int)PNB__THUMBNAIL_SIDE));
        assert_int_equal(small.width, small.height / 2);
        size_t n = (size_t)small.width * (size_t)small.height * 3;
        assert_true(small.pixels[(size_t)small.width * 9] < 40);
        assert_true(small.pixels[n - (size_t)small.width * 9] > 200);
        pnb_image_free(&small);
        pnb_image_free(&image);
        pnb__buf_reset(&bytes);
    }
}

static void an_empty_image(void **state)
{
    const pnb_image none = {0};
    pnb__buf bytes = {0};
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    assert_int_equal(pnb__thumbnail_make(&none, &bytes, &err), PNB_ARG);
    assert_null(bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_and_modes),
                                       cmocka_unit_test(as_it_was_held),
                                       cmocka_unit_test(an_empty_image)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
