/* ResNet trunks: sizes and names as torchvision's, how they start, a family of models around one
 * that is saved and opened under the names of another project's files, what a file lacks, training
 * with its buffers, any size of pictures, any number of threads. */
#include "models/resnet/resnet.h"

#include <math.h>
#include <unistd.h>

#include "models/model.h"
#include "models/weights/weights.h"
#include "penumbra/safetensors.h"
#include "tests/prob/support.h"

/* ---- a family with nothing but a trunk: points, the average of the map ---- */

typedef struct cnn_tower {
    pnb__resnet resnet;
} cnn_tower;

static pnb__resnet_config cnn_of(const pnb__config *c)
{
    pnb__resnet_config own;
    pnb__config_get_own(c, &own, sizeof own);
    return own;
}

static bool cnn_claims(const json_t *root)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    return type != NULL && strcmp(type, "cnn") == 0;
}

static pnb_status cnn_read(pnb__config *out, json_t *root, const char *where, pnb_error *err)
{
    static const char *const keys[] = {"model_type", "base", "image_size", "bottleneck"};
    pnb__jobj o = pnb__json_object(root, where, err);
    pnb__resnet_config own = {.layers = {1, 2, 1, 1}};
    pnb__json_check_keys(&o, keys, PNB_COUNT(keys), err);
    own.base = (size_t)pnb__json_get_int_in(&o, "base", 2, 0, 64, err);
    own.bottleneck = pnb__json_get_int_in(&o, "bottleneck", 1, 0, 1, err) == 1;
    out->image_height = out->image_width =
        (size_t)pnb__json_get_int_in(&o, "image_size", 32, 1, 512, err);
    if (o.status != PNB_OK)
        return o.status;
    out->embed_dim = pnb__resnet_width(&own);
    out->vision.present = true;
    pnb__config_set_own(out, &own, sizeof own);
    return pnb__resnet_config_check(&own, out->image_height, out->image_width, err);
}

static pnb_family cnn_ends_in(const pnb__config *c)
{
    (void)c;
    return PNB_POINT;
}

static void cnn_declare(pnb__weights *w, const pnb__config *c)
{
    cnn_tower *t = pnb__declare_tower(w, PNB__IMAGE_SIDE, sizeof *t);
    pnb__resnet_config own = cnn_of(c);
    if (t != NULL)
        pnb__resnet_declare(w, &t->resnet, "visual.cnn.", &own);
}

static pnb__dist cnn_build(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                           const pnb__tower_in *in, bool unit)
{
    const cnn_tower *t = w->tower[PNB__IMAGE_SIDE];
    pnb__resnet_config own = cnn_of(c);
    pnb__resnet_out out = pnb__resnet_build(&t->resnet, &own, g, in->pixels);
    return (pnb__dist){.mean = pnb__unit_rows(out.pooled, unit)};
}

static const pnb__tower_calls cnn_image = {
    .family = cnn_ends_in, .declare = cnn_declare, .build = cnn_build};
static const pnb__key_rule cnn_rules[] = {{"visual.cnn.*", "img_enc.cnn.*", PNB__KEY_WHOLE},
                                          {NULL, "img_enc.cnn.fc.*", PNB__KEY_WHOLE}};
static const pnb__key_mapping_table cnn_keys = {"cnn", cnn_rules, 2}, no_text = {"cnn", NULL, 0};
static const pnb__family_calls cnn_calls = {.name = "cnn",
                                            .image = &cnn_image,
                                            .claims = cnn_claims,
                                            .read_config = cnn_read,
                                            .image_keys = &cnn_keys,
                                            .text_keys = &no_text};

#define DECLARE(NAME, word) extern const pnb__family_calls pnb__##word##_calls;
PNB__MODEL_FAMILY_LIST(DECLARE)
#define ROW(NAME, word) &pnb__##word##_calls,
const pnb__family_calls *const pnb__model_families[] = {PNB__MODEL_FAMILY_LIST(ROW) & cnn_calls};
const size_t pnb__n_model_families = PNB_COUNT(pnb__model_families);

/* ---- a trunk alone ---- */

typedef struct trunk {
    pnb__resnet_config config;
    pnb__resnet resnet;
    pnb__weights w;
} trunk;

static void declare(pnb__weights *w, void *user)
{
    trunk *t = user;
    pnb__resnet_declare(w, &t->resnet, "visual.cnn.", &t->config);
}

static pnb_ctx *open_ctx(int n_threads)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = n_threads;
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    return ctx;
}

static const pnb__weight *find(const pnb__weights *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->items[i].param.name, name) == 0)
            return &w->items[i];
    return NULL;
}

/* Numbers of weights that are trained, and arrays that torchvision has beside its counters and its
 * classifier. */
static void test_sizes(void **state)
{
    static const struct {
        const char *name;
        size_t n_trained, n_arrays, width;
    } known[] = {{"resnet18", 11176512, 100, 512},
                 {"resnet34", 21284672, 180, 512},
                 {"resnet50", 23508032, 265, 2048},
                 {"resnet101", 42500160, 520, 2048},
                 {"resnet152", 58143808, 775, 2048}};
    (void)state;
    pnb_ctx *ctx = open_ctx(1);
    for (size_t i = 0; i < PNB_COUNT(known); i++) {
        trunk t;
        size_t n = 0;
        assert_ok(pnb__resnet_config_named(&t.config, known[i].name, err));
        assert_int_equal(pnb__resnet_width(&t.config), known[i].width);
        assert_ok(pnb__weights_declare_by(&t.w, ctx, PNB__F32, declare, &t, err));
        for (size_t k = 0; k < t.w.n; k++)
            n += t.w.items[k].param.trainable ? t.w.items[k].param.n : 0;
        assert_int_equal(n, known[i].n_trained);
        assert_int_equal(t.w.n, known[i].n_arrays);
        assert_non_null(find(&t.w, "visual.cnn.layer4.1.bn2.running_var"));
        pnb__weights_reset(&t.w);
    }
    pnb_ctx_free(ctx);
}

/* Shapes where blocks differ: v1.5 has the stride on the 3x3, shortcuts where they are needed. */
static void expect_array(const pnb__weights *w, const char *name, const size_t *shape)
{
    const pnb__weight *item = find(w, name);
    if (item == NULL)
        fail_msg("there is no %s", name);
    for (int i = 0; i < item->param.n_dims; i++)
        assert_int_equal(item->param.shape[i], shape[i]);
}

static void test_arrays(void **state)
{
    (void)state;
    pnb_ctx *ctx = open_ctx(1);
    trunk t;
    assert_ok(pnb__resnet_config_named(&t.config, "resnet50", err));
    assert_ok(pnb__weights_declare_by(&t.w, ctx, PNB__F32, declare, &t, err));
    expect_array(&t.w, "visual.cnn.conv1.weight", (size_t[]){64, 3, 7, 7});
    expect_array(&t.w, "visual.cnn.layer1.0.downsample.0.weight", (size_t[]){256, 64, 1, 1});
    expect_array(&t.w, "visual.cnn.layer2.0.conv1.weight", (size_t[]){128, 256, 1, 1});
    expect_array(&t.w, "visual.cnn.layer2.0.conv2.weight", (size_t[]){128, 128, 3, 3});
    expect_array(&t.w, "visual.cnn.layer4.2.conv3.weight", (size_t[]){2048, 512, 1, 1});
    assert_null(find(&t.w, "visual.cnn.layer1.1.downsample.0.weight"));
    assert_int_equal(t.resnet.blocks[3].stride, 2);
    assert_int_equal(t.resnet.blocks[0].stride, 1);
    pnb__weights_reset(&t.w);
    assert_ok(pnb__resnet_config_named(&t.config, "resnet18", err));
    assert_ok(pnb__weights_declare_by(&t.w, ctx, PNB__F32, declare, &t, err));
    assert_null(find(&t.w, "visual.cnn.layer1.0.downsample.0.weight"));
    expect_array(&t.w, "visual.cnn.layer3.0.downsample.1.bias", (size_t[]){256});
    assert_null(find(&t.w, "visual.cnn.layer1.0.conv3.weight"));
    pnb__weights_reset(&t.w);
    pnb_ctx_free(ctx);
}

/* Convolutions have the variance 2 / fan-out, norms begin as the identity; buffers are not trained.
 */
static void test_start(void **state)
{
    (void)state;
    pnb_ctx *ctx = open_ctx(1);
    trunk t = {.config = {.base = 16, .layers = {1, 1, 1, 1}, .bottleneck = true}};
    assert_ok(pnb__weights_declare_by(&t.w, ctx, PNB__F32, declare, &t, err));
    assert_ok(pnb__weights_init(&t.w, 5, err));
    for (size_t i = 0; i < t.w.n; i++) {
        const pnb__param *p = &t.w.items[i].param;
        double *v = pnb__alloc_array(p->n, sizeof *v), squares = 0;
        assert_ok(pnb__param_read(p, &t.w.kernels, 0, p->n, v, err));
        bool is_mean = strstr(p->name, "running_mean"), is_var = strstr(p->name, "running_var");
        bool is_bias = strstr(p->name, ".bias");
        assert_int_equal(p->trainable, !is_mean && !is_var);
        for (size_t k = 0; k < p->n; k++) {
            squares += v[k] * v[k] / (double)p->n;
            if (p->n_dims == 1)
                assert_true(v[k] == (is_mean || is_bias ? 0 : 1));
        }
        if (p->n_dims == 4 && p->n > 4000) {
            double fan_out = (double)(p->shape[0] * p->shape[2] * p->shape[3]);
            assert_true(fabs(squares * fan_out / 2 - 1) < 0.1);
        }
        pnb__free(v);
    }
    pnb__weights_reset(&t.w);
    pnb_ctx_free(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    pnb__resnet_config c = {.base = 8, .layers = {1, 1, 1, 1}};
    assert_ok(pnb__resnet_config_check(&c, 32, 47, err));
    assert_fails(pnb__resnet_config_check(&c, 31, 224, err), PNB_ARG, "31x224 pixels");
    assert_fails(pnb__resnet_config_check(&c, 224, 1, err), PNB_ARG, "needs 32x32 or more");
    c.layers[2] = 0;
    assert_fails(pnb__resnet_config_check(&c, 64, 64, err), PNB_ARG, "stage 3 of a ResNet has 0");
    c.layers[2] = 129;
    assert_fails(pnb__resnet_config_check(&c, 64, 64, err), PNB_ARG, "it has 1 to 128");
    c = (pnb__resnet_config){.base = 0, .layers = {1, 1, 1, 1}};
    assert_fails(pnb__resnet_config_check(&c, 64, 64, err), PNB_ARG, "base width 0");
    assert_fails(pnb__resnet_config_named(&c, "resnet35", err), PNB_ARG, "resnet35 is no image");
}

/* ---- the graph ---- */

static void fill_pixels(float *pixels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = (float)sin(0.37 * (double)i) + (float)(i % 11) / 5;
}

/* Builds a trunk for pictures of h x w, runs it `steps` times and gives map and average. */
typedef struct result {
    float map[4096], pooled[4096], grad[4096], mean[64], var[64];
    size_t n_map, n_pooled, n_bytes;
} result;

static void run_trunk(int n_threads, const size_t size[2], bool trains, bool segments, int steps,
                      result *out)
{
    pnb_ctx *ctx = open_ctx(n_threads);
    trunk t = {.config = {.base = 4, .layers = {1, 1, 2, 1}, .bottleneck = true}};
    const size_t shape[4] = {2, 3, size[0], size[1]}, n = 6 * size[0] * size[1];
    float *pixels = pnb__alloc_array(n, sizeof *pixels);
    pnb__graph *g = NULL;
    assert_ok(pnb__weights_declare_by(&t.w, ctx, PNB__F32, declare, &t, err));
    assert_ok(pnb__weights_init(&t.w, 5, err));
    for (size_t i = 0; i < t.w.n; i++)
        t.w.items[i].param.fixed = !trains;
    assert_ok(pnb__graph_create(&g, ctx, PNB__F32, trains, err));
    pnb__graph_set_checkpointing(g, segments);
    pnb__tensor *in = pnb__input(g, PNB__REAL, 4, shape);
    pnb__resnet_out r = pnb__resnet_build(&t.resnet, &t.config, g, in);
    pnb__keep(r.map);
    pnb__keep(r.pooled);
    pnb__tensor *loss = pnb__mean(pnb__apply(PNB__SQUARE, r.pooled), PNB__ALL_AXES);
    assert_ok(pnb__graph_plan(g, trains ? loss : NULL, err));
    fill_pixels(pixels, n);
    for (int i = 0; i < steps; i++) {
        pnb__write_f32(in, pixels);
        assert_ok(pnb__graph_run(g, err));
    }
    memset(out, 0, sizeof *out);
    out->n_map = pnb__n(r.map);
    out->n_pooled = pnb__n(r.pooled);
    out->n_bytes = pnb__graph_arena_bytes(g);
    assert_true(out->n_map <= PNB_COUNT(out->map) && out->n_pooled <= PNB_COUNT(out->pooled));
    pnb__read_f32(r.map, out->map);
    pnb__read_f32(r.pooled, out->pooled);
    const pnb__conv_norm *last = &t.resnet.blocks[4].conv[0];
    memcpy(out->mean, last->mean->data, last->mean->n * sizeof(float));
    memcpy(out->var, last->var->data, last->var->n * sizeof(float));
    if (trains)
        memcpy(out->grad, t.resnet.stem.conv->grad, t.resnet.stem.conv->n * sizeof(float));
    pnb__free(pixels);
    pnb__graph_free(g);
    pnb__weights_reset(&t.w);
    pnb_ctx_free(ctx);
}

/* The map is H/32 by W/32, rounded up, and its average what it says; 32 pixels leave one place. */
static void test_any_size(void **state)
{
    static const size_t sizes[][4] = {{32, 32, 1, 1}, {33, 64, 2, 2}, {47, 100, 2, 4}};
    static result r;
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        run_trunk(1, sizes[i], false, false, 3, &r);
        size_t places = sizes[i][2] * sizes[i][3];
        assert_int_equal(r.n_map, 2 * places * 128);
        assert_int_equal(r.n_pooled, 2 * 128);
        for (size_t k = 0; k < r.n_pooled; k++) {
            double mean = 0;
            for (size_t p = 0; p < places; p++)
                mean += (double)r.map[(k / 128 * places + p) * 128 + k % 128] / (double)places;
            assert_true(fabs((double)r.pooled[k] - mean) < 1e-5 * (1 + fabs(mean)));
        }
    }
}

/* The same bits from any number of threads, forward, backward and in the buffers; segments change
 * none and keep less. */
static void test_same_bits(void **state)
{
    static const size_t size[2] = {64, 64};
    static result one, other;
    (void)state;
    for (int trains = 0; trains < 2; trains++) {
        run_trunk(1, size, trains, false, 3, &one);
        for (int n_threads = 2; n_threads <= 3; n_threads++) {
            run_trunk(n_threads, size, trains, false, 3, &other);
            assert_memory_equal(&one, &other, sizeof one);
        }
    }
    run_trunk(2, size, true, true, 3, &other);
    assert_true(other.n_bytes < one.n_bytes);
    other.n_bytes = one.n_bytes;
    assert_memory_equal(&one, &other, sizeof one);
    assert_true(one.grad[0] != 0 && one.mean[0] != 0 && one.var[0] != 1);
}

/* One picture that ends in one place has no variance there. */
static void test_batch_of_one(void **state)
{
    (void)state;
    pnb_ctx *ctx = open_ctx(1);
    trunk t = {.config = {.base = 4, .layers = {1, 1, 1, 1}}};
    pnb__graph *g = NULL;
    assert_ok(pnb__weights_declare_by(&t.w, ctx, PNB__F32, declare, &t, err));
    for (int frozen = 0; frozen < 2; frozen++) {
        t.config.frozen = frozen;
        assert_ok(pnb__graph_create(&g, ctx, PNB__F32, true, err));
        pnb__tensor *in = pnb__input(g, PNB__REAL, 4, (size_t[]){1, 3, 32, 32});
        pnb__resnet_out r = pnb__resnet_build(&t.resnet, &t.config, g, in);
        if (frozen)
            assert_ok(pnb__graph_plan(g, NULL, err));
        else
            assert_fails(pnb__graph_plan(g, NULL, err), PNB_SHAPE, "one value a channel");
        assert_true((r.pooled != NULL) == (bool)frozen);
        pnb__graph_free(g);
    }
    pnb__weights_reset(&t.w);
    pnb_ctx_free(ctx);
}

/* ---- files ---- */

typedef struct fixture {
    pnb_ctx *ctx;
    char dir[64], file[96];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->dir, "/tmp/pnb-resnet-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->file, sizeof f->file, "%s/model.safetensors", f->dir);
    f->ctx = open_ctx(2);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];
    pnb_ctx_free(f->ctx);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static const char *const config = "{\"model_type\":\"cnn\",\"base\":2,\"image_size\":40}";

/* The file again, without array `left_out`, and with `extra` beside it. */
static void rewrite(const fixture *f, const char *left_out, const pnb_array_view *extra)
{
    pnb_safetensors *s = NULL;
    pnb_array_view views[256];
    char path[128];
    size_t n = 0;
    assert_ok(pnb_safetensors_open(&s, f->file, err));
    for (size_t i = 0; i < pnb_safetensors_count(s); i++)
        if (strcmp(pnb_safetensors_at(s, i)->name, left_out) != 0)
            views[n++] = *pnb_safetensors_at(s, i);
    if (extra != NULL)
        views[n++] = *extra;
    snprintf(path, sizeof path, "%s.new", f->file);
    assert_ok(pnb_safetensors_write(path, views, n, NULL, err));
    pnb_safetensors_free(s);
    assert_int_equal(rename(path, f->file), 0);
}

static size_t count_norms(const pnb_model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->weights.n; i++)
        n += pnb__ends_with(m->weights.items[i].param.name, ".running_var");
    return n;
}

static void test_files(void **state)
{
    const fixture *f = *state;
    pnb_model *m = NULL, *back = NULL;
    pnb_safetensors *s = NULL;
    assert_ok(pnb_model_init_json(&m, f->ctx, config, 3, err));
    assert_ok(pnb_model_save(m, f->dir, err));
    assert_ok(pnb_safetensors_open(&s, f->file, err));
    size_t n_counts = 0;
    for (size_t i = 0; i < pnb_safetensors_count(s); i++)
        n_counts += pnb__ends_with(pnb_safetensors_at(s, i)->name, ".num_batches_tracked");
    assert_int_equal(n_counts, count_norms(m));
    assert_int_equal(pnb_safetensors_count(s), m->weights.n + n_counts);
    assert_non_null(pnb_safetensors_find(s, "img_enc.cnn.layer2.1.bn3.running_mean"));
    assert_non_null(pnb_safetensors_find(s, "img_enc.cnn.layer1.0.downsample.1.weight"));
    pnb_safetensors_free(s);
    assert_ok(pnb_model_load(&back, f->ctx, f->dir, err));
    for (size_t i = 0; i < m->weights.n; i++) {
        const pnb__param *a = &m->weights.items[i].param, *b = &back->weights.items[i].param;
        assert_string_equal(a->name, b->name);
        assert_memory_equal(a->data, b->data, a->n * sizeof(float));
        assert_int_equal(a->trainable, b->trainable);
    }
    pnb_model_free(back);
    pnb_model_free(m);
}

static void refuse_count(const fixture *f, const pnb_array_view *count)
{
    pnb_model *bad = NULL;
    rewrite(f, count->name, count);
    assert_fails(pnb_model_load(&bad, f->ctx, f->dir, err), PNB_FORMAT, "counts batches");
    assert_null(bad);
}

/* Counts of batches are kept, the classifier is passed over; what is missing, unknown or of another
 * shape is refused by its name. */
static void test_other_files(void **state)
{
    const fixture *f = *state;
    pnb_model *m = NULL, *bad = NULL;
    static const char norm[] = "visual.cnn.layer1.0.bn1.running_var";
    const int64_t count = 7;
    const float fc[3] = {1, 2, 3};
    const pnb_array_view counter = {.name = "img_enc.cnn.layer1.0.bn1.num_batches_tracked",
                                    .dtype = PNB_I64,
                                    .data = &count,
                                    .n_bytes = sizeof count};
    const pnb_array_view classifier = {.name = "img_enc.cnn.fc.bias",
                                       .dtype = PNB_F32,
                                       .n_dims = 1,
                                       .shape = {3},
                                       .data = fc,
                                       .n_bytes = sizeof fc};
    pnb_array_view other = classifier;
    assert_ok(pnb_model_init_json(&m, f->ctx, config, 3, err));
    assert_ok(pnb_model_save(m, f->dir, err));
    pnb_model_free(m);
    rewrite(f, counter.name, NULL); /* a file without a count is of 0 batches */
    assert_ok(pnb_model_load(&m, f->ctx, f->dir, err));
    assert_int_equal(pnb__model_find_param(m, norm)->n_moves, 0);
    pnb_model_free(m);
    rewrite(f, "", &counter);
    rewrite(f, "", &classifier);
    assert_ok(pnb_model_load(&m, f->ctx, f->dir, err));
    assert_int_equal(pnb__model_find_param(m, norm)->n_moves, 7);
    assert_ok(pnb_model_save(m, f->dir, err)); /* and written as it came */
    pnb_model_free(m);
    assert_ok(pnb_model_load(&m, f->ctx, f->dir, err));
    assert_int_equal(pnb__model_find_param(m, norm)->n_moves, 7);
    pnb_model_free(m);
    m = NULL;
    refuse_count(f, &(const pnb_array_view){.name = counter.name,
                                            .dtype = PNB_I64,
                                            .data = &(const int64_t){-1},
                                            .n_bytes = sizeof count});
    refuse_count(f, &(const pnb_array_view){.name = counter.name,
                                            .dtype = PNB_F32,
                                            .data = &(const float){3},
                                            .n_bytes = sizeof(float)});
    refuse_count(f, &(const pnb_array_view){.name = counter.name,
                                            .dtype = PNB_I64,
                                            .n_dims = 1,
                                            .shape = {2},
                                            .data = (const int64_t[]){1, 2},
                                            .n_bytes = 2 * sizeof count});
    rewrite(f, counter.name, &counter);
    other.name = "img_enc.cnn.layer5.0.conv1.weight";
    rewrite(f, "", &other);
    assert_fails(pnb_model_load(&bad, f->ctx, f->dir, err), PNB_FORMAT, other.name);
    rewrite(f, other.name, NULL);
    other.name = "img_enc.cnn.layer4.0.bn2.running_var";
    rewrite(f, other.name, NULL);
    assert_fails(pnb_model_load(&bad, f->ctx, f->dir, err), PNB_NOT_FOUND, other.name);
    rewrite(f, "", &other);
    assert_fails(pnb_model_load(&bad, f->ctx, f->dir, err), PNB_SHAPE, "running_var");
    assert_null(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_any_size),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_batch_of_one),
        cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_files, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
