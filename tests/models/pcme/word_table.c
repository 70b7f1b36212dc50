/* Rows of the word embedding from a file of vectors: found ones, drawn ones, and what does not fit.
 */
#include "models/pcme/word_table.h"
#include "io/tables/word_vectors.h"
#include "models/weights/weights.h"
#include "tests/io/scratch.h"

#include <math.h>

enum { V = 11, C = 6 };
static float table[V * C];
static pnb_tokenizer *tok;
static pnb__kernels kernels;

static pnb__param embedding(size_t rows)
{
    return (pnb__param){
        .name = "text.embed.weight", .n_dims = 2, .shape = {rows, C}, .n = rows * C, .data = table};
}

/* The vocabulary is <pad> <start> <end> <unk> a dog n't is cafe , . */
static int open_all(void **state)
{
    pnb__kernels_ref_f32(&kernels);
    return scratch_setup(state) == 0 &&
                   pnb_tokenizer_load(&tok,
                                      PNB_SOURCE_DIR "/tests/fuzz/corpus/vocabulary/dict4.pkl",
                                      NULL) == PNB_OK
               ? 0
               : -1;
}

static int close_all(void **state)
{
    pnb_tokenizer_free(tok);
    return scratch_teardown(state);
}

static void read_table(const char *path, uint64_t seed, pnb__word_table_count *count)
{
    pnb__param words = embedding(V);
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__word_table_read(&words, &kernels, tok, path, seed, count, &err), &err);
}

static void found_and_drawn(void **state)
{
    static const char text[] = "dog 1 2 3 4 5 6\nnt 7 8 9 10 11 12\nis 0 0 0 0 0 1\n";
    static const char less[] = "dog 1 2 3 4 5 6\n";
    float first[V * C];
    pnb__word_table_count count;
    scratch *s = *state;
    read_table(scratch_file(s, "v.txt", text, sizeof text - 1), 3, &count);
    assert_int_equal(count.n_words, V);
    assert_int_equal(count.n_exact, 2);
    assert_int_equal(count.n_by_fallback, 1);
    assert_memory_equal(table + (size_t)5 * C, ((const float[C]){1, 2, 3, 4, 5, 6}), 24);
    assert_memory_equal(table + (size_t)6 * C, ((const float[C]){7, 8, 9, 10, 11, 12}), 24);
    double sum = 0, squares = 0;
    int n = 0;
    for (int i = 0; i < V * C; i++) {
        if (i / C >= 5 && i / C <= 7)
            continue;
        sum += (double)table[i];
        squares += (double)table[i] * (double)table[i];
        n++;
    }
    assert_true(fabs(sum / n) < 4 / sqrt(n)); /* N(0,1) */
    assert_true(fabs(squares / n - 1) < 4 * sqrt(2.0 / n));
    memcpy(first, table, sizeof first);
    read_table(scratch_file(s, "v.txt", less, sizeof less - 1), 3, &count);
    assert_memory_equal(table, first, 6 * C * sizeof(float)); /* as if nothing else were there */
    assert_memory_not_equal(table + (size_t)6 * C, first + (size_t)6 * C, 24);
    read_table(scratch_path(s, "v.txt"), 4, &count);
    assert_memory_not_equal(table, first, C * sizeof(float));
}

/* What cannot be read leaves the weight as it was. */
static void refused(void **state)
{
    static const char narrow[] = "dog 1 2 3\n";
    float before[V * C];
    pnb__word_table_count count;
    pnb_error err = PNB_ERROR_INIT;
    scratch *s = *state;
    pnb__param words = embedding(V), other = embedding(V - 1);
    memcpy(before, table, sizeof before);
    const char *path = scratch_file(s, "v.txt", narrow, sizeof narrow - 1);
    assert_failed(pnb__word_table_read(&words, &kernels, tok, path, 1, &count, &err), &err,
                  PNB_FORMAT, "line 1 (\"dog\") has 3 numbers, the words have vectors of 6");
    assert_memory_equal(table, before, sizeof before);
    pnb_error_reset(&err);
    assert_failed(pnb__word_table_read(&other, &kernels, tok, path, 1, &count, &err), &err,
                  PNB_SHAPE, "text.embed.weight has 10 rows, the vocabulary 11 words");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_and_drawn),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
