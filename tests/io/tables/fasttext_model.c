/* Models that fastText 0.9.2 made (skipgram -dim 3 -bucket 7 -minn 2 -maxn 4; cbow -dim 3 -maxn 0)
 * and what its print-word-vectors says of them; then the same bytes cut and changed. */
#include <math.h>

#include "io/tables/word_vectors.h"
#include "tests/io/scratch.h"

#define CORPUS PNB_SOURCE_DIR "/tests/fuzz/corpus/word_vectors/"

enum { N = 8, D = 3 };
/* Places of the file's parts, in bytes. */
enum { VERSION = 4, DIM = 8, BUCKET = 40, ENTRIES = 64, WORDS = 68, PRUNED = 84, FIRST_WORD = 92 };

static const char *const words[N] = {"dog", "t-shirt", "u.s.",        "and/or",
                                     "n't", "<pad>",   "caf\xC3\xA9", "</s>"};

typedef struct rows {
    float values[N * D];
    unsigned char found[N];
    pnb__wanted_words w;
} rows;

static void rows_init(rows *r)
{
    for (int i = 0; i < N * D; i++)
        r->values[i] = 77;
    r->w = (pnb__wanted_words){words, N, D, r->values, r->found};
}

/* fastText prints five digits. */
static void expect_row(const rows *r, int i, pnb__word_found how, const double want[D])
{
    assert_int_equal(r->found[i], how);
    for (int d = 0; d < D; d++)
        if (!(fabs((double)r->values[i * D + d] - want[d]) <= 6e-6))
            fail_msg("%s[%d] is %.7f, not %.5f", words[i], d, (double)r->values[i * D + d],
                     want[d]);
}

static void as_fasttext_prints_them(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    rows r;
    (void)state;
    rows_init(&r);
    assert_ok(pnb__word_vectors_read(CORPUS "fasttext_model.bin", &r.w, &err), &err);
    expect_row(&r, 0, PNB__WORD_EXACT, (const double[]){-0.13067, 0.34228, 0.015696});
    expect_row(&r, 1, PNB__WORD_BY_FALLBACK, (const double[]){-0.093868, 0.29861, 0.038583});
    expect_row(&r, 2, PNB__WORD_EXACT, (const double[]){-0.088909, 0.28922, 0.039847});
    expect_row(&r, 3, PNB__WORD_BY_FALLBACK, (const double[]){-0.077832, 0.25083, 0.033663});
    expect_row(&r, 4, PNB__WORD_MISSING, (const double[]){77, 77, 77});
    expect_row(&r, 5, PNB__WORD_MISSING, (const double[]){77, 77, 77});
    expect_row(&r, 6, PNB__WORD_EXACT, (const double[]){-0.074766, 0.25486, 0.039543});
    expect_row(&r, 7, PNB__WORD_EXACT, (const double[]){-0.085704, 0.1897, -0.0077297});
}

static void without_ngrams(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    rows r;
    (void)state;
    rows_init(&r);
    assert_ok(pnb__word_vectors_read(CORPUS "fasttext_no_ngrams.bin", &r.w, &err), &err);
    expect_row(&r, 0, PNB__WORD_EXACT, (const double[]){-0.35951, 0.33927, -0.26884});
    expect_row(&r, 6, PNB__WORD_EXACT, (const double[]){-0.023462, 0.022141, -0.017545});
}

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes model_bytes(void)
{
    bytes b;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__read_file(CORPUS "fasttext_model.bin", 1 << 20, &b.data, &b.size, &err), &err);
    return b;
}

static void refuse(scratch *s, const bytes *b, size_t size, pnb_status status, const char *says)
{
    pnb_error err = PNB_ERROR_INIT;
    rows r;
    rows_init(&r);
    const char *path = scratch_file(s, "m.bin", b->data, size);
    assert_failed(pnb__word_vectors_read(path, &r.w, &err), &err, status, says);
    assert_true(strstr(err.text, path) == err.text);
}

/* In every part, the output layer too, which is not used. */
static void cut_anywhere(void **state)
{
    bytes b = model_bytes();
    for (size_t size = 4; size < b.size; size++)
        refuse(*state, &b, size, PNB_FORMAT, "it is cut");
    pnb__free(b.data);
}

static void changed(void **state)
{
    static const struct {
        size_t at;
        int32_t value;
        pnb_status status;
        const char *says;
    } cases[] = {
        {VERSION, 13, PNB_UNSUPPORTED, "a fastText model of version 13"},
        {DIM, 4, PNB_FORMAT, "has vectors of 4, the words have 3"},
        {DIM, -3, PNB_FORMAT, "has vectors of -3"},
        {BUCKET, 0, PNB_FORMAT, "has n-grams and no rows for them"},
        {BUCKET, 8, PNB_FORMAT, "fewer rows than words and buckets"},
        {ENTRIES, 9, PNB_FORMAT, "counts more words than entries"},
        {ENTRIES, INT32_MAX, PNB_FORMAT, "it is cut"},
        {WORDS, -1, PNB_FORMAT, "counts more words than entries"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        bytes b = model_bytes();
        memcpy(b.data + cases[i].at, &cases[i].value, sizeof cases[i].value);
        refuse(*state, &b, b.size, cases[i].status, cases[i].says);
        pnb__free(b.data);
    }
}

/* Where the matrix begins: behind the last entry. */
static size_t matrix_at(const bytes *b)
{
    int32_t n;
    size_t at = FIRST_WORD;
    memcpy(&n, b->data + ENTRIES, sizeof n);
    for (int32_t i = 0; i < n; i++)
        at += strlen(b->data + at) + 1 + 9;
    return at;
}

static void compressed_or_not_finite(void **state)
{
    bytes b = model_bytes();
    const size_t at = matrix_at(&b);
    const float bad = NAN;
    const int64_t pruned = 5;
    b.data[at] = 1;
    refuse(*state, &b, b.size, PNB_UNSUPPORTED, "a compressed fastText model (.ftz)");
    b.data[at] = 0;
    assert_memory_equal(b.data + FIRST_WORD, "dog", 4); /* its row is the first */
    memcpy(b.data + at + 17, &bad, sizeof bad);
    refuse(*state, &b, b.size, PNB_FORMAT, "the vector of \"dog\" is not finite");
    memcpy(b.data + PRUNED, &pruned, sizeof pruned);
    refuse(*state, &b, b.size, PNB_UNSUPPORTED, "a compressed fastText model (.ftz)");
    pnb__free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_fasttext_prints_them),
        cmocka_unit_test(without_ngrams),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed),
        cmocka_unit_test(compressed_or_not_finite),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
