/* Dropped words: how many, which never, and that seed and draw alone decide. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "train/pcme/word_drop.h"

enum { ROWS = 400, LENGTH = 13 };
static int32_t ids[ROWS * LENGTH], out[2][ROWS * LENGTH];
static unsigned char scratch[LENGTH];
static pnb_tokenizer *tok;

/* <start>, 10 words of 4.., <end>, one of padding */
static int setup(void **state)
{
    (void)state;
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < LENGTH; i++)
            ids[r * LENGTH + i] = i == 0 ? 1 : i == 11 ? 2 : i == 12 ? 0 : 3 + i % 8 + (i > 7);
    return pnb_tokenizer_load(&tok, PNB_SOURCE_DIR "/tests/fuzz/corpus/vocabulary/dict4.pkl",
                              NULL) == PNB_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    pnb_tokenizer_free(tok);
    return 0;
}

static void drop(const pnb__word_drop *d, uint64_t draw, int32_t *to)
{
    pnb__word_drop_texts(d, draw, ids, ROWS, LENGTH, scratch, to);
}

/* Of 4,000 words a tenth becomes <unk>, within four standard deviations; the rest is as it was. */
static void a_tenth_becomes_unknown(void **state)
{
    pnb__word_drop d = {tok, 0.1, false, 7};
    int n = 0;
    (void)state;
    drop(&d, 0, out[0]);
    for (int i = 0; i < ROWS * LENGTH; i++) {
        bool is_word = i % LENGTH > 0 && i % LENGTH < 11;
        n += is_word && out[0][i] == 3 && ids[i] != 3;
        assert_true(out[0][i] == ids[i] || (is_word && out[0][i] == 3));
    }
    int n_known = 0;
    for (int i = 0; i < ROWS * LENGTH; i++)
        n_known += i % LENGTH > 0 && i % LENGTH < 11 && ids[i] != 3;
    assert_true(fabs(n - 0.1 * n_known) < 4 * sqrt(0.09 * n_known));
}

/* As released: of ten words one is taken out besides, and the caption closes up. */
static void and_one_is_taken_out(void **state)
{
    pnb__word_drop d = {tok, 0.1, true, 7};
    int place[10] = {0};
    (void)state;
    d.prob = 0.1;
    drop(&d, 3, out[0]);
    for (int r = 0; r < ROWS; r++) {
        const int32_t *row = out[0] + r * LENGTH;
        assert_int_equal(row[0], 1);
        assert_int_equal(row[10], 2);
        assert_int_equal(row[11], 0);
        assert_int_equal(row[12], 0);
        int i = 1; /* the first word that is not where it was, <unk> aside */
        while (i < 10 && (row[i] == ids[r * LENGTH + i] || row[i] == 3))
            i++;
        place[i - 1]++;
    }
    for (int i = 0; i < 9; i++)
        assert_true(place[i] > 0);
}

static void seed_and_draw_decide(void **state)
{
    pnb__word_drop d = {tok, 0.3, true, 7};
    (void)state;
    drop(&d, 5, out[0]);
    drop(&d, 5, out[1]);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    drop(&d, 6, out[1]);
    assert_memory_not_equal(out[0], out[1], sizeof out[0]);
    d.seed = 8;
    drop(&d, 5, out[1]);
    assert_memory_not_equal(out[0], out[1], sizeof out[0]);
}

/* None at 0; at 1 all are unknown, and none are left where they are taken out too. */
static void the_ends(void **state)
{
    pnb__word_drop d = {tok, 0, true, 7};
    (void)state;
    drop(&d, 1, out[0]);
    assert_memory_equal(out[0], ids, sizeof ids);
    d.prob = 1;
    d.removes = false;
    drop(&d, 1, out[0]);
    for (int i = 1; i < 11; i++)
        assert_int_equal(out[0][i], 3);
    d.removes = true;
    drop(&d, 1, out[0]);
    assert_memory_equal(out[0], ((const int32_t[LENGTH]){1, 2}), LENGTH * sizeof(int32_t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenth_becomes_unknown),
        cmocka_unit_test(and_one_is_taken_out),
        cmocka_unit_test(seed_and_draw_decide),
        cmocka_unit_test(the_ends),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
