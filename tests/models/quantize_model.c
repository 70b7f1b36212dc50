/* Small weights: what is saved opens again with the same embeddings, in every layout and on every
 * device; the bytes on disk are what the definition says; damaged or impossible ones are named. */
#include "penumbra/model.h"

#include <math.h>

#include "models/model.h"
#include "penumbra/safetensors.h"
#include "tests/models/scratch.h"

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"
enum { ROOM = 1024 };

static pnb_model *open_on(const pnb_ctx *device, const char *dir)
{
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_model_load(&m, device, dir, &err) != PNB_OK)
        fail_msg("%s: %s", dir, err.text);
    return m;
}

/* Mean of a picture, then mean of a text, into out (ROOM). */
static size_t embed(pnb_model *m, float *out)
{
    const pnb_model_info *info = pnb_model_get_info(m);
    size_t n = 3 * info->vision.image_height * info->vision.image_width;
    size_t n_tokens = info->text.context_length;
    pnb_error err = PNB_ERROR_INIT;
    float *pixels = malloc(n * sizeof *pixels);
    int32_t *ids = calloc(n_tokens, sizeof *ids);
    assert_true(pixels != NULL && ids != NULL && 2 * info->embed_dim <= ROOM);
    for (size_t i = 0; i < n; i++)
        pixels[i] = (float)sin((double)i);
    for (size_t i = 0; i < n_tokens; i++)
        ids[i] = (int32_t)((i * 7 + 5) % info->text.vocab_size);
    if (pnb_model_encode_image(m, pixels, 1, &(pnb_encode_out){.mean = out}, &err) != PNB_OK ||
        pnb_model_encode_text(m, ids, 1, n_tokens, &(pnb_encode_out){.mean = out + info->embed_dim},
                              &err) != PNB_OK)
        fail_msg("%s", err.text);
    free(pixels);
    free(ids);
    return info->embed_dim;
}

static double cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

/* Quantises, saves, opens again: the same bits, and near the f32 model. */
static void check_saved(const char *from, const char *name, pnb_weight_type to, int bits,
                        double least)
{
    float before[ROOM], small[ROOM], again[ROOM];
    char *dir = temp_path(name);
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = open_on(ctx, from);
    size_t bytes = pnb_model_get_info(m)->weight_bytes, dim = embed(m, before);
    if (pnb_model_quantize(m, to, bits, &err) != PNB_OK ||
        pnb_model_set_calibration(m, "{\"pictures\": {\"n\": 3}}", &err) != PNB_OK)
        fail_msg("%s", err.text);
    embed(m, small);
    assert_true(pnb_model_get_info(m)->weight_bytes < bytes);
    assert_int_equal(pnb_model_save(m, dir, &err), PNB_OK);
    pnb_model *opened = open_on(ctx, dir);
    embed(opened, again);
    assert_memory_equal(small, again, 2 * dim * sizeof *small);
    assert_string_equal(pnb_model_get_info(m)->weights_stored,
                        pnb_model_get_info(opened)->weights_stored);
    assert_non_null(strstr(pnb_model_quantization(opened), "\"pictures\":{\"n\":3}"));
    for (int i = 0; i < 2; i++)
        if (!(cosine(before + (size_t)i * dim, small + (size_t)i * dim, dim) > least))
            fail_msg("%s: cosine %g", name,
                     cosine(before + (size_t)i * dim, small + (size_t)i * dim, dim));
    assert_memory_not_equal(before, small, 2 * dim * sizeof *small);
    pnb_model_free(opened);
    pnb_model_free(m);
    pnb__free(dir);
}

static void test_saved_models_open_with_the_same_bits(void **state)
{
    (void)state;
    check_saved(CASES "base", "base7", PNB_WEIGHTS_INT8, 7, 0.995);
    check_saved(CASES "base", "base8", PNB_WEIGHTS_INT8, 8, 0.999);
    check_saved(CASES "clip_quickgelu", "clip", PNB_WEIGHTS_INT8, 7, 0.99);
    check_saved(CASES "siglip_tanh", "siglip", PNB_WEIGHTS_INT8, 7, 0.99);
    check_saved(CASES "base", "bf16", PNB_WEIGHTS_BF16, 0, 0.9995);
    check_saved(CASES "base", "f16", PNB_WEIGHTS_F16, 0, 0.99999);
}

/* Between layouts the bytes of the weights and their scales move with them, there and back. */
static void test_small_models_are_converted(void **state)
{
    (void)state;
    float x[ROOM], y[ROOM];
    char notes[1024];
    char *small = temp_path("clip-small"), *hf = temp_path("clip-small-hf");
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = open_on(ctx, CASES "clip_quickgelu");
    assert_int_equal(pnb_model_quantize(m, PNB_WEIGHTS_INT8, 8, NULL), PNB_OK);
    assert_int_equal(pnb_model_save(m, small, NULL), PNB_OK);
    size_t dim = embed(m, x);
    pnb_model_free(m);
    pnb_model_convert_opts opts = {.to = PNB_KEYS_HF};
    if (pnb_model_convert(ctx, small, hf, &opts, notes, &err) != PNB_OK)
        fail_msg("%s", err.text);
    m = open_on(ctx, hf);
    assert_string_equal(pnb_model_get_info(m)->weights_stored, "int8, activations in 8 bits");
    embed(m, y);
    assert_memory_equal(x, y, 2 * dim * sizeof *x);
    pnb_model_free(m);
    pnb__free(small);
    pnb__free(hf);
}

/* The reference kernels and f32 loops of every instruction set read the same small models. */
static void test_every_device_reads_them(void **state)
{
    (void)state;
    float here[ROOM], there[ROOM];
    static const char *const names[] = {"base7", "base8", "bf16", "f16"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *dir = temp_path(names[i]);
        pnb_model *m = open_on(ctx, dir);
        size_t dim = embed(m, here);
        pnb_model_free(m);
        for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_EMULATED + 1; isa++) {
            pnb_ctx_opts opts = pnb_ctx_opts_default();
            bool is_ref = isa > PNB_ISA_EMULATED;
            pnb_ctx *device = NULL;
            opts.isa = is_ref ? PNB_ISA_GENERIC : (pnb_isa)isa;
            opts.device = is_ref ? PNB_DEVICE_REF : PNB_DEVICE_CPU;
            if (pnb_ctx_create(&device, &opts, NULL) != PNB_OK)
                continue;
            m = open_on(device, dir);
            embed(m, there);
            /* a last bit of a norm may move an activation to the next level; a tile unit's come in
             * halves: both sides are 1e-4 off the floats, each in its own way */
            assert_true(cosine(here, there, dim) > 0.9998);
            assert_true(cosine(here + dim, there + dim, dim) > 0.9998);
            pnb_model_free(m);
            pnb_ctx_free(device);
        }
        pnb__free(dir);
    }
}

/* Bytes and scales on disk against the definition, from the f32 file. */
static void test_bytes_are_as_defined(void **state)
{
    (void)state;
    static const char key[] = "visual.transformer.resblocks.0.mlp.c_fc.weight";
    pnb_safetensors *from = NULL, *to = NULL;
    char *path = temp_path("base7/model.safetensors");
    assert_int_equal(pnb_safetensors_open(&from, CASES "base/model.safetensors", NULL), PNB_OK);
    assert_int_equal(pnb_safetensors_open(&to, path, NULL), PNB_OK);
    const pnb_array_view *w = pnb_safetensors_find(from, key), *q = pnb_safetensors_find(to, key);
    const pnb_array_view *s =
        pnb_safetensors_find(to, "visual.transformer.resblocks.0.mlp.c_fc.weight_scale");
    assert_true(w != NULL && q != NULL && s != NULL);
    assert_int_equal(q->dtype, PNB_I8);
    assert_int_equal(s->dtype, PNB_F32);
    size_t n = (size_t)w->shape[0], k = (size_t)w->shape[1];
    for (size_t i = 0; i < n; i++) {
        const float *row = (const float *)w->data + i * k;
        double most = 0;
        for (size_t j = 0; j < k; j++)
            most = fmax(most, fabs((double)row[j]));
        double scale = (double)((const float *)s->data)[i];
        assert_true(fabs(scale - most / 127) <= 1e-7 * most);
        for (size_t j = 0; j < k; j++)
            assert_true(fabs(((const signed char *)q->data)[i * k + j] * scale - (double)row[j]) <=
                        0.5001 * scale);
    }
    pnb_safetensors_free(from);
    pnb_safetensors_free(to);
    pnb__free(path);
}

/* ---- refusals ---- */

static void test_misuse_is_refused(void **state)
{
    (void)state;
    char *dir = temp_path("base7");
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = open_on(ctx, dir);
    assert_int_equal(pnb_model_quantize(m, PNB_WEIGHTS_INT8, 7, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "small already"));
    pnb_error_reset(&err);
    assert_int_equal(pnb__model_make_trainable(m, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot be trained"));
    pnb_model_free(m);
    m = open_on(ctx, CASES "base");
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_quantize(m, PNB_WEIGHTS_INT8, 6, &err), PNB_ARG);
    assert_int_equal(pnb_model_set_calibration(m, "{}", NULL), PNB_ARG);
    assert_null(pnb_model_quantization(m));
    pnb_model_free(m);
    pnb__free(dir);
}

/* 16-bit models are widened for training and give what they gave. */
static void test_halves_can_be_trained(void **state)
{
    (void)state;
    float before[ROOM], after[ROOM];
    char *dir = temp_path("bf16");
    pnb_model *m = open_on(ctx, dir);
    size_t dim = embed(m, before);
    pnb__model_replan(m);
    assert_int_equal(pnb__model_make_trainable(m, NULL), PNB_OK);
    for (size_t i = 0; i < pnb__model_n_params(m); i++)
        assert_int_equal(pnb__model_param(m, i)->store, PNB__STORE_REAL);
    embed(m, after);
    assert_memory_equal(before, after, 2 * dim * sizeof *before);
    pnb_model_free(m);
    pnb__free(dir);
}

typedef bool (*change_fn)(pnb_array_view *v); /* false drops the array */

/* base7 with its arrays changed must be refused with `text`. */
static void refuse(change_fn change, const char *record, pnb_status status, const char *text)
{
    char *from = temp_path("base7/model.safetensors"), *dir = temp_path("bad");
    char *to = temp_path("bad/model.safetensors"), *config = temp_path("bad/config.json");
    char *base_config = temp_path("base7/config.json"), *content = NULL;
    size_t size = 0, n = 0;
    pnb_safetensors *file = NULL;
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__make_dirs(dir, NULL), PNB_OK);
    assert_int_equal(pnb__read_file(base_config, 1 << 20, &content, &size, NULL), PNB_OK);
    assert_int_equal(pnb__write_file(config, content, size, NULL), PNB_OK);
    assert_int_equal(pnb_safetensors_open(&file, from, NULL), PNB_OK);
    pnb_array_view *views = calloc(pnb_safetensors_count(file), sizeof *views);
    for (size_t i = 0; i < pnb_safetensors_count(file); i++) {
        views[n] = *pnb_safetensors_at(file, i);
        n += change == NULL || change(&views[n]);
    }
    const char *const metadata[] = {"penumbra.quantization", record, NULL};
    assert_int_equal(pnb_safetensors_write(to, views, n, record != NULL ? metadata : NULL, NULL),
                     PNB_OK);
    pnb_status got = pnb_model_load(&m, ctx, dir, &err);
    if (got != status || strstr(err.text, text) == NULL)
        fail_msg("status %d, \"%s\" is not in: %s", (int)got, text, err.text);
    pnb_safetensors_free(file);
    free(views);
    pnb__free(content);
    char *const paths[] = {from, dir, to, config, base_config};
    for (size_t i = 0; i < PNB_COUNT(paths); i++)
        pnb__free(paths[i]);
}

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

static bool no_scales(pnb_array_view *v)
{
    return !ends_with(v->name, "1.mlp.c_proj.weight_scale");
}

static bool short_scales(pnb_array_view *v)
{
    if (ends_with(v->name, "0.attn.out_proj.weight_scale")) {
        v->shape[0] -= 1;
        v->n_bytes -= sizeof(float);
    }
    return true;
}

static bool bytes_elsewhere(pnb_array_view *v)
{
    if (strcmp(v->name, "text.token_embedding.weight") == 0) {
        v->dtype = PNB_I8;
        v->n_bytes /= sizeof(float);
    }
    return true;
}

static void test_damaged_files_are_named(void **state)
{
    (void)state;
    refuse(no_scales, NULL, PNB_DTYPE, "1.mlp.c_proj.weight_scale are missing");
    refuse(short_scales, NULL, PNB_SHAPE, "0.attn.out_proj.weight_scale must be");
    refuse(bytes_elsewhere, NULL, PNB_DTYPE, "text.token_embedding.weight is stored in 8 bits");
    refuse(NULL, "{\"activation_bits\": 5}", PNB_FORMAT, "activation_bits must be 7 or 8");
    refuse(NULL, "{", PNB_FORMAT, "penumbra.quantization");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved_models_open_with_the_same_bits),
        cmocka_unit_test(test_small_models_are_converted),
        cmocka_unit_test(test_every_device_reads_them),
        cmocka_unit_test(test_bytes_are_as_defined),
        cmocka_unit_test(test_misuse_is_refused),
        cmocka_unit_test(test_halves_can_be_trained),
        cmocka_unit_test(test_damaged_files_are_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
