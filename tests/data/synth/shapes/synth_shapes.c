/* The `shapes` set: its statistics, its truth against a second reading of the captions' text, the
 * same bytes for any number of threads, ambiguous sets, and what happens to the folder. */
#include "tests/data/fixture.h"

#include <math.h>

#include "data/synth/shapes/shapes.h"
#include "io/json/json.h"
#include "io/tables/tar.h"

static pnb_ctx *ctx_of(int n_threads)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = n_threads;
    ASSERT_OK(pnb_ctx_create(&ctx, &opts, &err));
    return ctx;
}

static pnb_shapes_opts small_opts(size_t n)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    o.n_scenes = n;
    o.shard_size = 40;
    return o;
}

/* ---- a second, independent reading of a caption -------------------------------------------- */

static const char *const FORMS[] = {"circle", "square", "star", "ring", "bar", "pole"};
static const char *const COLOURS[] = {"red", "pink", "yellow", "green", "blue", "purple", "black"};

typedef struct seen_shape {
    const char *form, *colour, *size;
    double x, y;
} seen_shape;

/* "a [size] [colour] form|shape" at *p against one shape; moves *p behind the noun. */
static bool noun_fits(const char **p, const seen_shape *s)
{
    bool fits = true;
    char word[32];
    int used;
    assert_int_equal(sscanf(*p, "%31s%n", word, &used), 1);
    assert_string_equal(word, "a");
    for (;;) {
        *p += used;
        assert_int_equal(sscanf(*p, "%31s%n", word, &used), 1);
        bool is_colour = false, is_form = !strcmp(word, "shape");
        for (size_t i = 0; i < PNB_COUNT(COLOURS); i++)
            is_colour |= !strcmp(word, COLOURS[i]);
        for (size_t i = 0; i < PNB_COUNT(FORMS); i++)
            is_form |= !strcmp(word, FORMS[i]);
        if (is_form) {
            *p += used;
            return fits && (!strcmp(word, "shape") || !strcmp(word, s->form));
        }
        if (is_colour)
            fits &= !strcmp(word, s->colour);
        else
            fits &= !strcmp(word, s->size);
    }
}

static bool rest_fits(const char *p, const seen_shape *shapes, int n, int first);

static bool relation_holds(const char *word, const seen_shape *a, const seen_shape *b, double side)
{
    const double margin = 0.22 * side;
    if (!strcmp(word, "left"))
        return a->x + margin < b->x;
    if (!strcmp(word, "right"))
        return b->x + margin < a->x;
    if (!strcmp(word, "above"))
        return a->y + margin < b->y;
    assert_string_equal(word, "below");
    return b->y + margin < a->y;
}

static bool place_holds(const char *p, const seen_shape *s, double side)
{
    double x = s->x / side - 0.5, y = s->y / side - 0.5;
    bool middle = fabs(x) < 0.16 && fabs(y) < 0.16;
    if (strstr(p, "middle"))
        return middle;
    return !middle && (strstr(p, "left") != NULL) == (x < 0) &&
           (strstr(p, "top") != NULL) == (y < 0);
}

static const double SIDE = 32.0;

static bool third_fits(const char *p, const seen_shape *shapes, int n, int a, int b)
{
    if (!*p)
        return true;
    assert_int_equal(strncmp(p, " and ", 5), 0);
    for (int c = 0; c < n; c++) {
        const char *q = p + 5;
        if (noun_fits(&q, &shapes[c]) && c != a && c != b)
            return true;
    }
    return false;
}

static bool rest_fits(const char *p, const seen_shape *shapes, int n, int a)
{
    char word[32];
    int used;
    if (!*p)
        return true;
    assert_int_equal(sscanf(p, "%31s%n", word, &used), 1);
    if (!strcmp(word, "at"))
        return place_holds(p, &shapes[a], SIDE);
    p += used;
    if (!strcmp(word, "left") || !strcmp(word, "right")) {
        assert_int_equal(strncmp(p, " of ", 4), 0);
        p += 3;
    }
    for (int b = 0; b < n; b++) {
        const char *q = p + 1;
        if (noun_fits(&q, &shapes[b]) && b != a &&
            relation_holds(word, &shapes[a], &shapes[b], SIDE) && third_fits(q, shapes, n, a, b))
            return true;
    }
    return false;
}

static bool text_is_true(const char *text, const seen_shape *shapes, int n)
{
    static const char *const COUNTS[] = {"", "one shape", "two shapes", "three shapes"};
    for (int k = 1; k <= 3; k++)
        if (!strcmp(text, COUNTS[k]))
            return n == k;
    for (int a = 0; a < n; a++) {
        const char *p = text;
        if (noun_fits(&p, &shapes[a]) && rest_fits(p, shapes, n, a))
            return true;
    }
    return false;
}

/* ---- reading a set back --------------------------------------------------------------------- */

typedef struct split_data {
    size_t n_images, n_texts;
    json_t *images[2000];
    char *keys[2000];
    json_t *texts[8000];
} split_data;

static void read_shard(split_data *d, const char *path)
{
    pnb__tar tar = {0};
    pnb__tar_member m;
    bool more = true;
    ASSERT_OK(pnb__tar_open(&tar, path, &err));
    for (;;) {
        ASSERT_OK(pnb__tar_next(&tar, &m, &more, &err));
        if (!more)
            break;
        if (pnb__ends_with(m.name, ".png")) {
            pnb_image image = {0};
            ASSERT_OK(pnb_image_decode(&image, m.data, m.size, NULL, &err));
            assert_int_equal(image.width, (int)SIDE);
            pnb_image_free(&image);
        } else {
            d->keys[d->n_images] = pnb__strndup(m.name, strlen(m.name) - strlen(".json"));
            ASSERT_OK(pnb__json_load_bytes(&d->images[d->n_images], (const char *)m.data, m.size,
                                           m.name, &err));
            d->n_images++;
        }
    }
    pnb__tar_close(&tar);
}

static void read_split(split_data *d, const char *dir, const char *split, size_t n_shards)
{
    char *text = NULL, *path = pnb__format("%s/%s/captions.jsonl", dir, split);
    size_t n;
    ASSERT_OK(pnb__read_file(path, 1 << 26, &text, &n, &err));
    pnb__free(path);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ASSERT_OK(pnb__json_load_bytes(&d->texts[d->n_texts++], line, strlen(line), "line", &err));
    pnb__free(text);
    for (size_t i = 0; i < n_shards; i++) {
        path = pnb__format("%s/%s/%05zu.tar", dir, split, i);
        read_shard(d, path);
        pnb__free(path);
    }
}

static void free_split(split_data *d)
{
    for (size_t i = 0; i < d->n_images; i++) {
        json_decref(d->images[i]);
        pnb__free(d->keys[i]);
    }
    for (size_t i = 0; i < d->n_texts; i++)
        json_decref(d->texts[i]);
    free(d);
}

static const char *field(json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    assert_non_null(text);
    return text;
}

static int shapes_of(json_t *record, seen_shape *out)
{
    json_t *list = json_object_get(record, "shapes");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *s = json_array_get(list, i);
        out[i] = (seen_shape){field(s, "form"), field(s, "colour"), field(s, "size"),
                              json_number_value(json_object_get(s, "x")),
                              json_number_value(json_object_get(s, "y"))};
    }
    return (int)json_array_size(list);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_statistics(void **state)
{
    /* From the description of the set: distinct captions, captions a scene, scenes a caption. */
    static const double DISTINCT[] = {16, 42, 1260, 20389}, GIVEN[] = {4.6, 2.0, 4.6, 4.5},
                        TRUE_OF[] = {1446, 234, 30, 1.6};
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb_synth_stats stats;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set");
    (void)state;
    o.width = o.height = 16; /* places scale with the picture, so the statistics are the same */
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, &stats, &err));
    assert_int_equal(stats.n_train, 4000);
    assert_int_equal(stats.n_val, 500);
    assert_int_equal(stats.n_test, 500);
    assert_int_equal(stats.n_words, 32);
    assert_int_equal(stats.n_ambiguous, 0);
    for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++) {
        print_message("level %d: %zu distinct, %.2f a scene, each true of %.2f\n", l,
                      stats.n_texts[l], stats.texts_per_image[l], stats.images_per_text[l]);
        assert_true(fabs((double)stats.n_texts[l] / DISTINCT[l] - 1) < 0.1);
        assert_true(fabs(stats.texts_per_image[l] / GIVEN[l] - 1) < 0.1);
        assert_true(fabs(stats.images_per_text[l] / TRUE_OF[l] - 1) < 0.2);
    }
    pnb__free(out);
    scratch_remove(dir);
}

/* Set of "image TAB caption" lines of a truth file, looked up through a text search. */
static void test_truth(void **state)
{
    pnb_shapes_opts o = small_opts(250);
    pnb_synth_stats stats;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set"), *text = NULL;
    split_data *d = calloc(1, sizeof *d);
    size_t n_text, n_pairs = 0, n_true = 0;
    (void)state;
    o.width = o.height = (int)SIDE;
    o.seed = 3;
    o.val_share = 0;
    o.test_share = 0.4;
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, &stats, &err));
    read_split(d, out, "test", 3);
    assert_int_equal(d->n_images, 100);
    char *path = pnb__path_join(out, "truth/test.pairs");
    ASSERT_OK(pnb__read_file(path, 1 << 26, &text, &n_text, &err));
    for (size_t i = 0; i < n_text; i++)
        n_pairs += text[i] == '\n';
    for (size_t c = 0; c < d->n_texts; c++)
        for (size_t i = 0; i < d->n_images; i++) {
            seen_shape shapes[3];
            int n = shapes_of(d->images[i], shapes);
            if (!text_is_true(field(d->texts[c], "text"), shapes, n))
                continue;
            char *line = pnb__format("%s\t%s\n", d->keys[i], field(d->texts[c], "id"));
            if (!strstr(text, line))
                fail_msg("missing: %s %s", d->keys[i], field(d->texts[c], "text"));
            pnb__free(line);
            n_true++;
        }
    assert_int_equal(n_true, n_pairs);
    assert_true(n_pairs > 1000);
    pnb__free(path);
    pnb__free(text);
    free_split(d);
    pnb__free(out);
    scratch_remove(dir);
}

/* Captions of a record: true of it, levels as named, ids those of the list, 14 words at most. */
static void test_records(void **state)
{
    pnb_shapes_opts o = small_opts(120);
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set");
    split_data *d = calloc(1, sizeof *d);
    (void)state;
    o.width = o.height = (int)SIDE;
    o.val_share = o.test_share = 0;
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, NULL, &err));
    read_split(d, out, "train", 3);
    for (size_t i = 0; i < d->n_images; i++) {
        json_t *texts = json_object_get(d->images[i], "captions");
        json_t *levels = json_object_get(d->images[i], "levels");
        json_t *ids = json_object_get(d->images[i], "caption_ids");
        bool has_level[4] = {0};
        seen_shape shapes[3];
        int n = shapes_of(d->images[i], shapes);
        assert_int_equal(json_array_size(texts), json_array_size(levels));
        assert_int_equal(json_array_size(texts), json_array_size(ids));
        for (size_t k = 0; k < json_array_size(texts); k++) {
            const char *text = json_string_value(json_array_get(texts, k));
            int words = 1;
            for (const char *p = text; *p; p++)
                words += *p == ' ';
            assert_true(text_is_true(text, shapes, n));
            assert_in_range(words, 2, 14);
            has_level[json_integer_value(json_array_get(levels, k))] = true;
        }
        assert_true(has_level[0] && has_level[1] && has_level[2] && has_level[3]);
        assert_string_equal(field(d->images[i], "group"), "shapes");
    }
    free_split(d);
    pnb__free(out);
    scratch_remove(dir);
}

static void hash_file(pnb__sha256 *s, const char *dir, const char *name)
{
    char *path = pnb__path_join(dir, name), *data = NULL;
    size_t n;
    ASSERT_OK(pnb__read_file(path, 1 << 28, &data, &n, &err));
    pnb__sha256_update(s, data, n);
    pnb__free(data);
    pnb__free(path);
}

static void set_digest(const char *dir, char hex[65])
{
    static const char *const FILES[] = {
        "train/00000.tar",      "train/00001.tar",     "train/sizes.json", "train/images.jsonl",
        "train/captions.jsonl", "val/00000.tar",       "test/00000.tar",   "truth/train.pairs",
        "truth/val.pairs",      "test/captions.jsonl", "stats.json"};
    pnb__sha256 s;
    pnb__sha256_init(&s);
    for (size_t i = 0; i < PNB_COUNT(FILES); i++)
        hash_file(&s, dir, FILES[i]);
    pnb__sha256_hex(&s, hex);
}

static void test_same_bytes(void **state)
{
    pnb_shapes_opts o = small_opts(90);
    char hex[3][65];
    char *dir = scratch_create();
    (void)state;
    o.width = o.height = 24;
    o.blur_p = o.occlude_p = o.grey_p = 0.3;
    for (int i = 0; i < 3; i++) {
        pnb_ctx *ctx = ctx_of(i == 1 ? 3 : 1);
        char *out = pnb__format("%s/%d", dir, i);
        o.seed = i == 2 ? 1 : 0;
        ASSERT_OK(pnb_synth_shapes(ctx, &o, out, NULL, &err));
        set_digest(out, hex[i]);
        pnb__free(out);
        pnb_ctx_free(ctx);
    }
    assert_string_equal(hex[0], hex[1]);
    assert_string_not_equal(hex[0], hex[2]);
    scratch_remove(dir);
}

static void test_reuse_and_refusal(void **state)
{
    pnb_shapes_opts o = small_opts(20);
    pnb_synth_stats first, second;
    pnb_error error = PNB_ERROR_INIT;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set");
    (void)state;
    o.width = o.height = 16;
    put_text(dir, "set.partial/train/00000.tar", "left by a killed run");
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, &first, &err));
    assert_false(first.reused);
    char *partial = pnb__path_join(dir, "set.partial");
    assert_int_equal(access(partial, F_OK), -1);
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, &second, &err));
    assert_true(second.reused);
    assert_int_equal(second.n_train, first.n_train);
    assert_int_equal(second.n_texts[3], first.n_texts[3]);
    assert_true(second.images_per_text[2] == first.images_per_text[2]);
    o.seed = 9;
    assert_int_equal(pnb_synth_shapes(NULL, &o, out, NULL, &error), PNB_EXISTS);
    assert_non_null(strstr(error.text, out));
    put_text(dir, "other/file.txt", "mine");
    char *other = pnb__path_join(dir, "other");
    pnb_error_reset(&error);
    assert_int_equal(pnb_synth_shapes(NULL, &o, other, NULL, &error), PNB_EXISTS);
    char *blocked = pnb__path_join(dir, "other/file.txt/set");
    pnb_error_reset(&error);
    assert_int_not_equal(pnb_synth_shapes(NULL, &o, blocked, NULL, &error), PNB_OK);
    pnb__free(blocked);
    pnb__free(other);
    pnb__free(partial);
    pnb__free(out);
    scratch_remove(dir);
}

static void test_bad_options(void **state)
{
    pnb_error error;
    (void)state;
    for (int i = 0; i < 8; i++) {
        pnb_shapes_opts o = small_opts(10);
        switch (i) {
        case 0:
            o.n_scenes = 0;
            break;
        case 1:
            o.width = 8;
            break;
        case 2:
            o.grey_p = 1.5;
            break;
        case 6:
            o.wordy = -0.1;
            break;
        case 3:
            o.blur_p = NAN;
            break;
        case 4:
            o.val_share = 0.9;
            o.test_share = 0.2;
            break;
        case 5:
            o.shard_size = 0;
            break;
        default:
            o.height = 1000;
            break;
        }
        error = (pnb_error)PNB_ERROR_INIT;
        assert_int_equal(pnb_synth_shapes(NULL, &o, "/nonexistent/x", NULL, &error), PNB_ARG);
        assert_true(strlen(error.text) > 10);
    }
}

/* Captions in frames are another set, which is neither reused nor written over; ids, levels and
 * bits are those of the bare one. */
static void test_wordy_set(void **state)
{
    pnb_shapes_opts o = small_opts(60);
    pnb_synth_stats stats;
    pnb_error error = PNB_ERROR_INIT;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set");
    char *wordy = pnb__path_join(dir, "wordy");
    split_data *bare = calloc(1, sizeof *bare), *framed = calloc(1, sizeof *framed);
    size_t n_framed = 0;
    (void)state;
    o.width = o.height = (int)SIDE;
    o.val_share = o.test_share = 0;
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, &stats, &err));
    o.wordy = 0.7;
    assert_int_equal(pnb_synth_shapes(NULL, &o, out, &stats, &error), PNB_EXISTS);
    pnb_error_reset(&error);
    ASSERT_OK(pnb_synth_shapes(NULL, &o, wordy, &stats, &err));
    read_split(bare, out, "train", 2);
    read_split(framed, wordy, "train", 2);
    assert_int_equal(bare->n_texts, framed->n_texts);
    for (size_t i = 0; i < bare->n_texts; i++) {
        static const char *const same[] = {"id", "level", "entropy_bits", "expected_bits"};
        for (size_t k = 0; k < PNB_COUNT(same); k++) {
            json_t *value = json_object_get(bare->texts[i], same[k]);
            assert_non_null(value);
            assert_true(json_equal(value, json_object_get(framed->texts[i], same[k])));
        }
        const char *a = json_string_value(json_object_get(bare->texts[i], "text"));
        const char *b = json_string_value(json_object_get(framed->texts[i], "text"));
        assert_non_null(strstr(b, a));
        n_framed += strcmp(a, b) != 0;
    }
    assert_true((double)n_framed > 0.6 * (double)bare->n_texts &&
                (double)n_framed < 0.8 * (double)bare->n_texts);
    free_split(bare);
    free_split(framed);
    pnb__free(wordy);
    pnb__free(out);
    scratch_remove(dir);
}

static void test_ambiguous_set(void **state)
{
    pnb_shapes_opts o = small_opts(60);
    pnb_synth_stats stats;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "set");
    split_data *d = calloc(1, sizeof *d);
    int n_grey = 0;
    (void)state;
    o.width = o.height = (int)SIDE;
    o.val_share = o.test_share = 0;
    o.grey_p = 0.5;
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, &stats, &err));
    read_split(d, out, "train", 2);
    for (size_t i = 0; i < d->n_images; i++) {
        json_t *a = json_object_get(d->images[i], "ambiguity");
        double k = json_number_value(json_object_get(a, "grey_shapes"));
        double bits = json_number_value(json_object_get(a, "entropy_bits"));
        assert_true(fabs(bits - k * log2(7.0)) < 0.05);
        assert_int_equal(json_array_size(json_object_get(a, "kinds")), k > 0);
        n_grey += k > 0;
    }
    assert_int_equal(n_grey, (int)stats.n_ambiguous);
    assert_in_range(n_grey, 15, 45);
    free_split(d);
    pnb__free(out);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_records),           cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_reuse_and_refusal), cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_ambiguous_set),     cmocka_unit_test(test_wordy_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
