/* Reading Unicode's and CLDR's lists: groups, names, keys, keywords and their entities, and files
 * that are something else. */
#include "data/synth/emoji.h"

#include "tests/data/fixture.h"

static void test_sources(void **state)
{
    static const char TEXT[] = "# group: Food & Drink\n# subgroup: food-fruit\n"
                               "1F34E ; fully-qualified     # x E0.6 red apple\n"
                               "2615 FE0F ; fully-qualified # x E0.6 hot: drink\n"
                               "2615 ; unqualified # x E0.6 hot: drink\n"
                               "1F44B 1F3FB ; fully-qualified # x E1.0 waving: light\n";
    static const char XML[] =
        "<annotation cp=\"\xf0\x9f\x8d\x8e\">apple | fruit &amp; veg | red | red apple</annotation>"
        "\n<annotation cp=\"\xf0\x9f\x8d\x8e\" type=\"tts\">red apple</annotation>\n";
    pnb__emoji_list list = {0};
    char *dir = scratch_create(), *path = pnb__path_join(dir, "emoji-test.txt");
    (void)state;
    put_text(dir, "emoji-test.txt", TEXT);
    put_text(dir, "annotations/en.xml", XML);
    put_text(dir, "annotationsDerived/en.xml", "<ldml></ldml>");
    ASSERT_OK(pnb__emoji_read(&list, path, false, &err));
    ASSERT_OK(pnb__emoji_add_words(&list, dir, &err));
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].key, "1f34e");
    assert_string_equal(list.items[0].group, "Food & Drink");
    assert_string_equal(list.items[0].subgroup, "food fruit");
    assert_string_equal(list.items[0].name, "red apple");
    assert_int_equal(list.items[0].n_words, 3);
    assert_string_equal(list.items[0].words[1], "fruit & veg");
    assert_string_equal(list.items[1].key, "2615-fe0f");
    assert_string_equal(list.items[1].name, "hot: drink");
    assert_string_equal(list.items[1].words[0], "hot: drink"); /* no keywords: the name */
    assert_int_equal(list.n_without_words, 1);
    pnb__emoji_free(&list);
    put_text(dir, "emoji-test.txt", "1F34E ; fully-qualified # x E0.6 before any group\n");
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb__emoji_read(&list, path, false, &error), PNB_FORMAT);
    pnb__emoji_free(&list);
    put_text(dir, "emoji-test.txt", "something else\n");
    pnb_error_reset(&error);
    assert_int_equal(pnb__emoji_read(&list, path, false, &error), PNB_FORMAT);
    pnb__emoji_free(&list);
    pnb__free(path);
    scratch_remove(dir);
}

/* Writes CLDR's two files. */
static void put_words(const char *dir, const char *own, const char *derived)
{
    put_text(dir, "annotations/en.xml", own);
    put_text(dir, "annotationsDerived/en.xml", derived);
}

#define APPLE "\xf0\x9f\x8d\x8e"
#define HEART "\xe2\x9d\xa4" /* with U+FE0F in Unicode's list, without in CLDR's */

/* Words are cut at bars and blanks, entities undone; doubles, the name and empty ones are left out.
 */
static void test_words(void **state)
{
    static const char TEXT[] = "# group: G\r\n# subgroup: s-t\r\n"
                               "1F34E ; fully-qualified # x E0.6 red apple\r\n"
                               "2764 FE0F ; fully-qualified # x E0.6 heart\n";
    pnb__emoji_list list = {.sensitive = true};
    char *dir = scratch_create(), *path = pnb__path_join(dir, "e.txt");
    (void)state;
    put_text(dir, "e.txt", TEXT);
    put_words(dir,
              "<annotation cp=\"" APPLE
              "\">|a &amp; b| &lt;c&gt;  |  | red apple | &quot;d&apos; | "
              "&nbsp; | &lt;c&gt; |</annotation>",
              "<annotation cp=\"" HEART "\">love</annotation>");
    ASSERT_OK(pnb__emoji_read(&list, path, false, &err));
    assert_string_equal(list.items[0].name, "red apple"); /* without the end of the line */
    assert_string_equal(list.items[0].group, "G");
    assert_string_equal(list.items[0].subgroup, "s t");
    ASSERT_OK(pnb__emoji_add_words(&list, dir, &err));
    static const char *const want[] = {"a & b", "<c>", "\"d'", "&nbsp;"};
    assert_int_equal(list.items[0].n_words, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(list.items[0].words[i], want[i]);
    assert_string_equal(list.items[1].words[0], "love");
    assert_int_equal(list.n_without_words, 0);
    pnb__emoji_free(&list);
    assert_true(list.items == NULL && list.n == 0);
    pnb__free(path);
    scratch_remove(dir);
}

/* Variants of the skin are kept only where asked for, and are marked; lines that are not whole are
 * passed over. */
static void test_skin_tones(void **state)
{
    static const char TEXT[] = "# group: G\n# subgroup: s\n"
                               "1F44B ; fully-qualified # x E0.6 hand\n"
                               "1F44B 1F3FB ; fully-qualified # x E1.0 hand: light\n"
                               "1F44B 1F3FF ; minimally-qualified # x E1.0 hand: dark\n"
                               "zzzz ; fully-qualified # x E1.0 no number\n"
                               "110000 ; fully-qualified # x E1.0 beyond Unicode\n"
                               "1F44C ; fully-qualified # no version\n";
    (void)state;
    char *dir = scratch_create(), *path = pnb__path_join(dir, "e.txt");
    put_text(dir, "e.txt", TEXT);
    for (int keep = 0; keep < 2; keep++) {
        pnb__emoji_list list = {0};
        ASSERT_OK(pnb__emoji_read(&list, path, keep, &err));
        assert_int_equal(list.n, 1 + keep);
        assert_false(list.items[0].has_skin_tone);
        if (keep) {
            assert_true(list.items[1].has_skin_tone);
            assert_string_equal(list.items[1].key, "1f44b-1f3fb");
            assert_int_equal(list.items[1].n_points, 2);
        }
        pnb__emoji_free(&list);
    }
    pnb__free(path);
    scratch_remove(dir);
}

static void test_refused(void **state)
{
    (void)state;
    pnb__emoji_list list = {0};
    pnb_error error = PNB_ERROR_INIT;
    char *dir = scratch_create(), *path = pnb__path_join(dir, "e.txt");
    assert_int_equal(pnb__emoji_read(&list, path, false, &error), PNB_NOT_FOUND);
    assert_non_null(strstr(error.text, "e.txt does not exist: apt-get install unicode-data"));
    pnb_error_reset(&error);
    assert_int_equal(pnb__emoji_add_words(&list, dir, &error), PNB_NOT_FOUND);
    assert_non_null(strstr(error.text, "annotations/en.xml does not exist"));
    assert_non_null(strstr(error.text, "unicode-cldr-core"));
    put_words(dir, "<ldml>",
              "<annotation cp=\"a\" type=\"tts\">name</annotation><annotation cp=\"b");
    pnb_error_reset(&error);
    assert_int_equal(pnb__emoji_add_words(&list, dir, &error), PNB_FORMAT);
    assert_non_null(strstr(error.text, "the annotation files hold no annotation"));
    put_text(dir, "e.txt", "# subgroup: s\n1F34E ; fully-qualified # x E0.6 apple\n");
    pnb_error_reset(&error);
    assert_int_equal(pnb__emoji_read(&list, path, false, &error), PNB_FORMAT);
    assert_non_null(strstr(error.text, "apple stands before the first group and subgroup"));
    pnb__emoji_free(&list);
    pnb__free(path);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources), cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_skin_tones),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
