/* The normalizer and pre_tokenizer sections: every step by its name and options, what is not known
 * is refused by name. */
#include "tests/tokenizer/support.h"

static const bad_json BAD[] = {
    {WITH("\"normalizer\":{}"), PNB_FORMAT, "type"},
    {WITH("\"normalizer\":{\"type\":\"BertNormalizer\"}"), PNB_UNSUPPORTED, "BertNormalizer"},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":"
          "\"(a|b)*\"}}"),
     PNB_UNSUPPORTED, "(a|b)*"},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"[a"
          "\"}}"),
     PNB_UNSUPPORTED, "[a"},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{}}"), PNB_FORMAT,
     "Regex"},
    {WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!!!!\"}"),
     PNB_FORMAT, "base64"},
    {WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////////////\"}"),
     PNB_FORMAT, "charsmap"},
    {WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x\"},\"behavior\":"
          "\"Isolated\"}"),
     PNB_UNSUPPORTED, "Split"},
    {WITH("\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"), PNB_UNSUPPORTED, "ByteLevel"},
    {WITH("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}"), PNB_UNSUPPORTED,
     "replacement"},
};

static void faults_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(BAD); i++)
        expect_refused(BAD[i].json, BAD[i].want, BAD[i].says);
}

/* A list of 17 steps, made of two Sequences, is one too long. */
static void sixteen_steps_are_the_most(void **state)
{
    (void)state;
    for (int n = 16; n <= 17; n++) {
        pnb__buf b = {0};
        pnb_tokenizer *tok;
        pnb_error err = PNB_ERROR_INIT;
        for (int section = 0; section < 2; section++) {
            pnb__buf_puts(&b, section == 0
                                  ? "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
                                  : "]},\"pre_tokenizer\":{\"type\":\"Sequence\","
                                    "\"pretokenizers\":[");
            for (int i = 0; i < (section == 0 ? 16 : n); i++)
                pnb__buf_printf(&b, "%s{\"type\":\"%s\"}", i > 0 ? "," : "",
                                section == 0 ? "NFC" : "Whitespace");
        }
        pnb__buf_puts(&b, "]},\"model\":{\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}");
        pnb_status status = pnb_tokenizer_parse(&tok, b.data, b.size, &err);
        if (n == 16)
            assert_ok(status, &err);
        else
            assert_failed(status, &err, PNB_LIMIT, "pre_tokenizer: more than 16 steps");
        pnb_tokenizer_free(tok);
        pnb__buf_reset(&b);
    }
}

static void many_steps_are_refused(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb_tokenizer *tok;
    pnb__buf_puts(&b, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 40; i++)
        pnb__buf_puts(&b, i > 0 ? ",{\"type\":\"NFC\"}" : "{\"type\":\"NFC\"}");
    pnb__buf_puts(&b, "]},\"model\":{\"vocab\":{}}}");
    assert_int_equal(pnb_tokenizer_parse(&tok, b.data, b.size, NULL), PNB_LIMIT);
    pnb__buf_reset(&b);
}

/* Gemma: spaces are replaced, then a Split at spaces finds none. */
static void split_at_replaced_spaces(void **state)
{
    (void)state;
    static const char split[] = "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":"
                                "\"MergedWithPrevious\",\"invert\":false}";
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    pnb__buf json = {0};
    expect_words(REPLACE("{\"String\":\" \"}", "\xE2\x96\x81"), split, "a b",
                 "|a\xE2\x96\x81"
                 "b");
    pnb__buf_printf(&json, "{\"pre_tokenizer\":%s,\"model\":{\"vocab\":{},\"merges\":[]}}", split);
    assert_int_equal(pnb_tokenizer_parse(&tok, json.data, json.size, &err), PNB_UNSUPPORTED);
    pnb__buf_reset(&json);
}

/* The first step of each section; what it leaves out has the reference's default. */
static void options_have_defaults(void **state)
{
    (void)state;
    pnb_tokenizer *tok =
        parse_one(WITH("\"normalizer\":{\"type\":\"Strip\"},\"pre_tokenizer\":{\"type\":"
                       "\"Metaspace\"}"));
    assert_true(tok->n_norms == 1 && tok->norms[0].strip_left && tok->norms[0].strip_right);
    assert_true(tok->n_splits == 1 && tok->splits[0].splits &&
                tok->splits[0].prefix == PNB__PREFIX_ALWAYS);
    pnb_tokenizer_free(tok);
    tok = parse_one(BPE("{}", "[]"));
    assert_true(tok->n_norms == 0 && tok->n_splits == 0 && !tok->bpe.is_byte_level);
    pnb_tokenizer_free(tok);
    tok = parse_one("{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"use_regex\":false},\"model\":{"
                    "\"vocab\":{},\"merges\":[]}}");
    assert_true(tok->bpe.is_byte_level && tok->splits[0].kind == PNB__SPLIT_NONE &&
                tok->splits[0].prefix == PNB__PREFIX_ALWAYS);
    pnb_tokenizer_free(tok);
}

static void forms_and_schemes(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        bool compose, compatible;
    } forms[] = {
        {"NFC", true, false}, {"NFD", false, false}, {"NFKC", true, true}, {"NFKD", false, true}};
    static const struct {
        const char *scheme;
        pnb__prefix want;
    } schemes[] = {
        {"always", PNB__PREFIX_ALWAYS}, {"first", PNB__PREFIX_FIRST}, {"never", PNB__PREFIX_NEVER}};
    char json[256];
    for (size_t i = 0; i < PNB_COUNT(forms); i++) {
        snprintf(json, sizeof json, WITH("\"normalizer\":{\"type\":\"%s\"}"), forms[i].type);
        pnb_tokenizer *tok = parse_one(json);
        assert_true(tok->norms[0].kind == PNB__NORM_FORM &&
                    tok->norms[0].compose == forms[i].compose &&
                    tok->norms[0].compatible == forms[i].compatible);
        pnb_tokenizer_free(tok);
    }
    for (size_t i = 0; i < PNB_COUNT(schemes); i++) {
        snprintf(json, sizeof json,
                 WITH("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"%s\"}"),
                 schemes[i].scheme);
        pnb_tokenizer *tok = parse_one(json);
        assert_int_equal(tok->splits[0].prefix, schemes[i].want);
        pnb_tokenizer_free(tok);
    }
    expect_refused(WITH("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"last\"}"),
                   PNB_FORMAT, "prepend_scheme \"last\"");
    expect_refused(WITH("\"pre_tokenizer\":{\"type\":\"Digits\"}"), PNB_UNSUPPORTED,
                   "pre_tokenizer \"Digits\"");
    expect_refused(WITH("\"pre_tokenizer\":{}"), PNB_FORMAT, "pre_tokenizer without a type");
    expect_refused(WITH("\"normalizer\":{\"type\":\"Prepend\"}"), PNB_FORMAT, "prepend is missing");
    expect_refused(WITH("\"normalizer\":{\"type\":\"Replace\"}"), PNB_FORMAT, "content is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),       cmocka_unit_test(sixteen_steps_are_the_most),
        cmocka_unit_test(many_steps_are_refused), cmocka_unit_test(split_at_replaced_spaces),
        cmocka_unit_test(options_have_defaults),  cmocka_unit_test(forms_and_schemes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
