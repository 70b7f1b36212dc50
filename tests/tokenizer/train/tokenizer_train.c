/* Training: what the files hold, that the result does not depend on the order of captions, options
 * that are refused. */
#include <unistd.h>

#include "tests/tokenizer/support.h"

static void words_are_ranked_by_count(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 100, 1, PNB_CLEAN_CANONICALIZE);
    static const char *const first[] = {"[PAD]", "</s>", "[MASK]", "[UNK]", "a", "and", "red"};
    for (int i = 0; i < 7; i++)
        assert_string_equal(pnb_tokenizer_piece(tok, i), first[i]);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 0);
    assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
    assert_int_equal(pnb_tokenizer_mask_id(tok), 2);
    assert_int_equal(pnb_tokenizer_unk_id(tok), 3);
    assert_int_equal(pnb_tokenizer_bos_id(tok), -1);
    assert_true(pnb_tokenizer_find(tok, "jackolantern") > 3);
    assert_int_equal(pnb_tokenizer_find(tok, "snake_case"), -1);
    pnb_tokenizer_free(tok);
    tok = train(PNB_TOKENIZER_WORD, 100, 3, PNB_CLEAN_CANONICALIZE);
    assert_int_equal(pnb_tokenizer_find(tok, "ball"), -1);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 7); /* a, and, red are seen three times */
    pnb_tokenizer_free(tok);
    tok = train(PNB_TOKENIZER_WORD, 5, 1, PNB_CLEAN_NONE);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 5);
    assert_string_equal(pnb_tokenizer_piece(tok, 4), "a");
    pnb_tokenizer_free(tok);
}

static void file_text(const pnb_tokenizer *tok, char **text)
{
    char path[] = "/tmp/pnb_tokenizer_XXXXXX", file[64];
    size_t n;
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/tokenizer.json", path);
    assert_int_equal(pnb_tokenizer_save(tok, path, NULL), PNB_OK);
    assert_int_equal(pnb__read_file(file, 1 << 24, text, &n, NULL), PNB_OK);
    pnb_tokenizer *back;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_tokenizer_load(&back, path, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(pnb_tokenizer_vocab_size(back), pnb_tokenizer_vocab_size(tok));
    pnb_tokenizer_free(back);
    unlink(file);
    rmdir(path);
}

static void order_of_texts_does_not_matter(void **state)
{
    (void)state;
    for (int kind = PNB_TOKENIZER_WORD; kind <= PNB_TOKENIZER_BYTE_BPE; kind++) {
        pnb_tokenizer_opts opts = {(pnb_tokenizer_kind)kind, 320, 1, PNB_CLEAN_LOWER};
        const char *turned[N_TEXTS];
        char *a, *b;
        pnb_tokenizer *tok;
        for (size_t i = 0; i < N_TEXTS; i++)
            turned[i] = TEXTS[N_TEXTS - 1 - i];
        assert_int_equal(pnb_tokenizer_train(&tok, TEXTS, N_TEXTS, &opts, NULL), PNB_OK);
        file_text(tok, &a);
        pnb_tokenizer_free(tok);
        assert_int_equal(pnb_tokenizer_train(&tok, turned, N_TEXTS, &opts, NULL), PNB_OK);
        file_text(tok, &b);
        pnb_tokenizer_free(tok);
        assert_string_equal(a, b);
        json_t *root;
        assert_int_equal(pnb__json_load_bytes(&root, a, strlen(a), "a", NULL), PNB_OK);
        json_decref(root);
        pnb__free(a);
        pnb__free(b);
    }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    static const pnb_tokenizer_opts bad[] = {
        {PNB_TOKENIZER_WORD, 4, 1, PNB_CLEAN_NONE},
        {PNB_TOKENIZER_BYTE_BPE, 258, 1, PNB_CLEAN_NONE},
        {(pnb_tokenizer_kind)9, 500, 1, PNB_CLEAN_NONE},
        {PNB_TOKENIZER_WORD, 500, 1, (pnb_clean)9},
        {PNB_TOKENIZER_WORD, INT32_MAX, 1, PNB_CLEAN_NONE},
    };
    pnb_tokenizer *tok;
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb_tokenizer_train(&tok, TEXTS, N_TEXTS, &bad[i], &err), PNB_ARG);
        assert_null(tok);
        assert_true(err.text[0] != '\0');
    }
    assert_int_equal(pnb_tokenizer_train(&tok, TEXTS, 0, NULL, NULL), PNB_ARG);
    static const char *const empty[] = {""};
    assert_int_equal(pnb_tokenizer_train(&tok, empty, 1, NULL, NULL), PNB_OK);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 4);
    pnb_tokenizer_free(tok);
}

#ifdef PNB_FAULTS
static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    for (int kind = PNB_TOKENIZER_WORD; kind <= PNB_TOKENIZER_BYTE_BPE; kind++) {
        pnb_tokenizer_opts opts = {(pnb_tokenizer_kind)kind, 300, 1, PNB_CLEAN_LOWER};
        pnb_status status = PNB_NOMEM;
        for (long k = 0; status != PNB_OK && k < 100000; k++) {
            pnb_tokenizer *tok;
            int32_t row[8];
            pnb__alloc_fail_after(k);
            status = pnb_tokenizer_train(&tok, TEXTS, N_TEXTS, &opts, NULL);
            if (status == PNB_OK)
                status = pnb_tokenizer_encode(tok, "a red", 5, 8, row, NULL, NULL);
            pnb__alloc_fail_after(-1);
            assert_true(status == PNB_OK || status == PNB_NOMEM);
            pnb_tokenizer_free(tok);
        }
        assert_int_equal(status, PNB_OK);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_ranked_by_count),
        cmocka_unit_test(order_of_texts_does_not_matter),
        cmocka_unit_test(bad_options_are_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_run_out_anywhere),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
