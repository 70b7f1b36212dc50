/* Names are bytes, Postgres has UTF-8: what goes in as one comes back as the same. */
#include "tests/io/scratch.h"

#include "store/postgres/postgres.h"

static void round_trip(const char *bytes)
{
    pnb__buf text = {0};
    pnb__pg_escape(&text, bytes);
    assert_false(text.failed);
    if (bytes[0] != '\0') {
        assert_true(pnb__utf8_valid(text.data, text.size));
        pnb__pg_unescape(text.data);
        assert_string_equal(text.data, bytes);
    }
    pnb__buf_reset(&text);
}

static void bytes_come_back(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "a.jpg",
                                        "\xc3\xa4.jpg",
                                        "\xe4.jpg",
                                        "\xff\xfe",
                                        "\xc3",
                                        "a\xf0\x9f\x98",
                                        "\xf0\x9f\x98\x80",
                                        "\xed\xa0\x80",
                                        "\xf4\x8f\xbe\x80",
                                        "\xf4\x8f\xbf\xbf x",
                                        "\xf4\x8f\xbe",
                                        "\xf4\x90\x80\x80",
                                        "\x80\xbf\xc0\xc1"};
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        round_trip(names[i]);
    char one[2] = {0};
    for (int b = 1; b < 256; b++) {
        one[0] = (char)b;
        round_trip(one);
    }
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (int i = 0; i < 2000; i++) { /* of bytes that characters are made of */
        static const unsigned char of[] = {0xf4, 0x8f, 0xbe, 0xbf, 0x80, 0xc3, 0xa4, 'a', 0xe2};
        char name[9] = {0};
        for (int k = 0; k < 8; k++)
            name[k] = (char)of[pnb__rng_below(&rng, sizeof of)];
        round_trip(name);
    }
}

static void arrays_are_quoted(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b\"c\\d", "", "e,{f}", "\xff"};
    pnb__buf text = {0};
    pnb__pg_text_array(&text, names, PNB_COUNT(names));
    assert_string_equal(text.data, "{\"a\",\"b\\\"c\\\\d\",\"\",\"e,{f}\",\"\xf4\x8f\xbf\xbf\"}");
    text.size = 0;
    pnb__pg_text_array(&text, names, 0);
    assert_string_equal(text.data, "{}");
    pnb__buf_reset(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_come_back),
                                       cmocka_unit_test(arrays_are_quoted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
