/* PCME++: the released folder's size and names, gradients of both paths against torch's, how a new
 * model starts, saving and opening again, and what is refused. The towers' numbers are compared by
 * the golden case that is read here (golden_prolip_model/pcmepp_two_paths). */
#include <math.h>
#include <unistd.h>

#include "models/model.h"
#include "models/weights/weights.h"
#include "penumbra/safetensors.h"
#include "tests/prob/support.h"

#define CASE PNB_SOURCE_DIR "/tests/golden/prolip_model/pcmepp_two_paths"

static pnb_ctx *ctx;
static char dir[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/pnb-pcmepp-XXXXXX");
    return mkdtemp(dir) != NULL && pnb_ctx_create(&ctx, NULL, NULL) == PNB_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    pnb_ctx_free(ctx);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static pnb_status read_text(pnb__config *c, const char *text, pnb_error *why)
{
    json_t *root = NULL;
    assert_ok(pnb__json_load_bytes(&root, text, strlen(text), "config.json", err));
    pnb_status status = pnb__family_read_config(c, root, "config.json", why);
    json_decref(root);
    return status;
}

/* ---- the released folder ---- */

/* As huggingface_hub writes the constructor's arguments: 290 bytes, as the released file. */
static const char released[] = "{\n"
                               "  \"embed_dim\": 512,\n"
                               "  \"text_cfg\": {\n"
                               "    \"context_length\": 77,\n"
                               "    \"heads\": 8,\n"
                               "    \"layers\": 12,\n"
                               "    \"unc_layers\": 2,\n"
                               "    \"vocab_size\": 49408,\n"
                               "    \"width\": 512\n"
                               "  },\n"
                               "  \"vision_cfg\": {\n"
                               "    \"image_size\": 224,\n"
                               "    \"layers\": 12,\n"
                               "    \"patch_size\": 16,\n"
                               "    \"unc_layers\": 2,\n"
                               "    \"width\": 768\n"
                               "  }\n"
                               "}";

static const pnb__param *param_of(const pnb__weights *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->items[i].param.name, name) == 0)
            return &w->items[i].param;
    return NULL;
}

static void is_stored_as(const pnb__weights *w, const char *name, const char *key, size_t rows,
                         size_t columns)
{
    pnb__key_mapping_part parts[3];
    const pnb__param *p = param_of(w, name);
    if (p == NULL)
        fail_msg("there is no %s", name);
    assert_int_equal(pnb__key_mapping_parts(&w->layout, name, parts), 1);
    assert_string_equal(parts[0].key, key);
    assert_false(parts[0].transpose);
    assert_int_equal(p->shape[0], rows);
    assert_int_equal(columns == 0 ? 1 : 2, p->n_dims);
    assert_true(columns == 0 || p->shape[1] == columns);
}

/* Our logit_scale and logit_bias stand for its negative_scale and shift; its own logit_scale is
 * the one number more. */
static void test_released_folder(void **state)
{
    (void)state;
    pnb__config c;
    pnb__weights w;
    size_t n = 1;
    assert_int_equal(strlen(released), 290);
    assert_ok(read_text(&c, released, err));
    assert_string_equal(pnb__family_of(&c)->name, "pcmepp");
    assert_int_equal(c.vision.act, PNB__GELU);
    assert_true(c.vision.eps == 1e-5 && c.text.eps == 1e-5 && c.causal);
    assert_int_equal(c.vision.n_heads, 12);
    assert_ok(pnb__weights_declare(&w, &c, ctx, PNB__F32, err));
    for (size_t i = 0; i < w.n; i++)
        n += w.items[i].param.n;
    assert_int_equal(n, 170756611);
    assert_int_equal(4 * n / 1000000, 683); /* MB of the released model.safetensors */
    is_stored_as(&w, "visual.uncertainty_proj", "visual.uncertainty_proj", 768, 512);
    is_stored_as(&w, "text.uncertainty_text_projection", "uncertainty_text_projection", 512, 512);
    is_stored_as(&w, "text.text_projection", "text_projection", 512, 512);
    is_stored_as(&w, "visual.uncertainty_transformer.resblocks.1.attn.in_proj_weight",
                 "visual.uncertainty_transformer.resblocks.1.attn.in_proj_weight", 2304, 768);
    is_stored_as(&w, "text.uncertainty_transformer.resblocks.1.mlp.c_fc.weight",
                 "uncertainty_transformer.resblocks.1.mlp.c_fc.weight", 2048, 512);
    is_stored_as(&w, "text.transformer.resblocks.11.ln_2.bias",
                 "transformer.resblocks.11.ln_2.bias", 512, 0);
    assert_null(param_of(&w, "visual.uncertainty_transformer.resblocks.2.ln_1.weight"));
    assert_null(param_of(&w, "visual.uncertainty_proj.bias"));
    pnb__weights_reset(&w);
}

/* ---- gradients ---- */

static double *values_of(const pnb_safetensors *file, const char *name)
{
    const pnb_array_view *view = pnb_safetensors_find(file, name);
    if (view == NULL)
        fail_msg("there is no %s", name);
    double *values =
        pnb__alloc_array(view->n_bytes / pnb_dtype_size(view->dtype) + 1, sizeof *values);
    assert_non_null(values);
    assert_ok(pnb_array_to_f64(view, values, err));
    return values;
}

static pnb__tensor *half_square(pnb__tensor *x)
{
    return pnb__affine(pnb__sum(pnb__apply(PNB__SQUARE, x), PNB__ALL_AXES), 0.5, 0);
}

static pnb__tensor *length_of(const pnb__dist *d)
{
    return pnb__add(half_square(d->mean), half_square(d->log_var));
}

/* The places of the texts of the case: the first largest id, and how many tokens it sees. */
static void write_places(pnb_model *m, const int32_t *ids, pnb__tensor *const *places)
{
    int32_t rows[3], seen[3];
    for (size_t i = 0; i < 3; i++) {
        int32_t at[PNB__MAX_PLACES];
        assert_ok(pnb__tower_of(&m->config, PNB__TEXT_SIDE)
                      ->find_places(&m->config, ids + 9 * i, 9, i, at, err));
        rows[i] = at[0];
        seen[i] = at[1];
    }
    assert_int_equal(rows[1], 9 + 2); /* text behind the end token, and the end token again */
    assert_int_equal(rows[2], 18 + 1);
    pnb__write_i32(places[0], rows);
    pnb__write_i32(places[1], seen);
}

/* Of 1/2 |mu|^2 + 1/2 |log sigma^2|^2 over all rows, in doubles, every weight of both towers. */
static void test_gradients(void **state)
{
    (void)state;
    pnb_model *m = NULL;
    pnb__graph *g = NULL;
    pnb_safetensors *inputs = NULL, *wanted = NULL;
    size_t n_compared = 0;
    assert_ok(pnb_safetensors_open(&inputs, CASE "/tensors.safetensors", err));
    assert_ok(pnb_safetensors_open(&wanted, CASE "/gradients.safetensors", err));
    assert_ok(pnb__model_load_real(&m, ctx, CASE, PNB__F64, err));
    assert_ok(pnb__model_make_trainable(m, err));
    assert_ok(pnb__graph_create(&g, ctx, PNB__F64, true, err));
    pnb__tower_in in = {.pixels = pnb__input(g, PNB__REAL, 4, (size_t[]){3, 3, 16, 24}),
                        .ids = pnb__input(g, PNB__INT32, 2, (size_t[]){3, 9})};
    in.places[0] = pnb__input(g, PNB__INT32, 1, (size_t[]){3});
    in.places[1] = pnb__input(g, PNB__INT32, 1, (size_t[]){3});
    pnb__dist image = pnb__model_build(m, PNB__IMAGE_SIDE, g, &in, false);
    pnb__dist text = pnb__model_build(m, PNB__TEXT_SIDE, g, &in, false);
    assert_ok(pnb__graph_plan(g, pnb__add(length_of(&image), length_of(&text)), err));
    double *pixels = values_of(inputs, "pixels"), *numbers = values_of(inputs, "ids");
    int32_t ids[27];
    for (size_t i = 0; i < 27; i++)
        ids[i] = (int32_t)numbers[i];
    pnb__write_f64(in.pixels, pixels);
    pnb__write_i32(in.ids, ids);
    write_places(m, ids, in.places);
    assert_ok(pnb__graph_run(g, err));
    for (size_t i = 0; i < pnb__model_n_params(m); i++) {
        pnb__param *p = pnb__model_param(m, i);
        pnb__key_mapping_part parts[3];
        double *got = pnb__alloc_array(p->n, sizeof *got);
        if (pnb__starts_with(p->name, "logit_")) {
            pnb__free(got);
            continue;
        }
        assert_int_equal(pnb__key_mapping_parts(&m->weights.layout, p->name, parts), 1);
        double *want = values_of(wanted, parts[0].key);
        assert_true(pnb__read_grad_f64(pnb__param_tensor(g, p), got));
        for (size_t k = 0; k < p->n; k++)
            if (!(fabs(got[k] - want[k]) <= 1e-9 + 1e-9 * fabs(want[k])))
                fail_msg("%s[%zu]: %.12g, torch has %.12g", p->name, k, got[k], want[k]);
        n_compared++;
        pnb__free(got);
        pnb__free(want);
    }
    assert_int_equal(n_compared, 135); /* of the 137 arrays that are read, all but a and b */
    pnb__free(pixels);
    pnb__free(numbers);
    pnb__graph_free(g);
    pnb_model_free(m);
    pnb_safetensors_free(inputs);
    pnb_safetensors_free(wanted);
}

/* ---- new models ---- */

static double mean_log_var(const char *overrides)
{
    char *config = NULL;
    pnb_model *m = NULL;
    static float pixels[2 * 3 * 48 * 48], log_var[2 * 128];
    const int32_t ids[2][6] = {{5, 9, 300, 1, 0, 0}, {7, 8, 4, 77, 21, 1}};
    double sum = 0;
    for (size_t i = 0; i < PNB_COUNT(pixels); i++)
        pixels[i] = (float)sin((double)i * 0.013);
    assert_ok(pnb_model_config_merge("pcmepp-tiny", overrides, &config, err));
    assert_ok(pnb_model_init_json(&m, ctx, config, 3, err));
    assert_ok(pnb_model_encode_image(m, pixels, 2, &(pnb_encode_out){.log_var = log_var}, err));
    for (size_t i = 0; i < PNB_COUNT(log_var); i++)
        sum += (double)log_var[i];
    assert_ok(pnb_model_encode_text(m, ids[0], 2, 6, &(pnb_encode_out){.log_var = log_var}, err));
    for (size_t i = 0; i < PNB_COUNT(log_var); i++)
        sum += (double)log_var[i];
    pnb_model_free(m);
    pnb_text_free(config);
    return sum / (2 * PNB_COUNT(log_var));
}

static void test_start(void **state)
{
    (void)state;
    const char *as_reference =
        "{\"vision_cfg\":{\"init_unc_bias\":0},\"text_cfg\":{\"init_unc_bias\":0}}";
    double small = mean_log_var("{}"), zero = mean_log_var(as_reference);
    if (!(fabs(small + 8.2) < 1))
        fail_msg("log-variances start near %g, wanted -8.2", small);
    if (!(fabs(zero) < 0.1))
        fail_msg("log-variances start near %g, wanted 0", zero);
}

/* -a csd + b as a' S + b', S = 1 - csd / 2, for unit means. */
static void test_scale_of_similarities(void **state)
{
    (void)state;
    pnb_model *m = NULL;
    assert_ok(pnb_model_init(&m, ctx, "pcmepp-tiny", 1, err));
    const pnb_model_info *info = pnb_model_get_info(m);
    double csd = 0.7, s = 1 - csd / 2;
    assert_true(fabs(info->logit_scale * s + info->logit_bias - (-5 * csd + 5)) < 1e-5);
    assert_string_equal(info->measure, "csd");
    pnb_model_free(m);
}

/* Saved again the text tower stays at the top; a and b are log a and b under our names. */
static void test_saved_again(void **state)
{
    (void)state;
    pnb_model *m = NULL, *again = NULL;
    pnb_safetensors *file = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/again", dir);
    assert_ok(pnb_model_load(&m, ctx, CASE, err));
    assert_ok(pnb_model_save(m, path, err));
    assert_ok(pnb_model_load(&again, ctx, path, err));
    const pnb_model_info *a = pnb_model_get_info(m), *b = pnb_model_get_info(again);
    assert_true(a->logit_scale == b->logit_scale && a->logit_bias == b->logit_bias);
    assert_true(fabs(a->logit_scale - 7) < 1e-5 && fabs(a->logit_bias + 2.75) < 1e-5);
    const int32_t ids[9] = {29, 4, 5, 6, 7, 8, 9, 2, 30};
    float x[40], y[40];
    assert_ok(
        pnb_model_encode_text(m, ids, 1, 9, &(pnb_encode_out){.mean = x, .log_var = x + 20}, err));
    assert_ok(pnb_model_encode_text(again, ids, 1, 9,
                                    &(pnb_encode_out){.mean = y, .log_var = y + 20}, err));
    assert_memory_equal(x, y, sizeof x);
    snprintf(path, sizeof path, "%s/again/model.safetensors", dir);
    assert_ok(pnb_safetensors_open(&file, path, err));
    assert_non_null(pnb_safetensors_find(file, "uncertainty_transformer.resblocks.0.ln_1.weight"));
    assert_null(pnb_safetensors_find(file, "negative_scale"));
    pnb_safetensors_free(file);
    pnb_model_free(again);
    pnb_model_free(m);
}

/* ---- what is refused ---- */

#define VISION "\"vision_cfg\":{\"layers\":2,\"width\":64,\"unc_layers\":1"
#define TEXT "\"text_cfg\":{\"layers\":2,\"width\":64,\"heads\":2,\"unc_layers\":1"

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        pnb_status status;
        const char *words;
    } cases[] = {
        {"{\"embed_dim\":8," VISION "}," TEXT ",\"embed_cls\":true}}", PNB_FORMAT,
         "unc_layers is PCME++'s, embed_cls and embed_unc are ProLIP's"},
        {"{\"embed_dim\":8," VISION ",\"pool_type\":\"avg\"}," TEXT "}}", PNB_UNSUPPORTED,
         "at the class token"},
        {"{\"embed_dim\":8," VISION "}," TEXT ",\"pool_type\":\"last\"}}", PNB_UNSUPPORTED,
         "at the end token"},
        {"{\"embed_dim\":8," VISION "}," TEXT ",\"no_causal_mask\":true}}", PNB_UNSUPPORTED,
         "causal mask"},
        {"{\"embed_dim\":8," VISION "}," TEXT ",\"proj_bias\":true}}", PNB_UNSUPPORTED,
         "without a bias"},
        {"{\"embed_dim\":8," VISION "},\"text_cfg\":{\"layers\":2,\"unc_layers\":3}}", PNB_ARG,
         "text_cfg has unc_layers 3, which must be at most its layers, 2"},
        {"{\"embed_dim\":8," VISION "},\"text_cfg\":{\"layers\":2,\"unc_layers\":0}}", PNB_FORMAT,
         "text_cfg: unc_layers is 0"},
        {"{\"embed_dim\":8," VISION ",\"global_average_pool\":true}," TEXT "}}", PNB_UNSUPPORTED,
         "vision_cfg: global_average_pool must be false"},
        {"{\"embed_dim\":8," VISION ",\"input_patchnorm\":true}," TEXT "}}", PNB_UNSUPPORTED,
         "input_patchnorm"},
        {"{\"embed_dim\":8," VISION "}," TEXT ",\"text_uncertainty_source\":\"unc_token\"}}",
         PNB_UNSUPPORTED, "text_uncertainty_source must be absent in a PCME++ model"},
        {"{\"embed_dim\":8," VISION ",\"wdith\":3}," TEXT "}}", PNB_FORMAT, "wdith"},
        {"{\"embed_dim\":8," VISION "}}", PNB_FORMAT, "text_cfg"},
        /* the word alone is not enough to be read by another dialect */
        {"{\"model_cfg\":{\"embed_dim\":8," VISION "}," TEXT "}}}", PNB_FORMAT, "unc_layers"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__config c;
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = read_text(&c, cases[i].config, &err);
        if (status != cases[i].status || strstr(err.text, cases[i].words) == NULL)
            fail_msg("%zu: %s \"%s\", wanted \"%s\"", i, pnb_status_name(status), err.text,
                     cases[i].words);
    }
}

/* What the reference's class takes and never reads changes nothing. */
static void test_unread_arguments(void **state)
{
    (void)state;
    pnb__config c;
    assert_ok(
        read_text(&c,
                  "{\"embed_dim\":8," VISION
                  ",\"global_average_pool\":false,\"timm_model_name\":\"vit\",\"timm_pool\":"
                  "\"avg\",\"n_queries\":4}," TEXT
                  ",\"proj\":\"mlp\",\"pooler_type\":\"mean_pooler\",\"hf_model_name\":\"x\"}}",
                  err));
    assert_string_equal(pnb__family_of(&c)->name, "pcmepp");
    assert_int_equal(c.vision.n_layers, 2);
}

/* open_clip and ProLIP have no words for the second path: nothing is written, nothing dropped. */
static void test_no_other_layout(void **state)
{
    (void)state;
    static const pnb_key_mapping layouts[] = {PNB_KEYS_PROLIP, PNB_KEYS_OPEN_CLIP, PNB_KEYS_HF};
    char notes[1024], path[96];
    for (size_t i = 0; i < PNB_COUNT(layouts); i++) {
        pnb_error err = PNB_ERROR_INIT;
        const pnb_model_convert_opts opts = {.to = layouts[i], .seed = 1};
        snprintf(path, sizeof path, "%s/to%zu", dir, i);
        assert_int_equal(pnb_model_convert(ctx, CASE, path, &opts, notes, &err), PNB_UNSUPPORTED);
        assert_non_null(strstr(err.text, "pcmepp"));
        assert_false(pnb__path_is_dir(path));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_released_folder),
                                       cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_start),
                                       cmocka_unit_test(test_scale_of_similarities),
                                       cmocka_unit_test(test_saved_again),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_unread_arguments),
                                       cmocka_unit_test(test_no_other_layout)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
