/* Growing buffer, prefix tests, UTF-8 with every kind of invalid sequence, names of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

static void buffer_grows(void **state)
{
    (void)state;
    pnb__buf b = {0};
    for (int i = 0; i < 1000; i++)
        pnb__buf_printf(&b, "%d,", i % 10);
    pnb__buf_puts(&b, "end");
    pnb__buf_putc(&b, '!');
    pnb__buf_append(&b, "\0x", 2);
    assert_false(b.failed);
    assert_int_equal(b.size, 2000 + 3 + 1 + 2);
    assert_memory_equal(b.data, "0,1,2,3,", 8);
    assert_memory_equal(b.data + 2000, "end!\0x", 7); /* with the terminator */
    pnb__buf_reset(&b);
    assert_null(b.data);
    pnb__buf_puts(&b, "again");
    assert_string_equal(b.data, "again");
    pnb__buf_reset(&b);
}

static void buffer_refuses_overflow(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__buf_puts(&b, "kept");
    pnb__buf_append(&b, "x", SIZE_MAX - 2);
    assert_true(b.failed);
    pnb__buf_puts(&b, "ignored");
    assert_string_equal(b.data, "kept");
    pnb__buf_reset(&b);
    assert_false(b.failed);
}

#ifdef PNB_FAULTS
static void buffer_is_sticky(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__alloc_fail_after(0);
    pnb__buf_puts(&b, "lost");
    pnb__buf_printf(&b, "%s", "also lost");
    assert_true(b.failed);
    assert_int_equal(b.size, 0);
    pnb__buf_reset(&b);
}
#endif

static void prefixes_and_suffixes(void **state)
{
    (void)state;
    assert_true(pnb__starts_with("data.tar", "data"));
    assert_true(pnb__starts_with("data", ""));
    assert_false(pnb__starts_with("dat", "data"));
    assert_true(pnb__ends_with("data.tar", ".tar"));
    assert_true(pnb__ends_with("x", ""));
    assert_false(pnb__ends_with("tar", ".tar"));
}

static void utf8_round_trip(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c += c < 0x900 ? 1 : 251) {
        if (c >= 0xD800 && c <= 0xDFFF)
            continue;
        char bytes[4];
        uint32_t back = 0;
        size_t n = pnb__utf8_encode(c, bytes);
        assert_int_equal(pnb__utf8_decode(bytes, n, &back), n);
        assert_int_equal(back, c);
        assert_int_equal(pnb__utf8_decode(bytes, n - 1, &back), 0);
    }
}

static void utf8_known_sequences(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        uint32_t code_point;
    } cases[] = {{"A", 1, 'A'},
                 {"\xC2\x80", 2, 0x80},
                 {"\xC3\xA9", 2, 0xE9},
                 {"\xE0\xA0\x80", 3, 0x800},
                 {"\xE2\x82\xAC", 3, 0x20AC},
                 {"\xED\x9F\xBF", 3, 0xD7FF},
                 {"\xEE\x80\x80", 3, 0xE000},
                 {"\xF0\x90\x80\x80", 4, 0x10000},
                 {"\xF0\x9F\x98\x80", 4, 0x1F600},
                 {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        uint32_t c = 0;
        char bytes[4];
        assert_int_equal(pnb__utf8_decode(cases[i].bytes, cases[i].n, &c), cases[i].n);
        assert_int_equal(c, cases[i].code_point);
        assert_int_equal(pnb__utf8_encode(c, bytes), cases[i].n);
        assert_memory_equal(bytes, cases[i].bytes, cases[i].n);
    }
}

static void utf8_invalid_sequences(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "\x80",             /* continuation first */
        "\xBF",             /* the last of them */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong 2 */
        "\xE0\x80\xAF",     /* overlong 3 */
        "\xE0\x9F\xBF",     /* overlong 3, largest */
        "\xF0\x80\x80\xAF", /* overlong 4 */
        "\xF0\x8F\xBF\xBF", /* overlong 4, largest */
        "\xED\xA0\x80",     /* surrogate, first */
        "\xED\xBF\xBF",     /* surrogate, last */
        "\xF4\x90\x80\x80", /* above U+10FFFF */
        "\xF5\x80\x80\x80", /* lead bytes that cannot be */
        "\xF8\x88\x80\x80\x80",
        "\xFE",
        "\xFF",
        "\xC3",         /* cut */
        "\xE2\x82",     /* cut */
        "\xF0\x9F\x98", /* cut */
        "\xC3(",        /* wrong continuation */
        "\xE2(\xA1",    /* wrong continuation */
        "\xE2\x82(",    /* wrong continuation */
        "\xF0\x9F\x98(" /* wrong continuation */
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        uint32_t c = 77;
        assert_int_equal(pnb__utf8_decode(cases[i], strlen(cases[i]), &c), 0);
        assert_int_equal(c, 77);
        assert_false(pnb__utf8_valid(cases[i], strlen(cases[i])));
    }
    uint32_t c = 0;
    assert_int_equal(pnb__utf8_decode("", 0, &c), 0);
}

static void utf8_whole_texts(void **state)
{
    (void)state;
    const char *text = "na\xC3\xAFve \xF0\x9F\x98\x80";
    assert_true(pnb__utf8_valid(text, strlen(text)));
    assert_true(pnb__utf8_valid("", 0));
    assert_true(pnb__utf8_valid("a\0b", 3));
    assert_false(pnb__utf8_valid(text, strlen(text) - 1));
    char replaced[4];
    assert_int_equal(pnb__utf8_encode(0xD800, replaced), 3);
    assert_memory_equal(replaced, "\xEF\xBF\xBD", 3);
    assert_int_equal(pnb__utf8_encode(0x110000, replaced), 3);
    assert_memory_equal(replaced, "\xEF\xBF\xBD", 3);
}

static void base64_there_and_back(void **state)
{
    unsigned char bytes[3000];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t n = 0; n < sizeof bytes; n += n < 20 ? 1 : 331) {
        pnb__buf text = {0}, back = {0};
        size_t bad = 0;
        pnb__base64(&text, bytes, n);
        for (int bare = 0; bare < 2; bare++) { /* with padding and without */
            while (bare && text.size > 0 && text.data[text.size - 1] == '=')
                text.size--;
            assert_true(pnb__base64_decode(&back, text.data, text.size, &bad));
            assert_int_equal(back.size, n);
            assert_true(n == 0 || memcmp(back.data, bytes, n) == 0);
            pnb__buf_reset(&back);
        }
        pnb__buf_reset(&text);
    }
    static const struct {
        const char *text;
        size_t bad;
    } wrong[] = {{"AA A", 2}, {"AAAA-AAA", 4}, {"AAA_", 3}, {"A", 0}, {"AAAAA", 4}, {"A===", 1}};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        pnb__buf out = {0};
        size_t bad = 99;
        assert_false(pnb__base64_decode(&out, wrong[i].text, strlen(wrong[i].text), &bad));
        assert_int_equal(bad, wrong[i].bad);
        pnb__buf_reset(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_grows),          cmocka_unit_test(buffer_refuses_overflow),
#ifdef PNB_FAULTS
        cmocka_unit_test(buffer_is_sticky),
#endif
        cmocka_unit_test(prefixes_and_suffixes), cmocka_unit_test(utf8_round_trip),
        cmocka_unit_test(utf8_known_sequences),  cmocka_unit_test(utf8_invalid_sequences),
        cmocka_unit_test(utf8_whole_texts),      cmocka_unit_test(base64_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
