/* Pictures of emoji: one for each sequence where the font is installed, equal ones found; what is
 * no such font is refused by name, always. */
#include "data/synth/emoji.h"

#include "tests/data/fixture.h"

static const char FONT[] = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf";
static const char LIST[] = "/usr/share/unicode/emoji/emoji-test.txt";
static const char CLDR[] = "/usr/share/unicode/cldr/common";

/* Says why and skips when a package is not there, or the build has no fonts. */
static void need_packages(void)
{
    if (!pnb__path_is_file(FONT) || !pnb__path_is_file(LIST) || !pnb__path_is_dir(CLDR)) {
        print_message("skipped: needs fonts-noto-color-emoji unicode-data unicode-cldr-core\n");
        skip();
    }
#ifndef PNB_HAVE_FREETYPE
    print_message("skipped: built without FreeType and HarfBuzz\n");
    skip();
#endif
}

/* All 3,655 sequences have one picture each; seven groups of equal pictures without skin tones. */
static void test_glyphs(void **state)
{
    pnb__emoji_list list = {.sensitive = true};
    size_t n_groups = 0;
    (void)state;
    need_packages();
    ASSERT_OK(pnb__emoji_read(&list, LIST, true, &err));
    assert_int_equal(list.n, 3655);
    ASSERT_OK(pnb__emoji_render(&list, FONT, &err));
    for (size_t i = 0; i < list.n; i++) {
        assert_int_equal(list.items[i].image.width, 136);
        assert_int_equal(list.items[i].image.height, 128);
    }
    pnb__emoji_free(&list);
    list.sensitive = true;
    ASSERT_OK(pnb__emoji_read(&list, LIST, false, &err));
    ASSERT_OK(pnb__emoji_add_words(&list, CLDR, &err));
    ASSERT_OK(pnb__emoji_render(&list, FONT, &err));
    assert_int_equal(list.n, 1870);
    assert_int_equal(list.n_without_words, 21);
    for (size_t i = 0; i < list.n; i++) {
        bool is_leader = false;
        for (size_t j = i + 1; j < list.n && list.items[i].first_equal == i; j++)
            is_leader |= list.items[j].first_equal == i;
        n_groups += is_leader;
    }
    assert_int_equal(n_groups, 7);
    pnb__emoji_free(&list);
}

#ifdef PNB_HAVE_FREETYPE
/* Sequences by hand: what the font has no single picture for is an error that names it. */
static void test_sequences(void **state)
{
    static const char TEXT[] = "# group: G\n# subgroup: s\n"
                               "1F34E ; fully-qualified # x E0.6 red apple\n"
                               "2615 FE0F ; fully-qualified # x E0.6 coffee\n"
                               "1F34E ; fully-qualified # x E0.6 the same again\n";
    (void)state;
    need_packages();
    pnb__emoji_list list = {0};
    pnb_error error = PNB_ERROR_INIT;
    char *dir = scratch_create(), *path = pnb__path_join(dir, "e.txt");
    put_text(dir, "e.txt", TEXT);
    ASSERT_OK(pnb__emoji_read(&list, path, false, &err));
    ASSERT_OK(pnb__emoji_render(&list, FONT, &err));
    assert_int_equal(list.items[0].first_equal, 0);
    assert_int_equal(list.items[1].first_equal, 1);
    assert_int_equal(list.items[2].first_equal, 0);
    const pnb_image *apple = &list.items[0].image;
    for (int c = 0; c < 3; c++)
        assert_int_equal(apple->pixels[c], 255); /* on white */
    const unsigned char *middle = apple->pixels + 3 * (64 * apple->width + 50);
    assert_true(middle[0] > 150 && middle[1] < 100 && middle[2] < 100); /* red, not blue */
    pnb__emoji_free(&list);
    put_text(dir, "e.txt",
             "# group: G\n# subgroup: s\n"
             "1F34E 1F34E ; fully-qualified # x E0.6 two apples\n");
    ASSERT_OK(pnb__emoji_read(&list, path, false, &err));
    assert_int_equal(pnb__emoji_render(&list, FONT, &error), PNB_NOT_FOUND);
    assert_non_null(strstr(error.text, "no single picture for 1f34e-1f34e (two apples): found 2"));
    pnb__emoji_free(&list);
    pnb__free(path);
    scratch_remove(dir);
}
#endif

static void test_no_font(void **state)
{
    (void)state;
    pnb__emoji_list list = {0};
    pnb_error error = PNB_ERROR_INIT;
    char *dir = scratch_create(), *path = pnb__path_join(dir, "font.ttf");
#ifdef PNB_HAVE_FREETYPE
    assert_int_equal(pnb__emoji_render(&list, path, &error), PNB_NOT_FOUND);
    assert_non_null(strstr(error.text, "font.ttf does not exist: apt-get install fonts-noto"));
    put_text(dir, "font.ttf", "no font");
    pnb_error_reset(&error);
    assert_int_equal(pnb__emoji_render(&list, path, &error), PNB_FORMAT);
    assert_non_null(strstr(error.text, "FreeType cannot open this font"));
#else
    assert_int_equal(pnb__emoji_render(&list, path, &error), PNB_UNSUPPORTED);
    assert_non_null(strstr(error.text, "libfreetype-dev"));
#endif
    pnb__free(path);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef PNB_HAVE_FREETYPE
        cmocka_unit_test(test_sequences),
#endif
        cmocka_unit_test(test_glyphs), cmocka_unit_test(test_no_font)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
