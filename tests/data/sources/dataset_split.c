/* Where a split of a classification set lies: the forms of the field, folders, and what has no such
 * split. Splits of the binaries are asked for in dataset_binary.c too. */
#include "tests/data/sources/opened.h"

/* The first file that is there decides, and a set of files has no folders. */
static void test_forms(void **state)
{
    static const struct {
        const char *file, *split, *want;
    } cases[] = {{"data_batch_1.bin", "train", "data_batch_{1..5}.bin"},
                 {"train.bin", "train", "train.bin"},
                 {"train_X.bin", "train", "train_X.bin"},
                 {"unlabeled_X.bin", "unlabeled", "unlabeled_X.bin"},
                 {"t10k-images-idx3-ubyte.gz", "test", "t10k-images-idx3-ubyte.gz"},
                 {"train-images.idx3-ubyte", "train", "train-images.idx3-ubyte"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char *dir = scratch_create(), *path;
        put_text(dir, cases[i].file, "");
        expect_split(dir, cases[i].split, cases[i].want);
        put_png(dir, "dev/a.png", 1);
        ASSERT_FAILS(pnb_dataset_split(&path, dir, "dev", &err), PNB_NOT_FOUND, cases[i].split);
        assert_null(path);
        scratch_remove(dir);
    }
}

/* Folders are splits where all are named so; else they are classes and the set has no splits. */
static void test_folder_splits(void **state)
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

/* A file, or a path that is not there, comes back as it is: opening it says what is wrong. */
static void test_other(void **state)
{
    (void)state;
    char *dir = scratch_create(), *path, *file = at(dir, "a.csv");
    put_text(dir, "a.csv", "x");
    expect_split(file, "test", "");
    ASSERT_OK(pnb_dataset_split(&path, "/nonexistent/set", "test", &err));
    assert_string_equal(path, "/nonexistent/set");
    pnb_dataset_path_free(path);
    expect_split(dir, "test", ""); /* no folder below */
    put_png(dir, ".git/a.png", 1);
    put_png(dir, "valid/a.png", 1);
    ASSERT_FAILS(pnb_dataset_split(&path, dir, "test", &err), PNB_NOT_FOUND, "it has valid");
    pnb_dataset_path_free(NULL);
    pnb__free(file);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_folder_splits),
                                       cmocka_unit_test(test_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
