/* Answers in one form: numbers, articles, contractions, punctuation, and bytes that are no UTF-8.
 */
#include "penumbra/vqa.h"
#include "tests/prob/support.h"

static void brings_answers_into_one_form(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"Two dogs.", "2 dogs"},
                                           {"the  Red,and a blue ONE", "red and blue 1"},
                                           {"10,000", "10000"},
                                           {"3.5", "3.5"},
                                           {"a.b. c", "ab c"},
                                           {"12:30 o'clock", "12:30 oclock"},
                                           {"Don't", "dont"},
                                           {"dont", "dont"},
                                           {"we're", "we're"},
                                           {"yes/no?", "yes no"},
                                           {"\tNone \n", "0"},
                                           {"nonesuch", "nonesuch"},
                                           {"who'd", "whod"},
                                           {"couldn't've", "couldntve"},
                                           {"couldnt've", "couldntve"},
                                           {"t-shirt", "t shirt"},
                                           {"1,000 people, 3", "1000 people 3"},
                                           {"girl's", "girl's"},
                                           {"", ""},
                                           {"An", ""},
                                           {"...", ""},
                                           {"5,", "5"},
                                           {"red,5", "red 5"},
                                           {"\xC3\x89t\xC3\xA9", "\xC3\xA9t\xC3\xA9"},
                                           {"a\xC2\xA0"
                                            "cat",
                                            "cat"},
                                           {"\xFF ON", "\xFF on"},
                                           {"ten of the tens", "10 of tens"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char *text = NULL;
        assert_ok(pnb_vqa_normalise(&text, cases[i][0], err));
        assert_string_equal(text, cases[i][1]);
        pnb_vqa_text_free(text);
    }
}

/* Bringing a second time into that form changes nothing, whatever the answer was. */
static void is_a_form(void **state)
{
    (void)state;
    static const char letters[] = "aAn1,.' :/ten thedont\xC3\xA9\xFF-\t";
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (int trial = 0; trial < 2000; trial++) {
        char answer[24], *once = NULL, *twice = NULL;
        size_t n = pnb__rng_below(&rng, sizeof answer);
        for (size_t i = 0; i < n; i++)
            answer[i] = letters[pnb__rng_below(&rng, sizeof letters - 1)];
        answer[n] = '\0';
        assert_ok(pnb_vqa_normalise(&once, answer, err));
        size_t length = strlen(once);
        assert_true(length == 0 || (once[0] != ' ' && once[length - 1] != ' '));
        assert_null(strstr(once, "  "));
        for (const char *p = once; *p != '\0'; p++)
            assert_false(*p >= 'A' && *p <= 'Z');
        assert_ok(pnb_vqa_normalise(&twice, once, err));
        if (strpbrk(once, ".'") == NULL) /* points and apostrophes may stand elsewhere then */
            assert_string_equal(twice, once);
        pnb_vqa_text_free(once);
        pnb_vqa_text_free(twice);
    }
    pnb_vqa_text_free(NULL);
}

#ifdef PNB_FAULTS
static void no_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        pnb_error error = PNB_ERROR_INIT;
        char *text = NULL;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb_vqa_normalise(&text, "two red dogs", &error);
        pnb__alloc_fail_after(-1);
        if (status == PNB_OK) {
            assert_string_equal(text, "2 red dogs");
            pnb_vqa_text_free(text);
            assert_true(n >= 2);
            break;
        }
        assert_true(status == PNB_NOMEM && text == NULL);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brings_answers_into_one_form),
        cmocka_unit_test(is_a_form),
#ifdef PNB_FAULTS
        cmocka_unit_test(no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
