/* Shards: the rules that group members into samples and drop some, classes, and damage. */
#include "tests/data/sources/opened.h"

static void test_tar_grouping(void **state)
{
    pnb__tar_writer w;
    (void)state;
    start_tar(&w, "g.tar");
    add_png(&w, "dir/a.png", 10);
    add(&w, "dir/a.JSON", "{\"caption\": \"alpha\", \"url\": \"x\"}"); /* a record all the same */
    add_png(&w, "b.PNG", 20); /* suffixes are lower-cased */
    add(&w, "b.TXT", "beta\n\n second line \n");
    add_png(&w, "c.0.png", 30); /* suffix "0.png": no picture among the keys */
    add(&w, "c.txt", "left out");
    add_png(&w, "d.png", 40); /* the same suffix again starts a new sample */
    add(&w, "d.txt", "delta one");
    add_png(&w, "d.png", 41);
    add(&w, "d.txt", "delta two");
    add_png(&w, "e.png", 50);
    add_png(&w, "f.webp", 60); /* jpg comes before webp in the list of keys */
    add_png(&w, "f.jpg", 61);
    add(&w, "f.txt", "phi");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    pnb_dataset *ds = open_ok("g.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 5);
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_TAR);
    expect_texts(ds, 0, "dir/a", "alpha");
    expect_texts(ds, 1, "b", "beta| second line ");
    expect_texts(ds, 2, "d", "delta one");
    expect_texts(ds, 3, "d", "delta two");
    expect_image(ds, 2, 40);
    expect_image(ds, 3, 41);
    expect_image(ds, 4, 61);
    assert_int_equal(pnb_dataset_n_warnings(ds), 2);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "1 samples without a picture"));
    assert_non_null(strstr(pnb_dataset_warning(ds, 1), "1 samples without a caption"));
    pnb_dataset_free(ds);
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    opts.allow_no_caption = true;
    opts.image_key = "0.png;png";
    ds = open_ok("g.tar", &opts);
    assert_int_equal(pnb_dataset_size(ds), 6);
    expect_texts(ds, 5, "e", "");
    pnb_dataset_free(ds);
}

static void test_tar_text_key(void **state)
{
    pnb__tar_writer w;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    start_tar(&w, "k.tar");
    add_png(&w, "a.png", 10);
    add(&w, "a.json", "{\"caption\": \"of the record\"}");
    add(&w, "a.txt", "of the text");
    add_png(&w, "b.png", 20);
    add(&w, "b.caption", "of another name");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    static const char *const keys[] = {"json", "txt", "caption"};
    static const char *const texts[] = {"of the record", "of the text", "of another name"};
    for (int i = 0; i < 3; i++) {
        opts.text_key = keys[i];
        pnb_dataset *ds = open_ok("k.tar", &opts);
        assert_int_equal(pnb_dataset_size(ds), 1);
        expect_texts(ds, 0, i < 2 ? "a" : "b", texts[i]);
        pnb_dataset_free(ds);
    }
}

static void test_damaged_tar(void **state)
{
    char *path = in_scratch("d.tar"), *data;
    size_t n;
    (void)state;
    write_shard("d.tar", 0, 5);
    ASSERT_OK(pnb__read_file(path, 1 << 20, &data, &n, &err));
    put_file(scratch, "cut.tar", data, 4 * 2 * 1024 + 700); /* inside the fifth sample */
    pnb_dataset *ds = open_ok("cut.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 4);
    assert_true(pnb_dataset_n_warnings(ds) >= 1);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "cut.tar"));
    expect_image(ds, 3, 3);
    pnb_dataset_free(ds);
    put_file(scratch, "head.tar", data, 300);
    open_fails("head.tar", NULL, PNB_FORMAT, "head.tar");
    put_text(scratch, "empty.tar", "");
    open_fails("empty.tar", NULL, PNB_FORMAT, "empty.tar: is empty, 0 bytes");
    memset(data, 0, 1024); /* an archive, of nothing */
    put_file(scratch, "none.tar", data, 1024);
    open_fails("none.tar", NULL, PNB_NOT_FOUND, "no sample");
    memset(data, 'x', 512);
    put_file(scratch, "noise.tar", data, n);
    open_fails("noise.tar", NULL, PNB_FORMAT, "noise.tar");
    pnb__free(data);
    ds = open_ok("d.tar", NULL); /* the map outlives the name */
    assert_int_equal(remove(path), 0);
    expect_image(ds, 4, 4);
    expect_texts(ds, 4, "s004", "s004.txt");
    pnb_dataset_free(ds);
    open_fails("d.tar", NULL, PNB_NOT_FOUND, "d.tar");
    pnb__free(path);
}

/* x.cls is the number of a class as text; what is none is counted. */
static void test_classes(void **state)
{
    static const char *const members[] = {"1", "0\n", "cat", "-4", "99999999999999", ""};
    pnb__tar_writer w;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    char name[16];
    (void)state;
    start_tar(&w, "c.tar");
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "s%d.png", i);
        add_png(&w, name, i);
        snprintf(name, sizeof name, "s%d.cls", i);
        add(&w, name, members[i]);
    }
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    put_text(scratch, "classnames.txt", "cat\ndog\n");
    opts.allow_no_caption = true;
    pnb_dataset *ds = open_ok("c.tar", &opts);
    assert_int_equal(pnb_dataset_size(ds), 6);
    expect_sample(ds, 0, 1, "dog");
    expect_sample(ds, 1, 0, "cat");
    for (size_t i = 2; i < 6; i++)
        expect_sample(ds, i, -1, NULL);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "4 .cls members are not the number"));
    pnb_dataset_free(ds);
    open_fails("c.tar", NULL, PNB_NOT_FOUND, "6 samples without a caption left out");
}

/* Folders, hidden members and members without an ending belong to no sample. */
static void test_other_members(void **state)
{
    pnb__tar_writer w;
    (void)state;
    start_tar(&w, "o.tar");
    add_png(&w, "a.png", 10);
    add(&w, "README", "no ending");
    add(&w, ".hidden.txt", "hidden");
    add(&w, "dir.d/plain", "the point is in the folder");
    add(&w, "a.txt", "of a, though others stand between");
    add_png(&w, "x/a.png", 20); /* another folder: another sample */
    add(&w, "x/a.txt", "of x/a");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    pnb_dataset *ds = open_ok("o.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 2);
    expect_texts(ds, 0, "a", "of a, though others stand between");
    expect_texts(ds, 1, "x/a", "of x/a");
    assert_int_equal(pnb_dataset_n_warnings(ds), 0);
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tar_grouping, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tar_text_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_tar, setup, teardown),
        cmocka_unit_test_setup_teardown(test_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_members, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
