/* Options of a run beyond the loop itself: event files, checkpoints by uncertainty and by epoch,
 * resampled and synthetic data, models of another size. */
#include "tests/train/fixture.h"

#include <dirent.h>
#include <math.h>

#include "penumbra/model.h"
#include "train/contrastive/contrastive.h"
#include "train/run/tfevents.h"

/* ---- event files ---- */

static void test_crc32c_of_known_texts(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0};
    assert_int_equal(pnb__crc32c("123456789", 9),
                     0xe3069283);                         /* the check value of the catalogue */
    assert_int_equal(pnb__crc32c(zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    assert_int_equal(pnb__crc32c("", 0), 0);
}

static uint64_t fixed(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static uint32_t unmasked_crc(const unsigned char *p)
{
    uint32_t rotated = (uint32_t)fixed(p, 4) - 0xa282ead8U;
    return rotated >> 17 | rotated << 15;
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t v = 0;
    int shift = 0;
    do
        v |= (uint64_t)(**p & 0x7f) << shift;
    while (shift += 7, (*(*p)++ & 0x80) != 0);
    return v;
}

/* What a reader of the messages sees. */
typedef struct events {
    int n_versions, n_starts, n_scalars;
    int64_t first_step, start_step, last_step;
    double last_loss;
    bool has_val;
} events;

static void read_value(const unsigned char *p, const unsigned char *end, events *e)
{
    char tag[80] = "";
    float x = 0;
    while (p < end) {
        uint64_t key = varint(&p);
        if (key == (1 << 3 | 2)) {
            size_t n = (size_t)varint(&p);
            assert_true(n < sizeof tag);
            memcpy(tag, p, n);
            p += n;
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            uint32_t bits = (uint32_t)fixed(p, 4);
            memcpy(&x, &bits, sizeof x);
            p += 4;
        }
    }
    e->n_scalars++;
    if (strcmp(tag, "train/loss") == 0)
        e->last_loss = (double)x;
    e->has_val = e->has_val || strcmp(tag, "val/i2t_r1") == 0;
}

static void read_event(const unsigned char *p, const unsigned char *end, events *e)
{
    int64_t step = -1;
    while (p < end) {
        uint64_t key = varint(&p);
        size_t n = 0;
        if (key == (1 << 3 | 1)) {
            p += 8;
            continue;
        }
        if (key == 2 << 3) {
            step = (int64_t)varint(&p);
            continue;
        }
        n = (size_t)varint(&p);
        const unsigned char *stop = p + n;
        if (key == (3 << 3 | 2)) {
            assert_memory_equal(p, "brain.Event:2", 13);
            e->n_versions++;
        } else if (key == (7 << 3 | 2)) {
            e->n_starts++;
            e->start_step = step;
        } else {
            assert_int_equal(key, 5 << 3 | 2);
            while (p < stop) {
                assert_int_equal(varint(&p), 1 << 3 | 2);
                size_t size = (size_t)varint(&p);
                read_value(p, p + size, e);
                p += size;
            }
            e->last_step = step;
        }
        p = stop;
    }
}

static void read_events(const char *path, events *e)
{
    char *data = NULL;
    size_t size = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 24, &data, &size, &err));
    const unsigned char *p = (const unsigned char *)data, *end = p + size;
    while (p < end) {
        assert_true(end - p > 16);
        size_t n = (size_t)fixed(p, 8);
        assert_int_equal(unmasked_crc(p + 8), pnb__crc32c(p, 8));
        assert_int_equal(unmasked_crc(p + 12 + n), pnb__crc32c(p + 12, n));
        read_event(p + 12, p + 12 + n, e);
        p += 16 + n;
    }
    pnb__free(data);
}

/* Calls read_events on each file of the run's tensorboard folder; their number. */
static int read_all_events(const fixture *f, const char *run, events *e)
{
    char *dir = pnb__format("%s/%s/tensorboard", f->logs, run);
    DIR *d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (!pnb__starts_with(entry->d_name, "events.out.tfevents."))
            continue;
        char *path = pnb__path_join(dir, entry->d_name);
        read_events(path, e);
        pnb__free(path);
        n++;
    }
    closedir(d);
    pnb__free(dir);
    return n;
}

static void test_event_files(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "events");
    pnb_train_result r;
    events e = {0};
    o.report_tensorboard = true;
    o.val_data = f->val;
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(read_all_events(f, "events", &e), 1);
    assert_int_equal(e.n_versions, 1);
    assert_int_equal(e.n_starts, 1);
    assert_int_equal(e.start_step, 1);
    assert_int_equal(e.last_step, 5);
    assert_true(e.has_val && e.n_scalars > 5 * 10);
    assert_true(fabs(e.last_loss - r.total) < 1e-5);
    o.resume = "latest"; /* nothing left to do, but a file that says where it would go on */
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    e = (events){0};
    assert_int_equal(read_all_events(f, "events", &e), 2);
    assert_int_equal(e.n_starts, 2);
}

/* ---- checkpoints ---- */

static bool has_checkpoint(const fixture *f, const char *run, const char *name)
{
    char *path = pnb__format("%s/%s/checkpoints/%s/model.safetensors", f->logs, run, name);
    bool found = pnb__path_is_file(path);
    pnb__free(path);
    return found;
}

static void test_correlation_of_bins(void **state)
{
    (void)state;
    pnb__answer a[43];
    for (size_t i = 0; i < 43; i++) /* row 42 has the least trace */
        a[i] = (pnb__answer){(double)(42 - i), i, false};
    for (size_t i = 0; i < 43; i++) { /* all right in five bins, one of four in the others */
        size_t rank = 42 - i;
        a[i].right = rank % 4 < (rank / 4 < 5 ? 4u : 1u);
    }
    double r = pnb__unc_correlation(a, 43);
    assert_true(fabs(r + 25 / sqrt(825)) < 1e-9); /* r of a step in the middle of ten bins */
    for (size_t i = 0; i < 43; i++)
        a[i].right = true;
    assert_true(isnan(pnb__unc_correlation(a, 43)));
    assert_true(isnan(pnb__unc_correlation(a, 9)));
}

static void test_best_checkpoint_by_uncertainty(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "best");
    pnb_train_result r;
    o.save_best_unc = true;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "--val-data");
    o.val_data = f->train; /* large enough for ten bins that differ */
    o.val_every_n_steps = 1;
    o.save_frequency = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(has_checkpoint(f, "best", "epoch_best_unc"));
    assert_true(has_checkpoint(f, "best", "latest"));
    char *path = pnb__format("%s/best/results.jsonl", f->logs), *text = NULL;
    size_t size = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 24, &text, &size, &err));
    double best = INFINITY, at = -1;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *value = strstr(line, "\"i2t_unc_r\": ");
        if (value == NULL || strstr(value, ": null") == value + 11)
            continue;
        double x = strtod(value + 13, NULL);
        at = x < best ? strtod(strstr(line, "\"step\": ") + 8, NULL) : at;
        best = x < best ? x : best;
    }
    char name[40];
    snprintf(name, sizeof name, "best_unc_step_%.0f", at);
    assert_true(has_checkpoint(f, "best", name)); /* the link's target is the step of the lowest */
    pnb__free(text);
    pnb__free(path);
}

/* Where the link to the best checkpoint by uncertainty points. */
static void best_target(const fixture *f, const char *run, char target[64])
{
    char *link = pnb__format("%s/%s/checkpoints/epoch_best_unc", f->logs, run);
    ssize_t n = readlink(link, target, 63);
    assert_true(n > 0);
    target[n] = '\0';
    pnb__free(link);
}

static void stop_now(void *user, const pnb_train_progress *p)
{
    (void)p;
    *(volatile sig_atomic_t *)user = 1;
}

/* A run that stops after every step must not forget how good its best checkpoint was. */
static void test_best_checkpoint_survives_resuming(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "best_parts");
    pnb_train_result r;
    char whole[64], parts[64];
    o.save_best_unc = true;
    o.val_data = f->train;
    o.val_every_n_steps = 1;
    o.save_frequency = 0;
    best_target(f, "best", whole);
    assert_string_not_equal(whole, "best_unc_step_10"); /* the last step would say nothing */
    for (int step = 0; step < 10; step++) {
        pnb_error err = PNB_ERROR_INIT;
        volatile sig_atomic_t stop = 0;
        o.resume = step > 0 ? "latest" : NULL;
        o.stop = &stop;
        o.progress = stop_now;
        o.progress_user = (void *)(uintptr_t)&stop;
        pnb_status status = pnb_train(f->ctx, &o, &r, &err);
        if (status != (step < 9 ? PNB_INTERRUPTED : PNB_OK))
            fail_msg("step %d: %s", step + 1, err.text);
    }
    best_target(f, "best_parts", parts);
    assert_string_equal(parts, whole);
}

static void test_most_recent_epoch_is_kept(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "recent");
    pnb_train_result r;
    o.save_most_recent = true;
    o.save_frequency = 2;
    o.epochs = 3;
    o.max_steps = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_false(has_checkpoint(f, "recent", "epoch_1"));
    assert_true(has_checkpoint(f, "recent", "epoch_2"));
    assert_true(has_checkpoint(f, "recent", "epoch_3"));
    assert_false(has_checkpoint(f, "recent", "step_5"));
}

/* ---- data ---- */

/* Resampled batches interrupted in the middle of an epoch end in the weights of a whole run. */
static void test_resampled_run_resumes(void **state)
{
    const fixture *f = *state;
    pnb_train_opts whole = fixture_opts(f, "draws"), parts = fixture_opts(f, "draws_parts");
    pnb_train_result r;
    sig_atomic_t stop = 1;
    char *one = NULL, *two = NULL;
    size_t n = 0, m = 0;
    whole.dataset_resampled = parts.dataset_resampled = true;
    ASSERT_OK(pnb_train(f->ctx, &whole, &r, &err));
    parts.max_steps = 0;
    parts.stop = &stop;
    ASSERT_FAILS(pnb_train(f->ctx, &parts, &r, &err), PNB_INTERRUPTED, "");
    parts.stop = NULL;
    parts.resume = "latest";
    parts.workers = 0;
    ASSERT_OK(pnb_train(f->ctx, &parts, &r, &err));
    char *a = pnb__format("%s/draws/checkpoints/latest/model.safetensors", f->logs);
    char *b = pnb__format("%s/draws_parts/checkpoints/latest/model.safetensors", f->logs);
    ASSERT_OK(pnb__read_file(a, 1 << 24, &one, &n, &err));
    ASSERT_OK(pnb__read_file(b, 1 << 24, &two, &m, &err));
    assert_int_equal(n, m);
    assert_memory_equal(one, two, n);
    parts.dataset_resampled = false;
    ASSERT_FAILS(pnb_train(f->ctx, &parts, &r, &err), PNB_ARG, "dataset_resampled");
    pnb__free(one);
    pnb__free(two);
    pnb__free(a);
    pnb__free(b);
}

static void test_synthetic_data(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "synthetic");
    pnb_train_result r;
    o.train_data = NULL;
    o.dataset.kind = PNB_DATASET_SYNTHETIC;
    o.train_num_samples = 24;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(r.step, 6);
    assert_int_equal(r.n_skipped, 0);
    assert_true(r.graph_bytes > 10000);
}

/* ---- models of another size ---- */

static float *weight(pnb_model *m, const char *name, size_t *rows)
{
    const pnb__param *p = pnb__model_find_param(m, name);
    assert_non_null(p);
    *rows = p->shape[0];
    return p->data;
}

static void test_model_of_another_size(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "base");
    pnb_train_result r;
    pnb_model *old = NULL, *now = NULL;
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    char *dir = pnb__strdup(r.checkpoint_dir);
    o = fixture_opts(f, "resized");
    o.model = dir;
    o.epochs = 1;
    o.optim.lr = 0;
    o.force_image_size = 24;
    o.force_context_length = 24;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "--force-resize-pos-emb");
    o.force_resize_pos_emb = o.reinit_unc = true;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    ASSERT_OK(pnb_model_load(&old, f->ctx, dir, &err));
    ASSERT_OK(pnb_model_load(&now, f->ctx, r.checkpoint_dir, &err));
    assert_int_equal(pnb_model_get_info(now)->vision.image_width, 24);
    assert_int_equal(pnb_model_get_info(now)->text.context_length, 24);
    size_t n, m;
    float *a = weight(old, "visual.positional_embedding", &n);
    float *b = weight(now, "visual.positional_embedding", &m);
    assert_int_equal(n, 18);
    assert_int_equal(m, 38);
    assert_memory_equal(a, b, 2 * 16 * sizeof *a);
    assert_memory_equal(weight(old, "visual.conv1.weight", &n),
                        weight(now, "visual.conv1.weight", &m), n * 3 * 16 * sizeof *a);
    assert_memory_not_equal(weight(old, "visual.uncertainty_proj.weight", &n),
                            weight(now, "visual.uncertainty_proj.weight", &m), n * sizeof *a);
    pnb_model_free(old);
    pnb_model_free(now);
    o.resume = "latest"; /* the checkpoint has the size already */
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    pnb__free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_of_known_texts),
        cmocka_unit_test(test_event_files),
        cmocka_unit_test(test_correlation_of_bins),
        cmocka_unit_test(test_best_checkpoint_by_uncertainty),
        cmocka_unit_test(test_best_checkpoint_survives_resuming),
        cmocka_unit_test(test_most_recent_epoch_is_kept),
        cmocka_unit_test(test_resampled_run_resumes),
        cmocka_unit_test(test_synthetic_data),
        cmocka_unit_test(test_model_of_another_size),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
