/* What an encoder is: a family that is added to the list from outside (toy_family.h: a convolution
 * and a GRU) is read, made, saved under names of its own, opened and run like those of the list,
 * and ends in any family of distributions, with the numbers that plain loops get. */
#include "models/tower.h"

#include <unistd.h>

#include "models/model.h"
#include "penumbra/safetensors.h"
#include "tests/models/toy_family.h"
#include "tests/prob/support.h"

enum { D = 3, C = 4, S = 6, T = 5, V = 7, B = 3, PLACES = (S / 2) * (S / 2) };

static const int32_t ids[B][T] = {{3, 1, 6, 0, 0}, {2, 2, 0, 4, 5}, {6, 0, 0, 0, 0}};

typedef struct fixture {
    pnb_ctx *ctx;
    char dir[64];
    float pixels[B * 3 * S * S];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->dir, "/tmp/pnb-tower-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(pnb_ctx_create(&f->ctx, NULL, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(f->pixels); i++)
        f->pixels[i] = (float)sin((double)i * 0.7);
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

static const char *config_of(const char *image, const char *text)
{
    static char json[256];
    snprintf(json, sizeof json,
             "{\"model_type\":\"toy\",\"embed_dim\":%d,\"width\":%d,\"image_size\":%d,"
             "\"context\":%d,\"words\":%d,\"image_ends_in\":\"%s\",\"text_ends_in\":\"%s\"}",
             D, C, S, T, V, image, text);
    return json;
}

static pnb_model *make(const fixture *f, const char *image, const char *text)
{
    pnb_model *m = NULL;
    assert_ok(pnb_model_init_json(&m, f->ctx, config_of(image, text), 11, err));
    return m;
}

/* ---- the same by plain loops ---- */

static void values(const pnb_model *m, const char *name, double *out)
{
    for (size_t i = 0; i < m->weights.n; i++)
        if (strcmp(m->weights.items[i].param.name, name) == 0) {
            const pnb__param *p = &m->weights.items[i].param;
            assert_int_equal(pnb__param_read(p, &m->weights.kernels, 0, p->n, out, NULL), PNB_OK);
            return;
        }
    fail_msg("there is no %s", name);
}

static void image_features(const pnb_model *m, const float *x, double *f)
{
    double w[C][3][3][3];
    values(m, "visual.conv", &w[0][0][0][0]);
    for (int c = 0; c < C; c++) {
        f[c] = 0;
        for (int place = 0; place < PLACES; place++) {
            double sum = 0;
            for (int k = 0; k < 27; k++) {
                int ch = k / 9, row = place / (S / 2) * 2 - 1 + k / 3 % 3;
                int col = place % (S / 2) * 2 - 1 + k % 3;
                if (row >= 0 && row < S && col >= 0 && col < S)
                    sum += w[c][ch][k / 3 % 3][k % 3] * (double)x[(ch * S + row) * S + col];
            }
            f[c] += fmax(sum, 0) / PLACES;
        }
    }
}

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void text_features(const pnb_model *m, const int32_t *text, double *h)
{
    double e[V][C], in_w[3 * C][C], in_b[3 * C], hid_w[3 * C][C], hid_b[3 * C];
    size_t length = T;
    values(m, "text.words", &e[0][0]);
    values(m, "text.gru.in.w", &in_w[0][0]);
    values(m, "text.gru.in.b", in_b);
    values(m, "text.gru.hid.w", &hid_w[0][0]);
    values(m, "text.gru.hid.b", hid_b);
    while (text[length - 1] == 0)
        length--;
    memset(h, 0, C * sizeof *h);
    for (size_t t = 0; t < length; t++) {
        double gx[3 * C], gh[3 * C];
        for (int i = 0; i < 3 * C; i++) {
            gx[i] = dot(in_w[i], e[text[t]], C) + in_b[i];
            gh[i] = dot(hid_w[i], h, C) + hid_b[i];
        }
        for (int i = 0; i < C; i++) {
            double r = sigmoid_of(gx[i] + gh[i]), z = sigmoid_of(gx[C + i] + gh[C + i]);
            double n = tanh(gx[2 * C + i] + r * gh[2 * C + i]);
            h[i] = (1 - z) * n + z * h[i];
        }
    }
}

/* What one row ends in: the mean before L2, then the numbers beside it before exp. */
static void end_of(const pnb_model *m, bool is_text, size_t n_spread, const double *f, double *mean,
                   double *spread)
{
    double p[D][C], q[2 * D][C], b[2 * D];
    values(m, is_text ? "text.mean" : "visual.mean", &p[0][0]);
    for (int d = 0; d < D; d++)
        mean[d] = dot(p[d], f, C);
    if (n_spread == 0)
        return;
    values(m, is_text ? "text.spread.w" : "visual.spread.w", &q[0][0]);
    values(m, is_text ? "text.spread.b" : "visual.spread.b", b);
    for (size_t i = 0; i < n_spread; i++)
        spread[i] = dot(q[i], f, C) + b[i];
}

#define CLOSE 1e-5

static void check_row(const pnb_embeddings *set, size_t row, const double *mean,
                      const double *spread)
{
    double length = set->family == PNB_GEN_GAUSSIAN ? 1 : sqrt(dot(mean, mean, D));
    for (size_t d = 0; d < D; d++) {
        assert_near((double)set->mean[row * D + d], mean[d] / length, CLOSE, CLOSE);
        if (set->family == PNB_GAUSSIAN_DIAG)
            assert_near((double)set->log_var[row * D + d], spread[d], CLOSE, CLOSE);
        if (set->family == PNB_GEN_GAUSSIAN) {
            assert_near((double)set->inv_alpha[row * D + d], exp(spread[d]), CLOSE, CLOSE);
            assert_near((double)set->beta[row * D + d], exp(spread[D + d]), CLOSE, CLOSE);
        }
    }
    if (set->kappa != NULL)
        assert_near((double)set->kappa[row], exp(spread[0]), CLOSE, CLOSE);
}

static void check_side(fixture *f, pnb_model *m, bool is_text)
{
    const pnb_tower_info *t = is_text ? &m->info.text : &m->info.vision;
    pnb_embeddings *set = NULL;
    assert_ok(pnb_embeddings_create(&set, t->family, B, D, err));
    const pnb_encode_out out = pnb__encode_rows(set, 0);
    if (is_text)
        assert_ok(pnb_model_encode_text(m, ids[0], B, T, &out, err));
    else
        assert_ok(pnb_model_encode_image(m, f->pixels, B, &out, err));
    assert_ok(pnb_embeddings_check_values(set, err));
    for (size_t b = 0; b < B; b++) {
        double features[C], mean[D], spread[2 * D];
        if (is_text)
            text_features(m, ids[b], features);
        else
            image_features(m, f->pixels + b * 3 * S * S, features);
        end_of(m, is_text, toy_n_spread(t->family, D), features, mean, spread);
        check_row(set, b, mean, spread);
    }
    pnb_embeddings_free(set);
}

static void a_tower_ends_in_any_family(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < PNB_N_FAMILIES; i++)
        for (int k = 0; k < PNB_N_FAMILIES; k++) {
            pnb_model *m = make(f, pnb_family_name((pnb_family)i), pnb_family_name((pnb_family)k));
            assert_int_equal(m->info.vision.family, i);
            assert_int_equal(m->info.text.family, k);
            assert_int_equal(m->info.is_probabilistic, i != PNB_POINT || k != PNB_POINT);
            check_side(f, m, false);
            check_side(f, m, true);
            pnb_model_free(m);
        }
}

/* ---- the list ---- */

static void families_of_the_list_know_what_they_end_in(void **state)
{
    fixture *f = *state;
    pnb_model *m = NULL;
    assert_int_equal(pnb__n_model_families, PNB__N_MODEL_FAMILIES + 1);
    assert_string_equal(pnb__model_families[PNB__FAMILY_PROLIP]->name, "prolip");
    assert_string_equal(pnb__model_families[PNB__FAMILY_CLIP]->name, "clip");
    assert_string_equal(pnb__model_families[PNB__FAMILY_SIGLIP]->name, "siglip");
    assert_ok(pnb_model_init(&m, f->ctx, "tiny", 1, err));
    assert_string_equal(m->info.family, "prolip");
    assert_int_equal(m->info.vision.family, PNB_GAUSSIAN_DIAG);
    assert_int_equal(m->info.text.family, PNB_GAUSSIAN_DIAG);
    pnb_model_free(m);
    m = make(f, "point", "vmf");
    assert_string_equal(m->info.family, "toy");
    assert_int_equal(m->info.vision.n_patches, 0);
    assert_int_equal(m->info.vision.image_width, S);
    assert_int_equal(m->info.text.context_length, T);
    assert_int_equal(m->info.text.vocab_size, V);
    assert_string_equal(m->info.text.key_names, "toy");
    pnb_model_free(m);
    assert_fails(pnb_model_init_json(&m, f->ctx, config_of("point", "gauss"), 1, err), PNB_ARG,
                 "gauss");
    assert_fails(pnb_model_init_json(&m, f->ctx, "{\"model_type\":\"toy\",\"depth\":2}", 1, err),
                 PNB_FORMAT, "depth");
    assert_fails(pnb_model_init_json(&m, f->ctx, "{\"model_type\":\"toys\"}", 1, err),
                 PNB_UNSUPPORTED, "toys");
}

static void weights_go_by_names_of_the_family(void **state)
{
    static const char *const keys[] = {"logit_scale",       "img_enc.conv",      "img_enc.mean",
                                       "txt_enc.embed",     "txt_enc.rnn.in.w",  "txt_enc.rnn.in.b",
                                       "txt_enc.rnn.hid.w", "txt_enc.rnn.hid.b", "txt_enc.mean",
                                       "txt_enc.spread.w",  "txt_enc.spread.b"};
    fixture *f = *state;
    pnb_model *m = make(f, "point", "vmf"), *again = NULL;
    pnb_safetensors *file = NULL;
    char path[96];
    float a[2][B * (D + 1)], b[2][B * (D + 1)];
    snprintf(path, sizeof path, "%s/model.safetensors", f->dir);
    assert_ok(pnb_model_save(m, f->dir, err));
    assert_ok(pnb_safetensors_open(&file, path, err));
    assert_int_equal(pnb_safetensors_count(file), PNB_COUNT(keys));
    for (size_t i = 0; i < PNB_COUNT(keys); i++)
        if (pnb_safetensors_find(file, keys[i]) == NULL)
            fail_msg("the file has no %s", keys[i]);
    pnb_safetensors_free(file);
    assert_ok(pnb_model_load(&again, f->ctx, f->dir, err));
    pnb_model *both[2] = {m, again};
    for (int i = 0; i < 2; i++) {
        const pnb_encode_out image = {.mean = a[i]}, text = {.mean = b[i], .kappa = b[i] + B * D};
        assert_ok(pnb_model_encode_image(both[i], f->pixels, B, &image, err));
        assert_ok(pnb_model_encode_text(both[i], ids[0], B, T, &text, err));
    }
    assert_memory_equal(a[0], a[1], B * D * sizeof(float));
    assert_memory_equal(b[0], b[1], sizeof b[0]);
    pnb_model_free(m);
    pnb_model_free(again);
}

/* A file with one of the two towers opens with that one, by the tables of the family. */
static void one_tower_alone_opens(void **state)
{
    fixture *f = *state;
    pnb_model *m = make(f, "vmf", "vmf");
    pnb_array_view views[4];
    float out[B * (D + 1)], data[4][3 * C * C * V] = {{0}};
    size_t n = 0;
    char path[96];
    for (size_t i = 0; i < m->weights.n; i++) {
        const pnb__param *p = &m->weights.items[i].param;
        static const char *const names[] = {"visual.conv", "visual.mean", "visual.spread.w",
                                            "visual.spread.b"};
        static const char *const stored[] = {"img_enc.conv", "img_enc.mean", "img_enc.spread.w",
                                             "img_enc.spread.b"};
        double read[3 * C * C * V];
        for (size_t k = 0; k < 4; k++) {
            if (strcmp(p->name, names[k]) != 0)
                continue;
            assert_int_equal(pnb__param_read(p, &m->weights.kernels, 0, p->n, read, NULL), PNB_OK);
            for (size_t j = 0; j < p->n; j++)
                data[k][j] = (float)read[j];
            views[n] = (pnb_array_view){.name = stored[k],
                                        .dtype = PNB_F32,
                                        .n_dims = p->n_dims,
                                        .data = data[k],
                                        .n_bytes = p->n * sizeof(float)};
            for (int d = 0; d < p->n_dims; d++)
                views[n].shape[d] = (int64_t)p->shape[d];
            n++;
        }
    }
    assert_int_equal(n, 4);
    assert_ok(pnb_model_save(m, f->dir, err));
    snprintf(path, sizeof path, "%s/model.safetensors", f->dir);
    assert_ok(pnb_safetensors_write(path, views, n, NULL, err));
    pnb_model_free(m);
    m = NULL;
    assert_ok(pnb_model_load(&m, f->ctx, f->dir, err));
    assert_true(m->info.vision.present && !m->info.text.present);
    check_side(f, m, false);
    const pnb_encode_out text = {.mean = out, .kappa = out + B * D};
    assert_fails(pnb_model_encode_text(m, ids[0], B, T, &text, err), PNB_UNSUPPORTED, "text tower");
    pnb_model_free(m);
    views[0].name = "img.conv";
    views[1].name = "img.mean";
    assert_ok(pnb_safetensors_write(path, views, 2, NULL, err));
    assert_fails(pnb_model_load(&m, f->ctx, f->dir, err), PNB_UNSUPPORTED, "tower of toy");
}

/* ---- what cannot be done ---- */

static void refusals_say_what_is_meant(void **state)
{
    fixture *f = *state;
    pnb_model *m = make(f, "point", "vmf"), *other = NULL;
    const int32_t kept[1] = {0}, empty[T] = {0};
    float mean[B * D], more[B * D];
    char notes[1024], to[96];
    const pnb_encode_out log_var = {.mean = mean, .log_var = more}, beta = {.beta = more};
    const pnb_encode_out point = {.mean = mean}, kappa = {.mean = mean, .kappa = more};
    assert_ok(pnb_model_encode_image(m, f->pixels, B, &log_var, err));
    assert_true(isinf(more[0]) && more[0] < 0); /* a point has no variance */
    assert_fails(pnb_model_encode_image(m, f->pixels, B, &kappa, err), PNB_ARG,
                 "gives point embeddings, which have no concentration");
    assert_fails(pnb_model_encode_text(m, ids[0], B, T, &log_var, err), PNB_ARG,
                 "gives vmf embeddings, which have no log-variance");
    assert_fails(pnb_model_encode_text(m, ids[0], B, T, &beta, err), PNB_ARG, "no shape");
    assert_fails(pnb_model_encode_image_kept(m, f->pixels, 1, kept, 1, &point, err), PNB_ARG,
                 "outside the 0 patches");
    assert_fails(pnb_model_encode_text(m, empty, 1, T, &kappa, err), PNB_ARG, "no words");
    assert_fails(pnb__model_make_trainable(m, err), PNB_UNSUPPORTED, "this is toy");
    assert_ok(pnb_model_save(m, f->dir, err));
    snprintf(to, sizeof to, "%s/converted", f->dir);
    for (int layout = PNB_KEYS_PROLIP; layout <= PNB_KEYS_HF; layout++) {
        const pnb_model_convert_opts opts = {.to = (pnb_key_mapping)layout};
        assert_fails(pnb_model_convert(f->ctx, f->dir, to, &opts, notes, err), PNB_UNSUPPORTED,
                     "a toy");
    }
    assert_fails(pnb_model_load_with(&other, f->ctx, f->dir,
                                     &(pnb_model_load_opts){.context_length = 9}, err),
                 PNB_UNSUPPORTED, "own size");
    assert_ok(pnb_model_load_with(&other, f->ctx, f->dir, &(pnb_model_load_opts){0}, err));
    pnb_model_free(other);
    pnb_model_free(m);
}

/* The mean of a generalised Gaussian keeps its length either way; others only when asked. */
static void lengths_of_means(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        pnb_model *m = make(f, i == 0 ? "gen_gaussian" : "vmf", "point");
        float unit[B * D], raw[B * D];
        const pnb_encode_out to = {.mean = unit}, as_it_is = {.mean = raw, .skip_normalize = true};
        assert_ok(pnb_model_encode_image(m, f->pixels, B, &to, err));
        assert_ok(pnb_model_encode_image(m, f->pixels, B, &as_it_is, err));
        assert_int_equal(memcmp(unit, raw, sizeof raw) == 0, i == 0);
        pnb_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tower_ends_in_any_family, set_up, tear_down),
        cmocka_unit_test_setup_teardown(families_of_the_list_know_what_they_end_in, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(weights_go_by_names_of_the_family, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_tower_alone_opens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals_say_what_is_meant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lengths_of_means, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
