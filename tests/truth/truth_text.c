/* Flickr's token files, VSE++'s lists, HierarCaps' table, data sets with captions and class labels,
 * in their true form: what is read, how its names find rows, and what is refused. */
#include "io/tables/tar.h"
#include "tests/truth/support.h"

/* ---- Flickr ---- */

static void flickr_tokens(void **state)
{
    (void)state;
    const char *path =
        write_file("results_20130124.token", "1000092795.jpg#0\tTwo young guys .\n"
                                             "1000092795.jpg#1\tTwo men in green .\r\n\n"
                                             "10002456.jpg#0\tSeveral men .\n");
    const char *const images[] = {"10002456", "flickr30k-images/1000092795.jpg"};
    const char *const ids[] = {"1000092795.jpg#1", "10002456.jpg#0", "1000092795#0"};
    const char *const texts[] = {"Two men in green .", "Several men .", "Two young guys ."};
    const size_t want[] = {0, 1, 1, 0, 1, 2};
    const pnb_truth_rows i = rows(images, 2), x = rows(ids, 3);
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, i, x, want, 3, &report);
    assert_true(report.format == PNB_TRUTH_TOKENS && report.n_images == 2);
    pnb_truth_report_reset(&report);
    expect(path, NULL, i, (pnb_truth_rows){.n = 3, .texts = texts}, want, 3, NULL);
    static const char *const BAD[] = {"a.jpg\tno number\n", "a.jpg#x\tno number\n", "#0\tno name\n",
                                      "a.jpg#0 no tab\n", "a.jpg#1234567890\ttoo long\n"};
    for (size_t k = 0; k < PNB_COUNT(BAD); k++)
        assert_fails(pnb_truth_read(&t, write_file("x.token", BAD[k]), &i, &x, NULL, NULL, err),
                     PNB_FORMAT, "line 1");
}

/* ---- VSE++ ---- */

static void precomp_lists(void **state)
{
    (void)state;
    const char *path = write_file("test_ids.txt", "391895\n42\n");
    write_file("test_caps.txt", "a\nb\nc\nd\n");
    const char *const images[] = {"COCO_val2014_000000000042.jpg", "val2014/x_000000391895.jpg"};
    const size_t want[] = {0, 2, 0, 3, 1, 0, 1, 1};
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, rows(images, 2), rows(NULL, 4), want, 4, &report);
    assert_true(report.format == PNB_TRUTH_PRECOMP && report.texts_by_order);
    pnb_truth_report_reset(&report);
    write_file("id_mapping.json", "{\"391895\":\"train2014/p.jpg\",\"42\":\"q.jpg\"}");
    const char *const files[] = {"q.jpg", "p.jpg"};
    expect(path, NULL, rows(files, 2), rows(NULL, 4), want, 4, NULL);
    assert_int_equal(unlink(in_dir("id_mapping.json")), 0);
    write_file("test_ids.txt", "391895\n391895\n42\n42\n"); /* once for each caption */
    expect(path, NULL, rows(images, 2), rows(NULL, 4), want, 4, NULL);
    write_file("test_caps.txt", "a\nb\nc\n");
    const pnb_truth_rows i = rows(images, 2), x = rows(NULL, 3);
    assert_fails(pnb_truth_read(&t, path, &i, &x, NULL, NULL, err), PNB_FORMAT, "3 captions");
    assert_int_equal(unlink(in_dir("test_caps.txt")), 0);
    assert_fails(pnb_truth_read(&t, path, &i, &x, NULL, NULL, err), PNB_NOT_FOUND, "test_caps.txt");
}

/* An empty line between others is a caption and keeps its place; the last one is none. */
static void precomp_keeps_empty_texts(void **state)
{
    (void)state;
    const char *path = write_file("gap_ids.txt", "42\n391895\n");
    write_file("gap_caps.txt", "a\n\nc\nd\n\n");
    const char *const images[] = {"391895", "42"};
    const size_t want[] = {0, 2, 0, 3, 1, 0, 1, 1};
    expect(path, NULL, rows(images, 2), rows(NULL, 4), want, 4, NULL);
}

static void precomp_mappings_are_checked(void **state)
{
    (void)state;
    static const char *const BAD[][2] = {
        {"{\"42\":7}", "id_mapping.json: the file of \"42\" is no text"},
        {"[\"a.jpg\"]", "id_mapping.json: an object of ids and files is wanted"},
        {"{", "id_mapping.json"}};
    const char *const images[] = {"42"};
    const pnb_truth_rows i = rows(images, 1), x = rows(NULL, 1);
    const pnb_truth_read_opts o = {.format = PNB_TRUTH_PRECOMP};
    pnb_truth *t = NULL;
    write_file("test_ids.txt", "42\n");
    write_file("test_caps.txt", "a\n");
    for (size_t k = 0; k < PNB_COUNT(BAD); k++) {
        write_file("id_mapping.json", BAD[k][0]);
        assert_fails(pnb_truth_read(&t, in_dir("test_ids.txt"), &i, &x, &o, NULL, err), PNB_FORMAT,
                     BAD[k][1]);
    }
    assert_int_equal(unlink(in_dir("id_mapping.json")), 0);
    assert_fails(pnb_truth_read(&t, in_dir("test_caps.txt"), &i, &x, &o, NULL, err), PNB_ARG,
                 "test_caps.txt: a file of this format is called X_ids.txt");
}

/* ---- HierarCaps ---- */

static void hierarcaps_levels(void **state)
{
    (void)state;
    const char *path =
        write_file("hierarcaps.csv",
                   "id,captions,image_url\n"
                   "139,\"thing => room => living room => a living room, with a TV\","
                   "http://images.cocodataset.org/val2017/000000000139.jpg\n"
                   "285,thing => bear,http://images.cocodataset.org/val2017/000000000285.jpg\n");
    const char *const images[] = {"000000000285.jpg", "000000000139.jpg"};
    const char *const texts[] = {"bear", "thing", "living room", "a living room, with a TV",
                                 "room"};
    const size_t want[] = {0, 0, 0, 1, 1, 1, 1, 2, 1, 3, 1, 4}; /* "thing" once, for both */
    pnb_truth_report report;
    pnb_truth *t = NULL;
    pnb_truth_rows by_text = {.n = 5, .texts = texts};
    expect(path, NULL, rows(images, 2), by_text, want, 6, &report);
    assert_true(report.format == PNB_TRUTH_HIERARCAPS && report.text_level[1] == 0 &&
                report.text_level[0] == 1 && report.text_level[3] == 3);
    pnb_truth_report_reset(&report);
    path = write_file("plain.csv", "id,captions\n1,no levels\n");
    const pnb_truth_rows i = rows(images, 2);
    const pnb_truth_read_opts o = {.format = PNB_TRUTH_HIERARCAPS};
    assert_fails(pnb_truth_read(&t, path, &i, &by_text, &o, NULL, err), PNB_FORMAT, "line");
}

/* ---- CLIP_benchmark ---- */

static void add_member(pnb__tar_writer *w, const char *name, const char *bytes)
{
    assert_ok(pnb__tar_writer_add(w, name, bytes, strlen(bytes), err));
}

static void clip_benchmark_tars(void **state)
{
    (void)state;
    pnb__tar_writer w;
    make_folder("wds");
    for (int shard = 0; shard < 11; shard += 10) { /* 0.tar and 10.tar, 2.tar between them */
        char name[32], key[32];
        snprintf(name, sizeof name, "wds/%d.tar", shard);
        assert_ok(pnb__tar_writer_open(&w, in_dir(name), err));
        snprintf(key, sizeof key, "s%07d.jpg", shard);
        add_member(&w, key, "no picture is decoded");
        snprintf(key, sizeof key, "s%07d.txt", shard);
        add_member(&w, key, shard == 0 ? "a cat\na small cat" : "a dog");
        assert_ok(pnb__tar_writer_commit(&w, err));
    }
    assert_ok(pnb__tar_writer_open(&w, in_dir("wds/2.tar"), err));
    add_member(&w, "s0000002.jpg", "x");
    add_member(&w, "s0000002.txt", "a fox\n");
    assert_ok(pnb__tar_writer_commit(&w, err));
    const char *const images[] = {"s0000010", "s0000000", "s0000002"};
    const char *const texts[] = {"s0000000#1", "s0000000#0", "s0000010#0", "s0000002#0"};
    const size_t want[] = {0, 2, 1, 0, 1, 1, 2, 3}, ordered[] = {0, 0, 0, 1, 1, 2, 2, 3};
    pnb_truth_report report;
    expect(in_dir("wds"), NULL, rows(images, 3), rows(texts, 4), want, 4, &report);
    assert_int_equal(report.format, PNB_TRUTH_DATASET);
    pnb_truth_report_reset(&report);
    expect(in_dir("wds"), NULL, rows(NULL, 3), rows(NULL, 4), ordered, 4, NULL);
    const size_t first[] = {1, 0, 1, 1};
    expect(in_dir("wds/0.tar"), NULL, rows(images, 3), rows(texts, 4), first, 2, NULL);
}

/* ---- labels ---- */

static void classes_by_label(void **state)
{
    (void)state;
    const char *const images[] = {"a.jpg", "b.jpg", "c.jpg"}, *const texts[] = {"t0", "t1", "t2"};
    const char *path =
        write_file("labels.tsv", "# id\tclass\na.jpg\tbird\nb\tflower\nt0\tflower\nt2\tbird\n");
    const size_t want[] = {0, 2, 1, 0};
    const pnb_truth_read_opts o = {.format = PNB_TRUTH_LABELS};
    const pnb_truth_rows i = rows(images, 3), x = rows(texts, 3);
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, &o, i, x, want, 2, &report); /* c.jpg and t1 have no class and match nothing */
    assert_true(report.format == PNB_TRUTH_LABELS && !report.image_named[2]);
    pnb_truth_report_reset(&report);
    path = write_file("labels.tsv", "a.jpg\tbird\nt2\tbird\n");
    const size_t one[] = {0, 2};
    expect(path, &o, i, x, one, 1, NULL); /* nor do they match each other */
    path = write_file("labels.tsv", "a.jpg\tbird\nnobody\tbird\n");
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_NOT_FOUND, "line 2");
    path = write_file("labels.tsv", "a.jpg bird\n");
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_FORMAT, "no tab");
    path = write_file("labels.tsv", "a.jpg\tone\nt0\ttwo\n");
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_ARG, "label");
}

/* ---- what is refused ---- */

static const truth_case CASES[] = {
    {"l.tsv", "a.jpg\tx\n7\tx\n", NULL, PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\tx\n7\tx\n7\tx\n", NULL, PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\tx\n7\tx\t3\n", "l.tsv line 2: there is a third column", PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\t\n7\t\n", "l.tsv line 1: the class is empty", PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\tx\n7\tx\na.jpg\ty\n", "line 3: 'a.jpg' is of the class 'y'",
     PNB_TRUTH_LABELS},
    {"h.csv", "id,c,url\n42,a=>b,x.jpg\n", "no pair fits", PNB_TRUTH_AUTO},
    {"h.csv", "id,c,url\n42,a=> =>b,x.jpg\n", "h.csv line 2: the caption of level 1 is empty",
     PNB_TRUTH_AUTO},
};

static void values_that_mean_nothing(void **state)
{
    (void)state;
    expect_cases(CASES, PNB_COUNT(CASES));
    const pnb_truth_read_opts o = {.format = PNB_TRUTH_HIERARCAPS};
    pnb_truth *t = NULL;
    assert_fails(
        pnb_truth_read(&t, write_file("h.csv", "id\n42\n"), &IMAGE_ROWS, &TEXT_ROWS, &o, NULL, err),
        PNB_FORMAT, "columns id, captions and image url are wanted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flickr_tokens),
        cmocka_unit_test(precomp_lists),
        cmocka_unit_test(precomp_keeps_empty_texts),
        cmocka_unit_test(precomp_mappings_are_checked),
        cmocka_unit_test(hierarcaps_levels),
        cmocka_unit_test(clip_benchmark_tars),
        cmocka_unit_test(classes_by_label),
        cmocka_unit_test(values_that_mean_nothing),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
