/* Model directories: counts of released configurations, round trips, and everything that must be
 * refused with a message that names what is wrong. */
#include "penumbra/model.h"

#include <math.h>

#include "models/model.h"
#include "penumbra/safetensors.h"
#include "tests/models/scratch.h"

#define BASE_CASE PNB_SOURCE_DIR "/tests/golden/prolip_model/base"

/* Counts that CONVENTIONS of the released files give; shapes only, no memory for values. */
static void check_counts(const char *name, size_t n_tensors, size_t n_params)
{
    json_t *root = NULL;
    pnb__config config;
    pnb__weights w;
    const char *text = pnb_model_config_json(name);
    assert_non_null(text);
    assert_int_equal(pnb__json_load_bytes(&root, text, strlen(text), name, NULL), PNB_OK);
    assert_int_equal(pnb__config_read(&config, root, name, NULL), PNB_OK);
    assert_int_equal(pnb__weights_declare(&w, &config, ctx, PNB__F32, NULL), PNB_OK);
    size_t total = 0;
    for (size_t i = 0; i < w.n; i++)
        total += w.items[i].param.n;
    assert_int_equal(w.n, n_tensors);
    assert_int_equal(total, n_params);
    pnb__weights_reset(&w);
    json_decref(root);
}

static void test_released_sizes(void **state)
{
    (void)state;
    check_counts("ViT-B-16", 311, 197923586);
    check_counts("ViT-B-16-long", 311, 198071042);
    check_counts("ViT-L-16", 599, 642814978);
    check_counts("SO400M-14", 671, 866286434);
    check_counts("ViT-H-14", 695, 988478466);
}

static void test_init_is_reproducible_and_seeded(void **state)
{
    (void)state;
    pnb_model *a, *b, *c;
    assert_int_equal(pnb_model_init(&a, ctx, "tiny", 1, NULL), PNB_OK);
    assert_int_equal(pnb_model_init(&b, ctx, "tiny", 1, NULL), PNB_OK);
    assert_int_equal(pnb_model_init(&c, ctx, "tiny", 2, NULL), PNB_OK);
    pnb__param *pa = pnb__model_find_param(a, "visual.conv1.weight");
    pnb__param *pb = pnb__model_find_param(b, "visual.conv1.weight");
    pnb__param *pc = pnb__model_find_param(c, "visual.conv1.weight");
    assert_memory_equal(pa->data, pb->data, pa->n * sizeof(float));
    assert_memory_not_equal(pa->data, pc->data, pa->n * sizeof(float));
    pnb_model_free(a);
    pnb_model_free(b);
    pnb_model_free(c);
}

/* std, or half-width / sqrt(3) of a uniform, as the reference initialises. */
static void check_spread(pnb_model *m, const char *name, double want)
{
    pnb__param *p = pnb__model_find_param(m, name);
    assert_non_null(p);
    const float *x = p->data;
    double squares = 0;
    for (size_t i = 0; i < p->n; i++)
        squares += (double)x[i] * (double)x[i];
    double std = sqrt(squares / (double)p->n);
    if (!(fabs(std / want - 1) < 0.05))
        fail_msg("%s: std %g, expected %g", name, std, want);
}

static void test_init_distributions(void **state)
{
    (void)state;
    pnb_model *m;
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 3, NULL), PNB_OK);
    check_spread(m, "visual.conv1.weight", 1 / sqrt(3.0 * 64) / sqrt(3.0));
    check_spread(m, "visual.positional_embedding", 1 / sqrt(128.0));
    check_spread(m, "visual.transformer.resblocks.1.attn.in_proj_weight",
                 sqrt(6 / 512.0) / sqrt(3.0));
    check_spread(m, "visual.transformer.resblocks.1.mlp.c_proj.weight",
                 1 / sqrt(512.0) / sqrt(3.0));
    check_spread(m, "text.token_embedding.weight", 0.02);
    check_spread(m, "text.positional_embedding", 0.01);
    check_spread(m, "text.transformer.resblocks.0.attn.in_proj_weight", 1 / sqrt(128.0));
    check_spread(m, "text.transformer.resblocks.0.attn.out_proj.weight",
                 1 / sqrt(128.0) / sqrt(4.0));
    check_spread(m, "text.transformer.resblocks.0.mlp.c_fc.weight", 1 / sqrt(256.0));
    check_spread(m, "visual.uncertainty_proj.weight", 0.03 / sqrt(128.0));
    check_spread(m, "text.text_uncertainty_projection.weight", 0.03 / sqrt(128.0));
    const float *bias = pnb__model_find_param(m, "text.text_uncertainty_projection.bias")->data;
    assert_true(fabs((double)bias[5] - (-10 + log(768.0 / 128))) < 1e-5);
    assert_true(fabs(pnb_model_get_info(m)->logit_scale - 10) < 1e-5);
    assert_true(fabs(pnb_model_get_info(m)->logit_bias + log(128.0)) < 1e-5);
    pnb_model_free(m);
}

/* The key decides, towers apart; without it the reference's spread; nonsense is refused. */
static void test_init_spread_of_log_variance(void **state)
{
    (void)state;
    pnb_model *m;
    char *config = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_model_config_merge("tiny",
                                            "{\"vision_cfg\": {\"init_unc_std\": 0.5}, "
                                            "\"text_cfg\": {\"init_unc_std\": null}}",
                                            &config, &err),
                     PNB_OK);
    assert_int_equal(pnb_model_init_json(&m, ctx, config, 3, &err), PNB_OK);
    check_spread(m, "visual.uncertainty_proj.weight", 0.5);
    check_spread(m, "text.text_uncertainty_projection.weight", 1 / sqrt(128.0));
    pnb_model_free(m);
    pnb_text_free(config);
    assert_int_equal(
        pnb_model_config_merge("tiny", "{\"vision_cfg\": {\"init_unc_std\": -1}}", &config, &err),
        PNB_OK);
    assert_int_equal(pnb_model_init_json(&m, ctx, config, 3, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "init_unc_std"));
    pnb_text_free(config);
}

static void encode_both(pnb_model *m, float *mean, float *log_var)
{
    const pnb_model_info *info = pnb_model_get_info(m);
    size_t n = 3 * info->vision.image_height * info->vision.image_width;
    float *pixels = malloc(n * sizeof *pixels);
    int32_t ids[] = {5, 9, 2, 11};
    for (size_t i = 0; i < n; i++)
        pixels[i] = (float)sin((double)i);
    pnb_encode_out image = {.mean = mean, .log_var = log_var},
                   text = {.mean = mean + info->embed_dim, .log_var = log_var + info->embed_dim};
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_model_encode_image(m, pixels, 1, &image, &err) != PNB_OK ||
        pnb_model_encode_text(m, ids, 1, 4, &text, &err) != PNB_OK)
        fail_msg("%s", err.text);
    free(pixels);
}

static void test_save_and_load_keep_every_bit(void **state)
{
    (void)state;
    pnb_model *m, *again;
    float a[4][128], b[4][128];
    char *dir = temp_path("round");
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 4, NULL), PNB_OK);
    assert_int_equal(pnb_model_save(m, dir, NULL), PNB_OK);
    assert_int_equal(pnb_model_load(&again, ctx, dir, NULL), PNB_OK);
    encode_both(m, a[0], a[2]);
    encode_both(again, b[0], b[2]);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(pnb_model_get_info(again)->text_unc_source, PNB_TEXT_UNC_PROJECTED_MEAN);
    double norm = 0;
    for (size_t i = 0; i < 128; i++)
        norm += (double)a[0][i] * (double)a[0][i];
    assert_true(fabs(norm - 1) < 1e-5);
    const char *hex;
    assert_int_equal(pnb_model_weights_sha256(again, &hex, NULL), PNB_OK);
    assert_int_equal(strlen(hex), 64);
    pnb_model_free(m);
    pnb_model_free(again);
    pnb__free(dir);
}

/* The source a built-in configuration says, or gets from overrides; the caller frees it. */
static char *source_of(const char *name, const char *overrides)
{
    char *json = NULL, source[32] = "";
    assert_int_equal(pnb_model_config_merge(name, overrides, &json, NULL), PNB_OK);
    const char *at = strstr(json, "\"text_uncertainty_source\": \"");
    if (at != NULL)
        sscanf(at + 28, "%31[^\"]", source);
    pnb_text_free(json);
    return pnb__strdup(source);
}

/* New models read a caption's log-variance from the projected mean, as released ones; where widths
 * rule that out, from [UNC]; a source that was named stays. */
static void test_default_text_uncertainty_source(void **state)
{
    (void)state;
    static const struct {
        const char *overrides, *source;
    } cases[] = {
        {"{}", "projected_mean"},
        {"{\"text_uncertainty_source\": \"unc_token\"}", "unc_token"},
        {"{\"text_cfg\": {\"width\": 64}}", "unc_token"},
        {"{\"embed_dim\": 64}", "unc_token"},
        {"{\"embed_dim\": 64, \"text_cfg\": {\"width\": 64}}", "projected_mean"},
        {"{\"embed_dim\": 64, \"text_uncertainty_source\": \"projected_mean\"}", "projected_mean"},
    };
    for (const char *const *name = pnb_model_config_names(); *name != NULL; name++)
        for (size_t i = 0; i < PNB_COUNT(cases); i++) {
            if (strstr(pnb_model_config_json(*name), "embed_unc") == NULL)
                continue; /* its heads give log-variances of their own */
            char *source = source_of(*name, cases[i].overrides);
            if (strcmp(source, cases[i].source) != 0)
                fail_msg("%s with %s: %s, wanted %s", *name, cases[i].overrides, source,
                         cases[i].source);
            pnb__free(source);
        }
}

/* Both sources exist, differ, and the unc-token one allows another text width. */
static void test_text_uncertainty_sources(void **state)
{
    (void)state;
    char *json = NULL;
    pnb_model *m;
    pnb_error err = PNB_ERROR_INIT;
    float mean[256], by_token[256], by_mean[256];
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 4, NULL), PNB_OK);
    encode_both(m, mean, by_mean);
    pnb_model_free(m);
    assert_int_equal(
        pnb_model_config_merge("tiny", "{\"text_uncertainty_source\":\"unc_token\"}", &json, NULL),
        PNB_OK);
    assert_int_equal(pnb_model_init_json(&m, ctx, json, 4, NULL), PNB_OK);
    encode_both(m, mean, by_token);
    assert_memory_equal(by_token, by_mean, 128 * sizeof(float)); /* images alike */
    assert_memory_not_equal(by_token + 128, by_mean + 128, 128 * sizeof(float));
    pnb_model_free(m);
    pnb_text_free(json);
    const char *narrow = "{\"text_cfg\":{\"width\":64}}";
    assert_int_equal(pnb_model_config_merge("tiny", narrow, &json, NULL), PNB_OK);
    assert_int_equal(pnb_model_init_json(&m, ctx, json, 4, NULL), PNB_OK);
    encode_both(m, mean, by_mean);
    pnb_model_free(m);
    pnb_text_free(json);
    const char *wrong =
        "{\"text_cfg\":{\"width\":64},\"text_uncertainty_source\":\"projected_mean\"}";
    assert_int_equal(pnb_model_config_merge("tiny", wrong, &json, NULL), PNB_OK);
    assert_int_equal(pnb_model_init_json(&m, ctx, json, 4, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "unc_token"));
    pnb_text_free(json);
}

static void test_results_do_not_depend_on_the_batch(void **state)
{
    (void)state;
    pnb_model *m;
    int32_t ids[3][6] = {{4, 5, 6, 7, 8, 9}, {1, 2, 3, 4, 5, 6}, {9, 9, 1, 1, 0, 0}};
    float all[3][128], one[128];
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 6, NULL), PNB_OK);
    assert_int_equal(
        pnb_model_encode_text(m, ids[0], 3, 6, &(pnb_encode_out){.mean = all[0]}, NULL), PNB_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            pnb_model_encode_text(m, ids[i], 1, 6, &(pnb_encode_out){.mean = one}, NULL), PNB_OK);
        for (size_t d = 0; d < 128; d++)
            assert_true(fabs((double)one[d] - (double)all[i][d]) < 2e-6);
    }
    pnb_model_free(m);
}

static void test_bad_encode_arguments(void **state)
{
    (void)state;
    pnb_model *m;
    pnb_error err = PNB_ERROR_INIT;
    float mean[128];
    pnb_encode_out out = {.mean = mean};
    int32_t ids[32] = {0};
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 6, NULL), PNB_OK);
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 17, &out, &err), PNB_SHAPE);
    assert_non_null(strstr(err.text, "17"));
    ids[1] = 1500;
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 2, &out, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "1500"));
    ids[1] = -1;
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 2, &out, NULL), PNB_ARG);
    pnb_model_free(m);
}

/* ---- refused configurations and files ---- */

static void test_config_errors(void **state)
{
    (void)state;
    static const struct {
        const char *overrides;
        pnb_status status;
        const char *text;
    } bad[] = {
        {"{\"vision_cfg\":{\"widht\":64}}", PNB_FORMAT, "widht"},
        {"{\"embed_dimm\":64}", PNB_FORMAT, "embed_dimm"},
        {"{\"vision_cfg\":{\"width\":100,\"head_width\":30}}", PNB_ARG, "head_width"},
        {"{\"vision_cfg\":{\"width\":32}}", PNB_ARG, "head_width"},
        {"{\"text_cfg\":{\"heads\":3}}", PNB_ARG, "heads"},
        {"{\"text_cfg\":{\"no_causal_mask\":false}}", PNB_UNSUPPORTED, "no_causal_mask"},
        {"{\"vision_cfg\":{\"timm_model_name\":\"resnet\"}}", PNB_UNSUPPORTED, "timm_model_name"},
        {"{\"vision_cfg\":{\"attentional_pool\":true}}", PNB_UNSUPPORTED, "attentional_pool"},
        {"{\"vision_cfg\":{\"layers\":\"twelve\"}}", PNB_FORMAT, "layers"},
        {"{\"vision_cfg\":{\"image_size\":4}}", PNB_ARG, "patch"},
        {"{\"vision_cfg\":{\"embed_unc\":false}}", PNB_ARG, "embed_unc"},
        {"{\"text_uncertainty_source\":\"both\"}", PNB_ARG, "both"},
        {"{\"embed_dim\":0}", PNB_FORMAT, "embed_dim"},
        {"{\"text_cfg\":{\"norm_kwargs\":{\"epsilon\":1}}}", PNB_FORMAT, "epsilon"},
    };
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        char *json = NULL;
        pnb_model *m = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb_model_config_merge("tiny", bad[i].overrides, &json, &err), PNB_OK);
        pnb_status status = pnb_model_init_json(&m, ctx, json, 0, &err);
        if (status != bad[i].status || strstr(err.text, bad[i].text) == NULL)
            fail_msg("%s: %s \"%s\"", bad[i].overrides, pnb_status_name(status), err.text);
        assert_null(m);
        pnb_text_free(json);
    }
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_model_init(&m, ctx, "ViT-B-61", 0, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "ViT-B-16"));
}

/* Copies the base case with one weight changed by `change`, then expects a status and a word. */
typedef void (*change_fn)(pnb_array_view *views, size_t *n);

static void rename_weight(pnb_array_view *views, size_t *n)
{
    (void)n;
    views[3].name = "surprise.weight";
}
static void drop_weight(pnb_array_view *views, size_t *n)
{
    (void)views;
    (*n)--;
}
static void reshape_weight(pnb_array_view *views, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(views[i].name, "visual.transformer.resblocks.0.attn.in_proj_weight") == 0) {
            int64_t rows = views[i].shape[0];
            views[i].shape[0] = views[i].shape[1];
            views[i].shape[1] = rows;
        }
}
static void integer_weight(pnb_array_view *views, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(views[i].name, "visual.proj") == 0)
            views[i].dtype = PNB_I32;
}
static void nan_weight(pnb_array_view *views, size_t *n)
{
    static float poison[64 * 48];
    for (size_t i = 0; i < *n; i++)
        if (strcmp(views[i].name, "visual.proj") == 0) {
            memcpy(poison, views[i].data, views[i].n_bytes);
            poison[17] = NAN;
            views[i].data = poison;
        }
}

static void write_changed(const char *dir, change_fn change)
{
    pnb_safetensors *st;
    assert_int_equal(pnb_safetensors_open(&st, BASE_CASE "/model.safetensors", NULL), PNB_OK);
    size_t n = pnb_safetensors_count(st);
    pnb_array_view *views = calloc(n, sizeof *views);
    for (size_t i = 0; i < n; i++)
        views[i] = *pnb_safetensors_at(st, i);
    if (change != NULL)
        change(views, &n);
    assert_int_equal(pnb__make_dirs(dir, NULL), PNB_OK);
    char *path = pnb__path_join(dir, "model.safetensors");
    assert_int_equal(pnb_safetensors_write(path, views, n, NULL, NULL), PNB_OK);
    pnb__free(path);
    char *config, *target = pnb__path_join(dir, "config.json");
    size_t size;
    assert_int_equal(pnb__read_file(BASE_CASE "/config.json", 1 << 20, &config, &size, NULL),
                     PNB_OK);
    assert_int_equal(pnb__write_file(target, config, size, NULL), PNB_OK);
    pnb__free(config);
    pnb__free(target);
    free(views);
    pnb_safetensors_free(st);
}

static void test_weight_file_errors(void **state)
{
    (void)state;
    static const struct {
        change_fn change;
        pnb_status status;
        const char *text;
    } bad[] = {
        {rename_weight, PNB_NOT_FOUND, "missing"},
        {drop_weight, PNB_NOT_FOUND, "missing"},
        {reshape_weight, PNB_SHAPE, "file has (64,192), config needs (192,64)"},
        {integer_weight, PNB_DTYPE, "I32"},
    };
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        char *dir = temp_path("changed");
        pnb_model *m = NULL;
        pnb_error err = PNB_ERROR_INIT;
        write_changed(dir, bad[i].change);
        pnb_status status = pnb_model_load(&m, ctx, dir, &err);
        if (status != bad[i].status || strstr(err.text, bad[i].text) == NULL)
            fail_msg("case %zu: %s \"%s\"", i, pnb_status_name(status), err.text);
        assert_null(m);
        pnb__free(dir);
    }
}

static void test_nan_weights_are_named_before_encoding(void **state)
{
    (void)state;
    char *dir = temp_path("nan");
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    float mean[48], *pixels = calloc(3 * 32 * 32, sizeof *pixels);
    write_changed(dir, nan_weight);
    assert_int_equal(pnb_model_load(&m, ctx, dir, &err), PNB_OK);
    pnb_encode_out out = {.mean = mean};
    assert_int_equal(pnb_model_encode_image(m, pixels, 1, &out, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "visual.proj"));
    pnb_model_free(m);
    free(pixels);
    pnb__free(dir);
}

static void encode_zeros(pnb_model *m, pnb_status want, const char *says)
{
    float mean[48], *pixels = calloc(3 * 32 * 32, sizeof *pixels);
    pnb_error err = PNB_ERROR_INIT;
    int32_t ids[4] = {1, 2, 3, 4};
    pnb_encode_out out = {.mean = mean};
    assert_int_equal(pnb_model_encode_image(m, pixels, 1, &out, &err), want);
    assert_non_null(strstr(err.text, says));
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 4, &out, &err), want);
    assert_non_null(strstr(err.text, says));
    free(pixels);
}

/* Weights are read where they lie: what is written there is noticed, and what is only renamed over
 * them leaves them as they were. */
static void test_files_that_are_written_to(void **state)
{
    (void)state;
    char *dir = temp_path("written"), *path = pnb__path_join(dir, "model.safetensors");
    char *other = pnb__path_join(dir, "other");
    char *bytes = NULL;
    size_t n = 0;
    pnb_model *m = NULL, *replaced = NULL;
    write_changed(dir, NULL);
    assert_int_equal(pnb__read_file(path, SIZE_MAX, &bytes, &n, NULL), PNB_OK);
    assert_int_equal(pnb_model_load(&replaced, ctx, dir, NULL), PNB_OK);
    FILE *f = fopen(other, "wb");
    assert_true(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    assert_int_equal(rename(other, path), 0);
    encode_zeros(replaced, PNB_OK, "");
    assert_int_equal(pnb_model_load(&m, ctx, dir, NULL), PNB_OK);
    encode_zeros(m, PNB_OK, "");
    f = fopen(path, "r+b"); /* as many bytes, and the same */
    assert_true(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    encode_zeros(m, PNB_IO, path);
    assert_int_equal(truncate(path, 100), 0); /* whoever reads there now is killed */
    encode_zeros(m, PNB_IO, "100 now");
    encode_zeros(replaced, PNB_OK, "");
    pnb_model_free(m);
    pnb_model_free(replaced);
    pnb__free(bytes);
    pnb__free(other);
    pnb__free(path);
    pnb__free(dir);
}

static void test_missing_parts(void **state)
{
    (void)state;
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_model_load(&m, ctx, "/nonexistent", &err), PNB_NOT_FOUND);
    char *dir = temp_path("empty");
    assert_int_equal(pnb__make_dirs(dir, NULL), PNB_OK);
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_load(&m, ctx, dir, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "config.json"));
    char *path = pnb__path_join(dir, "config.json");
    const char *text = pnb_model_config_json("tiny");
    assert_int_equal(pnb__write_file(path, text, strlen(text), NULL), PNB_OK);
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_load(&m, ctx, dir, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "model.safetensors"));
    pnb__free(path);
    pnb__free(dir);
}

#ifdef PNB_FAULTS
static void test_out_of_memory_is_clean(void **state)
{
    (void)state;
    bool passed = false;
    for (long n = 0; !passed && n < 5000; n += n < 50 ? 1 : 37) {
        pnb_model *m = NULL;
        pnb_error err = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb_model_load(&m, ctx, BASE_CASE, &err);
        pnb__alloc_fail_after(-1);
        passed = status == PNB_OK;
        if (!passed)
            assert_null(m);
        pnb_model_free(m);
    }
    assert_true(passed);
}
#endif

/* Embeds `n` pictures and texts in batches of `batch`. */
static void encode_in_batches(pnb_model *m, const float *pixels, const int32_t *ids, size_t n,
                              size_t batch, float *out)
{
    const pnb_model_info *info = pnb_model_get_info(m);
    size_t n_pixels = 3 * info->vision.image_height * info->vision.image_width;
    size_t dim = info->embed_dim, n_tokens = info->text.context_length;
    for (size_t i = 0; i < n; i += batch) {
        size_t b = PNB_MIN(batch, n - i);
        float *row = out + i * dim;
        assert_int_equal(
            pnb_model_encode_image(m, pixels + i * n_pixels, b,
                                   &(pnb_encode_out){.mean = row, .log_var = row + n * dim}, NULL),
            PNB_OK);
        row += 2 * n * dim;
        assert_int_equal(
            pnb_model_encode_text(m, ids + i * n_tokens, b, n_tokens,
                                  &(pnb_encode_out){.mean = row, .log_var = row + n * dim}, NULL),
            PNB_OK);
    }
}

static void check_batches(pnb_model *m)
{
    enum { N = 7 };
    const pnb_model_info *info = pnb_model_get_info(m);
    size_t n_pixels = 3 * info->vision.image_height * info->vision.image_width;
    size_t n_tokens = info->text.context_length, n_out = 4 * N * info->embed_dim;
    float *pixels = calloc(N * n_pixels, sizeof *pixels), *one = calloc(n_out, sizeof *one);
    float *many = calloc(n_out, sizeof *many);
    int32_t *ids = calloc(N * n_tokens, sizeof *ids);
    assert_true(pixels != NULL && one != NULL && many != NULL && ids != NULL);
    for (size_t i = 0; i < N * n_pixels; i++)
        pixels[i] = (float)sin((double)(i % 9973));
    for (size_t i = 0; i < N * n_tokens; i++)
        ids[i] = (int32_t)(i * 31 % info->text.vocab_size);
    encode_in_batches(m, pixels, ids, N, 1, one);
    for (size_t batch = 2; batch <= N; batch++) {
        encode_in_batches(m, pixels, ids, N, batch, many);
        assert_memory_equal(one, many, n_out * sizeof *one);
    }
    free(pixels);
    free(ids);
    free(one);
    free(many);
}

/* As training leaves them: made models have biases of 0, which hide in what order sums are made. */
static void bend_biases(pnb_model *m)
{
    size_t n_biases = 0;
    for (size_t i = 0; i < pnb__model_n_params(m); i++) {
        pnb__param *p = pnb__model_param(m, i);
        if (strstr(p->name, "bias") == NULL)
            continue;
        float *values = p->data;
        for (size_t k = 0; k < p->n; k++)
            values[k] += 0.1F * (float)sin((double)(k * 7 + i));
        n_biases++;
    }
    assert_true(n_biases > 20);
}

/* Batch-invariant contexts: the bits of an embedding do not depend on the batch, on every set of
 * instructions, in f32 and with small weights. */
static void test_batches_do_not_change_bits(void **state)
{
    (void)state;
    for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_EMULATED; isa++) {
        pnb_ctx_opts opts = pnb_ctx_opts_default();
        opts.isa = (pnb_isa)isa;
        opts.n_threads = 2;
        opts.batch_invariant = true;
        pnb_ctx *one = NULL;
        if (pnb_ctx_create(&one, &opts, NULL) != PNB_OK)
            continue;
        pnb_model *m = NULL;
        assert_int_equal(pnb_model_init(&m, one, "tiny", 3, NULL), PNB_OK);
        bend_biases(m);
        check_batches(m);
        assert_int_equal(pnb_model_quantize(m, PNB_WEIGHTS_INT8, 7, NULL), PNB_OK);
        check_batches(m);
        pnb_model_free(m);
        pnb_ctx_free(one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_do_not_change_bits),
        cmocka_unit_test(test_released_sizes),
        cmocka_unit_test(test_init_is_reproducible_and_seeded),
        cmocka_unit_test(test_init_distributions),
        cmocka_unit_test(test_init_spread_of_log_variance),
        cmocka_unit_test(test_save_and_load_keep_every_bit),
        cmocka_unit_test(test_default_text_uncertainty_source),
        cmocka_unit_test(test_text_uncertainty_sources),
        cmocka_unit_test(test_results_do_not_depend_on_the_batch),
        cmocka_unit_test(test_bad_encode_arguments),
        cmocka_unit_test(test_config_errors),
        cmocka_unit_test(test_weight_file_errors),
        cmocka_unit_test(test_nan_weights_are_named_before_encoding),
        cmocka_unit_test(test_files_that_are_written_to),
        cmocka_unit_test(test_missing_parts),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_out_of_memory_is_clean),
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
