/* JSON text to values: what is refused and where, depth, numbers bit for bit, escapes. */
#include "tests/io/json/support.h"

#include <math.h>

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
    assert_ok(load(&list, "[18446744073709551617e0, 1844674407370955161.7e1]", &err), &err);
    assert_true(json_real_value(json_array_get(list, 0)) == 18446744073709551617e0);
    assert_true(json_real_value(json_array_get(list, 1)) == 18446744073709551617e0);
    json_decref(list);
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
        {"\\uD83D\\xDC31", NULL},
        {"\\uD83D/uDC31", NULL},
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

/* Lines and columns count characters from 1, and what stands there is quoted. */
static void places_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\n\n  \"\xC3\xA9\xE2\x96\x81\": wrong}",
         "line 3, column 9: invalid token near 'wrong}'"},
        {"[1 2]", "line 1, column 4: ']' expected near '2]'"},
        {"{\"a\" 1}", "line 1, column 6: ':' expected near '1}'"},
        {"{a:1}", "line 1, column 2: string or '}' expected near 'a:1}'"},
        {"[\"a\x01\"]", "line 1, column 4: a control character inside a string"},
        {"[\"a", "a string is not closed near end of file"},
        {"[1.]", "line 1, column 2: invalid token near '1.]'"},
        {"[1e+]", "invalid token near '1e+]'"},
        {"[-]", "invalid token near '-]'"},
        {"[tru]", "invalid token near 'tru]'"},
        {"[tru e]", "invalid token near 'tru'"},
        {"[,]", "invalid token near ',]'"},
        {"\xEF\xBB\xBF[]", "'[' or '{' expected"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *value = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(load(&value, cases[i].text, &err), &err, PNB_FORMAT, cases[i].says);
    }
    json_t *value = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__json_load_bytes(&value, NULL, 3, "x", &err), &err, PNB_ARG, "no bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_text_is_refused), cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(reals_are_read_exactly), cmocka_unit_test(whole_numbers_keep_their_bits),
        cmocka_unit_test(escapes_are_read),       cmocka_unit_test(every_beginning_is_refused),
        cmocka_unit_test(places_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
