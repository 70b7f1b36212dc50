/* Masks of the second pass: what is drawn, how often, what is never touched, and that draws depend
 * on seed and step only. */
#include "tests/train/fixture.h"

#include <math.h>

#include "train/contrastive/mask.h"

enum { LENGTH = 12, VOCAB = 40 };

static int setup(void **state)
{
    static const char *const texts[] = {"a red star left of a blue circle",
                                        "three small green squares"};
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    opts.kind = PNB_TOKENIZER_WORD;
    opts.vocab_size = VOCAB;
    pnb_tokenizer *tok = NULL;
    ASSERT_OK(pnb_tokenizer_train(&tok, texts, 2, &opts, &err));
    *state = tok;
    return 0;
}

static int teardown(void **state)
{
    pnb_tokenizer_free(*state);
    return 0;
}

static void test_patches(void **state)
{
    (void)state;
    enum { PATCHES = 36, STEPS = 400 };
    size_t n_kept = pnb__mask_n_kept(PATCHES, 0.25);
    uint32_t scratch[PATCHES];
    int32_t kept[PATCHES], again[PATCHES], counts[PATCHES] = {0};
    assert_int_equal(n_kept, 9);
    assert_int_equal(pnb__mask_n_kept(3, 0.1), 1);
    assert_int_equal(pnb__mask_n_kept(PATCHES, 1), 36); /* int(n * keep), never rounded up */
    assert_int_equal(pnb__mask_n_kept(PATCHES, 0.3), 10);
    assert_int_equal(pnb__mask_n_kept(49, 0.25), 12);
    assert_int_equal(pnb__mask_n_kept(196, 0.2499), 48);
    assert_int_equal(pnb__mask_n_kept(9, 0.99), 8);
    for (int64_t step = 0; step < STEPS; step++) {
        pnb__mask_patches(5, step, PATCHES, n_kept, scratch, kept);
        for (size_t i = 0; i < n_kept; i++) {
            assert_true(kept[i] >= 0 && kept[i] < PATCHES);
            assert_true(i == 0 || kept[i] > kept[i - 1]);
            counts[kept[i]]++;
        }
        pnb__mask_patches(5, step, PATCHES, n_kept, scratch, again);
        assert_memory_equal(kept, again, n_kept * sizeof *kept);
    }
    for (int i = 0; i < PATCHES; i++) /* 100 expected, deviation 8.7 */
        assert_true(counts[i] > 60 && counts[i] < 140);
    pnb__mask_patches(6, STEPS - 1, PATCHES, n_kept, scratch, again);
    assert_memory_not_equal(kept, again, n_kept * sizeof *kept);
}

static pnb__text_masker masker(const pnb_tokenizer *tok, pnb_text_mask mode, double prob)
{
    return (pnb__text_masker){.tokenizer = tok,
                              .mode = mode,
                              .prob = prob,
                              .mask_id = pnb_tokenizer_mask_id(tok),
                              .pad_id = pnb_tokenizer_pad_id(tok),
                              .seed = 3};
}

static void encode(const pnb_tokenizer *tok, int32_t *ids)
{
    static const char text[] = "a red star left of a blue circle";
    ASSERT_OK(pnb_tokenizer_encode(tok, text, strlen(text), LENGTH, ids, NULL, &err));
}

static size_t count(const int32_t *ids, int32_t id)
{
    size_t n = 0;
    for (int i = 0; i < LENGTH; i++)
        n += ids[i] == id;
    return n;
}

static void test_replacing(void **state)
{
    const pnb_tokenizer *tok = *state;
    int32_t ids[LENGTH], out[LENGTH];
    unsigned char scratch[LENGTH];
    const pnb__text_masker m = masker(tok, PNB_TEXT_MASK_REPLACE, 0.75);
    encode(tok, ids);
    size_t n_masked = 0;
    for (uint64_t draw = 0; draw < 1000; draw++) {
        pnb__mask_texts(&m, draw, ids, 1, LENGTH, scratch, out);
        for (int i = 0; i < LENGTH; i++) {
            assert_true(out[i] == ids[i] || out[i] == m.mask_id);
            if (pnb_tokenizer_is_special(tok, ids[i]))
                assert_int_equal(out[i], ids[i]);
        }
        n_masked += count(out, m.mask_id);
    }
    assert_true(fabs((double)n_masked / 8000 - 0.75) < 0.02); /* eight words, 0.75 each */
}

static void test_deleting(void **state)
{
    const pnb_tokenizer *tok = *state;
    int32_t ids[LENGTH], out[LENGTH];
    unsigned char scratch[LENGTH];
    const pnb__text_masker m = masker(tok, PNB_TEXT_MASK_DELETE, 0.75);
    int32_t eos = pnb_tokenizer_eos_id(tok);
    encode(tok, ids);
    size_t n_left = 0;
    for (uint64_t draw = 0; draw < 1000; draw++) {
        pnb__mask_texts(&m, draw, ids, 1, LENGTH, scratch, out);
        assert_int_equal(count(out, m.mask_id), 0);
        assert_int_equal(count(out, eos), count(ids, eos));
        size_t at = 0; /* what is left stands in the old order */
        bool in_padding = false;
        for (int i = 0; i < LENGTH; i++) {
            in_padding = in_padding || out[i] == m.pad_id;
            if (in_padding) {
                assert_int_equal(out[i], m.pad_id);
                continue;
            }
            while (at < LENGTH && ids[at] != out[i])
                at++;
            assert_true(at < LENGTH);
            at++;
            n_left += !pnb_tokenizer_is_special(tok, out[i]);
        }
    }
    assert_true(fabs((double)n_left / 8000 - 0.25) < 0.02);
}

/* Words are drawn from the seed and from the number of the draw. */
static void test_words_follow_seed_and_draw(void **state)
{
    const pnb_tokenizer *tok = *state;
    int32_t ids[LENGTH], out[LENGTH], other[LENGTH];
    unsigned char scratch[LENGTH];
    pnb__text_masker m = masker(tok, PNB_TEXT_MASK_REPLACE, 0.5);
    int n_by_seed = 0, n_by_draw = 0;
    encode(tok, ids);
    for (uint64_t draw = 0; draw < 100; draw++) {
        m.seed = 3;
        pnb__mask_texts(&m, draw, ids, 1, LENGTH, scratch, out);
        pnb__mask_texts(&m, draw + 100, ids, 1, LENGTH, scratch, other);
        n_by_draw += memcmp(out, other, sizeof out) != 0;
        pnb__mask_texts(&m, draw, ids, 1, LENGTH, scratch, other);
        assert_memory_equal(out, other, sizeof out);
        m.seed = 4;
        pnb__mask_texts(&m, draw, ids, 1, LENGTH, scratch, other);
        n_by_seed += memcmp(out, other, sizeof out) != 0;
    }
    assert_true(n_by_seed > 90 && n_by_draw > 90); /* alike once in 256 */
}

static void test_limits_of_probability(void **state)
{
    const pnb_tokenizer *tok = *state;
    int32_t ids[2 * LENGTH], out[2 * LENGTH];
    unsigned char scratch[LENGTH];
    encode(tok, ids);
    encode(tok, ids + LENGTH);
    const pnb__text_masker none = masker(tok, PNB_TEXT_MASK_DELETE, 0);
    pnb__mask_texts(&none, 0, ids, 2, LENGTH, scratch, out);
    assert_memory_equal(ids, out, sizeof ids);
    const pnb__text_masker all = masker(tok, PNB_TEXT_MASK_REPLACE, 1);
    pnb__mask_texts(&all, 0, ids, 2, LENGTH, scratch, out);
    assert_int_equal(count(out, all.mask_id), 8);
    const pnb__text_masker half = masker(tok, PNB_TEXT_MASK_REPLACE, 0.5);
    pnb__mask_texts(&half, 1, ids, 2, LENGTH, scratch, out);
    assert_memory_not_equal(out, out + LENGTH, LENGTH * sizeof *out); /* rows differ */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_replacing),
        cmocka_unit_test(test_deleting),
        cmocka_unit_test(test_words_follow_seed_and_draw),
        cmocka_unit_test(test_limits_of_probability),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
