/* Gradients of pixels: against central differences in f64 of a transformer and of a ResNet, the
 * loss against one made of the encoder's own embeddings, and that nothing of the model moves. */
#include "encode/pixel_gradient.h"

#include <sys/stat.h>

#include "tests/encode/model_folder.h"

enum { K = 3, D = 16 };

/* Classes that no two pictures like alike. */
static gaussians classes_of(bool points)
{
    gaussians g = random_gaussians(K, D, -5, -2, 8);
    if (points)
        g.view.log_var = NULL;
    return g;
}

/* The folder's encoder with its model in f64, and pixels that are scaled without rounding. */
static pnb_encoder *open_exact(const fixture *f, const char *dir)
{
    static const float mean[3] = {0.5f, 0.25f, 0.0f}, std[3] = {0.5f, 0.25f, 1.0f};
    const pnb_encoder_opts parts = {.sides = PNB_ENCODE_IMAGES};
    pnb_encoder *e = NULL;
    pnb_model *exact = NULL;
    assert_ok(pnb_encoder_open(&e, f->ctx, dir, &parts, err));
    assert_ok(pnb__model_load_real(&exact, f->ctx, dir, PNB__F64, err));
    pnb_model_free(e->model);
    e->model = exact;
    e->info = pnb_model_get_info(exact);
    memcpy(e->preprocess.mean, mean, sizeof mean);
    memcpy(e->preprocess.std, std, sizeof std);
    return e;
}

static size_t n_pixels_of(const pnb_encoder *e)
{
    return 3 * e->info->vision.image_height * e->info->vision.image_width;
}

/* Multiples of 1/256 in [1/4, 3/4], so that a step of 2^-18 is exact. */
static void fill(float *x, size_t n, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = (64.0f + (float)pnb__rng_below(&rng, 128)) / 256.0f;
}

/* sum of the losses at x + h v */
static double loss_at(pnb__pixel_gradient *p, const float *x, const float *v, float h, size_t n,
                      size_t n_values, const int32_t *label)
{
    float *moved = malloc(n_values * sizeof *moved), *unused = malloc(n_values * sizeof *unused);
    double loss[2], sum = 0;
    for (size_t i = 0; i < n_values; i++)
        moved[i] = x[i] + h * v[i];
    assert_ok(pnb__pixel_gradient_run(p, moved, label, n, loss, unused, err));
    for (size_t i = 0; i < n; i++)
        sum += loss[i];
    free(moved);
    free(unused);
    return sum;
}

/* Directions: all pixels with random signs, one channel, one pixel at a time. */
static void check_differences(const fixture *f, const char *dir, bool means_alone)
{
    pnb_encoder *e = open_exact(f, dir);
    gaussians classes = classes_of(false);
    const pnb__pixel_classes c = {&classes.view, means_alone, 10};
    pnb__pixel_gradient *p = NULL;
    const size_t n = 2, n_one = n_pixels_of(e), n_values = n * n_one;
    const int32_t label[2] = {2, 0};
    const float h = 1.0f / 262144.0f; /* small, for between two kinks of ReLU */
    float *x = malloc(n_values * sizeof *x), *g = malloc(n_values * sizeof *g);
    float *v = malloc(n_values * sizeof *v);
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 3);
    fill(x, n_values, 1);
    assert_ok(pnb__pixel_gradient_open(&p, e, &c, 2, err));
    assert_ok(pnb__pixel_gradient_run(p, x, label, n, NULL, g, err));
    for (int direction = 0; direction < 9; direction++) {
        size_t channel = (size_t)direction - 1, pixel = (size_t)pnb__rng_below(&rng, n_values);
        double projected = 0, size = 0;
        for (size_t i = 0; i < n_values; i++) {
            bool in = direction == 0  ? true
                      : direction < 4 ? i % n_one / (n_one / 3) == channel
                                      : i == pixel;
            v[i] = !in ? 0.0f : pnb__rng_uniform(&rng) < 0.5 ? -1.0f : 1.0f;
            projected += (double)g[i] * (double)v[i];
            size += fabs((double)g[i] * (double)v[i]);
        }
        double central =
            (loss_at(p, x, v, h, n, n_values, label) - loss_at(p, x, v, -h, n, n_values, label)) /
            (2 * (double)h);
        assert_near(projected, central, 1e-5 * size + 1e-9, 1e-4);
        assert_true(size > 0);
    }
    for (size_t i = 0; i < pnb__model_n_params(e->model); i++)
        assert_null(pnb__model_param(e->model, i)->grad);
    pnb__pixel_gradient_free(p);
    pnb_encoder_free(e);
    free_gaussians(&classes);
    free(x);
    free(g);
    free(v);
}

static void transformer(void **state)
{
    const fixture *f = *state;
    check_differences(f, f->dir, false);
    check_differences(f, f->dir, true);
}

/* Running moments normalise, and stay what they are. */
static void resnet(void **state)
{
    const fixture *f = *state;
    const char *narrow =
        "{\"embed_dim\":16,\"vision_cfg\":{\"base\":4},\"text_cfg\":{\"word_dim\":8}}";
    pnb_model *m = NULL;
    char *json = NULL, dir[80];
    snprintf(dir, sizeof dir, "%s/pcme", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_ok(pnb_model_config_merge("pcme-tiny", narrow, &json, err));
    assert_ok(pnb_model_init_json(&m, f->ctx, json, 5, err));
    assert_ok(pnb_model_save(m, dir, err));
    pnb_model_free(m);
    pnb_text_free(json);
    check_differences(f, dir, false);
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "model.safetensors.sha256"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[112];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* The loss from embeddings of the same pixels; a batch that is not full gives the same. */
static void loss_of_embeddings(void **state)
{
    const fixture *f = *state;
    pnb_encoder *e = open_exact(f, f->dir);
    gaussians classes = classes_of(false);
    const pnb__pixel_classes both[] = {{&classes.view, false, 7}, {&classes.view, true, 7}};
    const size_t n_one = n_pixels_of(e);
    const int32_t label[2] = {1, 2};
    float *x = malloc(2 * n_one * sizeof *x), *g = malloc(2 * n_one * sizeof *g);
    float *again = malloc(2 * n_one * sizeof *again), *seen = malloc(2 * n_one * sizeof *seen);
    float mean[2 * D];
    fill(x, 2 * n_one, 4);
    for (size_t i = 0; i < 2 * n_one; i++) {
        size_t c = i % n_one / (n_one / 3);
        seen[i] = (x[i] - e->preprocess.mean[c]) / e->preprocess.std[c];
    }
    const pnb_encode_out out = {.mean = mean};
    assert_ok(pnb_model_encode_image(e->model, seen, 2, &out, err));
    for (int alone = 0; alone < 2; alone++) {
        pnb__pixel_gradient *p = NULL;
        double loss[2], short_loss;
        assert_ok(pnb__pixel_gradient_open(&p, e, &both[alone], 2, err));
        assert_ok(pnb__pixel_gradient_run(p, x, label, 2, loss, g, err));
        assert_ok(pnb__pixel_gradient_run(p, x + n_one, label + 1, 1, &short_loss, again, err));
        assert_memory_equal(again, g + n_one, n_one * sizeof *g);
        assert_true(short_loss == loss[1]);
        for (size_t i = 0; i < 2; i++) {
            double s[K], sum = 0;
            for (size_t k = 0; k < K; k++) {
                s[k] = 0;
                for (size_t d = 0; d < D; d++) {
                    s[k] += (double)mean[i * D + d] * (double)classes.mean[k * D + d];
                    if (!alone)
                        s[k] -= 0.5 * exp((double)classes.log_var[k * D + d]);
                }
                sum += exp(7 * s[k]);
            }
            assert_near(loss[i], log(sum) - 7 * s[label[i]], 1e-5, 1e-5);
        }
        pnb__pixel_gradient_free(p);
    }
    pnb_encoder_free(e);
    free_gaussians(&classes);
    free(x);
    free(g);
    free(again);
    free(seen);
}

static void bad_input(void **state)
{
    const fixture *f = *state;
    pnb_encoder *e = open_exact(f, f->dir);
    gaussians classes = classes_of(true), wide = random_gaussians(K, D + 1, -1, 0, 1);
    const pnb__pixel_classes good = {&classes.view, false, 1}, wrong = {&wide.view, false, 1};
    pnb__pixel_gradient *p = NULL;
    float x = 0;
    const int32_t label = 0;
    assert_fails(pnb__pixel_gradient_open(&p, e, &wrong, 1, err), PNB_SHAPE, "width 17");
    assert_ok(pnb__pixel_gradient_open(&p, e, &good, 1, err));
    assert_fails(pnb__pixel_gradient_run(p, &x, &label, 0, NULL, &x, err), PNB_ARG, "0 pictures");
    assert_fails(pnb__pixel_gradient_run(p, &x, &label, 2, NULL, &x, err), PNB_ARG,
                 "planned for 1");
    pnb__pixel_gradient_free(p);
    pnb__pixel_gradient_free(NULL);
    pnb_model *small = NULL;
    assert_ok(pnb_model_load(&small, f->ctx, f->dir, err));
    assert_ok(pnb_model_quantize(small, PNB_WEIGHTS_INT8, 7, err));
    pnb_model_free(e->model);
    e->model = small;
    e->info = pnb_model_get_info(small);
    assert_fails(pnb__pixel_gradient_open(&p, e, &good, 1, err), PNB_UNSUPPORTED, "int8");
    pnb_encoder_free(e);
    free_gaussians(&classes);
    free_gaussians(&wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(transformer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(resnet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loss_of_embeddings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_input, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
