/* Byte-pair encoding against CLIP's ids, and against joining the best pair of neighbours again and
 * again. */
#include "tests/tokenizer/support.h"

/* CLIP's vocabulary from its merges: bytes, bytes + "</w>", merges in order, two special tokens. */
static void put_clip_vocab(pnb__buf *vocab, pnb__buf *merges, const char *lines)
{
    int id = 0;
    for (int round = 0; round < 2; round++) {
        for (int printable = 1; printable >= 0; printable--) {
            for (int b = 0; b < 256; b++) {
                uint32_t c = pnb__byte_char((unsigned char)b);
                if ((c < 0x100) != printable)
                    continue;
                char piece[16], letter[5] = {0};
                pnb__utf8_encode(c, letter);
                snprintf(piece, sizeof piece, "%s%s", letter, round ? "</w>" : "");
                pnb__buf_puts(vocab, id > 0 ? "," : "");
                pnb__json_append_string(vocab, piece);
                pnb__buf_printf(vocab, ":%d", id++);
            }
        }
    }
    char *text = pnb__strdup(lines), *save = NULL;
    strtok_r(text, "\n", &save); /* the first line is a header */
    for (char *l = strtok_r(NULL, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
        pnb__buf_puts(merges, merges->size > 0 ? "," : "");
        pnb__json_append_string(merges, l);
        char *space = strchr(l, ' ');
        memmove(space, space + 1, strlen(space));
        pnb__buf_puts(vocab, ",");
        pnb__json_append_string(vocab, l);
        pnb__buf_printf(vocab, ":%d", id++);
    }
    pnb__buf_printf(vocab, ",\"<|startoftext|>\":%d,\"<|endoftext|>\":%d", id, id + 1);
    pnb__free(text);
}

static pnb_tokenizer *make_clip(void)
{
    pnb__buf vocab = {0}, merges = {0}, b = {0};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    char *lines;
    size_t n;
    assert_int_equal(pnb__read_file(GOLDEN "clip_bpe/tiny_merges.txt", 1 << 20, &lines, &n, &err),
                     PNB_OK);
    put_clip_vocab(&vocab, &merges, lines);
    pnb__buf_puts(&b, "{\"added_tokens\":["
                      "{\"id\":2012,\"content\":\"<|startoftext|>\",\"normalized\":true,"
                      "\"special\":true},{\"id\":2013,\"content\":\"<|endoftext|>\",\"normalized\":"
                      "false,\"special\":true}],\"normalizer\":null,"
                      "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                      "\"Split\",\"pattern\":{\"Regex\":\"'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|"
                      "[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+\"},\"behavior\":\"Removed\",\"invert\":"
                      "true},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":"
                      "true}]},\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":["
                      "\"<|endoftext|>\",2013],\"cls\":[\"<|startoftext|>\",2012]},\"decoder\":"
                      "{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"unk_token\":"
                      "\"<|endoftext|>\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{");
    pnb__buf_append(&b, vocab.data, vocab.size);
    pnb__buf_puts(&b, "},\"merges\":[");
    pnb__buf_append(&b, merges.data, merges.size);
    pnb__buf_puts(&b, "]}}");
    if (pnb_tokenizer_parse(&tok, b.data, b.size, &err) != PNB_OK)
        fail_msg("%s", err.text);
    pnb__buf_reset(&vocab);
    pnb__buf_reset(&merges);
    pnb__buf_reset(&b);
    pnb__free(lines);
    return tok;
}

static void clip_ids_agree(void **state)
{
    (void)state;
    pnb_safetensors *st;
    json_t *strings = load_json(GOLDEN "clip_bpe/cleaned.json");
    assert_int_equal(pnb_safetensors_open(&st, GOLDEN "clip_bpe/tensors.safetensors", NULL),
                     PNB_OK);
    pnb_tokenizer *tok = make_clip();
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 2014);
    assert_int_equal(pnb_tokenizer_bos_id(tok), 2012);
    assert_int_equal(pnb_tokenizer_eos_id(tok), 2013);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 2013);
    assert_true(pnb_tokenizer_is_special(tok, 2013));
    compare_flat(tok, strings, st, "tiny");
    char *text;
    int32_t *ids;
    size_t n;
    assert_int_equal(pnb_tokenizer_encode_all(tok, "a photo of a cat", 16, true, &ids, &n, NULL),
                     PNB_OK);
    assert_int_equal(ids[0], 2012);
    assert_int_equal(ids[n - 1], 2013);
    assert_int_equal(pnb_tokenizer_decode(tok, ids, n, &text, NULL), PNB_OK);
    assert_string_equal(text, "a photo of a cat");
    pnb_tokenizer_ids_free(ids);
    pnb_text_free(text);
    pnb_tokenizer_free(tok);
    pnb_safetensors_free(st);
    json_decref(strings);
}

/* ---- random merges ---- */

enum { LETTERS = 3, MOST_MERGES = 40, MOST_LETTERS = 150 };

typedef struct table {
    pnb__vocab vocab;
    pnb__bpe bpe;
    int32_t left[MOST_MERGES], right[MOST_MERGES], result[MOST_MERGES];
    int n_merges;
} table;

/* Letters a, b, c are ids 0, 1, 2; every merge joins two tokens that there are. */
static void make_table(table *t, pnb__rng *rng)
{
    pnb_error err = PNB_ERROR_INIT;
    int n_ids = LETTERS;
    *t = (table){0};
    assert_ok(pnb__vocab_init(&t->vocab, LETTERS + MOST_MERGES, 1, &err), &err);
    assert_ok(pnb__bpe_init(&t->bpe, MOST_MERGES, &err), &err);
    for (int i = 0; i < LETTERS; i++)
        assert_ok(pnb__vocab_add(&t->vocab, i, &"abc"[i], 1, &err), &err);
    for (int tries = 0; tries < MOST_MERGES; tries++) {
        int32_t left = (int32_t)pnb__rng_below(rng, (uint64_t)n_ids);
        int32_t right = (int32_t)pnb__rng_below(rng, (uint64_t)n_ids);
        char piece[64];
        int n = snprintf(piece, sizeof piece, "%s%s", pnb__vocab_piece(&t->vocab, left, NULL),
                         pnb__vocab_piece(&t->vocab, right, NULL));
        int32_t result = n < 30 ? pnb__vocab_find(&t->vocab, piece, (size_t)n) : 0;
        if (n >= 30 || pnb__bpe_add(&t->bpe, left, right, result < 0 ? n_ids : result, t->n_merges,
                                    NULL) != PNB_OK)
            continue;
        if (result < 0)
            assert_ok(pnb__vocab_add(&t->vocab, result = n_ids++, piece, (size_t)n, &err), &err);
        t->left[t->n_merges] = left;
        t->right[t->n_merges] = right;
        t->result[t->n_merges++] = result;
    }
}

/* The merge of lowest rank that fits somewhere, at the first place that it fits, until none fits.
 */
static size_t join_plainly(const table *t, const char *word, size_t n, int32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = word[i] - 'a';
    for (int rank = 0; rank < t->n_merges;) {
        size_t at = 0;
        while (at + 1 < n && !(ids[at] == t->left[rank] && ids[at + 1] == t->right[rank]))
            at++;
        if (at + 1 >= n) {
            rank++;
            continue;
        }
        ids[at] = t->result[rank];
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
        rank = 0;
    }
    return n;
}

/* Words below and above the 64 letters that fit without an allocation. */
static void merges_equal_plain_joining(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 29, 0);
    for (int round = 0; round < 40; round++) {
        table t;
        make_table(&t, &rng);
        assert_true(t.n_merges > 10);
        for (int k = 0; k < 10; k++) {
            char word[MOST_LETTERS];
            int32_t want[MOST_LETTERS];
            size_t n = (size_t)pnb__rng_below(&rng, MOST_LETTERS);
            pnb__ids got = {0};
            pnb_error err = PNB_ERROR_INIT;
            for (size_t i = 0; i < n; i++)
                word[i] = (char)('a' + pnb__rng_below(&rng, k % 2 ? 2 : LETTERS));
            assert_ok(pnb__bpe_encode(&t.bpe, &t.vocab, word, n, &got, &err), &err);
            size_t n_want = join_plainly(&t, word, n, want);
            assert_int_equal(got.n, n_want);
            if (n_want > 0)
                assert_memory_equal(got.at, want, n_want * sizeof *want);
            pnb__free(got.at);
        }
        pnb__bpe_reset(&t.bpe);
        pnb__vocab_reset(&t.vocab);
    }
}

/* ---- what is not in the vocabulary ---- */

static void expect_word(const pnb__bpe *bpe, const pnb__vocab *vocab, const char *word,
                        const int32_t *want, size_t n)
{
    pnb__ids got = {0};
    assert_int_equal(pnb__bpe_encode(bpe, vocab, word, strlen(word), &got, NULL), PNB_OK);
    assert_int_equal(got.n, n);
    if (n > 0)
        assert_memory_equal(got.at, want, n * sizeof *want);
    pnb__free(got.at);
}

static void unknown_characters(void **state)
{
    (void)state;
    static const char *const pieces[] = {"u", "a", "b</w>", "ab</w>", "<0xC3>", "<0xA9>", "aa"};
    pnb__vocab v;
    pnb__bpe bpe = {0};
    assert_int_equal(pnb__vocab_init(&v, 7, 7, NULL), PNB_OK);
    for (int i = 0; i < 7; i++)
        assert_int_equal(pnb__vocab_add(&v, i, pieces[i], strlen(pieces[i]), NULL), PNB_OK);
    assert_int_equal(pnb__bpe_init(&bpe, 2, NULL), PNB_OK);
    assert_int_equal(pnb__bpe_add(&bpe, 1, 1, 6, 0, NULL), PNB_OK);
    expect_word(&bpe, &v, "xay", IDS(1)); /* no token for the unknown: left out */
    bpe.unk_id = 0;
    expect_word(&bpe, &v, "xyaz\xC3\xA9", IDS(0, 0, 1, 0, 0));
    bpe.fuse_unk = true;
    expect_word(&bpe, &v, "xyaz\xC3\xA9", IDS(0, 1, 0));
    bpe.byte_fallback = true;
    bpe.byte_ids[0xC3] = 4;
    expect_word(&bpe, &v, "\xC3\xA9", IDS(0)); /* only when all of its bytes are there */
    bpe.byte_ids[0xA9] = 5;
    expect_word(&bpe, &v, "x\xC3\xA9x", IDS(0, 4, 5, 0));
    bpe.end_suffix = pnb__strdup("</w>");
    expect_word(&bpe, &v, "ab", IDS(1, 2));
    assert_int_equal(pnb__bpe_add(&bpe, 1, 2, 3, 1, NULL), PNB_OK);
    expect_word(&bpe, &v, "ab", IDS(3));
    expect_word(&bpe, &v, "aab", IDS(6, 2));
    /* user-defined pieces are neither cut nor joined */
    pnb__trie symbols;
    assert_int_equal(pnb__trie_init(&symbols, 1, NULL), PNB_OK);
    pnb__trie_add(&symbols, "a", 1, 1);
    bpe.symbols = &symbols;
    expect_word(&bpe, &v, "aab", IDS(1, 1, 2));
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__bpe_add(&bpe, 1, 2, 3, 7, &err), &err, PNB_FORMAT,
                  "merge 7 repeats merge 1");
    pnb__trie_reset(&symbols);
    pnb__bpe_reset(&bpe);
    pnb__vocab_reset(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clip_ids_agree),
        cmocka_unit_test(merges_equal_plain_joining),
        cmocka_unit_test(unknown_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
