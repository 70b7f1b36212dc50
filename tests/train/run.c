/* Whole runs of pnb_train on a tiny model: files, resume with the same bits, locks, full disk, stop
 * flag, bad options. */
#include "tests/train/fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "io/json/json.h"
#include "penumbra/model.h"
#include "penumbra/safetensors.h"

static char *path_of(const fixture *f, const char *run, const char *rest)
{
    char *path = pnb__format("%s/%s/%s", f->logs, run, rest);
    assert_non_null(path);
    return path;
}

static bool exists(const fixture *f, const char *run, const char *rest)
{
    char *path = path_of(f, run, rest);
    bool found = access(path, F_OK) == 0;
    pnb__free(path);
    return found;
}

/* SHA-256 of a file of a run. */
static void digest(const fixture *f, const char *run, const char *rest, char hex[65])
{
    char *path = path_of(f, run, rest), *data = NULL;
    size_t size = 0;
    pnb__sha256 sha;
    ASSERT_OK(pnb__read_file(path, (size_t)1 << 30, &data, &size, &err));
    pnb__sha256_init(&sha);
    pnb__sha256_update(&sha, data, size);
    pnb__sha256_hex(&sha, hex);
    pnb__free(data);
    pnb__free(path);
}

static void assert_same_checkpoint(const fixture *f, const char *a, const char *b, const char *name)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors",
                                        "tokenizer.json", "config.json"};
    char one[65], two[65];
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        char *rest = pnb__format("checkpoints/%s/%s", name, files[i]);
        digest(f, a, rest, one);
        digest(f, b, rest, two);
        if (strcmp(one, two) != 0)
            fail_msg("%s differs between %s and %s", rest, a, b);
        pnb__free(rest);
    }
}

/* Lines of results.jsonl of one kind, as JSON values; the caller frees the array. */
static json_t *results(const fixture *f, const char *run, const char *kind)
{
    char *path = path_of(f, run, "results.jsonl"), *data = NULL;
    size_t size = 0;
    json_t *all = json_array();
    ASSERT_OK(pnb__read_file(path, (size_t)1 << 30, &data, &size, &err));
    for (char *line = strtok(data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *value = NULL;
        ASSERT_OK(pnb__json_load_bytes(&value, line, strlen(line), "line", &err));
        if (strcmp(json_string_value(json_object_get(value, "kind")), kind) == 0)
            json_array_append(all, value);
        json_decref(value);
    }
    pnb__free(data);
    pnb__free(path);
    return all;
}

static double number(const json_t *list, size_t i, const char *key)
{
    const json_t *value = json_object_get(json_array_get(list, i), key);
    if (!json_is_number(value))
        fail_msg("line %zu has no number %s", i, key);
    return json_number_value(value);
}

/* ---- one run ---- */

static void test_files_of_a_run(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "files");
    pnb_train_result r;
    o.val_data = f->val;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(r.step, 10);
    assert_int_equal(r.n_steps, 10);
    assert_true(isfinite(r.total) && r.total > 0);
    assert_true(r.eval.done);
    assert_int_equal(r.eval.step, 10);
    assert_int_equal(r.eval.n, 12);
    static const char *const files[] = {"params.txt",
                                        "out.log",
                                        "results.jsonl",
                                        "checkpoints/best/model.safetensors",
                                        "checkpoints/epoch_2/config.json",
                                        "checkpoints/epoch_2/tokenizer.json",
                                        "checkpoints/epoch_2/preprocessor_config.json",
                                        "checkpoints/epoch_2/optimizer.safetensors",
                                        "checkpoints/epoch_2/state.json",
                                        "checkpoints/latest/model.safetensors"};
    for (size_t i = 0; i < PNB_COUNT(files); i++)
        if (!exists(f, "files", files[i]))
            fail_msg("%s is missing", files[i]);
    assert_false(exists(f, "files", "checkpoints/epoch_1")); /* made room for the next */
    pnb_model *model = NULL;
    ASSERT_OK(pnb_model_load(&model, f->ctx, r.checkpoint_dir, &err));
    assert_int_equal(pnb_model_get_info(model)->embed_dim, 16);
    pnb_model_free(model);
}

static void test_lines_of_results(void **state)
{
    const fixture *f = *state;
    json_t *train = results(f, "files", "train"), *eval = results(f, "files", "eval");
    assert_int_equal(json_array_size(train), 10);
    assert_int_equal(json_array_size(eval), 2);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal((int)number(train, i, "step"), (int)i + 1);
        assert_int_equal((int)number(train, i, "samples"), 8 * ((int)i + 1));
        double sum = number(train, i, "ppcl") + number(train, i, "inclusion") +
                     number(train, i, "img_inclusion") + number(train, i, "txt_inclusion") +
                     number(train, i, "vib");
        assert_true(fabs(sum - number(train, i, "loss")) < 1e-4);
        assert_true(number(train, i, "grad_norm") > 0);
        assert_true(number(train, i, "text_uncertainty") > 0);
        assert_true(number(train, i, "logit_scale") > 1);
    }
    assert_true(fabs(number(train, 0, "lr") - 0.5e-3) < 1e-9);
    assert_true(fabs(number(train, 1, "lr") - 1e-3) < 1e-9);
    assert_true(number(train, 9, "lr") < 2e-4);
    assert_true(number(eval, 1, "i2t_r1") >= 0 && number(eval, 1, "i2t_r1") <= 1);
    json_decref(train);
    json_decref(eval);
    char *path = path_of(f, "files", "out.log"), *log = NULL;
    size_t size = 0;
    ASSERT_OK(pnb__read_file(path, 1 << 20, &log, &size, &err));
    assert_non_null(strstr(log, "Train Epoch: 0 [ 8/40 (20%)] Data (t): "));
    assert_non_null(strstr(log, " Logit Scale: "));
    assert_non_null(strstr(log, " Ppcl: "));
    assert_non_null(strstr(log, "Eval Epoch: 2 image_to_text_R@1: "));
    pnb__free(log);
    pnb__free(path);
}

/* How far the logit scale, 10 at first, is from there after ten steps without momentum. */
static double drift_of_scale(const fixture *f, const char *name, double grad_clip_norm)
{
    pnb_train_opts o = fixture_opts(f, name);
    pnb_train_result r;
    o.optim.kind = PNB_OPTIM_SGD;
    o.optim.momentum = 0;
    o.optim.weight_decay = 0;
    o.optim.lr = 1e-2;
    o.optim.grad_clip_norm = grad_clip_norm;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    json_t *train = results(f, name, "train");
    double drift = fabs(number(train, 9, "logit_scale") - 10);
    json_decref(train);
    return drift;
}

static void test_gradients_are_clipped(void **state)
{
    const fixture *f = *state;
    double free = drift_of_scale(f, "unclipped", 0), clipped = drift_of_scale(f, "clipped", 1e-6);
    if (!(free > 1e-3) || !(clipped < 1e-5)) /* ten steps of 1e-8 at most */
        fail_msg("the scale moved by %g, by %g with clipping", free, clipped);
}

/* The scale of the logits ends at 100, as in CLIP, wherever it begins. */
static void test_logit_scale_is_clamped(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "steep");
    pnb_train_result r;
    o.init_logit_scale = 150;
    o.max_steps = 2;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    json_t *train = results(f, "steep", "train");
    assert_true(fabs(number(train, 0, "logit_scale") - 100) < 0.01);
    json_decref(train);
}

/* A model whose logits do not depend on which caption belongs to which picture cannot expect less
 * than the best constant logit gives, log B + (B - 1) log(B / (B - 1)) at probability 1/B. Learning
 * is a mean loss below it by more than four standard errors. */
static void test_loss_falls(void **state)
{
    const fixture *f = *state;
    enum { STEPS = 600, TAIL = 100 };
    pnb_train_opts o = fixture_opts(f, "learn");
    pnb_train_result r;
    o.max_steps = STEPS;
    o.save_frequency = 0;
    o.optim.lr = 2e-3;
    o.augment = pnb_augment_none();
    o.template_share = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    json_t *train = results(f, "learn", "train");
    double b = (double)o.batch_size, plateau = log(b) + (b - 1) * log(b / (b - 1));
    double mean = 0, variance = 0;
    for (size_t i = STEPS - TAIL; i < STEPS; i++)
        mean += number(train, i, "ppcl") / TAIL;
    for (size_t i = STEPS - TAIL; i < STEPS; i++)
        variance += pow(number(train, i, "ppcl") - mean, 2) / (TAIL - 1);
    json_decref(train);
    if (!(mean + 4 * sqrt(variance / TAIL) < plateau))
        fail_msg("loss ended at %g, standard error %g; the plateau is %g", mean,
                 sqrt(variance / TAIL), plateau);
}

/* ---- resuming ---- */

/* Stops a run after `after` steps, counted by the progress callback. */
typedef struct stopper {
    volatile sig_atomic_t stop;
    int64_t after;
} stopper;

static void count_steps(void *user, const pnb_train_progress *p)
{
    stopper *s = user;
    if (p->step >= s->after)
        s->stop = 1;
}

static void run_interrupted(const fixture *f, pnb_train_opts o, const int64_t *stops, size_t n)
{
    pnb_train_result r;
    for (size_t i = 0; i <= n; i++) {
        stopper s = {0, i < n ? stops[i] : INT64_MAX};
        o.stop = &s.stop;
        o.progress = count_steps;
        o.progress_user = &s;
        o.resume = i == 0 ? NULL : "latest";
        if (i == n) {
            ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
            continue;
        }
        ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_INTERRUPTED, "--resume latest");
        assert_int_equal(r.step, stops[i]);
    }
}

static void test_resume_ends_in_the_same_bits(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts whole = fixture_opts(f, "whole"), parts = fixture_opts(f, "parts");
    ASSERT_OK(pnb_train(f->ctx, &whole, &r, &err));
    static const int64_t stops[] = {1, 2, 5, 8};
    parts.workers = 0; /* the number of workers must not matter */
    run_interrupted(f, parts, stops, PNB_COUNT(stops));
    assert_same_checkpoint(f, "whole", "parts", "epoch_2");
    json_t *a = results(f, "whole", "train"), *b = results(f, "parts", "train");
    assert_int_equal(json_array_size(b), 10);
    for (size_t i = 0; i < 10; i++)
        assert_true(number(a, i, "loss") == number(b, i, "loss"));
    json_decref(a);
    json_decref(b);
    assert_false(exists(f, "parts", "checkpoints/step_8"));
}

/* Rounded products: the same bits too, another run than in floats, and no way from one to the
 * other. */
static void test_rounded_products_resume(void **state)
{
    const fixture *f = *state;
    pnb_train_result r, floats;
    pnb_train_opts whole = fixture_opts(f, "rounded"), parts = fixture_opts(f, "rounded-parts");
    pnb_train_opts in_floats = fixture_opts(f, "in-floats");
    whole.precision = parts.precision = PNB_TRAIN_AMP_BF16;
    ASSERT_OK(pnb_train(f->ctx, &whole, &r, &err));
    run_interrupted(f, parts, (const int64_t[]){3, 7}, 2);
    assert_same_checkpoint(f, "rounded", "rounded-parts", "epoch_2");
    ASSERT_OK(pnb_train(f->ctx, &in_floats, &floats, &err));
    json_t *a = results(f, "rounded", "train"), *b = results(f, "in-floats", "train");
    for (size_t i = 0; i < 10; i++) {
        assert_true(number(a, i, "loss") != number(b, i, "loss"));
        assert_true(fabs(number(a, i, "loss") - number(b, i, "loss")) <
                    0.02 * number(b, i, "loss"));
    }
    json_decref(a);
    json_decref(b);
    whole.precision = PNB_TRAIN_FP32;
    whole.resume = "latest";
    ASSERT_FAILS(pnb_train(f->ctx, &whole, &r, &err), PNB_ARG, "precision = amp_bf16");
}

/* The objective's own model, smaller: both of its paths are trained and come back. */
static void test_pcmepp_resumes(void **state)
{
    const fixture *f = *state;
    pnb_train_opts whole = fixture_opts(f, "pcmepp"), parts;
    const pnb_train_opts own = pnb_train_opts_of(PNB_OBJECTIVE_PCMEPP, false);
    pnb_train_result r;
    assert_string_equal(own.model, "pcmepp-tiny");
    assert_true(own.config_init); /* its own a = b = 5 */
    assert_string_equal(pnb_train_opts_of(PNB_OBJECTIVE_PCMEPP, true).model, "pcmepp-ViT-B-16");
    whole.model = own.model;
    whole.loss = own.loss;
    whole.config_init = own.config_init;
    whole.config_overrides =
        "{\"embed_dim\":16,\"vision_cfg\":{\"image_size\":16,\"width\":16,\"head_width\":8},"
        "\"text_cfg\":{\"width\":16,\"heads\":2}}";
    whole.max_steps = 3;
    parts = whole;
    parts.name = "pcmepp_parts";
    ASSERT_OK(pnb_train(f->ctx, &whole, &r, &err));
    static const int64_t stops[] = {1, 2};
    run_interrupted(f, parts, stops, PNB_COUNT(stops));
    assert_same_checkpoint(f, "pcmepp", "pcmepp_parts", "latest");
    json_t *steps = results(f, "pcmepp", "train");
    for (size_t i = 0; i < 3; i++)
        assert_true(number(steps, i, "pcmepp") > 0 && number(steps, i, "grad_norm") > 0);
    json_decref(steps);
}

/* Where a child process dies: in training, before a checkpoint is written, or while it is. */
typedef enum death { DEATH_AT_STEP, DEATH_AT_SAVE, DEATH_IN_WRITE } death;
typedef struct killer {
    death death;
    int64_t step;
} killer;

enum { DEATH_CODE = 5 };

static void die(void *user, const pnb_train_progress *p)
{
    const killer *k = user;
    if (p->step < k->step)
        return;
    bool saving = strcmp(p->phase, "save") == 0;
    if (k->death == DEATH_AT_STEP || (k->death == DEATH_AT_SAVE && saving))
        _exit(DEATH_CODE);
    const struct rlimit small = {20000, 20000};
    if (k->death == DEATH_IN_WRITE && saving) /* SIGXFSZ ends the process within the weights */
        setrlimit(RLIMIT_FSIZE, &small);
}

/* Trains with one thread in a child: the pool of the parent does not survive a fork. */
static void train_and_die(pnb_train_opts o, killer k)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        pnb_ctx *ctx = NULL;
        pnb_train_result r;
        const pnb_ctx_opts one = {.n_threads = 1};
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGXFSZ, SIG_DFL);
        o.progress = die;
        o.progress_user = &k;
        if (pnb_ctx_create(&ctx, &one, NULL) == PNB_OK)
            pnb_train(ctx, &o, &r, NULL);
        _exit(1);
    }
    assert_true(child > 0);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    if (k.death == DEATH_IN_WRITE)
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGXFSZ);
    else
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == DEATH_CODE);
}

static void test_killed_run_resumes(void **state)
{
    const fixture *f = *state;
    pnb_ctx *ctx = NULL;
    const pnb_ctx_opts one = {.n_threads = 1};
    pnb_train_result r;
    pnb_train_opts whole = fixture_opts(f, "whole1"), o = fixture_opts(f, "killed");
    ASSERT_OK(pnb_ctx_create(&ctx, &one, &err));
    ASSERT_OK(pnb_train(ctx, &whole, &r, &err));
    o.workers = 0;
    o.save_every_n_steps = 2;
    train_and_die(o, (killer){DEATH_AT_STEP, 3});
    o.resume = "latest";
    train_and_die(o, (killer){DEATH_AT_SAVE, 6});
    train_and_die(o, (killer){DEATH_IN_WRITE, 8});
    assert_true(exists(f, "killed", "checkpoints/.tmp-step_8"));
    char *results_path = path_of(f, "killed", "results.jsonl");
    FILE *file = fopen(results_path, "a"); /* a line cut off by the kill */
    assert_non_null(file);
    fputs("{\"kind\": \"tra", file);
    fclose(file);
    pnb__free(results_path);
    ASSERT_OK(pnb_train(ctx, &o, &r, &err));
    assert_same_checkpoint(f, "whole1", "killed", "epoch_2");
    json_t *lines = results(f, "killed", "train");
    assert_int_equal(json_array_size(lines), 10);
    json_decref(lines);
    assert_false(exists(f, "killed", "checkpoints/.tmp-step_8"));
    assert_false(exists(f, "killed", "checkpoints/step_8"));
    pnb_ctx_free(ctx);
}

static void test_resume_refuses_other_options(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = fixture_opts(f, "whole");
    o.resume = "latest";
    o.optim.lr = 0.5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "lr = 0.001");
    o = fixture_opts(f, "whole");
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_EXISTS, "--resume latest");
    o.name = "nowhere";
    o.resume = "latest";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_NOT_FOUND, "no run");
    assert_false(exists(f, "nowhere", ""));
    o.name = "whole";
    o.resume = "/nonexistent/checkpoint";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_NOT_FOUND, "no such checkpoint");
}

static void test_resume_refuses_other_data(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = fixture_opts(f, "moved");
    o.train_num_samples = 8; /* both sets have them */
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    o.resume = "latest";
    o.train_data = f->val;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "now has 12: resume with the same data");
}

static void test_damaged_checkpoint_is_refused(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = fixture_opts(f, "damaged");
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    char *path = path_of(f, "damaged", "checkpoints/latest/optimizer.safetensors");
    assert_int_equal(truncate(path, 1000), 0);
    o.resume = "latest";
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb_train(f->ctx, &o, &r, &err);
    assert_int_equal(status, PNB_FORMAT);
    assert_true(strlen(err.text) > 10);
    pnb__free(path);
}

/* ---- locks and disks ---- */

static void test_second_process_is_refused(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "locked");
    pnb_train_result r;
    char *dir = path_of(f, "locked", ""), *lock = path_of(f, "locked", ".lock");
    int fd[2], ready = 0;
    ASSERT_OK(pnb__make_dirs(dir, &err));
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int held = -1;
        if (pnb__lock_open(&held, lock, NULL) != PNB_OK || write(fd[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(read(fd[0], &ready, 1), 1);
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_BUSY, "another process is training");
    assert_false(exists(f, "locked", "params.txt"));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err)); /* the lock died with its process */
    close(fd[0]);
    close(fd[1]);
    pnb__free(dir);
    pnb__free(lock);
}

/* Writing fails from a file size on, as on a full disk; the checkpoint before stays whole. */
static void test_full_disk_keeps_the_old_checkpoint(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "full");
    pnb_train_result r;
    stopper s = {0, 3};
    o.stop = &s.stop;
    o.progress = count_steps;
    o.progress_user = &s;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_INTERRUPTED, "step 3");
    char before[65], after[65];
    digest(f, "full", "checkpoints/latest/model.safetensors", before);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 20000; /* logs fit, weights do not */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    o.resume = "latest";
    o.stop = NULL;
    pnb_error problem = PNB_ERROR_INIT;
    pnb_status status = pnb_train(f->ctx, &o, &r, &problem);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    if (status != PNB_IO || strstr(problem.text, "checkpoint step_5") == NULL)
        fail_msg("got %s \"%s\"", pnb_status_name(status), problem.text);
    digest(f, "full", "checkpoints/latest/model.safetensors", after);
    assert_string_equal(before, after);
    assert_false(exists(f, "full", "checkpoints/step_5"));
    assert_false(exists(f, "full", "checkpoints/.tmp-step_5"));
    s.after = INT64_MAX;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(r.step, 10);
    assert_same_checkpoint(f, "whole", "full", "epoch_2");
}

static void test_read_only_logs(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "x");
    pnb_train_result r;
    o.logs = "/proc/penumbra";
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb_train(f->ctx, &o, &r, &err);
    assert_true(status == PNB_IO || status == PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "/proc/penumbra"));
}

/* ---- numbers that go wrong ---- */

static void test_nan_names_step_and_term(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "nan");
    pnb_train_result r;
    o.optim.kind = PNB_OPTIM_SGD;
    o.optim.grad_clip_norm = 0;
    o.optim.lr = 1e38;
    o.warmup = 0;
    o.save_every_n_steps = 1;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb_train(f->ctx, &o, &r, &err);
    assert_int_equal(status, PNB_NUMERIC);
    if (strstr(err.text, "step ") == NULL)
        fail_msg("\"%s\" does not name the step", err.text);
}

/* What the error says of checkpoints is true: none was written before the first step ended badly.
 */
static void test_what_an_error_says_is_kept(void **state)
{
    const fixture *f = *state;
    for (int saves = 0; saves < 2; saves++) {
        pnb_train_opts o = fixture_opts(f, saves ? "kept" : "nothing_kept");
        pnb_train_result r;
        o.optim.lr = 1e30;
        o.warmup = 0;
        o.save_every_n_steps = saves;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb_train(f->ctx, &o, &r, &err), PNB_NUMERIC);
        bool claims = strstr(err.text, "is kept") != NULL;
        if (claims != exists(f, o.name, "checkpoints/latest") || claims != (saves == 1))
            fail_msg("\"%s\", saving %d", err.text, saves);
    }
}

/* Every number of the options: what cannot be trained with is refused before a folder is made. */
static void test_bad_numbers_leave_no_folder(void **state)
{
    const fixture *f = *state;
    enum { NEVER = 1, FROM_0 = 2, BELOW_1 = 4, TO_1 = 8, MAY_BE_INF = 16, MAY_BE_NAN = 32 };
#define REAL(member, rules)                                                                        \
    {                                                                                              \
#member, offsetof(pnb_train_opts, member), rules                                           \
    }
    static const struct {
        const char *name;
        size_t at;
        int rules;
    } reals[] = {
        REAL(template_share, FROM_0 | TO_1),
        REAL(init_logit_scale, FROM_0 | MAY_BE_NAN),
        REAL(init_logit_bias, MAY_BE_NAN),
        REAL(init_unc_bias, MAY_BE_NAN),
        REAL(loss.weight[PNB_LOSS_PPCL], FROM_0),
        REAL(loss.weight[PNB_LOSS_VIB], FROM_0),
        REAL(loss.inclusion_scale, 0),
        REAL(loss.inclusion_eps, 0),
        REAL(loss.inclusion_limit, FROM_0 | MAY_BE_INF),
        REAL(loss.vib_limit, FROM_0 | MAY_BE_INF),
        REAL(drop_ratio, FROM_0 | TO_1),
        REAL(drop_prob, FROM_0 | TO_1),
        REAL(mask_keep, FROM_0 | TO_1),
        REAL(optim.lr, FROM_0),
        REAL(optim.beta1, FROM_0 | BELOW_1 | TO_1),
        REAL(optim.beta2, FROM_0 | BELOW_1 | TO_1),
        REAL(optim.eps, FROM_0),
        REAL(optim.momentum, 0),
        REAL(optim.weight_decay, FROM_0),
        REAL(optim.grad_clip_norm, FROM_0 | MAY_BE_INF),
        REAL(lr_min_ratio, FROM_0 | TO_1),
        REAL(lr_cooldown_power, FROM_0),
        REAL(lr_cooldown_end, FROM_0),
    };
#undef REAL
    const struct {
        double value;
        int allowed_by, refused_by;
    } values[] = {{NAN, MAY_BE_NAN, 0}, {INFINITY, MAY_BE_INF, 0}, {-INFINITY, NEVER, 0},
                  {-1, NEVER, FROM_0},  {-1e300, NEVER, FROM_0},   {1, NEVER, BELOW_1},
                  {1e300, NEVER, TO_1}};
    for (size_t i = 0; i < PNB_COUNT(reals); i++)
        for (size_t k = 0; k < PNB_COUNT(values); k++) {
            bool is_refused = isfinite(values[k].value)
                                  ? (reals[i].rules & values[k].refused_by) != 0
                                  : (reals[i].rules & values[k].allowed_by) == 0;
            pnb_train_opts o = fixture_opts(f, "numbers");
            pnb_train_result r;
            pnb_error err = PNB_ERROR_INIT;
            if (!is_refused)
                continue;
            memcpy((char *)&o + reals[i].at, &values[k].value, sizeof(double));
            if (pnb_train(f->ctx, &o, &r, &err) != PNB_ARG || exists(f, "numbers", ""))
                fail_msg("%s = %g: \"%s\"", reals[i].name, values[k].value, err.text);
        }
}

static void test_bad_options(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = fixture_opts(f, "bad");
    o.train_data = NULL;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "--train-data");
    o = fixture_opts(f, "bad");
    o.drop_prob = 1.5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "drop-prob is 1.5");
    o = fixture_opts(f, "bad");
    o.train_data = "/nonexistent/data";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_NOT_FOUND, "/nonexistent/data");
    o = fixture_opts(f, "bad");
    o.batch_size = 1000;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_SHAPE, "1000");
    o = fixture_opts(f, "bad");
    o.text_mask = PNB_TEXT_MASK_REPLACE;
    o.replace_token = 32000;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "--replace-token 32000");
    o = fixture_opts(f, "bad");
    memset(o.loss.weight, 0, sizeof o.loss.weight);
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "every loss has weight 0");
    o = fixture_opts(f, "bad");
    o.templates = NULL;
    o.n_templates = 2;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "2 templates, but none");
    o = fixture_opts(f, "bad");
    o.model = "no-such-model";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_NOT_FOUND, "no-such-model");
    o = fixture_opts(f, "bad");
    o.resume = f->dir;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_NOT_FOUND, "tokenizer.json");
    assert_false(exists(f, "bad", "")); /* what cannot start leaves nothing behind */
}

/* Counts whose sums and products would not fit their type. */
static void test_absurd_counts(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = fixture_opts(f, "absurd");
    o.max_steps = 0;
    o.epochs = INT64_MAX;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_LIMIT, "9223372036854775807 epochs");
    o = fixture_opts(f, "absurd");
    o.epochs_cooldown = INT64_MAX;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_LIMIT, "9223372036854775807 of cooling");
    o = fixture_opts(f, "absurd");
    o.max_steps = INT64_MAX;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "max-steps is 9223372036854775807");
    o = fixture_opts(f, "absurd");
    o.train_num_samples = INT64_MAX;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "samples an epoch");
    o = fixture_opts(f, "absurd");
    o.batch_size = 1 << 20;
    o.accum_freq = 1 << 20;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "accum-freq is 1048576");
    assert_false(exists(f, "absurd", ""));
}

/* A damaged picture is replaced and named; captions over the context are cut and counted. */
static void test_damaged_and_long_samples(void **state)
{
    const fixture *f = *state;
    char *dir = pnb__path_join(f->dir, "pictures"), path[600];
    ASSERT_OK(pnb__make_dirs(dir, &err));
    pnb_image image = {0};
    ASSERT_OK(pnb_image_create(&image, 16, 16, 3, &err));
    static const char text[] = "one two three four five six seven eight nine ten eleven twelve";
    for (int i = 0; i < 12; i++) {
        memset(image.pixels, 20 * i, 16 * 16 * 3);
        snprintf(path, sizeof path, "%s/p%02d.png", dir, i);
        if (i == 5)
            ASSERT_OK(pnb__write_file(path, "no picture", 10, &err));
        else
            ASSERT_OK(pnb_image_save_png(&image, path, &err));
        snprintf(path, sizeof path, "%s/p%02d.txt", dir, i);
        ASSERT_OK(pnb__write_file(path, text, strlen(text), &err));
    }
    pnb_image_free(&image);
    pnb_train_opts o = fixture_opts(f, "damaged_data");
    pnb_train_result r;
    o.train_data = dir;
    o.batch_size = 4;
    o.epochs = 1;
    o.tokenizer_kind = PNB_TOKENIZER_WORD;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(r.n_skipped, 1);
    assert_true(r.n_truncated >= 12);
    char *log_path = path_of(f, "damaged_data", "out.log"), *log = NULL;
    size_t size = 0;
    ASSERT_OK(pnb__read_file(log_path, 1 << 20, &log, &size, &err));
    assert_non_null(strstr(log, "1 samples could not be read"));
    assert_non_null(strstr(log, "captions were cut to 12 tokens"));
    pnb__free(log);
    pnb__free(log_path);
    pnb__free(dir);
}

/* ---- variants ---- */

/* Every loss, mask form, optimiser and schedule makes finite steps and finishes. */
static void test_variants_finish(void **state)
{
    const fixture *f = *state;
    char name[32];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "variant%d", i);
        pnb_train_opts o = fixture_opts(f, name);
        pnb_train_result r;
        o.epochs = 1;
        o.optim.kind = (pnb_optim_kind)i;
        o.lr_scheduler = (pnb_schedule_kind)(i % PNB_N_SCHEDULE_KINDS);
        o.epochs_cooldown = 1;
        o.lr_milestones[0] = 1;
        o.text_mask = i % 2 == 0 ? PNB_TEXT_MASK_REPLACE : PNB_TEXT_MASK_DELETE;
        o.loss.weight[PNB_LOSS_SIGLIP] = o.loss.weight[PNB_LOSS_CLIP] = 0.5;
        for (int k = PNB_LOSS_PCMEPP; k < PNB_LOSS_DIVERSITY; k++)
            o.loss.weight[k] = o.loss.weight[k] > 0 ? o.loss.weight[k] : 0.5;
        o.loss.inclusion_exact = i == 3;
        o.lock_image = i == 2;
        o.lock_text = i == 4;
        ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
        assert_true(isfinite(r.total));
        for (int k = 0; k < PNB_LOSS_DIVERSITY; k++)
            assert_true(k == PNB_LOSS_UNIFORMITY ? r.loss[k] < 0 : r.loss[k] > 0);
    }
}

/* Two micro-batches of 4 give the losses and gradients of a batch of 8, step after step;
 * gradients.c has single steps and says how far rounding may drive runs apart. Every row is masked
 * and every token deleted, so that both draw the same masks. */
static void test_accumulation_equals_a_big_batch(void **state)
{
    const fixture *f = *state;
    pnb_train_opts big = fixture_opts(f, "big"), micro = fixture_opts(f, "micro");
    pnb_train_result r;
    big.optim.kind = PNB_OPTIM_SGD; /* Adam would blow rounding of tiny gradients up */
    big.optim.lr = 0.05;
    big.drop_ratio = big.drop_prob = 1;
    big.loss.weight[PNB_LOSS_IMG_INCLUSION] = big.loss.weight[PNB_LOSS_TXT_INCLUSION] = 0.1;
    big.loss.weight[PNB_LOSS_INCLUSION] = big.loss.weight[PNB_LOSS_VIB] = 0.1;
    big.loss.weight[PNB_LOSS_CLIP] = 0.5;
    big.loss.inclusion_scale = 1;
    micro = big;
    micro.name = "micro";
    micro.batch_size = 4;
    micro.accum_freq = 2;
    ASSERT_OK(pnb_train(f->ctx, &big, &r, &err));
    ASSERT_OK(pnb_train(f->ctx, &micro, &r, &err));
    json_t *a = results(f, "big", "train"), *b = results(f, "micro", "train");
    static const char *const keys[] = {"loss",          "ppcl",       "clip",          "inclusion",
                                       "img_inclusion", "vib",        "txt_inclusion", "lr",
                                       "grad_norm",     "logit_scale"};
    for (size_t i = 0; i < 10; i++)
        for (size_t k = 0; k < PNB_COUNT(keys); k++) {
            double x = number(a, i, keys[k]), y = number(b, i, keys[k]);
            if (!(fabs(x - y) <= 2e-5 * fabs(x)))
                fail_msg("step %zu: %s is %.7g in one batch, %.7g in two", i + 1, keys[k], x, y);
        }
    json_decref(a);
    json_decref(b);
}

static void test_accumulation_resumes(void **state)
{
    const fixture *f = *state;
    pnb_train_opts whole = fixture_opts(f, "accum"), parts = fixture_opts(f, "accum_parts");
    pnb_train_result r;
    whole.batch_size = parts.batch_size = 5; /* 8 batches an epoch of data: steps cross its end */
    whole.accum_freq = parts.accum_freq = 3;
    whole.epochs = parts.epochs = 4;
    ASSERT_OK(pnb_train(f->ctx, &whole, &r, &err));
    static const int64_t stops[] = {2, 3};
    run_interrupted(f, parts, stops, PNB_COUNT(stops));
    assert_same_checkpoint(f, "accum", "accum_parts", "latest");
}

/* Values of one weight of a checkpoint. */
static double *weight(const fixture *f, const char *run, const char *ckpt, const char *name,
                      size_t *n)
{
    char *rest = pnb__format("checkpoints/%s/model.safetensors", ckpt);
    char *path = path_of(f, run, rest);
    pnb_safetensors *st = NULL;
    ASSERT_OK(pnb_safetensors_open(&st, path, &err));
    const pnb_array_view *view = pnb_safetensors_find(st, name);
    assert_non_null(view);
    *n = pnb_array_size(view);
    double *values = calloc(*n, sizeof *values);
    assert_non_null(values);
    ASSERT_OK(pnb_array_to_f64(view, values, &err));
    pnb_safetensors_free(st);
    pnb__free(path);
    pnb__free(rest);
    return values;
}

static void test_locked_tower_stays(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "frozen");
    pnb_train_result r;
    stopper s = {0, 1};
    o.stop = &s.stop;
    o.progress = count_steps;
    o.progress_user = &s;
    o.lock_image = true;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_INTERRUPTED, "");
    size_t n;
    double *image = weight(f, "frozen", "latest", "visual.conv1.weight", &n);
    double *text = weight(f, "frozen", "latest", "text.token_embedding.weight", &n);
    s.after = INT64_MAX;
    s.stop = 0;
    o.resume = "latest";
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    double *image2 = weight(f, "frozen", "epoch_2", "visual.conv1.weight", &n);
    assert_memory_equal(image, image2, n * sizeof(double));
    double *text2 = weight(f, "frozen", "epoch_2", "text.token_embedding.weight", &n);
    assert_memory_not_equal(text, text2, n * sizeof(double));
    free(image);
    free(image2);
    free(text);
    free(text2);
}

/* Starting from a finished model: its tokenizer and preprocessing come along. */
static void test_continue_from_a_model(void **state)
{
    const fixture *f = *state;
    char *dir = path_of(f, "whole", "checkpoints/epoch_2");
    pnb_train_opts o = fixture_opts(f, "finetune");
    pnb_train_result r;
    o.model = dir;
    o.epochs = 1;
    o.optim.lr = 0; /* nothing moves but the rounding of nothing */
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    size_t n;
    double *a = weight(f, "whole", "epoch_2", "visual.conv1.weight", &n);
    double *b = weight(f, "finetune", "epoch_1", "visual.conv1.weight", &n);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
    pnb__free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_a_run),
        cmocka_unit_test(test_lines_of_results),
        cmocka_unit_test(test_gradients_are_clipped),
        cmocka_unit_test(test_logit_scale_is_clamped),
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_resume_ends_in_the_same_bits),
        cmocka_unit_test(test_killed_run_resumes),
        cmocka_unit_test(test_resume_refuses_other_options),
        cmocka_unit_test(test_resume_refuses_other_data),
        cmocka_unit_test(test_damaged_checkpoint_is_refused),
        cmocka_unit_test(test_second_process_is_refused),
        cmocka_unit_test(test_full_disk_keeps_the_old_checkpoint),
        cmocka_unit_test(test_read_only_logs),
        cmocka_unit_test(test_nan_names_step_and_term),
        cmocka_unit_test(test_what_an_error_says_is_kept),
        cmocka_unit_test(test_bad_numbers_leave_no_folder),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_absurd_counts),
        cmocka_unit_test(test_damaged_and_long_samples),
        cmocka_unit_test(test_variants_finish),
        cmocka_unit_test(test_accumulation_equals_a_big_batch),
        cmocka_unit_test(test_accumulation_resumes),
        cmocka_unit_test(test_rounded_products_resume),
        cmocka_unit_test(test_pcmepp_resumes),
        cmocka_unit_test(test_locked_tower_stays),
        cmocka_unit_test(test_continue_from_a_model),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
