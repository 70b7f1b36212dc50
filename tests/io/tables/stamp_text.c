/* Texts of stamps: the English line, translations, and what is passed over or refused. */
#include "io/tables/stamp_text.h"

#include "tests/io/scratch.h"

static pnb_status parse(pnb__stamp_text *out, char *text, pnb_error *err)
{
    return pnb__stamp_text_parse(out, text, strlen(text), "frog.txt", err);
}

static void lines_are_languages(void **state)
{
    char text[] =
        "\xEF\xBB\xBF  A frog. \r\nde.utf8= Ein Frosch.\r\n\nca@valencia.utf8=Una granota."
        "\nde.utf8=zwei\nfr.utf8=\nnonsense\n?.utf8=x\nga.utf8=Fr\xFFog\n"
        "  pt_BR.utf8=Um sapo=x.";
    pnb__stamp_text t;
    (void)state;
    assert_int_equal(parse(&t, text, NULL), PNB_OK);
    assert_int_equal(t.n, 4);
    assert_string_equal(t.lines[0].language, "en");
    assert_string_equal(t.lines[0].text, "A frog.");
    assert_string_equal(pnb__stamp_text_in(&t, "en"), "A frog.");
    assert_string_equal(pnb__stamp_text_in(&t, "de"), "Ein Frosch.");
    assert_string_equal(pnb__stamp_text_in(&t, "ca@valencia"), "Una granota.");
    assert_string_equal(pnb__stamp_text_in(&t, "pt_BR"), "Um sapo=x.");
    assert_null(pnb__stamp_text_in(&t, "fr"));
    pnb__stamp_text_free(&t);
}

static void a_sentence_in_english_is_wanted(void **state)
{
    static const char *const wrong[] = {"", "\nA frog.", "de.utf8=Ein Frosch.", "A fr\xFFog."};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        pnb__stamp_text t;
        pnb_error err = PNB_ERROR_INIT;
        char *text = pnb__strdup(wrong[i]);
        assert_int_equal(parse(&t, text, &err), PNB_FORMAT);
        assert_non_null(strstr(err.text, "frog.txt"));
        assert_null(t.lines);
        pnb__free(text);
    }
    pnb__stamp_text t;
    char nul[] = "A frog.\nde.utf8=a\0b\n";
    assert_int_equal(pnb__stamp_text_parse(&t, nul, sizeof nul - 1, "x", NULL), PNB_FORMAT);
    assert_null(t.lines);
}

/* en and one language fewer than there may be, then one more. */
static void languages_are_limited(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        pnb__buf text = {0};
        pnb__stamp_text t;
        pnb_error err = PNB_ERROR_INIT;
        pnb__buf_puts(&text, "A frog.\n");
        for (int i = 1; i < PNB__MAX_STAMP_LANGUAGES + more; i++)
            pnb__buf_printf(&text, "x%d.utf8=y%d\nx1.utf8=again\n", i, i);
        assert_int_equal(parse(&t, text.data, &err), more ? PNB_LIMIT : PNB_OK);
        assert_int_equal(t.n, more ? 0 : PNB__MAX_STAMP_LANGUAGES);
        if (more)
            assert_non_null(strstr(err.text, "more than 256 languages"));
        pnb__stamp_text_free(&t);
        pnb__buf_reset(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_languages),
                                       cmocka_unit_test(a_sentence_in_english_is_wanted),
                                       cmocka_unit_test(languages_are_limited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
