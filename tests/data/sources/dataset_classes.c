/* Names of classes and the numbers of samples: a file of names, names without one, numbers. */
#include "tests/data/sources/opened.h"

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
    put_file(dir, "test/1.tar", b.data, b.size); /* no damage of one shard of several */
    put_text(dir, "classnames.txt", "cat\n\ndog\n");
    expect_refused(dir, "test", PNB_FORMAT, "classnames.txt line 2: empty");
    pnb__buf_reset(&b);
    pnb_image_bytes_free(png);
    scratch_remove(dir);
}

/* Opens a table of one label a line and compares the numbers that its rows get. */
static void expect_numbers(const char *dir, const char *const *labels, size_t n, const int *want,
                           size_t n_classes)
{
    pnb__buf table = {0};
    pnb__buf_puts(&table, "filepath,label\n");
    for (size_t i = 0; i < n; i++)
        pnb__buf_printf(&table, "%zu.png,%s\n", i, labels[i]);
    put_text(dir, "t.csv", table.data);
    pnb_dataset *ds = open_set(dir, "t.csv");
    assert_int_equal(pnb_dataset_n_classes(ds), n_classes);
    for (size_t i = 0; i < n; i++) {
        pnb_sample s = {0};
        ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
        assert_int_equal(s.label, want[i]);
        pnb_sample_reset(&s);
    }
    pnb_dataset_free(ds);
    pnb__buf_reset(&table);
}

/* Names are numbered in the order of their bytes, and a column that holds numbers only is those. */
static void test_numbering(void **state)
{
    static const char *const names[] = {"b", "a", "B", "a", ""};
    static const char *const numbers[] = {"7", "007", "0", "12345678"};
    static const char *const mixed[] = {"7", "x", "10"}, *const large[] = {"123456789", "1"};
    (void)state;
    char *dir = scratch_create();
    expect_numbers(dir, names, 5, (int[]){2, 1, 0, 1, -1}, 3);
    expect_numbers(dir, numbers, 4, (int[]){7, 7, 0, 12345678}, 0);
    expect_numbers(dir, mixed, 3, (int[]){1, 2, 0}, 3); /* "10" "7" "x" */
    expect_numbers(dir, large, 2, (int[]){1, 0}, 2);    /* nine digits are a name */
    scratch_remove(dir);
}

/* A file of names beside shards numbers class names too; a name that it lacks has no number. The
 * first file that is found counts. */
static void test_file_of_names(void **state)
{
    (void)state;
    char *dir = scratch_create();
    pnb_dataset *ds = NULL;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb__tar_writer w;
    char *shard = at(dir, "s/0.tar"), *folder = at(dir, "s"), *later = at(dir, "later/0.tar"),
         *spec;
    put_text(dir, "classnames.txt", "of the folder above\n");
    put_text(dir, "s/classnames.txt", "zebra\nant\n");
    ASSERT_OK(pnb__tar_writer_open(&w, shard, &err));
    add_png(&w, "a.png", 1);
    add(&w, "a.cls", "1");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    put_text(dir, "later/classnames.txt", "not read\n");
    ASSERT_OK(pnb__tar_writer_open(&w, later, &err));
    add_png(&w, "b.png", 1);
    add(&w, "b.cls", "0");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    put_png(dir, "f/ant/1.png", 1);
    put_png(dir, "f/newt/2.png", 1);
    put_png(dir, "f/zebra/3.png", 1);
    spec = pnb__format("%s::%s/f::%s", folder, dir, later);
    opts.allow_no_caption = true;
    ASSERT_OK(pnb_dataset_open(&ds, spec, &opts, &err));
    assert_int_equal(pnb_dataset_n_classes(ds), 2);
    assert_string_equal(pnb_dataset_class_name(ds, 0), "zebra");
    expect_sample(ds, 0, 1, "ant");
    expect_sample(ds, 1, 1, "ant");
    expect_sample(ds, 2, -1, "newt");
    expect_sample(ds, 3, 0, "zebra");
    expect_sample(ds, 4, 0, "zebra"); /* by the names of the first shard */
    pnb_dataset_free(ds);
    put_text(dir, "s/classnames.txt", "\r\n\n");
    expect_refused(dir, "s", PNB_FORMAT, "holds no class name");
    pnb__free(spec);
    pnb__free(folder);
    pnb__free(later);
    pnb__free(shard);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clip_benchmark),
                                       cmocka_unit_test(test_numbering),
                                       cmocka_unit_test(test_file_of_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
