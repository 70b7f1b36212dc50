/* Names of files through JSON: any bytes come back, text that only looks like an escape stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/byte_names.h"
#include "io/json/json.h"

/* Through JSON text and a parser, and back. */
static void assert_survives(const char *name, const char *json)
{
    pnb__buf b = {0};
    json_t *value = NULL;
    pnb__buf_puts(&b, "[");
    pnb__byte_name_append(&b, name);
    pnb__buf_puts(&b, "]");
    assert_false(b.failed);
    assert_true(pnb__utf8_valid(b.data, b.size));
    if (json != NULL)
        assert_string_equal(b.data, json);
    pnb__byte_names_hide(b.data, b.size);
    assert_int_equal(pnb__json_load_bytes(&value, b.data, b.size, "test", NULL), PNB_OK);
    char *back = pnb__strdup(json_string_value(json_array_get(value, 0)));
    pnb__byte_name_restore(back);
    assert_string_equal(back, name);
    pnb__free(back);
    json_decref(value);
    pnb__buf_reset(&b);
}

static void names_survive(void **state)
{
    (void)state;
    assert_survives("", "[\"\"]");
    assert_survives("plain.png", "[\"plain.png\"]");
    assert_survives("caf\xc3\xa9", "[\"caf\xc3\xa9\"]");
    assert_survives("caf\xe9", "[\"caf\\udce9\"]");
    assert_survives("\xff\xfe\x80", "[\"\\udcff\\udcfe\\udc80\"]");
    assert_survives("\xed\xb2\x80", NULL); /* a surrogate as UTF-8 would have it */
    assert_survives("a\\udce9\xe9", "[\"a\\\\udce9\\udce9\"]");
    assert_survives("\\\\\xe9\"\n", NULL);
    assert_survives("\xf0\x9f\x98\x80\xf0\x9f", NULL); /* an emoji, and half of one */
    for (int first = 1; first < 256; first++) {
        const char name[4] = {(char)first, (char)(first < 255 ? 255 - first : 'y'), 'x', 0};
        assert_survives(name, NULL);
    }
}

static void only_lone_surrogates_are_bytes(void **state)
{
    (void)state;
    char pair[] = "\"\\ud83d\\ude00\"", high[] = "\"\\ud83d\\udc80\"", text[] = "\"\\\\udc80\"";
    char low[] = "\"\\udc7f\"", upper[] = "\"\\uDCE9\"", cut[] = "\"\\udc";
    char *const all[] = {pair, high, text, low, upper, cut};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        pnb__byte_names_hide(all[i], strlen(all[i]));
    assert_string_equal(pair, "\"\\ud83d\\ude00\"");
    assert_string_equal(high, "\"\\ud83d\\udc80\"");
    assert_string_equal(text, "\"\\\\udc80\"");
    assert_string_equal(low, "\"\\udc7f\"");
    assert_string_equal(cut, "\"\\udc");
    pnb__byte_names_show(upper, strlen(upper));
    assert_string_equal(upper, "\"\\udce9\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_survive),
        cmocka_unit_test(only_lone_surrogates_are_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
