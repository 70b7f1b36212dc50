/* Cleaning by modes, against open_clip's and ProLIP's (tests/golden/tokenizers) and Python's str.
 */
#include "tests/tokenizer/clean/support.h"

static void cleaning_agrees(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        pnb_clean clean;
    } cases[] = {{"clip_bpe", PNB_CLEAN_LOWER}, {"sp_unigram_identity", PNB_CLEAN_CANONICALIZE}};
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        char path[512];
        int n_compared = 0;
        snprintf(path, sizeof path, GOLDEN "%s/strings.json", cases[k].name);
        json_t *strings = load_json(path);
        snprintf(path, sizeof path, GOLDEN "%s/cleaned.json", cases[k].name);
        json_t *cleaned = load_json(path);
        for (size_t i = 0; i < json_array_size(strings); i++) {
            const json_t *string = json_array_get(strings, i);
            const char *want = json_string_value(json_array_get(cleaned, i));
            /* as the reference ran: without ftfy, and with \s+ instead of split() */
            const pnb__cleaning how = {.mode = cases[k].clean, .regex_space = true};
            pnb__buf got;
            assert_int_equal(
                pnb__clean(&how, json_string_value(string), json_string_length(string), &got, NULL),
                PNB_OK);
            if (strcmp(got.data, want) != 0)
                fail_msg("%s %zu: \"%s\", want \"%s\"", cases[k].name, i, got.data, want);
            pnb__buf_reset(&got);
            n_compared++;
        }
        assert_true(n_compared > 100);
        json_decref(strings);
        json_decref(cleaned);
    }
}

static void clean_modes_differ_as_told(void **state)
{
    (void)state;
    static const struct {
        pnb_clean clean;
        const char *want;
    } cases[] = {
        {PNB_CLEAN_NONE, "  A_b,\tC\xC3\x89 \xCE\x9F\xCE\xA3 \xFF "},
        {PNB_CLEAN_WHITESPACE, "A_b, C\xC3\x89 \xCE\x9F\xCE\xA3 \xEF\xBF\xBD"},
        {PNB_CLEAN_LOWER, "a_b, c\xC3\xA9 \xCE\xBF\xCF\x82 \xEF\xBF\xBD"},
        {PNB_CLEAN_CANONICALIZE, "a b c\xC3\xA9 \xCE\xBF\xCF\x82 \xEF\xBF\xBD"},
    };
    const char *text = cases[0].want;
    for (size_t i = 1; i < PNB_COUNT(cases); i++) {
        char *got;
        size_t n;
        pnb_clean named;
        assert_int_equal(pnb_clean_text(cases[i].clean, text, strlen(text), &got, &n, NULL),
                         PNB_OK);
        assert_string_equal(got, cases[i].want);
        assert_int_equal(n, strlen(cases[i].want));
        assert_true(pnb_clean_from_name(pnb_clean_name(cases[i].clean), &named));
        assert_int_equal(named, cases[i].clean);
        pnb_text_free(got);
    }
    pnb_clean other;
    assert_false(pnb_clean_from_name("upper", &other));
    assert_null(pnb_clean_name((pnb_clean)7));
    char *got;
    size_t n;
    assert_int_equal(pnb_clean_text((pnb_clean)7, "", 0, &got, &n, NULL), PNB_ARG);
    /* U+0130 becomes two characters; sigma is final only at the end of a word */
    assert_int_equal(pnb_clean_text(PNB_CLEAN_LOWER, "\xC4\xB0 \xCE\xA3 \xCE\x91\xCE\xA3\xCE\x91",
                                    12, &got, &n, NULL),
                     PNB_OK);
    assert_string_equal(got, "i\xCC\x87 \xCF\x83 \xCE\xB1\xCF\x83\xCE\xB1");
    pnb_text_free(got);
}

static void every_mode_but_none_begins_alike(void **state)
{
    (void)state;
    static const clean_case lower[] = {{" A &AMP; B ", "a & b"},
                                       {"\xCE\xA3\xCE\xA3", "\xCF\x83\xCF\x82"}};
    expect_clean(PNB_CLEAN_LOWER, lower, PNB_COUNT(lower));
    static const clean_case canonical[] = {
        {"Jack-o'-lantern_&quot;x\xE2\x80\x99", "jackolantern x"}};
    expect_clean(PNB_CLEAN_CANONICALIZE, canonical, PNB_COUNT(canonical));
    static const clean_case nothing[] = {{"", ""}, {" \t\n ", ""}, {"&#32;", ""}};
    for (int mode = PNB_CLEAN_NONE + 1; mode <= PNB_CLEAN_CANONICALIZE; mode++)
        expect_clean((pnb_clean)mode, nothing, PNB_COUNT(nothing));
    static const clean_case none[] = {{" \xEF\xAC\x81&amp; ", " \xEF\xAC\x81&amp; "}};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cleaning_agrees),
        cmocka_unit_test(clean_modes_differ_as_told),
        cmocka_unit_test(every_mode_but_none_begins_alike),
        cmocka_unit_test(repairs_can_be_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
