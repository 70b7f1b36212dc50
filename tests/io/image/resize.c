/* Pillow's Image.resize bit for bit: every picture and filter of data/image/expected.txt; boxes and
 * parts; wrong arguments. */
#include "tests/io/image/support.h"

static void pixels_equal_pillow(void **state)
{
    (void)state;
    expect_pillow(NULL, true, 1000);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    pnb_image in, out, none = {0};
    pnb_box outside = {0, 0, 5, 4}, inverted = {3, 0, 2, 4}, nan = {0, 0, 0.0 / 0.0, 4};
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
    in.mode = PNB_IMAGE_GREY16;
    in.channels = 1;
    assert_int_equal(pnb_image_resize(&out, &in, 2, 2, PNB_FILTER_BICUBIC, NULL, NULL), PNB_ARG);
    assert_null(out.pixels);
    in.channels = 3;
    pnb_image_free(&in);
}

static pnb_image noise(int width, int height, int channels)
{
    pnb_image image;
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    assert_int_equal(pnb_image_create(&image, width, height, channels, NULL), PNB_OK);
    for (int i = 0; i < width * height * channels; i++)
        image.pixels[i] = (unsigned char)pnb__rng_u32(&rng);
    return image;
}

/* No arithmetic at the picture's own size: colours under an alpha of 0 survive. */
static void its_own_size_is_a_copy(void **state)
{
    (void)state;
    pnb_image in = noise(5, 4, 4), out;
    for (int i = 0; i < 20; i++)
        in.pixels[4 * i + 3] = 0;
    for (int f = 0; f < PNB_N_FILTERS; f++) {
        assert_int_equal(pnb_image_resize(&out, &in, 5, 4, (pnb_filter)f, NULL, NULL), PNB_OK);
        assert_memory_equal(out.pixels, in.pixels, 80);
        pnb_image_free(&out);
    }
    pnb_image_free(&in);
}

/* A part has the pixels that the whole has there, whatever the filter, mode and box. */
static void parts_are_cut_of_the_whole(void **state)
{
    (void)state;
    static const struct {
        int channels;
        pnb_image_mode mode;
    } kinds[] = {{1, PNB_IMAGE_PLAIN}, {3, PNB_IMAGE_PLAIN},  {4, PNB_IMAGE_PLAIN},
                 {4, PNB_IMAGE_CMYK},  {2, PNB_IMAGE_GREY16}, {1, PNB_IMAGE_PALETTE}};
    const pnb_box box = {1.5, 0.25, 17, 12.75};
    for (size_t k = 0; k < PNB_COUNT(kinds); k++) {
        pnb_image in = noise(19, 13, kinds[k].channels);
        in.mode = kinds[k].mode;
        if (in.mode == PNB_IMAGE_PALETTE)
            in.palette = pnb__alloc_zero(256, 3);
        for (int i = 0; i < PNB_N_FILTERS * 4; i++) {
            pnb_image whole, part, cut;
            int w = i % 4 < 2 ? 8 : 40, h = i % 4 < 2 ? 30 : 6;
            pnb__resize_job job = {w,    h, 3, 2, 4, 3, (pnb_filter)(i / 4), i % 2 ? &box : NULL,
                                   false};
            assert_int_equal(pnb_image_resize(&whole, &in, w, h, job.filter, job.box, NULL),
                             PNB_OK);
            assert_int_equal(pnb__image_resize_part(&part, &in, &job, NULL), PNB_OK);
            assert_int_equal(pnb_image_crop(&cut, &whole, 3, 2, 4, 3, 0, NULL), PNB_OK);
            assert_true(part.mode == in.mode && (part.palette != NULL) == (in.palette != NULL));
            assert_memory_equal(part.pixels, cut.pixels, (size_t)(12 * in.channels));
            pnb_image_free(&whole);
            pnb_image_free(&part);
            pnb_image_free(&cut);
        }
        pnb_image_free(&in);
    }
}

/* BOX of half the width is the mean of two, rounded up from a half; a constant stays one. */
static void filters_by_hand(void **state)
{
    (void)state;
    static unsigned char pixels[] = {1, 2, 10, 20, 3, 5, 30, 42};
    const pnb_image in = {.width = 4, .height = 2, .channels = 1, .pixels = pixels};
    pnb_image out, flat = noise(7, 5, 3);
    assert_int_equal(pnb_image_resize(&out, &in, 2, 2, PNB_FILTER_BOX, NULL, NULL), PNB_OK);
    assert_memory_equal(out.pixels, ((unsigned char[]){2, 15, 4, 36}), 4); /* 1.5, 15, 4, 36 */
    pnb_image_free(&out);
    memset(flat.pixels, 137, 7 * 5 * 3);
    for (int f = 0; f < PNB_N_FILTERS; f++)
        for (int size = 2; size < 30; size += 9) {
            assert_int_equal(
                pnb_image_resize(&out, &flat, size, 31 - size, (pnb_filter)f, NULL, NULL), PNB_OK);
            for (int i = 0; i < size * (31 - size) * 3; i++)
                assert_int_equal(out.pixels[i], 137);
            pnb_image_free(&out);
        }
    pnb_image_free(&flat);
    assert_string_equal(pnb_filter_name(PNB_FILTER_HAMMING), "hamming");
    assert_null(pnb_filter_name(PNB_N_FILTERS));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_equal_pillow),    cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(its_own_size_is_a_copy), cmocka_unit_test(parts_are_cut_of_the_whole),
        cmocka_unit_test(filters_by_hand),        cmocka_unit_test(a_row_of_billions_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
