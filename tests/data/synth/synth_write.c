/* Writing a made set: all at once or not at all, found again by its options, shards and lists. */
#include "data/synth/synth_write.h"

#include "tests/data/fixture.h"

#include <math.h>
#include <sys/stat.h>

static char *scratch;

static int set_up(void **state)
{
    (void)state;
    scratch = scratch_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

static void text_is(const char *name, const char *want)
{
    char *path = pnb__path_join(scratch, name), *text = NULL;
    size_t n;
    ASSERT_OK(pnb__read_file(path, 1 << 20, &text, &n, &err));
    assert_string_equal(text, want);
    pnb__free(text);
    pnb__free(path);
}

static bool is_there(const char *name)
{
    char *path = pnb__path_join(scratch, name);
    bool found = access(path, F_OK) == 0;
    pnb__free(path);
    return found;
}

/* Begins the set `name` of `options`. */
static pnb_status begin(pnb__synth_out *out, const char *name, const char *options,
                        pnb_synth_stats *stats, pnb_error *err)
{
    char *dir = pnb__path_join(scratch, name);
    *stats = (pnb_synth_stats){0};
    pnb_status status = pnb__synth_begin(out, dir, options, stats, err);
    pnb__free(dir);
    return status;
}

static const pnb_synth_stats counts = {.n_train = 3,
                                       .n_val = 2,
                                       .n_test = 1,
                                       .n_texts = {4, 5, 6, 7},
                                       .texts_per_image = {0.5, 1, 1.5, 2},
                                       .images_per_text = {8, 4, 2, 1},
                                       .n_words = 9,
                                       .n_ambiguous = 1};

/* A finished set is found by its options, in any order of keys, with the counts it was given. */
static void test_found_again(void **state)
{
    (void)state;
    pnb__synth_out out;
    pnb_synth_stats stats;
    ASSERT_OK(begin(&out, "set//", "{\"kind\": \"x\", \"n\": 3}", &stats, &err));
    assert_false(stats.reused);
    assert_true(is_there("set.partial"));
    ASSERT_OK(pnb__synth_commit(&out, &counts, &err));
    assert_true(is_there("set/stats.json") && !is_there("set.partial") && !is_there("set/.lock"));
    pnb__synth_abort(&out); /* fine after commit */
    assert_true(is_there("set/stats.json"));
    ASSERT_OK(begin(&out, "set", "{\"n\": 3, \"kind\": \"x\"}", &stats, &err));
    assert_true(stats.reused);
    stats.reused = false;
    assert_memory_equal(&stats, &counts, sizeof counts);
    assert_false(is_there("set.partial"));
    pnb__synth_abort(&out);
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(begin(&out, "set", "{\"kind\": \"x\", \"n\": 4}", &stats, &error), PNB_EXISTS);
    assert_non_null(strstr(error.text, "set exists and does not hold this data set"));
    put_text(scratch, "set/stats.json", "{");
    pnb_error_reset(&error);
    assert_int_equal(begin(&out, "set", "{}", &stats, &error), PNB_FORMAT);
    assert_non_null(strstr(error.text, "stats.json"));
}

/* What an older run left is cleared; other people's folders and files are not touched. */
static void test_targets(void **state)
{
    (void)state;
    pnb__synth_out out;
    pnb_synth_stats stats;
    pnb_error error = PNB_ERROR_INIT;
    put_text(scratch, "set.partial/train/00000.tar", "old");
    put_text(scratch, "set.partial/list", "old");
    ASSERT_OK(begin(&out, "set", "{}", &stats, &err));
    assert_false(is_there("set.partial/train") || is_there("set.partial/list"));
    pnb__synth_out second; /* while another process writes it */
    assert_int_equal(begin(&second, "set", "{}", &stats, &error), PNB_BUSY);
    pnb__synth_abort(&out);
    assert_false(is_there("set.partial") || is_there("set"));
    put_text(scratch, "mine/file", "kept");
    pnb_error_reset(&error);
    assert_int_equal(begin(&out, "mine", "{}", &stats, &error), PNB_EXISTS);
    pnb_error_reset(&error);
    assert_int_equal(begin(&out, "mine/file", "{}", &stats, &error), PNB_EXISTS);
    text_is("mine/file", "kept");
    char *empty = pnb__path_join(scratch, "empty");
    assert_int_equal(mkdir(empty, 0700), 0);
    ASSERT_OK(begin(&out, "empty", "{}", &stats, &err)); /* an empty folder is as good as none */
    ASSERT_OK(pnb__synth_commit(&out, &counts, &err));
    assert_true(is_there("empty/stats.json"));
    pnb__free(empty);
    pnb_error_reset(&error);
    assert_int_equal(pnb__synth_begin(&out, "", "{}", &stats, &error), PNB_ARG);
    assert_non_null(strstr(error.text, "empty name"));
}

/* Shards of two: members in order, how many in each, and the lists beside them. */
static void test_split(void **state)
{
    (void)state;
    pnb__synth_out out;
    pnb_synth_stats stats;
    pnb__synth_split split;
    ASSERT_OK(begin(&out, "s", "{}", &stats, &err));
    ASSERT_OK(pnb__split_open(&split, &out, "val", 2, &err));
    static const char *const keys[] = {"a", "b", "c\"q"};
    for (size_t i = 0; i < 3; i++) {
        pnb__synth_item item = {.key = keys[i],
                                .name = "n",
                                .group = i == 1 ? "g\n" : "g",
                                .subgroup = "",
                                .json = "{}",
                                .png = (const unsigned char *)"p",
                                .n_png = 1};
        if (i == 0) {
            item.png2 = (const unsigned char *)"pp";
            item.n_png2 = 2;
            item.png2_suffix = "128.png";
        }
        ASSERT_OK(pnb__split_add(&split, &item, &err));
    }
    const pnb__synth_text texts[] = {{"0-1", "a \"word\"", 0, (double)NAN, 2.5, NULL},
                                     {"1-2", "", 3, 1.5, (double)NAN, ", \"noise\": true"}};
    ASSERT_OK(pnb__split_texts(&split, texts, 2, &err));
    ASSERT_OK(pnb__split_close(&split, &err));
    assert_true(split.n_items == 3 && split.n_shards == 2);
    pnb__split_abort(&split); /* fine after close */
    pnb__out_file truth = {0};
    ASSERT_OK(pnb__truth_open(&truth, &out, "val", &err));
    ASSERT_OK(pnb__out_commit(&truth, &err));
    ASSERT_OK(pnb__synth_commit(&out, &counts, &err));
    assert_true(is_there("s/truth/val.pairs"));
    text_is("s/val/sizes.json", "{\n  \"00000.tar\": 2,\n  \"00001.tar\": 1\n}\n");
    text_is("s/val/captions.jsonl",
            "{\"id\": \"0-1\", \"level\": 0, \"text\": \"a \\\"word\\\"\", \"expected_bits\": "
            "2.50000}\n"
            "{\"id\": \"1-2\", \"level\": 3, \"text\": \"\", \"entropy_bits\": 1.50000, "
            "\"noise\": true}\n");
    text_is("s/val/images.jsonl",
            "{\"id\": \"a\", \"shard\": \"00000.tar\", \"name\": \"n\", \"group\": \"g\", "
            "\"subgroup\": \"\"}\n"
            "{\"id\": \"b\", \"shard\": \"00000.tar\", \"name\": \"n\", \"group\": \"g\\n\", "
            "\"subgroup\": \"\"}\n"
            "{\"id\": \"c\\\"q\", \"shard\": \"00001.tar\", \"name\": \"n\", \"group\": \"g\", "
            "\"subgroup\": \"\"}\n");
    static const char *const members[] = {"a.png", "a.128.png", "a.json", "b.png", "b.json"};
    char *path = pnb__path_join(scratch, "s/val/00000.tar");
    pnb__tar tar = {0};
    pnb__tar_member m;
    bool more = true;
    ASSERT_OK(pnb__tar_open(&tar, path, &err));
    for (size_t i = 0; i < PNB_COUNT(members); i++) {
        ASSERT_OK(pnb__tar_next(&tar, &m, &more, &err));
        assert_string_equal(m.name, members[i]);
        assert_int_equal(m.size, i % 3 == 1 || i == 2 || i == 4 ? 2 : 1);
    }
    ASSERT_OK(pnb__tar_next(&tar, &m, &more, &err));
    assert_false(more);
    pnb__tar_close(&tar);
    pnb__free(path);
}

/* A split without a picture has its lists too, empty. */
static void test_empty_split(void **state)
{
    (void)state;
    pnb__synth_out out;
    pnb_synth_stats stats;
    pnb__synth_split split = {0};
    pnb__split_abort(&split);
    ASSERT_OK(begin(&out, "s", "{}", &stats, &err));
    ASSERT_OK(pnb__split_open(&split, &out, "test", 5, &err));
    ASSERT_OK(pnb__split_texts(&split, NULL, 0, &err));
    ASSERT_OK(pnb__split_close(&split, &err));
    pnb__split_abort(&split);
    ASSERT_OK(pnb__synth_commit(&out, &counts, &err));
    text_is("s/test/sizes.json", "{\n}\n");
    text_is("s/test/images.jsonl", "");
    text_is("s/test/captions.jsonl", "");
    assert_false(is_there("s/test/00000.tar"));
}

static void test_words(void **state)
{
    static const char *const texts[] = {"a red star", "  a star  ", "", "Red", "star"};
    (void)state;
    assert_int_equal(pnb__count_words(texts, 5), 4); /* a red star Red */
    assert_int_equal(pnb__count_words(texts, 1), 3);
    assert_int_equal(pnb__count_words(texts + 2, 1), 0);
    assert_int_equal(pnb__count_words(NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_targets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_split, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_split, set_up, tear_down),
        cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
