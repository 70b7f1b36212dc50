/* The whole set: match sets by brute force over the names of concepts, counts, the same bytes on
 * any number of threads, widths, families, and what is there already. */
#include "data/synth/ambiguous.h"

#include "tests/data/fixture.h"

#include <math.h>
#include <stdlib.h>

#include "sets/set_rows.h"

static char *scratch;

static int set_up(void **state)
{
    (void)state;
    scratch = scratch_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

static pnb_ambiguous_opts small(void)
{
    pnb_ambiguous_opts o = pnb_ambiguous_opts_default();
    o.n_images = 200;
    o.dim = 10;
    o.n_levels = 3;
    o.n_roots = 2;
    o.n_branches = 3;
    o.n_texts = 31;
    o.val_share = 0.04; /* 8 pictures for many leaves: concepts without one */
    o.test_share = 0.3;
    o.seed = 9;
    return o;
}

static pnb_embeddings *load(const char *dir, const char *name)
{
    pnb_embeddings *set = NULL;
    char *path = pnb__format("%s/%s/%s.safetensors", scratch, dir, name);
    ASSERT_OK(pnb_embeddings_load(&set, path, &err));
    pnb__free(path);
    return set;
}

static size_t row_of(const pnb_embeddings *set, const char *id)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->ids[i], id) == 0)
            return i;
    fail_msg("no row is called %s", id);
    return 0;
}

/* [images][texts] how often a file of pairs says so. */
static int *load_pairs(const char *dir, const char *name, const pnb_embeddings *images,
                       const pnb_embeddings *texts)
{
    char *path = pnb__format("%s/%s/truth/%s.pairs", scratch, dir, name), *line, *data;
    int *pairs = calloc(images->n * texts->n, sizeof *pairs);
    size_t n;
    ASSERT_OK(pnb__read_file(path, 1 << 24, &data, &n, &err));
    pnb__line_reader lines = {.at = data, .end = data + n, .path = path};
    for (;;) {
        ASSERT_OK(pnb__line_next(&lines, &line, &err));
        if (line == NULL)
            break;
        char *tab = strchr(line, '\t');
        *tab = 0;
        pairs[row_of(images, line) * texts->n + row_of(texts, tab + 1)]++;
    }
    pnb__free(data);
    pnb__free(path);
    return pairs;
}

static void make(const char *name, const pnb_ctx *ctx, const pnb_ambiguous_opts *o,
                 pnb_synth_stats *stats)
{
    char *path = pnb__path_join(scratch, name);
    ASSERT_OK(pnb_synth_ambiguous(ctx, o, path, stats, &err));
    pnb__free(path);
}

static const char *concept_of(const pnb_embeddings *set, size_t row, json_t **extra, int64_t *n)
{
    ASSERT_OK(pnb__set_extra(extra, set, row, &err));
    *n = json_integer_value(json_object_get(*extra, "n_images"));
    return json_string_value(json_object_get(*extra, "concept"));
}

/* A caption fits a picture when its concept is a beginning of the picture's: no other pair is true,
 * and of each caption one is the one it was written for. */
static void check_truth(const char *split, size_t n_images)
{
    char name[32], written_name[32];
    snprintf(name, sizeof name, "a/%s", split);
    snprintf(written_name, sizeof written_name, "%s.written", split);
    pnb_embeddings *images = load(name, "images"), *texts = load(name, "texts");
    int *truth = load_pairs("a", split, images, texts);
    int *written = load_pairs("a", written_name, images, texts);
    assert_int_equal(images->n, n_images);
    for (size_t t = 0; t < texts->n; t++) {
        json_t *of_text = NULL, *of_image = NULL;
        int64_t n, n_fits = 0, n_written = 0, unused;
        const char *concept = concept_of(texts, t, &of_text, &n);
        size_t length = strlen(concept);
        for (size_t i = 0; i < images->n; i++) {
            const char *leaf = concept_of(images, i, &of_image, &unused);
            int fits =
                strncmp(leaf, concept, length) == 0 && (leaf[length] == 0 || leaf[length] == '.');
            assert_int_equal(truth[i * texts->n + t], fits);
            assert_true(written[i * texts->n + t] <= fits);
            n_written += written[i * texts->n + t];
            n_fits += fits;
            json_decref(of_image);
        }
        assert_int_equal(n_fits, n);
        assert_int_equal(n_written, 1);
        json_decref(of_text);
    }
    free(truth);
    free(written);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

/* Captions of a level are shared evenly by the concepts with a picture; no two wordings agree. */
static void check_shares(const char *split)
{
    char name[32];
    snprintf(name, sizeof name, "a/%s", split);
    pnb_embeddings *texts = load(name, "texts");
    size_t n_of[3][200] = {{0}}, n_concepts[3] = {0};
    char last[64] = "";
    for (size_t t = 0; t < texts->n; t++) {
        json_t *extra = NULL;
        int64_t unused;
        int level = -1;
        const char *concept = concept_of(texts, t, &extra, &unused);
        ASSERT_OK(pnb__row_level(&level, texts, t, &err));
        if (strcmp(last, concept) != 0)
            n_concepts[level]++;
        n_of[level][n_concepts[level] - 1]++;
        snprintf(last, sizeof last, "%s", concept);
        json_decref(extra);
        if (t > 0)
            assert_memory_not_equal(texts->mean + t * texts->dim,
                                    texts->mean + (t - 1) * texts->dim, texts->dim * sizeof(float));
    }
    for (int l = 0; l < 3; l++)
        for (size_t c = 0; c < n_concepts[l]; c++) {
            size_t even = 31 / n_concepts[l];
            assert_true(n_of[l][c] == even || n_of[l][c] == even + 1);
        }
    pnb_embeddings_free(texts);
}

/* Roots hold their share of a split's pictures, but for one. */
static void check_roots(const char *split, const pnb_ambiguous_opts *o, size_t n_images)
{
    char name[32];
    snprintf(name, sizeof name, "a/%s", split);
    pnb_embeddings *texts = load(name, "texts");
    pnb__ambiguous_tree tree;
    ASSERT_OK(pnb__ambiguous_tree_make(&tree, o, &err));
    for (size_t t = 0; t < texts->n; t++) {
        json_t *extra = NULL;
        int64_t n;
        const char *concept = concept_of(texts, t, &extra, &n);
        if (strchr(concept, '.') == NULL)
            assert_true(fabs((double)n - tree.mass[atoi(concept)] * (double)n_images) < 1.0 + 1e-9);
        json_decref(extra);
    }
    pnb__ambiguous_tree_reset(&tree);
    pnb_embeddings_free(texts);
}

/* No caption of one split stands in another. */
static void check_apart(void)
{
    pnb_embeddings *train = load("a/train", "texts"), *test = load("a/test", "texts");
    for (size_t i = 0; i < train->n; i++)
        for (size_t j = 0; j < test->n; j++) {
            assert_string_not_equal(train->ids[i], test->ids[j]);
            assert_memory_not_equal(train->mean + i * train->dim, test->mean + j * test->dim,
                                    test->dim * sizeof(float));
        }
    pnb_embeddings_free(train);
    pnb_embeddings_free(test);
}

static void test_truth(void **state)
{
    pnb_ambiguous_opts o = small();
    pnb_synth_stats stats;
    (void)state;
    make("a", NULL, &o, &stats);
    assert_false(stats.reused);
    assert_int_equal(stats.n_train, 132);
    assert_int_equal(stats.n_val, 8);
    assert_int_equal(stats.n_test, 60);
    for (int l = 0; l < 3; l++)
        assert_int_equal(stats.n_texts[l], 3 * 31);
    assert_true(fabs(stats.texts_per_image[0] - 31.0 / 2) < 3);
    check_truth("train", 132);
    check_truth("val", 8);
    check_truth("test", 60);
    check_shares("train");
    check_shares("test");
    check_roots("train", &o, 132);
    check_roots("test", &o, 60);
    check_apart();
    make("a", NULL, &o, &stats);
    assert_true(stats.reused && stats.n_test == 60);
}

/* Captions as they are known: the same rows in the same order, narrower at every level. */
static void test_known(void **state)
{
    pnb_embeddings *texts = load("a/test", "texts"), *known = load("a/test", "known");
    double kappa[3][2] = {{1e9, 0}, {1e9, 0}, {1e9, 0}};
    (void)state;
    assert_int_equal(known->family, PNB_VMF);
    assert_int_equal(texts->family, PNB_POINT);
    assert_int_equal(known->n, texts->n);
    for (size_t t = 0; t < known->n; t++) {
        int level = -1;
        ASSERT_OK(pnb__row_level(&level, known, t, &err));
        assert_string_equal(known->ids[t], texts->ids[t]);
        assert_true(level >= 0 && level < 3);
        kappa[level][0] = PNB_MIN(kappa[level][0], (double)known->kappa[t]);
        kappa[level][1] = PNB_MAX(kappa[level][1], (double)known->kappa[t]);
    }
    for (int l = 0; l < 2; l++)
        assert_true(kappa[l][1] < kappa[l + 1][0]);
    assert_true(kappa[1][0] < kappa[1][1]);
    ASSERT_OK(pnb_embeddings_check_mix(texts, known, &err));
    pnb_embeddings_free(texts);
    pnb_embeddings_free(known);
}

static void compare_bytes(const char *a, const char *b, bool are_equal)
{
    static const char *const files[] = {
        "train/images.safetensors", "train/texts.safetensors",  "test/known.safetensors",
        "test/images.safetensors",  "train/texts.ids.jsonl",    "truth/train.pairs",
        "val/texts.safetensors",    "truth/test.written.pairs", "stats.json"};
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        char *path_a = pnb__format("%s/%s/%s", scratch, a, files[i]), *data_a = NULL;
        char *path_b = pnb__format("%s/%s/%s", scratch, b, files[i]), *data_b = NULL;
        size_t n_a, n_b;
        ASSERT_OK(pnb__read_file(path_a, 1 << 24, &data_a, &n_a, &err));
        ASSERT_OK(pnb__read_file(path_b, 1 << 24, &data_b, &n_b, &err));
        assert_int_equal(n_a == n_b && memcmp(data_a, data_b, n_a) == 0, are_equal);
        pnb__free(data_a);
        pnb__free(data_b);
        pnb__free(path_a);
        pnb__free(path_b);
    }
}

static void test_bytes(void **state)
{
    pnb_ambiguous_opts o = small();
    pnb_ctx *ctx = NULL;
    (void)state;
    ASSERT_OK(pnb_ctx_create(&ctx, NULL, &err));
    make("b", ctx, &o, NULL);
    compare_bytes("a", "b", true);
    o.seed = 10;
    make("c", ctx, &o, NULL);
    compare_bytes("a", "c", false);
    pnb_ctx_free(ctx);
}

static void test_families(void **state)
{
    static const pnb_family families[] = {PNB_POWER_SPHERICAL, PNB_GAUSSIAN_DIAG, PNB_GEN_GAUSSIAN};
    (void)state;
    for (size_t f = 0; f < PNB_COUNT(families); f++) {
        pnb_ambiguous_opts o = small();
        o.family = families[f];
        o.text_dim = 7;
        o.val_share = 0.0;
        make(pnb_family_name(o.family), NULL, &o, NULL);
        char *split = pnb__format("%s/test", pnb_family_name(o.family));
        pnb_embeddings *texts = load(split, "texts"), *known = load(split, "known");
        assert_int_equal(known->family, o.family);
        assert_int_equal(texts->dim, 7);
        assert_int_equal(known->dim, 10);
        pnb_embeddings_free(texts);
        pnb_embeddings_free(known);
        pnb__free(split);
    }
}

static void test_refused(void **state)
{
    pnb_ambiguous_opts o = small();
    pnb_error err = PNB_ERROR_INIT;
    char *path = pnb__path_join(scratch, "a");
    (void)state;
    o.n_texts = 3;
    assert_int_equal(pnb_synth_ambiguous(NULL, &o, path, NULL, &err), PNB_EXISTS);
    pnb__free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),   cmocka_unit_test(test_known),
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_families),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
