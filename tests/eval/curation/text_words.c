/* A caption taken apart: words, characters and letters by script, with arrays that are used again.
 */
#include "eval/curation/text_words.h"

#include "tests/prob/support.h"

static void counts_words_and_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n_words, n_distinct, n_chars, n_visible, n_ascii, n_letters;
        const char *words;
    } cases[] = {
        {"", 0, 0, 0, 0, 0, 0, ""},
        {" \t\n", 0, 0, 0, 0, 0, 0, ""},
        {"  A red-blue star!  ", 4, 4, 16, 14, 14, 12, "a red blue star"},
        {"a cat and a dog", 5, 4, 15, 11, 11, 11, "a cat and a dog"},
        {"IMG_2041.JPG", 3, 3, 12, 12, 12, 6, "img 2041 jpg"},
        {"Caf\xC3\xA9 \xC3\x89t\xC3\xA9", 2, 2, 8, 7, 4, 7, "caf\xC3\xA9 \xC3\xA9t\xC3\xA9"},
        {"\xE7\x8C\xAB\xE3\x81\xA8\xE7\x8A\xAC", 3, 3, 3, 3, 0, 3,
         "\xE7\x8C\xAB \xE3\x81\xA8 \xE7\x8A\xAC"},
        {"cat\xE7\x8C\xAB"
         "dog",
         3, 3, 7, 7, 6, 7, "cat \xE7\x8C\xAB dog"},
        {"--- !!! ---", 0, 0, 11, 9, 9, 0, ""},
    };
    pnb__text_words w = {0};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        assert_ok(pnb__text_words_read(&w, cases[i].text, err));
        assert_int_equal(w.n_words, cases[i].n_words);
        assert_int_equal(w.n_chars, cases[i].n_chars);
        assert_int_equal(w.n_visible, cases[i].n_visible);
        assert_int_equal(w.n_ascii, cases[i].n_ascii);
        assert_int_equal(w.n_letters, cases[i].n_letters);
        assert_int_equal(w.text.size, strlen(cases[i].words));
        assert_memory_equal(w.text.size > 0 ? w.text.data : "", cases[i].words, w.text.size);
        assert_int_equal(pnb__text_words_distinct(&w), cases[i].n_distinct);
    }
    assert_fails(pnb__text_words_read(&w, "bad \xFF", err), PNB_FORMAT, "UTF-8");
    pnb__text_words_reset(&w);
}

/* Letters by script: each of its own alone, signs and digits of none. */
static void letters_by_script(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pnb_script script;
        size_t n_letters, n_of_script;
    } cases[] = {{"ab \xC3\x9F 12 -", PNB_SCRIPT_LATIN, 3, 3},
                 {"[a]{\xC3\x97}", PNB_SCRIPT_LATIN, 1, 1}, /* signs among the letters */
                 {"ab \xD0\xB6\xD0\x96", PNB_SCRIPT_CYRILLIC, 4, 2},
                 {"\xCE\xB1\xCC\x81", PNB_SCRIPT_GREEK, 1, 1}, /* an accent is a mark */
                 {"\xE2\x98\x85 \xF0\x9F\x90\x88", PNB_SCRIPT_LATIN, 0, 0}};
    pnb__text_words w = {0};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        size_t n_all = 0;
        assert_ok(pnb__text_words_read(&w, cases[i].text, err));
        assert_int_equal(w.n_letters, cases[i].n_letters);
        assert_int_equal(w.of_script[cases[i].script], cases[i].n_of_script);
        for (int s = 0; s < PNB_N_SCRIPTS; s++)
            n_all += w.of_script[s];
        assert_int_equal(n_all, cases[i].n_letters);
    }
    pnb__text_words_reset(&w);
    assert_true(w.word == NULL && w.text.data == NULL);
}

/* A long caption behind a short one and the other way round: nothing of the one before is seen. */
static void used_again(void **state)
{
    (void)state;
    enum { N = 3000 };
    pnb__text_words w = {0};
    pnb__buf text = {0};
    for (size_t i = 0; i < N; i++)
        pnb__buf_printf(&text, "Word%zu ", i % 1000);
    for (int pass = 0; pass < 2; pass++) {
        assert_ok(pnb__text_words_read(&w, text.data, err));
        assert_int_equal(w.n_words, N);
        assert_int_equal(pnb__text_words_distinct(&w), 1000);
        const pnb__word last = w.word[N - 1];
        assert_int_equal(last.end, w.text.size);
        assert_memory_equal(w.text.data + last.begin, "word999", last.end - last.begin);
        assert_ok(pnb__text_words_read(&w, "x", err));
        assert_true(w.n_words == 1 && w.n_chars == 1 && w.n_letters == 1 && w.text.size == 1);
    }
    pnb__buf_reset(&text);
    pnb__text_words_reset(&w);
}

#ifdef PNB_FAULTS
/* Without memory the words are let go, and the next caption is read as ever. */
static void no_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        pnb__text_words w = {0};
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__text_words_read(&w, "a red star", &error);
        size_t n_distinct = status == PNB_OK ? pnb__text_words_distinct(&w) : 0;
        pnb__alloc_fail_after(-1);
        bool is_done = status == PNB_OK && !w.text.failed;
        assert_true(status == PNB_OK || (status == PNB_NOMEM && w.word == NULL));
        assert_true(!is_done || n_distinct == 3);
        pnb__text_words_reset(&w);
        if (is_done) {
            assert_true(n >= 3); /* the words, the text, the count */
            break;
        }
        assert_ok(pnb__text_words_read(&w, "b", err));
        pnb__text_words_reset(&w);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_words_and_characters),
        cmocka_unit_test(letters_by_script),
        cmocka_unit_test(used_again),
#ifdef PNB_FAULTS
        cmocka_unit_test(no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
