/* JSON: limits, messages with positions, typed getters, unknown keys, numbers that survive writing.
 */
#include "scratch.h"

#include <float.h>
#include <math.h>

#include "io/json.h"

static pnb_status load(json_t **out, const char *text, pnb_error *err)
{
    return pnb__json_load_bytes(out, text, strlen(text), "conf.json", err);
}

static void broken_text_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "conf.json: line 1"},
        {"{\n \"a\": 1,\n}", "line 3, column 1"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{\"a\":1} x", "end of file"},
        {"7", "'[' or '{' expected"},
        {"{\"a\":\"\xff\"}", "decode byte 0xff"},
        {"{\"a\":\"\\ud800\"}", "invalid Unicode"},
        {"{\"a\\u0000\":1}", "NUL"},
        {"{\"a\":99999999999999999999}", "too big"},
        {"{\"a\":1e999}", "overflow"},
        {"{\"a\":NaN}", "invalid token"},
        {"{\"a\":01}", "column"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *value = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(load(&value, cases[i].text, &err), &err, PNB_FORMAT, cases[i].words);
        assert_null(value);
    }
}

static void nesting_is_limited(void **state)
{
    (void)state;
    char text[400];
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    for (int depth = PNB__JSON_MAX_DEPTH; depth <= PNB__JSON_MAX_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        pnb_status found = load(&value, text, &err);
        if (depth == PNB__JSON_MAX_DEPTH)
            assert_ok(found, &err);
        else
            assert_failed(found, &err, PNB_LIMIT, "deeper");
    }
    json_decref(value);
    pnb_error_reset(&err);
    memset(text, '{', 300); /* brackets inside a string are text */
    text[0] = '[', text[1] = '"', text[2] = '\\', text[3] = '"', text[298] = '"', text[299] = ']';
    text[300] = '\0';
    assert_ok(load(&value, text, &err), &err);
    json_decref(value);
}

static void files_are_limited(void **state)
{
    scratch *s = *state;
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_file(s, "a.json", "{\"a\": 1}", 8);
    assert_failed(pnb__json_load_file(&value, s->path, 7, &err), &err, PNB_LIMIT, "a.json");
    pnb_error_reset(&err);
    assert_ok(pnb__json_load_file(&value, s->path, 8, &err), &err);
    json_decref(value);
    assert_failed(pnb__json_load_file(&value, scratch_path(s, "none"), 0, &err), &err,
                  PNB_NOT_FOUND, "none");
}

static void getters_return_values_and_fallbacks(void **state)
{
    (void)state;
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    float mean[3] = {9, 9, 9};
    assert_ok(
        load(&value,
             "{\"i\":-3,\"d\":0.5,\"b\":true,\"s\":\"x\",\"n\":null,\"v\":[1,2.5,3],\"o\":{}}",
             &err),
        &err);
    pnb__jobj o = pnb__json_object(value, "conf.json", &err);
    assert_int_equal(pnb__json_get_int(&o, "i", 7, &err), -3);
    assert_int_equal(pnb__json_get_int(&o, "absent", 7, &err), 7);
    assert_int_equal(pnb__json_get_int(&o, "n", 7, &err), 7);
    assert_true(pnb__json_get_double(&o, "d", 7, &err) == 0.5);
    assert_true(pnb__json_get_double(&o, "i", 7, &err) == -3);
    assert_true(pnb__json_get_bool(&o, "b", false, &err));
    assert_true(pnb__json_get_bool(&o, "absent", true, &err));
    assert_string_equal(pnb__json_get_string(&o, "s", "y", &err), "x");
    assert_string_equal(pnb__json_get_string(&o, "n", "y", &err), "y");
    assert_non_null(pnb__json_get_object(&o, "o", &err));
    assert_null(pnb__json_get_object(&o, "absent", &err));
    assert_null(pnb__json_get_array(&o, "n", &err));
    pnb__json_get_floats(&o, "absent", mean, 3, &err);
    assert_true(mean[0] == 9);
    pnb__json_get_floats(&o, "v", mean, 3, &err);
    assert_true(mean[0] == 1 && mean[1] == 2.5f && mean[2] == 3);
    assert_true(pnb__json_has(&o, "i") && !pnb__json_has(&o, "n") && !pnb__json_has(&o, "absent"));
    assert_int_equal(o.status, PNB_OK);
    json_decref(value);
}

static void the_first_wrong_type_sticks(void **state)
{
    (void)state;
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    float mean[2] = {9, 9};
    assert_ok(load(&value, "{\"i\":2.5,\"s\":7,\"v\":[1,\"x\"],\"w\":[1]}", &err), &err);
    pnb__jobj o = pnb__json_object(value, "conf.json", &err);
    assert_int_equal(pnb__json_get_int(&o, "i", 7, &err), 7);
    assert_string_equal(pnb__json_get_string(&o, "s", "fallback", &err), "fallback");
    assert_failed(o.status, &err, PNB_FORMAT, "i is a fraction, wanted an integer");
    static const struct {
        const char *key, *words;
    } arrays[] = {{"v", "numbers only"}, {"w", "1 numbers, wanted 2"}, {"s", "an array"}};
    for (size_t i = 0; i < PNB_COUNT(arrays); i++) {
        pnb_error_reset(&err);
        o = pnb__json_object(value, "conf.json", &err);
        pnb__json_get_floats(&o, arrays[i].key, mean, 2, &err);
        assert_failed(o.status, &err, PNB_FORMAT, arrays[i].words);
        assert_true(mean[0] == 9 && mean[1] == 9);
    }
    o = pnb__json_object(value, "conf.json", NULL); /* the status works without a record */
    pnb__json_get_bool(&o, "s", false, NULL);
    assert_int_equal(o.status, PNB_FORMAT);
    pnb_error_reset(&err);
    o = pnb__json_object(value, "conf.json", &err);
    pnb__json_get_int_in(&o, "s", 3, 0, 6, &err);
    assert_failed(o.status, &err, PNB_FORMAT, "s is 7, wanted 0 to 6");
    pnb_error_reset(&err);
    o = pnb__json_object(json_object_get(value, "v"), "v", &err);
    assert_failed(o.status, &err, PNB_FORMAT, "found an array, wanted an object");
    pnb_error_reset(&err);
    o = pnb__json_object(NULL, "v", &err);
    assert_failed(o.status, &err, PNB_FORMAT, "nothing");
    json_decref(value);
}

static void unknown_keys_are_named(void **state)
{
    (void)state;
    static const char *const allowed[] = {"layers", "width", "heads", "mlp_ratio"};
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"layers\":1,\"widht\":2}", "\"widht\"; did you mean \"width\"?"},
        {"{\"mlp-Ratio\":2}", "did you mean \"mlp_ratio\"?"},
        {"{\"completely_else\":2}", "unknown key \"completely_else\""},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *value = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_ok(load(&value, cases[i].text, &err), &err);
        pnb__jobj o = pnb__json_object(value, "conf.json", &err);
        assert_failed(pnb__json_check_keys(&o, allowed, 4, &err), &err, PNB_FORMAT, cases[i].words);
        assert_int_equal(strstr(err.text, "mean") == NULL, i == 2);
        json_decref(value);
    }
    assert_null(pnb__nearest_name("zzzzzz", allowed, 4));
    assert_string_equal(pnb__nearest_name("layer", allowed, 4), "layers");
}

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

#ifdef PNB_FAULTS
static pnb_status save_and_load(scratch *s, pnb_error *err)
{
    json_t *value = NULL, *again = NULL;
    pnb_status status = load(&value, "{\"a\": [1, 2.5, \"x\"], \"b\": {\"c\": null}}", err);
    if (status == PNB_OK)
        status = pnb__json_save_file(value, scratch_path(s, "f.json"), err);
    if (status == PNB_OK)
        status = pnb__json_load_file(&again, s->path, 0, err);
    json_decref(value);
    json_decref(again);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    fail_every_allocation(save_and_load, *state);
}
#endif

static void small_ints(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int want;
    } cases[] = {{"[0]", 0},           {"[2147483647]", 2147483647},
                 {"[2147483648]", -1}, {"[-3]", -1},
                 {"[4294967296]", -1}, {"[1.0]", -1},
                 {"[\"2\"]", -1},      {"[null]", -1}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *list = NULL;
        assert_int_equal(
            pnb__json_load_bytes(&list, cases[i].text, strlen(cases[i].text), "test", NULL),
            PNB_OK);
        assert_int_equal(pnb__json_small_int(json_array_get(list, 0), -1), cases[i].want);
        json_decref(list);
    }
    assert_int_equal(pnb__json_small_int(NULL, 7), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_text_is_refused),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(files_are_limited),
        cmocka_unit_test(getters_return_values_and_fallbacks),
        cmocka_unit_test(the_first_wrong_type_sticks),
        cmocka_unit_test(unknown_keys_are_named),
        cmocka_unit_test(doubles_survive_writing),
        cmocka_unit_test(strings_survive_writing),
        cmocka_unit_test(saved_files_are_sorted_and_read_back),
        cmocka_unit_test(small_ints),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
