/* Which checkpoints stay, that a kill between any two steps of keeping them loses nothing, and what
 * validation measures, against losses computed from the checkpoint itself. */
#include "tests/train/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>

#include "io/json/json.h"
#include "penumbra/loss.h"
#include "penumbra/model.h"

static char *checkpoint(const fixture *f, const char *run, const char *name)
{
    char *path = pnb__format("%s/%s/checkpoints/%s", f->logs, run, name);
    assert_non_null(path);
    return path;
}

static bool is_there(const fixture *f, const char *run, const char *name)
{
    char *path = checkpoint(f, run, name);
    bool found = access(path, F_OK) == 0;
    pnb__free(path);
    return found;
}

/* Folders of a run's checkpoints, links left out. */
static int n_folders(const fixture *f, const char *run)
{
    char *dir = checkpoint(f, run, "");
    DIR *d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        struct stat s;
        assert_int_equal(fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW), 0);
        n += S_ISDIR(s.st_mode) && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(d);
    pnb__free(dir);
    return n;
}

static void target_of(const fixture *f, const char *run, const char *link, char out[64])
{
    char *path = checkpoint(f, run, link);
    ssize_t n = readlink(path, out, 63);
    if (n <= 0)
        fail_msg("%s/%s is no link", run, link);
    out[n] = '\0';
    pnb__free(path);
}

/* Steps and validation losses of a run; returns how many. */
static size_t read_evals(const fixture *f, const char *run, const char *key, int64_t *steps,
                         double *values, size_t max)
{
    char *path = pnb__format("%s/%s/results.jsonl", f->logs, run), *text = NULL;
    size_t size = 0, n = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 24, &text, &size, &err));
    for (char *line = strtok(text, "\n"); line != NULL && n < max; line = strtok(NULL, "\n")) {
        json_t *o = NULL;
        ASSERT_OK(pnb__json_load_bytes(&o, line, strlen(line), "line", &err));
        if (strcmp(json_string_value(json_object_get(o, "kind")), "eval") == 0) {
            if (!json_is_number(json_object_get(o, key)))
                fail_msg("an eval line has no %s: %s", key, line);
            steps[n] = json_integer_value(json_object_get(o, "step"));
            values[n++] = json_number_value(json_object_get(o, key));
        }
        json_decref(o);
    }
    pnb__free(text);
    pnb__free(path);
    return n;
}

enum { EPOCHS = 6, N_STEPS = 30 };

/* Six epochs whose validation gets worse in the end: the rate rises. */
static pnb_train_opts long_opts(const fixture *f, const char *name)
{
    pnb_train_opts o = fixture_opts(f, name);
    o.val_data = f->val;
    o.epochs = EPOCHS;
    o.workers = 0;
    o.optim.lr = 0.5;
    o.warmup = 3 * N_STEPS;
    return o;
}

static void test_last_and_best_stay(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = long_opts(f, "long");
    pnb_train_result r;
    int64_t steps[EPOCHS], best = 0;
    double losses[EPOCHS];
    char latest[64], link[64], want[64];
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(read_evals(f, "long", "val_loss", steps, losses, EPOCHS), EPOCHS);
    for (size_t i = 1; i < EPOCHS; i++)
        best = losses[i] < losses[best] ? (int64_t)i : best;
    assert_true(best < EPOCHS - 1); /* or the test would say nothing */
    snprintf(want, sizeof want, "step_%lld", (long long)steps[best]);
    target_of(f, "long", "latest", latest);
    target_of(f, "long", "best", link);
    assert_string_equal(latest, "epoch_6");
    assert_string_equal(link, want);
    assert_non_null(strstr(r.best_dir, want));
    assert_int_equal(n_folders(f, "long"), 2);
    assert_true(is_there(f, "long", "best/model.safetensors"));
}

static void test_save_frequency_keeps_more(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = long_opts(f, "every_second");
    o.val_data = NULL;
    o.save_frequency = 2;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(n_folders(f, "every_second"), 3);
    assert_true(is_there(f, "every_second", "epoch_2") && is_there(f, "every_second", "epoch_4"));
    o = long_opts(f, "only_newest");
    o.val_data = NULL;
    o.save_frequency = 1;
    o.delete_previous_checkpoint = true;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(n_folders(f, "only_newest"), 1);
    o = long_opts(f, "at_the_end");
    o.save_most_recent = false;
    o.save_every_n_steps = 10; /* every second epoch's end, but not asked for as an epoch's */
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_false(is_there(f, "at_the_end", "epoch_2") || is_there(f, "at_the_end", "epoch_4"));
    assert_true(n_folders(f, "at_the_end") <= 2);
}

/* ---- kills ---- */

static void stop_at(void *user, const pnb_train_progress *p)
{
    volatile sig_atomic_t *stop = user;
    *stop = p->step >= *(stop + 1);
}

/* Trains until `step`, or to the end for 0. */
static void train_to(const fixture *f, const char *run, bool resume, int step)
{
    pnb_train_opts o = long_opts(f, run);
    pnb_train_result r;
    volatile sig_atomic_t stop[2] = {0, step};
    pnb_error err = PNB_ERROR_INIT;
    o.resume = resume ? "latest" : NULL;
    if (step > 0) {
        o.stop = &stop[0];
        o.progress = stop_at;
        o.progress_user = (void *)(uintptr_t)stop;
    }
    pnb_status status = pnb_train(f->ctx, &o, &r, &err);
    if (status != (step > 0 ? PNB_INTERRUPTED : PNB_OK))
        fail_msg("%s to step %d: %s", run, step, err.text);
}

static void copy_dir(const char *from, const char *to)
{
    char *command = pnb__format("cp -a '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
    pnb__free(command);
}

static void point(const fixture *f, const char *run, const char *link, const char *target)
{
    char *path = checkpoint(f, run, link);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
    pnb__free(path);
}

static void assert_same_file(const fixture *f, const char *a, const char *b, const char *name)
{
    char *one = NULL, *two = NULL, *x = checkpoint(f, a, name), *y = checkpoint(f, b, name);
    size_t n = 0, m = 0;
    ASSERT_OK(pnb__read_file(x, 1 << 26, &one, &n, &err));
    ASSERT_OK(pnb__read_file(y, 1 << 26, &two, &m, &err));
    if (n != m || memcmp(one, two, n) != 0)
        fail_msg("%s differs between %s and %s", name, a, b);
    pnb__free(one);
    pnb__free(two);
    pnb__free(x);
    pnb__free(y);
}

/* The folder as a kill leaves it between two steps of replacing the checkpoint of step 12 by that
 * of step 15: each goes on, ends in the bits of the whole run, and only last and best stay. */
static void test_kill_at_every_step_of_replacing(void **state)
{
    const fixture *f = *state;
    static const char *const moments[] = {"temporary", "renamed", "linked", "aside",
                                          "half_removed"};
    char best[64], whole_best[64];
    train_to(f, "before", false, 12);
    target_of(f, "long", "best", whole_best);
    for (size_t i = 0; i < PNB_COUNT(moments); i++) {
        char *run = pnb__format("kill_%s", moments[i]);
        char *from = pnb__format("%s/before", f->logs), *to = pnb__format("%s/%s", f->logs, run);
        copy_dir(from, to);
        char *donor = pnb__format("donor_%zu", i), *old = checkpoint(f, run, "step_12");
        char *copy = pnb__format("%s/%s", f->logs, donor);
        copy_dir(from, copy);
        train_to(f, donor, true, 15);
        char *written = checkpoint(f, donor, "step_15");
        char *place = checkpoint(f, run, i == 0 ? ".tmp-step_15" : "step_15");
        char *aside = checkpoint(f, run, ".tmp-removed"), *file = NULL;
        copy_dir(written, place);
        if (i == 0) { /* within the write */
            file = pnb__path_join(place, "state.json");
            assert_int_equal(unlink(file), 0);
        }
        if (i >= 2)
            point(f, run, "latest", "step_15");
        if (i >= 3)
            assert_int_equal(rename(old, aside), 0);
        if (i == 4) {
            file = pnb__path_join(aside, "model.safetensors");
            assert_int_equal(unlink(file), 0);
        }
        train_to(f, run, true, 0);
        target_of(f, run, "best", best);
        assert_string_equal(best, whole_best);
        assert_int_equal(n_folders(f, run), 2);
        assert_same_file(f, "long", run, "latest/model.safetensors");
        assert_same_file(f, "long", run, "best/model.safetensors");
        char *const all[] = {run, from, to, donor, old, copy, written, place, aside, file};
        for (size_t k = 0; k < PNB_COUNT(all); k++)
            pnb__free(all[k]);
    }
}

/* ---- length of an epoch ---- */

static int64_t steps_of_one_epoch(const fixture *f, const char *name, const char *data, int64_t n)
{
    pnb_train_opts o = fixture_opts(f, name);
    pnb_train_result r;
    o.train_data = data;
    o.train_num_samples = n;
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    return r.n_steps;
}

/* open_clip: shards round up, tables and folders down. */
static void test_epoch_of_shards_rounds_up(void **state)
{
    const fixture *f = *state;
    pnb_dataset *ds = NULL;
    ASSERT_OK(pnb_dataset_open(&ds, f->train, NULL, &err));
    assert_int_equal(pnb_dataset_size(ds) % 8, 2);
    size_t n = pnb_dataset_size(ds) / 8;
    pnb_dataset_free(ds);
    assert_int_equal(steps_of_one_epoch(f, "up", f->train, 0), n + 1);
    assert_int_equal(steps_of_one_epoch(f, "even", f->train, 16), 2);
    assert_int_equal(steps_of_one_epoch(f, "odd", f->train, 17), 3);
    char *dir = pnb__format("%s/unpacked", f->dir);
    char *command = pnb__format(
        "mkdir '%s' && for t in '%s'/*.tar; do tar -xf \"$t\" -C '%s'; done", dir, f->train, dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(steps_of_one_epoch(f, "down", dir, 0), n);
    pnb__free(command);
    pnb__free(dir);
}

/* ---- validation ---- */

typedef struct encoded {
    size_t n, dim;
    double *mean[2], *log_var[2];
    double scale, bias;
} encoded;

static void widen(const float *in, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)in[i];
}

static void free_encoded(encoded *e)
{
    for (int s = 0; s < 2; s++) {
        free(e->mean[s]);
        free(e->log_var[s]);
    }
}

/* The validation pairs through the checkpoint, one by one. */
static void encode_pairs(const fixture *f, const char *dir, const pnb_train_opts *o, encoded *e)
{
    pnb_model *m = NULL;
    pnb_tokenizer *tok = NULL;
    pnb_dataset *ds = NULL;
    pnb_loader *l = NULL;
    const pnb_batch *b = NULL;
    ASSERT_OK(pnb_model_load(&m, f->ctx, dir, &err));
    ASSERT_OK(pnb_tokenizer_load(&tok, dir, &err));
    ASSERT_OK(pnb_dataset_open(&ds, o->val_data, NULL, &err));
    const pnb_model_info *info = pnb_model_get_info(m);
    pnb_loader_opts lo = pnb_loader_opts_default();
    lo.batch_size = 1;
    lo.shuffle = lo.drop_last = false;
    lo.n_workers = 0;
    lo.seed = o->seed;
    lo.preprocess.width = lo.preprocess.height = (int)info->vision.image_width;
    lo.tokenizer = tok;
    lo.context_length = (int)info->text.context_length;
    lo.level = o->val_level;
    ASSERT_OK(pnb_loader_create(&l, ds, &lo, &err));
    *e = (encoded){.n = pnb_dataset_size(ds), .dim = info->embed_dim};
    e->scale = info->logit_scale;
    e->bias = info->logit_bias;
    for (int s = 0; s < 2; s++) {
        e->mean[s] = calloc(e->n * e->dim, sizeof(double));
        e->log_var[s] = calloc(e->n * e->dim, sizeof(double));
    }
    for (size_t i = 0; i < e->n; i++) {
        float mean[16], log_var[16];
        const pnb_encode_out out = {.mean = mean, .log_var = log_var};
        ASSERT_OK(pnb_loader_next(l, &b, &err));
        ASSERT_OK(pnb_model_encode_image(m, b->pixels, 1, &out, &err));
        widen(mean, e->mean[0] + i * e->dim, e->dim);
        widen(log_var, e->log_var[0] + i * e->dim, e->dim);
        ASSERT_OK(pnb_model_encode_text(m, b->tokens, 1, info->text.context_length, &out, &err));
        widen(mean, e->mean[1] + i * e->dim, e->dim);
        widen(log_var, e->log_var[1] + i * e->dim, e->dim);
    }
    pnb_loader_free(l);
    pnb_dataset_free(ds);
    pnb_tokenizer_free(tok);
    pnb_model_free(m);
}

/* The loss of each batch counts by its pairs. */
static double loss_over_batches(const fixture *f, const encoded *e, const pnb_loss_opts *given,
                                size_t batch)
{
    double total = 0;
    pnb_loss_opts o = *given;
    o.weight[PNB_LOSS_IMG_INCLUSION] = o.weight[PNB_LOSS_TXT_INCLUSION] = 0;
    for (size_t at = 0; at < e->n; at += batch) {
        size_t n = PNB_MIN(batch, e->n - at), skip = at * e->dim;
        pnb_loss_in in = {.n = n, .dim = e->dim, .scale = e->scale, .bias = e->bias};
        pnb_loss_out out = {.total = 0};
        in.image = (pnb_loss_side){.mean = e->mean[0] + skip, .log_var = e->log_var[0] + skip};
        in.text = (pnb_loss_side){.mean = e->mean[1] + skip, .log_var = e->log_var[1] + skip};
        ASSERT_OK(pnb_loss_compute(f->ctx, &o, &in, &out, &err));
        total += out.total * (double)n / (double)e->n;
    }
    return total;
}

/* 12 pairs in batches of 5: the mean over all of them, the last two too. */
static void test_validation_loss_is_the_mean_over_all_pairs(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "validated");
    pnb_train_result r;
    encoded e;
    o.val_data = f->val;
    o.batch_size = 5;
    o.max_steps = 3;
    o.loss.weight[PNB_LOSS_INCLUSION] = o.loss.weight[PNB_LOSS_VIB] = 0.3;
    o.loss.inclusion_scale = 3;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    encode_pairs(f, r.checkpoint_dir, &o, &e);
    assert_int_equal(e.n, 12);
    double want = loss_over_batches(f, &e, &o.loss, 5);
    double full = loss_over_batches(f, &e, &o.loss, 12);
    if (!(fabs(r.eval.total - want) <= 1e-5 * want) || fabs(full - want) < 1e-3)
        fail_msg("val_loss %.9g, computed %.9g (in one batch %.9g)", r.eval.total, want, full);
    free_encoded(&e);
}

/* ---- what uncertainty says of retrieval ---- */

static double squared(double x)
{
    return x * x;
}

/* The nearest row of the other side by csd, the distance of the means and both traces. */
static size_t nearest(const encoded *e, int query, size_t row)
{
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < e->n; i++) {
        double distance = 0;
        for (size_t d = 0; d < e->dim; d++) {
            size_t a = row * e->dim + d, b = i * e->dim + d;
            distance += squared(e->mean[query][a] - e->mean[1 - query][b]) +
                        exp(e->log_var[query][a]) + exp(e->log_var[1 - query][b]);
        }
        best = distance < least ? i : best;
        least = fmin(least, distance);
    }
    return best;
}

static double trace_of(const encoded *e, int side, size_t row)
{
    double sum = 0;
    for (size_t d = row * e->dim; d < (row + 1) * e->dim; d++)
        sum += exp(e->log_var[side][d]);
    return sum;
}

/* Correlation of the number of a tenth, from the least uncertain by `sorted_by`, with its R@1. */
static double unc_r(const encoded *e, int query, int sorted_by)
{
    enum { TENTHS = 10 };
    size_t size = e->n / TENTHS;
    double right[TENTHS] = {0}, mean = 0, cov = 0, var = 0;
    for (size_t i = 0; i < e->n; i++) {
        size_t rank = 0;
        for (size_t j = 0; j < e->n; j++)
            rank += trace_of(e, sorted_by, j) < trace_of(e, sorted_by, i);
        if (rank < TENTHS * size)
            right[rank / size] += nearest(e, query, i) == i;
    }
    for (int b = 0; b < TENTHS; b++)
        mean += right[b] / TENTHS;
    for (int b = 0; b < TENTHS; b++) {
        cov += (b - 4.5) * (right[b] - mean);
        var += squared(right[b] - mean);
    }
    return cov / sqrt(82.5 * var);
}

/* A query is as uncertain as its own side says, not as the picture or caption it should find; what
 * is reported of a side is its mean trace. */
static void test_uncertainty_is_that_of_the_query(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "uncertain");
    pnb_train_result r;
    encoded e;
    o.val_data = f->train;
    o.epochs = 8;
    o.optim.lr = 0.01;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    encode_pairs(f, r.checkpoint_dir, &o, &e);
    const double got[2] = {r.eval.i2t_unc_r, r.eval.t2i_unc_r};
    for (int query = 0; query < 2; query++) {
        double want = unc_r(&e, query, query), other = unc_r(&e, query, 1 - query);
        if (!(fabs(got[query] - want) < 1e-6) || fabs(want - other) < 1e-3)
            fail_msg("side %d: %.9g, computed %.9g (%.9g by the other side)", query, got[query],
                     want, other);
    }
    const double reported[2] = {r.eval.image_unc, r.eval.text_unc};
    for (int side = 0; side < 2; side++) {
        double mean = 0;
        for (size_t i = 0; i < e.n; i++)
            mean += trace_of(&e, side, i) / (double)e.n;
        if (!(fabs(reported[side] - mean) <= 1e-5 * mean))
            fail_msg("side %d: trace %.9g, computed %.9g", side, reported[side], mean);
    }
    free_encoded(&e);
}

/* Masked terms stand beside the total, with the same masks each time, and follow the model. */
static void test_validation_has_the_masked_terms(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "masked_terms");
    pnb_train_result r;
    int64_t steps[4];
    double image[4], text[4], loss[4], ppcl[4];
    o.val_data = f->val;
    o.max_steps = 2;
    o.val_every_n_steps = 1;
    o.optim.lr = 0;
    o.loss.weight[PNB_LOSS_INCLUSION] = o.loss.weight[PNB_LOSS_VIB] = 0;
    o.loss.weight[PNB_LOSS_IMG_INCLUSION] = o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 0.5;
    o.loss.inclusion_scale = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(read_evals(f, "masked_terms", "img_inclusion", steps, image, 4), 2);
    read_evals(f, "masked_terms", "txt_inclusion", steps, text, 4);
    read_evals(f, "masked_terms", "val_loss", steps, loss, 4);
    read_evals(f, "masked_terms", "ppcl", steps, ppcl, 4);
    assert_true(image[0] == image[1] && text[0] == text[1]);
    assert_true(image[0] > 0.01 && text[0] > 0.01);
    assert_true(fabs(loss[0] - ppcl[0]) < 1e-6); /* and not in val_loss */
    double at_half = r.eval.loss[PNB_LOSS_IMG_INCLUSION];
    o.name = "masked_more";
    o.drop_ratio = 1; /* every pair masked */
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(fabs(r.eval.loss[PNB_LOSS_IMG_INCLUSION] - at_half) > 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_and_best_stay),
        cmocka_unit_test(test_save_frequency_keeps_more),
        cmocka_unit_test(test_kill_at_every_step_of_replacing),
        cmocka_unit_test(test_epoch_of_shards_rounds_up),
        cmocka_unit_test(test_validation_loss_is_the_mean_over_all_pairs),
        cmocka_unit_test(test_uncertainty_is_that_of_the_query),
        cmocka_unit_test(test_validation_has_the_masked_terms),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
