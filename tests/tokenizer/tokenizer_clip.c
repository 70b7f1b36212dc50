/* CLIP's merges packed, plain and saved, vocab.json with merges.txt, GPT-2's kind, and faults by
 * their lines. */
#include <zlib.h>

#include "tests/tokenizer/support.h"

static char *read_text(const char *path, size_t *n)
{
    char *text;
    assert_int_equal(pnb__read_file(path, 1 << 24, &text, n, NULL), PNB_OK);
    return text;
}

static void put_packed(scratch *s, const char *name, const char *text, size_t n)
{
    gzFile f = gzopen(scratch_path(s, name), "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, text, (unsigned)n), (int)n);
    assert_int_equal(gzclose(f), Z_OK);
}

static void clip_merges_packed_plain_and_saved(void **state)
{
    scratch *s = *state;
    size_t n;
    char *text = read_text(GOLDEN "clip_bpe/tiny_merges.txt", &n);
    scratch_clear(s);
    put_packed(s, "bpe_simple_vocab_16e6.txt.gz", text, n);
    pnb_tokenizer *packed = open_one(s->dir), *plain = open_one(GOLDEN "clip_bpe/tiny_merges.txt");
    assert_int_equal(pnb_tokenizer_vocab_size(packed), 2014);
    assert_int_equal(pnb_tokenizer_clean(packed), PNB_CLEAN_LOWER);
    assert_int_equal(pnb_tokenizer_pad_id(packed), 0);
    assert_int_equal(pnb_tokenizer_find(packed, "<start_of_text>"), 2012);
    assert_int_equal(pnb_tokenizer_find(packed, "!"), 0);
    expect_agree(packed, plain, GOLDEN "clip_bpe/strings.json");
    scratch_clear(s);
    assert_int_equal(pnb_tokenizer_save(packed, s->dir, NULL), PNB_OK);
    pnb_tokenizer *saved = open_one(s->dir);
    pnb_tokenizer_set_clean(saved, PNB_CLEAN_LOWER);
    assert_int_equal(pnb_tokenizer_pad_id(saved), 0);
    expect_agree(packed, saved, GOLDEN "clip_bpe/strings.json");
    int32_t row[8];
    char *back;
    pnb_token_count count;
    assert_int_equal(pnb_tokenizer_encode(packed, "A dog! ", 7, 8, row, &count, NULL), PNB_OK);
    assert_int_equal(row[0], 2012);
    assert_int_equal(row[count.n_tokens - 1], 2013);
    assert_int_equal(row[7], 0);
    assert_int_equal(pnb_tokenizer_decode(packed, row, 8, &back, NULL), PNB_OK);
    assert_string_equal(back, "a dog !");
    pnb_text_free(back);
    pnb_tokenizer_free(packed);
    pnb_tokenizer_free(plain);
    pnb_tokenizer_free(saved);
    pnb__free(text);
}

/* open_clip looks for the special strings word by word, Hugging Face cuts them out first. */
static void special_strings_are_words(void **state)
{
    (void)state;
    pnb_tokenizer *tok = open_one(CORPUS "merges/merges.txt");
    int32_t end = pnb_tokenizer_eos_id(tok);
    int32_t *ids;
    size_t n;
    assert_int_equal(pnb_tokenizer_encode_all(tok, "<END_OF_TEXT>", 13, false, &ids, &n, NULL),
                     PNB_OK);
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], end);
    pnb_tokenizer_ids_free(ids);
    assert_int_equal(pnb_tokenizer_encode_all(tok, "!<end_of_text>", 14, false, &ids, &n, NULL),
                     PNB_OK);
    assert_true(n > 5);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(ids[i], end);
    pnb_tokenizer_ids_free(ids);
    pnb_tokenizer_free(tok);
}

/* vocab.json and merges.txt of the same vocabulary, made from what saving wrote. */
static void vocab_and_merges_agree(void **state)
{
    scratch *s = *state;
    pnb_tokenizer *simple = open_one(GOLDEN "clip_bpe/tiny_merges.txt");
    pnb__buf vocab = {0}, merges = {0};
    json_t *root;
    scratch_clear(s);
    assert_int_equal(pnb__json_load_bytes(&root, simple->json, simple->n_json, "saved", NULL),
                     PNB_OK);
    json_t *model = json_object_get(root, "model");
    pnb__json_append_value(&vocab, json_object_get(model, "vocab"));
    pnb__buf_puts(&merges, "#version: 0.2\n");
    for (size_t i = 0; i < json_array_size(json_object_get(model, "merges")); i++) {
        const json_t *pair = json_array_get(json_object_get(model, "merges"), i);
        pnb__buf_printf(&merges, "%s %s\r\n", json_string_value(json_array_get(pair, 0)),
                        json_string_value(json_array_get(pair, 1)));
    }
    scratch_file(s, "merges.txt", merges.data, merges.size);
    const char *path = scratch_file(s, "vocab.json", vocab.data, vocab.size);
    pnb_tokenizer *pair = NULL;
    pnb_error err = PNB_ERROR_INIT;
    /* Hugging Face's names are not in this vocabulary, special_tokens_map.json tells the others */
    static const char map[] = "{\"bos_token\": \"<start_of_text>\", \"eos_token\": {\"content\": "
                              "\"<end_of_text>\"}, \"pad_token\": \"!\"}";
    scratch_file(s, "special_tokens_map.json", map, sizeof map - 1);
    assert_ok(pnb_tokenizer_load(&pair, s->dir, &err), &err);
    assert_int_equal(pnb_tokenizer_clean(pair), PNB_CLEAN_NONE);
    assert_int_equal(pnb_tokenizer_pad_id(pair), 0);
    assert_false(pnb_tokenizer_is_special(pair, 0)); /* "!" is text as well */
    pnb_tokenizer_set_clean(pair, PNB_CLEAN_LOWER);
    expect_agree(simple, pair, GOLDEN "clip_bpe/strings.json");
    pnb_tokenizer_free(pair);
    snprintf(s->path, sizeof s->path, "%s/vocab.json", s->dir);
    pair = open_one(path);
    pnb_tokenizer_free(pair);
    json_decref(root);
    pnb__buf_reset(&vocab);
    pnb__buf_reset(&merges);
    pnb_tokenizer_free(simple);
}

/* ids: 256 bytes in the order of their letters, the same with word ends, merges, two special
 * tokens. */
static void ids_of_a_list_of_merges(void **state)
{
    (void)state;
    static const char text[] = "a header that is read over\na b\nab c</w>\n\na b</w>\n";
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    const pnb__clip_names names = {"<s>", "</s>"};
    assert_ok(pnb__tok_from_merges(&tok, text, sizeof text - 1, &names, "x", &err), &err);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 512 + 3 + 2);
    assert_int_equal(pnb_tokenizer_find(tok, "!"), 0);
    assert_int_equal(pnb_tokenizer_find(tok, "\xC3\xBF"), 187); /* the last letter that is itself */
    assert_int_equal(pnb_tokenizer_find(tok, "\xC4\x80"), 188); /* byte 0 */
    assert_int_equal(pnb_tokenizer_find(tok, "!</w>"), 256);
    assert_int_equal(pnb_tokenizer_find(tok, "ab"), 512);
    assert_int_equal(pnb_tokenizer_find(tok, "abc</w>"), 513);
    assert_int_equal(pnb_tokenizer_find(tok, "ab</w>"), 514);
    assert_true(pnb_tokenizer_bos_id(tok) == 515 && pnb_tokenizer_eos_id(tok) == 516);
    expect_ids(tok, "ab ABC", IDS(514, 513)); /* in lower case */
    pnb_tokenizer_free(tok);
}

static void expect_pair(const pnb__tok_pair *pair, const char *says)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__tok_from_pair(&tok, pair, "vocab.json", NULL, &err), &err, PNB_FORMAT, says);
    assert_non_null(strstr(err.text, "vocab.json"));
    assert_null(tok);
}

#define PAIR(v, m) (&(const pnb__tok_pair){v, m, sizeof(v) - 1, sizeof(m) - 1})

/* No word ends: GPT-2's kind, words begin with the space in front of them and nothing is added. */
static void gpt2_pairs(void **state)
{
    (void)state;
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    const pnb__tok_pair *pair = PAIR("{\"a\":0,\"b\":1,\"\xC4\xA0\":2,\"\xC4\xA0"
                                     "a\":3,\"<|endoftext|>\":4}",
                                     "\xC4\xA0 a\n");
    assert_ok(pnb__tok_from_pair(&tok, pair, "vocab.json", NULL, &err), &err);
    expect_ids(tok, "a ab", IDS(0, 3, 1));
    assert_true(tok->prefix.n == 0 && tok->suffix.n == 0 && pnb_tokenizer_eos_id(tok) == 4);
    pnb_tokenizer_free(tok);
    expect_pair(PAIR("{\"a\":0,\"a</w>\":1,\"aa</w>\":2}", "a a</w>\n"),
                "the vocabulary has no start token: want <|startoftext|>");
    expect_pair(PAIR("{\"a\":0,\"a</w>\":1,\"aa</w>\":2,\"<|startoftext|>\":3}", "a a</w>\n"),
                "no end token: want <|endoftext|>");
    expect_pair(PAIR("[]", "a b\n"), "not a JSON object");
    expect_pair(PAIR("{\"a\":0}", "#version: 0.2\n"), "no merges");
}

static void faults_are_named(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *name, *text;
        pnb_status want;
        const char *says;
    } cases[] = {
        {"a.txt", "", PNB_FORMAT, "is empty"},
        {"a.txt", "#version\n", PNB_FORMAT, "no merges"},
        {"a.txt", "#version\na\n", PNB_FORMAT, "line 2"},
        {"a.txt", "#version\na b c\n", PNB_FORMAT, "line 2"},
        {"a.txt", "#version\na \xFF\n", PNB_FORMAT, "line 2"},
        {"a.txt", "#version\na zz\n", PNB_FORMAT, "right part"},
        {"a.txt", "#version\na b\na b\n", PNB_FORMAT, "repeats"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *tok;
        pnb_error err = PNB_ERROR_INIT;
        scratch_clear(s);
        const char *path = scratch_file(s, cases[i].name, cases[i].text, strlen(cases[i].text));
        assert_failed(pnb_tokenizer_load(&tok, path, &err), &err, cases[i].want, cases[i].says);
        assert_null(tok);
    }
}

#ifdef PNB_FAULTS
static pnb_status open_merges(scratch *s, pnb_error *err)
{
    static const char text[] = "#version\na b\nab c</w>\n";
    pnb_tokenizer *tok;
    (void)s;
    pnb_status status = pnb__tok_from_merges(&tok, text, sizeof text - 1,
                                             &(pnb__clip_names){"<s>", "</s>"}, "x", err);
    pnb_tokenizer_free(tok);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(open_merges, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clip_merges_packed_plain_and_saved),
        cmocka_unit_test(special_strings_are_words),
        cmocka_unit_test(vocab_and_merges_agree),
        cmocka_unit_test(ids_of_a_list_of_merges),
        cmocka_unit_test(gpt2_pairs),
        cmocka_unit_test(faults_are_named),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
