/* Captions with words gone: in one order however many go, with and without something in their
 * place. */
#include "encode/word_list.h"
#include "tests/prob/support.h"

/* What is gone at a smaller share is gone at a larger, and one word stays. */
static void dropped_words(void **state)
{
    (void)state;
    static const char sentence[] = "one two  three four five six seven eight nine ten";
    size_t last = 11;
    char *before = NULL;
    for (int tenth = 0; tenth <= 10; tenth++) {
        char *text = pnb__word_list_drop(sentence, tenth / 10.0, NULL, 7, 3);
        pnb__word_list words, old;
        assert_non_null(text);
        assert_ok(pnb__word_list_split(text, &words, err));
        assert_int_equal(words.n, tenth == 10 ? 1 : 10 - tenth);
        assert_true(words.n < last || tenth == 10);
        last = words.n;
        if (before != NULL) { /* every word left was there before */
            assert_ok(pnb__word_list_split(before, &old, err));
            size_t at = 0;
            for (size_t i = 0; i < words.n; i++, at++)
                while (at < old.n && (old.length[at] != words.length[i] ||
                                      memcmp(old.start[at], words.start[i], words.length[i]) != 0))
                    at++;
            assert_true(at <= old.n);
            pnb__word_list_reset(&old);
        }
        pnb__word_list_reset(&words);
        pnb__free(before);
        before = text;
    }
    pnb__free(before);
    char *empty = pnb__word_list_drop("  ", 0.5, NULL, 1, 1);
    assert_string_equal(empty, "");
    pnb__free(empty);
}

/* The words that would be gone stand there as unknown ones, and all of them may. */
static void unknown_words(void **state)
{
    (void)state;
    static const char sentence[] = "one two  three four";
    for (int quarter = 0; quarter <= 4; quarter++) {
        char *gone = pnb__word_list_drop(sentence, quarter / 4.0, NULL, 7, 3);
        char *unknown = pnb__word_list_drop(sentence, quarter / 4.0, "<unk>", 7, 3);
        pnb__word_list left, words;
        size_t at = 0, n_unknown = 0;
        assert_non_null(unknown);
        assert_ok(pnb__word_list_split(gone, &left, err));
        assert_ok(pnb__word_list_split(unknown, &words, err));
        assert_int_equal(words.n, 4);
        for (size_t i = 0; i < words.n; i++) {
            bool is_unknown = memcmp(words.start[i], "<unk>", 5) == 0;
            n_unknown += is_unknown;
            if (!is_unknown)
                assert_memory_equal(words.start[i], left.start[at++], words.length[i]);
        }
        assert_int_equal(n_unknown, quarter);
        assert_int_equal(at, quarter == 4 ? 0 : left.n);
        pnb__word_list_reset(&left);
        pnb__word_list_reset(&words);
        pnb__free(gone);
        pnb__free(unknown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dropped_words),
                                       cmocka_unit_test(unknown_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
