/* Lists of words as tokenizers: pickled dicts and instances of every protocol, lines of text; the
 * rows they make; and every list that is none. The pickles are what Python 3.11 writes
 * (tests/fuzz/corpus/vocabulary). */
#include "tests/tokenizer/support.h"

#define LISTS CORPUS "vocabulary/"

/* <pad> <start> <end> <unk> a dog n't is cafe , . */
static const int32_t WANT[8] = {1, 4, 5, 7, 6, 3, 10, 2};

static void expect_row(const pnb_tokenizer *tok)
{
    int32_t row[10];
    pnb_token_count count;
    const char *text = "A dog isn't \xC3\xA9.";
    assert_int_equal(pnb_tokenizer_encode(tok, text, strlen(text), 10, row, &count, NULL), PNB_OK);
    assert_memory_equal(row, WANT, sizeof WANT);
    assert_int_equal(row[8], 0);
    assert_int_equal(row[9], 0);
    assert_int_equal(count.n_tokens, 8);
}

static void pickles_and_lines_agree(void **state)
{
    static const char *const names[] = {"dict0.pkl",     "dict2.pkl",     "dict4.pkl",
                                        "instance2.pkl", "instance4.pkl", "plain.txt"};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[300];
        snprintf(path, sizeof path, LISTS "%s", names[i]);
        pnb_tokenizer *tok = open_one(path);
        assert_int_equal(pnb_tokenizer_vocab_size(tok), 11);
        assert_int_equal(pnb_tokenizer_find(tok, "caf\xC3\xA9"), 8);
        assert_int_equal(pnb_tokenizer_pad_id(tok), 0);
        assert_int_equal(pnb_tokenizer_bos_id(tok), 1);
        assert_int_equal(pnb_tokenizer_eos_id(tok), 2);
        assert_int_equal(pnb_tokenizer_unk_id(tok), 3);
        assert_false(pnb_tokenizer_padding(tok).assumed);
        expect_row(tok);
        pnb_tokenizer_free(tok);
    }
}

/* Beyond the context the end stays; special tokens are no text to be masked, unknown words are. */
static void rows_are_cut_and_masked(void **state)
{
    int32_t row[5];
    unsigned char mask[5];
    (void)state;
    pnb_tokenizer *tok = open_one(LISTS "dict4.pkl");
    assert_int_equal(pnb_tokenizer_encode(tok, "a b c dog", 9, 5, row, NULL, NULL), PNB_OK);
    assert_memory_equal(row, ((const int32_t[]){1, 4, 3, 3, 2}), sizeof row);
    assert_int_equal(pnb_tokenizer_text_mask(tok, row, 5, mask), 3);
    assert_memory_equal(mask, ((const unsigned char[]){0, 1, 1, 1, 0}), 5);
    assert_int_equal(pnb_tokenizer_encode(tok, "", 0, 5, row, NULL, NULL), PNB_OK);
    assert_memory_equal(row, ((const int32_t[]){1, 2, 0, 0, 0}), sizeof row);
    pnb_tokenizer_free(tok);
}

/* A list without any special word gets all four in front; CRLF and a byte order mark are no words.
 */
static void lines(void **state)
{
    (void)state;
    pnb_tokenizer *tok = open_one(LISTS "bare.txt");
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 7);
    assert_int_equal(pnb_tokenizer_find(tok, "<unk>"), 3);
    assert_int_equal(pnb_tokenizer_find(tok, "n't"), 6);
    pnb_tokenizer_free(tok);
    tok = open_one(LISTS "bom.txt");
    assert_int_equal(pnb_tokenizer_find(tok, "<pad>"), 0);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 5);
    pnb_tokenizer_free(tok);
}

/* Saved as tokenizer.json it is the same tokenizer. */
static void saved_and_read_again(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    pnb_tokenizer *tok = open_one(LISTS "instance4.pkl");
    assert_ok(pnb_tokenizer_save(tok, s->dir, &err), &err);
    pnb_tokenizer_free(tok);
    tok = open_one(s->dir);
    expect_row(tok);
    pnb_tokenizer_free(tok);
}

static void refused_file(const char *path, pnb_status want, const char *says)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, path, &err), &err, want, says);
    assert_non_null(strstr(err.text, path));
    assert_null(tok);
}

static void refused(void **state)
{
    (void)state;
    refused_file(LISTS "runs_code.pkl", PNB_UNSUPPORTED,
                 "the pickle names posix.system; plain dicts and instances of a class Vocabulary "
                 "are read here. Nothing was executed");
    refused_file(LISTS "no_start.pkl", PNB_FORMAT, "the vocabulary has no <start>");
    refused_file(LISTS "gap.pkl", PNB_FORMAT,
                 "\"<unk>\" has id 7; 4 words have the ids 0 to 3, each once");
    refused_file(LISTS "other_words.pkl", PNB_FORMAT,
                 "idx2word and word2idx do not agree on entry 0");
    refused_file(LISTS "bert.txt", PNB_UNSUPPORTED, "a WordPiece vocabulary");
    refused_file(LISTS "twice.txt", PNB_FORMAT, "line 3: the word \"a\" stands twice");
}

static void refused_bytes(const char *bytes, size_t n, const char *says)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    bool is_pickle = bytes[0] == '}' || bytes[0] == ']' || bytes[0] == '(';
    pnb_status status = is_pickle ? pnb__tok_from_vocabulary_pickle(&tok, bytes, n, "v", &err)
                                  : pnb__tok_from_vocabulary_lines(&tok, bytes, n, "v", &err);
    assert_failed(status, &err, PNB_FORMAT, says);
    assert_null(tok);
}
#define REFUSED(bytes, says) refused_bytes(bytes, sizeof(bytes) - 1, says)

static void refused_words(void **state)
{
    (void)state;
    REFUSED("a\n<pad>\n<start>\n<end>\n<unk>\n",
            "v: <pad> is word 1; captions are filled up with 0");
    REFUSED("a\n<start>\n", "v: the vocabulary has no <pad>");
    REFUSED("a\n\nb\n", "line 2: word 5 is empty or no UTF-8 text");
    REFUSED("a\nb c\n", "line 2 has a space");
    REFUSED("a\n\xFF\n", "line 2: word 5 is empty or no UTF-8 text");
    REFUSED("].", "a pickle without \"word2idx\"");
    REFUSED("}.", "a pickle without \"word2idx\"");
    REFUSED("}(U\x08word2idx]u.", "a pickle without \"word2idx\"");
    REFUSED("}(U\x08word2idx}(K\x00K\x01uu.", "entry 0 is not a word and its id");
    REFUSED("}(U\x08word2idx}(U\x01"
            "aK\x00U\x01"
            "bK\x00uu.",
            "\"b\" has id 0; 2 words have the ids 0 to 1");
    REFUSED("}(U\x08word2idx}(U\x01"
            "aK\x00uU\x08idx2word]u.",
            "idx2word is no dict");
    REFUSED("}(U\x08word2idx}(U\x01"
            "aK\x00uU\x03idxK\x05u.",
            "idx is not the number of words, 1");
    REFUSED("(", "v: pickle byte 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pickles_and_lines_agree),
        cmocka_unit_test(rows_are_cut_and_masked),
        cmocka_unit_test(lines),
        cmocka_unit_test_setup_teardown(saved_and_read_again, scratch_setup, scratch_teardown),
        cmocka_unit_test(refused),
        cmocka_unit_test(refused_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
