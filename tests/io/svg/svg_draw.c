/* Drawing an SVG: sizes, colours, parts, and what librsvg refuses. */
#include "io/svg/svg_draw.h"

#include "tests/io/svg/support.h"

static const char TWO[] = SVG_OPEN "<rect width=\"50\" height=\"50\" fill=\"#ff0000\"/>"
                                   "<rect x=\"50\" width=\"50\" height=\"50\" fill=\"#0000ff\" "
                                   "fill-opacity=\"0.5\"/></svg>";

static void expect_pixel(const pnb_image *image, int x, int y, int red, int green, int blue)
{
    const unsigned char *p = image->pixels + 3 * (y * image->width + x);
    if (abs(p[0] - red) > 1 || abs(p[1] - green) > 1 || abs(p[2] - blue) > 1)
        fail_msg("(%d,%d) is %d %d %d", x, y, p[0], p[1], p[2]);
}

static void draw(pnb_image *image, const char *text, int side, const pnb_box *part)
{
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__svg_draw(image, text, strlen(text), side, part, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

static void the_page_is_drawn_on_white(void **state)
{
    pnb_image image;
    (void)state;
    need_svg();
    draw(&image, TWO, 20, NULL);
    assert_int_equal(image.width, 20);
    assert_int_equal(image.height, 10);
    assert_int_equal(image.channels, 3);
    expect_pixel(&image, 4, 4, 255, 0, 0);
    expect_pixel(&image, 15, 4, 127, 127, 255);
    pnb_image_free(&image);
}

static void a_part_is_drawn_larger(void **state)
{
    pnb_image image;
    const pnb_box part = {0.25, 0, 0.75, 0.25};
    (void)state;
    need_svg();
    draw(&image, TWO, 40, &part);
    assert_int_equal(image.width, 20);
    assert_int_equal(image.height, 10);
    expect_pixel(&image, 9, 9, 255, 0, 0);
    expect_pixel(&image, 10, 0, 127, 127, 255);
    pnb_image_free(&image);
}

/* A page of 10^9 pixels, of none and of a nonsense ratio: the surface is what was asked for. */
static void the_size_is_ours(void **state)
{
    static const char *const sizes[] = {"width=\"1e9\" height=\"1e9\"", "width=\"0\" height=\"0\"",
                                        "width=\"1e30\" height=\"1\"", "viewBox=\"0 0 30 10\"", ""};
    (void)state;
    need_svg();
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        pnb_image image;
        char *text = pnb__format("<svg xmlns=\"http://www.w3.org/2000/svg\" %s>"
                                 "<rect width=\"10\" height=\"10\"/></svg>",
                                 sizes[i]);
        draw(&image, text, 32, NULL);
        assert_int_equal(image.width, 32);
        assert_true(image.height >= 1 && image.height <= 32);
        pnb_image_free(&image);
        pnb__free(text);
    }
}

/* Nothing outside is read: the picture beside would be black. */
static void nothing_else_is_read(void **state)
{
    pnb_image image;
    (void)state;
    need_svg();
    draw(&image,
         SVG_OPEN "<image width=\"100\" height=\"50\" xlink:href=\"file://" PNB_SOURCE_DIR
                  "/tests/io/data/image/heif_a.png\"/></svg>",
         8, NULL);
    expect_pixel(&image, 4, 2, 255, 255, 255);
    pnb_image_free(&image);
}

static void expect_failure(const char *text, int side, const pnb_box *part, pnb_status status)
{
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__svg_draw(&image, text, strlen(text), side, part, &err), status);
    assert_true(err.text[0] != '\0');
    assert_null(image.pixels);
}

static void what_is_refused(void **state)
{
    const pnb_box empty = {0.5, 0.5, 0.5, 0.7};
    (void)state;
    need_svg();
    expect_failure("", 8, NULL, PNB_FORMAT);
    expect_failure("<svg", 8, NULL, PNB_FORMAT);
    expect_failure("<html/>", 8, NULL, PNB_FORMAT);
    expect_failure(TWO, 0, NULL, PNB_ARG);
    expect_failure(TWO, 1 << 20, NULL, PNB_ARG);
    expect_failure(TWO, 8, &empty, PNB_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_drawn_on_white),
        cmocka_unit_test(a_part_is_drawn_larger),
        cmocka_unit_test(the_size_is_ours),
        cmocka_unit_test(nothing_else_is_read),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
