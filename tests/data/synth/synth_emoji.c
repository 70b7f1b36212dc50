/* The `emoji` set: its counts, split and truth, when the packages are installed; the messages for
 * missing ones, always. */
#include "tests/data/fixture.h"

#include <math.h>

#include "data/synth/emoji.h"
#include "io/json/json.h"

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

static size_t count_lines(const char *dir, const char *name)
{
    char *path = pnb__path_join(dir, name), *text;
    size_t n, n_lines = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 28, &text, &n, &err));
    for (size_t i = 0; i < n; i++)
        n_lines += text[i] == '\n';
    pnb__free(text);
    pnb__free(path);
    return n_lines;
}

static pnb_dataset *open_split(const char *dir, const char *split)
{
    pnb_dataset *ds = NULL;
    char *path = pnb__path_join(dir, split);
    ASSERT_OK(pnb_dataset_open(&ds, path, NULL, &err));
    pnb__free(path);
    return ds;
}

/* Every picture has all four levels and the two sizes. */
static void check_split(const char *dir, const char *split, size_t n)
{
    pnb_dataset *ds = open_split(dir, split);
    assert_int_equal(pnb_dataset_size(ds), n);
    assert_int_equal(pnb_dataset_n_warnings(ds), 0);
    for (size_t i = 0; i < n; i++) {
        pnb_sample s = {0};
        bool has[4] = {0};
        ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
        for (size_t k = 0; k < s.n_texts; k++)
            has[s.levels[k]] = true;
        assert_true(has[0] && has[1] && has[2] && has[3]);
        assert_string_equal(s.texts[0], s.group);
        assert_string_equal(s.texts[s.n_texts - 1], s.name);
        assert_non_null(strstr(s.json, "\"template_captions\""));
        pnb_sample_reset(&s);
    }
    pnb_image image;
    ASSERT_OK(pnb_dataset_image(ds, n / 2, &image, &err));
    assert_int_equal(image.width, 64);
    assert_int_equal(image.height, 64);
    for (int c = 0; c < 3; c++) /* the corner is background */
        assert_true(image.pixels[c] > 240);
    pnb_image_free(&image);
    pnb_dataset_free(ds);
}

static void test_set(void **state)
{
    /* Levels of the description: distinct captions, pictures a caption fits. */
    static const double DISTINCT[] = {9, 99, 1930, 1870}, FITS[] = {208, 19, 2.5, 1};
    pnb_synth_stats stats, again;
    (void)state;
    need_packages();
    char *dir = scratch_create(), *out = pnb__path_join(dir, "emoji");
    pnb_emoji_opts all = pnb_emoji_opts_default();
    all.sensitive = true;
    ASSERT_OK(pnb_synth_emoji(NULL, &all, out, &stats, &err));
    assert_int_equal(stats.n_train, 1397);
    assert_int_equal(stats.n_val, 189);
    assert_int_equal(stats.n_test, 284);
    for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++) {
        print_message("level %d: %zu distinct, %.2f a picture, each true of %.2f\n", l,
                      stats.n_texts[l], stats.texts_per_image[l], stats.images_per_text[l]);
        assert_true(fabs((double)stats.n_texts[l] / DISTINCT[l] - 1) < (l == 2 ? 0.04 : 1e-9));
        assert_true(fabs(stats.images_per_text[l] / FITS[l] - 1) < 0.03);
    }
    check_split(out, "train", stats.n_train);
    check_split(out, "val", stats.n_val);
    check_split(out, "test", stats.n_test);
    assert_int_equal(count_lines(out, "test/images.jsonl"), 284);
    assert_true(count_lines(out, "truth/test.pairs") >= count_lines(out, "test/captions.jsonl"));
    pnb_dataset_opts big = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    pnb_image image;
    big.image_key = "128.png";
    char *path = pnb__path_join(out, "val/00000.tar");
    ASSERT_OK(pnb_dataset_open(&ds, path, &big, &err));
    ASSERT_OK(pnb_dataset_image(ds, 3, &image, &err));
    assert_int_equal(image.width, 128);
    pnb_image_free(&image);
    pnb_dataset_free(ds);
    ASSERT_OK(pnb_synth_emoji(NULL, &all, out, &again, &err));
    assert_true(again.reused);
    assert_int_equal(again.n_texts[2], stats.n_texts[2]);
    pnb__free(path);
    pnb__free(out);
    scratch_remove(dir);
}

/* What a showcase must not end with is not in the set: neither pictures nor words. */
static void test_sensitive_ones_are_left_out(void **state)
{
    static const char *const gone[] = {"\"Jew\"",      "\"Muslim\"",    "\"Christian\"",
                                       "\"Hinduism\"", "middle finger", "pile of poo",
                                       "\"religion\"", "synagogue",     "headscarf"};
    static const char *const splits[] = {"train", "val", "test"};
    pnb_synth_stats stats;
    (void)state;
    need_packages();
    char *dir = scratch_create(), *out = pnb__path_join(dir, "emoji");
    ASSERT_OK(pnb_synth_emoji(NULL, NULL, out, &stats, &err));
    size_t n = stats.n_train + stats.n_val + stats.n_test;
    assert_int_equal(n, 1843);
    assert_int_equal(stats.n_texts[0], 9);
    for (size_t s = 0; s < PNB_COUNT(splits); s++) {
        char *path = pnb__format("%s/%s/captions.jsonl", out, splits[s]), *text = NULL;
        size_t size = 0;
        ASSERT_OK(pnb__read_file(path, 1 << 26, &text, &size, &err));
        for (size_t i = 0; i < PNB_COUNT(gone); i++)
            if (strstr(text, gone[i]) != NULL)
                fail_msg("%s has %s", path, gone[i]);
        pnb__free(text);
        pnb__free(path);
    }
    pnb__free(out);
    scratch_remove(dir);
}

/* ---- without packages ----------------------------------------------------------------------- */

static void expect_missing(const char *dir, const pnb_emoji_opts *o, const char *package)
{
    pnb_error error = PNB_ERROR_INIT;
    char *out = pnb__path_join(dir, "out"), *partial = pnb__path_join(dir, "out.partial");
    pnb_status status = pnb_synth_emoji(NULL, o, out, NULL, &error);
    assert_true(status == PNB_NOT_FOUND || status == PNB_UNSUPPORTED);
    if (!strstr(error.text, package))
        fail_msg("\"%s\" does not name %s", error.text, package);
    assert_int_equal(access(out, F_OK), -1);
    assert_int_equal(access(partial, F_OK), -1);
    pnb__free(partial);
    pnb__free(out);
}

static void test_missing(void **state)
{
    char *dir = scratch_create(), *list = pnb__path_join(dir, "e.txt");
    pnb_emoji_opts o = pnb_emoji_opts_default();
    (void)state;
    o.emoji_test = "/nonexistent/emoji-test.txt";
    expect_missing(dir, &o, "unicode-data");
    put_text(dir, "e.txt", "# group: a\n# subgroup: b\n1F34E ; fully-qualified # x E0.6 apple\n");
    o.emoji_test = list;
    o.cldr_common = "/nonexistent";
    expect_missing(dir, &o, "unicode-cldr-core");
    put_text(dir, "annotations/en.xml", "<annotation cp=\"a\">b</annotation>");
    put_text(dir, "annotationsDerived/en.xml", "");
    o.cldr_common = dir;
    o.font = "/nonexistent/font.ttf";
#ifdef PNB_HAVE_FREETYPE
    expect_missing(dir, &o, "fonts-noto-color-emoji");
#else
    expect_missing(dir, &o, "libfreetype-dev");
#endif
    o.size = 100;
    assert_int_equal(pnb_synth_emoji(NULL, &o, dir, NULL, NULL), PNB_ARG);
    pnb__free(list);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sensitive_ones_are_left_out),
                                       cmocka_unit_test(test_set), cmocka_unit_test(test_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
