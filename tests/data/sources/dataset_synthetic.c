/* Pictures of random pixels: as many as wanted without memory, sample i the same each time. */
#include "tests/data/sources/opened.h"

static void test_synthetic(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    pnb_image a = {0}, b = {0}, again = {0}, sink = {0};
    pnb_sample sample = {0};
    (void)state;
    opts.kind = PNB_DATASET_SYNTHETIC;
    opts.n_synthetic = 10000000; /* takes no memory */
    ASSERT_OK(pnb_dataset_open(&ds, NULL, &opts, &err));
    assert_int_equal(pnb_dataset_size(ds), 10000000);
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_SYNTHETIC);
    ASSERT_OK(pnb_dataset_get(ds, 9999999, &sample, &err));
    assert_int_equal(sample.n_texts, 1);
    pnb_sample_reset(&sample);
    ASSERT_OK(pnb_dataset_image(ds, 1, &a, &err));
    ASSERT_OK(pnb_dataset_image(ds, 2, &b, &err));
    ASSERT_OK(pnb_dataset_image(ds, 1, &again, &err));
    size_t n = (size_t)a.width * (size_t)a.height * 3, n_same = 0;
    assert_int_equal(a.width, 224);
    assert_memory_equal(a.pixels, again.pixels, n);
    for (size_t i = 0; i < n; i++)
        n_same += a.pixels[i] == b.pixels[i];
    assert_true(n_same < n / 128); /* 1 of 256 by chance */
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_image(ds, 10000000, &sink, &err), PNB_ARG);
    pnb_image_free(&a);
    pnb_image_free(&again);
    pnb_image_free(&b);
    pnb_dataset_free(ds);
}

static void test_default(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    pnb_sample sample = {0};
    pnb_image image;
    size_t n_of[256] = {0};
    (void)state;
    opts.kind = PNB_DATASET_SYNTHETIC;
    ASSERT_OK(pnb_dataset_open(&ds, "any text", &opts, &err));
    assert_int_equal(pnb_dataset_size(ds), 1024);
    ASSERT_OK(pnb_dataset_get(ds, 0, &sample, &err));
    assert_string_equal(sample.texts[0], "a picture of random pixels");
    assert_int_equal(sample.levels[0], -1);
    assert_int_equal(sample.label, -1);
    assert_null(sample.image_path);
    pnb_sample_reset(&sample);
    ASSERT_OK(pnb_dataset_image(ds, 1023, &image, &err));
    size_t n = (size_t)image.width * (size_t)image.height * 3;
    assert_int_equal(n, 224 * 224 * 3);
    for (size_t i = 0; i < n; i++)
        n_of[image.pixels[i]]++;
    for (size_t value = 0; value < 256; value++) /* 588 each: six standard deviations are 146 */
        assert_in_range(n_of[value], 588 - 146, 588 + 146);
    pnb_image_free(&image);
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_synthetic),
                                       cmocka_unit_test(test_default)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
