/* Checkpoint layouts: round trips between them to the bit, towers alone, other sizes, the start of
 * a ProLIP model from CLIP and SigLIP, and everything that must be refused with the culprit named.
 */
#include <math.h>

#include "models/keys/key_check.h"
#include "models/position_resize.h"
#include "models/retarget.h"
#include "penumbra/safetensors.h"
#include "tests/models/scratch.h"

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"

static const char *temp(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", temp_dir, name);
    return path;
}

static pnb_model *open_or_fail(const char *dir)
{
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_model_load(&m, ctx, dir, &err) != PNB_OK)
        fail_msg("%s: %s", dir, err.text);
    return m;
}

static void convert_or_fail(const char *dir, pnb_key_mapping to, const char *out)
{
    char notes[1024];
    pnb_error err = PNB_ERROR_INIT;
    pnb_model_convert_opts opts = {.to = to, .seed = 7};
    if (pnb_model_convert(ctx, dir, out, &opts, notes, &err) != PNB_OK)
        fail_msg("%s: %s", dir, err.text);
}

/* ---- round trips ---- */

static bool is_buffer(const char *name)
{
    return strstr(name, "position_ids") != NULL || strcmp(name, "input_resolution") == 0 ||
           strcmp(name, "context_length") == 0 || strcmp(name, "vocab_size") == 0;
}

static void assert_same_file(const char *a_path, const char *b_path)
{
    pnb_safetensors *a = NULL, *b = NULL;
    size_t n_compared = 0;
    assert_int_equal(pnb_safetensors_open(&a, a_path, NULL), PNB_OK);
    assert_int_equal(pnb_safetensors_open(&b, b_path, NULL), PNB_OK);
    for (size_t i = 0; i < pnb_safetensors_count(a); i++) {
        const pnb_array_view *x = pnb_safetensors_at(a, i);
        const pnb_array_view *y = pnb_safetensors_find(b, x->name);
        if (is_buffer(x->name))
            continue;
        if (y == NULL)
            fail_msg("%s is gone", x->name);
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->n_dims, y->n_dims);
        for (int d = 0; d < x->n_dims; d++)
            assert_int_equal(x->shape[d], y->shape[d]);
        assert_int_equal(x->n_bytes, y->n_bytes);
        if (memcmp(x->data, y->data, x->n_bytes) != 0)
            fail_msg("%s changed", x->name);
        n_compared++;
    }
    assert_int_equal(n_compared, pnb_safetensors_count(b));
    pnb_safetensors_free(a);
    pnb_safetensors_free(b);
}

static void embed(const char *dir, float *out)
{
    pnb_model *m = open_or_fail(dir);
    const pnb_model_info *info = pnb_model_get_info(m);
    pnb_error err = PNB_ERROR_INIT;
    size_t n = 3 * info->vision.image_height * info->vision.image_width;
    float *pixels = malloc(n * sizeof *pixels);
    for (size_t i = 0; i < n; i++)
        pixels[i] = (float)sin((double)i);
    int32_t *ids = calloc(info->text.context_length, sizeof *ids);
    for (size_t i = 0; i < info->text.context_length; i++)
        ids[i] = (int32_t)((i * 7 + 5) % info->text.vocab_size);
    if (pnb_model_encode_image(m, pixels, 1, &(pnb_encode_out){.mean = out, .skip_normalize = true},
                               &err) != PNB_OK ||
        pnb_model_encode_text(
            m, ids, 1, info->text.context_length,
            &(pnb_encode_out){.mean = out + info->embed_dim, .skip_normalize = true},
            &err) != PNB_OK)
        fail_msg("%s: %s", dir, err.text);
    free(pixels);
    free(ids);
    pnb_model_free(m);
}

static void check_round_trip(const char *name, const char *file, pnb_key_mapping there,
                             pnb_key_mapping back)
{
    static const char *const files[] = {"model.safetensors", "open_clip_model.safetensors",
                                        "model.safetensors"};
    char from[160], first[128], second[128], a[256], b[256], label[64];
    float x[3][256] = {{0}};
    snprintf(from, sizeof from, CASES "%s", name);
    snprintf(label, sizeof label, "%s-there", name);
    convert_or_fail(from, there, temp(first, label));
    snprintf(label, sizeof label, "%s-back", name);
    convert_or_fail(first, back, temp(second, label));
    snprintf(a, sizeof a, "%s/%s", from, file);
    snprintf(b, sizeof b, "%s/%s", second, files[back]);
    assert_same_file(a, b);
    embed(from, x[0]);
    embed(first, x[1]);
    embed(second, x[2]);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_equal(x[0], x[2], sizeof x[0]);
    char notes[1024];
    pnb_model_convert_opts opts = {.to = back};
    assert_int_equal(pnb_model_convert(ctx, from, second, &opts, notes, NULL), PNB_EXISTS);
}

static void test_round_trips_keep_every_bit(void **state)
{
    (void)state;
    check_round_trip("hf_first_eos", "model.safetensors", PNB_KEYS_OPEN_CLIP, PNB_KEYS_HF);
    check_round_trip("clip_quickgelu", "model.safetensors", PNB_KEYS_HF, PNB_KEYS_OPEN_CLIP);
    check_round_trip("siglip_tanh", "model.safetensors", PNB_KEYS_OPEN_CLIP, PNB_KEYS_HF);
    check_round_trip("open_clip_siglip", "open_clip_model.safetensors", PNB_KEYS_HF,
                     PNB_KEYS_OPEN_CLIP);
    check_round_trip("openai_state_dict", "model.safetensors", PNB_KEYS_HF,
                     PNB_KEYS_OPEN_CLIP); /* half precision stays half */
    check_round_trip("base", "model.safetensors", PNB_KEYS_PROLIP, PNB_KEYS_PROLIP);
}

static void test_conversions_that_would_lose_something_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        pnb_key_mapping to;
        const char *text;
    } bad[] = {{"base", PNB_KEYS_HF, "UNC"},
               {"base", PNB_KEYS_OPEN_CLIP, "UNC"},
               {"open_clip_average", PNB_KEYS_HF, "image pooling"}};
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        char from[160], out[128], notes[1024];
        pnb_error err = PNB_ERROR_INIT;
        pnb_model_convert_opts opts = {.to = bad[i].to};
        snprintf(from, sizeof from, CASES "%s", bad[i].name);
        pnb_status status = pnb_model_convert(ctx, from, temp(out, "refused"), &opts, notes, &err);
        if (status != PNB_UNSUPPORTED || strstr(err.text, bad[i].text) == NULL)
            fail_msg("%s: %s \"%s\"", bad[i].name, pnb_status_name(status), err.text);
        assert_false(pnb_model_is_dir(out));
    }
}

/* Saving keeps the names the model came in, and gives a bare state dict a configuration. */
static void test_saved_models_open_again(void **state)
{
    (void)state;
    static const char *const names[] = {"openai_state_dict", "hf_first_eos", "open_clip_siglip"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char from[160], out[128], label[48];
        float x[2][256] = {{0}};
        snprintf(from, sizeof from, CASES "%s", names[i]);
        snprintf(label, sizeof label, "saved-%zu", i);
        pnb_model *m = open_or_fail(from);
        assert_int_equal(pnb_model_save(m, temp(out, label), NULL), PNB_OK);
        pnb_model_free(m);
        embed(from, x[0]);
        embed(out, x[1]);
        assert_memory_equal(x[0], x[1], sizeof x[0]);
    }
}

/* ---- ProLIP from CLIP and SigLIP ---- */

static const float *weight(pnb_model *m, const char *name)
{
    pnb__param *p = pnb__model_find_param(m, name);
    if (p == NULL)
        fail_msg("%s is not there", name);
    return p->data;
}

static void test_prolip_from_clip(void **state)
{
    (void)state;
    char out[128], again[128];
    convert_or_fail(CASES "hf_first_eos", PNB_KEYS_PROLIP, temp(out, "prolip"));
    convert_or_fail(CASES "hf_first_eos", PNB_KEYS_PROLIP, temp(again, "prolip-again"));
    pnb_model *from = open_or_fail(CASES "hf_first_eos"), *to = open_or_fail(out);
    const pnb_model_info *info = pnb_model_get_info(to);
    assert_string_equal(info->family, "prolip");
    assert_true(info->is_probabilistic);
    /* text 16, embedding 20 wide: the projected mean does not fit the head, [UNC] does */
    assert_int_equal(info->text_unc_source, PNB_TEXT_UNC_TOKEN);
    const float *old = weight(from, "visual.positional_embedding");
    const float *fresh = weight(to, "visual.positional_embedding");
    assert_memory_equal(old, fresh, 24 * sizeof(float));
    assert_memory_equal(old + 24, fresh + 48, 4 * 24 * sizeof(float));
    assert_memory_equal(weight(from, "text.transformer.resblocks.1.attn.in_proj_weight"),
                        weight(to, "text.transformer.resblocks.1.attn.in_proj_weight"),
                        48 * 16 * sizeof(float));
    const float *matrix = weight(from, "text.text_projection");
    const float *linear = weight(to, "text.text_projection.weight");
    for (size_t i = 0; i < 20 * 16; i++)
        assert_true(linear[i] == matrix[i % 16 * 20 + i / 16]);
    assert_memory_equal(weight(to, "text.cls_emb"),
                        weight(from, "text.token_embedding.weight") + 5 * 16, 16 * sizeof(float));
    double squares = 0;
    for (size_t i = 0; i < 24; i++)
        squares += pow((double)weight(to, "visual.unc_embedding")[i], 2);
    assert_true(sqrt(squares / 24) > 0.004 && sqrt(squares / 24) < 0.02);
    assert_true(weight(to, "visual.uncertainty_proj.bias")[3] == -10);
    assert_int_equal(pnb__model_make_trainable(to, NULL), PNB_OK);
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__model_make_trainable(from, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "convert"));
    char a[256], b[256];
    snprintf(a, sizeof a, "%s/model.safetensors", out);
    snprintf(b, sizeof b, "%s/model.safetensors", again);
    assert_same_file(a, b); /* the seed decides */
    float mean[256];
    embed(out, mean);
    pnb_model_free(from);
    pnb_model_free(to);
}

/* Weights in 16 bits stay so while they are only encoded with; here they must be widened. */
static void test_prolip_from_halves(void **state)
{
    (void)state;
    static const char key[] = "visual.transformer.resblocks.0.mlp.c_fc.weight";
    char out[128];
    float wanted[256 * 64];
    pnb_safetensors *file = NULL;
    convert_or_fail(CASES "openai_state_dict", PNB_KEYS_PROLIP, temp(out, "prolip-halves"));
    assert_int_equal(pnb_safetensors_open(&file, CASES "openai_state_dict/model.safetensors", NULL),
                     PNB_OK);
    const pnb_array_view *view = pnb_safetensors_find(file, key);
    assert_int_equal(view->dtype, PNB_F16);
    assert_int_equal(pnb_array_to_f32(view, wanted, NULL), PNB_OK);
    pnb_model *to = open_or_fail(out);
    assert_memory_equal(weight(to, key), wanted, sizeof wanted);
    pnb_model_free(to);
    pnb_safetensors_free(file);
}

/* The same for a model of other sizes that starts from one in 16 bits. */
static void test_other_sizes_from_halves(void **state)
{
    (void)state;
    static const char key[] = "text.transformer.resblocks.0.mlp.c_fc.weight";
    char small[128];
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *whole = open_or_fail(CASES "base"), *to = NULL;
    assert_int_equal(pnb_model_quantize(whole, PNB_WEIGHTS_BF16, 7, NULL), PNB_OK);
    assert_int_equal(pnb_model_save(whole, temp(small, "base-halves"), NULL), PNB_OK);
    pnb_model *from = open_or_fail(small);
    assert_int_equal(pnb_model_init_json(&to, ctx, pnb_model_config_text(from), 1, NULL), PNB_OK);
    if (pnb__model_retarget(from, to, true, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(weight(to, key), weight(whole, key),
                        pnb__model_find_param(to, key)->n * sizeof(float));
    pnb_model_free(whole);
    pnb_model_free(from);
    pnb_model_free(to);
}

static void test_prolip_from_siglip(void **state)
{
    (void)state;
    char out[128];
    convert_or_fail(CASES "open_clip_siglip", PNB_KEYS_PROLIP, temp(out, "prolip-siglip"));
    pnb_model *from = open_or_fail(CASES "open_clip_siglip"), *to = open_or_fail(out);
    const float *old = weight(from, "visual.positional_embedding");
    const float *bias = weight(from, "visual.conv1.bias");
    const float *fresh = weight(to, "visual.positional_embedding");
    for (size_t i = 0; i < 4 * 24; i++) /* behind [CLS] and [UNC]; the convolution's bias inside */
        assert_true(fresh[48 + i] == old[i] + bias[i % 24]);
    assert_memory_equal(weight(from, "text.text_projection.bias"),
                        weight(to, "text.text_projection.bias"), 24 * sizeof(float));
    float mean[256];
    embed(out, mean);
    pnb_model_free(from);
    pnb_model_free(to);
}

/* As in released ProLIP models wherever widths allow it. */
static void test_prolip_reads_uncertainty_from_the_mean(void **state)
{
    (void)state;
    char out[128];
    convert_or_fail(CASES "siglip_tanh", PNB_KEYS_PROLIP, temp(out, "prolip-mean"));
    pnb_model *to = open_or_fail(out);
    assert_int_equal(pnb_model_get_info(to)->text_unc_source, PNB_TEXT_UNC_PROJECTED_MEAN);
    assert_non_null(strstr(pnb_model_config_text(to), "\"projected_mean\""));
    pnb_model_free(to);
}

/* ---- folders made from a case ---- */

typedef bool (*keep_fn)(pnb_array_view *view); /* may change it; false leaves it out */

static void make_folder(const char *dir, const char *weights, keep_fn keep, const char *config_name,
                        const char *config)
{
    pnb_safetensors *st = NULL;
    char path[256], from[256];
    snprintf(from, sizeof from, CASES "%s", weights);
    assert_int_equal(pnb_safetensors_open(&st, from, NULL), PNB_OK);
    pnb_array_view *views = calloc(pnb_safetensors_count(st) + 1, sizeof *views);
    size_t n = 0;
    for (size_t i = 0; i < pnb_safetensors_count(st); i++) {
        views[n] = *pnb_safetensors_at(st, i);
        if (keep == NULL || keep(&views[n]))
            n++;
    }
    assert_int_equal(pnb__make_dirs(dir, NULL), PNB_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_int_equal(pnb_safetensors_write(path, views, n, NULL, NULL), PNB_OK);
    free(views);
    pnb_safetensors_free(st);
    if (config == NULL)
        return;
    snprintf(path, sizeof path, "%s/%s", dir, config_name);
    assert_int_equal(pnb__write_file(path, config, strlen(config), NULL), PNB_OK);
}

static void refuse(const char *dir, pnb_status status, const char *text)
{
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status got = pnb_model_load(&m, ctx, dir, &err);
    if (got != status || strstr(err.text, text) == NULL)
        fail_msg("%s \"%s\", wanted %s and \"%s\"", pnb_status_name(got), err.text,
                 pnb_status_name(status), text);
    assert_null(m);
}

static bool vision_only(pnb_array_view *v)
{
    return pnb__starts_with(v->name, "vision_model.") ||
           strcmp(v->name, "visual_projection.weight") == 0;
}
static bool vision_bare(pnb_array_view *v)
{
    return pnb__starts_with(v->name, "vision_model.");
}
static bool text_only(pnb_array_view *v)
{
    return pnb__starts_with(v->name, "text_model.") ||
           strcmp(v->name, "text_projection.weight") == 0;
}

#define VISION_ALONE                                                                               \
    "{\"model_type\":\"clip_vision_model\",\"hidden_size\":24,\"num_attention_heads\":3,"          \
    "\"num_hidden_layers\":2,\"intermediate_size\":40,\"image_size\":16,\"patch_size\":8,"         \
    "\"hidden_act\":\"gelu\",\"projection_dim\":20}"
#define TEXT_ALONE                                                                                 \
    "{\"model_type\":\"clip_text_model\",\"hidden_size\":16,\"num_attention_heads\":2,"            \
    "\"num_hidden_layers\":2,\"intermediate_size\":56,\"vocab_size\":37,"                          \
    "\"max_position_embeddings\":9,\"hidden_act\":\"gelu\",\"eos_token_id\":5,"                    \
    "\"projection_dim\":20}"

static void test_towers_alone(void **state)
{
    (void)state;
    char dir[3][128];
    float whole[2][20], alone[24] = {0}, pixels[3 * 16 * 16];
    int32_t ids[9] = {4, 30, 36, 5, 5, 5, 5, 5, 5};
    for (size_t i = 0; i < PNB_COUNT(pixels); i++)
        pixels[i] = (float)cos((double)i);
    make_folder(temp(dir[0], "v"), "hf_first_eos/model.safetensors", vision_only, "config.json",
                VISION_ALONE);
    make_folder(temp(dir[1], "b"), "hf_first_eos/model.safetensors", vision_bare, "config.json",
                VISION_ALONE);
    make_folder(temp(dir[2], "t"), "hf_first_eos/model.safetensors", text_only, "config.json",
                TEXT_ALONE);
    pnb_model *m = open_or_fail(CASES "hf_first_eos");
    pnb_encode_out out[2] = {{.mean = whole[0], .skip_normalize = true},
                             {.mean = whole[1], .skip_normalize = true}};
    assert_int_equal(pnb_model_encode_image(m, pixels, 1, &out[0], NULL), PNB_OK);
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 9, &out[1], NULL), PNB_OK);
    pnb_model_free(m);
    pnb_encode_out one = {.mean = alone, .skip_normalize = true};
    pnb_error err = PNB_ERROR_INIT;
    m = open_or_fail(dir[0]);
    assert_int_equal(pnb_model_encode_image(m, pixels, 1, &one, NULL), PNB_OK);
    assert_memory_equal(alone, whole[0], sizeof whole[0]);
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 9, &one, &err), PNB_UNSUPPORTED);
    assert_false(pnb_model_get_info(m)->text.present);
    pnb_model_free(m);
    m = open_or_fail(dir[1]); /* stored without its projection */
    assert_int_equal(pnb_model_get_info(m)->embed_dim, 24);
    assert_int_equal(pnb_model_encode_image(m, pixels, 1, &one, NULL), PNB_OK);
    pnb_model_free(m);
    m = open_or_fail(dir[2]);
    assert_int_equal(pnb_model_encode_text(m, ids, 1, 9, &one, NULL), PNB_OK);
    assert_memory_equal(alone, whole[1], sizeof whole[1]);
    char back[128];
    convert_or_fail(dir[2], PNB_KEYS_HF, temp(back, "t-again"));
    pnb_model_free(open_or_fail(back));
    pnb_model_free(m);
}

/* ---- other sizes ---- */

static void test_positions_are_resized_on_request(void **state)
{
    (void)state;
    pnb_model *m = NULL, *old = open_or_fail(CASES "open_clip_average");
    pnb_model_load_opts opts = {.image_height = 32, .image_width = 16, .context_length = 12};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_model_load_with(&m, ctx, CASES "open_clip_average", &opts, &err), PNB_OK);
    const float *before = weight(old, "visual.positional_embedding");
    const float *after = weight(m, "visual.positional_embedding");
    assert_memory_equal(before, after, 32 * sizeof(float)); /* the class token keeps its row */
    double in[6 * 32], out[8 * 32], text_in[7 * 24], text_out[12 * 24];
    for (size_t i = 0; i < PNB_COUNT(in); i++)
        in[i] = (double)before[32 + i];
    pnb__grid_resize grid = {2, 3, 4, 2, 32, PNB__POSITIONS_PROLIP};
    assert_int_equal(pnb__positions_resize_grid(&grid, in, out, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(out); i++)
        assert_true(fabs((double)after[32 + i] - out[i]) < 1e-6);
    before = weight(old, "text.positional_embedding");
    after = weight(m, "text.positional_embedding");
    for (size_t i = 0; i < PNB_COUNT(text_in); i++)
        text_in[i] = (double)before[i];
    const pnb__text_resize rows = {.n_old = 7, .n_new = 12, .width = 24};
    assert_int_equal(pnb__positions_resize_text(&rows, text_in, text_out, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(text_out); i++)
        assert_true(fabs((double)after[i] - text_out[i]) < 1e-6);
    assert_int_equal(pnb_model_get_info(m)->vision.image_height, 32);
    char dir[128];
    assert_int_equal(pnb_model_save(m, temp(dir, "resized"), NULL), PNB_OK);
    float mean[256];
    embed(dir, mean); /* the saved configuration has the new sizes */
    pnb_model_free(m);
    pnb_model_free(old);
    opts.image_width = 0;
    assert_int_equal(pnb_model_load_with(&m, ctx, CASES "open_clip_average", &opts, &err), PNB_ARG);
    opts.image_width = 4;
    assert_int_equal(pnb_model_load_with(&m, ctx, CASES "open_clip_average", &opts, NULL), PNB_ARG);
}

/* ---- refused ---- */

static void test_configurations_that_could_be_misread(void **state)
{
    (void)state;
#define CLIP(vision, text, top)                                                                    \
    "{\"model_type\":\"clip\"," top                                                                \
    "\"projection_dim\":20,\"vision_config\":{\"hidden_size\":24,\"num_attention_heads\":3,"       \
    "\"num_hidden_layers\":2,\"intermediate_size\":40,\"image_size\":16," vision                   \
    "\"patch_size\":8},\"text_config\":{\"hidden_size\":16,\"num_attention_heads\":2,"             \
    "\"num_hidden_layers\":2,\"intermediate_size\":56,\"vocab_size\":37," text                     \
    "\"max_position_embeddings\":9}}"
#define OPEN_CLIP(vision, text, top)                                                               \
    "{\"model_cfg\":{\"embed_dim\":28," top "\"vision_cfg\":{" vision                              \
    "\"image_size\":16},\"text_cfg\":{" text "\"width\":24,\"heads\":2}}}"
    static const struct {
        const char *config;
        pnb_status status;
        const char *text;
    } bad[] = {
        {CLIP("", "\"eos_token_id\":5,\"hidden_actt\":\"gelu\",", ""), PNB_FORMAT, "hidden_actt"},
        {CLIP("", "\"eos_token_id\":5,", "\"quantization_config\":{},"), PNB_FORMAT,
         "quantization_config"},
        {CLIP("\"hidden_act\":\"relu\",", "\"eos_token_id\":5,", ""), PNB_UNSUPPORTED,
         "hidden_act"},
        {CLIP("", "", ""), PNB_ARG, "49407"},
        {CLIP("\"num_channels\":1,", "\"eos_token_id\":5,", ""), PNB_UNSUPPORTED, "num_channels"},
        {CLIP("\"layer_norm_eps\":2,", "\"eos_token_id\":5,", ""), PNB_ARG, "layer_norm_eps"},
        {CLIP("", "\"eos_token_id\":5,", "\"text_config_dict\":{\"hidden_size\":512},"), PNB_FORMAT,
         "disagree"},
        {"{\"model_type\":\"bert\"}", PNB_UNSUPPORTED, "bert"},
        {"{\"model_type\":\"clip\",\"projection_dim\":20}", PNB_FORMAT, "text_config"},
        {"{\"model_type\":\"siglip\",\"text_config\":{\"projection_size\":9},\"vision_config\":{}}",
         PNB_ARG, "768"},
        {OPEN_CLIP("\"layers\":[3,4,6,3],", "", ""), PNB_UNSUPPORTED, "ResNet"},
        {OPEN_CLIP("\"qk_norm\":true,", "", ""), PNB_UNSUPPORTED, "qk_norm"},
        {OPEN_CLIP("", "\"hf_model_name\":\"roberta-base\",", ""), PNB_UNSUPPORTED,
         "hf_model_name"},
        {OPEN_CLIP("", "\"pool_type\":\"eos\",", ""), PNB_ARG, "eos_id"},
        {OPEN_CLIP("", "\"pool_type\":\"mean\",", ""), PNB_UNSUPPORTED, "pool_type"},
        {"{\"embed_dim\":32,\"text_cfg\":{\"embed_cls\":true,\"embed_unc\":true,\"pool_type\":"
         "\"argmin\",\"width\":32,\"heads\":2},\"vision_cfg\":{\"embed_unc\":true,\"width\":64}}",
         PNB_UNSUPPORTED, "pool_type"},
        {OPEN_CLIP("", "\"text_arch\":\"modern\",", ""), PNB_UNSUPPORTED, "text_arch"},
        {OPEN_CLIP("\"timm_model_name\":\"convnext_base\",", "", ""), PNB_UNSUPPORTED,
         "convnext_base"},
        {OPEN_CLIP("\"timm_model_name\":\"vit_base_patch16_siglip_224\",\"timm_pool\":\"map\","
                   "\"timm_proj\":\"none\",",
                   "", ""),
         PNB_ARG, "img_size"},
        {OPEN_CLIP("\"act_kwargs\":{\"approximate\":\"tanh\"},", "", "\"quick_gelu\":true,"),
         PNB_UNSUPPORTED, "act_kwargs"},
        {OPEN_CLIP("", "", "\"multimodal_cfg\":{},"), PNB_UNSUPPORTED, "CoCa"},
    };
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        json_t *root = NULL;
        pnb__config config;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(
            pnb__json_load_bytes(&root, bad[i].config, strlen(bad[i].config), "config", NULL),
            PNB_OK);
        pnb_status status = pnb__config_read(&config, root, "config", &err);
        if (status != bad[i].status || strstr(err.text, bad[i].text) == NULL)
            fail_msg("case %zu: %s \"%s\", wanted \"%s\"", i, pnb_status_name(status), err.text,
                     bad[i].text);
        json_decref(root);
    }
}

static bool no_k_proj(pnb_array_view *v)
{
    return strcmp(v->name, "text_model.encoder.layers.1.self_attn.k_proj.weight") != 0;
}
static bool turned_projection(pnb_array_view *v)
{
    if (strcmp(v->name, "visual_projection.weight") == 0) {
        v->shape[0] = 24;
        v->shape[1] = 20;
    }
    return true;
}
static bool renamed_norm(pnb_array_view *v)
{
    if (strcmp(v->name, "vision_model.pre_layrnorm.bias") == 0)
        v->name = "vision_model.pre_layernorm.bias";
    return true;
}
static bool third_layer(pnb_array_view *v)
{
    if (strcmp(v->name, "text_model.embeddings.position_ids") == 0)
        v->name = "text_model.encoder.layers.2.extra";
    return true;
}
static bool resnet(pnb_array_view *v)
{
    if (strcmp(v->name, "visual.ln_post.bias") == 0)
        v->name = "visual.layer1.0.conv1.weight";
    return true;
}
static bool hf_text(pnb_array_view *v)
{
    if (strcmp(v->name, "token_embedding.weight") == 0)
        v->name = "text.transformer.embeddings.word_embeddings.weight";
    return true;
}
static bool unmarked(pnb_array_view *v)
{
    return strcmp(v->name, "input_resolution") != 0;
}
static bool foreign(pnb_array_view *v)
{
    return strcmp(v->name, "logit_scale") == 0;
}

static void test_weights_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *weights, *config; /* the case's own configuration, or NULL for none */
        keep_fn keep;
        pnb_status status;
        const char *text;
    } bad[] = {
        {"hf_first_eos", "config.json", no_k_proj, PNB_NOT_FOUND, "layers.1.self_attn.k_proj"},
        {"hf_first_eos", "config.json", turned_projection, PNB_SHAPE,
         "visual_projection.weight: file has (24,20), config needs (20,24)"},
        {"hf_first_eos", "config.json", renamed_norm, PNB_NOT_FOUND, "pre_layrnorm"},
        {"hf_first_eos", "config.json", third_layer, PNB_FORMAT, "layers.2.extra"},
        {"clip_quickgelu", "config.json", resnet, PNB_UNSUPPORTED, "ResNet"},
        {"clip_quickgelu", "config.json", hf_text, PNB_UNSUPPORTED, "text tower inside open_clip"},
        {"clip_quickgelu", NULL, NULL, PNB_NOT_FOUND, "QuickGELU"},
        {"openai_state_dict", NULL, unmarked, PNB_NOT_FOUND, "QuickGELU"},
        {"hf_first_eos", "config.json", foreign, PNB_UNSUPPORTED, "logit_scale"},
    };
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        char dir[128], name[32], path[256], *config = NULL;
        size_t size = 0;
        snprintf(name, sizeof name, "bad-%zu", i);
        if (bad[i].config != NULL) {
            snprintf(path, sizeof path, CASES "%s/%s", bad[i].weights, bad[i].config);
            assert_int_equal(pnb__read_file(path, 1 << 20, &config, &size, NULL), PNB_OK);
        }
        snprintf(path, sizeof path, "%s/model.safetensors", bad[i].weights);
        make_folder(temp(dir, name), path, bad[i].keep, bad[i].config, config);
        pnb__free(config);
        refuse(dir, bad[i].status, bad[i].text);
    }
}

static void test_texts_without_their_end_token(void **state)
{
    (void)state;
    pnb_model *m = open_or_fail(CASES "hf_first_eos");
    int32_t ids[18] = {4, 30, 36, 5, 5, 5, 5, 5, 5, 4, 9, 8, 36, 6, 12, 1, 2, 3};
    float mean[40];
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_model_encode_text(m, ids, 2, 9, &(pnb_encode_out){.mean = mean}, &err),
                     PNB_ARG);
    assert_non_null(strstr(err.text, "text 1 has no end token (id 5)"));
    pnb_model_free(m);
}

/* ---- the examination ---- */

typedef struct seen {
    size_t by_kind[4];
    char last[4][320];
} seen;

static void note(void *user, pnb__key_kind kind, const char *text)
{
    seen *s = user;
    s->by_kind[kind]++;
    snprintf(s->last[kind], sizeof s->last[kind], "%s", text);
}

static bool several_faults(pnb_array_view *v)
{
    if (strcmp(v->name, "vision_model.post_layernorm.bias") == 0)
        v->name = "vision_model.post_layernorm.offset";
    return turned_projection(v);
}

static void test_examination_names_every_key(void **state)
{
    (void)state;
    char dir[128], *config = NULL;
    size_t size = 0;
    seen s = {0};
    pnb__key_check e;
    assert_int_equal(
        pnb__read_file(CASES "hf_first_eos/config.json", 1 << 20, &config, &size, NULL), PNB_OK);
    make_folder(temp(dir, "faults"), "hf_first_eos/model.safetensors", several_faults,
                "config.json", config);
    pnb__free(config);
    assert_int_equal(pnb__model_check_keys(&e, ctx, dir, note, &s, NULL), PNB_OK);
    assert_int_equal(s.by_kind[PNB__KEY_MISSING], 1);
    assert_int_equal(s.by_kind[PNB__KEY_SHAPE], 1);
    assert_int_equal(s.by_kind[PNB__KEY_UNEXPECTED], 1);
    assert_int_equal(s.by_kind[PNB__KEY_IGNORED], 2);
    assert_non_null(strstr(s.last[PNB__KEY_UNEXPECTED], "post_layernorm.offset"));
    assert_int_equal(e.n_expected, e.n_found + 1);
    pnb__key_check_reset(&e);
    s = (seen){0};
    assert_int_equal(pnb__model_check_keys(&e, ctx, CASES "open_clip_siglip", note, &s, NULL),
                     PNB_OK);
    assert_int_equal(s.by_kind[PNB__KEY_MISSING] + s.by_kind[PNB__KEY_SHAPE] +
                         s.by_kind[PNB__KEY_UNEXPECTED] + s.by_kind[PNB__KEY_IGNORED],
                     0);
    assert_int_equal(e.n_expected, e.n_found);
    pnb__key_check_reset(&e);
}

#ifdef PNB_FAULTS
static void test_out_of_memory_is_clean(void **state)
{
    (void)state;
    static const pnb_key_mapping targets[] = {PNB_KEYS_OPEN_CLIP, PNB_KEYS_PROLIP};
    for (size_t t = 0; t < PNB_COUNT(targets); t++) {
        bool passed = false;
        for (long n = 0; !passed && n < 20000; n += n < 30 ? 1 : 83) {
            char out[128], name[32], notes[1024];
            pnb_error err = PNB_ERROR_INIT;
            pnb_model_convert_opts opts = {.to = targets[t]};
            snprintf(name, sizeof name, "oom-%zu-%ld", t, n);
            temp(out, name);
            pnb__alloc_fail_after(n);
            passed =
                pnb_model_convert(ctx, CASES "hf_first_eos", out, &opts, notes, &err) == PNB_OK;
            pnb__alloc_fail_after(-1);
        }
        assert_true(passed);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips_keep_every_bit),
        cmocka_unit_test(test_conversions_that_would_lose_something_are_refused),
        cmocka_unit_test(test_saved_models_open_again),
        cmocka_unit_test(test_prolip_from_clip),
        cmocka_unit_test(test_prolip_from_halves),
        cmocka_unit_test(test_other_sizes_from_halves),
        cmocka_unit_test(test_prolip_from_siglip),
        cmocka_unit_test(test_prolip_reads_uncertainty_from_the_mean),
        cmocka_unit_test(test_towers_alone),
        cmocka_unit_test(test_positions_are_resized_on_request),
        cmocka_unit_test(test_configurations_that_could_be_misread),
        cmocka_unit_test(test_weights_that_do_not_fit_are_named),
        cmocka_unit_test(test_texts_without_their_end_token),
        cmocka_unit_test(test_examination_names_every_key),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_out_of_memory_is_clean),
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
