/* Repairs. What is wanted was computed with ftfy 6.3; texts on which its wider guesses differ are
 * not among them. */
#include "tests/tokenizer/clean/support.h"

static void damage_is_repaired(void **state)
{
    (void)state;
    static const clean_case cases[] = {
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
}

/* Of the code page's table: 27 characters, five bytes that mean nothing. */
static void upper_half_of_windows_1252(void **state)
{
    (void)state;
    static const struct {
        unsigned char byte;
        uint32_t want;
    } cases[] = {{0x7F, 0x7F},  {0x80, 0x20AC}, {0x81, 0x81},   {0x85, 0x2026}, {0x8D, 0x8D},
                 {0x8F, 0x8F},  {0x90, 0x90},   {0x92, 0x2019}, {0x99, 0x2122}, {0x9D, 0x9D},
                 {0x9F, 0x178}, {0xA0, 0xA0},   {0xFF, 0xFF},   {0x8C, 0x152},  {0x97, 0x2014}};
    size_t n_kept = 0;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        assert_int_equal(pnb__windows_1252(cases[i].byte), cases[i].want);
    for (unsigned b = 0x80; b < 0xA0; b++)
        n_kept += pnb__windows_1252((unsigned char)b) == b;
    assert_int_equal(n_kept, 5);
}

/* Pairs become their character, halves U+FFFD; what only looks like a half keeps its bytes. */
static void surrogates_are_joined(void **state)
{
    (void)state;
    static const clean_case cases[] = {
        {"\xED\xA0\xBD\xED\xB8\x80", "\xF0\x9F\x98\x80"},
        {"\xED\xAF\xBF\xED\xBF\xBF", "\xF4\x8F\xBF\xBF"},         /* U+10FFFF */
        {"\xED\xA0\xBDx", "\xEF\xBF\xBDx"},                       /* a first half alone */
        {"\xED\xB8\x80\xED\xA0\xBD", "\xEF\xBF\xBD\xEF\xBF\xBD"}, /* in the wrong order */
        {"\xED\x95\x9C", "\xED\x95\x9C"},                         /* Hangul */
        {"\xED\xC3\xA9", "\xED\xC3\xA9"},                         /* a lone byte, then e acute */
        {"\xED\xA0\xBD\xED\xC8\x80", "\xEF\xBF\xBD\xED\xC8\x80"},
        {"\xED\xA0", "\xED\xA0"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf b = {0};
        pnb__put_joined_surrogates(&b, cases[i].text, strlen(cases[i].text));
        if (strcmp(b.data, cases[i].want) != 0)
            fail_msg("case %zu", i);
        pnb__buf_reset(&b);
    }
    static const clean_case whole[] = {{"\xED\xC3\xA9 cafe", "\xEF\xBF\xBD\xC3\xA9 cafe"}};
    expect_clean(PNB_CLEAN_WHITESPACE, whole, 1);
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
        cmocka_unit_test(damage_is_repaired),
        cmocka_unit_test(upper_half_of_windows_1252),
        cmocka_unit_test(surrogates_are_joined),
        cmocka_unit_test(long_hostile_texts_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
