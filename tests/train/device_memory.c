/* Nothing above the kernels dereferences what mem_alloc gave: a run of training with validation and
 * checkpoints, loading, encoding, quantizing, saving and making a ProLIP model of a CLIP, all on
 * memory that only kernels can reach (tests/kernels/guarded.h), to the bits of the same run on
 * ordinary memory. And what a mem_ slot reports reaches whoever asked for the work: each of them
 * fails at its first, second, ... call, and the status is NOMEM for memory and IO for the rest. */
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
    guarded_use(f->ctx, is_guarded);
    o.val_data = f->val;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    guarded_use(f->ctx, false);
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
static pnb_status encode(const pnb_ctx *ctx, const char *dir, const char *out, int bits,
                         float *rows, pnb_error *err)
{
    pnb_model *model = NULL;
    pnb_status status;
    float pixels[2 * PIXELS];
    const int32_t ids[24] = {2, 5, 7, 11, 3};
    for (size_t i = 0; i < PNB_COUNT(pixels); i++)
        pixels[i] = (float)(i % 17) * 0.1f - 0.8f;
    PNB_TRY(pnb_model_load(&model, ctx, dir, err));
    if (bits != 0)
        PNB_TRY(pnb_model_quantize(model, bits == 16 ? PNB_WEIGHTS_BF16 : PNB_WEIGHTS_INT8,
                                   bits == 16 ? 7 : bits, err));
    for (int again = 0; again < 3; again++) { /* the second run packs */
        const pnb_encode_out image = {.mean = rows, .log_var = rows + 2 * D};
        const pnb_encode_out text = {.mean = rows + 4 * D, .log_var = rows + 6 * D};
        PNB_TRY(pnb_model_encode_image(model, pixels, 2, &image, err));
        PNB_TRY(pnb_model_encode_text(model, ids, 2, 12, &text, err));
    }
    PNB_TRY(pnb_model_save(model, out, err));
done:
    pnb_model_free(model);
    return status;
}

static void test_encoding(void **state)
{
    const fixture *f = *state;
    char *dir = file_of(f, "plain", "");
    for (int bits = 0; bits <= 16; bits += 8) {
        float rows[2][8 * D];
        char *out[2], *weights[2];
        for (int i = 0; i < 2; i++) {
            out[i] = pnb__format("%s/model-%d-%d", f->dir, bits, i);
            guarded_use(f->ctx, i == 1);
            ASSERT_OK(encode(f->ctx, dir, out[i], bits, rows[i], &err));
            weights[i] = pnb__path_join(out[i], "model.safetensors");
        }
        guarded_use(f->ctx, false);
        assert_int_equal(guarded.n, 0);
        assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
        assert_same_files(weights[0], weights[1]);
        for (int i = 0; i < 2; i++) {
            pnb__free(out[i]);
            pnb__free(weights[i]);
        }
    }
    pnb__free(dir);
}

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"

static pnb_status convert(const pnb_ctx *ctx, const char *dir, const char *out, pnb_error *err)
{
    char notes[1024];
    const pnb_model_convert_opts opts = {.to = PNB_KEYS_PROLIP, .seed = 7};
    return pnb_model_convert(ctx, dir, out, &opts, notes, err);
}

/* From an end token with a projection, from half precision, and from a bias of the patches. */
static void test_conversion(void **state)
{
    static const char *const names[] = {"hf_first_eos", "openai_state_dict", "open_clip_siglip"};
    const fixture *f = *state;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *from = pnb__format(CASES "%s", names[i]), *weights[2];
        for (int j = 0; j < 2; j++) {
            char *out = pnb__format("%s/prolip-%zu-%d", f->dir, i, j);
            guarded_use(f->ctx, j == 1);
            ASSERT_OK(convert(f->ctx, from, out, &err));
            weights[j] = pnb__path_join(out, "model.safetensors");
            pnb__free(out);
        }
        guarded_use(f->ctx, false);
        assert_int_equal(guarded.n, 0);
        assert_same_files(weights[0], weights[1]);
        pnb__free(weights[0]);
        pnb__free(weights[1]);
        pnb__free(from);
    }
}

/* ---- slots that fail ---- */

/* A whole piece of work on a context; `tag` makes its files its own. */
typedef pnb_status (*work_fn)(const fixture *f, const char *tag, pnb_error *err);

static pnb_status encode_once(const fixture *f, const char *tag, int bits, pnb_error *err)
{
    float rows[8 * D];
    char *dir = file_of(f, "plain", ""), *out = pnb__format("%s/encode-%s", f->dir, tag);
    pnb_status status = encode(f->ctx, dir, out, bits, rows, err);
    pnb__free(dir);
    pnb__free(out);
    return status;
}

static pnb_status encode_f32(const fixture *f, const char *tag, pnb_error *err)
{
    return encode_once(f, tag, 0, err);
}

static pnb_status encode_int8(const fixture *f, const char *tag, pnb_error *err)
{
    return encode_once(f, tag, 8, err);
}

static pnb_status encode_bf16(const fixture *f, const char *tag, pnb_error *err)
{
    return encode_once(f, tag, 16, err);
}

static pnb_status convert_halves(const fixture *f, const char *tag, pnb_error *err)
{
    char *out = pnb__format("%s/convert-%s", f->dir, tag);
    pnb_status status = convert(f->ctx, CASES "openai_state_dict", out, err);
    pnb__free(out);
    return status;
}

/* One step with validation and a checkpoint; by micro-batches gradients add up in memory of their
 * own. */
static pnb_status train_once(const fixture *f, const char *tag, int accum_freq, pnb_error *err)
{
    char *name = pnb__format("train-%d-%s", accum_freq, tag);
    pnb_train_opts o = fixture_opts(f, name);
    pnb_train_result r;
    o.val_data = f->val;
    o.max_steps = 1;
    o.workers = 0;
    o.accum_freq = accum_freq;
    pnb_status status = pnb_train(f->ctx, &o, &r, err);
    pnb__free(name);
    return status;
}

static pnb_status train_whole(const fixture *f, const char *tag, pnb_error *err)
{
    return train_once(f, tag, 1, err);
}

static pnb_status train_micro(const fixture *f, const char *tag, pnb_error *err)
{
    return train_once(f, tag, 2, err);
}

/* Memory for packed weights makes products faster and nothing else: where there is none the work
 * goes on. Everything else must be heard of. */
static void check_failure(const fixture *f, work_fn work, guarded_slot slot, size_t at,
                          size_t *n_unheard)
{
    pnb_error err = PNB_ERROR_INIT;
    char tag[48];
    snprintf(tag, sizeof tag, "%d-%zu", (int)slot, at);
    guarded_fail(slot, at);
    pnb_status status = work(f, tag, &err);
    pnb_status wanted = slot == GUARDED_ALLOC ? PNB_NOMEM : PNB_IO;
    bool failed = guarded.has_failed;
    guarded_fail(slot, SIZE_MAX);
    assert_true(failed);
    assert_int_equal(guarded.n, 0);
    if (status == PNB_OK && slot == GUARDED_ALLOC) {
        (*n_unheard)++;
        return;
    }
    if (status != wanted ||
        strstr(err.text, slot == GUARDED_ALLOC ? "out of memory" : "device: ") == NULL)
        fail_msg("call %zu of slot %d: %s \"%s\"", at, (int)slot, pnb_status_name(status),
                 err.text);
}

/* Every call of every slot where there are few, else `points` from the first to the last. */
static void fail_each(const fixture *f, work_fn work, size_t points, const bool used[N_GUARDED])
{
    size_t n_calls[N_GUARDED], n_unheard = 0;
    guarded_use(f->ctx, true);
    guarded_fail(GUARDED_ALLOC, SIZE_MAX);
    ASSERT_OK(work(f, "whole", &err));
    memcpy(n_calls, guarded.n_asked, sizeof n_calls);
    for (int slot = 0; slot < N_GUARDED; slot++) {
        size_t n = n_calls[slot], tried = PNB_MIN(n, points);
        assert_true((n > 0) == used[slot]);
        for (size_t i = 0; i < tried; i++)
            check_failure(f, work, (guarded_slot)slot, tried < 2 ? 0 : i * (n - 1) / (tried - 1),
                          &n_unheard);
    }
    guarded_use(f->ctx, false);
    assert_true(n_unheard < PNB_MIN(points, n_calls[GUARDED_ALLOC]));
}

static void test_failures_of_encoding(void **state)
{
    static const bool used[N_GUARDED] = {
        [GUARDED_ALLOC] = true, [GUARDED_WRITE] = true, [GUARDED_READ] = true};
    fail_each(*state, encode_f32, 60, used);
    fail_each(*state, encode_int8, 60, used);
    fail_each(*state, encode_bf16, 60, used);
}

static void test_failures_of_training(void **state)
{
    static const bool used[N_GUARDED] = {[GUARDED_ALLOC] = true,
                                         [GUARDED_WRITE] = true,
                                         [GUARDED_READ] = true,
                                         [GUARDED_ZERO] = true};
    fail_each(*state, train_whole, 12, used);
    fail_each(*state, train_micro, 12, used);
}

static void test_failures_of_conversion(void **state)
{
    static const bool used[N_GUARDED] = {[GUARDED_ALLOC] = true,
                                         [GUARDED_WRITE] = true,
                                         [GUARDED_READ] = true,
                                         [GUARDED_COPY] = true};
    fail_each(*state, convert_halves, 40, used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training),
                                       cmocka_unit_test(test_encoding),
                                       cmocka_unit_test(test_conversion),
                                       cmocka_unit_test(test_failures_of_encoding),
                                       cmocka_unit_test(test_failures_of_training),
                                       cmocka_unit_test(test_failures_of_conversion)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
