/* What the set of emoji leaves out by default: by subgroup, by first code point, by word. */
#include "data/synth/emoji.h"

#include "tests/data/fixture.h"

static bool is_left_out(const char *subgroup, uint32_t first, uint32_t second)
{
    const pnb__emoji e = {.subgroup = subgroup, .points = {first, second}, .n_points = 2};
    return pnb__emoji_is_sensitive(&e);
}

static void test_emoji(void **state)
{
    (void)state;
    assert_true(is_left_out("religion", 0x1f34e, 0));
    assert_true(is_left_out("place religious", 0x1f34e, 0));
    assert_false(is_left_out("place", 0x1f34e, 0));
    assert_false(is_left_out("hand", 0x1f44b, 0));
    assert_true(is_left_out("hand", 0x1f595, 0x1f3fb));  /* with a skin tone too */
    assert_false(is_left_out("hand", 0x1f44b, 0x1f595)); /* the first point alone decides */
    assert_true(is_left_out(NULL, 0x1f4a9, 0));
    const pnb__emoji nothing = {.points = {0x1f595}};
    assert_false(pnb__emoji_is_sensitive(&nothing)); /* no point of it is used */
}

static bool has_word(const char *text)
{
    return pnb__emoji_is_sensitive_word(text, strlen(text));
}

/* Whole words of letters, in any case; beginnings and parts of words are others. */
static void test_keywords(void **state)
{
    (void)state;
    static const char *const out[] = {"Jew",  "HINDU",      "pile of poo", "poo",
                                      "poo!", "non-jewish", "  gypsy",     "tao"};
    static const char *const kept[] = {"",          "jewel",  "pool",    "spoon", "taos",
                                       "red apple", "christ", "jewishh", "123"};
    for (size_t i = 0; i < PNB_COUNT(out); i++)
        if (!has_word(out[i]))
            fail_msg("'%s' is kept", out[i]);
    for (size_t i = 0; i < PNB_COUNT(kept); i++)
        if (has_word(kept[i]))
            fail_msg("'%s' is left out", kept[i]);
    assert_true(pnb__emoji_is_sensitive_word("poodle", 3)); /* n bytes, no end of text */
    assert_false(pnb__emoji_is_sensitive_word("poo", 2));
    assert_false(pnb__emoji_is_sensitive_word("", 0));
}

/* Read with the option, nothing is left out. */
static void test_option(void **state)
{
    static const char TEXT[] = "# group: G\n# subgroup: religion\n"
                               "2721 ; fully-qualified # x E0.7 star of David\n"
                               "# subgroup: hand\n"
                               "1F44B ; fully-qualified # x E0.6 hand\n"
                               "1F595 ; fully-qualified # x E1.0 middle finger\n";
    (void)state;
    char *dir = scratch_create(), *path = pnb__path_join(dir, "e.txt");
    put_text(dir, "e.txt", TEXT);
    put_text(dir, "annotations/en.xml",
             "<annotation cp=\"\xf0\x9f\x91\x8b\">gypsy | wave</annotation>");
    put_text(dir, "annotationsDerived/en.xml", "");
    for (int sensitive = 0; sensitive < 2; sensitive++) {
        pnb__emoji_list list = {.sensitive = sensitive};
        ASSERT_OK(pnb__emoji_read(&list, path, false, &err));
        ASSERT_OK(pnb__emoji_add_words(&list, dir, &err));
        assert_int_equal(list.n, sensitive ? 3 : 1);
        const pnb__emoji *hand = &list.items[sensitive];
        assert_string_equal(hand->name, "hand");
        assert_int_equal(hand->n_words, 1 + sensitive);
        assert_string_equal(hand->words[sensitive], "wave");
        pnb__emoji_free(&list);
    }
    pnb__free(path);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_emoji),
                                       cmocka_unit_test(test_keywords),
                                       cmocka_unit_test(test_option)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
