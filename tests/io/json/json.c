/* JSON: limits, messages with positions, typed getters, unknown keys, numbers that survive writing.
 */
#include "tests/io/scratch.h"

#include <float.h>
#include <math.h>

#include "io/json/json.h"

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

/* ---- numbers ---- */

static double number_in(const char *text)
{
    json_t *list = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char *json = pnb__format("[%s]", text);
    assert_ok(load(&list, json, &err), &err);
    double value = json_number_value(json_array_get(list, 0));
    json_decref(list);
    pnb__free(json);
    return value;
}

static void assert_reads_as_strtod(const char *text)
{
    double found = number_in(text), wanted = strtod(text, NULL);
    if (memcmp(&found, &wanted, sizeof found) != 0)
        fail_msg("%s: found %a, wanted %a", text, found, wanted);
}

static void reals_are_read_exactly(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0.1",
        "0.3",
        "-0.0",
        "1e22",
        "1e23",
        "9007199254740993.0",
        "9007199254740992.5",
        "9007199254740991e22",
        "123456789012345678.0",
        "0.1234567890123456789",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "4.9406564584124654e-324",
        "1e-400",
        "0.000e5",
        "0e999999999999",
        "1.7976931348623157e308",
        "6.02214076E+23",
        "1.0e-10",
        "8.5e-322",
        "0.5000000000000000000000000000000000000000000000000000000000000001",
        "179769313486231570000000000000000000000000000000000000000000000000000000000000000.5",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126"};
    for (size_t i = 0; i < PNB_COUNT(texts); i++)
        assert_reads_as_strtod(texts[i]);
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 2);
    for (int i = 0; i < 20000; i++) {
        static const int precision[] = {3, 9, 16, 17, 18, 24};
        union {
            uint64_t bits;
            double value;
        } any = {pnb__rng_u64(&rng)};
        char text[64];
        double x = i % 2 == 0 ? any.value : (pnb__rng_uniform(&rng) - 0.5) * 1e4;
        if (!isfinite(x))
            continue;
        snprintf(text, sizeof text, "%.*e", precision[pnb__rng_below(&rng, 6)] - 1, x);
        if (isfinite(strtod(text, NULL)))
            assert_reads_as_strtod(text);
    }
    char longest[2000] = "0.";
    memset(longest + 2, '7', 1500);
    assert_reads_as_strtod(longest);
    memset(longest + 2, '0', 1400);
    strcpy(longest + 1502, "e1400");
    assert_reads_as_strtod(longest);
}

static void whole_numbers_keep_their_bits(void **state)
{
    (void)state;
    json_t *list = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(load(&list, "[9223372036854775807, -9223372036854775808, -0, 12]", &err), &err);
    assert_true(json_integer_value(json_array_get(list, 0)) == INT64_MAX);
    assert_true(json_integer_value(json_array_get(list, 1)) == INT64_MIN);
    assert_true(json_is_integer(json_array_get(list, 2)));
    assert_true(json_integer_value(json_array_get(list, 3)) == 12);
    json_decref(list);
    assert_failed(load(&list, "[9223372036854775808]", &err), &err, PNB_FORMAT, "too big integer");
    pnb_error_reset(&err);
    assert_failed(load(&list, "[-9223372036854775809]", &err), &err, PNB_FORMAT, "too big neg");
    pnb_error_reset(&err);
    assert_failed(load(&list, "[18446744073709551617]", &err), &err, PNB_FORMAT, "too big");
}

/* ---- strings ---- */

static void escapes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted; /* NULL: refused */
    } cases[] = {
        {"\\u00e9\\n\\/\\b\\f\\r\\t\\\"\\\\", "\xC3\xA9\n/\b\f\r\t\"\\"},
        {"\\uD83D\\uDC31", "\xF0\x9F\x90\xB1"},
        {"\\uFFFF\\u20aC", "\xEF\xBF\xBF\xE2\x82\xAC"},
        {"a\\u0041b", "aAb"},
        {"\\uD83D", NULL},
        {"\\uD83Dx", NULL},
        {"\\uD83D\\u0041", NULL},
        {"\\uDC31", NULL},
        {"\\u12G4", NULL},
        {"\\u123", NULL},
        {"\\x41", NULL},
        {"\\u0000", NULL},
        {"\n", NULL},
        {"\xC0\x80", NULL},
        {"\xED\xA0\x80", NULL},
        {"\xF5\x80\x80\x80", NULL},
        {"\\n\xFF", NULL},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *list = NULL;
        char *json = pnb__format("[\"%s\"]", cases[i].text);
        pnb_status found = load(&list, json, NULL);
        if ((found == PNB_OK) != (cases[i].wanted != NULL))
            fail_msg("%s: %s", json, pnb_status_name(found));
        if (found == PNB_OK)
            assert_string_equal(json_string_value(json_array_get(list, 0)), cases[i].wanted);
        json_decref(list);
        pnb__free(json);
    }
}

static void every_beginning_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": [1, -2.5e3, \"x\\u00e9\xC3\xA9\", {\"b\": null}], \"c\": true}";
    for (size_t n = 0; n + 1 < sizeof text; n++) {
        json_t *value = NULL;
        char *part = pnb__alloc(n + 1); /* its own bytes, so that one read too many is seen */
        memcpy(part, text, n);
        if (pnb__json_load_bytes(&value, part, n, "x", NULL) != PNB_FORMAT)
            fail_msg("%zu bytes", n);
        assert_null(value);
        pnb__free(part);
    }
}

/* ---- trees ---- */

static void objects_keep_order_and_find_keys(void **state)
{
    (void)state;
    json_t *o = json_object();
    char key[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3000; i++) {
            snprintf(key, sizeof key, "key %d", i * 7919 % 3001);
            assert_int_equal(json_object_set_new(o, key, json_integer(i + round)), 0);
        }
    assert_int_equal(json_object_size(o), 3000);
    assert_int_equal(json_object_del(o, "key 0"), 0);
    assert_int_equal(json_object_del(o, "key 0"), -1);
    const char *found;
    json_t *value;
    int i = 1;
    json_object_foreach(o, found, value)
    {
        snprintf(key, sizeof key, "key %d", i * 7919 % 3001);
        assert_string_equal(found, key);
        assert_int_equal(json_integer_value(value), i + 1);
        assert_ptr_equal(json_object_get(o, key), value);
        i++;
    }
    assert_int_equal(i, 3000);
    assert_null(json_object_get(o, "key 0"));
    json_t *copy = json_deep_copy(o), *other = json_copy(o);
    assert_true(json_equal(o, copy) && json_equal(o, other));
    json_object_set_new(copy, "key 1", json_real(1));
    assert_false(json_equal(o, copy));
    json_decref(copy);
    json_decref(other);
    json_decref(o);
}

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
        cmocka_unit_test(reals_are_read_exactly),
        cmocka_unit_test(whole_numbers_keep_their_bits),
        cmocka_unit_test(escapes_are_read),
        cmocka_unit_test(every_beginning_is_refused),
        cmocka_unit_test(objects_keep_order_and_find_keys),
        cmocka_unit_test(patterns_make_trees),
        cmocka_unit_test(what_json_cannot_hold_is_replaced),
        cmocka_unit_test(a_part_that_is_missing_is_told),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
