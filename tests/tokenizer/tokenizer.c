/* A tokenizer as a whole: what it can be asked, masks of text, padding chosen by the caller, and
 * saving. */
#include "tests/tokenizer/support.h"

static void text_is_masked(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 7, 1, PNB_CLEAN_CANONICALIZE);
    const int32_t row[] = {4, 3, 2, 1, 0, 99};
    unsigned char mask[6];
    assert_int_equal(pnb_tokenizer_text_mask(tok, row, 6, mask), 2);
    assert_memory_equal(mask, "\1\1\0\0\0\0", 6);
    assert_true(pnb_tokenizer_is_word_start(tok, 4));
    assert_false(pnb_tokenizer_is_word_start(tok, 2));
    assert_int_equal(pnb_tokenizer_text_mask(tok, row, 0, mask), 0);
    pnb_tokenizer_free(tok);
}

/* By the space in front of a byte level, by U+2581, and every word of a word level. */
static void beginnings_of_words(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_BYTE_BPE, 300, 2, PNB_CLEAN_NONE);
    int32_t a = pnb_tokenizer_find(tok, "\xC4\xA0"
                                        "a");
    assert_true(pnb_tokenizer_is_word_start(tok, a));
    assert_false(pnb_tokenizer_is_word_start(tok, pnb_tokenizer_find(tok, "a")));
    pnb_tokenizer_free(tok);
    tok = parse_one(UNIGRAM("[[\"u\",0],[\"\xE2\x96\x81"
                            "a\",-1],[\"a\",-1],[\"</s>\",-1]]"));
    assert_true(pnb_tokenizer_is_word_start(tok, 1));
    assert_false(pnb_tokenizer_is_word_start(tok, 2));
    assert_false(pnb_tokenizer_is_word_start(tok, 3) || pnb_tokenizer_is_word_start(tok, 4) ||
                 pnb_tokenizer_is_word_start(tok, -1));
    pnb_tokenizer_free(tok);
    tok = parse_one(
        "{\"model\":{\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0},\"merges\":[]}}");
    assert_true(
        pnb_tokenizer_is_word_start(tok, 0)); /* cannot be told by one id: every token counts */
    pnb_tokenizer_free(tok);
}

static void pieces_and_ids(void **state)
{
    (void)state;
    pnb_tokenizer *tok = parse_one(WORD("{\"u\":0,\"a\":4}"));
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 5);
    assert_string_equal(pnb_tokenizer_piece(tok, 4), "a");
    assert_null(pnb_tokenizer_piece(tok, 3));
    assert_null(pnb_tokenizer_piece(tok, 5));
    assert_int_equal(pnb_tokenizer_find(tok, "a"), 4);
    assert_int_equal(pnb_tokenizer_find(tok, "A"), -1);
    assert_int_equal(pnb_tokenizer_clean(tok), PNB_CLEAN_NONE);
    pnb_tokenizer_set_clean(tok, PNB_CLEAN_LOWER);
    expect_ids(tok, " A ", IDS(4));
    pnb_tokenizer_set_clean(tok, (pnb_clean)17); /* unknown: as it was */
    assert_int_equal(pnb_tokenizer_clean(tok), PNB_CLEAN_LOWER);
    pnb_tokenizer_free(tok);
    pnb_tokenizer_free(NULL);
}

static void expect_saved(scratch *s, const pnb_tokenizer *tok, const char *want)
{
    char *text;
    size_t n;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb_tokenizer_save(tok, s->dir, &err), &err);
    assert_ok(pnb__read_file(scratch_path(s, "tokenizer.json"), 1 << 16, &text, &n, &err), &err);
    assert_string_equal(text, want);
    pnb__free(text);
}

/* A file is written back byte for byte; only a padding that somebody else has chosen is put in. */
static void saving_keeps_the_text(void **state)
{
    scratch *s = *state;
    static const char json[] =
        "{ \"model\": {\"unk_token\":\"u\",  \"vocab\":{\"u\":0,\"a\":1}}, \"mine\": 3 }\n";
    pnb_tokenizer *tok = parse_one(json);
    pnb_error err = PNB_ERROR_INIT;
    expect_saved(s, tok, json);
    assert_failed(pnb_tokenizer_set_pad_id(tok, 2, &err), &err, PNB_ARG,
                  "pad id 2: the vocabulary has 0..1");
    expect_saved(s, tok, json);
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_set_pad_id(tok, -1, &err), &err, PNB_ARG, "pad id -1");
    assert_int_equal(pnb_tokenizer_set_pad_id(tok, 1, NULL), PNB_OK);
    const pnb_padding padding = pnb_tokenizer_padding(tok);
    assert_true(padding.id == 1 && !padding.assumed);
    assert_string_equal(padding.source, "set by the caller");
    scratch_clear(s);
    assert_ok(pnb_tokenizer_save(tok, scratch_path(s, "t.json"), &err), &err);
    pnb_tokenizer *again = open_one(s->path);
    assert_int_equal(pnb_tokenizer_pad_id(again), 1);
    assert_string_equal(pnb_tokenizer_padding(again).source, "padding of tokenizer.json");
    assert_non_null(strstr(again->json, "\"pad_token\":\"a\""));
    assert_non_null(strstr(again->json, "\"mine\":3"));
    pnb_tokenizer_free(again);
    pnb_tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_masked),
        cmocka_unit_test(beginnings_of_words),
        cmocka_unit_test(pieces_and_ids),
        cmocka_unit_test(saving_keeps_the_text),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
