/* What goes into one batch: the caption that is drawn, its template and tokens, the picture in its
 * own mode, and what stands in for a sample that cannot be read. */
#include "data/loader/loader_internal.h"
#include "tests/data/loader/batches.h"

/* Pixels of the only picture of `data`, prepared by the loader. */
static void load_only(const char *data, const pnb_loader_opts *o, float *out)
{
    pnb_dataset *one = NULL;
    pnb_loader *l = NULL;
    ASSERT_OK(pnb_dataset_open(&one, data, NULL, &err));
    ASSERT_OK(pnb_loader_create(&l, one, o, &err));
    memcpy(out, next_of(l)->pixels, (size_t)3 * SIDE * SIDE * sizeof *out);
    pnb_loader_free(l);
    pnb_dataset_free(one);
}

/* Resizing before converting: a palette picture on disk keeps its mode, one in a tar does not. */
static void test_own_mode(void **state)
{
    float want[2][3 * SIDE * SIDE], got[2][3 * SIDE * SIDE];
    pnb_loader_opts o = opts_of(0);
    char *png = NULL;
    size_t n = 0;
    pnb__tar_writer w;
    (void)state;
    o.batch_size = 1;
    o.tokenizer = NULL;
    o.augment = pnb_augment_none();
    o.preprocess.resize_first = true;
    ASSERT_OK(pnb__read_file(PNB_SOURCE_DIR "/tests/golden/preprocess/png_palette/image.png",
                             1 << 20, &png, &n, &err));
    char *dir = pnb__path_join(scratch, "own"), *tar = pnb__path_join(scratch, "own.tar");
    put_file(dir, "a.png", png, n);
    put_text(dir, "a.txt", "thing");
    ASSERT_OK(pnb__tar_writer_open(&w, tar, &err));
    ASSERT_OK(pnb__tar_writer_add(&w, "a.png", png, n, &err));
    ASSERT_OK(pnb__tar_writer_add(&w, "a.txt", "thing", 5, &err));
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    for (int native = 0; native < 2; native++) {
        pnb_image image = {0};
        pnb_image_opts as = pnb_image_opts_default();
        as.native = native;
        ASSERT_OK(pnb_image_decode(&image, png, n, &as, &err));
        ASSERT_OK(pnb_preprocess_apply(&o.preprocess, &image, want[native], &err));
        pnb_image_free(&image);
        load_only(native ? dir : tar, &o, got[native]);
        assert_memory_equal(got[native], want[native], sizeof want[native]);
    }
    assert_memory_not_equal(want[0], want[1], sizeof want[0]);
    o.augment = pnb_augment_small();
    load_only(dir, &o, got[0]); /* drawn on RGB */
    pnb__free(png);
    pnb__free(dir);
    pnb__free(tar);
}

static void count_levels(const pnb_loader_opts *o, int n_batches, int counts[4])
{
    pnb_loader *l = NULL;
    ASSERT_OK(pnb_loader_create(&l, ds, o, &err));
    memset(counts, 0, 4 * sizeof *counts);
    for (int i = 0; i < n_batches; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n_texts; k++)
            counts[b->levels[k]]++;
    }
    pnb_loader_free(l);
}

static void test_texts(void **state)
{
    static const char *const TEMPLATES[] = {"a picture of {}", "{c} again"};
    pnb_loader_opts o = opts_of(1);
    pnb_loader *l = NULL;
    int counts[4], n_templated = 0;
    (void)state;
    count_levels(&o, 60, counts); /* 480 draws over three levels */
    assert_in_range(counts[0], 120, 200);
    assert_in_range(counts[1], 120, 200);
    assert_int_equal(counts[2], 0);
    o.texts = PNB_TEXT_ANY;
    count_levels(&o, 60, counts); /* four captions, two of level 1 */
    assert_in_range(counts[1], 200, 280);
    o.texts = PNB_TEXT_FIRST;
    count_levels(&o, 5, counts);
    assert_int_equal(counts[0], 5 * BATCH);
    o.texts = PNB_TEXT_LEVEL;
    o.level = 3;
    count_levels(&o, 5, counts);
    assert_int_equal(counts[3], 5 * BATCH);
    o.texts = PNB_TEXT_ALL_LEVELS;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    const pnb_batch *b = next_of(l);
    assert_int_equal(b->n_texts, 4 * b->n);
    for (size_t k = 0; k < b->n_texts; k++) {
        static const int NEAREST[4] = {0, 1, 1, 3}; /* the samples have no level 2 */
        assert_int_equal(b->levels[k], NEAREST[k % 4]);
    }
    pnb_loader_free(l);
    o = opts_of(1);
    o.template_share = 0.3;
    o.templates = TEMPLATES;
    o.n_templates = 2;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < 60; i++) {
        b = next_of(l);
        for (size_t k = 0; k < b->n_texts; k++)
            n_templated += pnb__starts_with(b->texts[k], "a picture of ") ||
                           pnb__ends_with(b->texts[k], " again");
    }
    assert_in_range(n_templated, 110, 180);
    pnb_loader_free(l);
}

/* Every caption of a level and every template is as likely as any other. */
static void test_texts_and_templates_are_drawn_evenly(void **state)
{
    static const char *const TEMPLATES[] = {"a picture of {}", "{c} again", "only {}"};
    enum { N_BATCHES = 60 };
    pnb_loader_opts o = opts_of(1);
    pnb_loader *l = NULL;
    int n_blue = 0, n_in[3] = {0};
    (void)state;
    o.level = 1;
    o.template_share = 0.5;
    o.templates = TEMPLATES;
    o.n_templates = 3;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < N_BATCHES; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n_texts; k++) {
            n_blue += strstr(b->texts[k], "blue thing") != NULL;
            n_in[0] += pnb__starts_with(b->texts[k], "a picture of ");
            n_in[1] += pnb__ends_with(b->texts[k], " again");
            n_in[2] += pnb__starts_with(b->texts[k], "only ");
        }
    }
    pnb_loader_free(l);
    assert_in_range(n_blue, 240 - 55, 240 + 55); /* of 480, five standard deviations */
    for (int t = 0; t < 3; t++)
        assert_in_range(n_in[t], 80 - 41, 80 + 41);
}

/* Tokens are those of the text shown; long captions are cut and counted. */
static void test_tokens(void **state)
{
    pnb_loader_opts o = opts_of(2);
    pnb_loader *l = NULL;
    size_t n_truncated = 0, n_counted = 0;
    (void)state;
    o.context_length = 4;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < 10; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n_texts; k++) {
            int32_t ids[4];
            pnb_token_count count;
            ASSERT_OK(pnb_tokenizer_encode(tokenizer, b->texts[k], strlen(b->texts[k]), 4, ids,
                                           &count, &err));
            assert_memory_equal(ids, b->tokens + 4 * k, sizeof ids);
            n_truncated += count.truncated;
        }
        n_counted += b->n_truncated;
    }
    assert_true(n_truncated > 0);
    assert_int_equal(n_counted, n_truncated);
    pnb_loader_free(l);
}

static void test_corrupt_sample(void **state)
{
    pnb_loader_opts o = opts_of(3);
    pnb_loader *l = NULL;
    const char *why = NULL;
    size_t n_replaced = 0;
    (void)state;
    o.drop_last = false;
    o.n_epochs = 2;
    ASSERT_OK(pnb_loader_create(&l, ds_bad, &o, &err));
    for (const pnb_batch *b = next_of(l); b; b = next_of(l)) {
        n_replaced += b->n_replaced;
        for (size_t k = 0; k < b->n; k++)
            assert_int_not_equal(b->samples[k], 17);
    }
    assert_int_equal(n_replaced, 2); /* once an epoch */
    assert_int_equal(pnb_loader_n_skipped(l), 1);
    assert_int_equal(pnb_loader_skipped(l, 0, &why), 17);
    assert_non_null(strstr(why, BAD_KEY));
    pnb_loader_free(l);
}

/* The first "{c}", or without one the first "{}". */
static void test_templates(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {{"{c}", "dog"},
                 {"a {c}, {c}", "a dog, {c}"},
                 {"{} and {c}", "{} and dog"},
                 {"a {} of {}", "a dog of {}"},
                 {"no hole", "dog"},
                 {"{c}{}", "dog{}"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf b = {0};
        pnb__buf_puts(&b, "> ");
        pnb__template_fill(&b, cases[i].text, "dog");
        assert_string_equal(b.data + 2, cases[i].want);
        pnb__buf_reset(&b);
    }
}

/* A sample is listed once, with the first reason. */
static void test_skips(void **state)
{
    pnb__skips skips = {0};
    (void)state;
    ASSERT_OK(pnb__skips_add(&skips, 7, pnb__strdup("first"), &err));
    ASSERT_OK(pnb__skips_add(&skips, 3, pnb__strdup("other"), &err));
    ASSERT_OK(pnb__skips_add(&skips, 7, pnb__strdup("again"), &err));
    assert_int_equal(skips.n, 2);
    assert_string_equal(skips.items[0].why, "first");
    assert_int_equal(skips.items[1].sample, 3);
    pnb__skips_free(&skips);
    assert_true(skips.items == NULL && skips.n == 0);
}

/* A batch is a function of its job: the same in a used room, another for another epoch. */
static void test_room(void **state)
{
    static const uint32_t samples[] = {5, 17, 5, 40};
    pnb_loader_opts o = opts_of(0);
    pnb__image_cache cache = {0};
    pnb__batch_room room, fresh;
    (void)state;
    o.batch_size = 4;
    ASSERT_OK(pnb__batch_room_create(&room, &o, &err));
    ASSERT_OK(pnb__batch_room_create(&fresh, &o, &err));
    const size_t n_pixels = 4 * 3 * SIDE * SIDE;
    const pnb__batch_job job = {.epoch = 2, .batch = 9, .samples = samples, .n = 4};
    const pnb__batch_job other = {.epoch = 3, .batch = 9, .samples = samples, .n = 3};
    pnb__batch_prepare(ds_bad, &o, &cache, &other, &room); /* with a corrupt picture */
    assert_int_equal(room.status, PNB_OK);
    assert_int_equal(room.skips.n, 1);
    assert_int_equal(room.skips.items[0].sample, 17);
    assert_int_equal(room.batch.n_replaced, 1);
    assert_int_not_equal(room.samples[1], 17);
    pnb__batch_prepare(ds, &o, &cache, &job, &room);
    pnb__batch_prepare(ds, &o, &cache, &job, &fresh);
    assert_true(room.status == PNB_OK && room.skips.n == 0 && room.batch.n_replaced == 0);
    assert_true(room.batch.epoch == 2 && room.batch.index == 9 && room.batch.n_texts == 4);
    assert_memory_equal(room.pixels, fresh.pixels, n_pixels * sizeof(float));
    /* draws follow the sample, not its place: the same sample twice is the same picture */
    assert_memory_equal(room.pixels, room.pixels + n_pixels / 2, n_pixels / 4 * sizeof(float));
    assert_string_equal(room.batch.texts[0], room.batch.texts[2]);
    const size_t n_bytes = room.texts.size; /* of these texts only, however often it is used */
    pnb__batch_prepare(ds, &o, &cache, &job, &room);
    assert_int_equal(room.texts.size, n_bytes);
    pnb__batch_prepare(ds, &o, &cache, &other, &fresh);
    assert_int_equal(fresh.batch.n, 3);
    assert_memory_not_equal(room.pixels, fresh.pixels, n_pixels / 4 * sizeof(float));
    pnb__batch_room_free(&room);
    pnb__batch_room_free(&fresh);
    assert_null(fresh.pixels);
    o.texts = PNB_TEXT_ALL_LEVELS;
    assert_int_equal(pnb__texts_per_image(&o), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_mode),
                                       cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_texts_and_templates_are_drawn_evenly),
                                       cmocka_unit_test(test_tokens),
                                       cmocka_unit_test(test_corrupt_sample),
                                       cmocka_unit_test(test_templates),
                                       cmocka_unit_test(test_skips),
                                       cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
