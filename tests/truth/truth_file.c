/* Files of pairs: by id and by row number, numbers that are ids, what is refused and how, and files
 * that speak of other rows. */
#include "tests/truth/support.h"

static const char *const IMAGES[] = {"cat.png", "dog.png", "sun.png"};
static const char *const TEXTS[] = {"c0", "c1", "c2", "c3"};
static const pnb_truth_names NAMES = {IMAGES, 3, TEXTS, 4};

static pnb_status load(pnb_truth **out, const char *text, const pnb_truth_names *names,
                       pnb_error *err)
{
    return pnb_truth_load(out, write_file("truth.tsv", text), names, err);
}

static void files_by_id_and_by_row(void **state)
{
    (void)state;
    const int64_t want[] = {0, 2, 1, 0, 1, 3};
    pnb_truth *t = NULL;
    assert_ok(load(&t, "\xEF\xBB\xBF# image\tcaption\ndog.png\tc3\r\n\ncat.png\tc2\ndog.png\tc0",
                   &NAMES, err));
    expect_pairs(t, want, 3);
    pnb_truth_free(t);
    assert_ok(load(&t, "1\t3\n0\t2\n1\t0\n", &NAMES, err));
    expect_pairs(t, want, 3);
    pnb_truth_free(t);
    const pnb_truth_names unnamed = {NULL, 3, NULL, 4};
    assert_ok(load(&t, "1\t3\n0\t2\n1\t0\n", &unnamed, err));
    expect_pairs(t, want, 3);
    pnb_truth_free(t);
}

/* Numbers that are ids are ids. */
static void numeric_ids_win(void **state)
{
    (void)state;
    const char *const ids[] = {"2", "1", "0"};
    const pnb_truth_names names = {ids, 3, ids, 3};
    const int64_t want[] = {2, 1};
    pnb_truth *t = NULL;
    assert_ok(load(&t, "0\t1\n", &names, err));
    expect_pairs(t, want, 1);
    pnb_truth_free(t);
}

static void bad_files(void **state)
{
    (void)state;
    const char *const twice[] = {"c0", "c1", "c1", "c3"};
    const pnb_truth_names duplicated = {IMAGES, 3, twice, 4}, unnamed = {NULL, 3, NULL, 4};
    pnb_truth *t = NULL;
    assert_fails(load(&t, "cat.png\tc0\nowl.png\tc1\n", &NAMES, err), PNB_NOT_FOUND,
                 "line 2: 'owl.png'");
    assert_fails(load(&t, "image\tcaption\ncat.png\tc0\n", &NAMES, err), PNB_FORMAT, "line 1");
    assert_fails(load(&t, "0\t0\ncat.png\tc0\n", &NAMES, err), PNB_FORMAT, "line 2");
    assert_fails(load(&t, "cat.png c0\n", &NAMES, err), PNB_FORMAT, "no tab");
    assert_fails(load(&t, "cat.png\tc0\n", &duplicated, err), PNB_ARG, "rows 1 and 2");
    assert_fails(load(&t, "0\t4\n", &unnamed, err), PNB_ARG, "item row 4");
    assert_fails(load(&t, "-1\t0\n", &unnamed, err), PNB_FORMAT, "'-1'");
    assert_fails(load(&t, "99999999999999999999\t0\n", &unnamed, err), PNB_FORMAT, "line 1");
    assert_fails(load(&t, "\t\n", &NAMES, err), PNB_FORMAT, "line 1");
    assert_fails(load(&t, "# nothing\n\n", &NAMES, err), PNB_ARG, "no pairs");
    assert_fails(load(&t, "", &NAMES, err), PNB_ARG, "no pairs");
    const char *path = in_dir("truth.tsv");
    assert_ok(pnb__write_file(path, "0\t0\n0\0\t1\n", 9, err));
    assert_fails(pnb_truth_load(&t, path, &unnamed, err), PNB_FORMAT, "NUL");
    assert_fails(pnb_truth_load(&t, "/nonexistent/truth.tsv", &unnamed, err), PNB_NOT_FOUND,
                 "truth.tsv");
    assert_null(t);
}

static const truth_case CASES[] = {
    {"p.tsv", "a.jpg\t7\n42\t8\n", NULL, PNB_TRUTH_AUTO},
    {"p.tsv", "a.jpg\t7\n42\t8\t1\n", "p.tsv line 2: there is a third column", PNB_TRUTH_AUTO},
    {"p.tsv", "a.jpg\t7\t\n", "p.tsv line 1: there is a third column", PNB_TRUTH_AUTO},
    {"p.tsv", "0\t0\n1\t1.5\n", "line 2: '1.5' is not a row number", PNB_TRUTH_AUTO},
    {"p.tsv", "0\t0\n-1\t1\n", "line 2: '-1' is not a row number", PNB_TRUTH_AUTO},
};

static void values_that_mean_nothing(void **state)
{
    (void)state;
    expect_cases(CASES, PNB_COUNT(CASES));
}

/* The truth of other rows. */
static void another_split(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says[3];
    } bad[] = {
        {"s.tsv", "b.jpg\t9\nc.jpg\t10\n", {"another split", "'b.jpg' and '9'", "'42' and '7'"}},
        {"s.tsv",
         "a.jpg\t7\nb.jpg\t9\nc.jpg\t10\n",
         {"line 2: 'b.jpg'", "only 1 of the 3 pairs fit the sets", "another split"}},
        {"s.tsv", "391895\t770337\n", {"row 391895", "another split", "only 0 of the 1 pairs"}},
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
    /* a slip in one of many pairs is no other split */
    pnb_truth *t = NULL;
    pnb_error err = PNB_ERROR_INIT;
    const char *path = write_file("s.tsv", "a.jpg\t7\n42\t8\nb.jpg\t8\n");
    assert_true(pnb_truth_read(&t, path, &IMAGE_ROWS, &TEXT_ROWS, NULL, NULL, &err) ==
                PNB_NOT_FOUND);
    assert_null(strstr(err.text, "split"));
}

/* Rows of captions embedded sample by sample: "KEY#k", with the id that files know them by beside
 * it. A pair with a caption that several pictures share is one with each of its rows. */
static void texts_by_the_ids_that_rows_carry(void **state)
{
    (void)state;
    const char *const texts[] = {"cat#0", "cat#1", "dog#0", "sun#0"};
    const char *const extras[] = {"{\"caption_id\":\"any\"}", "{\"caption_id\":\"one\"}",
                                  "{\"image\":\"dog\",\"caption_id\":\"any\"}",
                                  "{\"caption_id\":7}"};
    const pnb_truth_rows images = {.ids = IMAGES, .n = 3};
    const pnb_truth_rows rows = {.ids = texts, .n = 4, .extras = extras};
    const pnb_truth_read_opts as_pairs = {.format = PNB_TRUTH_PAIRS};
    const int64_t want[] = {0, 0, 0, 1, 0, 2, 1, 0, 1, 2, 2, 3};
    pnb_truth *t = NULL;
    const char *path =
        write_file("truth.tsv", "cat.png\tany\ndog.png\tany\ncat.png\tone\nsun.png\t7\n");
    assert_ok(pnb_truth_read(&t, path, &images, &rows, &as_pairs, NULL, err));
    expect_pairs(t, want, 6);
    pnb_truth_free(t);
    path = write_file("truth.tsv", "cat.png\tcat#1\nsun.png\tsun#0\n"); /* their own ids go first */
    const int64_t own[] = {0, 1, 2, 3};
    assert_ok(pnb_truth_read(&t, path, &images, &rows, &as_pairs, NULL, err));
    expect_pairs(t, own, 2);
    pnb_truth_free(t);
    path = write_file("truth.tsv", "cat.png\tany\ndog.png\tother\n");
    assert_fails(pnb_truth_read(&t, path, &images, &rows, &as_pairs, NULL, err), PNB_NOT_FOUND,
                 "'other' is not an id of the 4 item rows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_by_id_and_by_row),
        cmocka_unit_test(numeric_ids_win),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(values_that_mean_nothing),
        cmocka_unit_test(another_split),
        cmocka_unit_test(texts_by_the_ids_that_rows_carry),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
