/* JSON files and typed access to an object: limits, getters with one sticky error, unknown keys,
 * and every allocation failing once. */
#include "tests/io/json/support.h"

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
    char text[2] = "?";
    pnb__json_get_text(&o, "absent", text, sizeof text, &err);
    assert_string_equal(text, "");
    pnb__json_get_text(&o, "s", text, sizeof text, &err);
    assert_string_equal(text, "x");
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
    assert_ok(load(&value, "{\"i\":2.5,\"s\":7,\"t\":\"x\",\"v\":[1,\"x\"],\"w\":[1]}", &err),
              &err);
    pnb__jobj o = pnb__json_object(value, "conf.json", &err);
    assert_int_equal(pnb__json_get_int(&o, "i", 7, &err), 7);
    assert_string_equal(pnb__json_get_string(&o, "s", "fallback", &err), "fallback");
    assert_failed(o.status, &err, PNB_FORMAT, "i is a fraction, wanted an integer");
    char text[1] = "";
    pnb_error_reset(&err);
    o = pnb__json_object(value, "conf.json", &err);
    pnb__json_get_text(&o, "t", text, sizeof text, &err);
    assert_failed(o.status, &err, PNB_FORMAT, "t of 1 bytes, at most 0");
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

#ifdef PNB_FAULTS
/* Many keys, so that tables grow; no step is looked at. */
static pnb_status build_and_write(scratch *s, pnb_error *err)
{
    json_t *root = json_object(), *list = json_array();
    char key[16];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i);
        json_object_set_new(root, key, json_pack("[i, s, {s:f}]", i, "\xFF", "x", 0.1));
        json_array_append(list, json_object_get(root, key));
    }
    json_object_set_new(root, "list", list);
    json_t *copy = json_deep_copy(root);
    pnb_status status = pnb__json_save_file(copy, scratch_path(s, "built.json"), err);
    json_decref(copy);
    json_decref(root);
    if (status != PNB_OK)
        return status;
    status = pnb__json_load_file(&root, s->path, 0, err);
    if (status == PNB_OK) {
        assert_int_equal(json_object_size(root), 41); /* whole, whatever failed on the way */
        assert_int_equal(json_array_size(json_object_get(root, "list")), 40);
        json_decref(root);
    }
    return status;
}

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
    fail_every_allocation(build_and_write, *state);
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

/* A whole number from 0 at its key, or a text where that will do. */
static void ids_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_number, is_text; /* what it passes as */
    } cases[] = {{"{\"id\":0}", true, true},      {"{\"id\":9223372036854775807}", true, true},
                 {"{\"id\":\"x\"}", false, true}, {"{\"id\":-1}", false, false},
                 {"{\"id\":1.0}", false, false},  {"{\"id\":null}", false, false},
                 {"{\"ID\":1}", false, false},    {"[1]", false, false}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *entry = parse_one(cases[i].text);
        for (int number = 0; number < 2; number++) {
            pnb_error err = PNB_ERROR_INIT;
            pnb_status found = pnb__json_check_id(entry, "id", number, "a.json", "images", 3, &err);
            if (number ? cases[i].is_number : cases[i].is_text)
                assert_ok(found, &err);
            else
                assert_failed(found, &err, PNB_FORMAT,
                              number ? "a.json: images[3] needs a whole number from 0 as \"id\""
                                     : "images[3] needs a whole number from 0 or a text as \"id\"");
        }
        json_decref(entry);
    }
}

/* Text that may be anything is no error; want of memory is one. */
static void anything_may_be_tried(void **state)
{
    (void)state;
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__json_try_bytes(&value, "{\"a\":1}", 7, &err), &err);
    assert_int_equal(json_object_size(value), 1);
    json_decref(value);
    static const char *const other[] = {"", "{", "plain words", "7", "{\"a\":1} x"};
    for (size_t i = 0; i < PNB_COUNT(other); i++) {
        assert_ok(pnb__json_try_bytes(&value, other[i], strlen(other[i]), &err), &err);
        assert_null(value);
    }
#ifdef PNB_FAULTS
    pnb__alloc_fail_after(0);
    assert_failed(pnb__json_try_bytes(&value, "[1]", 3, &err), &err, PNB_NOMEM, "out of memory");
    pnb__alloc_fail_after(-1);
    assert_null(value);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_limited),
        cmocka_unit_test(getters_return_values_and_fallbacks),
        cmocka_unit_test(the_first_wrong_type_sticks),
        cmocka_unit_test(unknown_keys_are_named),
        cmocka_unit_test(small_ints),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(anything_may_be_tried),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
