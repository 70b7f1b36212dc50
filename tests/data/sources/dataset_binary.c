/* CIFAR-10/100, STL-10 and MNIST written here byte by byte, and files that lie about their size. */
#include "tests/data/sources/opened.h"

#include <zlib.h>

/* ---- CIFAR ---- Plane c of picture i, row y, column x: (50 i + 20 c + 3 y + x) mod 256. */

static unsigned char cifar_value(int i, int c, int y, int x)
{
    return (unsigned char)(50 * i + 20 * c + 3 * y + x);
}

static void put_cifar(const char *dir, const char *name, int n, int n_labels)
{
    pnb__buf b = {0};
    for (int i = 0; i < n; i++) {
        for (int l = 0; l < n_labels; l++)
            pnb__buf_putc(&b, (char)(l + 1 < n_labels ? 9 : i % 3));
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < 32; y++)
                for (int x = 0; x < 32; x++)
                    pnb__buf_putc(&b, (char)cifar_value(i, c, y, x));
    }
    put_file(dir, name, b.data, b.size);
    pnb__buf_reset(&b);
}

static void expect_cifar_pixels(const pnb_dataset *ds)
{
    for (int i = 0; i < 2; i++) {
        const int rgb[] = {cifar_value(i, 0, 7, 30), cifar_value(i, 1, 7, 30),
                           cifar_value(i, 2, 7, 30)};
        expect_pixel(ds, (size_t)i, 30, 7, rgb);
    }
}

static void test_cifar10(void **state)
{
    (void)state;
    char *dir = scratch_create();
    put_cifar(dir, "test_batch.bin", 4, 1);
    put_cifar(dir, "data_batch_1.bin", 2, 1);
    put_cifar(dir, "data_batch_2.bin", 3, 1);
    put_text(dir, "batches.meta.txt", "airplane\nautomobile\nbird\n\n");
    pnb_dataset *ds = open_set(dir, "test_batch.bin");
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_BINARY);
    assert_int_equal(pnb_dataset_size(ds), 4);
    assert_int_equal(pnb_dataset_n_classes(ds), 3);
    expect_sample(ds, 2, 2, "bird");
    expect_sample(ds, 3, 0, "airplane");
    expect_cifar_pixels(ds);
    pnb_sample s = {0};
    ASSERT_OK(pnb_dataset_get(ds, 1, &s, &err));
    assert_int_equal(s.n_texts, 1);
    assert_string_equal(s.texts[0], "automobile");
    assert_null(s.image_bytes);
    pnb_sample_reset(&s);
    pnb_dataset_free(ds);
    expect_split(dir, "test", "test_batch.bin");
    expect_split(dir, "train", "data_batch_{1..5}.bin");
    ds = open_set(dir, "data_batch_{1..2}.bin");
    assert_int_equal(pnb_dataset_size(ds), 5);
    for (size_t i = 0; i < 5; i++) { /* keys are numbers of the set, not of the file */
        char key[8];
        snprintf(key, sizeof key, "%zu", i);
        ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
        assert_string_equal(s.key, key);
        pnb_sample_reset(&s);
    }
    pnb_dataset_free(ds);
    char *path;
    ASSERT_FAILS(pnb_dataset_split(&path, dir, "val", &err), PNB_NOT_FOUND, "it has train, test");
    assert_null(path);
    put_file(dir, "data_batch_3.bin", "12345", 5);
    expect_refused(dir, "data_batch_3.bin", PNB_FORMAT, "no whole number of records of 3073");
    put_file(dir, "data_batch_4.bin", "", 0);
    expect_refused(dir, "data_batch_4.bin", PNB_FORMAT, "records");
    scratch_remove(dir);
}

static void test_cifar100(void **state)
{
    (void)state;
    char *dir = scratch_create();
    put_cifar(dir, "test.bin", 3, 2);
    put_text(dir, "fine_label_names.txt", "apple\r\naquarium_fish\r\n");
    put_text(dir, "coarse_label_names.txt", "fruit\n");
    pnb_dataset *ds = open_set(dir, "test.bin");
    expect_sample(ds, 1, 1, "aquarium_fish"); /* the fine label, not the coarse 9 */
    expect_sample(ds, 2, 2, NULL);            /* two names only */
    expect_cifar_pixels(ds);
    pnb_dataset_free(ds);
    expect_split(dir, "test", "test.bin");
    scratch_remove(dir);
}

/* ---- STL-10 ---- by columns, labels from 1 */

static void put_stl(const char *dir, const char *name, int n)
{
    pnb__buf b = {0};
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < 96; x++)
                for (int y = 0; y < 96; y++)
                    pnb__buf_putc(&b, (char)cifar_value(i, c, y, x));
    put_file(dir, name, b.data, b.size);
    pnb__buf_reset(&b);
}

static void test_stl10(void **state)
{
    (void)state;
    char *dir = scratch_create();
    put_stl(dir, "test_X.bin", 2);
    put_file(dir, "test_y.bin", "\x01\x03", 2);
    put_text(dir, "class_names.txt", "airplane\nbird\ncar");
    pnb_dataset *ds = open_set(dir, "test_X.bin");
    expect_sample(ds, 0, 0, "airplane");
    expect_sample(ds, 1, 2, "car");
    const int rgb[] = {cifar_value(1, 0, 80, 5), cifar_value(1, 1, 80, 5),
                       cifar_value(1, 2, 80, 5)};
    expect_pixel(ds, 1, 5, 80, rgb);
    pnb_dataset_free(ds);
    expect_split(dir, "test", "test_X.bin");
    put_file(dir, "test_y.bin", "\x01", 1);
    expect_refused(dir, "test_X.bin", PNB_FORMAT, "2 pictures, but 1 labels");
    put_stl(dir, "unlabeled_X.bin", 1);
    ds = open_set(dir, "unlabeled_X.bin");
    expect_sample(ds, 0, -1, NULL);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    expect_split(dir, "unlabeled", "unlabeled_X.bin");
    scratch_remove(dir);
}

/* ---- MNIST ---- */

static void put_idx(const char *dir, const char *name, const uint32_t *sizes, int rank,
                    const void *data, size_t n, bool packed)
{
    pnb__buf b = {0};
    const unsigned char magic[] = {0, 0, 8, (unsigned char)rank};
    pnb__buf_append(&b, magic, 4);
    for (int i = 0; i < rank; i++) {
        const unsigned char size[] = {(unsigned char)(sizes[i] >> 24),
                                      (unsigned char)(sizes[i] >> 16),
                                      (unsigned char)(sizes[i] >> 8), (unsigned char)sizes[i]};
        pnb__buf_append(&b, size, 4);
    }
    pnb__buf_append(&b, data, n);
    char *path = at(dir, name);
    if (packed) {
        gzFile file = gzopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(gzwrite(file, b.data, (unsigned)b.size), (int)b.size);
        assert_int_equal(gzclose(file), Z_OK);
    } else {
        put_file(dir, name, b.data, b.size);
    }
    pnb__free(path);
    pnb__buf_reset(&b);
}

static void expect_mnist(const char *dir, const char *name)
{
    pnb_image image;
    pnb_image_opts native = pnb_image_opts_default();
    pnb_dataset *ds = open_set(dir, name);
    assert_int_equal(pnb_dataset_size(ds), 2);
    expect_sample(ds, 0, 7, NULL);
    expect_sample(ds, 1, 2, NULL);
    expect_pixel(ds, 1, 2, 1, (int[]){11, 11, 11});
    native.native = true;
    ASSERT_OK(pnb_dataset_image_as(ds, 1, &native, &image, &err));
    assert_int_equal(image.channels, 1);
    assert_int_equal(image.width, 3);
    assert_int_equal(image.height, 2);
    pnb_image_free(&image);
    pnb_dataset_free(ds);
}

static void test_mnist(void **state)
{
    (void)state;
    char *dir = scratch_create();
    const unsigned char pixels[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const uint32_t sizes[] = {2, 2, 3}, n[] = {2};
    put_idx(dir, "t10k-images-idx3-ubyte", sizes, 3, pixels, 12, false);
    put_idx(dir, "t10k-labels-idx1-ubyte", n, 1, "\x07\x02", 2, false);
    put_idx(dir, "train-images-idx3-ubyte.gz", sizes, 3, pixels, 12, true);
    put_idx(dir, "train-labels-idx1-ubyte.gz", n, 1, "\x07\x02", 2, true);
    expect_mnist(dir, "t10k-images-idx3-ubyte");
    expect_mnist(dir, "train-images-idx3-ubyte.gz");
    expect_split(dir, "test", "t10k-images-idx3-ubyte");
    expect_split(dir, "train", "train-images-idx3-ubyte.gz");
    put_text(dir, "classnames.txt", "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    pnb_dataset *ds = open_set(dir, "t10k-images-idx3-ubyte");
    expect_sample(ds, 0, 7, "seven");
    pnb_dataset_free(ds);
    scratch_remove(dir);
}

/* The name with a point, as some mirrors have it. */
static void test_mnist_points(void **state)
{
    (void)state;
    char *dir = scratch_create();
    const unsigned char pixels[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const uint32_t sizes[] = {2, 2, 3}, n[] = {2};
    put_idx(dir, "t10k-images.idx3-ubyte", sizes, 3, pixels, 12, false);
    put_idx(dir, "t10k-labels.idx1-ubyte", n, 1, "\x07\x02", 2, false);
    expect_mnist(dir, "t10k-images.idx3-ubyte");
    expect_split(dir, "test", "t10k-images.idx3-ubyte");
    char *path;
    ASSERT_FAILS(pnb_dataset_split(&path, dir, "train", &err), PNB_NOT_FOUND, "it has test");
    scratch_remove(dir);
}

static void test_hostile_idx(void **state)
{
    (void)state;
    char *dir = scratch_create();
    const unsigned char pixels[12] = {0};
    const uint32_t many[] = {0xFFFFFFFF, 0x8000, 0x8000}, wide[] = {1, 1, 0xFFFFFFFF},
                   none[] = {1, 0, 3}, short_by_one[] = {2, 2, 4}, two[] = {2}, three[] = {3};
    put_idx(dir, "a-images-idx3-ubyte", many, 3, pixels, 12, false);
    expect_refused(dir, "a-images-idx3-ubyte", PNB_FORMAT, "4294967295 pictures");
    put_idx(dir, "b-images-idx3-ubyte", wide, 3, pixels, 12, false);
    expect_refused(dir, "b-images-idx3-ubyte", PNB_LIMIT, "sides");
    put_idx(dir, "c-images-idx3-ubyte", none, 3, pixels, 12, false);
    expect_refused(dir, "c-images-idx3-ubyte", PNB_LIMIT, "sides");
    put_idx(dir, "d-images-idx3-ubyte", short_by_one, 3, pixels, 12, false);
    expect_refused(dir, "d-images-idx3-ubyte", PNB_FORMAT, "it holds 12");
    put_idx(dir, "e-images-idx3-ubyte", two, 1, pixels, 2, false);
    expect_refused(dir, "e-images-idx3-ubyte", PNB_FORMAT, "magic number 00000801");
    put_file(dir, "f-images-idx3-ubyte", "\0\0", 2);
    expect_refused(dir, "f-images-idx3-ubyte", PNB_FORMAT, "no idx file");
    put_file(dir, "g-images-idx3-ubyte.gz", "\x1f\x8b\x08", 3);
    expect_refused(dir, "g-images-idx3-ubyte.gz", PNB_FORMAT, "gzip");
    put_idx(dir, "h-images-idx3-ubyte", (uint32_t[]){2, 2, 3}, 3, pixels, 12, false);
    put_idx(dir, "h-labels-idx1-ubyte", three, 1, "\0\0", 2, false);
    expect_refused(dir, "h-images-idx3-ubyte", PNB_FORMAT, "says it holds 3 labels");
    put_idx(dir, "h-labels-idx1-ubyte", three, 1, "\0\0\0", 3, false);
    expect_refused(dir, "h-images-idx3-ubyte", PNB_FORMAT, "2 pictures, but 3 labels");
    scratch_remove(dir);
}

/* Another name does not say which set it is; more pixels than wanted are refused. */
static void test_limits(void **state)
{
    (void)state;
    char *dir = scratch_create(), *path = at(dir, "pixels.bin");
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_image_opts few = pnb_image_opts_default();
    pnb_dataset *ds = NULL;
    pnb_image image;
    opts.kind = PNB_DATASET_BINARY;
    put_cifar(dir, "pixels.bin", 1, 1);
    ASSERT_FAILS(pnb_dataset_open(&ds, path, &opts, &err), PNB_ARG, "wanted *_batch*.bin");
    put_cifar(dir, "test_batch.bin", 1, 1);
    ds = open_set(dir, "test_batch.bin");
    few.max_pixels = 1023;
    ASSERT_FAILS(pnb_dataset_image_as(ds, 0, &few, &image, &err), PNB_LIMIT, "32 x 32");
    few.max_pixels = 1024;
    ASSERT_OK(pnb_dataset_image_as(ds, 0, &few, &image, &err));
    pnb_image_free(&image);
    pnb_dataset_free(ds);
    pnb__free(path);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cifar10),      cmocka_unit_test(test_cifar100),
        cmocka_unit_test(test_stl10),        cmocka_unit_test(test_mnist),
        cmocka_unit_test(test_mnist_points), cmocka_unit_test(test_hostile_idx),
        cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
