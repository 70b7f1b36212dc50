/* Word vectors of every form: which words are found and how, what is not read, what is refused and
 * by which line. */
#include <math.h>

#include "io/tables/word_vectors.h"
#include "tests/io/scratch.h"

enum { N = 7, D = 3 };
static const char *const words[N] = {"dog", "t-shirt", "u.s.",       "and/or",
                                     "n't", "<pad>",   "caf\xC3\xA9"};

typedef struct rows {
    float values[N * D];
    unsigned char found[N];
    pnb__wanted_words w;
} rows;

static void rows_init(rows *r)
{
    for (int i = 0; i < N * D; i++)
        r->values[i] = 77;
    memset(r->found, 9, sizeof r->found);
    r->w = (pnb__wanted_words){words, N, D, r->values, r->found};
}

static void read_file(rows *r, const char *path)
{
    pnb_error err = PNB_ERROR_INIT;
    rows_init(r);
    assert_ok(pnb__word_vectors_read(path, &r->w, &err), &err);
}

/* Row i is (first, first + 1, first + 2), found so; first 77 for all: not written. */
static void expect_word(const rows *r, int i, float first, pnb__word_found how)
{
    float step = first == 77 ? 0 : 1;
    if (r->found[i] != how || r->values[i * D] != first || r->values[i * D + 1] != first + step ||
        r->values[i * D + 2] != first + 2 * step)
        fail_msg("%s: found %d, (%g, %g, %g)", words[i], r->found[i], (double)r->values[i * D],
                 (double)r->values[i * D + 1], (double)r->values[i * D + 2]);
}

#define GLOVE                                                                                      \
    "the 9 9 9\ndog 1 2 3\ntshirt 4 5 6\nus 7 8 9\nand 10 11 12\nnt 13 14 15\n"                    \
    "caf\xC3\xA9 16e0 1.7e1 18\n"

static void expect_glove(const rows *r)
{
    expect_word(r, 0, 1, PNB__WORD_EXACT);
    expect_word(r, 1, 4, PNB__WORD_BY_FALLBACK);  /* without the hyphen */
    expect_word(r, 2, 7, PNB__WORD_BY_FALLBACK);  /* without full stops */
    expect_word(r, 3, 10, PNB__WORD_BY_FALLBACK); /* in front of the slash */
    expect_word(r, 4, 13, PNB__WORD_BY_FALLBACK); /* without the apostrophe */
    expect_word(r, 5, 77, PNB__WORD_MISSING);
    expect_word(r, 6, 16, PNB__WORD_EXACT);
}

static void text_with_and_without_header(void **state)
{
    scratch *s = *state;
    static const char *const texts[] = {GLOVE, "7 3\n" GLOVE};
    rows r;
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        read_file(&r, scratch_file(s, "v.txt", texts[i], strlen(texts[i])));
        expect_glove(&r);
        read_file(&r, scratch_file(s, "v.txt", texts[i], strlen(texts[i]) - 1)); /* no last end */
        expect_glove(&r);
    }
    static const char crlf[] = "2 3\r\nthe 9 9 9\r\ndog 1 2 3 \r\n"; /* and word2vec's last space */
    read_file(&r, scratch_file(s, "v.txt", crlf, sizeof crlf - 1));
    expect_word(&r, 0, 1, PNB__WORD_EXACT);
}

/* The word itself wins over its other spelling, wherever it stands; of two the last. */
static void which_of_several(void **state)
{
    scratch *s = *state;
    static const char before[] = "t-shirt 1 2 3\ntshirt 4 5 6\ndog 1 1 1\ndog 5 6 7\n";
    static const char behind[] = "tshirt 4 5 6\ntshirt 7 8 9\nt-shirt 1 2 3\n";
    static const char twice[] = "tshirt 4 5 6\ntshirt 7 8 9\n";
    rows r;
    read_file(&r, scratch_file(s, "v.txt", before, sizeof before - 1));
    expect_word(&r, 1, 1, PNB__WORD_EXACT);
    expect_word(&r, 0, 5, PNB__WORD_EXACT);
    read_file(&r, scratch_file(s, "v.txt", behind, sizeof behind - 1));
    expect_word(&r, 1, 1, PNB__WORD_EXACT);
    read_file(&r, scratch_file(s, "v.txt", twice, sizeof twice - 1));
    expect_word(&r, 1, 7, PNB__WORD_BY_FALLBACK);
}

/* Some words of GloVe 840B are several, and are passed over by their width from the end. */
static void words_with_spaces(void **state)
{
    scratch *s = *state;
    static const char text[] = ". . . 1 2 3\nat a@b.com 4 5 6\ndog 1 2 3\n";
    rows r;
    read_file(&r, scratch_file(s, "v.txt", text, sizeof text - 1));
    expect_word(&r, 0, 1, PNB__WORD_EXACT);
}

static void put_vector(pnb__buf *b, const char *word, float first, const char *end)
{
    float v[D] = {first, first + 1, first + 2};
    pnb__buf_puts(b, word);
    pnb__buf_putc(b, ' ');
    pnb__buf_append(b, v, sizeof v);
    pnb__buf_puts(b, end);
}

static void binary(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    for (int with_ends = 0; with_ends < 2; with_ends++) {
        pnb__buf b = {0};
        rows r;
        pnb__buf_puts(&b, "3 3\n");
        put_vector(&b, "the", 0, with_ends ? "\n" : "");
        put_vector(&b, "tshirt", 4, with_ends ? "\n" : "");
        put_vector(&b, "dog", -2, with_ends ? "\n" : "");
        read_file(&r, scratch_file(s, "v.bin", b.data, b.size));
        expect_word(&r, 0, -2, PNB__WORD_EXACT);
        expect_word(&r, 1, 4, PNB__WORD_BY_FALLBACK);
        const char *cut = scratch_file(s, "v.bin", b.data, b.size - 6);
        assert_failed(pnb__word_vectors_read(cut, &r.w, &err), &err, PNB_FORMAT,
                      "the file ends in word 3 of 3; it is cut");
        pnb_error_reset(&err);
        pnb__buf_reset(&b);
    }
    pnb__buf b = {0};
    rows r;
    rows_init(&r);
    pnb__buf_puts(&b, "1 3\n");
    put_vector(&b, "dog", NAN, "");
    assert_failed(pnb__word_vectors_read(scratch_file(s, "v.bin", b.data, b.size), &r.w, &err),
                  &err, PNB_FORMAT, "the vector of \"dog\" is not finite");
    pnb__buf_reset(&b);
}

/* Lines across the border of the buffer, which is a megabyte. */
static void longer_than_the_buffer(void **state)
{
    scratch *s = *state;
    pnb__buf b = {0};
    rows r;
    for (int i = 0; i < 120000; i++)
        pnb__buf_printf(&b, "word%d %d %d %d\n", i, i, i + 1, i + 2);
    pnb__buf_puts(&b, "dog 1 2 3\n");
    assert_true(b.size > (size_t)2 << 20);
    read_file(&r, scratch_file(s, "v.txt", b.data, b.size));
    expect_word(&r, 0, 1, PNB__WORD_EXACT);
    b.size = 0;
    for (int i = 0; i < 400000; i++)
        pnb__buf_puts(&b, "0 1 ");
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__word_vectors_read(scratch_file(s, "v.txt", b.data, b.size), &r.w, &err),
                  &err, PNB_LIMIT, "line 1 has more than 1048576 bytes");
    pnb__buf_reset(&b);
}

static void refused(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *bytes;
        size_t n;
        pnb_status status;
        const char *says;
    } cases[] = {
#define CASE(bytes, status, says) {bytes, sizeof(bytes) - 1, status, says}
        CASE("the 1 2 3\nof 1 2\n", PNB_FORMAT,
             "line 2 (\"of\") has 2 numbers, the words have vectors of 3"),
        CASE("the 1 2 3\nof 1 2 3 4\n", PNB_FORMAT, "line 2 (\"of\") has 4 numbers"),
        CASE("the\n", PNB_FORMAT, "line 1 (\"the\") has 0 numbers"),
        CASE(" 1 2 3\n", PNB_FORMAT, "line 1 (\"\") has 3 numbers"),
        CASE("dog 1 x 3\n", PNB_FORMAT, "line 1 (\"dog\"): \"x\" is no finite number"),
        CASE("dog 1 inf 3\n", PNB_FORMAT, "\"inf\" is no finite number"),
        CASE("2 300\nthe 1 2 3\n", PNB_FORMAT,
             "the first line says vectors of 300, the words have 3"),
        CASE("3 3\nthe 1 2 3\ndog 1 2 3\n", PNB_FORMAT,
             "the first line says 3 words, the file has 2"),
        CASE("", PNB_FORMAT, "no words"),
        CASE("\xBA\x16\x4F\x2F\x0C\0\0\0", PNB_FORMAT, "the fastText model ends in its settings"),
        CASE("\x1F\x8B\x08\0", PNB_UNSUPPORTED, "packed by gzip; unpack it first"),
        CASE("PK\3\4\0\0", PNB_UNSUPPORTED, "packed by zip"),
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        rows r;
        pnb_error err = PNB_ERROR_INIT;
        rows_init(&r);
        const char *path = scratch_file(s, "v.txt", cases[i].bytes, cases[i].n);
        assert_failed(pnb__word_vectors_read(path, &r.w, &err), &err, cases[i].status,
                      cases[i].says);
        assert_true(strstr(err.text, path) == err.text);
    }
    rows r;
    pnb_error err = PNB_ERROR_INIT;
    rows_init(&r);
    assert_failed(pnb__word_vectors_read("/nonexistent/v.txt", &r.w, &err), &err, PNB_NOT_FOUND,
                  "/nonexistent/v.txt");
    pnb_error_reset(&err);
    assert_failed(pnb__word_vectors_read(s->dir, &r.w, &err), &err, PNB_IO, s->dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_with_and_without_header),
        cmocka_unit_test(which_of_several),
        cmocka_unit_test(words_with_spaces),
        cmocka_unit_test(binary),
        cmocka_unit_test(longer_than_the_buffer),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
