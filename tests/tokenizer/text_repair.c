/* Repairs and HTML references. What is wanted was computed with Python's html.unescape and with
 * ftfy 6.3; texts on which ftfy's wider guesses differ are not among them. */
#include "penumbra/tokenizer.h"
#include "tests/io/scratch.h"
#include "tokenizer/clean/html_unescape.h"

typedef struct pair {
    const char *text, *want;
} pair;

static void references_are_undone(void **state)
{
    (void)state;
    static const pair cases[] = {
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

static void expect_clean(pnb_clean clean, const pair *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *got;
        size_t n_got;
        assert_int_equal(
            pnb_clean_text(clean, cases[i].text, strlen(cases[i].text), &got, &n_got, NULL),
            PNB_OK);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("case %zu \"%s\": \"%s\", want \"%s\"", i, cases[i].text, got, cases[i].want);
        assert_int_equal(n_got, strlen(got));
        pnb_text_free(got);
    }
}

static void damage_is_repaired(void **state)
{
    (void)state;
    static const pair cases[] = {
        {"plain text, it's 100%", "plain text, it's 100%"},
        {"caf\xC3\x83\xC2\xA9 cr\xC3\x83\xC2\xA8me", "caf\xC3\xA9 cr\xC3\xA8me"},
        {"it\xC3\xA2\xE2\x82\xAC\xE2\x84\xA2s", "it's"}, /* U+2019 read as Windows-1252 */
        {"\xC3\xB0\xC5\xB8\xCB\x9C\xE2\x82\xAC", "\xF0\x9F\x98\x80"}, /* an emoji likewise */
        {"50\xC3\x82\xC2\xB0"
         "C",
         "50\xC2\xB0"
         "C"},
        /* twice wrong */
        {"caf\xC3\x83\xC6\x92\xC3\x82\xC2\xA9", "caf\xC3\xA9"},
        /* what looks like it and is not: a capital before a closing quote */
        {"\xE2\x80\x9C"
         "CAF\xC3\x89\xE2\x80\x9D",
         "\"CAF\xC3\x89\""},
        {"CAF\xC3\x89\xE2\x80\xA6", "CAF\xC3\x89\xE2\x80\xA6"},
        {"na\xC3\xAFve \xC2\xBD \xC3\xBC", "na\xC3\xAFve \xC2\xBD \xC3\xBC"},
        /* ligatures, width, quotes, breaks, controls, escapes, marks */
        {"\xEF\xAC\x81re \xEF\xAC\x84 \xC5\x89", "fire ffl 'n"},
        {"\xEF\xBC\xA1\xEF\xBC\xA2\xE3\x80\x80\xEF\xBC\x91\xEF\xBD\xB6", "AB 1\xE3\x82\xAB"},
        {"\xE2\x80\x98x\xE2\x80\x99 \xE2\x80\x9Cy\xE2\x80\x9D", "'x' \"y\""},
        {"a\xE2\x80\xA8"
         "b\r\nc\rd",
         "a b c d"},
        {"a\x07"
         "b\x1F\x7F"
         "c\xEF\xBB\xBF",
         "abc"},
        {"\x1B[1;31mred\x1B[0m", "red"},
        {"cafe\xCC\x81", "caf\xC3\xA9"},
        {"\xC2\x93hi\xC2\x94", "\"hi\""}, /* C1 controls mean Windows-1252 */
        {"\xED\xA0\xBD\xED\xB8\x80 \xED\xA0\xBD", "\xF0\x9F\x98\x80 \xEF\xBF\xBD"},
        /* references, twice, and not where tags stand; then with and without them */
        {"&amp;lt;b&amp;gt;", "<b>"},
        {"  a \t b\x1C", "a b"},
    };
    expect_clean(PNB_CLEAN_WHITESPACE, cases, PNB_COUNT(cases));
    static const pair lower[] = {{" A &AMP; B ", "a & b"},
                                 {"\xCE\xA3\xCE\xA3", "\xCF\x83\xCF\x82"}};
    expect_clean(PNB_CLEAN_LOWER, lower, PNB_COUNT(lower));
    static const pair canonical[] = {{"Jack-o'-lantern_&quot;x\xE2\x80\x99", "jackolantern x"}};
    expect_clean(PNB_CLEAN_CANONICALIZE, canonical, PNB_COUNT(canonical));
    static const pair none[] = {{" \xEF\xAC\x81&amp; ", " \xEF\xAC\x81&amp; "}};
    expect_clean(PNB_CLEAN_NONE, none, PNB_COUNT(none));
}

/* Repairs can be left out, references not. */
static void repairs_can_be_switched_off(void **state)
{
    (void)state;
    pnb_tokenizer *tok;
    static const char json[] =
        "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"fi&\":1,"
        "\"\xEF\xAC\x81&\":2}}}";
    assert_int_equal(pnb_tokenizer_parse(&tok, json, sizeof json - 1, NULL), PNB_OK);
    pnb_tokenizer_set_clean(tok, PNB_CLEAN_LOWER);
    for (int repair = 0; repair < 2; repair++) {
        int32_t id;
        pnb_tokenizer_set_repair(tok, repair != 0);
        assert_int_equal(pnb_tokenizer_encode(tok, "\xEF\xAC\x81&amp;", 8, 1, &id, NULL, NULL),
                         PNB_OK);
        assert_int_equal(id, repair ? 1 : 2);
    }
    pnb_tokenizer_free(tok);
}

/* Texts on which a careless loop would take the square of their length. */
static void long_hostile_texts_take_linear_time(void **state)
{
    (void)state;
    static const char *const units[] = {
        "\xCC\x81\xCC\x96", "&n",        "&#",           "\x1B[1;",
        "\xC3\x83\xC2\xA9", "\xCE\xA3'", "\xE0\xBD\xB3", "\xED\xA0"};
    for (size_t i = 0; i < PNB_COUNT(units); i++) {
        pnb__buf b = {0};
        char *got;
        size_t n;
        pnb__buf_putc(&b, 'a');
        while (b.size < 200000)
            pnb__buf_puts(&b, units[i]);
        double start = pnb__now_s();
        assert_int_equal(pnb_clean_text(PNB_CLEAN_LOWER, b.data, b.size, &got, &n, NULL), PNB_OK);
        assert_true(pnb__now_s() - start < 10);
        assert_true(pnb__utf8_valid(got, n));
        pnb_text_free(got);
        pnb__buf_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_undone), cmocka_unit_test(every_name_is_found),
        cmocka_unit_test(damage_is_repaired), cmocka_unit_test(repairs_can_be_switched_off),
        cmocka_unit_test(long_hostile_texts_take_linear_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
