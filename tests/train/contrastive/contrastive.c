/* What training of PCME does to its captions and starts its words with. Every run is a narrow
 * ResNet and a small GRU for an epoch of four steps. */
#include "tests/train/pcme_run.h"

#include <math.h>

#include "models/model.h"
#include "models/pcme/text_tower.h"
#include "penumbra/model.h"

/* A copy of the word embedding of a run's last checkpoint, and its shape. */
static float *words_of(const fixture *f, const pnb_train_result *r, size_t *rows, size_t *dim)
{
    pnb_model *m = NULL;
    ASSERT_OK(pnb_model_load(&m, f->ctx, r->checkpoint_dir, &err));
    const pnb__param *p = pnb__model_find_param(m, PNB__PCME_WORDS);
    assert_non_null(p);
    *rows = p->shape[0];
    *dim = p->shape[1];
    float *copy = calloc(p->n, sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, p->data, p->n * sizeof *copy);
    pnb_model_free(m);
    return copy;
}

/* How many rows of words that are no special tokens differ; *unknown: whether that of <unk> does.
 */
static size_t changed_words(const fixture *f, const pnb_train_opts *o, bool *unknown)
{
    pnb_train_opts still = *o;
    pnb_train_result r, start;
    pnb_tokenizer *tok = NULL;
    char name[64];
    size_t rows, dim, n = 0;
    snprintf(name, sizeof name, "%s-start", o->name);
    still.name = name;
    still.optim.lr = 0;
    ASSERT_OK(pnb_train(f->ctx, o, &r, &err));
    ASSERT_OK(pnb_train(f->ctx, &still, &start, &err));
    ASSERT_OK(pnb_tokenizer_load(&tok, r.checkpoint_dir, &err));
    float *now = words_of(f, &r, &rows, &dim), *before = words_of(f, &start, &rows, &dim);
    for (size_t i = 0; i < rows; i++) {
        bool differs = memcmp(now + i * dim, before + i * dim, dim * sizeof *now) != 0;
        if ((int)i == pnb_tokenizer_unk_id(tok))
            *unknown = differs;
        else if (!pnb_tokenizer_is_special(tok, (int32_t)i))
            n += differs;
    }
    free(now);
    free(before);
    pnb_tokenizer_free(tok);
    return n;
}

/* A word that is dropped in every step learns nothing: <unk> learns in its place. */
static void dropped_words_are_the_unknown_one(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcme_opts(f, "kept");
    bool unknown = false;
    assert_true(changed_words(f, &o, &unknown) > 3);
    assert_false(unknown);
    o.name = "dropped";
    o.word_drop = 1;
    assert_int_equal(changed_words(f, &o, &unknown), 0);
    assert_true(unknown);
}

static void assert_same_words(const fixture *f, const pnb_train_result *a,
                              const pnb_train_result *b, bool are_same)
{
    size_t n, dim;
    float *one = words_of(f, a, &n, &dim), *two = words_of(f, b, &n, &dim);
    assert_true((memcmp(one, two, n * dim * sizeof *one) == 0) == are_same);
    free(one);
    free(two);
}

/* Draws are of seed and step: stopped behind each step and with other workers the same bits, with
 * two forward passes a step as with one; what is taken out besides makes other ones. */
static void dropping_resumes_to_the_bit(void **state)
{
    const fixture *f = *state;
    pnb_train_result whole, parts, removed;
    for (int accum = 1; accum <= 2; accum++) {
        sig_atomic_t stop = 1;
        char *names[3];
        for (int i = 0; i < 3; i++)
            names[i] = pnb__format("drop-%d-%d", accum, i);
        pnb_train_opts o = pcme_opts(f, names[0]);
        o.word_drop = 0.3;
        o.accum_freq = accum;
        if (accum > 1) /* which batch norm that moves does not go with */
            o.config_overrides = "{\"vision_cfg\": {\"frozen_norm\": true}}";
        o.batch_size = 8 / (size_t)accum;
        ASSERT_OK(pnb_train(f->ctx, &o, &whole, &err));
        o.name = names[1];
        o.stop = &stop;
        ASSERT_FAILS(pnb_train(f->ctx, &o, &parts, &err), PNB_INTERRUPTED, "");
        o.stop = NULL;
        o.resume = "latest";
        o.workers = 0;
        ASSERT_OK(pnb_train(f->ctx, &o, &parts, &err));
        assert_same_words(f, &whole, &parts, true);
        o.word_drop = 0.2;
        ASSERT_FAILS(pnb_train(f->ctx, &o, &parts, &err), PNB_ARG, "word_drop = 0.2");
        o.word_drop = 0.3;
        o.word_drop_removes = true;
        ASSERT_FAILS(pnb_train(f->ctx, &o, &parts, &err), PNB_ARG, "word_drop_removes = false");
        o.resume = NULL;
        o.name = names[2];
        ASSERT_OK(pnb_train(f->ctx, &o, &removed, &err));
        assert_same_words(f, &whole, &removed, false);
        for (int i = 0; i < 3; i++)
            pnb__free(names[i]);
    }
}

static void put_image(const char *path, int side, int value)
{
    pnb_image image;
    ASSERT_OK(pnb_image_create(&image, side, side, 3, &err));
    memset(image.pixels, value, (size_t)(side * side * 3));
    ASSERT_OK(pnb_image_save_png(&image, path, &err));
    pnb_image_free(&image);
}

/* Eight times the same picture with the same caption: a loss depends on nothing but which words are
 * dropped, whatever the order. */
static char *alike(const fixture *f)
{
    static const char line[] =
        "{\"image\": \"alike.png\", \"caption\": \"a red owl on a thin branch\"}\n";
    char *image = pnb__path_join(f->dir, "alike.png"),
         *path = pnb__path_join(f->dir, "alike.jsonl");
    pnb__buf text = {0};
    put_image(image, 40, 90);
    for (int i = 0; i < 8; i++)
        pnb__buf_puts(&text, line);
    ASSERT_OK(pnb__write_file(path, text.data, text.size, &err));
    pnb__buf_reset(&text);
    pnb__free(image);
    return path;
}

/* Of the last of `steps` steps, with weights that do not move. */
static double loss_of_step(const fixture *f, const char *data, double word_drop, int64_t steps)
{
    static int n_runs = 0;
    char name[32];
    pnb_train_result r;
    snprintf(name, sizeof name, "still-%d", n_runs++);
    pnb_train_opts o = pcme_opts(f, name);
    o.train_data = data;
    o.train_num_samples = 0;
    o.loss = pnb_train_opts_of(PNB_OBJECTIVE_VSEPP, false).loss;
    o.loss.triplet_warmup = 0; /* the margins to all of them add up to the same */
    o.config_overrides = "{\"attention\": false, \"uncertainty\": false}";
    o.augment = pnb_augment_none();
    o.optim.lr = 0;
    o.max_steps = steps;
    o.word_drop = word_drop;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    return r.total;
}

static void every_step_drops_others(void **state)
{
    const fixture *f = *state;
    char *data = alike(f);
    double whole = loss_of_step(f, data, 0, 1), first = loss_of_step(f, data, 0.5, 1);
    assert_true(fabs(loss_of_step(f, data, 0, 2) - whole) < 1e-5 * whole);
    assert_true(fabs(first - whole) > 1e-3 * whole);
    assert_true(fabs(loss_of_step(f, data, 0.5, 2) - first) > 1e-3 * first);
    pnb__free(data);
}

static void dropping_is_refused(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcme_opts(f, "refused");
    pnb_train_result r;
    o.word_drop = 1.5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "word-drop is 1.5");
    o.word_drop = 0;
    o.word_drop_removes = true;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "give --word-drop");
    o.word_drop = 0.1;
    o.tokenizer_kind = PNB_TOKENIZER_BYTE_BPE; /* every text has pieces: none is unknown */
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "no unknown token");
    assert_true(pnb_train_opts_of(PNB_OBJECTIVE_PCME, true).word_drop == 0.1);
    assert_true(pnb_train_opts_of(PNB_OBJECTIVE_PCME, true).augment.erase_const);
}

/* ---- word vectors ---- */

static char *write_vectors(const fixture *f, const char *text)
{
    char *path = pnb__path_join(f->dir, "vectors.txt");
    ASSERT_OK(pnb__write_file(path, text, strlen(text), &err));
    return path;
}

/* With a rate of 0 the checkpoint holds what the words started with. */
static void words_start_with_their_vectors(void **state)
{
    const fixture *f = *state;
    static const float red[] = {1, -2, 3, -4, 5, 0.5F};
    char *path = write_vectors(f, "red 1 -2 3 -4 5 0.5\nzebra 1 1 1 1 1 1\n");
    pnb_train_opts o = pcme_opts(f, "vectors");
    pnb_train_result r;
    pnb_tokenizer *tok = NULL;
    size_t rows, dim;
    o.word_vectors = path;
    o.optim.lr = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    ASSERT_OK(pnb_tokenizer_load(&tok, r.checkpoint_dir, &err));
    float *words = words_of(f, &r, &rows, &dim);
    int32_t id = pnb_tokenizer_find(tok, "red");
    assert_true(id >= 0);
    assert_memory_equal(words + (size_t)id * dim, red, sizeof red);
    char said[64];
    snprintf(said, sizeof said, "Word vectors: 1 of %zu words found", rows);
    assert_true(log_holds(f, "vectors", said));
    free(words);
    pnb_tokenizer_free(tok);
    o.resume = "latest";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "leave it out with --resume");
    char *dir = pnb__format("%s/vectors/checkpoints/latest", f->logs);
    o.resume = NULL;
    o.name = "vectors-of-a-model";
    o.model = dir;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "trained model");
    pnb__free(dir);
    pnb__free(path);
}

static void vectors_are_refused(void **state)
{
    const fixture *f = *state;
    char *path = write_vectors(f, "zebra 1 1 1 1 1 1\n");
    pnb_train_opts o = pcme_opts(f, "vectors-refused");
    pnb_train_result r;
    o.word_vectors = path;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_NOT_FOUND, "holds none of the");
    pnb__free(write_vectors(f, "red 1 2 3\n"));
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_FORMAT, "vectors.txt");
    pnb_train_opts other = fixture_opts(f, "vectors-of-prolip");
    ASSERT_OK(pnb__write_file(f->config, micro_config, strlen(micro_config), &err));
    other.word_vectors = path;
    ASSERT_FAILS(pnb_train(f->ctx, &other, &r, &err), PNB_ARG, "no embedding of words");
    pnb__free(path);
}

/* ---- batches by class, and data that is hard to take ---- */

/* n_classes folders of n pictures of side x side, each with two captions; of one more class there
 * is one. */
static char *make_classes(const fixture *f, const char *name, int n_classes, int n, int side)
{
    static const char *const birds[] = {"albatross", "auklet", "bunting", "cardinal", "catbird"};
    char *root = pnb__path_join(f->dir, name);
    for (int k = 0; k <= n_classes; k++)
        for (int i = 0; i < (k < n_classes ? n : 1); i++) {
            char *dir = pnb__format("%s/%03d.%s", root, k + 1, birds[k]);
            char *path = pnb__format("%s/%d.png", dir, i), *text = pnb__format("%s/%d.txt", dir, i);
            char texts[96];
            ASSERT_OK(pnb__make_dirs(dir, &err));
            put_image(path, side, 40 * k + i);
            snprintf(texts, sizeof texts, "a small %s\nthe %s sits\n", birds[k], birds[k]);
            ASSERT_OK(pnb__write_file(text, texts, strlen(texts), &err));
            pnb__free(dir);
            pnb__free(path);
            pnb__free(text);
        }
    return root;
}

/* Four classes of five pictures and one of one: batches of five, an epoch of four. Stopped in the
 * middle of an epoch it ends in the same bits. */
static void batches_by_class_resume(void **state)
{
    const fixture *f = *state;
    char *data = make_classes(f, "birds", 4, 5, 40);
    pnb_train_opts o = pcme_opts(f, "by-class");
    pnb_train_result whole, parts;
    sig_atomic_t stop = 1;
    o.train_data = data;
    o.train_num_samples = 0;
    o.batch_by_class = true;
    o.batch_size = 0;
    o.epochs = 2;
    o.word_drop = 0.1;
    o.augment.erase_p = 0.5;
    o.augment.erase_const = true;
    ASSERT_OK(pnb_train(f->ctx, &o, &whole, &err));
    assert_int_equal(whole.n_steps, 2 * (21 / 5));
    o.name = "by-class-parts";
    o.stop = &stop;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &parts, &err), PNB_INTERRUPTED, "");
    o.stop = NULL;
    o.resume = "latest";
    ASSERT_OK(pnb_train(f->ctx, &o, &parts, &err));
    assert_same_words(f, &whole, &parts, true);
    assert_true(whole.total == parts.total);
    o.batch_by_class = false;
    o.batch_size = 5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &parts, &err), PNB_ARG, "batch_by_class = true");
    pnb__free(data);
}

static void batches_by_class_are_refused(void **state)
{
    const fixture *f = *state;
    char *data = make_classes(f, "few", 1, 3, 40), *one = pnb__format("%s/001.albatross", data);
    pnb_train_opts o = pcme_opts(f, "by-class-refused");
    pnb_train_result r;
    o.train_data = data;
    o.batch_by_class = true;
    o.batch_size = 3;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "the number of classes, which is 2");
    o.batch_size = 0;
    o.accum_freq = 2;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "a class more than once");
    o.accum_freq = 1;
    o.dataset_resampled = true;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "a class more than once");
    o.dataset_resampled = false;
    o.train_data = one;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "0.png has no class");
    char *more = pnb__format("%s#classes=%s/only.txt", data, f->dir);
    char *list = pnb__path_join(f->dir, "only.txt");
    ASSERT_OK(pnb__write_file(list, "1\n", 2, &err));
    o.train_data = more;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "all samples are of one class");
    o.batch_by_class = false;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "batch");
    pnb__free(data);
    pnb__free(one);
    pnb__free(more);
    pnb__free(list);
}

/* ---- the mean of the weights ---- */

static void stop_now(void *user, const pnb_train_progress *p)
{
    (void)p;
    *(volatile sig_atomic_t *)user = 1;
}

/* A copy of a weight of checkpoints/<name>. */
static float *weight_of(const fixture *f, const char *run, const char *name, const char *weight,
                        size_t *n)
{
    pnb_model *m = NULL;
    char *dir = pnb__format("%s/%s/checkpoints/%s", f->logs, run, name);
    ASSERT_OK(pnb_model_load(&m, f->ctx, dir, &err));
    const pnb__param *p = pnb__model_find_param(m, weight);
    assert_non_null(p);
    float *copy = calloc(p->n, sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, p->data, p->n * sizeof *copy);
    *n = p->n;
    pnb_model_free(m);
    pnb__free(dir);
    return copy;
}

static const char conv[] = "visual.cnn.conv1.weight", mean[] = "visual.cnn.bn1.running_mean";

static pnb_train_opts swa_opts(const fixture *f, const char *name)
{
    pnb_train_opts o = pcme_opts(f, name);
    o.epochs = 4;
    o.swa_start = 2;
    o.save_frequency = 1;
    return o;
}

/* Epochs 2, 3 and 4; the checkpoint of the last one keeps its own weights. */
static void swa_is_the_mean_of_epochs(void **state)
{
    const fixture *f = *state;
    const pnb_train_opts o = swa_opts(f, "swa");
    pnb_train_result r;
    size_t n;
    float *w[4];
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    w[0] = weight_of(f, "swa", "swa", conv, &n);
    for (int i = 1; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "epoch_%d", i + 1);
        w[i] = weight_of(f, "swa", name, conv, &n);
    }
    assert_memory_not_equal(w[1], w[3], n * sizeof *w[1]);
    for (size_t i = 0; i < n; i++)
        assert_true(fabsf(w[0][i] - (w[1][i] + w[2][i] + w[3][i]) / 3) < 1e-6F);
    for (int i = 0; i < 4; i++)
        free(w[i]);
    assert_true(
        log_holds(f, "swa", "Saved checkpoint swa: the mean of the weights after 3 epochs"));
}

static void swa_resumes_to_the_bit(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = swa_opts(f, "swa-parts");
    pnb_train_result r;
    char *file[2], *bytes[2];
    size_t n[2];
    for (int step = 1; step <= 16; step++) { /* also behind each step of the mean */
        volatile sig_atomic_t stop = 0;
        pnb_error err = PNB_ERROR_INIT;
        o.stop = &stop;
        o.progress = stop_now;
        o.progress_user = (void *)(uintptr_t)&stop;
        o.resume = step > 1 ? "latest" : NULL;
        pnb_status status = pnb_train(f->ctx, &o, &r, &err);
        if (status != (step < 16 ? PNB_INTERRUPTED : PNB_OK))
            fail_msg("step %d: %s", step, err.text);
    }
    for (int i = 0; i < 2; i++) {
        file[i] = pnb__format("%s/%s/checkpoints/swa/model.safetensors", f->logs,
                              i == 0 ? "swa" : "swa-parts");
        ASSERT_OK(pnb__read_file(file[i], 1 << 24, &bytes[i], &n[i], &err));
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    for (int i = 0; i < 2; i++) {
        pnb__free(file[i]);
        pnb__free(bytes[i]);
    }
    o.swa_start = 3;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "swa_start = 2");
}

/* One batch that never changes: training moves the running mean to s (1 - 0.9^n) in n steps, the
 * mean of the weights has s itself. */
static void swa_has_statistics_of_its_own(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = swa_opts(f, "swa-still");
    pnb_train_result r;
    pnb_dataset *ds = NULL;
    size_t n;
    ASSERT_OK(pnb_dataset_open(&ds, f->train, NULL, &err));
    o.batch_size = pnb_dataset_size(ds);
    pnb_dataset_free(ds);
    o.train_num_samples = 0;
    o.augment = pnb_augment_none();
    o.optim.lr = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(r.n_steps, 4);
    float *own = weight_of(f, "swa-still", "swa", mean, &n);
    float *moved = weight_of(f, "swa-still", "latest", mean, &n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs((double)moved[i] - (double)own[i] * (1 - pow(0.9, 4))) <
                    1e-4 * fabs((double)own[i]) + 1e-6);
    free(own);
    free(moved);
    o.name = "swa-locked"; /* a tower that stands still keeps what it had */
    o.lock_image = true;
    char *model = pnb__strdup(r.checkpoint_dir);
    o.model = model;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    own = weight_of(f, "swa-locked", "swa", mean, &n);
    moved = weight_of(f, "swa-still", "latest", mean, &n);
    assert_memory_equal(own, moved, n * sizeof *own);
    free(own);
    free(moved);
    pnb__free(model);
}

static void swa_is_refused(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = swa_opts(f, "swa-refused");
    pnb_train_result r;
    o.swa_start = 5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "--swa-start 5: the run ends before");
    o.swa_start = -1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "swa-start is -1");
}

/* ---- bad input ---- */

/* Pictures of one pixel are pictures, and captions of no word are captions. A batch of one has no
 * variance where the last map is one place, and captions none of whose words is known are those of
 * <unk>. */
static void hard_data(void **state)
{
    const fixture *f = *state;
    char *data = make_classes(f, "dots", 3, 4, 1);
    pnb_train_opts o = pcme_opts(f, "dots");
    pnb_train_result r;
    o.train_data = data;
    o.train_num_samples = 0;
    o.batch_size = 4;
    o.augment = pnb_train_opts_of(PNB_OBJECTIVE_PCME, true).augment;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(r.n_skipped, 0);
    assert_true(isfinite(r.total));
    o.name = "alone";
    o.batch_size = 1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_SHAPE, "needs a larger batch");
    char *lines = pnb__path_join(f->dir, "mute.jsonl");
    static const char mute[] = "{\"image\": \"dots/001.albatross/0.png\", \"caption\": \"\"}\n"
                               "{\"image\": \"dots/001.albatross/1.png\", \"caption\": \" \"}\n"
                               "{\"image\": \"dots/002.auklet/0.png\", \"caption\": \"an owl\"}\n";
    ASSERT_OK(pnb__write_file(lines, mute, strlen(mute), &err));
    o = pcme_opts(f, "mute"); /* a caption of no word, and all words taken out: its end is left */
    o.train_data = lines;
    o.train_num_samples = 0;
    o.batch_size = 3;
    o.word_drop = 1;
    o.word_drop_removes = true;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(r.n_skipped == 0 && isfinite(r.total));
    pnb__free(lines);
    char *model = pnb__format("%s/dots/checkpoints/latest", f->logs);
    o = pcme_opts(f, "unknown-words"); /* scenes through the words of birds */
    o.tokenizer = model;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(isfinite(r.total));
    o = pcme_opts(f, "other-words"); /* more words than the weights have rows */
    o.model = model;
    char *other = pnb__format("%s/kept/checkpoints/latest", f->logs);
    o.tokenizer = other;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_SHAPE, "it belongs to another model");
    o.model = other; /* or fewer: each word would have another one's row */
    o.tokenizer = model;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_SHAPE, "a row each");
    pnb__free(data);
    pnb__free(model);
    pnb__free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropped_words_are_the_unknown_one),
        cmocka_unit_test(dropping_resumes_to_the_bit),
        cmocka_unit_test(every_step_drops_others),
        cmocka_unit_test(dropping_is_refused),
        cmocka_unit_test(words_start_with_their_vectors),
        cmocka_unit_test(vectors_are_refused),
        cmocka_unit_test(batches_by_class_resume),
        cmocka_unit_test(batches_by_class_are_refused),
        cmocka_unit_test(swa_is_the_mean_of_epochs),
        cmocka_unit_test(swa_resumes_to_the_bit),
        cmocka_unit_test(swa_has_statistics_of_its_own),
        cmocka_unit_test(swa_is_refused),
        cmocka_unit_test(hard_data),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
