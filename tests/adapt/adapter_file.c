/* The folder of an adapter: it comes back with the same bits, its hash is that of its config.json,
 * and folders from strangers are refused in words. */
#include "tests/adapt/world.h"

#include "adapt/adapter.h"

static const char *const methods[] = {"conformity", "whitened"};

static pnb_adapter *learn(pnb_ctx *ctx, const char *method)
{
    pnb_embeddings *images = unit_set("image", 12, 3, 1), *texts = unit_set("text", 12, 3, 2);
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    opts.uncertain = PNB_ADAPT_COMMON;
    images->info.adapters = texts->info.adapters =
        (pnb_adapter_links){.n = 1, .items = {{"heads", TWOS, false, false}}};
    snprintf(images->info.preprocess, sizeof images->info.preprocess, "bicubic 224");
    assert_ok(pnb_adapter_fit(&a, ctx, method,
                              &(pnb_adapter_data){.images = images, .texts = texts}, &opts, &err),
              &err);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    return a;
}

static bool is_adapter_dir(const char *dir)
{
    bool is_adapter = false;
    assert_int_equal(pnb_adapter_is_dir(&is_adapter, dir, NULL), PNB_OK);
    return is_adapter;
}

static void folders_come_back(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        pnb_adapter *a = learn(ctx, methods[m]), *back = NULL;
        pnb_embeddings *set = unit_set("image", 5, 3, 7), *x = NULL, *y = NULL;
        pnb_adapter_facts was, is;
        pnb_error err = PNB_ERROR_INIT;
        pnb__sha256 hash;
        char hex[65], path[600], *config = NULL;
        size_t size = 0;
        assert_ok(pnb_adapter_save(a, scratch_path(s, "a"), &err), &err);
        assert_true(is_adapter_dir(s->path));
        assert_ok(pnb_adapter_load(&back, ctx, s->path, &err), &err);
        pnb_adapter_describe(a, &was);
        pnb_adapter_describe(back, &is);
        assert_ptr_equal(is.about, was.about);
        assert_int_equal(is.opts->uncertain, PNB_ADAPT_COMMON);
        assert_int_equal(is.side[0].n_rows, 12);
        assert_string_equal(is.side[0].origin->preprocess, "bicubic 224");
        assert_int_equal(is.side[1].origin->adapters.n, 1);
        assert_int_equal(is.n_figures, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(strncmp(is.figures[i].name, i == 0 ? "image_" : "text_", 5), 0);
            assert_string_equal(is.figures[i].name, was.figures[i].name);
            assert_true(is.figures[i].value == was.figures[i].value && is.figures[i].value > 0);
        }
        assert_string_equal(is.link->sha256, was.link->sha256);
        snprintf(path, sizeof path, "%s/config.json", s->path);
        assert_ok(pnb__read_file(path, 1 << 20, &config, &size, &err), &err);
        pnb__sha256_init(&hash);
        pnb__sha256_update(&hash, config, size);
        pnb__sha256_hex(&hash, hex);
        assert_string_equal(hex, is.link->sha256);
        pnb__free(config);
        set->info.weights_sha256[0] = '\0';
        assert_ok(pnb_adapter_apply(&x, a, PNB_ADAPTER_IMAGES, set, &err), &err);
        assert_ok(pnb_adapter_apply(&y, back, PNB_ADAPTER_IMAGES, set, &err), &err);
        assert_memory_equal(x->log_var, y->log_var, 5 * 3 * sizeof(float));
        /* an adapter replaces an adapter */
        assert_ok(pnb_adapter_save(back, scratch_path(s, "a"), &err), &err);
        pnb_embeddings_free(set);
        pnb_embeddings_free(x);
        pnb_embeddings_free(y);
        pnb_adapter_free(back);
        pnb_adapter_free(a);
        remove_folder(s, "a");
    }
    pnb_ctx_free(ctx);
}

/* A model's folder has files of the same names. */
static void what_is_not_ours_stays(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    pnb_adapter *a = learn(ctx, "conformity"), *back = NULL;
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        pnb_error err = PNB_ERROR_INIT;
        char path[600];
        assert_int_equal(pnb__make_dirs(scratch_path(s, "m"), NULL), PNB_OK);
        snprintf(path, sizeof path, "%s/%s", s->path, names[i]);
        assert_int_equal(pnb__write_file(path, "{}", 2, NULL), PNB_OK);
        assert_false(is_adapter_dir(s->path));
        assert_failed(pnb_adapter_save(a, s->path, &err), &err, PNB_EXISTS, "no adapter's");
        pnb_error_reset(&err);
        assert_true(pnb_adapter_load(&back, ctx, s->path, &err) != PNB_OK);
        assert_null(back);
        remove_folder(s, "m");
    }
    pnb_adapter_free(a);
    pnb_ctx_free(ctx);
}

/* The config of a saved adapter with `from` replaced by `to`, read beside its arrays. */
static pnb_status read_changed(scratch *s, pnb_ctx *ctx, const char *from, const char *to,
                               pnb_error *err)
{
    char path[600], *config = NULL, text[4096];
    size_t size = 0;
    pnb_adapter *back = NULL;
    snprintf(path, sizeof path, "%s/a/config.json", s->dir);
    assert_int_equal(pnb__read_file(path, 4000, &config, &size, NULL), PNB_OK);
    const char *at = strstr(config, from);
    if (at == NULL)
        fail_msg("no '%s' in %s", from, config);
    int n =
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    pnb_safetensors *file = NULL;
    snprintf(path, sizeof path, "%s/a/model.safetensors", s->dir);
    assert_int_equal(pnb_safetensors_open(&file, path, NULL), PNB_OK);
    pnb_status status = pnb__adapter_read(&back, ctx, text, (size_t)n, file, "config.json", err);
    assert_true((status == PNB_OK) == (back != NULL));
    pnb_adapter_free(back);
    pnb_safetensors_free(file);
    pnb__free(config);
    return status;
}

static void configs_from_strangers(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    static const struct {
        const char *from, *to;
        pnb_status status;
        const char *says;
    } cases[] = {
        {"penumbra-adapter", "penumbra-embeddings", PNB_FORMAT, "an adapter's is"},
        {"\"version\": 1", "\"version\": 2", PNB_UNSUPPORTED, "version 2"},
        {"\"method\": \"whitened\"", "\"method\": \"dream\"", PNB_UNSUPPORTED,
         "'dream' is unknown"},
        {"\"method\": \"whitened\"", "\"method\": 3", PNB_FORMAT, "method"},
        {"gaussian_diag", "cauchy", PNB_UNSUPPORTED, "\"cauchy\" is not known"},
        {"gaussian_diag", "vmf", PNB_FORMAT, "family vmf, whitened makes gaussian_diag"},
        {"\"dim_out\": 3", "\"dim_out\": 1", PNB_FORMAT, "keeps the width"},
        {"\"dim_out\": 3", "\"dim_out\": 4", PNB_FORMAT, "keeps the width"},
        {"\"common\"", "\"odd\"", PNB_UNSUPPORTED, "uncertain is \"odd\""},
        {"\"shrinkage\": null", "\"shrinkage\": \"x\"", PNB_FORMAT, "shrinkage"},
        {"\"figures\": {", "\"figures\": {\"x\": \"y\", ", PNB_FORMAT, "figures hold \"x\""},
        {"\"figures\": {", "\"figures\": {\"a-name-of-more-than-thirty-one-bytes\": 1, ",
         PNB_FORMAT, "at most 31 bytes"},
        {"\"figures\": {",
         "\"figures\": {\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,"
         "\"j\":1,\"k\":1,\"l\":1,\"m\":1,\"n\":1,\"o\":1, ",
         PNB_FORMAT, "at most 16 numbers"},
        {"\"dim\": 3,\n    \"dim_out\": 3", "\"dim\": 4, \"dim_out\": 4", PNB_SHAPE, "image.basis"},
        {"\"dim\": 3", "\"dim\": 0", PNB_FORMAT, "dim"},
        {"\"dim_out\": 3", "\"dimout\": 3", PNB_FORMAT, "missing"},
        {"\"rows\": 12", "\"rows\": -1", PNB_FORMAT, "rows"},
        {"\"name\": \"heads\"", "\"name\": \"\"", PNB_FORMAT, "is called"},
        {"\"preprocess\": \"bicubic 224\"", "\"preprocess\": 4", PNB_FORMAT, "preprocess"},
        {"\"arrays_sha256\": \"", "\"arrays_sha256\": \"0", PNB_FORMAT, "65 bytes"},
        {"\"arrays_sha256\"", "\"arrays\"", PNB_FORMAT, "not those it was written with"},
        {"{", "[", PNB_FORMAT, ""},
    };
    pnb_adapter *a = learn(ctx, "whitened");
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_save(a, scratch_path(s, "a"), &err), &err);
    assert_ok(read_changed(s, ctx, "\"rows\": 12", "\"rows\": 13", &err), &err);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error_reset(&err);
        assert_failed(read_changed(s, ctx, cases[i].from, cases[i].to, &err), &err, cases[i].status,
                      cases[i].says);
    }
    pnb_adapter_free(a);
    remove_folder(s, "a");
    pnb_ctx_free(ctx);
}

/* A head writes rows as wide as it was declared, whatever the file says of them. */
static void widths_of_heads_from_strangers(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    pnb_embeddings *images = unit_set("image", 6, 3, 1), *texts = unit_set("text", 6, 3, 2);
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    pnb_truth *truth = NULL;
    pnb_error err = PNB_ERROR_INIT;
    opts.hidden = 4;
    opts.steps = 1;
    assert_int_equal(pnb_truth_create_aligned(&truth, 6, NULL), PNB_OK);
    const pnb_adapter_data data = {.images = images, .texts = texts, .truth = truth};
    static const char *const heads[] = {"pfe", "probvlm", "asymvlm-vmf", "deterministic"};
    for (size_t m = 0; m < PNB_COUNT(heads); m++) {
        pnb_adapter *a = NULL;
        assert_ok(pnb_adapter_fit(&a, ctx, heads[m], &data, &opts, &err), &err);
        assert_ok(pnb_adapter_save(a, scratch_path(s, "a"), &err), &err);
        assert_failed(read_changed(s, ctx, "\"dim_out\": 3", "\"dim_out\": 2", &err), &err,
                      PNB_FORMAT, "to width 2");
        pnb_error_reset(&err);
        pnb_adapter_free(a);
        remove_folder(s, "a");
    }
    pnb_truth_free(truth);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    pnb_ctx_free(ctx);
}

/* Arrays that were changed after the writing, and arrays that cannot be applied. */
static void arrays_from_strangers(void **state)
{
    scratch *s = *state;
    pnb_ctx *ctx = make_ctx();
    pnb_adapter *a = learn(ctx, "conformity"), *back = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char path[600], *bytes = NULL;
    size_t size = 0;
    assert_ok(pnb_adapter_save(a, scratch_path(s, "a"), &err), &err);
    snprintf(path, sizeof path, "%s/model.safetensors", s->path);
    assert_ok(pnb__read_file(path, 1 << 20, &bytes, &size, &err), &err);
    bytes[size - 1] ^= 1;
    assert_ok(pnb__write_file(path, bytes, size, &err), &err);
    assert_failed(pnb_adapter_load(&back, ctx, s->path, &err), &err, PNB_FORMAT,
                  "not those it was written with");
    pnb_error_reset(&err);
    assert_int_equal(unlink(path), 0);
    assert_failed(pnb_adapter_load(&back, ctx, s->path, &err), &err, PNB_NOT_FOUND,
                  "model.safetensors");
    pnb__free(bytes);
    pnb_adapter_free(a);
    remove_folder(s, "a");
    pnb_ctx_free(ctx);
}

#ifdef PNB_FAULTS
static pnb_ctx *fault_ctx;

static pnb_status whole_life(scratch *s, pnb_error *err)
{
    float mean[] = {1, 0, 0, 1, 0.6f, 0.8f};
    pnb_embeddings set = {.family = PNB_POINT, .n = 3, .dim = 2, .mean = mean}, *out = NULL;
    const pnb_adapter_data data = {.images = &set};
    pnb_adapter *a = NULL, *back = NULL;
    pnb_status status;
    PNB_TRY(pnb_adapter_fit(&a, fault_ctx, "whitened", &data, NULL, err));
    PNB_TRY(pnb_adapter_save(a, scratch_path(s, "a"), err));
    PNB_TRY(pnb_adapter_load(&back, fault_ctx, s->path, err));
    PNB_TRY(pnb_adapter_apply(&out, back, PNB_ADAPTER_IMAGES, &set, err));
    status = pnb_adapter_apply_to(scratch_path(s, "o.safetensors"), back, PNB_ADAPTER_IMAGES, &set,
                                  NULL, err);
done:
    pnb_embeddings_free(out);
    pnb_adapter_free(a);
    pnb_adapter_free(back);
    return status;
}

static void out_of_memory(void **state)
{
    fault_ctx = make_ctx();
    fail_every_allocation(whole_life, *state);
    pnb_ctx_free(fault_ctx);
    remove_folder(*state, "a");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_come_back),      cmocka_unit_test(what_is_not_ours_stays),
        cmocka_unit_test(configs_from_strangers), cmocka_unit_test(widths_of_heads_from_strangers),
        cmocka_unit_test(arrays_from_strangers),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
