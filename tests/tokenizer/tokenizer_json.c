/* tokenizer.json as a whole: files that are damaged or lie, an error that names the fault; which
 * model, template and decoder a file asks for. */
#include "tests/tokenizer/support.h"

static const bad_json BAD[] = {
    {"", PNB_FORMAT, "line"},
    {"[]", PNB_FORMAT, "object"},
    {"{}", PNB_FORMAT, "model"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", PNB_UNSUPPORTED, "WordPiece"},
    {"{\"model\":{\"type\":\"WordLevel\"}}", PNB_FORMAT, "vocab"},
    {WORD("[]"), PNB_FORMAT, "vocab"},
    {WORD("{}"), PNB_FORMAT, "unk_token"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}", PNB_FORMAT,
     "WordLevel without an unk_token"},
    {WORD("{\"u\":-1}"), PNB_FORMAT, "-1"},
    {WORD("{\"u\":4194304}"), PNB_FORMAT, "4194304"},
    {WORD("{\"u\":9223372036854775807}"), PNB_FORMAT, "9223372036854775807"},
    {WORD("{\"u\":\"0\"}"), PNB_FORMAT, "\"u\" has an id that is no whole number"},
    {WORD("{\"u\":1.5}"), PNB_FORMAT, "\"u\" has an id that is no whole number"},
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
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"dropout\":0.5}}", PNB_UNSUPPORTED,
     "dropout"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"unk_token\":\"x\"}}", PNB_FORMAT,
     "unk_token"},
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
    {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"), PNB_FORMAT,
     "sequences"},
    {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
          "\"id\":\"q\"}}]}"),
     PNB_FORMAT, "q"},
    {WITH("\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"u\",7],\"cls\":[\"u\",0]"
          "}"),
     PNB_FORMAT, "7"},
    {WITH("\"padding\":{\"pad_id\":5}"), PNB_FORMAT, "pad_id"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":null}}", PNB_FORMAT, "merges"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", PNB_FORMAT, "merges"},
    {"{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[],\"vocab\":{\"<0xZZ>\":"
     "0}}}",
     PNB_FORMAT, "<0xZZ>"},
    {"{\"model\":{\"type\":\"Unigram\",\"byte_fallback\":true,\"vocab\":[[\"<0x4g>\",-1]]}}",
     PNB_FORMAT, "<0x4g>"},
    {WITH("\"padding\":{\"direction\":\"Left\"}"), PNB_UNSUPPORTED, "left"},
};

static void faults_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(BAD); i++)
        expect_refused(BAD[i].json, BAD[i].want, BAD[i].says);
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

/* Files of early versions do not say which model theirs is. */
static void models_are_told_by_their_parts(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        pnb__model_kind want;
    } cases[] = {
        {"{\"model\":{\"unk_id\":0,\"vocab\":[[\"a\",-1]]}}", PNB__MODEL_UNIGRAM},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}", PNB__MODEL_BPE},
        {"{\"model\":{\"unk_token\":\"a\",\"vocab\":{\"a\":0}}}", PNB__MODEL_WORD_LEVEL},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *tok = parse_one(cases[i].json);
        assert_int_equal(tok->model, cases[i].want);
        pnb_tokenizer_free(tok);
    }
}

#define TEMPLATE(single)                                                                           \
    "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" single                     \
    "],\"special_tokens\":{\"s\":{\"ids\":[3,2]},\"e\":{\"ids\":[1]}}},\"model\":{\"unk_token\":"  \
    "\"u\",\"vocab\":{\"u\":0,\"e\":1,\"s\":2,\"t\":3}}}"
#define SPECIAL(name) "{\"SpecialToken\":{\"id\":\"" name "\"}}"
#define SEQUENCE "{\"Sequence\":{\"id\":\"A\"}}"

/* What stands before the sequence and what behind it; one sequence there must be. */
static void templates_are_kept(void **state)
{
    (void)state;
    pnb_tokenizer *tok =
        parse_one(TEMPLATE(SPECIAL("s") "," SEQUENCE "," SPECIAL("e") "," SPECIAL("s")));
    static const int32_t prefix[] = {3, 2}, suffix[] = {1, 3, 2};
    assert_true(tok->prefix.n == 2 && tok->suffix.n == 3);
    assert_memory_equal(tok->prefix.at, prefix, sizeof prefix);
    assert_memory_equal(tok->suffix.at, suffix, sizeof suffix);
    pnb_tokenizer_free(tok);
    expect_refused(TEMPLATE(SEQUENCE "," SEQUENCE), PNB_FORMAT, "holds 2 sequences: want 1");
    expect_refused(WITH("\"post_processor\":{\"type\":\"Magic\"}"), PNB_UNSUPPORTED, "Magic");
    expect_refused(WITH("\"post_processor\":{}"), PNB_FORMAT, "without a type");
}

static void decoders_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        pnb__decoder want;
    } cases[] = {
        {WORD("{\"u\":0}"), PNB__DECODE_SPACES},
        {WITH("\"decoder\":null"), PNB__DECODE_SPACES},
        {UNIGRAM("[[\"u\",-1]]"), PNB__DECODE_METASPACE},
        {WITH("\"decoder\":{\"type\":\"ByteLevel\"}"), PNB__DECODE_BYTES},
        {WITH("\"decoder\":{\"type\":\"BPEDecoder\"}"), PNB__DECODE_SUFFIX},
        {WITH("\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\"},{\"type\":"
              "\"ByteFallback\"},{\"type\":\"Fuse\"}]}"),
         PNB__DECODE_METASPACE},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *tok = parse_one(cases[i].json);
        assert_int_equal(tok->decoder, cases[i].want);
        pnb_tokenizer_free(tok);
    }
}

/* The id, or where there is none the token's name; both must mean the same. */
static void padding_is_read(void **state)
{
    (void)state;
    pnb_tokenizer *tok =
        parse_one("{\"padding\":{\"pad_token\":\"x\"},\"model\":{\"unk_token\":\"u\","
                  "\"vocab\":{\"u\":0,\"x\":5}}}");
    assert_int_equal(pnb_tokenizer_pad_id(tok), 5);
    assert_string_equal(pnb_tokenizer_padding(tok).source, "padding of tokenizer.json");
    pnb_tokenizer_free(tok);
    expect_refused("{\"padding\":{\"pad_id\":0,\"pad_token\":\"x\"},\"model\":{\"unk_token\":\"u\","
                   "\"vocab\":{\"u\":0,\"x\":5}}}",
                   PNB_FORMAT, "pad_id is 0, but pad_token \"x\" has id 5");
    expect_refused(WITH("\"padding\":7"), PNB_FORMAT, "\"padding\" is no object");
    expect_refused(WITH("\"truncation\":{\"direction\":\"Left\"}"), PNB_UNSUPPORTED,
                   "truncation on the left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(truncated_and_damaged_files),
        cmocka_unit_test(models_are_told_by_their_parts),
        cmocka_unit_test(templates_are_kept),
        cmocka_unit_test(decoders_are_told),
        cmocka_unit_test(padding_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
