/* Pictures as a collection writes them: cut to what is drawn, on white, and what is near what. */
#include <math.h>

#include "data/collections/collection.h"
#include "tests/data/fixture.h"

/* A sheet of paper with a rectangle of one grey. */
static void make_sheet(pnb_image *image, int left, int top, int width, int height, int grey)
{
    ASSERT_OK(pnb_image_create(image, 200, 300, 3, &err));
    memset(image->pixels, 255, 200 * 300 * 3);
    for (int y = top; y < top + height; y++)
        memset(image->pixels + 3 * (200 * y + left), grey, 3 * (size_t)width);
}

static void take(pnb__collected *item, pnb_image *image)
{
    *item = (pnb__collected){0};
    ASSERT_OK(pnb__collected_take(item, image, 32, &err));
    pnb_image_free(image);
}

static void margins_are_cut_off(void **state)
{
    pnb__collected item;
    pnb_image image, out;
    (void)state;
    make_sheet(&image, 150, 10, 20, 40, 90);
    take(&item, &image);
    ASSERT_OK(pnb_image_decode(&out, item.encoded, item.n_encoded, NULL, &err));
    assert_int_equal(out.width, 32);
    assert_int_equal(out.height, 32);
    const unsigned char *p = out.pixels;
    assert_int_equal(p[3 * (32 * 16 + 16)], 90); /* the middle */
    assert_int_equal(p[3 * (32 * 6 + 16)], 90);  /* near its upper end */
    assert_int_equal(p[3 * (32 * 16 + 3)], 255); /* beside it: it is half as wide */
    assert_int_equal(p[0], 255);
    pnb_image_free(&out);
    pnb__collected_reset(&item);
    assert_null(item.encoded);
}

static void white_is_no_image(void **state)
{
    pnb__collected item = {0};
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    make_sheet(&image, 10, 10, 20, 20, 250); /* as good as white */
    assert_int_equal(pnb__collected_take(&item, &image, 32, &err), PNB_SHAPE);
    assert_non_null(strstr(err.text, "white all over"));
    assert_null(item.encoded);
    assert_null(item.thumb);
    pnb_image_free(&image);
}

/* Of two files that cannot be drawn both are told of. */
static void note(void *user, const char *file, const char *why)
{
    pnb__buf_printf(user, "%s: %s\n", file, why);
}

static void reasons_are_kept(void **state)
{
    char *dir = scratch_create(), *svg = pnb__path_join(dir, "a.svg");
    char *png = pnb__path_join(dir, "a.png"), *good = pnb__path_join(dir, "good.png");
    pnb__buf said = {0};
    pnb_collection_opts opts = {.size = 32, .skipped = note, .user = &said};
    pnb_collection_stats stats = {0};
    pnb__collected items[] = {
        {.svg = svg, .png = png, .file = "a.svg"},
        {.png = png, .file = "b.svg", .refused = "it has text"},
        {.svg = svg, .file = "c.svg"},
        {.svg = svg, .png = good, .file = "d.svg"},
    };
    pnb__collection c = {.opts = &opts, .items = items, .n = PNB_COUNT(items), .stats = &stats};
    pnb_ctx *ctx = NULL;
    (void)state;
    put_text(dir, "a.svg", "<svg this is no xml");
    put_png(dir, "good.png", 50);
    ASSERT_OK(pnb_ctx_create(&ctx, NULL, &err));
    ASSERT_OK(pnb__collection_draw(ctx, &c, &err));
    assert_int_equal(stats.n_skipped, 3);
    assert_int_equal(c.n, 1);
    const char *a = strstr(said.data, "a.svg: SVG: "), *b = strstr(said.data, "b.svg: ");
    const char *in_place = strstr(said.data, "; in its place");
    assert_true(a != NULL && b != NULL && in_place != NULL && in_place < b);
    assert_non_null(strstr(in_place, "a.png"));
    assert_non_null(strstr(b, "SVG: it has text; in its place"));
    assert_non_null(strstr(b, "c.svg: SVG: "));
    pnb__collected_reset(&items[0]);
    pnb__buf_reset(&said);
    pnb_ctx_free(ctx);
    pnb__free(svg);
    pnb__free(png);
    pnb__free(good);
    scratch_remove(dir);
}

static double correlation(const pnb__collected *a, const pnb__collected *b)
{
    double sum = 0;
    for (int i = 0; i < PNB__THUMB; i++)
        sum += (double)a->thumb[i] * (double)b->thumb[i];
    return sum;
}

/* The same bar elsewhere on the sheet, larger, paler: near. A lying one: far. */
static void thumbnails_say_what_is_near(void **state)
{
    pnb__collected upright, moved, pale, lying;
    pnb_image image;
    (void)state;
    make_sheet(&image, 10, 10, 30, 90, 40);
    take(&upright, &image);
    make_sheet(&image, 60, 100, 60, 180, 40);
    take(&moved, &image);
    make_sheet(&image, 10, 10, 30, 90, 90);
    take(&pale, &image);
    make_sheet(&image, 10, 10, 90, 30, 40);
    take(&lying, &image);
    assert_true(fabs(correlation(&upright, &upright) - 1) < 1e-5);
    assert_true(correlation(&upright, &moved) > 0.97);
    assert_true(correlation(&upright, &pale) > 0.97);
    assert_true(correlation(&upright, &lying) < 0.5);
    pnb__collected_reset(&upright);
    pnb__collected_reset(&moved);
    pnb__collected_reset(&pale);
    pnb__collected_reset(&lying);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(margins_are_cut_off), cmocka_unit_test(white_is_no_image),
        cmocka_unit_test(reasons_are_kept), cmocka_unit_test(thumbnails_say_what_is_near)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
