/* A trunk from torchvision's names: values, moments and counts; what is no ResNet of this size is
 * refused by the array that says so. */
#include "models/pcme/trunk_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char config[] =
    "{\"model_type\":\"pcme\",\"embed_dim\":8,\"vision_cfg\":{\"layers\":[1,1,1,1],\"base\":2,"
    "\"bottleneck\":false,\"image_size\":32},\"text_cfg\":{\"vocab_size\":9,\"word_dim\":4}}";

typedef struct fixture {
    pnb_ctx *ctx;
    char dir[64], path[96];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = 1;
    strcpy(f->dir, "/tmp/pnb-trunk-XXXXXX");
    if (pnb_ctx_create(&f->ctx, &opts, NULL) != PNB_OK || mkdtemp(f->dir) == NULL)
        return 1;
    snprintf(f->path, sizeof f->path, "%s/trunk.safetensors", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    unlink(f->path);
    rmdir(f->dir);
    pnb_ctx_free(f->ctx);
    free(f);
    return 0;
}

static pnb_model *make_model(const fixture *f, const char *text, uint64_t seed)
{
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_model_init_json(&m, f->ctx, text, seed, &err) != PNB_OK ||
        pnb__model_make_trainable(m, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return m;
}

/* The trunk of m as torchvision would have it, behind `prefix`, without array `left_out`, with
 * another one. */
static void write_trunk(const fixture *f, const pnb_model *m, const char *prefix,
                        const char *left_out, const char *extra)
{
    static const float one[2] = {1, 2};
    static const int64_t batches = 11;
    pnb_array_view views[256];
    char names[256][96];
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0; i < m->weights.n; i++) {
        const pnb__param *p = &m->weights.items[i].param;
        if (!pnb__starts_with(p->name, "visual.cnn.") || strcmp(p->name + 11, left_out) == 0)
            continue;
        snprintf(names[n], sizeof names[n], "%s%s", prefix, p->name + 11);
        views[n] = (pnb_array_view){.name = names[n],
                                    .dtype = PNB_F32,
                                    .n_dims = p->n_dims,
                                    .data = p->data,
                                    .n_bytes = p->n * sizeof(float)};
        for (int d = 0; d < p->n_dims; d++)
            views[n].shape[d] = (int64_t)p->shape[d];
        n++;
    }
    snprintf(names[n], sizeof names[n], "%sbn1.num_batches_tracked", prefix);
    views[n] = (pnb_array_view){
        .name = names[n], .dtype = PNB_I64, .data = &batches, .n_bytes = sizeof batches};
    n++;
    snprintf(names[n], sizeof names[n], "%s%s", prefix, extra);
    views[n] = (pnb_array_view){.name = names[n],
                                .dtype = PNB_F32,
                                .n_dims = 1,
                                .shape = {2},
                                .data = one,
                                .n_bytes = sizeof one};
    if (pnb_safetensors_write(f->path, views, n + 1, NULL, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

static void values_are_taken(void **state)
{
    const fixture *f = *state;
    static const char *const prefixes[] = {"", "module."};
    for (size_t k = 0; k < PNB_COUNT(prefixes); k++) {
        pnb_model *from = make_model(f, config, 1), *to = make_model(f, config, 2);
        pnb_error err = PNB_ERROR_INIT;
        size_t n = 0, n_trunk = 0;
        const pnb__param *words = pnb__model_find_param(to, "text.embed.weight");
        float before = *(const float *)words->data;
        pnb__param *mean = pnb__model_find_param(from, "visual.cnn.bn1.running_mean");
        ((float *)mean->data)[1] = 0.25F;
        write_trunk(f, from, prefixes[k], "", "fc.bias");
        if (pnb__pcme_read_trunk(to, f->path, &n, &err) != PNB_OK)
            fail_msg("%s", err.text);
        for (size_t i = 0; i < from->weights.n; i++) {
            const pnb__param *p = &from->weights.items[i].param, *q = &to->weights.items[i].param;
            bool is_trunk = pnb__starts_with(p->name, "visual.cnn.");
            n_trunk += is_trunk;
            if (is_trunk)
                assert_memory_equal(p->data, q->data, p->n * sizeof(float));
        }
        assert_int_equal(n, n_trunk);
        assert_int_equal(pnb__model_find_param(to, "visual.cnn.bn1.running_var")->n_moves, 11);
        assert_true(*(const float *)words->data == before); /* the rest is as it was */
        pnb_model_free(from);
        pnb_model_free(to);
    }
}

static void refuse(const fixture *f, const char *text, pnb_status status, const char *words)
{
    pnb_model *m = make_model(f, text, 3);
    pnb_error err = PNB_ERROR_INIT;
    size_t n = 0;
    assert_int_equal(pnb__pcme_read_trunk(m, f->path, &n, &err), status);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    pnb_model_free(m);
}

static void other_files_are_refused(void **state)
{
    const fixture *f = *state;
    pnb_model *m = make_model(f, config, 1);
    write_trunk(f, m, "", "", "layer1.1.conv1.weight");
    refuse(f, config, PNB_FORMAT,
           "layer1.1.conv1.weight has no place in a trunk of ResNet 1-1-1-1");
    write_trunk(f, m, "", "layer3.0.bn2.running_var", "fc.bias");
    refuse(f, config, PNB_NOT_FOUND, "layer3.0.bn2.running_var is missing");
    write_trunk(f, m, "", "conv1.weight", "conv1.weight");
    refuse(f, config, PNB_SHAPE, "conv1.weight: file has (2), config needs (2,3,7,7)");
    unlink(f->path);
    refuse(f, config, PNB_NOT_FOUND, "trunk.safetensors");
    pnb_model_free(m);
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_model_init(&m, f->ctx, "tiny", 1, &err), PNB_OK);
    assert_int_equal(pnb__pcme_read_trunk(m, f->path, &n, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "a prolip model has no ResNet"));
    pnb_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_taken),
                                       cmocka_unit_test(other_files_are_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
