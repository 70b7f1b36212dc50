/* JSON values in memory: types, references, arrays, copies and comparison, patterns, what is
 * missing. */
#include "tests/io/json/support.h"

#include <math.h>

static void patterns_make_trees(void **state)
{
    (void)state;
    json_t *part = json_array();
    json_t *o = json_pack("{s:s, s:s?, s:[i, I, f], s:{s:b, s:n}, s:o, s:[]}", "a", "x", "b", NULL,
                          "c", -1, (json_int_t)1 << 40, 0.5, "d", "e", 1, "f", "g", part, "h");
    char *text = json_dumps(o, JSON_COMPACT);
    assert_string_equal(text, "{\"a\":\"x\",\"b\":null,\"c\":[-1,1099511627776,0.5],"
                              "\"d\":{\"e\":true,\"f\":null},\"g\":[],\"h\":[]}");
    pnb__free(text);
    json_decref(o);
    part = json_array(); /* released with the rest: the sanitizer looks */
    assert_null(json_pack("{s:s, s:o}", "a", NULL, "b", part));
}

static void what_json_cannot_hold_is_replaced(void **state)
{
    (void)state;
    json_t *o = json_pack("{s:s, s:f}", "a\xFF", "b\xC3", "n", NAN);
    char *text = json_dumps(o, 0);
    assert_string_equal(text, "{\"a\xEF\xBF\xBD\": \"b\xEF\xBF\xBD\", \"n\": null}");
    pnb__free(text);
    json_decref(o);
}

static void a_part_that_is_missing_is_told(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    json_t *root = json_object(), *list = json_array();
    json_object_set_new(root, "list", list);
    assert_true(json_is_complete(root));
    json_array_append_new(list, NULL);
    assert_false(json_is_complete(root) || json_is_complete(NULL));
    assert_null(json_dumps(root, 0));
    assert_failed(pnb__json_save_file(root, scratch_path(s, "none.json"), &err), &err, PNB_NOMEM,
                  "out of memory");
    assert_int_not_equal(access(s->path, F_OK), 0);
    json_decref(root);
}

/* Asked as another type a value is nothing: NULL, 0. */
static void values_by_type(void **state)
{
    (void)state;
    json_t *list = parse_one("[\"xy\", 7, 0.5, true, false, null, {}, []]");
    static const json_type types[] = {JSON_STRING, JSON_INTEGER, JSON_REAL,   JSON_TRUE,
                                      JSON_FALSE,  JSON_NULL,    JSON_OBJECT, JSON_ARRAY};
    for (size_t i = 0; i < PNB_COUNT(types); i++) {
        const json_t *v = json_array_get(list, i);
        assert_int_equal(json_typeof(v), types[i]);
        assert_int_equal(json_string_value(v) != NULL, i == 0);
        assert_int_equal(json_string_length(v), i == 0 ? 2 : 0);
        assert_int_equal(json_integer_value(v), i == 1 ? 7 : 0);
        assert_true(json_real_value(v) == (i == 2 ? 0.5 : 0.0));
        assert_true(json_number_value(v) == (i == 1 ? 7.0 : i == 2 ? 0.5 : 0.0));
    }
    assert_null(json_array_get(list, 8));
    assert_true(json_array_size(NULL) == 0 && json_string_value(NULL) == NULL);
    assert_ptr_equal(json_boolean(true), json_array_get(list, 3));
    json_decref(list);
    assert_null(json_string(NULL));
    json_t *text = json_stringn("a\0b", 3);
    assert_int_equal(json_string_length(text), 3);
    assert_memory_equal(json_string_value(text), "a\0b", 4);
    json_decref(text);
}

/* `append` shares, `append_new` takes, also where it fails. ASan sees what is lost or freed twice.
 */
static void references_are_counted(void **state)
{
    (void)state;
    json_t *list = json_array(), *part = json_string("x");
    assert_int_equal(json_array_append(list, part), 0);
    assert_int_equal(part->n_refs, 2);
    assert_int_equal(json_array_append_new(list, part), 0);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(json_array_append_new(list, json_incref(list)), -1); /* no circles */
    assert_int_equal(json_array_append_new(json_null(), json_string("y")), -1);
    assert_int_equal(list->n_refs, 1);
    assert_true(json_is_complete(list));
    json_decref(list);
    json_decref(NULL);
    json_decref(json_true()); /* constants are not counted */
    assert_int_equal(json_true()->n_refs, 1);
}

static void copies_and_comparison(void **state)
{
    (void)state;
    static const char *const different[] = {"[1]",         "[1.0]",       "[\"1\"]", "[true]",
                                            "[null]",      "[1, 2]",      "[[1]]",   "{\"a\":[1]}",
                                            "{\"b\":[1]}", "{\"a\":[2]}", "{}",      "[]"};
    for (size_t i = 0; i < PNB_COUNT(different); i++)
        for (size_t k = 0; k < PNB_COUNT(different); k++) {
            json_t *a = parse_one(different[i]), *b = parse_one(different[k]);
            assert_int_equal(json_equal(a, b), i == k);
            json_decref(a);
            json_decref(b);
        }
    json_t *a = parse_one("{\"a\":[1],\"b\":2}"), *b = parse_one("{\"b\":2,\"a\":[1]}");
    assert_true(json_equal(a, b)); /* whatever the order */
    assert_false(json_equal(a, NULL) || json_equal(NULL, NULL));
    json_t *shared = json_copy(a), *deep = json_deep_copy(a);
    assert_ptr_equal(json_object_get(shared, "a"), json_object_get(a, "a"));
    assert_ptr_not_equal(json_object_get(deep, "a"), json_object_get(a, "a"));
    json_array_append_new(json_object_get(a, "a"), json_integer(5));
    assert_true(json_equal(shared, a) && json_equal(deep, b));
    json_decref(a);
    json_decref(b);
    json_decref(shared);
    json_decref(deep);
    assert_null(json_copy(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_make_trees),
        cmocka_unit_test(what_json_cannot_hold_is_replaced),
        cmocka_unit_test(a_part_that_is_missing_is_told),
        cmocka_unit_test(values_by_type),
        cmocka_unit_test(references_are_counted),
        cmocka_unit_test(copies_and_comparison),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
