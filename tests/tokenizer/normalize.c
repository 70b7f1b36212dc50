/* The steps of a normalizer: lower case, Unicode forms, strip, replace, prepend; which regular
 * expressions are understood; texts that grow. */
#include "tests/tokenizer/support.h"

static void normalizers_work(void **state)
{
    (void)state;
    expect_words(REPLACE("{\"Regex\":\"\\\\A +\"}", ""), "null", "  a  b  ", "|a  b  ");
    expect_words(REPLACE("{\"Regex\":\" +\\\\z\"}", ""), "null", "  a  b  ", "|  a  b");
    expect_words("{\"type\":\"NFC\"}", "null",
                 "e\xCC\x81 q\xCC\x81\xCC\xA3 \xE1\x84\x80\xE1\x85\xA1",
                 "|\xC3\xA9 q\xCC\xA3\xCC\x81 \xEA\xB0\x80");
    expect_words("null", "null", " A b", "| A b");
    expect_words("{\"type\":\"Lowercase\"}", "null", "\xC3\x84 \xCE\xA3", "|\xC3\xA4 \xCF\x83");
    expect_words("{\"type\":\"NFC\"}", "null", "e\xCC\x81", "|\xC3\xA9");
    expect_words("{\"type\":\"NFD\"}", "null", "\xC3\xA9", "|e\xCC\x81");
    expect_words("{\"type\":\"NFKC\"}", "null", "\xEF\xAC\x81 \xEF\xBC\xA1", "|fi A");
    expect_words("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":"
                 "\"StripAccents\"}]}",
                 "null", "caf\xC3\xA9", "|cafe");
    expect_words("{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", "null",
                 " a \xE3\x80\x80", "| a");
    expect_words("{\"type\":\"Strip\"}", "null", "\xE3\x80\x80\ta b ", "|a b");
    expect_words("{\"type\":\"Prepend\",\"prepend\":\"x\"}", "null", "a", "|xa");
    expect_words(REPLACE("{\"Regex\":\"\\\\s+\"}", " "), "null", "a\t\xC2\xA0 b", "|a b");
    expect_words(REPLACE("{\"Regex\":\" {2,}\"}", "_"), "null", "a b  c   d", "|a b_c_d");
    expect_words(REPLACE("{\"Regex\":\"[a-c\\\\]]\"}", ""), "null", "xaby]z", "|xyz");
    expect_words(REPLACE("{\"String\":\"ab\"}", "c"), "null", "aabb", "|acb");
}

/* Every way of writing one run of characters; anything else is refused by its text. */
static void expressions(void **state)
{
    (void)state;
    static const struct {
        const char *regex;
        size_t least, most;
        const char *in, *out; /* characters that it holds and that it does not */
    } known[] = {
        {"a", 1, 1, "a", "bA"},
        {"\\.", 1, 1, ".", "a\\"},
        {"[a-c]+", 1, SIZE_MAX, "abc", "d-"},
        {"[a-]", 1, 1, "a-", "b"},
        {"[\\]x]", 1, 1, "]x", "\\"},
        {"[!-/:-@\\[-`{-~]", 1, 1, "!/:@[\\^_`{~", "a0 "},
        {"\\s{3,}", 3, SIZE_MAX, " \t\n\v", "s"},
        {"[\\sx]", 1, 1, " x", "s"},
    };
    static const char *const unknown[] = {"",        "ab",    "(a)",  "a*",     "a?",    "a|b",
                                          ".",       "[^a]",  "[",    "[a",     "[]",    "[b-a]",
                                          "\\d",     "[\\w]", "a{2}", "a{0,}",  "a{,3}", "\xC3\xA9",
                                          "[a-\\s]", "\\",    "[[a]", "[a&&b]", "a{2,3}"};
    for (size_t i = 0; i < PNB_COUNT(known); i++) {
        pnb__pattern p;
        pnb_error err = PNB_ERROR_INIT;
        assert_ok(pnb__pattern_parse(&p, known[i].regex, &err), &err);
        assert_true(p.min_run == known[i].least && p.max_run == known[i].most && p.literal == NULL);
        for (const char *c = known[i].in; *c != '\0'; c++)
            assert_true(p.ascii[*c >> 3] >> (*c & 7) & 1);
        for (const char *c = known[i].out; *c != '\0'; c++)
            assert_false(p.ascii[*c >> 3] >> (*c & 7) & 1);
        assert_int_equal(p.unicode_space, strstr(known[i].regex, "\\s") != NULL);
    }
    for (size_t i = 0; i < PNB_COUNT(unknown); i++) {
        pnb__pattern p;
        pnb_error err = PNB_ERROR_INIT;
        if (pnb__pattern_parse(&p, unknown[i], &err) != PNB_UNSUPPORTED ||
            strstr(err.text, "regular expression") == NULL)
            fail_msg("\"%s\" is taken for a pattern", unknown[i]);
    }
}

/* Marks of one place go by their class, equals as they stood, however many there are. */
static void marks_are_ordered(void **state)
{
    (void)state;
    pnb__norm_step nfd = {.kind = PNB__NORM_FORM};
    /* below (class 220) before above (230); two of class 230 keep their order */
    static const char text[] = "a\xCC\x81\xCC\x80\xCC\xA3z\xCC\xB8\xCC\xA7";
    static const char want[] = "a\xCC\xA3\xCC\x81\xCC\x80z\xCC\xB8\xCC\xA7";
    pnb__buf out = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__normalize(&nfd, 1, text, sizeof text - 1, &out, &err), &err);
    assert_string_equal(out.data, want);
    assert_ok(pnb__normalize(&nfd, 0, "as it is", 5, &out, &err), &err);
    assert_string_equal(out.data, "as it");
    pnb__buf_reset(&out);
}

/* Each step alone is harmless: 5 letters become 5 * 500^3 in a file of 2 KB. */
static void growing_replacements_are_stopped(void **state)
{
    (void)state;
    static const char *const kinds[] = {"{\"String\":\"%c\"}", "{\"Regex\":\"%c\"}"};
    for (size_t k = 0; k < PNB_COUNT(kinds); k++) {
        pnb__buf b = {0};
        pnb_tokenizer *tok;
        pnb_error err = PNB_ERROR_INIT;
        int32_t ids[4], *all;
        size_t n;
        pnb__buf_puts(&b, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        for (int i = 0; i < 3; i++) {
            pnb__buf_puts(&b, i > 0 ? "," : "");
            pnb__buf_puts(&b, "{\"type\":\"Replace\",\"pattern\":");
            pnb__buf_printf(&b, kinds[k], 'a' + i);
            pnb__buf_puts(&b, ",\"content\":\"");
            for (int j = 0; j < 500; j++)
                pnb__buf_putc(&b, (char)('b' + i));
            pnb__buf_puts(&b, "\"}");
        }
        pnb__buf_puts(&b, "]},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":"
                          "{\"u\":0}}}");
        assert_int_equal(pnb_tokenizer_parse(&tok, b.data, b.size, NULL), PNB_OK);
        assert_int_equal(pnb_tokenizer_encode(tok, "aaaaa", 5, 4, ids, NULL, &err), PNB_LIMIT);
        assert_non_null(strstr(err.text, "step 2 of the normalizer"));
        assert_int_equal(pnb_tokenizer_encode_all(tok, "aaaaa", 5, true, &all, &n, NULL),
                         PNB_LIMIT);
        assert_int_equal(pnb_tokenizer_encode(tok, "ccc", 3, 4, ids, NULL, NULL), PNB_OK);
        pnb_tokenizer_free(tok);
        pnb__buf_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalizers_work),
        cmocka_unit_test(expressions),
        cmocka_unit_test(marks_are_ordered),
        cmocka_unit_test(growing_replacements_are_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
