/* Classification sets in their true formats, written here byte by byte: CLIP_benchmark shards,
 * class folders, tables, CIFAR-10/100, STL-10 and MNIST, with their names and splits; and files
 * that lie about their size. */
#include "tests/data/fixture.h"

#include <zlib.h>

/* Fails with a text that holds `part`. */
#define ASSERT_FAILS(call, want, part)                                                             \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        assert_int_equal((call), want);                                                            \
        if (strstr(err.text, part) == NULL)                                                        \
            fail_msg("'%s' does not say '%s'", err.text, part);                                    \
    } while (0)

static char *at(const char *dir, const char *name)
{
    char *path = pnb__path_join(dir, name);
    assert_non_null(path);
    return path;
}

static pnb_dataset *open_set(const char *dir, const char *name)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    char *path = at(dir, name);
    opts.allow_no_caption = true;
    ASSERT_OK(pnb_dataset_open(&ds, path, &opts, &err));
    pnb__free(path);
    return ds;
}

static void expect_refused(const char *dir, const char *name, pnb_status want, const char *part)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    char *path = at(dir, name);
    opts.allow_no_caption = true;
    ASSERT_FAILS(pnb_dataset_open(&ds, path, &opts, &err), want, part);
    assert_null(ds);
    pnb__free(path);
}

static void expect_sample(const pnb_dataset *ds, size_t i, int64_t label, const char *name)
{
    pnb_sample s = {0};
    ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
    assert_int_equal(s.label, label);
    if (name == NULL)
        assert_null(s.class_name);
    else
        assert_string_equal(s.class_name, name);
    pnb_sample_reset(&s);
}

static void expect_pixel(const pnb_dataset *ds, size_t i, int x, int y, const int rgb[3])
{
    pnb_image image;
    ASSERT_OK(pnb_dataset_image(ds, i, &image, &err));
    assert_int_equal(image.channels, 3);
    for (int c = 0; c < 3; c++)
        assert_int_equal(image.pixels[(y * image.width + x) * 3 + c], rgb[c]);
    pnb_image_free(&image);
}

static void expect_split(const char *dir, const char *split, const char *want)
{
    char *path, *full = want[0] != 0 ? at(dir, want) : pnb__strdup(dir);
    ASSERT_OK(pnb_dataset_split(&path, dir, split, &err));
    assert_string_equal(path, full);
    pnb_dataset_path_free(path);
    pnb__free(full);
}

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
    assert_int_equal(s.n_captions, 1);
    assert_string_equal(s.captions[0], "automobile");
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

/* ---- shards, folders, tables ---- */

/* ustar header and the padded data of one file. */
static void tar_add(pnb__buf *b, const char *name, const void *data, size_t n)
{
    unsigned char header[512] = {0}, zeros[512] = {0};
    unsigned sum = 0;
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 100, 8, "%07o", 0644u);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)n);
    memcpy(header + 257, "ustar\00000", 8);
    header[156] = '0';
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    pnb__buf_append(b, header, 512);
    pnb__buf_append(b, data, n);
    pnb__buf_append(b, zeros, (512 - n % 512) % 512);
}

static void test_clip_benchmark(void **state)
{
    (void)state;
    char *dir = scratch_create();
    size_t n;
    unsigned char *png = make_png(8, 8, 40, &n);
    pnb__buf b = {0};
    tar_add(&b, "s0.png", png, n);
    tar_add(&b, "s0.cls", "1", 1);
    tar_add(&b, "s1.png", png, n);
    tar_add(&b, "s1.cls", "0\n", 2);
    tar_add(&b, "s2.png", png, n);
    tar_add(&b, "s2.cls", "cat", 3);
    tar_add(&b, "s3.png", png, n);
    tar_add(&b, "s3.cls", "-4", 2);
    tar_add(&b, "s4.png", png, n);
    tar_add(&b, "s4.cls", "99999999999999", 14);
    pnb__buf_append(&b, (unsigned char[1024]){0}, 1024);
    put_file(dir, "test/0.tar", b.data, b.size);
    put_text(dir, "classnames.txt", "cat\ndog\n");
    expect_split(dir, "test", "test");
    pnb_dataset *ds = open_set(dir, "test");
    assert_int_equal(pnb_dataset_size(ds), 5);
    assert_int_equal(pnb_dataset_n_classes(ds), 2);
    assert_string_equal(pnb_dataset_class_name(ds, 1), "dog");
    assert_string_equal(pnb_dataset_class_name(ds, 2), "");
    expect_sample(ds, 0, 1, "dog");
    expect_sample(ds, 1, 0, "cat");
    for (size_t i = 2; i < 5; i++)
        expect_sample(ds, i, -1, NULL);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "3 .cls members"));
    pnb_dataset_free(ds);
    put_file(dir, "classnames.txt", "c\xFFt\n", 4);
    expect_refused(dir, "test", PNB_FORMAT, "UTF-8");
    put_text(dir, "classnames.txt", "cat\r\n\r\ndog\r\n"); /* .cls counts lines */
    expect_refused(dir, "test", PNB_FORMAT, "classnames.txt line 2: empty");
    put_text(dir, "classnames.txt",
             "\xEF\xBB\xBF"
             "cat\r\ndog\r\n\r\n");
    ds = open_set(dir, "test");
    assert_int_equal(pnb_dataset_n_classes(ds), 2);
    assert_string_equal(pnb_dataset_class_name(ds, 0), "cat");
    pnb_dataset_free(ds);
    pnb__buf_reset(&b);
    pnb_image_bytes_free(png);
    scratch_remove(dir);
}

static void test_folders(void **state)
{
    (void)state;
    char *dir = scratch_create();
    put_png(dir, "val/zebra/1.png", 1);
    put_png(dir, "val/ant_eater/deep/2.png", 2);
    put_png(dir, "val/zebra/3.png", 3);
    put_png(dir, "val/loose.png", 4);
    expect_split(dir, "val", "val");
    char *path;
    ASSERT_FAILS(pnb_dataset_split(&path, dir, "test", &err), PNB_NOT_FOUND,
                 "no split \"test\"; it has val");
    assert_null(path);
    put_png(dir, "train/zebra/5.png", 5);
    ASSERT_FAILS(pnb_dataset_split(&path, dir, "test", &err), PNB_NOT_FOUND, "it has train, val");
    put_png(dir, "plane/6.png", 6); /* so "train" and "val" may be classes */
    expect_split(dir, "test", "");
    pnb_dataset *ds = open_set(dir, "val");
    assert_int_equal(pnb_dataset_n_classes(ds), 2);
    expect_sample(ds, 0, 0, "ant_eater");
    expect_sample(ds, 1, -1, NULL); /* loose.png */
    expect_sample(ds, 2, 1, "zebra");
    pnb_dataset_free(ds);
    scratch_remove(dir);
}

static void test_tables(void **state)
{
    (void)state;
    char *dir = scratch_create();
    put_text(dir, "names.csv", "filepath,label\na.png,dog\nb.png,cat\nc.png,\n");
    put_text(dir, "numbers.csv", "filepath,class\na.png,10\nb.png,2\n");
    put_text(dir, "both.tsv", "filepath\ttitle\tkind\na.png\ta dog\tdog\n");
    put_text(dir, "lines.jsonl",
             "{\"image\":\"a.png\",\"label\":3}\n"
             "{\"image\":\"b.png\",\"class\":\"dog\"}\n");
    pnb_dataset *ds = open_set(dir, "names.csv");
    assert_int_equal(pnb_dataset_n_classes(ds), 2);
    expect_sample(ds, 0, 1, "dog");
    expect_sample(ds, 1, 0, "cat");
    expect_sample(ds, 2, -1, NULL);
    pnb_dataset_free(ds);
    ds = open_set(dir, "numbers.csv");
    assert_int_equal(pnb_dataset_n_classes(ds), 0);
    expect_sample(ds, 0, 10, NULL);
    expect_sample(ds, 1, 2, NULL);
    pnb_dataset_free(ds);
    ds = open_set(dir, "lines.jsonl");
    expect_sample(ds, 0, 3, NULL);
    expect_sample(ds, 1, -1, "dog");
    pnb_dataset_free(ds);

    pnb_dataset_opts opts = pnb_dataset_opts_default();
    char *path = at(dir, "both.tsv"), *names = at(dir, "names.csv");
    opts.csv_label_key = "kind";
    ASSERT_OK(pnb_dataset_open(&ds, path, &opts, &err));
    expect_sample(ds, 0, 0, "dog");
    pnb_dataset_free(ds);
    opts.csv_label_key = "sort";
    ASSERT_FAILS(pnb_dataset_open(&ds, path, &opts, &err), PNB_NOT_FOUND, "kind");
    opts.csv_label_key = NULL; /* training wants captions */
    ASSERT_FAILS(pnb_dataset_open(&ds, names, &opts, &err), PNB_NOT_FOUND, "title");
    pnb__free(path);
    pnb__free(names);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cifar10),      cmocka_unit_test(test_cifar100),
        cmocka_unit_test(test_stl10),        cmocka_unit_test(test_mnist),
        cmocka_unit_test(test_hostile_idx),  cmocka_unit_test(test_clip_benchmark),
        cmocka_unit_test(test_mnist_points), cmocka_unit_test(test_folders),
        cmocka_unit_test(test_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
