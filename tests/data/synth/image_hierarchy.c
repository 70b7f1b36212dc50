/* Chains of pictures made of COCO's masks: every pixel of every level, what counts as a segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "penumbra/dataset.h"
#include "penumbra/image.h"
#include "penumbra/image_hierarchy.h"
#include "tests/prob/support.h"

enum { W = 8, H = 6 };

typedef struct world {
    char dir[48], instances[96], texts[96], images[96], out[96];
    unsigned char pixels[W * H * 3];
} world;

/* Picture 7: a 4x4 polygon (16), a 2x6 strip in runs (12), one column compressed (6), a crowd of
 * everything. Picture 3: one small segment. Picture 9: no file. Picture 11: another size. */
static const char coco[] =
    "{\"info\":{},\"categories\":[{\"id\":1,\"name\":\"dog\"},{\"id\":5,\"name\":\"cat\"},"
    "{\"id\":2,\"name\":\"bench\"}],\"images\":["
    "{\"id\":7,\"file_name\":\"a.png\",\"width\":8,\"height\":6},"
    "{\"id\":3,\"file_name\":\"b.png\",\"width\":8,\"height\":6},"
    "{\"id\":9,\"file_name\":\"gone.png\",\"width\":8,\"height\":6},"
    "{\"id\":11,\"file_name\":\"small.png\",\"width\":8,\"height\":6}],\"annotations\":["
    "{\"id\":30,\"image_id\":7,\"category_id\":2,\"iscrowd\":0,\"segmentation\":{\"size\":[6,8],"
    "\"counts\":\"h06b0\"}},"
    "{\"id\":10,\"image_id\":7,\"category_id\":1,\"iscrowd\":0,\"segmentation\":"
    "[[0,0,4,0,4,4,0,4]]},"
    "{\"id\":20,\"image_id\":7,\"category_id\":5,\"iscrowd\":0,\"segmentation\":{\"size\":[6,8],"
    "\"counts\":[30,12,6]}},"
    "{\"id\":40,\"image_id\":7,\"category_id\":5,\"iscrowd\":1,\"segmentation\":{\"size\":[6,8],"
    "\"counts\":[0,48]}},"
    "{\"id\":50,\"image_id\":3,\"category_id\":1,\"iscrowd\":0,\"segmentation\":"
    "[[0,0,1,0,1,1,0,1]]},"
    "{\"id\":60,\"image_id\":9,\"category_id\":1,\"iscrowd\":0,\"segmentation\":"
    "[[0,0,4,0,4,4,0,4]]},"
    "{\"id\":61,\"image_id\":11,\"category_id\":1,\"iscrowd\":0,\"segmentation\":"
    "[[0,0,4,0,4,4,0,4]]}]}";
static const char coco_texts[] =
    "{\"annotations\":[{\"id\":2,\"image_id\":7,\"caption\":\"a later one\"},"
    "{\"id\":1,\"image_id\":7,\"caption\":\"a dog and a cat by a bench\"},"
    "{\"id\":3,\"image_id\":999,\"caption\":\"of another file\"}]}";

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    char path[160];
    pnb_image image = {0};
    assert_non_null(w);
    strcpy(w->dir, "/tmp/pnb-chains-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->instances, sizeof w->instances, "%s/instances.json", w->dir);
    snprintf(w->texts, sizeof w->texts, "%s/captions.json", w->dir);
    snprintf(w->images, sizeof w->images, "%s/pictures", w->dir);
    snprintf(w->out, sizeof w->out, "%s/out", w->dir);
    assert_ok(pnb__make_dirs(w->images, err));
    assert_ok(pnb__write_file(w->instances, coco, sizeof coco - 1, err));
    assert_ok(pnb__write_file(w->texts, coco_texts, sizeof coco_texts - 1, err));
    for (int i = 0; i < W * H * 3; i++)
        w->pixels[i] = (unsigned char)(i + 1);
    image = (pnb_image){.width = W, .height = H, .channels = 3, .pixels = w->pixels};
    snprintf(path, sizeof path, "%s/a.png", w->images);
    assert_ok(pnb_image_save_png(&image, path, err));
    snprintf(path, sizeof path, "%s/b.png", w->images);
    assert_ok(pnb_image_save_png(&image, path, err));
    image.height = H - 1;
    snprintf(path, sizeof path, "%s/small.png", w->images);
    assert_ok(pnb_image_save_png(&image, path, err));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
    free(w);
    return system(command);
}

static void count_skipped(void *user, const char *image, const char *why)
{
    int *n = user;
    assert_non_null(strstr("gone.png small.png", image));
    assert_true(strlen(why) > 0);
    (*n)++;
}

/* Does level l of picture 7 show the pixel? */
static bool shown(size_t level, int x, int y)
{
    return level == 3 || (x < 4 && y < 4) || (level >= 1 && (x == 5 || x == 6)) ||
           (level >= 2 && x == 4);
}

static void check_level(const world *w, const pnb_dataset *set, size_t level)
{
    static const char *const texts[] = {"dog", "dog and cat", "dog, cat and bench",
                                        "a dog and a cat by a bench"};
    pnb_sample sample = {0};
    pnb_image image = {0};
    char key[32];
    snprintf(key, sizeof key, "000000000007_%zu", level);
    assert_ok(pnb_dataset_get(set, level, &sample, err));
    assert_non_null(strstr(sample.key, key));
    assert_int_equal(sample.n_texts, level + 1);
    for (size_t l = 0; l <= level; l++) {
        assert_string_equal(sample.texts[l], texts[l]);
        assert_int_equal(sample.levels[l], (int)l);
    }
    assert_string_equal(sample.name, "a.png");
    assert_string_equal(sample.group, "dog");
    assert_ok(pnb_dataset_image(set, level, &image, err));
    assert_true(image.width == W && image.height == H);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < 3; c++) {
                int at = 3 * (y * W + x) + c;
                assert_int_equal(image.pixels[at], shown(level, x, y) ? w->pixels[at] : 255);
            }
    pnb_image_free(&image);
    pnb_sample_reset(&sample);
}

static pnb_image_hierarchy_opts small_opts(const world *w)
{
    pnb_image_hierarchy_opts o = pnb_image_hierarchy_opts_default();
    o.min_pixels = 5;
    o.texts = w->texts;
    return o;
}

static void a_chain(void **state)
{
    world *w = *state;
    pnb_image_hierarchy_opts o = small_opts(w);
    pnb_image_hierarchy_stats stats;
    pnb_dataset *set = NULL;
    char path[160], *pairs = NULL;
    size_t size = 0;
    int n_skipped = 0;
    o.skipped = count_skipped;
    o.user = &n_skipped;
    o.n_segments = 3;
    assert_ok(pnb_image_hierarchy_build(NULL, w->instances, w->images, w->out, &o, &stats, err));
    assert_true(stats.n_listed == 4 && stats.n_chains == 1 && stats.n_images == 4);
    assert_true(stats.n_small == 1 && stats.n_few == 2 && stats.n_skipped == 0 && !stats.reused);
    snprintf(path, sizeof path, "%s/test", w->out);
    assert_ok(pnb_dataset_open(&set, path, NULL, err));
    assert_int_equal(pnb_dataset_size(set), 4);
    for (size_t level = 0; level < 4; level++)
        check_level(w, set, level);
    pnb_dataset_free(set);
    snprintf(path, sizeof path, "%s/truth/test.pairs", w->out);
    assert_ok(pnb__read_file(path, 10000, &pairs, &size, err));
    assert_non_null(strstr(pairs, "000000000007_0\t0-000000\n"));
    assert_non_null(strstr(pairs, "000000000007_3\t2-000002\n"));
    assert_null(strstr(pairs, "000000000007_2\t3-"));
    pnb__free(pairs);

    assert_ok(pnb_image_hierarchy_build(NULL, w->instances, w->images, w->out, &o, &stats, err));
    assert_true(stats.reused && stats.n_chains == 1 && stats.n_images == 4);
    o.fill = 0;
    assert_fails(pnb_image_hierarchy_build(NULL, w->instances, w->images, w->out, &o, &stats, err),
                 PNB_EXISTS, "out");
}

static void crops_and_skips(void **state)
{
    world *w = *state;
    pnb_image_hierarchy_opts o = small_opts(w);
    pnb_image_hierarchy_stats stats;
    pnb_dataset *set = NULL;
    pnb_image image = {0};
    char path[160], out[160];
    int n_skipped = 0;
    snprintf(out, sizeof out, "%s/crops", w->dir);
    o.skipped = count_skipped;
    o.user = &n_skipped;
    o.n_segments = 1;
    o.texts = NULL;
    o.show = PNB_IMAGE_HIERARCHY_CROP;
    assert_ok(pnb_image_hierarchy_build(NULL, w->instances, w->images, out, &o, &stats, err));
    assert_true(stats.n_chains == 1 && stats.n_skipped == 2 && n_skipped == 2);
    snprintf(path, sizeof path, "%s/test", out);
    assert_ok(pnb_dataset_open(&set, path, NULL, err));
    assert_ok(pnb_dataset_image(set, 0, &image, err));
    assert_true(image.width == 4 && image.height == 4);
    assert_memory_equal(image.pixels + 12, w->pixels + 3 * W, 12);
    pnb_image_free(&image);
    pnb_sample sample = {0};
    assert_ok(pnb_dataset_get(set, 1, &sample, err));
    assert_string_equal(sample.texts[1], "dog, cat and bench");
    pnb_sample_reset(&sample);
    pnb_dataset_free(set);
}

/* Small segments and crowds by choice. */
static void what_counts(void **state)
{
    world *w = *state;
    pnb_image_hierarchy_opts o = small_opts(w);
    pnb_image_hierarchy_stats stats;
    char out[160];
    snprintf(out, sizeof out, "%s/counts", w->dir);
    o.min_pixels = 6; /* the strip of 6 is not larger */
    assert_fails(pnb_image_hierarchy_build(NULL, w->instances, w->images, out, &o, &stats, err),
                 PNB_ARG, "2 a segment of 6 pixels or less");
    assert_false(pnb__path_is_dir(out));
    o.drop_small = true;
    assert_fails(pnb_image_hierarchy_build(NULL, w->instances, w->images, out, &o, &stats, err),
                 PNB_ARG, "4 have fewer");
    o.crowds = true; /* the crowd is the third */
    assert_ok(pnb_image_hierarchy_build(NULL, w->instances, w->images, out, &o, &stats, err));
    assert_int_equal(stats.n_chains, 1);
    o.n_segments = 4;
    assert_fails(pnb_image_hierarchy_build(NULL, w->instances, w->images, out, &o, &stats, err),
                 PNB_ARG, "4 segments");
}

static void file_refused(const world *w, const char *json, pnb_status status, const char *part)
{
    char path[160], out[160];
    pnb_image_hierarchy_opts o = pnb_image_hierarchy_opts_default();
    snprintf(path, sizeof path, "%s/bad.json", w->dir);
    snprintf(out, sizeof out, "%s/bad", w->dir);
    assert_ok(pnb__write_file(path, json, strlen(json), err));
    assert_fails(pnb_image_hierarchy_build(NULL, path, w->images, out, &o, NULL, err), status,
                 part);
    assert_false(pnb__path_is_dir(out));
}

/* What a file may not be is tested in coco_instances.c; here nothing is left behind. */
static void bad_files(void **state)
{
    world *w = *state;
    file_refused(w, "{}", PNB_FORMAT, "no list \"categories\"");
    file_refused(w, "[", PNB_FORMAT, "bad.json");
    file_refused(w, "{\"categories\":[],\"images\":[],\"annotations\":[]}", PNB_ARG,
                 "not one of 0 pictures");
}

#ifdef PNB_FAULTS
/* Each allocation fails in turn. Where a picture's decoder is the one that lacks memory, the
 * picture counts as unreadable, and the set may end without a chain. */
static void out_of_memory(void **state)
{
    world *w = *state;
    pnb_image_hierarchy_opts o = small_opts(w);
    char out[160];
    long n = 0;
    snprintf(out, sizeof out, "%s/memory", w->dir);
    for (;; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb_image_hierarchy_stats stats;
        pnb__alloc_fail_after(n);
        pnb_status status =
            pnb_image_hierarchy_build(NULL, w->instances, w->images, out, &o, &stats, &error);
        pnb__alloc_fail_after(-1);
        if (status == PNB_OK)
            break;
        if (status != PNB_NOMEM && status != PNB_ARG && status != PNB_IO)
            fail_msg("allocation %ld: %s: %s", n, pnb_status_name(status), error.text);
        assert_false(pnb__path_is_dir(out));
        assert_true(n < 20000);
    }
    assert_true(n > 50);
    assert_true(pnb__path_is_dir(out));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain),       cmocka_unit_test(crops_and_skips),
        cmocka_unit_test(what_counts),   cmocka_unit_test(bad_files),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
