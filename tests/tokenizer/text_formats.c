/* Vocabularies that are no tokenizer.json: spiece.model, CLIP's merges packed and plain, vocab.json
 * with merges.txt. The golden cases are the reference (tests/golden/tokenizers); what they do not
 * hold, user-defined pieces and suffixes, was computed with the sentencepiece library. */
#include <math.h>
#include <zlib.h>

#include "io/json/json.h"
#include "penumbra/safetensors.h"
#include "tests/io/scratch.h"
#include "tokenizer/tokenizer_json.h"

#define GOLDEN PNB_SOURCE_DIR "/tests/golden/tokenizers/"
#define CORPUS PNB_SOURCE_DIR "/tests/fuzz/corpus/"

static pnb_tokenizer *open_one(const char *path)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_tokenizer_load(&tok, path, &err), &err);
    return tok;
}

static void expect_ids(const pnb_tokenizer *tok, const char *text, const int32_t *want, size_t n)
{
    int32_t *ids;
    size_t n_ids;
    assert_int_equal(pnb_tokenizer_encode_all(tok, text, strlen(text), false, &ids, &n_ids, NULL),
                     PNB_OK);
    bool same = n_ids == n;
    for (size_t i = 0; i < n && same; i++)
        same = ids[i] == want[i];
    if (!same)
        fail_msg("\"%s\": %zu ids, the first %d; want %zu", text, n_ids, n_ids ? ids[0] : -1, n);
    pnb_tokenizer_ids_free(ids);
}
#define IDS(...) ((const int32_t[]){__VA_ARGS__}), PNB_COUNT(((const int32_t[]){__VA_ARGS__}))

/* Every string of a golden case must give the same ids with both. */
static void expect_agree(const pnb_tokenizer *a, const pnb_tokenizer *b, const char *strings)
{
    json_t *root;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__json_load_file(&root, strings, 0, &err), &err);
    size_t n_compared = 0;
    for (size_t i = 0; i < json_array_size(root); i++) {
        const char *text = json_string_value(json_array_get(root, i));
        int32_t *ids[2];
        size_t n[2];
        if (strstr(text, "\xE2\x96\x81") != NULL || strchr(text, '<') != NULL)
            continue; /* a literal U+2581, special strings: tokenizer.json reads them otherwise */
        assert_int_equal(
            pnb_tokenizer_encode_all(a, text, strlen(text), true, &ids[0], &n[0], NULL), PNB_OK);
        assert_int_equal(
            pnb_tokenizer_encode_all(b, text, strlen(text), true, &ids[1], &n[1], NULL), PNB_OK);
        if (n[0] != n[1] || memcmp(ids[0], ids[1], n[0] * sizeof *ids[0]) != 0)
            fail_msg("string %zu \"%s\" differs", i, text);
        pnb_tokenizer_ids_free(ids[0]);
        pnb_tokenizer_ids_free(ids[1]);
        n_compared++;
    }
    assert_true(n_compared > 50);
    json_decref(root);
}

/* ---- SentencePiece ---- */

static void saved_spiece_reads_back(void **state)
{
    scratch *s = *state;
    static const char *const names[] = {"sp_unigram400", "sp_unigram_identity",
                                        "sp_bpe_bytefallback"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[512], strings[512];
        snprintf(path, sizeof path, GOLDEN "%s/tokenizer.model", names[i]);
        snprintf(strings, sizeof strings, GOLDEN "%s/strings.json", names[i]);
        pnb_tokenizer *tok = open_one(path);
        assert_int_equal(pnb_tokenizer_pad_id(tok), 1);
        assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
        assert_int_equal(pnb_tokenizer_unk_id(tok), 2);
        assert_int_equal(pnb_tokenizer_save(tok, scratch_path(s, "tokenizer.json"), NULL), PNB_OK);
        pnb_tokenizer *again = open_one(s->dir);
        assert_int_equal(pnb_tokenizer_vocab_size(again), pnb_tokenizer_vocab_size(tok));
        assert_int_equal(pnb_tokenizer_pad_id(again), 1);
        expect_agree(tok, again, strings);
        pnb_tokenizer_free(tok);
        pnb_tokenizer_free(again);
    }
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

static void user_defined_pieces_stay_whole(void **state)
{
    (void)state;
    pnb_tokenizer *tok = open_one(CORPUS "spiece/user_defined.model");
    expect_ids(tok, "the dog ran <sep>fast", IDS(18, 14, 8, 6, 4, 17, 7, 9, 6, 3, 24, 7, 16));
    expect_ids(tok,
               "  two   dogs\xE2\x96\x81\xE2\x96\x81"
               "and a\xE2\x98\x83\xE2\x98\x83"
               "cat </s>",
               IDS(18, 23, 15, 6, 4, 11, 5, 7, 9, 13, 10, 2, 12, 7, 19, 6, 2, 11, 2));
    expect_ids(tok, "dogdog", IDS(6, 4, 4));
    expect_ids(tok,
               "a \xE2\x96\x81"
               " ",
               IDS(10));
    pnb_tokenizer_free(tok);
}

static void whitespace_as_suffix(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_tokenizer *tok = open_one(CORPUS "spiece/suffix.model");
    expect_ids(tok, "the dog ran <sep>fast", IDS(33, 4, 45, 51, 11, 45, 3, 35));
    expect_ids(tok,
               "  two   dogs\xE2\x96\x81\xE2\x96\x81"
               "and a\xE2\x98\x83\xE2\x98\x83"
               "cat </s>",
               IDS(34, 4, 48, 5, 30, 46, 2, 31, 2, 48, 2, 45));
    expect_ids(tok, "dogdog", IDS(4, 4, 45));
    expect_ids(tok,
               "a \xE2\x96\x81"
               " ",
               IDS(6));
    assert_failed(pnb_tokenizer_save(tok, scratch_path(s, "tokenizer.json"), &err), &err,
                  PNB_UNSUPPORTED, "treat_whitespace_as_suffix");
    pnb_tokenizer_free(tok);
}

/* ---- spiece.model made here ---- */

static void put_varint(pnb__buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        pnb__buf_putc(b, (char)((value & 0x7F) | 0x80));
    pnb__buf_putc(b, (char)value);
}

static void put_bytes(pnb__buf *b, unsigned number, const void *bytes, size_t n)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, n);
    pnb__buf_append(b, bytes, n);
}

static void put_piece(pnb__buf *file, const char *text, float score, unsigned type)
{
    pnb__buf b = {0};
    put_bytes(&b, 1, text, strlen(text));
    put_varint(&b, 2 << 3 | 5);
    pnb__buf_append(&b, &score, 4);
    put_varint(&b, 3 << 3);
    put_varint(&b, type);
    put_bytes(file, 1, b.data, b.size);
    pnb__buf_reset(&b);
}

/* A section of one number. */
static void put_setting(pnb__buf *file, unsigned section, unsigned number, uint64_t value)
{
    pnb__buf b = {0};
    put_varint(&b, number << 3);
    put_varint(&b, value);
    put_bytes(file, section, b.data, b.size);
    pnb__buf_reset(&b);
}

static void expect_fault(pnb__buf *file, pnb_status want, const char *says)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__tok_from_spiece(&tok, file->data, file->size, "x.model", NULL, &err), &err,
                  want, says);
    assert_non_null(strstr(err.text, "x.model"));
    assert_null(tok);
    pnb__buf_reset(file);
}

static void spiece_faults_are_named(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__buf_puts(&b, "");
    expect_fault(&b, PNB_FORMAT, "no unknown piece");
    pnb__buf_puts(&b, "{\"model\": 3}");
    expect_fault(&b, PNB_FORMAT, "not a SentencePiece model");
    pnb__buf_append(&b, "\x0A\xFF\xFF\xFF\xFF\x0F", 6);
    expect_fault(&b, PNB_FORMAT, "cut short");
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "<unk2>", 0, 2);
    expect_fault(&b, PNB_FORMAT, "both the unknown");
    put_piece(&b, "", 0, 1);
    expect_fault(&b, PNB_FORMAT, "piece 0 is empty");
    put_piece(&b, "a\xFF", 0, 1);
    expect_fault(&b, PNB_FORMAT, "UTF-8");
    put_piece(&b, "a", NAN, 1);
    expect_fault(&b, PNB_FORMAT, "score");
    put_piece(&b, "a", 0, 9);
    expect_fault(&b, PNB_FORMAT, "type");
    for (uint64_t type = 1; type <= 2; type++) {
        put_piece(&b, "<unk>", 0, 2);
        put_piece(&b, "a", -1, 1);
        put_piece(&b, "a", -2, 1);
        put_setting(&b, 2, 3, type);
        expect_fault(&b, PNB_FORMAT, type == 1 ? "two ids" : "differ");
    }
    put_piece(&b, "<unk>", 0, 2);
    put_setting(&b, 2, 3, 3);
    expect_fault(&b, PNB_UNSUPPORTED, "model type 3");
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "ab", 0, 5);
    put_setting(&b, 2, 3, 2);
    expect_fault(&b, PNB_UNSUPPORTED, "unused");
    put_piece(&b, "<unk>", 0, 2);
    pnb__buf map = {0};
    put_bytes(&map, 2, "\xFF\xFF\xFF\xFF....", 8);
    put_bytes(&b, 3, map.data, map.size);
    pnb__buf_reset(&map);
    expect_fault(&b, PNB_FORMAT, "charsmap");
}

/* Control and byte pieces are no text, unused ones are not chosen, bytes stand for the unknown. */
static void piece_types_are_kept(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "ab", -1, 5);
    put_piece(&b, "a", -2, 1);
    put_piece(&b, "b", -2, 1);
    put_piece(&b, "<0x62>", 0, 6);
    put_setting(&b, 2, 42, 1);
    put_setting(&b, 3, 3, 0);
    assert_ok(pnb__tok_from_spiece(&tok, b.data, b.size, "x.model", NULL, &err), &err);
    expect_ids(tok, "ab", IDS(3, 4));
    expect_ids(tok, "</s>", IDS(0));
    expect_ids(tok, "<0x62>", IDS(0)); /* six unknown characters are one token */
    assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
    pnb_tokenizer_free(tok);
    pnb__buf_reset(&b);
}

static void side_files_add_ids_with_gaps(void **state)
{
    scratch *s = *state;
    pnb__buf b = {0};
    pnb_error err = PNB_ERROR_INIT;
    put_piece(&b, "<pad>", 0, 3);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b,
              "\xE2\x96\x81"
              "a",
              -1, 1);
    put_setting(&b, 2, 42, 1);
    scratch_clear(s);
    scratch_file(s, "spiece.model", b.data, b.size);
    pnb_tokenizer *tok = open_one(s->dir);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 4);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 1); /* as SigLIP pads */
    pnb_tokenizer_free(tok);
    static const char config[] =
        "{\"pad_token\": \"<pad>\", \"added_tokens_decoder\": {\"9\": {\"content\": "
        "\"<extra>\", \"special\": true}, \"1\": {\"content\": \"</s>\", \"special\": true}}}";
    scratch_file(s, "tokenizer_config.json", config, sizeof config - 1);
    scratch_file(s, "added_tokens.json", "{\"<more>\": 6}", 13);
    tok = open_one(s->dir);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 10);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 0);
    assert_null(pnb_tokenizer_piece(tok, 7));
    expect_ids(tok, "a</s> a<extra><more>", IDS(3, 1, 3, 9, 6));
    pnb_tokenizer_free(tok);
    scratch_file(s, "added_tokens.json", "{\"<more>\": 3}", 13);
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_FORMAT, "both have id 3");
    scratch_file(s, "added_tokens.json", "{\"<more>\": \"x\"}", 15);
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_FORMAT, "<more>");
    pnb__buf_reset(&b);
}

/* ---- CLIP ---- */

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

static void clip_faults_are_named(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *name, *text;
        pnb_status want;
        const char *says;
    } cases[] = {
        {"a.txt", "", PNB_FORMAT, "no merges"},
        {"a.txt", "#version\n", PNB_FORMAT, "no merges"},
        {"a.txt", "#version\na\n", PNB_FORMAT, "line 2"},
        {"a.txt", "#version\na b c\n", PNB_FORMAT, "line 2"},
        {"a.txt", "#version\na \xFF\n", PNB_FORMAT, "line 2"},
        {"a.txt", "#version\na zz\n", PNB_FORMAT, "right part"},
        {"a.txt", "#version\na b\na b\n", PNB_FORMAT, "repeats"},
        {"a.gz", "\x1F\x8B\x08\x00 not gzip", PNB_FORMAT, "gzip"},
        {"a.gz", "\x1F\x8B", PNB_FORMAT, "gzip"},
        {"README", "some words", PNB_FORMAT, "no tokenizer"},
        {"vocab.json", "{\"a\": 0}", PNB_FORMAT, "model"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *tok;
        pnb_error err = PNB_ERROR_INIT;
        scratch_clear(s);
        const char *path = scratch_file(s, cases[i].name, cases[i].text, strlen(cases[i].text));
        assert_failed(pnb_tokenizer_load(&tok, path, &err), &err, cases[i].want, cases[i].says);
        assert_null(tok);
    }
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_NOT_FOUND, "merges.txt");
    scratch_clear(s);
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_NOT_FOUND, "spiece.model");
}

/* 200 MB of zeros in 200 kB. */
static void packed_bombs_are_refused(void **state)
{
    scratch *s = *state;
    static const char zeros[1 << 16] = {0};
    gzFile f = gzopen(scratch_path(s, "bomb.txt.gz"), "wb9");
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    for (int i = 0; i < 1700; i++)
        assert_int_equal(gzwrite(f, zeros, sizeof zeros), (int)sizeof zeros);
    assert_int_equal(gzclose(f), Z_OK);
    assert_failed(pnb_tokenizer_load(&tok, s->path, &err), &err, PNB_LIMIT, "unpacked");
}

#ifdef PNB_FAULTS
static pnb_status open_spiece(scratch *s, pnb_error *err)
{
    pnb_tokenizer *tok;
    (void)s;
    pnb_status status = pnb_tokenizer_load(&tok, CORPUS "spiece/user_defined.model", err);
    pnb_tokenizer_free(tok);
    return status;
}

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
    fail_every_allocation(open_spiece, *state);
    fail_every_allocation(open_merges, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_spiece_reads_back),
        cmocka_unit_test(spiece_decodes_as_the_library),
        cmocka_unit_test(user_defined_pieces_stay_whole),
        cmocka_unit_test(whitespace_as_suffix),
        cmocka_unit_test(spiece_faults_are_named),
        cmocka_unit_test(piece_types_are_kept),
        cmocka_unit_test(side_files_add_ids_with_gaps),
        cmocka_unit_test(clip_merges_packed_plain_and_saved),
        cmocka_unit_test(special_strings_are_words),
        cmocka_unit_test(vocab_and_merges_agree),
        cmocka_unit_test(clip_faults_are_named),
        cmocka_unit_test(packed_bombs_are_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
