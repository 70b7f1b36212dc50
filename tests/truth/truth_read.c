/* Truth files joined with rows: the format told from name and content, rows found by name or by
 * order, what is counted, what is ambiguous, and whose truth a file is not. */
#include "tests/truth/support.h"

/* Each by a name of its format, and content that no other reader would take. */
static void formats_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        pnb_truth_format format;
    } cases[] = {{"a.tsv", "a.jpg\t7\n", PNB_TRUTH_PAIRS},
                 {"a.txt", "a.jpg\t7\n", PNB_TRUTH_PAIRS},
                 {"a.csv", "a.jpg\t7\n", PNB_TRUTH_PAIRS}, /* a table without levels */
                 {"a.token", "a.jpg#0\tx\n", PNB_TRUTH_TOKENS},
                 {"a.token.txt", "a.jpg#0\tx\n", PNB_TRUTH_TOKENS},
                 {"a_ids.txt", "a.jpg\n", PNB_TRUTH_PRECOMP},
                 {"b.csv", "id,c,url\na.jpg,x=>y,z.jpg\n", PNB_TRUTH_HIERARCAPS},
                 {"c.json", "{\"a.jpg\":[7]}", PNB_TRUTH_ID_LISTS}};
    const char *const images[] = {"a.jpg"}, *const ids[] = {"7"}, *const texts[] = {"x"};
    const pnb_truth_rows i = rows(images, 1), x = {.n = 1, .ids = ids, .texts = texts};
    write_file("a_caps.txt", "x\n");
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        pnb_truth *t = NULL;
        pnb_truth_report report;
        assert_ok(pnb_truth_read(&t, write_file(cases[k].name, cases[k].text), &i, &x, NULL,
                                 &report, err));
        assert_int_equal(report.format, cases[k].format);
        assert_true(t->n_pairs == 1 && report.image_named[0] && report.text_named[0]);
        pnb_truth_report_reset(&report);
        pnb_truth_free(t);
    }
    pnb_truth_report_reset(NULL);
    assert_string_equal(pnb_truth_format_name(PNB_N_TRUTH_FORMATS), "unknown");
}

/* A folder of folders with texts is one of classes; with pictures beside the texts a data set. */
static void folders_are_told(void **state)
{
    (void)state;
    const char *const images[] = {"x"}, *const texts[] = {"a bird"};
    const pnb_truth_rows i = rows(images, 1), x = {.n = 1, .texts = texts};
    const size_t want[] = {0, 0};
    pnb_truth_report report;
    make_folder("classes/birds");
    write_file("classes/birds/x.txt", "a bird\n");
    expect(in_dir("classes"), NULL, i, x, want, 1, &report);
    assert_int_equal(report.format, PNB_TRUTH_FOLDERS);
    pnb_truth_report_reset(&report);
    write_file("classes/birds/x.jpg", "not decoded");
    expect(in_dir("classes"), NULL, i, x, want, 1, &report);
    assert_int_equal(report.format, PNB_TRUTH_DATASET);
    pnb_truth_report_reset(&report);
}

static void unnamed_rows_go_by_order(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const numbers[] = {"0", "1", "2"};
    const size_t want[] = {0, 1, 1, 0, 1, 2};
    pnb_truth_report report;
    expect(path, NULL, rows(NULL, 2), rows(numbers, 3), want, 3, &report);
    assert_true(report.images_by_order && report.texts_by_order);
    pnb_truth_report_reset(&report);
}

static void absent_entries_are_counted(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const images[] = {"other", "42"}, *const ids[] = {"772707", "5"};
    const size_t want[] = {1, 0};
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, rows(images, 2), rows(ids, 2), want, 1, &report);
    assert_true(report.n_absent_images == 1 && report.n_absent_texts == 2);
    assert_true(!report.image_named[0] && report.image_named[1]);
    assert_true(report.text_named[0] && !report.text_named[1] && report.text_level[0] == -1);
    pnb_truth_report_reset(&report);
    const pnb_truth_rows none = rows(images, 1), texts = rows(ids, 2);
    assert_fails(pnb_truth_read(&t, path, &none, &texts, NULL, NULL, err), PNB_ARG, "no pair fits");
    assert_null(t);
    path = write_file("empty.json", "{\"images\":[],\"annotations\":[]}");
    assert_fails(pnb_truth_read(&t, path, &none, &texts, NULL, NULL, err), PNB_ARG,
                 "no pair fits the sets: it names no picture and no caption");
}

static void ambiguous_names(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const twice[] = {"a/42.jpg", "b/42.jpg"}, *const ids[] = {"770337"};
    const char *const exact[] = {"a/42.jpg", "42"};
    const pnb_truth_rows images = rows(twice, 2), texts = rows(ids, 1);
    const size_t want[] = {1, 0};
    pnb_truth *t = NULL;
    assert_fails(pnb_truth_read(&t, path, &images, &texts, NULL, NULL, err), PNB_ARG,
                 "rows 0 and 1");
    expect(path, NULL, rows(exact, 2), texts, want, 1, NULL); /* the id itself is stronger */
}

static void pairs_are_read_as_they_are(void **state)
{
    (void)state;
    const char *const images[] = {"a.jpg", "b.jpg", "c.jpg"}, *const texts[] = {"t0", "t1", "t2"};
    const pnb_truth_rows i = rows(images, 3), x = rows(texts, 3);
    pnb_truth_report report;
    const size_t pairs[] = {0, 0, 2, 1};
    expect(write_file("truth.tsv", "a.jpg\tt0\nc.jpg\tt1\n"), NULL, i, x, pairs, 2, &report);
    assert_true(report.format == PNB_TRUTH_PAIRS && report.n_images == 2);
    pnb_truth_report_reset(&report);
}

static void another_split(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says[3];
    } bad[] = {
        {"s.json",
         "{\"images\":[{\"filename\":\"b.jpg\",\"sentences\":[{\"sentid\":9}]}]}",
         {"another split", "'b.jpg'", "ask for the split"}},
        {"s.json", "{\"50\":[60]}", {"another split", "'50'", "'a.jpg'"}},
    };
    for (size_t k = 0; k < PNB_COUNT(bad); k++)
        for (size_t i = 0; i < 3; i++) {
            pnb_truth *t = NULL;
            pnb_error err = PNB_ERROR_INIT;
            const char *path = write_file(bad[k].name, bad[k].text);
            assert_true(pnb_truth_read(&t, path, &IMAGE_ROWS, &TEXT_ROWS, NULL, NULL, &err) !=
                        PNB_OK);
            if (strstr(err.text, bad[k].says[i]) == NULL)
                fail_msg("case %zu says '%s', not '%s'", k, err.text, bad[k].says[i]);
        }
}

static void bad_files(void **state)
{
    (void)state;
    const char *const images[] = {"42"}, *const ids[] = {"1"};
    const pnb_truth_rows i = rows(images, 1), x = rows(ids, 1);
    pnb_truth_read_opts o = {.split = "test"};
    pnb_truth *t = NULL;
    assert_fails(pnb_truth_read(&t, write_file("bad.json", "{}"), &i, &x, NULL, NULL, err), PNB_ARG,
                 "no pair fits");
    assert_fails(pnb_truth_read(&t, write_file("t.tsv", "0\t0\n"), &i, &x, &o, NULL, err), PNB_ARG,
                 "no splits");
    assert_fails(pnb_truth_read(&t, in_dir("absent.json"), &i, &x, NULL, NULL, err), PNB_NOT_FOUND,
                 "absent.json");
    assert_string_equal(pnb_truth_format_name(PNB_N_TRUTH_FORMATS), "unknown");
    assert_null(t);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const images[] = {"42", "391895"}, *const ids[] = {"770337", "771687", "772707"};
    const pnb_truth_rows i = rows(images, 2), x = rows(ids, 3);
    pnb_status status = PNB_NOMEM;
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_truth *t = NULL;
        pnb_truth_report report = {0};
        pnb__alloc_fail_after(n);
        status = pnb_truth_read(&t, path, &i, &x, NULL, &report, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (t == NULL && report.image_named == NULL));
        assert_true(n < 500);
        pnb_truth_free(t);
        pnb_truth_report_reset(&report);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told),
        cmocka_unit_test(folders_are_told),
        cmocka_unit_test(unnamed_rows_go_by_order),
        cmocka_unit_test(absent_entries_are_counted),
        cmocka_unit_test(ambiguous_names),
        cmocka_unit_test(pairs_are_read_as_they_are),
        cmocka_unit_test(another_split),
        cmocka_unit_test(bad_files),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
