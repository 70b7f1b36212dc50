/* Tables and JSON lines: which columns, which rows, where the pictures lie. */
#include "tests/data/sources/opened.h"

static void test_csv(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    put_png(scratch, "pics/1.png", 70);
    put_png(scratch, "pics/2.png", 80);
    put_text(scratch, "a.csv",
             "filepath\ttitle\npics/1.png\tone, \"quoted\"\npics/2.png\ttwo\n"
             "pics/2.png\t\n");
    pnb_dataset *ds = open_ok("a.csv", NULL);
    assert_int_equal(pnb_dataset_size(ds), 2);
    expect_texts(ds, 0, "pics/1.png", "one, \"quoted\"");
    expect_image(ds, 1, 80);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    put_text(scratch, "b.csv",
             "id,text,file\n7,\"a, b\",pics/1.png\n8,gone,pics/none.png\n"
             "9,bad \xff,pics/1.png\n");
    opts.csv_img_key = "file";
    opts.csv_caption_key = "text";
    ds = open_ok("b.csv", &opts);
    expect_texts(ds, 0, "pics/1.png", "a, b");
    pnb_image image;
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_image(ds, 1, &image, &error), PNB_NOT_FOUND);
    assert_non_null(strstr(error.text, "none.png"));
    get_fails(ds, 2, PNB_FORMAT, "UTF-8");
    pnb_dataset_free(ds);
    open_fails("b.csv", NULL, PNB_NOT_FOUND, "filepath");
    put_text(scratch, "c.csv", "");
    open_fails("c.csv", NULL, PNB_FORMAT, "c.csv");
    put_text(scratch, "e.tsv", "filepath\ttitle\n");
    open_fails("e.tsv", NULL, PNB_NOT_FOUND, "no sample");
}

/* Columns that say where a picture came from are the record of its row. */
static void test_records_of_tables(void **state)
{
    pnb_sample sample = {0};
    (void)state;
    put_png(scratch, "pics/1.png", 70);
    put_text(scratch, "u.csv",
             "filepath,title,url,uid\npics/1.png,one,\"http://a/\"\"b\"\"\",u1\n"
             "pics/1.png,two,,\npics/1.png,three,bad \xff,u3\n");
    pnb_dataset *ds = open_ok("u.csv", NULL);
    expect_texts(ds, 0, "pics/1.png", "one");
    assert_int_equal(pnb_dataset_get(ds, 0, &sample, NULL), PNB_OK);
    assert_string_equal(sample.json, "{\"url\":\"http://a/\\\"b\\\"\",\"uid\":\"u1\"}");
    pnb_sample_reset(&sample);
    assert_int_equal(pnb_dataset_get(ds, 1, &sample, NULL), PNB_OK);
    assert_null(sample.json);
    pnb_sample_reset(&sample);
    assert_int_equal(pnb_dataset_get(ds, 2, &sample, NULL), PNB_OK);
    assert_string_equal(sample.json, "{\"uid\":\"u3\"}");
    pnb_sample_reset(&sample);
    pnb_dataset_free(ds);
}

static void test_jsonl(void **state)
{
    (void)state;
    put_png(scratch, "pics/1.png", 70);
    put_text(scratch, "l.jsonl",
             "{\"id\": \"first\", \"image\": \"pics/1.png\", \"captions\": [\"p\", \"q\"]}\n\n"
             "{\"filepath\": \"pics/1.png\", \"caption\": \"r\"}\r\n"
             "{\"caption\": \"no picture\"}\n{broken}");
    pnb_dataset *ds = open_ok("l.jsonl", NULL);
    assert_int_equal(pnb_dataset_size(ds), 4);
    expect_texts(ds, 0, "first", "p|q");
    expect_texts(ds, 1, "pics/1.png", "r");
    expect_image(ds, 1, 70);
    get_fails(ds, 2, PNB_FORMAT, "no picture");
    get_fails(ds, 3, PNB_FORMAT, "line 5");
    pnb_dataset_free(ds);
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

/* A path that starts at the root is taken as it is; others start at the table's folder. */
static void test_paths(void **state)
{
    (void)state;
    put_png(scratch, "p/1.png", 30);
    char *table = pnb__format("filepath,title\n%s/p/1.png,a\n1.png,b\n", scratch);
    put_text(scratch, "p/t.csv", table);
    char *lines = pnb__format("{\"path\":\"%s/p/1.png\",\"text\":\"a\"}\n"
                              "{\"file_name\":\"1.png\",\"text\":\"b\"}\n",
                              scratch);
    put_text(scratch, "p/l.jsonl", lines);
    static const char *const names[] = {"p/t.csv", "p/l.jsonl"};
    for (size_t i = 0; i < 2; i++) {
        pnb_dataset *ds = open_ok(names[i], NULL);
        assert_int_equal(pnb_dataset_size(ds), 2);
        expect_image(ds, 0, 30);
        expect_image(ds, 1, 30);
        pnb_dataset_free(ds);
    }
    pnb__free(lines);
    pnb__free(table);
}

/* The first line tells tabs from commas, unless the option does. */
static void test_separator(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    put_text(scratch, "s.csv", "filepath;title\na.png;one, two\n");
    open_fails("s.csv", NULL, PNB_NOT_FOUND, "filepath");
    opts.csv_separator = ';';
    pnb_dataset *ds = open_ok("s.csv", &opts);
    expect_texts(ds, 0, "a.png", "one, two");
    pnb_dataset_free(ds);
    put_text(scratch, "t.csv", "filepath,more\ttitle\n"); /* a tab: one column is "filepath,more" */
    open_fails("t.csv", NULL, PNB_NOT_FOUND, "filepath,more");
    open_fails("absent.csv", NULL, PNB_NOT_FOUND, "absent.csv");
    open_fails("absent.jsonl", NULL, PNB_NOT_FOUND, "absent.jsonl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_csv, setup, teardown),
        cmocka_unit_test_setup_teardown(test_records_of_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jsonl, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_separator, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
