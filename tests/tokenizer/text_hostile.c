/* tokenizer.json files that are damaged or lie: an error that names the fault, never a crash; and
 * captions of any bytes, which always give valid ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "penumbra/tokenizer.h"

#define WORD(vocab) "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":" vocab "}}"
#define BPE(vocab, merges)                                                                         \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}}"
#define UNIGRAM(vocab) "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":" vocab "}}"
#define WITH(section)                                                                              \
    "{" section ",\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}"

static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        pnb_status want;
        const char *says;
    } cases[] = {
        {"", PNB_FORMAT, "line"},
        {"[]", PNB_FORMAT, "object"},
        {"{}", PNB_FORMAT, "model"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", PNB_UNSUPPORTED, "WordPiece"},
        {"{\"model\":{\"type\":\"WordLevel\"}}", PNB_FORMAT, "vocab"},
        {WORD("[]"), PNB_FORMAT, "vocab"},
        {WORD("{}"), PNB_FORMAT, "unk_token"},
        {WORD("{\"u\":-1}"), PNB_FORMAT, "-1"},
        {WORD("{\"u\":4194304}"), PNB_FORMAT, "4194304"},
        {WORD("{\"u\":9223372036854775807}"), PNB_FORMAT, "9223372036854775807"},
        {WORD("{\"u\":\"0\"}"), PNB_FORMAT, "u"},
        {WORD("{\"u\":1.5}"), PNB_FORMAT, "u"},
        {WORD("{\"u\":0,\"a\":0}"), PNB_FORMAT, "both"},
        {WORD("{\"u\":0,\"u\":1}"), PNB_FORMAT, "duplicate"},
        {BPE("{\"a\":0,\"b\":1}", "[\"a b\"]"), PNB_FORMAT, "result"},
        {BPE("{\"a\":0,\"ab\":1}", "[\"a b\"]"), PNB_FORMAT, "right"},
        {BPE("{\"b\":0,\"ab\":1}", "[\"a b\"]"), PNB_FORMAT, "left"},
        {BPE("{\"a\":0}", "[\"a\"]"), PNB_FORMAT, "merge 0"},
        {BPE("{\"a\":0}", "[\"a a a\"]"), PNB_FORMAT, "merge 0"},
        {BPE("{\"a\":0}", "[3]"), PNB_FORMAT, "merge 0"},
        {BPE("{\"a\":0}", "[[\"a\"]]"), PNB_FORMAT, "merge 0"},
        {BPE("{\"a\":0}", "{}"), PNB_FORMAT, "merges"},
        {BPE("{\"a\":0,\"aa\":1}", "[\"a a\",\"a a\"]"), PNB_FORMAT, "repeats"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"dropout\":0.5}}",
         PNB_UNSUPPORTED, "dropout"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"unk_token\":\"x\"}}",
         PNB_FORMAT, "unk_token"},
        {UNIGRAM("[[\"a\"]]"), PNB_FORMAT, "entry 0"},
        {UNIGRAM("[[\"a\",\"b\"]]"), PNB_FORMAT, "entry 0"},
        {UNIGRAM("[[\"a\",1],[\"a\",2]]"), PNB_FORMAT, "two ids"},
        {UNIGRAM("[]"), PNB_FORMAT, "unk_id"},
        {UNIGRAM("{}"), PNB_FORMAT, "vocab"},
        {WITH("\"added_tokens\":3"), PNB_FORMAT, "added_tokens"},
        {WITH("\"added_tokens\":[{}]"), PNB_FORMAT, "content"},
        {WITH("\"added_tokens\":[{\"content\":\"x\"}]"), PNB_FORMAT, "id"},
        {WITH("\"added_tokens\":[{\"content\":\"x\",\"id\":0}]"), PNB_FORMAT, "both"},
        {WITH("\"added_tokens\":[{\"content\":\"u\",\"id\":1}]"), PNB_FORMAT, "two ids"},
        {WITH("\"normalizer\":{}"), PNB_FORMAT, "type"},
        {WITH("\"normalizer\":{\"type\":\"BertNormalizer\"}"), PNB_UNSUPPORTED, "BertNormalizer"},
        {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":"
              "\"(a|b)*\"}}"),
         PNB_UNSUPPORTED, "(a|b)*"},
        {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"[a"
              "\"}}"),
         PNB_UNSUPPORTED, "[a"},
        {WITH("\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{}}"), PNB_FORMAT,
         "Regex"},
        {WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!!!!\"}"),
         PNB_FORMAT, "base64"},
        {WITH(
             "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////////////\"}"),
         PNB_FORMAT, "charsmap"},
        {WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x\"},\"behavior\":"
              "\"Isolated\"}"),
         PNB_UNSUPPORTED, "Split"},
        {WITH("\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"), PNB_UNSUPPORTED, "ByteLevel"},
        {WITH("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}"), PNB_UNSUPPORTED,
         "replacement"},
        {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"), PNB_FORMAT,
         "sequences"},
        {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
              "\"id\":\"q\"}}]}"),
         PNB_FORMAT, "q"},
        {WITH("\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"u\",7],\"cls\":[\"u\",0]"
              "}"),
         PNB_FORMAT, "7"},
        {WITH("\"padding\":{\"pad_id\":5}"), PNB_FORMAT, "pad_id"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":null}}", PNB_FORMAT,
         "merges"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", PNB_FORMAT, "merges"},
        {"{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[],\"vocab\":{\"<0xZZ>\":"
         "0}}}",
         PNB_FORMAT, "<0xZZ>"},
        {"{\"model\":{\"type\":\"Unigram\",\"byte_fallback\":true,\"vocab\":[[\"<0x4g>\",-1]]}}",
         PNB_FORMAT, "<0x4g>"},
        {WITH("\"padding\":{\"direction\":\"Left\"}"), PNB_UNSUPPORTED, "left"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *tok;
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = pnb_tokenizer_parse(&tok, cases[i].json, strlen(cases[i].json), &err);
        if (status != cases[i].want || strstr(err.text, cases[i].says) == NULL)
            fail_msg("case %zu %s: %s \"%s\"", i, cases[i].json, pnb_status_name(status), err.text);
        assert_null(tok);
    }
}

/* Each step alone is harmless: 5 letters become 5 * 500^3 in a file of 2 KB. */
static void growing_replacements_are_stopped(void **state)
{
    (void)state;
    static const char *const kinds[] = {"{\"String\":\"%c\"}", "{\"Regex\":\"%c\"}"};
    for (size_t k = 0; k < PNB_COUNT(kinds); k++) {
        pnb__buf b = {0};
        pnb_tokenizer *tok;
        pnb_error err = PNB_ERROR_INIT;
        int32_t ids[4], *all;
        size_t n;
        pnb__buf_puts(&b, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        for (int i = 0; i < 3; i++) {
            pnb__buf_puts(&b, i > 0 ? "," : "");
            pnb__buf_puts(&b, "{\"type\":\"Replace\",\"pattern\":");
            pnb__buf_printf(&b, kinds[k], 'a' + i);
            pnb__buf_puts(&b, ",\"content\":\"");
            for (int j = 0; j < 500; j++)
                pnb__buf_putc(&b, (char)('b' + i));
            pnb__buf_puts(&b, "\"}");
        }
        pnb__buf_puts(&b, "]},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":"
                          "{\"u\":0}}}");
        assert_int_equal(pnb_tokenizer_parse(&tok, b.data, b.size, NULL), PNB_OK);
        assert_int_equal(pnb_tokenizer_encode(tok, "aaaaa", 5, 4, ids, NULL, &err), PNB_LIMIT);
        assert_non_null(strstr(err.text, "step 2 of the normalizer"));
        assert_int_equal(pnb_tokenizer_encode_all(tok, "aaaaa", 5, true, &all, &n, NULL),
                         PNB_LIMIT);
        assert_int_equal(pnb_tokenizer_encode(tok, "ccc", 3, 4, ids, NULL, NULL), PNB_OK);
        pnb_tokenizer_free(tok);
        pnb__buf_reset(&b);
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

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb_tokenizer *tok;
    pnb__buf_puts(&b, "{\"normalizer\":");
    for (int i = 0; i < 100000; i++)
        pnb__buf_puts(&b, "{\"type\":\"Sequence\",\"normalizers\":[");
    assert_int_equal(pnb_tokenizer_parse(&tok, b.data, b.size, NULL), PNB_LIMIT);
    pnb__buf_reset(&b);
    pnb__buf_puts(&b, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 40; i++)
        pnb__buf_puts(&b, i > 0 ? ",{\"type\":\"NFC\"}" : "{\"type\":\"NFC\"}");
    pnb__buf_puts(&b, "]},\"model\":{\"vocab\":{}}}");
    assert_int_equal(pnb_tokenizer_parse(&tok, b.data, b.size, NULL), PNB_LIMIT);
    pnb__buf_reset(&b);
}

static pnb_tokenizer *trained(pnb_tokenizer_kind kind)
{
    static const char *const captions[] = {"a red star", "a blue star and a red ring"};
    pnb_tokenizer_opts opts = {kind, 300, 1, PNB_CLEAN_LOWER};
    pnb_tokenizer *tok;
    assert_int_equal(pnb_tokenizer_train(&tok, captions, 2, &opts, NULL), PNB_OK);
    return tok;
}

static void truncated_and_damaged_files(void **state)
{
    (void)state;
    static const char *const files[] = {
        PNB_SOURCE_DIR "/tests/fuzz/corpus/tokenizer/word.json",
        PNB_SOURCE_DIR "/tests/fuzz/corpus/tokenizer/bpe.json",
        PNB_SOURCE_DIR "/tests/fuzz/corpus/tokenizer/unigram.json",
    };
    pnb__rng rng;
    pnb__rng_init(&rng, 17, 0);
    for (size_t f = 0; f < PNB_COUNT(files); f++) {
        char *bytes;
        size_t n;
        pnb_tokenizer *tok;
        assert_int_equal(pnb__read_file(files[f], 1 << 20, &bytes, &n, NULL), PNB_OK);
        assert_int_equal(pnb_tokenizer_parse(&tok, bytes, n, NULL), PNB_OK);
        pnb_tokenizer_free(tok);
        while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == ' '))
            n--;
        for (size_t cut = 0; cut < n; cut += 13) {
            pnb_error err = PNB_ERROR_INIT;
            assert_int_equal(pnb_tokenizer_parse(&tok, bytes, cut, &err), PNB_FORMAT);
            assert_true(err.text[0] != '\0');
        }
        for (int round = 0; round < 300; round++) {
            size_t at = (size_t)pnb__rng_below(&rng, n);
            char old = bytes[at];
            int32_t row[16];
            bytes[at] = (char)pnb__rng_u32(&rng);
            if (pnb_tokenizer_parse(&tok, bytes, n, NULL) == PNB_OK) {
                (void)pnb_tokenizer_encode(tok, "A red <b>star</b> [MASK]", 24, 16, row, NULL,
                                           NULL);
                pnb_tokenizer_free(tok);
            }
            bytes[at] = old;
        }
        pnb__free(bytes);
    }
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

static void missing_files_are_named(void **state)
{
    (void)state;
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_tokenizer_load(&tok, "/nonexistent/tokenizer.json", &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "tokenizer.json"));
    assert_null(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(growing_replacements_are_stopped),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(truncated_and_damaged_files),
        cmocka_unit_test(any_bytes_give_valid_ids),
        cmocka_unit_test(one_long_word_is_quick),
        cmocka_unit_test(missing_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
