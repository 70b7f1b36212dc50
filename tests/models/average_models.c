/* The mean of weights: shares that are none, models that do not fit. */
#include "models/model.h"
#include "tests/models/scratch.h"

static const char config[] =
    "{\"embed_dim\":8,\"vision_cfg\":{\"image_size\":8,\"patch_size\":4,\"layers\":1,\"width\":8,"
    "\"head_width\":4},\"text_cfg\":{\"layers\":1,\"width\":8,\"heads\":2,\"vocab_size\":20,"
    "\"context_length\":6}}";

static void write_model(const char *dir, const char *json, uint64_t seed)
{
    pnb_model *m = NULL;
    assert_int_equal(pnb_model_init_json(&m, ctx, json, seed, NULL), PNB_OK);
    assert_int_equal(pnb_model_save(m, dir, NULL), PNB_OK);
    pnb_model_free(m);
}

static void expect(const char *const *dirs, const double *shares, size_t n, pnb_status status,
                   const char *words)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = NULL;
    assert_int_equal(pnb_model_average(&m, ctx, dirs, shares, n, &err), status);
    if (status != PNB_OK && (m != NULL || strstr(err.text, words) == NULL))
        fail_msg("%s", err.text);
    pnb_model_free(m);
}

static void test_fits(void **state)
{
    char *dirs[3];
    static const char *const names[] = {"a", "b", "quick"};
    (void)state;
    for (int i = 0; i < 3; i++)
        dirs[i] = temp_path(names[i]);
    write_model(dirs[0], config, 1);
    write_model(dirs[1], config, 2);
    char *quick = pnb__format("{\"quick_gelu\":true,%s", config + 1); /* the same shapes */
    write_model(dirs[2], quick, 3);
    const char *const two[] = {dirs[0], dirs[1]}, *const other[] = {dirs[0], dirs[2]};
    expect(two, (double[]){0.5, 0.5}, 2, PNB_OK, "");
    expect(two, (double[]){1.5, -0.5}, 2, PNB_OK, "");
    expect(two, (double[]){1}, 1, PNB_ARG, "two models and more");
    expect(two, (double[]){0.5, 0.6}, 2, PNB_ARG, "add up to 1.1");
    expect(two, (double[]){0.0 / 0.0, 1}, 2, PNB_ARG, "share of model 0");
    expect(other, (double[]){0.5, 0.5}, 2, PNB_SHAPE, "is not that of the first model");
    for (int i = 0; i < 3; i++)
        pnb__free(dirs[i]);
    pnb__free(quick);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fits)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
