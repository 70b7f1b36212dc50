/* Token ids of the reference implementations (tests/golden/tokenizers): CLIP's BPE with a short
 * list of merges, made into a tokenizer.json here, and a SentencePiece unigram model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/safetensors.h"
#include "penumbra/tokenizer.h"
#include "tokenizer/text.h"

#define GOLDEN PNB_SOURCE_DIR "/tests/golden/tokenizers/"

static json_t *load_json(const char *path)
{
    json_t *value;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__json_load_file(&value, path, 0, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return value;
}

static const int64_t *i64_tensor(const pnb_safetensors *st, const char *name)
{
    const pnb_array_view *view = pnb_safetensors_find(st, name);
    if (view == NULL || view->dtype != PNB_I64)
        fail_msg("tensor %s", name);
    return view->data;
}

/* Compares the ids of every cleaned string with "<name>.flat" and "<name>.offsets". */
static void compare_flat(const pnb_tokenizer *tok, const json_t *strings, const pnb_safetensors *st,
                         const char *name)
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

static void compare_padded(const pnb_tokenizer *tok, const json_t *strings,
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

static void unigram_ids_agree(void **state)
{
    (void)state;
    pnb_tokenizer *tok;
    pnb_safetensors *st;
    pnb_error err = PNB_ERROR_INIT;
    json_t *cleaned = load_json(GOLDEN "sp_unigram_identity/cleaned.json");
    if (pnb_tokenizer_load(&tok, GOLDEN "sp_unigram_identity", &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(
        pnb_safetensors_open(&st, GOLDEN "sp_unigram_identity/tensors.safetensors", NULL), PNB_OK);
    compare_flat(tok, cleaned, st, "clean");
    assert_int_equal(pnb_tokenizer_pad_id(tok),
                     1); /* unsaid in the file: as SigLIP's loader pads */
    assert_int_equal(pnb_tokenizer_set_pad_id(tok, 500, NULL), PNB_ARG);
    compare_padded(tok, cleaned, st, "padded");
    assert_int_equal(pnb_tokenizer_unk_id(tok), 2);
    pnb_tokenizer_free(tok);
    pnb_safetensors_free(st);
    json_decref(cleaned);
}

static void cleaning_agrees(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        pnb_clean clean;
    } cases[] = {{"clip_bpe", PNB_CLEAN_LOWER}, {"sp_unigram_identity", PNB_CLEAN_CANONICALIZE}};
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        char path[512];
        int n_compared = 0;
        snprintf(path, sizeof path, GOLDEN "%s/strings.json", cases[k].name);
        json_t *strings = load_json(path);
        snprintf(path, sizeof path, GOLDEN "%s/cleaned.json", cases[k].name);
        json_t *cleaned = load_json(path);
        for (size_t i = 0; i < json_array_size(strings); i++) {
            const json_t *string = json_array_get(strings, i);
            const char *want = json_string_value(json_array_get(cleaned, i));
            /* as the reference ran: without ftfy, and with \s+ instead of split() */
            const pnb__cleaning how = {.mode = cases[k].clean, .regex_space = true};
            pnb__buf got;
            assert_int_equal(
                pnb__clean(&how, json_string_value(string), json_string_length(string), &got, NULL),
                PNB_OK);
            if (strcmp(got.data, want) != 0)
                fail_msg("%s %zu: \"%s\", want \"%s\"", cases[k].name, i, got.data, want);
            pnb__buf_reset(&got);
            n_compared++;
        }
        assert_true(n_compared > 100);
        json_decref(strings);
        json_decref(cleaned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clip_ids_agree),
                                       cmocka_unit_test(unigram_ids_agree),
                                       cmocka_unit_test(cleaning_agrees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
