/* Whole sets from small packages of our own: counts, truth, splits, noise, languages, styles, and
 * what is missing or damaged. */
#include "penumbra/collections.h"

#include "io/json/json.h"
#include "tests/data/collections/tree.h"

typedef struct seen {
    size_t n;
    char text[2048];
} seen;

static void note(void *user, const char *file, const char *why)
{
    seen *s = user;
    size_t n = strlen(s->text);
    s->n++;
    snprintf(s->text + n, sizeof s->text - n, "%s: %s\n", file, why);
}

/* The whole of a file below dir, with a 0 behind it. */
static void read_whole(const char *dir, const char *name, char **text)
{
    char *path = pnb__path_join(dir, name);
    size_t n = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 26, text, &n, &err));
    pnb__free(path);
}

/* Contents of all files of a set that do not name folders of this machine. */
static uint64_t digest(const char *dir)
{
    static const char *const names[] = {
        "train/00000.tar",   "val/00000.tar",     "test/00000.tar",  "train/captions.jsonl",
        "test/images.jsonl", "truth/train.pairs", "truth/test.pairs"};
    uint64_t hash = 0;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *path = pnb__path_join(dir, names[i]), *bytes = NULL;
        size_t n = 0;
        ASSERT_OK(pnb__read_file(path, 1 << 26, &bytes, &n, &err));
        hash = pnb__hash_bytes(bytes, n, hash);
        pnb__free(bytes);
        pnb__free(path);
    }
    return hash;
}

static pnb_collection_opts small_opts(void)
{
    pnb_collection_opts o = pnb_collection_opts_default();
    o.size = 32;
    o.val_share = 0.2;
    o.test_share = 0.2;
    return o;
}

/* Runs `check` on every record of a set. */
static void each_record(const char *set,
                        void (*check)(json_t *record, const char *split, void *user), void *user)
{
    static const char *const splits[] = {"train", "val", "test"};
    for (size_t s = 0; s < PNB_COUNT(splits); s++) {
        pnb_dataset *ds = NULL;
        char *path = pnb__path_join(set, splits[s]);
        ASSERT_OK(pnb_dataset_open(&ds, path, NULL, &err));
        assert_int_equal(pnb_dataset_n_warnings(ds), 0);
        for (size_t i = 0; i < pnb_dataset_size(ds); i++) {
            pnb_sample sample = {0};
            json_t *record = NULL;
            ASSERT_OK(pnb_dataset_get(ds, i, &sample, &err));
            ASSERT_OK(pnb__json_load_bytes(&record, sample.json, strlen(sample.json), "x", &err));
            check(record, splits[s], user);
            json_decref(record);
            pnb_sample_reset(&sample);
        }
        pnb_dataset_free(ds);
        pnb__free(path);
    }
}

static const char *get(json_t *record, const char *key)
{
    return json_string_value(json_object_get(record, key));
}

/* Whether the record carries the text, at that level. */
static bool carries(json_t *record, const char *text, int level)
{
    json_t *texts = json_object_get(record, "captions"),
           *levels = json_object_get(record, "levels");
    for (size_t i = 0; i < json_array_size(texts); i++)
        if (!strcmp(json_string_value(json_array_get(texts, i)), text))
            return json_integer_value(json_array_get(levels, i)) == level;
    return false;
}

typedef struct clip_check {
    size_t n, n_twins;
    const char *twin_split[2];
    bool has_two_categories, had_text;
} clip_check;

static void check_clip(json_t *record, const char *split, void *user)
{
    clip_check *c = user;
    const char *file = get(record, "file");
    c->n++;
    assert_string_equal(get(record, "style"), "clipart");
    if (!strcmp(file, "animals/cat_00.svg")) {
        c->has_two_categories = carries(record, "animals", 0) && carries(record, "food", 0);
        assert_true(carries(record, "a cat", 3));
        assert_true(carries(record, "animal", 2));
        assert_false(carries(record, "hash(0x1)", 2));
        assert_string_equal(get(record, "raw_title"), "A cat 00");
    }
    if (!strcmp(file, "food/fruit/apple_03.svg") || !strcmp(file, "animals/copy_01.svg"))
        c->twin_split[c->n_twins++] = split;
    if (!strcmp(file, "food/fruit/apple_03.svg"))
        assert_true(carries(record, "fruit", 1));
    if (!strcmp(get(record, "raw_title"), "Various Cliparts")) {
        assert_string_equal(get(record, "title_kind"), "names a collection");
        assert_string_equal(get(record, "title_from"), "file");
    }
    c->had_text |= !strcmp(file, "food/large.svg");
}

/* The caption of one of two equal pictures is true of both. */
static void check_equal(const char *out, const char *split)
{
    char *name = pnb__format("%s/captions.jsonl", split),
         *truth = pnb__format("truth/%s.pairs", split);
    char *texts, *pairs, id[16] = "\t";
    read_whole(out, name, &texts);
    read_whole(out, truth, &pairs);
    char *line = strstr(texts, "\"text\": \"twin\", \"entropy_bits\": 1.00000}");
    assert_non_null(line);
    while (strncmp(line, "{\"id\": \"", 8) != 0)
        line--;
    snprintf(id + 1, sizeof id - 1, "%.8s", line + 8);
    size_t n = 0;
    for (char *at = pairs; (at = strstr(at, id)) != NULL; at++)
        n++;
    assert_int_equal(n, 2);
    pnb__free(name);
    pnb__free(truth);
    pnb__free(texts);
    pnb__free(pairs);
}

static void clipart_is_built(void **state)
{
    (void)state;
    need_svg();
    char *dir = scratch_create(), *root = make_clipart(dir), *out = pnb__path_join(dir, "set");
    pnb_collection_opts o = small_opts();
    pnb_collection_stats s;
    seen said = {0};
    clip_check c = {0};
    o.clipart = root;
    o.skipped = note;
    o.user = &said;
    ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_CLIPART, &o, out, &s, &err));
    assert_int_equal(s.n_found, 31);
    assert_int_equal(s.n_links, 1);
    assert_int_equal(s.n_broken_links, 1);
    assert_int_equal(s.n_optional, 2);
    assert_int_equal(s.n_sensitive, 1);
    assert_int_equal(s.n_skipped, 1);
    assert_int_equal(s.n_blank, 1);
    assert_int_equal(s.n_equal, 1);
    assert_int_equal(s.n_titles[2], 3); /* Various Cliparts */
    assert_int_equal(s.n_from_file, 4); /* these and the one without a title */
    assert_int_equal(said.n, 1);
    assert_non_null(strstr(said.text, "food/broken.svg: SVG: damaged XML"));
    assert_int_equal(s.set.n_train + s.set.n_val + s.set.n_test, 26);
    assert_true(s.set.n_val >= 3 && s.set.n_test >= 3);
    each_record(out, check_clip, &c);
    assert_int_equal(c.n, 26);
    assert_true(c.has_two_categories);
    assert_true(c.had_text); /* drawn from its PNG */
    assert_int_equal(c.n_twins, 2);
    assert_string_equal(c.twin_split[0], c.twin_split[1]);
    check_equal(out, c.twin_split[0]);
    pnb_collection_stats again;
    ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_CLIPART, &o, out, &again, &err));
    assert_true(again.set.reused);
    assert_int_equal(again.set.n_test, s.set.n_test);
    pnb__free(out);
    pnb__free(root);
    scratch_remove(dir);
}

/* The same bytes on any number of threads; another seed, another split. */
static void seeds_and_threads(void **state)
{
    (void)state;
    need_svg();
    char *dir = scratch_create(), *root = make_clipart(dir);
    uint64_t hashes[4];
    for (int i = 0; i < 4; i++) {
        pnb_ctx *ctx = NULL;
        pnb_ctx_opts threads = pnb_ctx_opts_default();
        pnb_collection_opts o = small_opts();
        char *out = pnb__format("%s/set%d", dir, i);
        threads.n_threads = i == 1 ? 3 : 1;
        o.clipart = root;
        o.seed = i == 2 ? 7 : 0;
        o.size = i == 3 ? 48 : 32;
        ASSERT_OK(pnb_ctx_create(&ctx, &threads, &err));
        ASSERT_OK(pnb_collection_build(ctx, PNB_COLLECTION_CLIPART, &o, out, NULL, &err));
        hashes[i] = digest(out);
        pnb_ctx_free(ctx);
        pnb__free(out);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] != hashes[2] && hashes[0] != hashes[3]);
    pnb__free(root);
    scratch_remove(dir);
}

static void options_bring_back_what_is_left_out(void **state)
{
    (void)state;
    need_svg();
    char *dir = scratch_create(), *root = make_clipart(dir), *out = pnb__path_join(dir, "set");
    pnb_collection_opts o = small_opts();
    pnb_collection_stats s;
    o.clipart = root;
    o.icon_themes = o.stars = o.sensitive = true;
    ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_CLIPART, &o, out, &s, &err));
    assert_int_equal(s.n_optional, 0);
    assert_int_equal(s.n_sensitive, 0);
    assert_int_equal(s.set.n_train + s.set.n_val + s.set.n_test, 29);
    pnb__free(out);
    pnb__free(root);
    scratch_remove(dir);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* The raw titles are there and marked, and one list of pairs leaves the noise out. */
static void noise_is_known(void **state)
{
    (void)state;
    need_svg();
    char *dir = scratch_create(), *root = make_clipart(dir), *out = pnb__path_join(dir, "set");
    pnb_collection_opts o = small_opts();
    o.clipart = root;
    o.noisy = true;
    o.val_share = o.test_share = 0;
    ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_CLIPART, &o, out, NULL, &err));
    char *texts, *given, *clean;
    read_whole(out, "train/captions.jsonl", &texts);
    read_whole(out, "truth/train.pairs", &given);
    read_whole(out, "truth/train.clean.pairs", &clean);
    char *line = strstr(texts, "\"text\": \"Various Cliparts\"");
    assert_non_null(line);
    assert_int_equal(strncmp(line, "\"text\": \"Various Cliparts\", \"noise\": true}", 42), 0);
    assert_non_null(strstr(texts, "\"text\": \"A cat 00\", \"entropy_bits\": 0.00000}"));
    assert_non_null(strstr(texts, "\"text\": \"hash(0x1)\", \"noise\": true}"));
    /* three titles of a collection, and a hash for each of the twelve animals but those */
    assert_int_equal(count_lines(given) - count_lines(clean), 3 + 12);
    pnb__free(texts);
    pnb__free(given);
    pnb__free(clean);
    pnb__free(out);
    pnb__free(root);
    scratch_remove(dir);
}

static void expect_status(pnb_collection_kind kind, const pnb_collection_opts *o, const char *out,
                          pnb_status status, const char *text)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_status found = pnb_collection_build(NULL, kind, o, out, NULL, &err);
    if (found != status || strstr(err.text, text) == NULL)
        fail_msg("%d '%s' instead of %d '%s'", (int)found, err.text, (int)status, text);
    assert_false(pnb__path_is_dir(out));
}

static void missing_packages_are_named(void **state)
{
    (void)state;
    need_svg();
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set");
    char *root = pnb__path_join(dir, "half"), *svg = pnb__path_join(root, "svg");
    char *png = pnb__path_join(root, "png");
    pnb_collection_opts o = small_opts();
    o.clipart = o.stamps = root;
    expect_status(PNB_COLLECTION_CLIPART, &o, out, PNB_NOT_FOUND,
                  "tools/install-deps --data clipart");
    expect_status(PNB_COLLECTION_STAMPS, &o, out, PNB_NOT_FOUND,
                  "tools/install-deps --data stamps");
    expect_status(PNB_COLLECTION_MIXED, &o, out, PNB_NOT_FOUND,
                  "tools/install-deps --data clipart");
    ASSERT_OK(pnb__make_dirs(png, &err));
    expect_status(PNB_COLLECTION_CLIPART, &o, out, PNB_NOT_FOUND,
                  "apt-get install openclipart-svg");
    ASSERT_OK(pnb__make_dirs(svg, &err));
    expect_status(PNB_COLLECTION_CLIPART, &o, out, PNB_FORMAT, "not one drawing");
    expect_status(PNB_COLLECTION_STAMPS, &o, out, PNB_FORMAT,
                  "not one picture with a sentence in 'en'");
    assert_int_equal(rmdir(png), 0);
    expect_status(PNB_COLLECTION_CLIPART, &o, out, PNB_NOT_FOUND,
                  "apt-get install openclipart-png");
    pnb__free(svg);
    pnb__free(png);
    pnb__free(root);
    pnb__free(out);
    scratch_remove(dir);
}

static void wrong_options_are_refused(void **state)
{
    pnb_collection_opts o = small_opts();
    (void)state;
    o.size = 8;
    expect_status(PNB_COLLECTION_CLIPART, &o, "none", PNB_ARG, "size 8");
    o = small_opts();
    o.val_share = o.test_share = 0.5;
    expect_status(PNB_COLLECTION_CLIPART, &o, "none", PNB_ARG, "together below 1");
    o = small_opts();
    o.near = 1.5;
    expect_status(PNB_COLLECTION_CLIPART, &o, "none", PNB_ARG, "near-duplicates");
    o = small_opts();
    o.language = "de";
    expect_status(PNB_COLLECTION_MIXED, &o, "none", PNB_ARG, "data stamps --language");
    expect_status((pnb_collection_kind)7, &o, "none", PNB_ARG, "no such collection");
}

static void check_stamp(json_t *record, const char *split, void *user)
{
    size_t *n = user;
    const char *file = get(record, "file");
    (void)split;
    ++*n;
    if (!strcmp(file, "animals/big_birds/bird0.txt")) {
        assert_string_equal(get(record, "style"), "photo");
        assert_true(carries(record, "animals", 0) && carries(record, "big birds", 1));
        assert_true(carries(record, "A bird number 0.", 3));
        json_t *words = json_object_get(record, "translations");
        assert_string_equal(get(words, "de"), "Vogel 0.");
        assert_string_equal(get(words, "fr"), "Un oiseau.");
    }
    if (!strcmp(file, "town/cartoon/house.txt")) {
        assert_string_equal(get(record, "style"), "drawing");
        assert_true(carries(record, "town", 0) && !carries(record, "cartoon", 1));
    }
}

static void check_german(json_t *record, const char *split, void *user)
{
    size_t *n = user;
    (void)split;
    ++*n;
    assert_int_equal(json_array_size(json_object_get(record, "captions")), 1);
    assert_true(strncmp(get(record, "caption"), "Vogel ", 6) == 0);
}

static void stamps_are_built(void **state)
{
    (void)state;
    need_svg();
    char *dir = scratch_create(), *root = make_stamps(dir), *out = pnb__path_join(dir, "set");
    char *german = pnb__path_join(dir, "german");
    pnb_collection_opts o = small_opts();
    pnb_collection_stats s;
    seen said = {0};
    size_t n = 0;
    o.stamps = root;
    o.near = 0.9999;
    o.skipped = note;
    o.user = &said;
    ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_STAMPS, &o, out, &s, &err));
    assert_int_equal(s.n_found, 13);
    assert_int_equal(said.n, 2);
    assert_non_null(strstr(said.text, "town/sign.txt: SVG: it has text"));
    assert_non_null(strstr(said.text, "town/alone.txt: a text without a picture"));
    each_record(out, check_stamp, &n);
    assert_int_equal(n, 11);
    assert_true(s.set.n_test >= 1 && s.set.n_val >= 1);
    o.language = "de";
    n = 0;
    ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_STAMPS, &o, german, &s, &err));
    assert_int_equal(s.n_wordless, 2);
    each_record(german, check_german, &n);
    assert_int_equal(n, 10);
    o.language = "xx";
    char *none = pnb__path_join(dir, "none");
    expect_status(PNB_COLLECTION_STAMPS, &o, none, PNB_FORMAT, "in 'xx'");
    pnb__free(none);
    pnb__free(german);
    pnb__free(out);
    pnb__free(root);
    scratch_remove(dir);
}

/* ---- mixed ---- */

static const char LIST[] = "# group: Food\n# subgroup: food-fruit\n"
                           "1F34E ; fully-qualified # x E0.6 red apple\n"
                           "1F350 ; fully-qualified # x E1.0 pear\n"
                           "1F330 ; fully-qualified # x E0.6 chestnut\n";
static const char WORDS[] = "<annotation cp=\"\xF0\x9F\x8D\x8E\">fruit | red</annotation>\n";

typedef struct mixed_check {
    const char *held_out;
    size_t n, n_held_out;
    char apple[8];
} mixed_check;

static void check_mixed(json_t *record, const char *split, void *user)
{
    mixed_check *m = user;
    bool is_held_out = strstr(m->held_out, get(record, "style")) != NULL;
    m->n++;
    m->n_held_out += is_held_out;
    if (is_held_out)
        assert_string_equal(split, "test");
    assert_int_equal(json_is_true(json_object_get(record, "new_style")), is_held_out);
    if (!strcmp(get(record, "concept"), "apple")) {
        if (m->apple[0] == '\0')
            snprintf(m->apple, sizeof m->apple, "%s", split);
        assert_string_equal(m->apple, split); /* emoji and clip art alike */
        assert_int_equal(json_is_true(json_object_get(record, "new_concept")),
                         strcmp(split, "train") != 0);
    }
}

static void styles_are_mixed(void **state)
{
    static const char FONT[] = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf";
    (void)state;
    need_svg();
#ifndef PNB_HAVE_FREETYPE
    skip();
#endif
    if (!pnb__path_is_file(FONT)) {
        print_message("skipped: needs fonts-noto-color-emoji\n");
        skip();
    }
    char *dir = scratch_create(), *clipart = make_clipart(dir), *stamps = make_stamps(dir);
    char *out = pnb__path_join(dir, "set"), *list = pnb__path_join(dir, "list/emoji-test.txt");
    char *cldr = pnb__path_join(dir, "common");
    put_file(dir, "list/emoji-test.txt", LIST, sizeof LIST - 1);
    put_file(dir, "common/annotations/en.xml", WORDS, sizeof WORDS - 1);
    put_file(dir, "common/annotationsDerived/en.xml", "", 0);
    pnb_collection_opts o = small_opts();
    mixed_check m;
    o.clipart = clipart;
    o.stamps = stamps;
    o.emoji.emoji_test = list;
    o.emoji.cldr_common = cldr;
    for (uint64_t seed = 0; seed < 4; seed++) {
        o.seed = seed % 3;
        o.held_out = seed < 3 ? "photo" : "drawing,photo";
        m = (mixed_check){.held_out = o.held_out};
        char *set = pnb__format("%s%d", out, (int)seed);
        ASSERT_OK(pnb_collection_build(NULL, PNB_COLLECTION_MIXED, &o, set, NULL, &err));
        each_record(set, check_mixed, &m);
        assert_int_equal(m.n, 26 + 11 + 3);
        assert_int_equal(m.n_held_out, seed < 3 ? 10 : 11);
        assert_true(m.apple[0] != '\0');
        pnb__free(set);
    }
    static const char *const wrong[][2] = {{"oil", "'oil' is no style: styles are clipart"},
                                           {"photo,oil", "'oil' is no style"},
                                           {"photo,", "'' is no style"},
                                           {"", "'' is no style"},
                                           {"photo,photo", "'photo' is held out twice"},
                                           {"photo,drawing,clipart,emoji", "all styles"}};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        o.held_out = wrong[i][0];
        expect_status(PNB_COLLECTION_MIXED, &o, out, PNB_ARG, wrong[i][1]);
    }
    pnb__free(out);
    pnb__free(list);
    pnb__free(cldr);
    pnb__free(clipart);
    pnb__free(stamps);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipart_is_built),
        cmocka_unit_test(seeds_and_threads),
        cmocka_unit_test(options_bring_back_what_is_left_out),
        cmocka_unit_test(noise_is_known),
        cmocka_unit_test(missing_packages_are_named),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(stamps_are_built),
        cmocka_unit_test(styles_are_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
