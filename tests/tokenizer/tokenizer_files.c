/* Which file a tokenizer is opened from: by its name, by its first bytes, the first of a folder;
 * what is packed; what is none. */
#include <zlib.h>

#include "tests/tokenizer/support.h"

#define JSON WORD("{\"u\":0,\"json\":1}")
#define MERGES "#version\na b\n"
#define PICKLE                                                                                     \
    "}(U\x08word2idx}(U\x05<pad>K\0U\x07<start>K\1U\x05<end>K\2U\x05<unk>K\3U\x07pickledK\4uu."

static size_t put_model(char *bytes, size_t n)
{
    pnb__buf b = {0};
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "spiece", -1, 1);
    assert_true(b.size <= n);
    memcpy(bytes, b.data, b.size);
    n = b.size;
    pnb__buf_reset(&b);
    return n;
}

/* Each holds a piece that the others do not. */
static void expect_found(const char *path, const char *piece)
{
    pnb_tokenizer *tok = open_one(path);
    if (pnb_tokenizer_find(tok, piece) < 0)
        fail_msg("%s: no \"%s\"", path, piece);
    pnb_tokenizer_free(tok);
}

/* From the last of the order to the first: each new file takes precedence. */
static void the_first_of_a_folder(void **state)
{
    scratch *s = *state;
    char model[128];
    size_t n = put_model(model, sizeof model);
    static const char other[] = "#version\nc d\n";
    scratch_clear(s);
    char *weights = NULL; /* PCME's, with words beside the model */
    size_t n_weights = 0;
    assert_int_equal(pnb__read_file(PNB_SOURCE_DIR "/tests/models/pcme/data/released.pth", 1 << 20,
                                    &weights, &n_weights, NULL),
                     PNB_OK);
    scratch_file(s, "model.pth", weights, n_weights);
    pnb__free(weights);
    expect_found(s->dir, "beak");
    scratch_file(s, "vocab.txt", "line\n", 5);
    expect_found(s->dir, "line");
    scratch_file(s, "vocab.pkl", PICKLE, sizeof PICKLE - 1);
    expect_found(s->dir, "pickled");
    scratch_file(s, "bpe_simple_vocab_16e6.txt", MERGES, strlen(MERGES));
    expect_found(s->dir, "ab");
    scratch_file(s, "bpe_simple_vocab_16e6.txt.gz", other,
                 strlen(other)); /* plain in spite of its name */
    expect_found(s->dir, "cd");
    scratch_file(s, "merges.txt", MERGES, strlen(MERGES));
    const char *vocab = "{\"a\":0,\"b\":1,\"ab\":2,\"pair\":3}";
    scratch_file(s, "vocab.json", vocab, strlen(vocab));
    expect_found(s->dir, "pair");
    expect_found(scratch_path(s, "vocab.json"), "pair"); /* either half opens both */
    expect_found(scratch_path(s, "merges.txt"), "pair");
    scratch_file(s, "sentencepiece.bpe.model", model, n);
    expect_found(s->dir, "spiece");
    scratch_file(s, "spiece.model", "damaged", 7);
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_FORMAT, "spiece.model");
    scratch_file(s, "tokenizer.json", JSON, strlen(JSON));
    expect_found(s->dir, "json");
}

static void told_by_the_first_bytes(void **state)
{
    scratch *s = *state;
    char model[128];
    size_t n = put_model(model, sizeof model);
    scratch_clear(s);
    expect_found(scratch_file(s, "words", " \n\t" JSON, strlen(JSON) + 3), "json");
    expect_found(scratch_file(s, "words", MERGES, strlen(MERGES)), "ab");
    expect_found(scratch_file(s, "words", model, n), "spiece");
    gzFile f = gzopen(scratch_path(s, "words"), "wb");
    assert_int_equal(gzwrite(f, JSON, strlen(JSON)), strlen(JSON));
    assert_int_equal(gzclose(f), Z_OK);
    expect_found(s->path, "json");
    expect_found(scratch_file(s, "merges.txt", MERGES, strlen(MERGES)), "ab"); /* half of no pair */
}

static void faults_are_named(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *name, *text;
        pnb_status want;
        const char *says;
    } cases[] = {
        {"a.gz", "\x1F\x8B\x08\x00 not gzip", PNB_FORMAT, "gzip"},
        {"a.gz", "\x1F\x8B", PNB_FORMAT, "gzip"},
        {"README", "some words", PNB_FORMAT, "no tokenizer"},
        {"vocab.txt", "", PNB_FORMAT, "is empty"},
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
    pnb_tokenizer *tok; /* vocab.json is left, alone */
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_NOT_FOUND, "merges.txt");
    scratch_clear(s);
    scratch_file(s, "model.pth", "damaged", 7); /* no weights, no words */
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
        cmocka_unit_test(the_first_of_a_folder),   cmocka_unit_test(told_by_the_first_bytes),
        cmocka_unit_test(faults_are_named),        cmocka_unit_test(packed_bombs_are_refused),
        cmocka_unit_test(missing_files_are_named),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
