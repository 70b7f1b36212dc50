/* The text of a sample: every form of a record, plain text, and what is neither. */
#include "tests/data/sources/opened.h"

static void test_records(void **state)
{
    static const char FULL[] =
        "{\"captions\": [\"a\", \"b\"], \"levels\": [0, 3], \"name\": \"n\", "
        "\"group\": \"g\", \"subgroup\": \"s\", \"caption\": \"b\"}";
    static const char *const JSON[] = {
        FULL,
        "{\"cocoid\": 1, \"sentences\": [{\"raw\": \"one\", \"sentid\": 4}, {\"raw\": \"two\"}]}",
        "{\"text\": \"only text\"}",
        "{\"caption\": [\"x\", \"y\"]}",
        "{\"url\": \"no caption here\"}",
        "{\"captions\": [\"a\"], \"levels\": [0, 1]}",
        "{\"captions\": [\"a\", 7]}",
        "{\"caption\": 7}",
        "{\"caption\": \"broken",
        "{\"caption\": \"bad \xff utf-8\"}",
        "[1, 2]"};
    pnb__tar_writer w;
    pnb_sample s = {0};
    (void)state;
    start_tar(&w, "r.tar");
    for (size_t i = 0; i < PNB_COUNT(JSON); i++) {
        char name[32];
        snprintf(name, sizeof name, "%02zu.png", i);
        add_png(&w, name, (int)i);
        snprintf(name, sizeof name, "%02zu.json", i);
        add(&w, name, JSON[i]);
    }
    add_png(&w, "u.png", 1);
    add(&w, "u.txt", "bad \xc3\x28");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    pnb_dataset *ds = open_ok("r.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), PNB_COUNT(JSON) + 1);
    expect_texts(ds, 0, "00", "a|b");
    ASSERT_OK(pnb_dataset_get(ds, 0, &s, &err));
    assert_int_equal(s.levels[0], 0);
    assert_int_equal(s.levels[1], 3);
    assert_string_equal(s.name, "n");
    assert_string_equal(s.group, "g");
    assert_string_equal(s.subgroup, "s");
    assert_string_equal(s.json, JSON[0]);
    assert_null(s.image_path);
    assert_true(s.n_image_bytes > 50);
    pnb_sample_reset(&s);
    expect_texts(ds, 1, "01", "one|two");
    expect_texts(ds, 2, "02", "only text");
    expect_texts(ds, 3, "03", "x|y");
    get_fails(ds, 4, PNB_FORMAT, "no caption");
    get_fails(ds, 5, PNB_FORMAT, "levels");
    get_fails(ds, 6, PNB_FORMAT, "captions");
    get_fails(ds, 7, PNB_FORMAT, "caption");
    get_fails(ds, 8, PNB_FORMAT, "sample 08");
    get_fails(ds, 9, PNB_FORMAT, "decode byte");
    get_fails(ds, 10, PNB_FORMAT, "not a JSON object");
    get_fails(ds, 11, PNB_FORMAT, "UTF-8");
    get_fails(ds, 99, PNB_ARG, "99");
    pnb_dataset_free(ds);
}

/* Plain text is one caption a line; blank lines and both ends of lines are passed over. */
static void test_lines(void **state)
{
    pnb__tar_writer w;
    (void)state;
    start_tar(&w, "l.tar");
    add_png(&w, "a.png", 1);
    add(&w, "a.txt", "one\r\n\r\n \t\ntwo\rthree");
    add_png(&w, "b.png", 2);
    add(&w, "b.txt", " \n");
    add_png(&w, "c.png", 3); /* a record without a caption: the text beside it */
    add(&w, "c.json", "{\"name\": \"n\", \"captions\": []}");
    add(&w, "c.txt", "beside");
    add_png(&w, "d.png", 4); /* lines of an old Mac: room for each is taken */
    add(&w, "d.txt", "1\r2\r3\r4\r5\r6\r7\r8");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    pnb_dataset *ds = open_ok("l.tar", NULL);
    expect_texts(ds, 0, "a", "one|two|three");
    get_fails(ds, 1, PNB_FORMAT, "no caption: wanted \"captions\"");
    expect_texts(ds, 2, "c", "beside");
    expect_texts(ds, 3, "d", "1|2|3|4|5|6|7|8");
    pnb_dataset_free(ds);
}

/* Levels: none, null, and what is refused by its number. */
static void test_levels(void **state)
{
    static const char *const records[] = {"{\"captions\": [\"a\", \"b\"]}",
                                          "{\"captions\": [\"a\", \"b\"], \"levels\": null}",
                                          "{\"captions\": [\"a\", \"b\"], \"levels\": [-1, 1000]}",
                                          "{\"captions\": [\"a\", \"b\"], \"levels\": [0, 1001]}",
                                          "{\"captions\": [\"a\", \"b\"], \"levels\": [0.5, 1]}",
                                          "{\"caption\": [\"a\"], \"levels\": [0, 1, 2]}"};
    static const int second[] = {-1, -1, 1000};
    pnb__buf lines = {0};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(records); i++)
        pnb__buf_printf(&lines, "{\"image\": \"a.png\", %s\n", records[i] + 1);
    put_text(scratch, "v.jsonl", lines.data);
    pnb_dataset *ds = open_ok("v.jsonl", NULL);
    for (size_t i = 0; i < 3; i++) {
        pnb_sample s = {0};
        ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
        assert_int_equal(s.levels[1], second[i]);
        pnb_sample_reset(&s);
    }
    get_fails(ds, 3, PNB_FORMAT, "\"levels\"[1] must be an integer from -1 to 1000");
    get_fails(ds, 4, PNB_FORMAT, "\"levels\"[0]");
    expect_texts(ds, 5, "a.png", "a"); /* levels belong to "captions" */
    pnb_dataset_free(ds);
    pnb__buf_reset(&lines);
}

/* A class by number or by name; the record's name wins over a label that is a text. */
static void test_record_class(void **state)
{
    (void)state;
    put_text(scratch, "c.jsonl",
             "{\"image\":\"a\",\"text\":\"t\",\"label\":3}\n"
             "{\"image\":\"a\",\"text\":\"t\",\"label\":\"cat\"}\n"
             "{\"image\":\"a\",\"text\":\"t\",\"label\":\"cat\",\"class\":\"dog\"}\n"
             "{\"image\":\"a\",\"text\":\"t\",\"label\":-3}\n");
    pnb_dataset *ds = open_ok("c.jsonl", NULL);
    expect_sample(ds, 0, 3, NULL);
    expect_sample(ds, 1, -1, "cat");
    expect_sample(ds, 2, -1, "dog");
    expect_sample(ds, 3, -1, NULL);
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_record_class, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
