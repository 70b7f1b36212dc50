/* JSON values to text: numbers and strings that read back the same, sorted and indented files, one
 * line, digits that are asked for. */
#include "tests/io/json/support.h"

#include <float.h>
#include <math.h>

static void doubles_survive_writing(void **state)
{
    (void)state;
    const double values[] = {
        0.0,    -0.0, 1.0, 0.1, 1e-6, 1.0 / 3, DBL_MAX, DBL_MIN, 5e-324, 1e22, 123456789012345678.0,
        -2.5e-8};
    for (size_t i = 0; i < PNB_COUNT(values); i++) {
        pnb__buf b = {0};
        json_t *value = NULL;
        pnb__buf_putc(&b, '[');
        pnb__json_append_double(&b, values[i]);
        pnb__buf_putc(&b, ']');
        assert_int_equal(pnb__json_load_bytes(&value, b.data, b.size, "x", NULL), PNB_OK);
        assert_true(json_is_real(json_array_get(value, 0)));
        double found = json_real_value(json_array_get(value, 0));
        assert_memory_equal(&found, &values[i], sizeof(found));
        json_decref(value);
        pnb__buf_reset(&b);
    }
    pnb__buf b = {0};
    pnb__json_append_double(&b, 1e-6);
    pnb__json_append_double(&b, 3.0);
    pnb__json_append_double(&b, NAN);
    pnb__json_append_double(&b, -INFINITY);
    assert_string_equal(b.data, "1e-063.0nullnull");
    pnb__buf_reset(&b);
}

static void text_with_values_is_json(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__json_put(&b, "{%s:%f,\"n\":[%d,%zu,%lld,%llu],\"is\":%i}\n", "a \"b\"", 0.1, -7, SIZE_MAX,
                  (long long)INT64_MIN, (unsigned long long)UINT64_MAX, true);
    assert_string_equal(b.data, "{\"a \\\"b\\\"\":0.1,\"n\":[-7,18446744073709551615,"
                                "-9223372036854775808,18446744073709551615],\"is\":true}\n");
    pnb__buf_reset(&b);
    pnb__json_put(&b, "%i%f", false, (double)NAN);
    assert_string_equal(b.data, "falsenull");
    pnb__buf_reset(&b);
}

static void strings_survive_writing(void **state)
{
    (void)state;
    const char text[] =
        "quote \" backslash \\ tab \t line \n return \r bell \a e\xcc\x81 \xf0\x9f\x90\xb1 / \x7f";
    pnb__buf b = {0};
    json_t *value = NULL;
    pnb__buf_putc(&b, '[');
    pnb__json_append_string(&b, text);
    pnb__buf_putc(&b, ']');
    assert_int_equal(pnb__json_load_bytes(&value, b.data, b.size, "x", NULL), PNB_OK);
    assert_string_equal(json_string_value(json_array_get(value, 0)), text);
    json_decref(value);
    pnb__buf_reset(&b);
}

static void saved_files_are_sorted_and_read_back(void **state)
{
    scratch *s = *state;
    const char text[] =
        "{\"b\":[1,[],{}],\"a\":{\"eps\":1e-06,\"on\":true,\"none\":null,\"s\":\"x\"}}";
    const char wanted[] =
        "{\n  \"a\": {\n    \"eps\": 1e-06,\n    \"none\": null,\n    \"on\": true,\n"
        "    \"s\": \"x\"\n  },\n  \"b\": [\n    1,\n    [],\n    {}\n  ]\n}\n";
    json_t *value = NULL, *again = NULL;
    char *found = NULL;
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(load(&value, text, &err), &err);
    assert_ok(pnb__json_save_file(value, scratch_path(s, "saved.json"), &err), &err);
    assert_ok(pnb__read_file(s->path, 4096, &found, &n, &err), &err);
    assert_string_equal(found, wanted);
    assert_ok(pnb__json_load_file(&again, s->path, 0, &err), &err);
    assert_true(json_equal(value, again));
    json_decref(value);
    json_decref(again);
    pnb__free(found);
}

static void expect_dump(const json_t *value, size_t flags, const char *want)
{
    char *text = json_dumps(value, flags);
    assert_string_equal(text, want);
    pnb__free(text);
}

static void styles(void **state)
{
    (void)state;
    json_t *value = parse_one("{\"b\":[1,[],{}],\"a\":0.123456789,\"c\":{\"x\":false}}");
    expect_dump(value, 0, "{\"b\": [1, [], {}], \"a\": 0.123456789, \"c\": {\"x\": false}}");
    expect_dump(value, JSON_COMPACT, "{\"b\":[1,[],{}],\"a\":0.123456789,\"c\":{\"x\":false}}");
    expect_dump(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(3),
                "{\"a\":0.123,\"b\":[1,[],{}],\"c\":{\"x\":false}}");
    expect_dump(value, JSON_INDENT(1),
                "{\n \"b\": [\n  1,\n  [],\n  {}\n ],\n \"a\": 0.123456789,\n \"c\": {\n  \"x\": "
                "false\n }\n}");
    pnb__buf b = {0};
    pnb__buf_puts(&b, "> ");
    pnb__json_append_value(&b, json_object_get(value, "b"));
    assert_string_equal(b.data, "> [1, [], {}]");
    b.size = 0;
    pnb__json_append_pretty(&b, json_object_get(value, "c"));
    assert_string_equal(b.data, "{\n  \"x\": false\n}\n");
    pnb__buf_reset(&b);
    json_decref(value);
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__json_append_string(&b, "\x01\x1F \"\\\n\t\r\x7F\xC3\xA9");
    assert_string_equal(b.data, "\"\\u0001\\u001f \\\"\\\\\\n\\t\\r\x7F\xC3\xA9\"");
    b.size = 0;
    pnb__json_append_string(&b, "");
    assert_string_equal(b.data, "\"\"");
    pnb__buf_reset(&b);
}

/* What a reader would refuse is not written. */
static void endless_depth_is_refused(void **state)
{
    (void)state;
    json_t *inner = json_array();
    for (int depth = 1; depth <= PNB__JSON_MAX_DEPTH; depth++)
        inner = json_pack("[o]", inner);
    char *text = json_dumps(inner, 0);
    assert_non_null(text);
    pnb__free(text);
    inner = json_pack("[o]", inner);
    assert_null(json_dumps(inner, 0));
    json_decref(inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_survive_writing),
        cmocka_unit_test(text_with_values_is_json),
        cmocka_unit_test(strings_survive_writing),
        cmocka_unit_test(saved_files_are_sorted_and_read_back),
        cmocka_unit_test(styles),
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(endless_depth_is_refused),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
