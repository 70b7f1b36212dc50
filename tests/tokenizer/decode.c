/* From ids to text: pieces joined by spaces, bytes behind their letters, U+2581 for spaces, word
 * ends; what is left out. */
#include "tests/tokenizer/support.h"

static void expect_text(const pnb_tokenizer *tok, const int32_t *ids, size_t n, const char *want)
{
    char *text;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_tokenizer_decode(tok, ids, n, &text, &err), &err);
    assert_string_equal(text, want);
    pnb_text_free(text);
}

static void spiece_decodes_as_the_library(void **state)
{
    (void)state;
    static const char *const names[] = {"sp_unigram400", "sp_unigram_identity",
                                        "sp_bpe_bytefallback"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[512];
        json_t *cleaned, *decoded;
        pnb_error err = PNB_ERROR_INIT;
        snprintf(path, sizeof path, GOLDEN "%s/tokenizer.model", names[i]);
        pnb_tokenizer *tok = open_one(path);
        snprintf(path, sizeof path, GOLDEN "%s/cleaned.json", names[i]);
        assert_ok(pnb__json_load_file(&cleaned, path, 0, &err), &err);
        snprintf(path, sizeof path, GOLDEN "%s/decoded.json", names[i]);
        assert_ok(pnb__json_load_file(&decoded, path, 0, &err), &err);
        assert_true(json_array_size(decoded) > 100);
        for (size_t k = 0; k < json_array_size(decoded); k++) {
            const json_t *text = json_array_get(cleaned, k);
            int32_t *ids;
            size_t n;
            char *back;
            assert_int_equal(pnb_tokenizer_encode_all(tok, json_string_value(text),
                                                      json_string_length(text), true, &ids, &n,
                                                      NULL),
                             PNB_OK);
            assert_int_equal(pnb_tokenizer_decode(tok, ids, n, &back, NULL), PNB_OK);
            assert_string_equal(back, json_string_value(json_array_get(decoded, k)));
            pnb_tokenizer_ids_free(ids);
            pnb_text_free(back);
        }
        json_decref(cleaned);
        json_decref(decoded);
        pnb_tokenizer_free(tok);
    }
}

/* Any bytes come back from byte-level BPE, but for what is not UTF-8. */
static void bytes_survive_bpe(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_BYTE_BPE, 300, 2, PNB_CLEAN_NONE);
    assert_int_equal(pnb_tokenizer_unk_id(tok), -1);
    static const char *const texts[][2] = {
        {"a small red star", "a small red star"},
        {"it's  two   spaces\t\n and tabs ", "it's  two   spaces\t\n and tabs "},
        {"\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 x",
         "\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 x"},
        {"bad \xFF\xC3", "bad \xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\x01\x7F \"quoted\\\"", "\x01\x7F \"quoted\\\""},
    };
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        int32_t *ids;
        size_t n;
        char *back;
        assert_int_equal(
            pnb_tokenizer_encode_all(tok, texts[i][0], strlen(texts[i][0]), true, &ids, &n, NULL),
            PNB_OK);
        assert_int_equal(ids[n - 1], 1);
        assert_int_equal(pnb_tokenizer_decode(tok, ids, n, &back, NULL), PNB_OK);
        assert_string_equal(back, texts[i][1]);
        pnb_tokenizer_ids_free(ids);
        pnb_text_free(back);
    }
    pnb_tokenizer_free(tok);
}

static void specials_are_left_out(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 7, 1, PNB_CLEAN_CANONICALIZE);
    const int32_t row[] = {4, 3, 2, 1, 0, 99};
    char *text = NULL;
    pnb_error err = PNB_ERROR_INIT;
    expect_text(tok, row, 5, "a [UNK]");
    expect_text(tok, row, 0, "");
    assert_failed(pnb_tokenizer_decode(tok, row, 6, &text, &err), &err, PNB_ARG,
                  "id 99 at 5: the vocabulary has 0..6");
    assert_null(text);
    pnb_tokenizer_free(tok);
}

/* CLIP as open_clip pads it: the padding is a letter, so the end token ends the text. */
static void text_ends_where_padding_is_text(void **state)
{
    (void)state;
    pnb_tokenizer *tok =
        parse_one("{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"padding\":{\"pad_id\":0},"
                  "\"model\":{\"merges\":[],"
                  "\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"!\":0,\"a\":1,\"b</"
                  "w>\":2,\"<|endoftext|>\":3}}}");
    expect_text(tok, (const int32_t[]){1, 2, 1, 2, 0, 3, 0, 0}, 8, "ab ab !");
    expect_text(tok, (const int32_t[]){1, 2, 1, 2}, 4, "ab ab");
    expect_text(tok, (const int32_t[]){3, 1}, 2, "");
    pnb_tokenizer_free(tok);
}

/* Bytes that are no UTF-8 together are U+FFFD; letters of a byte level stand for their bytes. */
static void bytes_are_put_together(void **state)
{
    (void)state;
    pnb_tokenizer *tok = parse_one("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<"
                                   "unk>\",0],[\"<0xC3>\",-1],[\"<0xA9>\","
                                   "-1],[\"\xE2\x96\x81"
                                   "caf\",-1],[\"<0xC3\",-1]]}}");
    expect_text(tok, (const int32_t[]){3, 1, 2}, 3, "caf\xC3\xA9");
    expect_text(tok, (const int32_t[]){3, 1, 3}, 3, "caf\xEF\xBF\xBD caf");
    expect_text(tok, (const int32_t[]){4}, 1, "<0xC3");
    pnb_tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spiece_decodes_as_the_library),
        cmocka_unit_test(bytes_survive_bpe),
        cmocka_unit_test(specials_are_left_out),
        cmocka_unit_test(text_ends_where_padding_is_text),
        cmocka_unit_test(bytes_are_put_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
