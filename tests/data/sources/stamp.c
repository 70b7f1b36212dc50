/* Stamps of samples: the same while nothing was written, another one when the picture, its texts or
 * the table that lists it change. */
#include "data/sources/stamp.h"

#include "data/sources/dataset_internal.h"
#include "tests/data/sources/opened.h"

static uint64_t stamp_of(const char *set, size_t i)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    opts.allow_no_caption = true;
    pnb_dataset *ds = open_ok(set, &opts);
    uint64_t stamp = pnb__dataset_stamp(ds, i);
    assert_true(pnb__dataset_stamp(ds, i) == stamp);
    pnb_dataset_free(ds);
    return stamp;
}

static void test_folder_stamps(void **state)
{
    (void)state;
    put_png(scratch, "f/a.png", 1);
    put_png(scratch, "f/b.png", 2);
    put_text(scratch, "f/a.txt", "a");
    put_text(scratch, "f/a.json", "{}");
    uint64_t a = stamp_of("f", 0), b = stamp_of("f", 1);
    assert_true(a != b);
    assert_true(stamp_of("f", 0) == a); /* opening again changes nothing */
    static const char *const files[] = {"f/a.png", "f/a.txt", "f/a.json"};
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        put_text(scratch, files[i], "of another size, should the clock stand still");
        uint64_t now = stamp_of("f", 0);
        assert_true(now != a);
        a = now;
    }
    assert_true(stamp_of("f", 1) == b); /* the other picture stayed */
}

/* The file that holds the samples counts as it was when the set was opened. */
static void test_containers(void **state)
{
    (void)state;
    write_shard("s.tar", 0, 3);
    pnb_dataset *ds = open_ok("s.tar", NULL);
    uint64_t first = pnb__dataset_stamp(ds, 0), second = pnb__dataset_stamp(ds, 1);
    assert_true(first != second);
    write_shard("s.tar", 0, 4);
    assert_true(pnb__dataset_stamp(ds, 0) == first);
    pnb_dataset_free(ds);
    assert_true(stamp_of("s.tar", 0) != first);
    put_png(scratch, "a.png", 1);
    put_text(scratch, "t.csv", "filepath,title\na.png,a\na.png,b\n");
    uint64_t row = stamp_of("t.csv", 0);
    put_text(scratch, "t.csv", "filepath,title\na.png,a\na.png,other\n");
    assert_true(stamp_of("t.csv", 0) != row);
    row = stamp_of("t.csv", 0);
    put_text(scratch, "a.png", "another picture");
    assert_true(stamp_of("t.csv", 0) != row);
}

/* A line of JSON names its picture inside; a line without one has a stamp too. */
static void test_stamps_of_lines(void **state)
{
    (void)state;
    put_png(scratch, "a.png", 1);
    put_text(scratch, "l.jsonl", "{\"image\":\"a.png\",\"text\":\"a\"}\n{\"text\":\"none\"}\n");
    uint64_t line = stamp_of("l.jsonl", 0), none = stamp_of("l.jsonl", 1);
    put_text(scratch, "a.png", "another picture");
    assert_true(stamp_of("l.jsonl", 0) != line);
    assert_true(stamp_of("l.jsonl", 1) == none);
}

/* Records of one container may share a name: their place tells them apart. */
static void test_place_in_container(void **state)
{
    pnb__source source = {.stamp = 9};
    pnb__entry entries[2] = {pnb__entry_empty(), pnb__entry_empty()};
    pnb_dataset ds = {.sources = &source, .entries = entries, .n_entries = 2};
    (void)state;
    entries[0].key = entries[1].key = pnb__dataset_add_text(&ds, "name");
    assert_true(pnb__dataset_stamp(&ds, 0) == pnb__dataset_stamp(&ds, 1));
    entries[1].image.offset = 512;
    assert_true(pnb__dataset_stamp(&ds, 0) != pnb__dataset_stamp(&ds, 1));
    pnb__buf_reset(&ds.texts);
}

static void test_synthetic_stamps(void **state)
{
    (void)state;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    opts.kind = PNB_DATASET_SYNTHETIC;
    ASSERT_OK(pnb_dataset_open(&ds, NULL, &opts, &err));
    assert_true(pnb__dataset_stamp(ds, 5) != pnb__dataset_stamp(ds, 6));
    assert_true(pnb__dataset_stamp(ds, 5) == pnb__dataset_stamp(ds, 5));
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder_stamps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_containers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stamps_of_lines, setup, teardown),
        cmocka_unit_test(test_place_in_container),
        cmocka_unit_test_setup_teardown(test_synthetic_stamps, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
