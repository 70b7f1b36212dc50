/* HTML references. What is wanted was computed with Python's html.unescape. */
#include "tests/tokenizer/clean/support.h"

static void references_are_undone(void **state)
{
    (void)state;
    static const clean_case cases[] = {
        {"", ""},
        {"&", "&"},
        {"a & b &&", "a & b &&"},
        {"&amp;&AMP&amp", "&&&"},
        {"&amp;lt;", "&lt;"}, /* once */
        {"&lt;b&gt;&quot;&#39;", "<b>\"'"},
        {"&eacute;&eacute&Eacute;x", "\xC3\xA9\xC3\xA9\xC3\x89x"},
        {"&notit;&notin;&not;", "\xC2\xACit;\xE2\x88\x89\xC2\xAC"},
        {"&nosuch;&Nosuch", "&nosuch;&Nosuch"},
        {"&lambda;&lambda", "\xCE\xBB&lambda"},
        {"&NotEqualTilde;", "\xE2\x89\x82\xCC\xB8"}, /* two characters */
        {"&CounterClockwiseContourIntegral;", "\xE2\x88\xB3"},
        {"&zwnj;&AElig;", "\xE2\x80\x8C\xC3\x86"},
        {"&#955;&#955&#x3BB;&#X3bb", "\xCE\xBB\xCE\xBB\xCE\xBB\xCE\xBB"},
        {"&#;&#x;&#xg;", "&#;&#x;&#xg;"},
        {"&#0;&#xD800;&#1114112;&#99999999999999999999;",
         "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"&#128;&#x99;&#129;", "\xE2\x82\xAC\xE2\x84\xA2\xC2\x81"},
        {"[&#1;&#11;&#127;&#xFFFE;&#x1FFFF;&#xFDD0;]", "[]"},
        {"&#10;&#13;&#32;", "\n\r "},
        {"&lt\xC3\xA9;", "<\xC3\xA9;"},
        {"&am p;", "&am p;"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf b = {0};
        pnb__buf_append(&b, "", 0);
        pnb__html_unescape(&b, cases[i].text, strlen(cases[i].text), false);
        if (strcmp(b.data, cases[i].want) != 0)
            fail_msg("\"%s\": \"%s\", want \"%s\"", cases[i].text, b.data, cases[i].want);
        pnb__buf_reset(&b);
    }
}

/* Every name of the table, found by itself; 2125 names of HTML5 end with a semicolon. */
static void every_name_is_found(void **state)
{
    (void)state;
    size_t n_names = 0;
    for (size_t letter = 0; letter < 52; letter++) {
        const char *before = "";
        size_t n_before = 0;
        for (const char *at = pnb__html_entities[letter]; *at != '\0';) {
            size_t n = strcspn(at, " ?"), n_value;
            const char *value = strchr(at, ' ') + 1;
            n_value = strcspn(value, " ");
            pnb__buf text = {0}, got = {0};
            pnb__buf_printf(&text, "&%.*s;", (int)n, at);
            pnb__html_unescape(&got, text.data, text.size, true);
            assert_int_equal(got.size, n_value);
            assert_memory_equal(got.data, value, n_value);
            bool same = n == n_before && memcmp(before, at, n) == 0;
            assert_false(same);
            pnb__buf_reset(&text);
            pnb__buf_reset(&got);
            before = at;
            n_before = n;
            at = value + n_value + 1;
            n_names++;
        }
    }
    assert_int_equal(n_names, 2125);
}

/* Only what ends with a semicolon, as ftfy undoes them in front. */
static void strict_wants_the_semicolon(void **state)
{
    (void)state;
    static const clean_case cases[] = {{"&amp;&amp &lt", "&&amp &lt"},
                                       {"&#65;&#65 &#x41", "A&#65 &#x41"},
                                       {"&notit;&not;", "&notit;\xC2\xAC"},
                                       {"&nosuch;&", "&nosuch;&"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf b = {0};
        pnb__html_unescape(&b, cases[i].text, strlen(cases[i].text), true);
        assert_string_equal(b.data, cases[i].want);
        pnb__buf_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_undone),
        cmocka_unit_test(every_name_is_found),
        cmocka_unit_test(strict_wants_the_semicolon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
