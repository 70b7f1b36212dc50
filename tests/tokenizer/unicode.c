/* Character classes against lists of the Unicode standard, lower case, damaged UTF-8, and the
 * letters of bytes. */
#include "tests/tokenizer/support.h"

/* White_Space of PropList.txt is 25 characters; str.isspace has U+001C to U+001F beside them. */
static void spaces(void **state)
{
    (void)state;
    static const uint32_t all[] = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x20,   0x85,
                                   0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                   0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x2028,
                                   0x2029, 0x202F, 0x205F, 0x3000};
    size_t n = 0, n_python = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        n += pnb__is_space(c);
        n_python += pnb__is_python_space(c);
    }
    assert_int_equal(n, PNB_COUNT(all));
    assert_int_equal(n_python, PNB_COUNT(all) + 4);
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        assert_true(pnb__is_space(all[i]) && pnb__is_python_space(all[i]));
    assert_true(pnb__is_python_space(0x1C) && pnb__is_python_space(0x1F) && !pnb__is_space(0x1C));
}

static void classes(void **state)
{
    (void)state;
    static const struct {
        uint32_t c;
        bool is_letter, is_number, is_word;
    } cases[] = {
        {'a', true, false, true},      {'Z', true, false, true},    {'@', false, false, false},
        {'[', false, false, false},    {'`', false, false, false},  {'{', false, false, false},
        {'0', false, true, true},      {'9', false, true, true},    {'/', false, false, false},
        {':', false, false, false},    {'_', false, false, true},   {' ', false, false, false},
        {0xE9, true, false, true},    /* e acute */
        {0xAA, true, false, true},    /* feminine ordinal: Lo */
        {0xB2, false, true, false},   /* superscript two: No is no \\w */
        {0x2167, false, true, true},  /* Roman eight: Nl */
        {0x663, false, true, true},   /* Arabic three: Nd */
        {0x301, false, false, true},  /* combining acute: a mark */
        {0x203F, false, false, true}, /* undertie: Pc */
        {0x200D, false, false, true}, /* joiner */
        {0x24B6, false, false, true}, /* circled A: So, and alphabetic */
        {0x2014, false, false, false}, {0x4E2D, true, false, true}, {0x1F600, false, false, false},
        {0xFFFD, false, false, false},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        if (pnb__is_letter(cases[i].c) != cases[i].is_letter ||
            pnb__is_number(cases[i].c) != cases[i].is_number ||
            pnb__is_word(cases[i].c) != cases[i].is_word)
            fail_msg("U+%04X", (unsigned)cases[i].c);
}

static void damaged_bytes(void **state)
{
    (void)state;
    uint32_t c = 0;
    assert_true(pnb__next_char("a", 1, &c) == 1 && c == 'a');
    assert_true(pnb__next_char("\xF0\x9F\x98\x80", 4, &c) == 4 && c == 0x1F600);
    assert_true(pnb__next_char("\xF0\x9F\x98\x80", 3, &c) == 1 && c == 0xFFFD); /* cut short */
    assert_true(pnb__next_char("\xC0\x80", 2, &c) == 1 && c == 0xFFFD); /* too long a form */
    assert_true(pnb__next_char("\x80", 1, &c) == 1 && c == 0xFFFD);
    pnb__buf b = {0};
    pnb__put_valid(&b, "a\xC3\xA9\xFF\xC3", 5);
    assert_string_equal(b.data, "a\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
    pnb__put_char(&b, 0x2581);
    assert_true(pnb__ends_with(b.data, "\xE2\x96\x81"));
    pnb__buf_reset(&b);
}

/* Of str.lower: U+0130 is two characters; a capital sigma is final behind a letter and before none,
 * marks and apostrophes not counted. Python 3.11 gives the same. */
static void lower_case(void **state)
{
    (void)state;
    static const struct {
        const char *text, *python, *rust;
    } cases[] = {
        {"Az09[@", "az09[@", "az09[@"},
        {"\xC3\x89\xC4\xB0\xE1\xBA\x9E", "\xC3\xA9i\xCC\x87\xC3\x9F", "\xC3\xA9i\xCC\x87\xC3\x9F"},
        {"\xCE\x91\xCE\xA3", "\xCE\xB1\xCF\x82", "\xCE\xB1\xCF\x83"},
        {"\xCE\xA3", "\xCF\x83", "\xCF\x83"},
        {"\xCE\x91\xCE\xA3\xCE\x91", "\xCE\xB1\xCF\x83\xCE\xB1", "\xCE\xB1\xCF\x83\xCE\xB1"},
        {"\xCE\x91'\xCC\x81\xCE\xA3' 1", "\xCE\xB1'\xCC\x81\xCF\x82' 1",
         "\xCE\xB1'\xCC\x81\xCF\x83' 1"},
        {"\xCE\x91\xCE\xA3'\xCE\x91", "\xCE\xB1\xCF\x83'\xCE\xB1", "\xCE\xB1\xCF\x83'\xCE\xB1"},
        {"1\xCE\xA3", "1\xCF\x83", "1\xCF\x83"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf b = {0};
        pnb__put_lower(&b, cases[i].text, strlen(cases[i].text), true);
        assert_string_equal(b.data, cases[i].python);
        b.size = 0;
        pnb__put_lower(&b, cases[i].text, strlen(cases[i].text), false);
        assert_string_equal(b.data, cases[i].rust);
        pnb__buf_reset(&b);
    }
}

/* Every byte has its own letter and comes back from it. */
static void byte_letters_are_a_bijection(void **state)
{
    (void)state;
    bool seen[0x144] = {false};
    for (int b = 0; b < 256; b++) {
        uint32_t c = pnb__byte_char((unsigned char)b);
        assert_true(c < 0x144 && !seen[c]);
        seen[c] = true;
        assert_int_equal(pnb__char_byte(c), b);
    }
    assert_int_equal(pnb__byte_char(' '), 0x120);
    assert_int_equal(pnb__byte_char('\n'), 0x10A);
    assert_int_equal(pnb__byte_char(0xAD), 0x143);
    assert_int_equal(pnb__char_byte(' '), -1);
    assert_int_equal(pnb__char_byte(0x144), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces),
        cmocka_unit_test(classes),
        cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(lower_case),
        cmocka_unit_test(byte_letters_are_a_bijection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
