/* Tokenizers opened, made from text and asked for ids; models of SentencePiece put together piece
 * by piece; ids of the reference implementations (tests/golden/tokenizers). */
#ifndef TESTS_TOKENIZER_SUPPORT_H
#define TESTS_TOKENIZER_SUPPORT_H

#include "io/json/json.h"
#include "penumbra/safetensors.h"
#include "tests/io/scratch.h"
#include "tokenizer/tokenizer_json.h"

#define GOLDEN PNB_SOURCE_DIR "/tests/golden/tokenizers/"
#define CORPUS PNB_SOURCE_DIR "/tests/fuzz/corpus/"

static inline pnb_tokenizer *open_one(const char *path)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_tokenizer_load(&tok, path, &err), &err);
    return tok;
}

/* Of the text of a tokenizer.json. */
static inline pnb_tokenizer *parse_one(const char *json)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_tokenizer_parse(&tok, json, strlen(json), &err), &err);
    return tok;
}

/* That text is refused so. */
static inline void expect_refused(const char *json, pnb_status want, const char *says)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb_tokenizer_parse(&tok, json, strlen(json), &err);
    if (status != want || strstr(err.text, says) == NULL)
        fail_msg("%s: %s \"%s\"", json, pnb_status_name(status), err.text);
    assert_null(tok);
}

#define WORD(vocab) "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":" vocab "}}"
#define BPE(vocab, merges)                                                                         \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}}"
#define UNIGRAM(vocab) "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":" vocab "}}"
#define WITH(section)                                                                              \
    "{" section ",\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}"

typedef struct bad_json {
    const char *json;
    pnb_status want;
    const char *says;
} bad_json;

static inline void expect_ids(const pnb_tokenizer *tok, const char *text, const int32_t *want,
                              size_t n)
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
static inline void expect_agree(const pnb_tokenizer *a, const pnb_tokenizer *b, const char *strings)
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

/* ---- spiece.model ---- */

static inline void put_varint(pnb__buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        pnb__buf_putc(b, (char)((value & 0x7F) | 0x80));
    pnb__buf_putc(b, (char)value);
}

static inline void put_bytes(pnb__buf *b, unsigned number, const void *bytes, size_t n)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, n);
    pnb__buf_append(b, bytes, n);
}

static inline void put_piece(pnb__buf *file, const char *text, float score, unsigned type)
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
static inline void put_setting(pnb__buf *file, unsigned section, unsigned number, uint64_t value)
{
    pnb__buf b = {0};
    put_varint(&b, number << 3);
    put_varint(&b, value);
    put_bytes(file, section, b.data, b.size);
    pnb__buf_reset(&b);
}

/* ---- golden cases ---- */

static inline json_t *load_json(const char *path)
{
    json_t *value;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__json_load_file(&value, path, 0, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return value;
}

static inline const int64_t *i64_tensor(const pnb_safetensors *st, const char *name)
{
    const pnb_array_view *view = pnb_safetensors_find(st, name);
    if (view == NULL || view->dtype != PNB_I64)
        fail_msg("tensor %s", name);
    return view->data;
}

/* Compares the ids of every cleaned string with "<name>.flat" and "<name>.offsets". */
static inline void compare_flat(const pnb_tokenizer *tok, const json_t *strings,
                                const pnb_safetensors *st, const char *name)
{
    char flat_name[64], offsets_name[64];
    snprintf(flat_name, sizeof flat_name, "%s.flat", name);
    snprintf(offsets_name, sizeof offsets_name, "%s.offsets", name);
    const int64_t *flat = i64_tensor(st, flat_name), *offsets = i64_tensor(st, offsets_name);
    int n_wrong = 0;
    for (size_t i = 0; i < json_array_size(strings); i++) {
        const json_t *string = json_array_get(strings, i);
        int32_t *ids;
        size_t n;
        assert_int_equal(pnb_tokenizer_encode_all(tok, json_string_value(string),
                                                  json_string_length(string), false, &ids, &n,
                                                  NULL),
                         PNB_OK);
        bool same = (int64_t)n == offsets[i + 1] - offsets[i];
        for (size_t k = 0; k < n && same; k++)
            same = ids[k] == flat[offsets[i] + (int64_t)k];
        if (!same)
            print_error("%s: string %zu \"%s\" differs\n", name, i, json_string_value(string));
        n_wrong += !same;
        pnb_tokenizer_ids_free(ids);
    }
    assert_int_equal(n_wrong, 0);
}

static inline void compare_padded(const pnb_tokenizer *tok, const json_t *strings,
                                  const pnb_safetensors *st, const char *name)
{
    const pnb_array_view *view = pnb_safetensors_find(st, name);
    assert_non_null(view);
    const int32_t *want = view->data;
    int length = (int)view->shape[1];
    int32_t *row = malloc(sizeof *row * (size_t)length);
    for (size_t i = 0; i < json_array_size(strings); i++) {
        const json_t *string = json_array_get(strings, i);
        assert_int_equal(pnb_tokenizer_encode(tok, json_string_value(string),
                                              json_string_length(string), length, row, NULL, NULL),
                         PNB_OK);
        if (memcmp(row, want + i * (size_t)length, sizeof *row * (size_t)length) != 0)
            fail_msg("%s: string %zu \"%s\" differs", name, i, json_string_value(string));
    }
    free(row);
}

/* ---- the stages up to words ---- */

typedef struct joined_words {
    pnb__buf text;
} joined_words;

static inline pnb_status join_word(void *user, const char *word, size_t n, pnb_error *err)
{
    joined_words *j = user;
    (void)err;
    pnb__buf_putc(&j->text, '|');
    pnb__buf_append(&j->text, word, n);
    return PNB_OK;
}

/* Words that a file with this normalizer and pre_tokenizer makes of a text, each after a '|'. */
static inline void expect_words(const char *normalizer, const char *splitter, const char *text,
                                const char *want)
{
    pnb__buf json = {0};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    joined_words j = {{0}};
    pnb__sink sink = {join_word, NULL, &j};
    pnb__buf_printf(&json,
                    "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",\"vocab\":"
                    "{},\"merges\":[]}}",
                    normalizer, splitter);
    if (pnb_tokenizer_parse(&tok, json.data, json.size, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(pnb__tok_words(tok, text, strlen(text), &sink, NULL), PNB_OK);
    if (strcmp(j.text.data != NULL ? j.text.data : "", want) != 0)
        fail_msg("%s %s \"%s\": \"%s\", want \"%s\"", normalizer, splitter, text, j.text.data,
                 want);
    pnb__buf_reset(&j.text);
    pnb__buf_reset(&json);
    pnb_tokenizer_free(tok);
}

#define REPLACE(pattern, content)                                                                  \
    "{\"type\":\"Replace\",\"pattern\":" pattern ",\"content\":\"" content "\"}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

/* ---- training ---- */

static const char *const TEXTS[] = {
    "a small red star left of a large blue ring",
    "A small blue star above a red ring.",
    "Stars and rings, and stars",
    "two GREEN squares below a caf\xC3\xA9",
    "it's a dog's ball; it's red",
    "snake_case and jack-o'-lantern",
};
enum { N_TEXTS = sizeof TEXTS / sizeof TEXTS[0] };

static inline pnb_tokenizer *train(pnb_tokenizer_kind kind, int vocab_size, int min_count,
                                   pnb_clean clean)
{
    pnb_tokenizer_opts opts = {kind, vocab_size, min_count, clean};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_tokenizer_train(&tok, TEXTS, N_TEXTS, &opts, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return tok;
}

#endif
