/* PCME as a family: configurations that are read and refused, a released file that comes alone,
 * sets of several embeddings. tests/models/pcme/data/released.pth holds what
 * `init --seed 7` makes of the configuration below, saved by torch 1.13 in the format of torch 1.2
 * as {"model": .., "criterion": {"shift": [2.5], "negative_scale": [7.5]}, "word2idx": .., ..},
 * with torchvision's counters of batches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/model.h"

static const char released[] =
    "{\"model_type\":\"pcme\",\"embed_dim\":8,\"vision_cfg\":{\"layers\":[1,1,1,1],\"base\":2,"
    "\"bottleneck\":true,\"image_size\":224},\"text_cfg\":{\"vocab_size\":20,\"word_dim\":6,"
    "\"context_length\":64}}";

static pnb_ctx *make_ctx(void)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = 2;
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    return ctx;
}

/* A folder with the released file under a name that is looked for, and nothing else. */
static void make_folder(char dir[64])
{
    char path[128];
    snprintf(dir, 64, "/tmp/pnb-pcme-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/model.pth", dir);
    assert_int_equal(symlink(PNB_SOURCE_DIR "/tests/models/pcme/data/released.pth", path), 0);
}

static void remove_folder(const char *dir)
{
    char path[128];
    snprintf(path, sizeof path, "%s/model.pth", dir);
    unlink(path);
    rmdir(dir);
}

/* The same bits as the weights that were saved; a and b out of the criterion, a as its logarithm.
 */
static void a_released_file_alone(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb_model *made = NULL, *read = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char dir[64];
    make_folder(dir);
    assert_int_equal(pnb_model_init(&made, ctx, released, 7, &err), PNB_OK);
    if (pnb_model_load(&read, ctx, dir, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(pnb__model_n_params(read), pnb__model_n_params(made));
    for (size_t i = 0; i < pnb__model_n_params(made); i++) {
        const pnb__param *p = pnb__model_param(made, i);
        const pnb__param *q = pnb__model_find_param(read, p->name);
        assert_non_null(q);
        assert_int_equal(p->n, q->n);
        if (strncmp(p->name, "logit_", 6) != 0)
            assert_memory_equal(p->data, q->data, p->n * sizeof(float));
    }
    const pnb_model_info *info = pnb_model_get_info(read);
    assert_true(fabs(info->match_a - 7.5) < 1e-6 && info->match_b == 2.5);
    assert_true(isnan(info->logit_scale) && isnan(info->logit_bias));
    assert_string_equal(info->measure, "match_prob");
    assert_string_equal(info->vision.architecture,
                        "ResNet 1-1-1-1 of 2, 64 channels; local attention");
    pnb_model_free(made);
    pnb_model_free(read);
    remove_folder(dir);
    pnb_ctx_free(ctx);
}

/* Saved again it is a model like any other: a under its logarithm, the same weights. */
static void saved_again(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb_model *read = NULL, *again = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char dir[64], out[64] = "/tmp/pnb-pcme-XXXXXX", path[128];
    make_folder(dir);
    assert_non_null(mkdtemp(out));
    assert_int_equal(pnb_model_load(&read, ctx, dir, &err), PNB_OK);
    if (pnb_model_save(read, out, &err) != PNB_OK ||
        pnb_model_load(&again, ctx, out, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_true(fabs(pnb_model_get_info(again)->match_a - 7.5) < 1e-6);
    assert_true(pnb_model_get_info(again)->match_b == 2.5);
    const pnb__param *p = pnb__model_find_param(read, "text.rnn.weight_ih_l0");
    const pnb__param *q = pnb__model_find_param(again, "text.rnn.weight_ih_l0");
    assert_memory_equal(p->data, q->data, p->n * sizeof(float));
    pnb_model_free(read);
    pnb_model_free(again);
    remove_folder(dir);
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", out, files[i]);
        unlink(path);
    }
    rmdir(out);
    pnb_ctx_free(ctx);
}

static void remove_model(const char *dir)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char path[160];
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* The one array of a file, as it lies. */
static void file_holds(const char *dir, const char *name, pnb_dtype dtype, const void *data,
                       size_t n_bytes)
{
    char path[160];
    pnb_safetensors *s = NULL;
    pnb_error err = PNB_ERROR_INIT;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (pnb_safetensors_open(&s, path, &err) != PNB_OK)
        fail_msg("%s", err.text);
    const pnb_array_view *a = pnb_safetensors_find(s, name);
    if (a == NULL)
        fail_msg("%s is not there", name);
    assert_int_equal(a->dtype, dtype);
    assert_int_equal(a->n_bytes, n_bytes);
    assert_memory_equal(a->data, data, n_bytes);
    pnb_safetensors_free(s);
}

/* Released, as safetensors, and once more: the same file; all that the criterion and torch's norms
 * keep is there. A model trained here has the exponential of its log a. */
static void there_and_back(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb_error err = PNB_ERROR_INIT;
    char dir[64], out[2][64], notes[1024], path[2][160], *bytes[2];
    size_t n[2];
    const pnb_model_convert_opts o = {.to = PNB_KEYS_PCME};
    make_folder(dir);
    for (int i = 0; i < 2; i++) {
        snprintf(out[i], sizeof out[i], "%s-as-pcme-%d", dir, i);
        snprintf(path[i], sizeof path[i], "%s/model.safetensors", out[i]);
        if (pnb_model_convert(ctx, i == 0 ? dir : out[0], out[i], &o, notes, &err) != PNB_OK ||
            pnb__read_file(path[i], 1 << 24, &bytes[i], &n[i], &err) != PNB_OK)
            fail_msg("%s", err.text);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    file_holds(out[0], "criterion.negative_scale", PNB_F32, &(const float){7.5F}, 4);
    file_holds(out[0], "criterion.shift", PNB_F32, &(const float){2.5F}, 4);
    file_holds(out[0], "img_enc.cnn.layer4.0.bn3.num_batches_tracked", PNB_I64, &(const int64_t){5},
               8);
    remove_model(out[1]);
    pnb_model *m = NULL;
    assert_int_equal(pnb_model_load(&m, ctx, out[0], &err), PNB_OK);
    assert_true(fabs(pnb_model_get_info(m)->match_a - 7.5) < 1e-6);
    pnb_model_free(m);
    remove_model(out[0]);
    assert_int_equal(pnb_model_init(&m, ctx, released, 7, &err), PNB_OK); /* log 5, 5 */
    assert_int_equal(pnb_model_save(m, out[0], &err), PNB_OK);
    assert_int_equal(pnb_model_convert(ctx, out[0], out[1], &o, notes, &err), PNB_OK);
    file_holds(out[1], "criterion.negative_scale", PNB_F32, &(const float){5}, 4);
    file_holds(out[1], "criterion.shift", PNB_F32, &(const float){5}, 4);
    pnb_model_free(m);
    for (int i = 0; i < 2; i++) {
        remove_model(out[i]);
        pnb__free(bytes[i]);
    }
    remove_folder(dir);
    pnb_ctx_free(ctx);
}

/* The released arrays as safetensors, without those that begin with `left_out` or hold `part`. */
static void write_variant(const char *dir, const char *left_out, const char *part)
{
    pnb_checkpoint *c = NULL;
    pnb_array_view views[256];
    size_t n = 0;
    char path[160];
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_checkpoint_open(&c, PNB_SOURCE_DIR "/tests/models/pcme/data/released.pth", &err) !=
        PNB_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < pnb_checkpoint_count(c); i++) {
        const pnb_array_view *a = pnb_checkpoint_at(c, i);
        if (!pnb__starts_with(a->name, left_out) && strstr(a->name, part) == NULL)
            views[n++] = *a;
    }
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (pnb_safetensors_write(path, views, n, NULL, &err) != PNB_OK)
        fail_msg("%s", err.text);
    pnb_checkpoint_free(c);
}

/* PCME's code without uncertainty: its text encoder has an uncertain_net that nothing reads, and no
 * criterion of a match probability. A Gaussian model without one could not be compared. */
static void other_models_of_its_code(void **state)
{
    (void)state;
    static const char image_net[] = "img_enc.uncertain_net.";
    static const char *const parts[] = {"criterion.", "uncertain_net.", "none"};
    pnb_ctx *ctx = make_ctx();
    pnb_error err = PNB_ERROR_INIT;
    char dir[64] = "/tmp/pnb-pcme-XXXXXX";
    pnb_model *m = NULL;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < PNB_COUNT(parts); i++) {
        write_variant(dir, image_net, parts[i]);
        if (pnb_model_load(&m, ctx, dir, &err) != PNB_OK)
            fail_msg("%s", err.text);
        const pnb_model_info *info = pnb_model_get_info(m);
        assert_true(!info->is_probabilistic && isnan(info->match_a));
        assert_null(pnb__model_find_param(m, "text.uncertain_net.fc.weight"));
        pnb_model_free(m);
    }
    write_variant(dir, "criterion.", "none");
    assert_int_equal(pnb_model_load(&m, ctx, dir, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "take the whole checkpoint, with the criterion"));
    pnb_error_reset(&err);
    write_variant(dir, "txt_enc.uncertain_net.", "none");
    assert_int_equal(pnb_model_load(&m, ctx, dir, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "txt_enc.uncertain_net"));
    remove_model(dir);
    pnb_ctx_free(ctx);
}

static void refused(const char *config, const char *words)
{
    pnb_ctx *ctx = make_ctx();
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_not_equal(pnb_model_init(&m, ctx, config, 0, &err), PNB_OK);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    pnb_ctx_free(ctx);
}

#define TEXT "\"text_cfg\":{\"vocab_size\":20,\"word_dim\":6}"
#define PCME "{\"model_type\":\"pcme\",\"embed_dim\":8,"
static void configurations(void **state)
{
    (void)state;
    refused(PCME TEXT "}", "vision_cfg and text_cfg are both wanted");
    refused(PCME "\"vision_cfg\":{\"trunk\":\"resnet52\"}," TEXT "}", "resnet52");
    refused(PCME "\"vision_cfg\":{\"trunk\":\"resnet50\",\"layers\":[1,1,1,1]}," TEXT "}",
            "one of the two");
    refused(PCME "\"vision_cfg\":{}," TEXT "}", "one of the two");
    refused(PCME "\"vision_cfg\":{\"layers\":[1,1,1]}," TEXT "}", "4 numbers of blocks");
    refused(PCME "\"vision_cfg\":{\"layers\":[1,0,1,1]}," TEXT "}", "blocks");
    refused(PCME "\"vision_cfg\":{\"trunk\":\"resnet18\",\"image_size\":16}," TEXT "}", "32");
    refused(PCME "\"vision_cfg\":{\"trunk\":\"resnet18\",\"width\":3}," TEXT "}", "width");
    refused(PCME "\"n_embeddings\":2,\"vision_cfg\":{\"trunk\":\"resnet18\"}," TEXT "}",
            "have no uncertainty");
}

/* K embeddings lie beside each other, each of length 1; points have neither a, b nor logits. */
static void several_embeddings(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    static const char config[] =
        "{\"model_type\":\"pcme\",\"embed_dim\":8,\"n_embeddings\":3,\"uncertainty\":false,"
        "\"vision_cfg\":{\"layers\":[1,1,1,1],\"base\":2,\"bottleneck\":false,\"image_size\":64}"
        "," TEXT "}";
    const int32_t ids[2][64] = {{3, 4, 5}, {7}};
    float mean[2 * 24];
    assert_int_equal(pnb_model_init(&m, ctx, config, 1, &err), PNB_OK);
    const pnb_model_info *info = pnb_model_get_info(m);
    assert_int_equal(info->embed_dim, 24);
    assert_int_equal(info->n_embeddings, 3);
    assert_true(isnan(info->match_a) && isnan(info->logit_scale) && !info->is_probabilistic);
    const pnb_encode_out out = {.mean = mean};
    assert_int_equal(pnb_model_encode_text(m, &ids[0][0], 2, 64, &out, &err), PNB_OK);
    for (int part = 0; part < 6; part++) {
        double square = 0;
        for (int d = 0; d < 8; d++)
            square += (double)mean[part * 8 + d] * (double)mean[part * 8 + d];
        assert_true(fabs(square - 1) < 1e-5);
    }
    const int32_t none[64] = {0};
    assert_int_equal(pnb_model_encode_text(m, none, 1, 64, &out, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "has no words"));
    pnb_model_free(m);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_released_file_alone), cmocka_unit_test(saved_again),
        cmocka_unit_test(there_and_back),        cmocka_unit_test(other_models_of_its_code),
        cmocka_unit_test(configurations),        cmocka_unit_test(several_embeddings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
