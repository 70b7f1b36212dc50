/* The loader: the same batches for any number of workers, with and without cache, interrupted at
 * any batch; choice of captions; samples that cannot be read; clean stops. */
#include "tests/data/fixture.h"

#include "io/tables/tar.h"

enum { N_SAMPLES = 53, SIDE = 16, BATCH = 8 };

static const char *const BAD_KEY = "s017";
static char *scratch;
static pnb_dataset *ds;     /* all good */
static pnb_dataset *ds_bad; /* s017 is a corrupt picture */
static pnb_tokenizer *tokenizer;

static void write_tar(const char *name, bool with_bad)
{
    pnb__tar_writer w;
    char *path = pnb__path_join(scratch, name);
    ASSERT_OK(pnb__tar_writer_open(&w, path, &err));
    pnb__free(path);
    for (int i = 0; i < N_SAMPLES; i++) {
        char member[32], json[256];
        size_t n;
        unsigned char *png = make_png(20 + i % 5, 18, i * 3, &n);
        snprintf(member, sizeof member, "s%03d.png", i);
        if (with_bad && pnb__starts_with(member, BAD_KEY))
            memset(png + n / 2, 0x55, n - n / 2);
        ASSERT_OK(pnb__tar_writer_add(&w, member, png, n, &err));
        pnb_image_bytes_free(png);
        snprintf(member, sizeof member, "s%03d.json", i);
        snprintf(json, sizeof json,
                 "{\"captions\": [\"thing\", \"colour %d\", \"blue thing\", \"thing number %d of "
                 "many\"], \"levels\": [0, 1, 1, 3], \"group\": \"g\"}",
                 i % 4, i);
        ASSERT_OK(pnb__tar_writer_add(&w, member, json, strlen(json), &err));
    }
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
}

static int setup(void **state)
{
    static const char *const TEXTS[] = {"thing", "colour number of many blue",
                                        "0 1 2 3 4 5 6 7 8 9", "a picture of"};
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    (void)state;
    scratch = scratch_create();
    write_tar("good.tar", false);
    write_tar("bad.tar", true);
    char *path = pnb__path_join(scratch, "good.tar");
    ASSERT_OK(pnb_dataset_open(&ds, path, NULL, &err));
    pnb__free(path);
    path = pnb__path_join(scratch, "bad.tar");
    ASSERT_OK(pnb_dataset_open(&ds_bad, path, NULL, &err));
    pnb__free(path);
    ASSERT_OK(pnb_tokenizer_train(&tokenizer, TEXTS, PNB_COUNT(TEXTS), &opts, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pnb_tokenizer_free(tokenizer);
    pnb_dataset_free(ds);
    pnb_dataset_free(ds_bad);
    scratch_remove(scratch);
    return 0;
}

static pnb_loader_opts opts_of(int n_workers)
{
    pnb_loader_opts o = pnb_loader_opts_default();
    o.batch_size = BATCH;
    o.n_workers = n_workers;
    o.n_prefetch = 3;
    o.seed = 11;
    o.preprocess.width = o.preprocess.height = SIDE;
    o.augment = pnb_augment_small();
    o.tokenizer = tokenizer;
    o.context_length = 6;
    return o;
}

/* Everything a consumer can see of a batch. */
static void hash_batch(pnb__sha256 *h, const pnb_batch *b)
{
    pnb__sha256_update(h, &b->epoch, sizeof b->epoch);
    pnb__sha256_update(h, &b->index, sizeof b->index);
    pnb__sha256_update(h, b->pixels, b->n * 3 * SIDE * SIDE * sizeof *b->pixels);
    pnb__sha256_update(h, b->tokens, b->n_texts * (size_t)b->context_length * sizeof *b->tokens);
    pnb__sha256_update(h, b->levels, b->n_texts * sizeof *b->levels);
    pnb__sha256_update(h, b->samples, b->n * sizeof *b->samples);
    for (size_t i = 0; i < b->n_texts; i++)
        pnb__sha256_update(h, b->texts[i], strlen(b->texts[i]) + 1);
}

static const pnb_batch *next_of(pnb_loader *l)
{
    const pnb_batch *b = NULL;
    ASSERT_OK(pnb_loader_next(l, &b, &err));
    return b;
}

static void hash_run(const pnb_dataset *data, const pnb_loader_opts *o, int n_batches, int stop_at,
                     char hex[65])
{
    pnb__sha256 h;
    pnb_loader *l = NULL;
    pnb__sha256_init(&h);
    ASSERT_OK(pnb_loader_create(&l, data, o, &err));
    for (int i = 0; i < n_batches; i++) {
        if (i == stop_at) { /* as a killed and resumed run */
            pnb_loader_position p = pnb_loader_get_position(l);
            pnb_loader_free(l);
            l = NULL;
            ASSERT_OK(pnb_loader_create(&l, data, o, &err));
            ASSERT_OK(pnb_loader_set_position(l, p, &err));
        }
        hash_batch(&h, next_of(l));
    }
    pnb_loader_free(l);
    pnb__sha256_hex(&h, hex);
}

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

static void test_same_batches(void **state)
{
    char wanted[65], got[65];
    pnb_loader_opts o = opts_of(0);
    (void)state;
    hash_run(ds, &o, 20, -1, wanted);
    for (int workers = 1; workers <= 4; workers++) {
        o = opts_of(workers);
        hash_run(ds, &o, 20, -1, got);
        assert_string_equal(got, wanted);
    }
    o = opts_of(2);
    o.cache_bytes = 0;
    hash_run(ds, &o, 20, -1, got);
    assert_string_equal(got, wanted);
    o.cache_bytes = 5000; /* only some pictures fit */
    hash_run(ds, &o, 20, -1, got);
    assert_string_equal(got, wanted);
    o.seed = 12;
    hash_run(ds, &o, 20, -1, got);
    assert_string_not_equal(got, wanted);
}

static void test_resume(void **state)
{
    char wanted[65], got[65];
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        pnb_loader_opts o = opts_of(0);
        hash_run(bad ? ds_bad : ds, &o, 17, -1, wanted);
        for (int stop = 0; stop < 17; stop += 3) {
            o = opts_of(stop % 3 + 1);
            hash_run(bad ? ds_bad : ds, &o, 17, stop, got);
            assert_string_equal(got, wanted);
        }
    }
}

/* Going back and forth within one loader. */
static void test_set_position(void **state)
{
    char hex[2][65];
    pnb_loader_opts o = opts_of(3);
    pnb_loader *l = NULL;
    pnb_error error = PNB_ERROR_INIT;
    (void)state;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    assert_int_equal(pnb_loader_batches_per_epoch(l), N_SAMPLES / BATCH);
    for (int round = 0; round < 2; round++) {
        pnb__sha256 h;
        pnb__sha256_init(&h);
        ASSERT_OK(pnb_loader_set_position(l, (pnb_loader_position){3, 4}, &err));
        for (int i = 0; i < 4; i++) {
            const pnb_batch *b = next_of(l);
            assert_int_equal(b->epoch, i < 2 ? 3 : 4);
            assert_int_equal(b->index, (4 + i) % 6);
            hash_batch(&h, b);
        }
        pnb_loader_position p = pnb_loader_get_position(l);
        assert_int_equal(p.epoch, 4);
        assert_int_equal(p.batch, 2);
        pnb__sha256_hex(&h, hex[round]);
    }
    assert_string_equal(hex[0], hex[1]);
    assert_int_equal(pnb_loader_set_position(l, (pnb_loader_position){0, 6}, &error), PNB_ARG);
    pnb_loader_free(l);
}

/* An epoch holds every sample once; short last batch; end after n_epochs. */
static void test_epochs(void **state)
{
    pnb_loader_opts o = opts_of(2);
    pnb_loader *l = NULL;
    int seen[2][N_SAMPLES] = {{0}}, order_differs = 0;
    int64_t first[BATCH] = {0};
    (void)state;
    o.drop_last = false;
    o.n_epochs = 2;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < 2 * 7; i++) {
        const pnb_batch *b = next_of(l);
        assert_non_null(b);
        assert_int_equal(b->n, i % 7 == 6 ? N_SAMPLES % BATCH : BATCH);
        for (size_t k = 0; k < b->n; k++)
            seen[b->epoch][b->samples[k]]++;
        for (size_t k = 0; k < BATCH && i % 7 == 0; k++) {
            order_differs += i == 7 && first[k] != b->samples[k];
            first[k] = b->samples[k];
        }
    }
    assert_null(next_of(l));
    assert_null(next_of(l));
    for (int i = 0; i < N_SAMPLES; i++)
        assert_true(seen[0][i] == 1 && seen[1][i] == 1);
    assert_true(order_differs > 3);
    pnb_loader_free(l);
    o.shuffle = false;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < 7; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n; k++)
            assert_int_equal(b->samples[k], i * BATCH + (int)k);
    }
    pnb_loader_free(l);
}

/* Samples of the first batches and what was drawn as their captions, by sample. */
typedef struct draws {
    int64_t order[N_SAMPLES];
    char caption[N_SAMPLES][64];
} draws;

static void read_epoch(const pnb_loader_opts *o, uint64_t epoch, draws *d)
{
    pnb_loader *l = NULL;
    size_t n = 0;
    ASSERT_OK(pnb_loader_create(&l, ds, o, &err));
    ASSERT_OK(pnb_loader_set_position(l, (pnb_loader_position){epoch, 0}, &err));
    while (n < N_SAMPLES) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n; k++) {
            d->order[n++] = b->samples[k];
            snprintf(d->caption[b->samples[k]], sizeof d->caption[0], "%s", b->texts[k]);
        }
    }
    pnb_loader_free(l);
}

static int n_other_places(const draws *a, const draws *b)
{
    int n = 0;
    for (int i = 0; i < N_SAMPLES; i++)
        n += a->order[i] != b->order[i];
    return n;
}

static int n_other_captions(const draws *a, const draws *b)
{
    int n = 0;
    for (int i = 0; i < N_SAMPLES; i++)
        n += strcmp(a->caption[i], b->caption[i]) != 0;
    return n;
}

/* Order and captions each follow seed and epoch. A caption is one of four, level by level, so 53
 * independent draws differ in 38 places, standard deviation 3. */
static void test_draws_follow_seed_and_epoch(void **state)
{
    enum { FEWEST = 20 };
    pnb_loader_opts o = opts_of(1);
    draws first, again, epoch, seed;
    (void)state;
    o.drop_last = false;
    read_epoch(&o, 0, &first);
    read_epoch(&o, 0, &again);
    assert_int_equal(n_other_places(&first, &again) + n_other_captions(&first, &again), 0);
    read_epoch(&o, 1, &epoch);
    assert_true(n_other_places(&first, &epoch) > FEWEST);
    assert_true(n_other_captions(&first, &epoch) > FEWEST);
    o.seed++;
    read_epoch(&o, 0, &seed);
    assert_true(n_other_places(&first, &seed) > FEWEST);
    assert_true(n_other_captions(&first, &seed) > FEWEST);
}

/* Draws with replacement: independent of workers, continued at any batch, each sample as likely as
 * any other, epochs that differ; and a batch may be larger than the data set. */
static void test_resampled(void **state)
{
    enum { EPOCHS = 200, PER_EPOCH = N_SAMPLES / BATCH };
    pnb_loader_opts o = opts_of(2);
    pnb_loader *l = NULL;
    char one[65], two[65], plain[65];
    int seen[N_SAMPLES] = {0}, n_repeats = 0;
    (void)state;
    hash_run(ds, &o, 9, -1, plain);
    o.resample = true;
    hash_run(ds, &o, 9, -1, one);
    assert_string_not_equal(one, plain);
    o.n_workers = 0;
    for (int stop = 1; stop < 9; stop += 3) {
        hash_run(ds, &o, 9, stop, two);
        assert_string_equal(one, two);
    }
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < EPOCHS * PER_EPOCH; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n; k++) {
            seen[b->samples[k]]++;
            n_repeats += k > 0 && b->samples[k] == b->samples[k - 1];
        }
    }
    pnb_loader_free(l);
    /* 9,600 draws of 53: 181 each, five standard deviations are 67; 8,400 neighbours, 158 alike */
    for (int i = 0; i < N_SAMPLES; i++)
        assert_in_range(seen[i], 181 - 67, 181 + 67);
    assert_in_range(n_repeats, 158 - 63, 158 + 63);
    o.batch_size = N_SAMPLES + 7;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    assert_int_equal(next_of(l)->n, N_SAMPLES + 7);
    pnb_loader_free(l);
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

static void test_captions(void **state)
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
    o.captions = PNB_CAPTION_ANY;
    count_levels(&o, 60, counts); /* four captions, two of level 1 */
    assert_in_range(counts[1], 200, 280);
    o.captions = PNB_CAPTION_FIRST;
    count_levels(&o, 5, counts);
    assert_int_equal(counts[0], 5 * BATCH);
    o.captions = PNB_CAPTION_LEVEL;
    o.level = 3;
    count_levels(&o, 5, counts);
    assert_int_equal(counts[3], 5 * BATCH);
    o.captions = PNB_CAPTION_ALL_LEVELS;
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
static void test_captions_and_templates_are_drawn_evenly(void **state)
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

static void test_nothing_readable(void **state)
{
    pnb_loader_opts o = opts_of(1);
    pnb_loader *l = NULL;
    pnb_dataset *broken = NULL;
    const pnb_batch *b;
    pnb_error error = PNB_ERROR_INIT;
    char *dir = pnb__path_join(scratch, "broken");
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "broken/%d.png", i);
        put_text(scratch, name, "not a picture");
        snprintf(name, sizeof name, "broken/%d.txt", i);
        put_text(scratch, name, "caption");
    }
    ASSERT_OK(pnb_dataset_open(&broken, dir, NULL, &err));
    assert_int_equal(pnb_loader_create(&l, broken, &o, &error), PNB_SHAPE);
    assert_non_null(strstr(error.text, "batch"));
    pnb_error_reset(&error);
    o.batch_size = 2;
    ASSERT_OK(pnb_loader_create(&l, broken, &o, &err));
    assert_int_equal(pnb_loader_next(l, &b, &error), PNB_FORMAT);
    assert_null(b);
    pnb_loader_free(l);
    pnb_dataset_free(broken);
    pnb__free(dir);
}

static void test_refused(void **state)
{
    static const char *const NO_HOLE[] = {"a picture"};
    pnb_loader *l = NULL;
    pnb_error error = PNB_ERROR_INIT;
    (void)state;
    pnb_loader_opts o = opts_of(-1);
    assert_int_equal(pnb_loader_create(&l, ds, &o, &error), PNB_ARG);
    assert_null(l);
    o = opts_of(1);
    o.templates = NO_HOLE;
    o.n_templates = 1;
    pnb_error_reset(&error);
    assert_int_equal(pnb_loader_create(&l, ds, &o, &error), PNB_ARG);
    assert_non_null(strstr(error.text, "a picture"));
    o = opts_of(1);
    o.batch_size = 0;
    assert_int_equal(pnb_loader_create(&l, ds, &o, NULL), PNB_ARG);
    assert_int_equal(pnb_loader_create(&l, NULL, &o, NULL), PNB_NOT_FOUND);
}

/* Freed while the workers are busy, right after creation, and with batches waiting. */
static void test_shutdown(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        pnb_loader_opts o = opts_of(1 + i % 4);
        pnb_loader *l = NULL;
        ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
        for (int k = 0; k < i % 3; k++)
            assert_non_null(next_of(l));
        pnb_loader_free(l);
    }
    pnb_loader_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_batches),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_own_mode),
        cmocka_unit_test(test_set_position),
        cmocka_unit_test(test_draws_follow_seed_and_epoch),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_resampled),
        cmocka_unit_test(test_captions),
        cmocka_unit_test(test_captions_and_templates_are_drawn_evenly),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_corrupt_sample),
        cmocka_unit_test(test_nothing_readable),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_shutdown)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
