/* Nothing above the kernels dereferences what mem_alloc gave: a run of training with validation and
 * checkpoints, a resume, loading, encoding, quantizing and saving, all on memory that only kernels
 * can reach (tests/kernels/guarded.h), to the bits of the same run on ordinary memory. */
#include "tests/train/fixture.h"

#include "penumbra/model.h"
#include "tests/kernels/guarded.h"

static char *file_of(const fixture *f, const char *run, const char *file)
{
    char *path = pnb__format("%s/%s/checkpoints/epoch_2/%s", f->logs, run, file);
    assert_non_null(path);
    return path;
}

static void assert_same_files(const char *a, const char *b)
{
    char *data[2];
    size_t size[2];
    ASSERT_OK(pnb__read_file(a, (size_t)1 << 30, &data[0], &size[0], &err));
    ASSERT_OK(pnb__read_file(b, (size_t)1 << 30, &data[1], &size[1], &err));
    if (size[0] != size[1] || memcmp(data[0], data[1], size[0]) != 0)
        fail_msg("%s and %s differ", a, b);
    pnb__free(data[0]);
    pnb__free(data[1]);
}

static void run_training(const fixture *f, const char *name, bool is_guarded)
{
    pnb_train_opts o = fixture_opts(f, name);
    pnb_train_result r;
    f->ctx->column = is_guarded ? guarded_column : NULL;
    o.val_data = f->val;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    f->ctx->column = NULL;
    assert_int_equal(r.step, 10);
}

static void test_training(void **state)
{
    const fixture *f = *state;
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    run_training(f, "plain", false);
    assert_int_equal(guarded.n_calls, 0);
    run_training(f, "guarded", true);
    assert_true(guarded.n_calls > 1000 && guarded.most_bytes > 0);
    assert_int_equal(guarded.n, 0); /* all of it was given back */
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        char *a = file_of(f, "plain", files[i]), *b = file_of(f, "guarded", files[i]);
        assert_same_files(a, b);
        pnb__free(a);
        pnb__free(b);
    }
}

enum { PIXELS = 3 * 16 * 16, D = 16 };

/* Both towers of the model in the folder, and the model written again. */
static void encode(const fixture *f, const char *out, int bits, float *rows)
{
    pnb_model *model = NULL;
    char *dir = file_of(f, "plain", "");
    float pixels[2 * PIXELS];
    const int32_t ids[24] = {2, 5, 7, 11, 3};
    for (size_t i = 0; i < PNB_COUNT(pixels); i++)
        pixels[i] = (float)(i % 17) * 0.1f - 0.8f;
    ASSERT_OK(pnb_model_load(&model, f->ctx, dir, &err));
    if (bits != 0)
        ASSERT_OK(pnb_model_quantize(model, PNB_STORE_INT8, bits, &err));
    for (int again = 0; again < 3; again++) { /* the second run packs */
        const pnb_encode_out image = {.mean = rows, .log_var = rows + 2 * D};
        const pnb_encode_out text = {.mean = rows + 4 * D, .log_var = rows + 6 * D};
        ASSERT_OK(pnb_model_encode_image(model, pixels, 2, &image, &err));
        ASSERT_OK(pnb_model_encode_text(model, ids, 2, 12, &text, &err));
    }
    ASSERT_OK(pnb_model_save(model, out, &err));
    pnb_model_free(model);
    pnb__free(dir);
}

static void test_encoding(void **state)
{
    const fixture *f = *state;
    for (int bits = 0; bits <= 8; bits += 8) {
        float rows[2][8 * D];
        char *out[2], *weights[2];
        for (int i = 0; i < 2; i++) {
            out[i] = pnb__format("%s/model-%d-%d", f->dir, bits, i);
            f->ctx->column = i == 1 ? guarded_column : NULL;
            encode(f, out[i], bits, rows[i]);
            weights[i] = pnb__path_join(out[i], "model.safetensors");
        }
        f->ctx->column = NULL;
        assert_int_equal(guarded.n, 0);
        assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
        assert_same_files(weights[0], weights[1]);
        for (int i = 0; i < 2; i++) {
            pnb__free(out[i]);
            pnb__free(weights[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training),
                                       cmocka_unit_test(test_encoding)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
