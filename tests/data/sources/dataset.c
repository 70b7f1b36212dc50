/* Opening data sets and reaching samples: several sources as one set, what tells a kind, mistakes.
 * Each kind of source has a test of its reader's name. */
#include "tests/data/sources/opened.h"

static void test_shards(void **state)
{
    char *spec;
    pnb_dataset *ds = NULL;
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "t/%05d.tar", i);
        char *dir = in_scratch("t");
        ASSERT_OK(pnb__make_dirs(dir, &err));
        pnb__free(dir);
        write_shard(name, 10 * i, 4);
    }
    ds = open_ok("t/{00000..00002}.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 12);
    expect_texts(ds, 11, "s023", "s023.txt");
    expect_image(ds, 4, 10);
    pnb_dataset_free(ds);
    ds = open_ok("t/0000{2,0}.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 8);
    expect_texts(ds, 0, "s020", "s020.txt");
    pnb_dataset_free(ds);
    ds = open_ok("t/*[12].tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 8);
    pnb_dataset_free(ds);
    ds = open_ok("t", NULL); /* a folder of shards */
    assert_int_equal(pnb_dataset_size(ds), 12);
    pnb_dataset_free(ds);
    spec = pnb__format("%s/t/00002.tar::%s/t/00000.tar", scratch, scratch);
    ASSERT_OK(pnb_dataset_open(&ds, spec, NULL, &err));
    assert_int_equal(pnb_dataset_size(ds), 8);
    expect_texts(ds, 4, "s000", "s000.txt");
    pnb_dataset_free(ds);
    pnb__free(spec);
    open_fails("t/{00000..00003}.tar", NULL, PNB_NOT_FOUND, "00003.tar");
    open_fails("t/{00003..00001}.tar", NULL, PNB_ARG, "brace range");
    open_fails("t/{x..y}.tar", NULL, PNB_ARG, "brace range");
    open_fails("t/{a", NULL, PNB_ARG, "not closed");
    open_fails("t/z*.tar", NULL, PNB_NOT_FOUND, "no file matches");
    open_fails("t/00000.tar::", NULL, PNB_ARG, "empty");
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_open(&ds, "pipe:cat x.tar", NULL, &error), PNB_UNSUPPORTED);
}

static pnb_dataset *open_both(const char *a, const char *b, pnb_error *err)
{
    pnb_dataset *ds = NULL;
    char *spec = pnb__format("%s/%s::%s/%s", scratch, a, scratch, b);
    (void)pnb_dataset_open(&ds, spec, NULL, err);
    pnb__free(spec);
    return ds;
}

/* Beside others: a source is refused, a file of a list is listed, a shard of no bytes is damage. */
static void test_nothing_inside(void **state)
{
    pnb_error why = PNB_ERROR_INIT, because = PNB_ERROR_INIT;
    char blocks[1024] = {0};
    (void)state;
    put_file(scratch, "s/1.tar", blocks, sizeof blocks);
    write_shard("s/0.tar", 0, 3);
    put_text(scratch, "s/2.tar", "");
    pnb_dataset *ds = open_ok("s", NULL);
    assert_int_equal(pnb_dataset_size(ds), 3);
    assert_int_equal(pnb_dataset_n_damaged(ds), 1);
    assert_int_equal(pnb_dataset_n_warnings(ds), 2);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "1.tar: holds no sample"));
    assert_non_null(strstr(pnb_dataset_warning(ds, 1), "2.tar: is empty, 0 bytes"));
    assert_non_null(strstr(pnb_dataset_warning(ds, 1), "the shard is left out"));
    pnb_dataset_free(ds);
    ds = open_ok("s/{0,1}.tar", NULL);
    assert_int_equal(pnb_dataset_n_damaged(ds), 0);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    put_text(scratch, "none.csv", "filepath,title\n");
    assert_null(open_both("s/0.tar", "none.csv", &why));
    assert_int_equal(why.status, PNB_NOT_FOUND);
    assert_non_null(strstr(why.text, "none.csv: holds no sample, beside other sources; leave"));
    put_png(scratch, "mute/a.png", 1);
    assert_null(open_both("mute", "s/0.tar", &because));
    assert_non_null(strstr(because.text, "mute: holds no sample, beside other sources: "));
    assert_non_null(strstr(because.text, "1 pictures without a .txt"));
    ds = open_both("s/0.tar", "s/2.tar", NULL); /* damage is listed, as ever */
    assert_non_null(ds);
    assert_int_equal(pnb_dataset_n_damaged(ds), 1);
    pnb_dataset_free(ds);
    open_fails("none.csv", NULL, PNB_NOT_FOUND, "holds no sample");
}

/* The kind by the name, in any case of letters, unless it is given. */
static void test_kinds(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    put_text(scratch, "a.TSV", "filepath\ttitle\nx.png\ta\n");
    put_text(scratch, "a.JsonL", "{\"image\":\"x.png\",\"text\":\"a\"}\n");
    put_text(scratch, "table", "filepath,title\nx.png,a\n");
    put_png(scratch, "d/a.png", 1);
    put_text(scratch, "d/a.txt", "a");
    static const struct {
        const char *name;
        pnb_dataset_kind kind;
    } cases[] = {
        {"a.TSV", PNB_DATASET_CSV}, {"a.JsonL", PNB_DATASET_JSONL}, {"d", PNB_DATASET_DIR}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_dataset *ds = open_ok(cases[i].name, NULL);
        assert_int_equal(pnb_dataset_get_kind(ds), cases[i].kind);
        assert_int_equal(pnb_dataset_size(ds), 1);
        pnb_dataset_free(ds);
    }
    open_fails("table", NULL, PNB_ARG, "cannot tell what this is");
    opts.kind = PNB_DATASET_CSV;
    pnb_dataset *ds = open_ok("table", &opts);
    assert_int_equal(pnb_dataset_size(ds), 1);
    pnb_dataset_free(ds);
    opts.kind = PNB_DATASET_DIR; /* a folder that holds a shard is one of pictures if asked so */
    write_shard("d/0.tar", 0, 3);
    ds = open_ok("d", &opts);
    assert_int_equal(pnb_dataset_size(ds), 1);
    pnb_dataset_free(ds);
    ds = open_ok("d", NULL);
    assert_int_equal(pnb_dataset_size(ds), 3);
    pnb_dataset_free(ds);
}

/* Options are copied: the caller's texts may go. What is past the end is an error or "". */
static void test_ownership(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    pnb_image image;
    pnb_sample sample;
    char key[] = "file";
    (void)state;
    put_text(scratch, "a.csv", "file,title\nnone.png,a\n");
    opts.csv_img_key = key;
    ds = open_ok("a.csv", &opts);
    memset(key, 'x', sizeof key - 1);
    expect_texts(ds, 0, "none.png", "a");
    assert_string_equal(pnb_dataset_warning(ds, 0), "");
    ASSERT_FAILS(pnb_dataset_get(ds, 1, &sample, &err), PNB_ARG, "sample 1 of a data set of 1");
    ASSERT_FAILS(pnb_dataset_image(ds, 1, &image, &err), PNB_ARG, "picture 1 of a data set of 1");
    assert_null(image.pixels);
    ASSERT_FAILS(pnb_dataset_image(ds, 0, &image, &err), PNB_NOT_FOUND, "none.png");
    pnb_dataset_free(ds);
    pnb_dataset_free(NULL);
    pnb__tar_writer w;
    start_tar(&w, "bad.tar");
    add(&w, "s.png", "no picture");
    add(&w, "s.txt", "a");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    ds = open_ok("bad.tar", NULL);
    ASSERT_FAILS(pnb_dataset_image(ds, 0, &image, &err), PNB_FORMAT, "bad.tar: sample s");
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_inside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ownership, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
