/* Mixed precision on a device, by the column of GPUs on emulated threads: a whole training whose
 * values between products are bfloat16. It learns what the processor's learns, its towers use the
 * halves that they can, and an interrupted run goes on in the same bits. */
#include <math.h>
#include <signal.h>

#include "tests/train/fixture.h"

#ifndef PNB_TEST_CUDA
int main(void)
{
    return 77; /* no emulated column in this tree */
}
#else

#include "kernels/kernels.h"

extern void pnb__cuda_overwrite(pnb__kernels *k);

static void emulated_column(pnb__kernels *k)
{
    if (k->real == PNB__F32)
        pnb__cuda_overwrite(k);
}

enum { N_STEPS = 5, STOP_AT = 3 };

typedef struct wish {
    bool is_emulated, resumes;
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
    o.resume = w.resumes ? "latest" : NULL;
    o.stop = w.stop;
    o.progress = w.stop != NULL ? stop_at : NULL;
    o.progress_user = (void *)(uintptr_t)w.stop;
    f->ctx->column = w.is_emulated ? emulated_column : NULL;
    pnb_status status = pnb_train(f->ctx, &o, &r, &err);
    f->ctx->column = NULL;
    if (status != (w.stop != NULL ? PNB_INTERRUPTED : PNB_OK))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(r.step, w.stop != NULL ? STOP_AT : N_STEPS);
    return r;
}

static const wish on_host = {.precision = PNB_TRAIN_AMP_BF16};
static const wish on_device = {.is_emulated = true, .precision = PNB_TRAIN_AMP_BF16};

static void test_losses(void **state)
{
    const fixture *f = *state;
    pnb_train_result host = train(f, "host", on_host), device = train(f, "device", on_device);
    assert_true(host.total > 0.1);
    if (!(fabs(device.total - host.total) < 0.01 * host.total))
        fail_msg("%.9g, the processor has %.9g", device.total, host.total);
    assert_true(device.total != host.total); /* it rounds more */
}

/* A tower that gave such a value a second reader would keep floats, and nothing else would tell. */
static void test_towers_keep_halves(void **state)
{
    const fixture *f = *state;
    wish in_floats = on_device;
    in_floats.precision = PNB_TRAIN_FP32;
    pnb_train_result floats = train(f, "floats", in_floats), halves = train(f, "halves", on_device);
    if (!(100 * halves.graph_bytes < 95 * floats.graph_bytes)) /* workspaces take a part */
        fail_msg("%zu bytes, %zu in floats", halves.graph_bytes, floats.graph_bytes);
}

static void test_resume(void **state)
{
    const fixture *f = *state;
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    volatile sig_atomic_t stop = 0;
    wish broken_off = on_device, goes_on = on_device;
    broken_off.stop = &stop;
    goes_on.resumes = true;
    train(f, "whole", on_device);
    train(f, "parts", broken_off);
    train(f, "parts", goes_on);
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        char *data[2];
        size_t size[2];
        for (int j = 0; j < 2; j++) {
            char *path = pnb__format("%s/%s/checkpoints/epoch_1/%s", f->logs,
                                     j == 0 ? "whole" : "parts", files[i]);
            ASSERT_OK(pnb__read_file(path, (size_t)1 << 30, &data[j], &size[j], &err));
            pnb__free(path);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(data[0], data[1], size[0]);
        pnb__free(data[0]);
        pnb__free(data[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_towers_keep_halves),
                                       cmocka_unit_test(test_resume)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
#endif
