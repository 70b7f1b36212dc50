/* Mixed precision, by the processor and, where it was built, by the column of GPUs on emulated
 * threads: a whole training whose values between products are bfloat16. It learns what floats
 * learn, its towers use the halves that they can, and an interrupted run goes on in the same bits.
 */
#include <math.h>
#include <signal.h>

#include "tests/train/fixture.h"

#include "kernels/kernels.h"

#ifdef PNB_TEST_CUDA
extern void pnb__cuda_overwrite(pnb__kernels *k);

static void emulated_column(pnb__kernels *k)
{
    if (k->real == PNB__F32)
        pnb__cuda_overwrite(k);
}
#endif

enum { N_STEPS = 5, STOP_AT = 3 };

typedef struct wish {
    void (*column)(pnb__kernels *k); /* NULL: the processor's */
    bool resumes, is_wide; /* is_wide: a batch whose values outweigh workspaces and gradients */
    pnb_train_precision precision;
    volatile sig_atomic_t *stop; /* NULL: to the end */
} wish;

static void stop_at(void *user, const pnb_train_progress *p)
{
    volatile sig_atomic_t *stop = user;
    *stop = p->step >= STOP_AT;
}

static pnb_train_result train(const fixture *f, const char *name, wish w)
{
    pnb_train_opts o = fixture_opts(f, name);
    pnb_train_result r;
    pnb_error err = PNB_ERROR_INIT;
    o.precision = w.precision;
    o.epochs = 1;
    o.batch_size = w.is_wide ? 40 : o.batch_size;
    o.resume = w.resumes ? "latest" : NULL;
    o.stop = w.stop;
    o.progress = w.stop != NULL ? stop_at : NULL;
    o.progress_user = (void *)(uintptr_t)w.stop;
    f->ctx->column = w.column;
    pnb_status status = pnb_train(f->ctx, &o, &r, &err);
    f->ctx->column = NULL;
    if (status != (w.stop != NULL ? PNB_INTERRUPTED : PNB_OK))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(r.step, w.is_wide ? 1 : w.stop != NULL ? STOP_AT : N_STEPS);
    return r;
}

static const wish on_host = {.precision = PNB_TRAIN_AMP_BF16};
static const wish columns[] = {
    {.precision = PNB_TRAIN_AMP_BF16},
#ifdef PNB_TEST_CUDA
    {.precision = PNB_TRAIN_AMP_BF16, .column = emulated_column},
#endif
};

static void test_losses(void **state)
{
    const fixture *f = *state;
    const wish in_floats = {.precision = PNB_TRAIN_FP32};
    pnb_train_result floats = train(f, "in-floats", in_floats);
    assert_true(floats.total > 0.1);
    for (size_t i = 0; i < PNB_COUNT(columns); i++) {
        pnb_train_result halves = train(f, i == 0 ? "host" : "device", columns[i]);
        if (!(fabs(halves.total - floats.total) < 0.01 * floats.total))
            fail_msg("%.9g, floats have %.9g", halves.total, floats.total);
        assert_true(halves.total != floats.total);
    }
}

/* Gradients of heads and of biases are summed in an order of their own, whoever sums them. */
static void test_threads(void **state)
{
    const fixture *f = *state;
    int before = f->ctx->n_threads;
    pnb_train_result one, two;
    f->ctx->n_threads = 1;
    one = train(f, "one", on_host);
    f->ctx->n_threads = before;
    two = train(f, "two", on_host);
    assert_true(one.total == two.total);
}

/* A tower that gave such a value a second reader would keep floats, and nothing else would tell. */
static void test_towers_keep_halves(void **state)
{
    const fixture *f = *state;
    for (size_t i = 0; i < PNB_COUNT(columns); i++) {
        wish in_floats = columns[i], in_halves = columns[i];
        in_floats.precision = PNB_TRAIN_FP32;
        in_floats.is_wide = in_halves.is_wide = true;
        pnb_train_result floats = train(f, i == 0 ? "floats" : "floats-2", in_floats);
        pnb_train_result halves = train(f, i == 0 ? "halves" : "halves-2", in_halves);
        if (!(100 * halves.graph_bytes < 95 * floats.graph_bytes)) /* workspaces take a part */
            fail_msg("%zu: %zu bytes, %zu in floats", i, halves.graph_bytes, floats.graph_bytes);
    }
}

static void check_resume(const fixture *f, wish w, const char *const names[2])
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    volatile sig_atomic_t stop = 0;
    wish broken_off = w, goes_on = w;
    broken_off.stop = &stop;
    goes_on.resumes = true;
    train(f, names[0], w);
    train(f, names[1], broken_off);
    train(f, names[1], goes_on);
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        char *data[2];
        size_t size[2];
        for (int j = 0; j < 2; j++) {
            char *path = pnb__format("%s/%s/checkpoints/epoch_1/%s", f->logs, names[j], files[i]);
            ASSERT_OK(pnb__read_file(path, (size_t)1 << 30, &data[j], &size[j], &err));
            pnb__free(path);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(data[0], data[1], size[0]);
        pnb__free(data[0]);
        pnb__free(data[1]);
    }
}

static void test_resume(void **state)
{
    static const char *const names[][2] = {{"whole", "parts"}, {"whole-2", "parts-2"}};
    for (size_t i = 0; i < PNB_COUNT(columns); i++)
        check_resume(*state, columns[i], names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_towers_keep_halves), cmocka_unit_test(test_resume)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
