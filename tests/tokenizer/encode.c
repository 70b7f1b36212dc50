/* From a caption to a row of ids: cut and padded, added tokens cut out, texts of any bytes and any
 * length. */
#include "tests/tokenizer/support.h"

static void expect_row(const pnb_tokenizer *tok, const char *text, int length, const int32_t *want,
                       pnb_token_count want_count)
{
    int32_t ids[64];
    pnb_token_count count;
    assert_int_equal(pnb_tokenizer_encode(tok, text, strlen(text), length, ids, &count, NULL),
                     PNB_OK);
    for (int i = 0; i < length; i++)
        if (ids[i] != want[i])
            fail_msg("\"%s\": id %d is %d, want %d", text, i, ids[i], want[i]);
    assert_int_equal(count.n_tokens, want_count.n_tokens);
    assert_int_equal(count.n_total, want_count.n_total);
    assert_int_equal(count.truncated, want_count.truncated);
    assert_int_equal(count.is_unknown, want_count.is_unknown);
}

static void rows_are_cut_and_padded(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 7, 1, PNB_CLEAN_CANONICALIZE);
    expect_row(tok, "A red, AND a", 8, (const int32_t[]){4, 6, 5, 4, 1, 0, 0, 0},
               (pnb_token_count){5, 5, false, false});
    expect_row(tok, "a red zebra", 8, (const int32_t[]){4, 6, 3, 1, 0, 0, 0, 0},
               (pnb_token_count){4, 4, false, false});
    expect_row(tok, "a a a a a", 4, (const int32_t[]){4, 4, 4, 1},
               (pnb_token_count){4, 6, true, false});
    expect_row(tok, "", 3, (const int32_t[]){1, 0, 0}, (pnb_token_count){1, 1, false, true});
    expect_row(tok, "zebra! yak", 4, (const int32_t[]){3, 3, 1, 0},
               (pnb_token_count){3, 3, false, true});
    expect_row(tok, "a", 1, (const int32_t[]){1}, (pnb_token_count){1, 2, true, false});
    expect_row(tok, "a [MASK] red", 5, (const int32_t[]){4, 2, 6, 1, 0},
               (pnb_token_count){4, 4, false, false});
    int32_t id;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_tokenizer_encode(tok, "a", 1, 0, &id, NULL, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "context length 0"));
    pnb_tokenizer_free(tok);
}

/* Token 1 swallows the space around it, 2 is a word of its own, 3 is longer than 4. */
static const char ADDED[] =
    "{\"added_tokens\":[{\"id\":1,\"content\":\"<m>\",\"lstrip\":true,\"rstrip\":true,\"special\":"
    "true},"
    "{\"id\":2,\"content\":\"cat\",\"single_word\":true,\"normalized\":false},"
    "{\"id\":3,\"content\":\"==>\",\"normalized\":false},{\"id\":4,\"content\":\"==\","
    "\"normalized\":"
    "false},{\"id\":5,\"content\":\"DOG\",\"normalized\":true}],\"normalizer\":{\"type\":"
    "\"Lowercase\"},"
    "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\" \":6,\"a\":7,"
    "\"\xC3\xA0\":8,\"a \":9,\"cats\":10,\"voil\xC3\xA0\":11,\"x \xC2\xA0\":12}}}";

static void added_tokens_are_cut_out(void **state)
{
    (void)state;
    pnb_tokenizer *tok = parse_one(ADDED);
    expect_ids(tok, "a<m>a", IDS(7, 1, 7));
    expect_ids(tok, "a \t<m> \xE3\x80\x80 a", IDS(7, 1, 7)); /* U+3000 is a space as well */
    expect_ids(tok, "a \xC2\xA0<m>a", IDS(7, 1, 7));         /* and U+00A0, in front too */
    expect_ids(tok, "voil\xC3\xA0<m>", IDS(11, 1));          /* its last byte, A0, is none */
    expect_ids(tok, "<m><m> ", IDS(1, 1));
    expect_ids(tok, "cats cat", IDS(0, 2)); /* "cats " is no word of the vocabulary */
    expect_ids(tok, "cats", IDS(10));
    expect_ids(tok, "cat", IDS(2));
    expect_ids(tok, "cat\xC3\xA0", IDS(0)); /* a letter behind it */
    expect_ids(tok,
               "\xC3\xA0"
               "cat",
               IDS(0));
    expect_ids(tok, "a==>a==a", IDS(7, 3, 7, 4, 7));
    expect_ids(tok, "CAT", IDS(0));     /* looked for before the normaliser */
    expect_ids(tok, "aDoG", IDS(7, 5)); /* and behind it */
    expect_ids(tok, "", NULL, 0);
    pnb_tokenizer_free(tok);
}

/* Special tokens of the template when they are asked for, and never NULL. */
static void all_ids(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 7, 1, PNB_CLEAN_CANONICALIZE);
    for (int add = 0; add < 2; add++) {
        int32_t *ids = NULL;
        size_t n = 99;
        assert_int_equal(pnb_tokenizer_encode_all(tok, "", 0, add, &ids, &n, NULL), PNB_OK);
        assert_non_null(ids);
        assert_int_equal(n, add);
        pnb_tokenizer_ids_free(ids);
    }
    pnb_tokenizer_free(tok);
}

static pnb_tokenizer *trained(pnb_tokenizer_kind kind)
{
    static const char *const texts[] = {"a red star", "a blue star and a red ring"};
    pnb_tokenizer_opts opts = {kind, 300, 1, PNB_CLEAN_LOWER};
    pnb_tokenizer *tok;
    assert_int_equal(pnb_tokenizer_train(&tok, texts, 2, &opts, NULL), PNB_OK);
    return tok;
}

static void any_bytes_give_valid_ids(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 23, 0);
    for (int kind = PNB_TOKENIZER_WORD; kind <= PNB_TOKENIZER_BYTE_BPE; kind++) {
        pnb_tokenizer *tok = trained((pnb_tokenizer_kind)kind);
        for (int round = 0; round < 400; round++) {
            char text[64];
            size_t n = (size_t)pnb__rng_below(&rng, sizeof text);
            for (size_t i = 0; i < n; i++)
                text[i] = (char)(round % 2 ? pnb__rng_u32(&rng) : pnb__rng_u32(&rng) & 0x7F);
            int32_t ids[32];
            pnb_token_count count;
            assert_int_equal(pnb_tokenizer_encode(tok, text, n, 32, ids, &count, NULL), PNB_OK);
            for (int i = 0; i < 32; i++)
                assert_true(ids[i] >= 0 && ids[i] < pnb_tokenizer_vocab_size(tok));
            assert_int_equal(ids[count.n_tokens - 1], pnb_tokenizer_eos_id(tok));
        }
        pnb_tokenizer_free(tok);
    }
}

static void long_texts_are_refused(void **state)
{
    (void)state;
    static const char json[] = "{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"xy\"},"
                               "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":"
                               "{\"u\":0}}}";
    pnb_tokenizer *tok;
    int32_t ids[4];
    char *text = malloc(PNB_TOKENIZER_MAX_BYTES + 1);
    memset(text, 'a', PNB_TOKENIZER_MAX_BYTES + 1);
    assert_int_equal(pnb_tokenizer_parse(&tok, json, strlen(json), NULL), PNB_OK);
    assert_int_equal(
        pnb_tokenizer_encode(tok, text, PNB_TOKENIZER_MAX_BYTES + 1, 4, ids, NULL, NULL),
        PNB_LIMIT);
    assert_int_equal(
        pnb_tokenizer_encode(tok, text, PNB_TOKENIZER_MAX_BYTES - 1, 4, ids, NULL, NULL),
        PNB_LIMIT);
    assert_int_equal(
        pnb_tokenizer_encode(tok, text, PNB_TOKENIZER_MAX_BYTES - 2, 4, ids, NULL, NULL), PNB_OK);
    pnb_tokenizer_free(tok);
    free(text);
}

/* A megabyte without a space must not take quadratic time. */
static void one_long_word_is_quick(void **state)
{
    (void)state;
    size_t n = 1 << 20;
    char *text = malloc(n);
    int32_t ids[8];
    pnb_token_count count;
    memset(text, 'a', n);
    for (int kind = PNB_TOKENIZER_WORD; kind <= PNB_TOKENIZER_BYTE_BPE; kind++) {
        pnb_tokenizer *tok = trained((pnb_tokenizer_kind)kind);
        double begin = pnb__now_s();
        assert_int_equal(pnb_tokenizer_encode(tok, text, n, 8, ids, &count, NULL), PNB_OK);
        assert_true(count.truncated == (kind == PNB_TOKENIZER_BYTE_BPE));
        assert_true(pnb__now_s() - begin < 20); /* seconds, under sanitizers */
        pnb_tokenizer_free(tok);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_cut_and_padded),
        cmocka_unit_test(added_tokens_are_cut_out),
        cmocka_unit_test(all_ids),
        cmocka_unit_test(any_bytes_give_valid_ids),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(one_long_word_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
