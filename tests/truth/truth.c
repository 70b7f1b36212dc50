/* Truth from pairs, labels and files: what is read, what is collapsed, what is refused and how. */
#include <unistd.h>

#include "penumbra/truth.h"
#include "tests/prob/support.h"

static const char *const IMAGES[] = {"cat.png", "dog.png", "sun.png"};
static const char *const TEXTS[] = {"c0", "c1", "c2", "c3"};
static const pnb_truth_names NAMES = {IMAGES, 3, TEXTS, 4};

static char dir[] = "/tmp/penumbra_truth_XXXXXX";
static char path[64];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/truth.tsv", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void write_text(const char *text, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static pnb_status load(pnb_truth **out, const char *text, const pnb_truth_names *names,
                       pnb_error *err)
{
    write_text(text, strlen(text));
    return pnb_truth_load(out, path, names, err);
}

static void expect_pairs(const pnb_truth *t, const int64_t *pairs, size_t n)
{
    size_t i = 0;
    assert_int_equal(t->n_pairs, n);
    assert_int_equal(t->offset[0], 0);
    assert_int_equal(t->offset[t->n_queries], n);
    for (size_t q = 0; q < t->n_queries; q++)
        for (size_t j = t->offset[q]; j < t->offset[q + 1]; j++, i++) {
            assert_int_equal(pairs[2 * i], q);
            assert_int_equal(pairs[2 * i + 1], t->item[j]);
        }
}

static void pairs_are_sorted_and_collapsed(void **state)
{
    (void)state;
    const int64_t given[] = {2, 3, 0, 1, 2, 0, 0, 1, 2, 3, 0, 0};
    const int64_t want[] = {0, 0, 0, 1, 2, 0, 2, 3};
    const int64_t back[] = {0, 0, 0, 2, 1, 0, 3, 2};
    pnb_truth *t = NULL, *u = NULL;
    assert_ok(pnb_truth_create_pairs(&t, 3, 4, given, 6, err));
    expect_pairs(t, want, 4);
    assert_int_equal(t->n_duplicates, 2);
    assert_ok(pnb_truth_transpose(&u, t, err));
    assert_true(u->n_queries == 4 && u->n_items == 3);
    expect_pairs(u, back, 4);
    pnb_truth_free(t);
    pnb_truth_free(u);
    pnb_truth_free(NULL);
}

static void aligned_and_labels(void **state)
{
    (void)state;
    const int64_t want[] = {0, 0, 1, 1, 2, 2}, ql[] = {7, 5, 9}, il[] = {5, 7, 5, 1};
    const int64_t by_label[] = {0, 1, 1, 0, 1, 2};
    pnb_truth *t = NULL;
    assert_ok(pnb_truth_create_aligned(&t, 3, err));
    expect_pairs(t, want, 3);
    pnb_truth_free(t);
    assert_ok(pnb_truth_create_labels(&t, ql, 3, il, 4, err));
    expect_pairs(t, by_label, 3);
    pnb_truth_free(t);
    assert_fails(pnb_truth_create_labels(&t, ql, 1, il, 1, err), PNB_ARG, "label");
    assert_fails(pnb_truth_create_aligned(&t, 0, err), PNB_ARG, "0 rows");
}

static void bad_pairs(void **state)
{
    (void)state;
    const int64_t high[] = {0, 0, 1, 4}, low[] = {-1, 0};
    pnb_truth *t = NULL;
    assert_fails(pnb_truth_create_pairs(&t, 3, 4, high, 2, err), PNB_ARG, "pair 1 is (1, 4)");
    assert_fails(pnb_truth_create_pairs(&t, 3, 4, low, 1, err), PNB_ARG, "pair 0 is (-1, 0)");
    assert_fails(pnb_truth_create_pairs(&t, 3, 4, low, 0, err), PNB_ARG, "no pairs");
    assert_null(t);
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
    write_text("0\t0\n0\0\t1\n", 9);
    assert_fails(pnb_truth_load(&t, path, &unnamed, err), PNB_FORMAT, "NUL");
    assert_fails(pnb_truth_load(&t, "/nonexistent/truth.tsv", &unnamed, err), PNB_NOT_FOUND,
                 "truth.tsv");
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_sorted_and_collapsed),
        cmocka_unit_test(aligned_and_labels),
        cmocka_unit_test(bad_pairs),
        cmocka_unit_test(files_by_id_and_by_row),
        cmocka_unit_test(numeric_ids_win),
        cmocka_unit_test(bad_files),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
