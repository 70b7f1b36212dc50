/* sizes.json and __len__ beside shards: silent where they are right, a warning by name where they
 * are not, and all samples there in any case. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/sources/opened.h"

/* Opens the spec; its only warning has `text`, or there is none where that is NULL. */
static void expect_warning(const char *spec, size_t n_samples, const char *text)
{
    pnb_dataset *ds = open_ok(spec, NULL);
    assert_int_equal(pnb_dataset_size(ds), n_samples);
    assert_int_equal(pnb_dataset_n_damaged(ds), 0);
    const char *said = pnb_dataset_warning(ds, 0);
    if (pnb_dataset_n_warnings(ds) != (text != NULL) || strstr(said, text ? text : "") == NULL)
        fail_msg("%zu warnings, \"%s\" for \"%s\"", pnb_dataset_n_warnings(ds), said,
                 text ? text : "none");
    pnb_dataset_free(ds);
}

static void put_shards(void)
{
    put_text(scratch, "s/about.txt", "");
    write_shard("s/0.tar", 0, 3);
    write_shard("s/1.tar", 3, 2);
}

static void test_sizes(void **state)
{
    (void)state;
    put_shards();
    put_text(scratch, "s/sizes.json", "{\"0.tar\": 3, \"1.tar\": 2}");
    expect_warning("s", 5, NULL);
    expect_warning("s/1.tar", 2, NULL);
    put_text(scratch, "s/sizes.json", "{\"0.tar\": 3, \"1.tar\": 4}");
    expect_warning("s", 5,
                   "s/sizes.json says another number of samples of 1 of 2 shards (1.tar: 4, and it "
                   "has 2)");
    expect_warning("s/0.tar", 3, NULL); /* the other one is nobody's here */
    put_text(scratch, "s/sizes.json", "{\"0.tar\": 3}");
    expect_warning("s", 5, "says no number of samples of 1 of 2 shards (1.tar)");
    put_text(scratch, "s/sizes.json", "{\"0.tar\": 3, \"1.tar\": \"two\"}");
    expect_warning("s", 5, "says no number of samples of 1 of 2 shards (1.tar)");
    put_text(scratch, "s/sizes.json", "{\"0.tar\": 3, \"1.tar\": 2, \"2.tar\": 7, \"3.tar\": 7}");
    expect_warning("s", 5, "names 2 shards that are not there (2.tar): their samples are missing");
    expect_warning("s/0.tar", 3, NULL);
    put_text(scratch, "s/sizes.json", "[3, 2]");
    expect_warning("s", 5, "an object of shards and numbers is wanted; it is not compared");
    put_text(scratch, "s/sizes.json", "{");
    expect_warning("s", 5, "sizes.json");
}

static void test_len(void **state)
{
    (void)state;
    put_shards();
    put_text(scratch, "s/__len__", "5\n");
    expect_warning("s", 5, NULL);
    put_text(scratch, "s/__len__", "6");
    expect_warning("s", 5, "s/__len__ says 6 samples, and the 2 shards beside it have 5");
    expect_warning("s/0.tar", 3, NULL); /* it is of all */
    put_text(scratch, "s/__len__", "many");
    expect_warning("s", 5, "s/__len__: a number of samples is wanted; it is not compared");
    put_text(scratch, "s/sizes.json", "{\"0.tar\": 3, \"1.tar\": 2}"); /* says more, as there */
    expect_warning("s", 5, NULL);
}

/* What is no file is told, and nobody waits at it. */
static void test_no_file(void **state)
{
    static const char *const names[] = {"s/sizes.json", "s/__len__"};
    (void)state;
    put_shards();
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *path = pnb__path_join(scratch, names[i]);
        remove(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        expect_warning("s", 5, " is a pipe, a file is wanted; it is not compared");
        remove(path);
        assert_int_equal(mkdir(path, 0700), 0);
        expect_warning("s", 5, " is a folder, a file is wanted; it is not compared");
        remove(path);
        assert_int_equal(symlink("/dev/zero", path), 0);
        expect_warning("s", 5, " is a device, a file is wanted; it is not compared");
        remove(path);
        pnb__free(path);
    }
}

/* Samples that are left out are told already, and count or do not. */
static void test_left_out(void **state)
{
    static const char *const sizes[] = {"{\"a.tar\": 1}", "{\"a.tar\": 2}", "{\"a.tar\": 3}"};
    (void)state;
    put_text(scratch, "l/about.txt", "");
    pnb__tar_writer w;
    start_tar(&w, "l/a.tar");
    add_png(&w, "a.png", 1);
    add(&w, "a.txt", "one");
    add_png(&w, "b.png", 1);
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        put_text(scratch, "l/sizes.json", sizes[i]);
        pnb_dataset *ds = open_ok("l", NULL);
        assert_int_equal(pnb_dataset_size(ds), 1);
        assert_int_equal(pnb_dataset_n_warnings(ds), i < 2 ? 1 : 2);
        pnb_dataset_free(ds);
    }
}

/* A shard that was cut is told of by its damage alone. */
static void test_damage(void **state)
{
    (void)state;
    put_shards();
    char *path = in_scratch("s/0.tar");
    assert_int_equal(truncate(path, 2 * 2 * 1024 + 700), 0);
    put_text(scratch, "s/__len__", "5");
    pnb_dataset *ds = open_ok("s", NULL);
    assert_int_equal(pnb_dataset_size(ds), 4);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    pnb__free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_len, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
