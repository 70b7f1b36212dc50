/* An objective that is neither pictures nor captions goes through the loop unchanged: a linear head
 * on frozen features, logistic loss and a decay of its own. It learns, resumes to the bit and
 * reports its losses by their names.
 *
 * Features x (N,D) are fixed; labels y are the sign of a hidden direction. With z = x w + b and
 * s = 2y - 1 the loss of a step is
 *   fit = mean softplus(-s z)      shrink = c sum w^2 */
#include "tests/train/fixture.h"

#include <math.h>
#include <signal.h>

#include "penumbra/safetensors.h"
#include "train/trainer.h"

enum { N_ROWS = 40, N_VAL = 10, WIDTH = 24, BATCH = 8 };

typedef struct head {
    const fixture *f;
    double decay; /* c */
    double scale; /* of the features: huge ones break the loss */
    uint64_t seed;
    float x[N_ROWS + N_VAL][WIDTH], sign[N_ROWS + N_VAL];
    pnb__kernels kernels;
    pnb__param w, b, *params[2];
    pnb__graph *graph;
    pnb__tensor *features, *signs, *fit, *shrink, *total;
    pnb_loader_position at; /* of the next batch: every epoch is in order, from another row on */
    volatile sig_atomic_t stop;
    int64_t stop_at; /* step that sets `stop`; -1: none */
    int n_closed;
} head;

static const pnb__field head_fields[] = {
    {"decay", offsetof(head, decay), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NONE},
};

static void make_features(head *h)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 0);
    for (size_t i = 0; i < N_ROWS + N_VAL; i++) {
        double side = 0;
        for (size_t d = 0; d < WIDTH; d++) {
            h->x[i][d] = (float)(h->scale * (pnb__rng_uniform(&rng) - 0.5));
            side += h->x[i][d] * (d % 3 == 0 ? 1 : -0.5);
        }
        h->sign[i] = side > 0 ? 1 : -1;
    }
}

static pnb_status make_param(head *h, pnb__param *p, const char *name, size_t n, pnb_error *err)
{
    *p = (pnb__param){.name = name, .n_dims = 2, .shape = {1, n}, .n = n, .trainable = true};
    if (pnb__param_alloc(p, &h->kernels, n * sizeof(float), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        double start = 0.01 * (double)i;
        pnb__param_write(p, &h->kernels, i, 1, &start, NULL);
    }
    return PNB_OK;
}

static pnb_status load_head(head *h, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, "head.safetensors");
    pnb_safetensors *file = NULL;
    pnb_status status = pnb_safetensors_open(&file, path, err);
    for (int i = 0; i < 2 && status == PNB_OK; i++) {
        const pnb_array_view *v = pnb_safetensors_find(file, h->params[i]->name);
        double values[WIDTH];
        assert_true(v != NULL && v->n_bytes == h->params[i]->n * sizeof(float));
        for (size_t j = 0; j < h->params[i]->n; j++)
            values[j] = (double)((const float *)v->data)[j];
        pnb__param_write(h->params[i], &h->kernels, 0, h->params[i]->n, values, NULL);
    }
    pnb_safetensors_free(file);
    pnb__free(path);
    return status;
}

static pnb_status open_head(void *self, const char *checkpoint, pnb__objective *o, pnb_error *err)
{
    head *h = self;
    pnb_status status;
    make_features(h);
    pnb__kernels_fill(&h->kernels, h->f->ctx, PNB__F32);
    h->params[0] = &h->w;
    h->params[1] = &h->b;
    PNB_TRY(make_param(h, &h->w, "head.weight", WIDTH, err));
    PNB_TRY(make_param(h, &h->b, "head.bias", 1, err));
    if (checkpoint != NULL)
        PNB_TRY(load_head(h, checkpoint, err));
    o->params = h->params;
    o->n_params = 2;
    o->n_weights = WIDTH + 1;
    o->real = PNB__F32;
    o->n_samples = N_ROWS;
    o->steps_per_epoch = N_ROWS / BATCH;
    o->validates = true;
done:
    return status;
}

static pnb_status start_head(void *self, pnb_loader_position at, pnb__objective *o, pnb_error *err)
{
    head *h = self;
    h->at = at;
    pnb_status status = pnb__graph_create(&h->graph, h->f->ctx, PNB__F32, true, err);
    if (status != PNB_OK)
        return status;
    h->features = pnb__input(h->graph, PNB__REAL, 2, (size_t[]){BATCH, WIDTH});
    h->signs = pnb__input(h->graph, PNB__REAL, 2, (size_t[]){BATCH, 1});
    pnb__tensor *w = pnb__param_tensor(h->graph, &h->w);
    pnb__tensor *z = pnb__linear(h->features, w, NULL);
    z = pnb__add(z, pnb__param_tensor(h->graph, &h->b));
    pnb__tensor *lost = pnb__apply(PNB__SOFTPLUS, pnb__affine(pnb__mul(z, h->signs), -1, 0));
    h->fit = pnb__mean(lost, PNB__ALL_AXES);
    h->shrink = pnb__affine(pnb__sum(pnb__apply(PNB__SQUARE, w), PNB__ALL_AXES), h->decay, 0);
    h->total = pnb__add(h->fit, h->shrink);
    pnb__keep(h->fit);
    pnb__keep(h->shrink);
    pnb__keep(h->total);
    status = pnb__graph_plan(h->graph, h->total, err);
    o->graph_bytes = pnb__graph_arena_bytes(h->graph);
    return status;
}

static void close_head(void *self)
{
    head *h = self;
    pnb__graph_free(h->graph);
    for (int i = 0; i < 2; i++)
        if (h->params[i] != NULL)
            pnb__param_free(h->params[i], &h->kernels, h->params[i]->n * sizeof(float));
    h->n_closed++;
}

/* A row of the batch; where an epoch begins is drawn from seed and epoch. */
static size_t row_of(const head *h, size_t i)
{
    pnb__rng rng;
    pnb__rng_init(&rng, h->seed, h->at.epoch);
    size_t first = (size_t)pnb__rng_below(&rng, N_ROWS);
    return (first + (size_t)h->at.batch * BATCH + i) % N_ROWS;
}

static pnb_status step_head(void *self, int64_t step, pnb__step_values *out, pnb_error *err)
{
    head *h = self;
    float x[BATCH][WIDTH], s[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        memcpy(x[i], h->x[row_of(h, i)], sizeof x[i]);
        s[i] = h->sign[row_of(h, i)];
    }
    pnb__write_f32(h->features, &x[0][0]);
    pnb__write_f32(h->signs, s);
    pnb_status status = pnb__graph_run(h->graph, err);
    if (status != PNB_OK)
        return status;
    pnb__figures_add(&out->terms, "fit", NULL, pnb__read_scalar(h->fit));
    pnb__figures_add(&out->terms, "shrink", NULL, pnb__read_scalar(h->shrink));
    out->total = pnb__read_scalar(h->total);
    h->at.batch++;
    if (h->at.batch == N_ROWS / BATCH)
        h->at = (pnb_loader_position){h->at.epoch + 1, 0};
    if (step + 1 == h->stop_at)
        h->stop = 1;
    return PNB_OK;
}

static pnb_status updated_head(void *self, pnb__step_values *out, pnb_error *err)
{
    const head *h = self;
    double bias = 0;
    pnb_status status = pnb__param_read(&h->b, &h->kernels, 0, 1, &bias, err);
    pnb__figures_add(&out->state, "bias", "Bias", bias);
    return status;
}

static pnb_loader_position position_head(const void *self)
{
    return ((const head *)self)->at;
}

static pnb_status validate_head(void *self, int64_t step, pnb__eval_values *out, pnb_error *err)
{
    const head *h = self;
    double w[WIDTH], bias = 0;
    size_t n_right = 0;
    (void)step;
    pnb_status status = pnb__param_read(&h->w, &h->kernels, 0, WIDTH, w, err);
    if (status == PNB_OK)
        status = pnb__param_read(&h->b, &h->kernels, 0, 1, &bias, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = N_ROWS; i < N_ROWS + N_VAL; i++) {
        double z = bias;
        for (size_t d = 0; d < WIDTH; d++)
            z += w[d] * h->x[i][d];
        out->total += log1p(exp(-z * h->sign[i])) / N_VAL;
        n_right += z * h->sign[i] > 0;
    }
    out->n = N_VAL;
    pnb__figures_add(&out->figures, "accuracy", "accuracy", (double)n_right / N_VAL);
    return PNB_OK;
}

static pnb_status save_head(void *self, const char *dir, pnb_error *err)
{
    const head *h = self;
    char *path = pnb__path_join(dir, "head.safetensors");
    double values[WIDTH];
    float host[2][WIDTH];
    pnb_array_view views[2];
    for (int i = 0; i < 2; i++) {
        const pnb__param *p = h->params[i];
        pnb__param_read(p, &h->kernels, 0, p->n, values, NULL);
        for (size_t j = 0; j < p->n; j++)
            host[i][j] = (float)values[j];
        views[i] = (pnb_array_view){.name = p->name,
                                    .dtype = PNB_F32,
                                    .n_dims = 1,
                                    .shape = {(int64_t)p->n},
                                    .data = host[i],
                                    .n_bytes = p->n * sizeof(float)};
    }
    pnb_status status = pnb_safetensors_write(path, views, 2, NULL, err);
    pnb__free(path);
    return status;
}

static const pnb__objective_calls head_calls = {.open = open_head,
                                                .start = start_head,
                                                .step = step_head,
                                                .updated = updated_head,
                                                .position = position_head,
                                                .validate = validate_head,
                                                .save = save_head,
                                                .close = close_head};

static pnb__run_opts head_opts(const fixture *f, const char *name)
{
    return (pnb__run_opts){.optim = pnb_optim_opts_default(),
                           .lr_scheduler = PNB_SCHEDULE_COSINE,
                           .warmup = 3,
                           .batch_size = BATCH,
                           .accum_freq = 1,
                           .epochs = 8,
                           .seed = 5,
                           .logs = f->logs,
                           .name = name,
                           .label = "head",
                           .log_every_n_steps = 1,
                           .val_frequency = 2,
                           .save_most_recent = true};
}

/* One run of a head with these options; the loop must have closed it once. */
static pnb_status train_head(const fixture *f, const pnb__run_opts *o, head *h,
                             pnb__run_result *result, pnb_error *err)
{
    pnb__run_opts opts = *o;
    opts.optim.lr = 0.1;
    opts.stop = &h->stop;
    h->f = f;
    h->seed = o->seed;
    h->scale = h->scale > 0 ? h->scale : 1;
    const pnb__objective objective = {
        .calls = &head_calls, .self = h, .settings = {head_fields, PNB_COUNT(head_fields), h}};
    pnb_status status = pnb__trainer_run(f->ctx, &opts, &objective, result, err);
    assert_int_equal(h->n_closed, status == PNB_ARG && h->graph == NULL ? h->n_closed : 1);
    return status;
}

static char *read_text(const char *dir, const char *name)
{
    char *path = pnb__path_join(dir, name), *text = NULL;
    size_t size = 0;
    ASSERT_OK(pnb__read_file(path, (size_t)1 << 24, &text, &size, &err));
    pnb__free(path);
    return text;
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    char *x = pnb__path_join(a, name), *y = pnb__path_join(b, name), *one = NULL, *two = NULL;
    size_t n = 0, m = 0;
    ASSERT_OK(pnb__read_file(x, (size_t)1 << 24, &one, &n, &err));
    ASSERT_OK(pnb__read_file(y, (size_t)1 << 24, &two, &m, &err));
    if (n != m || memcmp(one, two, n) != 0)
        fail_msg("%s and %s differ", x, y);
    pnb__free(x);
    pnb__free(y);
    pnb__free(one);
    pnb__free(two);
}

/* The value of `key` in the n-th line of a kind, from the end when n is negative. */
static double result_of(const char *run_dir, const char *kind, const char *key, int n)
{
    char *text = read_text(run_dir, "results.jsonl");
    double values[256];
    int found = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *o = NULL;
        ASSERT_OK(pnb__json_load_bytes(&o, line, strlen(line), "results.jsonl", &err));
        const json_t *value = json_object_get(o, key);
        if (strcmp(json_string_value(json_object_get(o, "kind")), kind) == 0) {
            if (!json_is_number(value) || found == 256)
                fail_msg("%s without %s: %s", kind, key, line);
            values[found++] = json_number_value(value);
        }
        json_decref(o);
    }
    pnb__free(text);
    assert_true(found > 0);
    return values[n < 0 ? found + n : n];
}

static void test_it_learns_and_reports_by_name(void **state)
{
    const fixture *f = *state;
    pnb__run_opts o = head_opts(f, "head-learns");
    pnb__run_result r;
    head h = {.decay = 1e-3, .stop_at = -1};
    ASSERT_OK(train_head(f, &o, &h, &r, &err));
    assert_int_equal(r.step, 8 * N_ROWS / BATCH);
    assert_int_equal(r.epoch, 8);
    assert_true(result_of(r.run_dir, "train", "fit", -1) <
                0.6 * result_of(r.run_dir, "train", "fit", 0));
    double fit = result_of(r.run_dir, "train", "fit", -1);
    double shrink = result_of(r.run_dir, "train", "shrink", -1);
    assert_true(shrink > 0 && fabs(fit + shrink - r.total) < 1e-6);
    assert_true(result_of(r.run_dir, "train", "loss", -1) == r.total);
    assert_true(result_of(r.run_dir, "train", "grad_norm", 0) > 0);
    result_of(r.run_dir, "train", "bias", 0);
    assert_true(result_of(r.run_dir, "eval", "accuracy", -1) >= 0.8);
    assert_true(result_of(r.run_dir, "eval", "val_loss", -1) <
                result_of(r.run_dir, "eval", "val_loss", 0));
    char *log = read_text(r.run_dir, "out.log"), *params = read_text(r.run_dir, "params.txt");
    assert_non_null(strstr(log, " Bias: "));
    assert_non_null(strstr(log, " Fit: "));
    assert_non_null(strstr(log, "25 parameters"));
    assert_non_null(strstr(log, "Eval Epoch: 8 accuracy: "));
    assert_null(strstr(log, "Logit Scale"));
    assert_non_null(strstr(params, "decay: 0.001"));
    assert_non_null(strstr(params, "warmup: 3"));
    assert_true(r.best_dir[0] != '\0');
    pnb__free(log);
    pnb__free(params);
}

/* Stopped in the middle of an epoch and continued, against one piece. */
static void test_it_resumes_to_the_bit(void **state)
{
    static const char *const files[] = {"head.safetensors", "optimizer.safetensors", "state.json"};
    const fixture *f = *state;
    pnb__run_opts o = head_opts(f, "head-whole");
    pnb__run_result whole, cut;
    head h = {.decay = 1e-3, .stop_at = -1}, first = {.decay = 1e-3, .stop_at = 13};
    head second = {.decay = 1e-3, .stop_at = -1};
    ASSERT_OK(train_head(f, &o, &h, &whole, &err));
    o.name = "head-cut";
    ASSERT_FAILS(train_head(f, &o, &first, &cut, &err), PNB_INTERRUPTED, "after step 13 of 40");
    assert_int_equal(cut.step, 13);
    o.resume = "latest";
    ASSERT_OK(train_head(f, &o, &second, &cut, &err));
    assert_int_equal(cut.step, 40);
    assert_true(whole.total == cut.total);
    for (size_t i = 0; i < PNB_COUNT(files); i++)
        assert_same_file(whole.checkpoint_dir, cut.checkpoint_dir, files[i]);
    for (int i = 0; i < 40; i++)
        assert_true(result_of(whole.run_dir, "train", "fit", i) ==
                    result_of(cut.run_dir, "train", "fit", i));
}

static void test_its_options_are_fixed_too(void **state)
{
    const fixture *f = *state;
    pnb__run_opts o = head_opts(f, "head-fixed");
    pnb__run_result r;
    head first = {.decay = 1e-3, .stop_at = 4}, other = {.decay = 1e-2, .stop_at = -1};
    head rows = {.decay = 1e-3, .stop_at = -1};
    ASSERT_FAILS(train_head(f, &o, &first, &r, &err), PNB_INTERRUPTED, "step 4");
    o.resume = "latest";
    ASSERT_FAILS(train_head(f, &o, &other, &r, &err), PNB_ARG, "decay = 0.001");
    o.warmup = 9;
    ASSERT_FAILS(train_head(f, &o, &rows, &r, &err), PNB_ARG, "warmup = 3");
}

/* The loop looks at the numbers of any objective and names the term. */
static void test_a_broken_term_is_named(void **state)
{
    const fixture *f = *state;
    pnb__run_opts o = head_opts(f, "head-broken");
    pnb__run_result r;
    head h = {.decay = INFINITY, .stop_at = -1};
    ASSERT_FAILS(train_head(f, &o, &h, &r, &err), PNB_NUMERIC, "step 0: loss shrink is inf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_learns_and_reports_by_name),
        cmocka_unit_test(test_it_resumes_to_the_bit),
        cmocka_unit_test(test_its_options_are_fixed_too),
        cmocka_unit_test(test_a_broken_term_is_named),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
