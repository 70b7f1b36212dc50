/* The unigram model against SentencePiece's ids, and against the best of all ways to cut a word. */
#include <float.h>
#include <math.h>

#include "tests/tokenizer/support.h"

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

enum { N_PIECES = 14, MOST = 11 };

typedef struct model {
    pnb__vocab vocab;
    pnb__unigram u;
} model;

/* Pieces in the order of their ids; scores are 64ths, so that sums are exact. */
static void make_model(model *m, const char *const *pieces, const float *scores, int n)
{
    *m = (model){.u = {.n = n, .unk_id = 0}};
    assert_int_equal(pnb__vocab_init(&m->vocab, n, (size_t)n, NULL), PNB_OK);
    m->u.scores = pnb__alloc_array((size_t)n, sizeof *scores);
    for (int id = 0; id < n; id++) {
        assert_int_equal(pnb__vocab_add(&m->vocab, id, pieces[id], strlen(pieces[id]), NULL),
                         PNB_OK);
        m->u.scores[id] = scores[id];
    }
    assert_int_equal(pnb__unigram_build(&m->u, &m->vocab, NULL), PNB_OK);
}

static void reset_model(model *m)
{
    pnb__unigram_reset(&m->u);
    pnb__vocab_reset(&m->vocab);
}

/* The largest sum of scores over all cuts; an unknown letter costs unk_score where no piece is just
 * that letter. */
static double best_sum(const model *m, const char *s, size_t n)
{
    if (n == 0)
        return 0;
    double best = -INFINITY;
    bool has_single = false;
    for (size_t k = 1; k <= n; k++) {
        int32_t id = pnb__vocab_find(&m->vocab, s, k);
        if (id <= 0)
            continue;
        has_single = has_single || k == 1;
        best = fmax(best, (double)m->u.scores[id] + best_sum(m, s + k, n - k));
    }
    return has_single ? best : fmax(best, (double)m->u.unk_score + best_sum(m, s + 1, n - 1));
}

static void best_of_all_cuts(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 31, 0);
    for (int round = 0; round < 60; round++) {
        char text[N_PIECES][8], word[MOST + 1] = "";
        const char *pieces[N_PIECES] = {"<unk>"};
        float scores[N_PIECES] = {0}, low = INFINITY;
        int n = 1;
        for (int tries = 1; tries < N_PIECES; tries++) {
            size_t length = 1 + (size_t)pnb__rng_below(&rng, 4);
            for (size_t i = 0; i < length; i++)
                text[n][i] = (char)('a' + pnb__rng_below(&rng, 3));
            text[n][length] = '\0';
            bool is_new = true;
            for (int p = 1; p < n; p++)
                is_new = is_new && strcmp(text[p], text[n]) != 0;
            if (!is_new)
                continue;
            scores[n] = -(float)pnb__rng_below(&rng, 700) / 64;
            pieces[n] = text[n];
            n++;
        }
        for (int id = 0; id < n; id++)
            low = fminf(low, scores[id]);
        model m;
        make_model(&m, pieces, scores, n);
        assert_true(m.u.unk_score == low - 10);
        for (size_t i = 0; i < MOST; i++)
            word[i] = (char)('a' + pnb__rng_below(&rng, 3));
        for (size_t length = 0; length <= MOST; length++) {
            pnb__ids got = {0};
            double sum = 0;
            size_t covered = 0, n_unknown = 0;
            assert_int_equal(pnb__unigram_encode(&m.u, word, length, &got, NULL), PNB_OK);
            for (size_t i = 0; i < got.n; i++) {
                sum += got.at[i] > 0 ? (double)m.u.scores[got.at[i]] : 0;
                covered += got.at[i] > 0 ? strlen(pieces[got.at[i]]) : 0;
            }
            n_unknown = length - covered; /* letters; neighbours are one token */
            assert_true(sum + (double)n_unknown * (double)m.u.unk_score ==
                        best_sum(&m, word, length));
            pnb__free(got.at);
        }
        reset_model(&m);
    }
}

static void expect_word(const model *m, const char *word, const int32_t *want, size_t n)
{
    pnb__ids got = {0};
    assert_int_equal(pnb__unigram_encode(&m->u, word, strlen(word), &got, NULL), PNB_OK);
    assert_int_equal(got.n, n);
    if (n > 0)
        assert_memory_equal(got.at, want, n * sizeof *want);
    pnb__free(got.at);
}

static void unknown_characters(void **state)
{
    (void)state;
    static const char *const pieces[] = {"<unk>", "a", "<0xC3>", "<0xA9>", "<0x7A>"};
    static const float scores[] = {0, -1, -2, -2, -2};
    model m;
    make_model(&m, pieces, scores, 5);
    expect_word(&m, "xya\xC3\xA9", IDS(0, 1, 0)); /* neighbours are one token */
    m.u.byte_fallback = true;
    expect_word(&m, "xza\xC3\xA9", IDS(0, 4, 1, 2, 3));
    expect_word(&m, "\xC3\xA8", IDS(0)); /* one byte of it is not there */
    expect_word(&m, "", NULL, 0);
    m.u.byte_fallback = false;
    m.u.unk_id = -1;
    expect_word(&m, "xay", IDS(1));
    reset_model(&m);
}

/* As types of spiece.model say: only normal and user-defined pieces are text, the latter win, and
 * the extreme scores are those of the normal ones. */
static void types_of_pieces(void **state)
{
    (void)state;
    static const char *const pieces[] = {"<unk>", "a", "b", "ab", "ba", "<s>", "abab"};
    static const float scores[] = {-50, -1, -2, -30, -0.5f, 9, -9};
    static const unsigned char types[] = {
        PNB__PIECE_UNKNOWN, PNB__PIECE_NORMAL,  PNB__PIECE_NORMAL, PNB__PIECE_USER_DEFINED,
        PNB__PIECE_UNUSED,  PNB__PIECE_CONTROL, PNB__PIECE_NORMAL};
    model m;
    make_model(&m, pieces, scores, 7);
    m.u.types = pnb__alloc(sizeof types);
    memcpy(m.u.types, types, sizeof types);
    assert_int_equal(pnb__unigram_build(&m.u, &m.vocab, NULL), PNB_OK);
    assert_true(m.u.unk_score == -19.0f && m.u.max_score == FLT_MIN);
    expect_word(&m, "ba", IDS(2, 1)); /* an unused piece is not chosen */
    expect_word(&m, "abab", IDS(3, 3));
    expect_word(&m, "<s>", IDS(0));
    reset_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unigram_ids_agree),
        cmocka_unit_test(best_of_all_cuts),
        cmocka_unit_test(unknown_characters),
        cmocka_unit_test(types_of_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
