/* The list of words: whole words in paths, titles and keywords, in any case. */
#include "data/collections/collection.h"

#include "tests/data/fixture.h"

static void whole_words_are_found(void **state)
{
    static const char *const listed[] = {"people/Stripper_01.svg",
                                         "recreation/religion/angel.svg",
                                         "kit/weapons/sword.svg",
                                         "A GUN",
                                         "sexy",
                                         "Naked Lady"};
    static const char *const fine[] = {"burgundy", "sextant", "weaponless", "begun", "deadline"};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(listed); i++)
        if (!pnb__is_sensitive_text(listed[i]))
            fail_msg("%s", listed[i]);
    for (size_t i = 0; i < PNB_COUNT(fine); i++)
        if (pnb__is_sensitive_text(fine[i]))
            fail_msg("%s", fine[i]);
    assert_true(pnb__is_sensitive_text("food/gun_."));
    assert_false(pnb__is_sensitive_text(""));
    assert_false(pnb__is_sensitive_text(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_words_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
