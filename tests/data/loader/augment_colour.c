/* Changes of colour: the bits of torchvision on real pictures, and by hand on single pixels. */
#include "tests/data/loader/torchvision.h"

#include <math.h>

static bool change(pnb_image *image, const char *operation, const char *numbers)
{
    double v = atof(numbers);
    if (strcmp(operation, "brightness") == 0)
        pnb__colour_brightness(image, (float)v);
    else if (strcmp(operation, "contrast") == 0)
        pnb__colour_contrast(image, (float)v);
    else if (strcmp(operation, "saturation") == 0)
        pnb__colour_saturation(image, (float)v);
    else if (strcmp(operation, "hue") == 0)
        pnb__colour_hue(image, v);
    else if (strcmp(operation, "grey") == 0)
        pnb__colour_grey(image);
    else
        return false;
    return true;
}

static void colours_equal_torchvision(void **state)
{
    (void)state;
    expect_torchvision(change, 140);
}

/* Two pixels of one row. */
static unsigned char pixels[6];

static pnb_image two_pixels(int r, int g, int b, int r2, int g2, int b2)
{
    const int values[6] = {r, g, b, r2, g2, b2};
    for (int i = 0; i < 6; i++)
        pixels[i] = (unsigned char)values[i];
    return (pnb_image){.width = 2, .height = 1, .channels = 3, .pixels = pixels};
}

static void pixels_are(int r, int g, int b, int r2, int g2, int b2)
{
    const int want[6] = {r, g, b, r2, g2, b2};
    for (int i = 0; i < 6; i++)
        assert_int_equal(pixels[i], want[i]);
}

/* Between the two pictures a blend is cut, beyond them it ends at 0 and 255. */
static void blends(void **state)
{
    (void)state;
    pnb_image image = two_pixels(10, 101, 255, 0, 1, 128);
    pnb__colour_brightness(&image, 0.5f);
    pixels_are(5, 50, 127, 0, 0, 64);
    image = two_pixels(10, 101, 255, 0, 1, 128);
    pnb__colour_brightness(&image, 2.0f);
    pixels_are(20, 202, 255, 0, 2, 255);
    image = two_pixels(10, 101, 255, 0, 1, 128);
    pnb__colour_brightness(&image, 0.0f);
    pixels_are(0, 0, 0, 0, 0, 0);
    image = two_pixels(100, 100, 100, 201, 201, 201); /* mean 150.5, rounded up */
    pnb__colour_contrast(&image, 0.0f);
    pixels_are(151, 151, 151, 151, 151, 151);
    image = two_pixels(100, 100, 100, 200, 200, 200);
    pnb__colour_contrast(&image, 3.0f);
    pixels_are(0, 0, 0, 255, 255, 255);
    image = two_pixels(255, 0, 0, 7, 7, 7); /* grey of red: 76.245 */
    pnb__colour_saturation(&image, 0.0f);
    pixels_are(76, 76, 76, 7, 7, 7);
    image = two_pixels(255, 0, 0, 7, 8, 9);
    pnb__colour_saturation(&image, 1.0f);
    pixels_are(255, 0, 0, 7, 8, 9);
}

static void grey_and_gain(void **state)
{
    (void)state;
    pnb_image image = two_pixels(0, 255, 0, 0, 0, 255); /* 149.685 and 29.07 */
    pnb__colour_grey(&image);
    pixels_are(150, 150, 150, 29, 29, 29);
    image = two_pixels(100, 100, 100, 200, 3, 255);
    pnb__colour_gain(&image, (const double[]){1.5, 0.5, 0});
    pixels_are(150, 50, 0, 255, 2, 0); /* 1.5 rounds up */
    image = two_pixels(1, 2, 3, 253, 254, 255);
    pnb__colour_gain(&image, (const double[]){1, 1, 1});
    pixels_are(1, 2, 3, 253, 254, 255);
}

/* Thirds of the circle move pure colours on; what is grey has no hue. */
static void hues(void **state)
{
    (void)state;
    pnb_image image = two_pixels(255, 0, 0, 90, 90, 90);
    pnb__colour_hue(&image, 1.0 / 3 + 1e-6);
    pixels_are(0, 255, 0, 90, 90, 90);
    pnb__colour_hue(&image, 1.0 / 3 + 1e-6);
    pixels_are(0, 0, 255, 90, 90, 90);
    pnb__colour_hue(&image, -1.0 / 3 - 1e-6);
    pixels_are(0, 255, 0, 90, 90, 90);
    /* a quarter of the circle from hues of 30 and 233.3 degrees; a step of 8 bits is 1.4 of them */
    image = two_pixels(200, 120, 40, 40, 60, 220);
    pnb__colour_hue(&image, 0.25);
    assert_true(abs(pixels[0] - 40) <= 6 && pixels[1] == 200 && abs(pixels[2] - 40) <= 6);
    assert_true(pixels[3] == 220 && abs(pixels[4] - 40) <= 1 && abs(pixels[5] - 150) <= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(colours_equal_torchvision),
                                       cmocka_unit_test(blends), cmocka_unit_test(grey_and_gain),
                                       cmocka_unit_test(hues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
