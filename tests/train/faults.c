/* Out of memory: allocation 1, 2, 3 ... of a scenario fails; nothing leaks, crashes or is left half
 * written. Needs a build with PNB_FAULTS. */
#include "tests/train/fixture.h"

#include "penumbra/embeddings.h"
#include "penumbra/loss.h"
#include "train/optim/optim.h"

#ifdef PNB_FAULTS

static void test_loss_compute(void **state)
{
    const fixture *f = *state;
    enum { N = 3, D = 4 };
    double mean[N * D], log_var[N * D], d_mean[N * D];
    for (int i = 0; i < N * D; i++) {
        mean[i] = 0.1 * i - 0.5;
        log_var[i] = -0.2 * i;
    }
    pnb_loss_in in = {.n = N, .n_masked = 1, .dim = D, .scale = 2, .bias = -1};
    const pnb_loss_side side = {.mean = mean, .log_var = log_var};
    const double labels[N * N] = {1, 0, 0, 0.5, 0.5, 0, 0, 0, 1};
    in.image = in.text = in.masked_image = in.masked_text = side;
    pnb_loss_opts o = pnb_loss_opts_default();
    o.weight[PNB_LOSS_CLIP] = 1;
    for (long n = 0, passed = 0; passed < 2; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_loss_out out = {.d_mean = {d_mean}};
        pnb__alloc_fail_after(n);
        pnb_status status = pnb_loss_compute(f->ctx, &o, &in, &out, &err);
        pnb__alloc_fail_after(-1);
        if (status == PNB_OK) { /* and again with labels, which are copied and looked through */
            assert_true(n > 5);
            in.labels = labels;
            o.weight[PNB_LOSS_CLIP] = o.weight[PNB_LOSS_INCLUSION] = 0;
            o.weight[PNB_LOSS_PCMEPP_PSEUDO] = 1;
            passed++;
            n = -1;
            continue;
        }
        assert_int_equal(status, PNB_NOMEM);
        assert_true(n < 10000);
    }
}

static void test_optim_create(void **state)
{
    const fixture *f = *state;
    float data[4] = {1, 2, 3, 4};
    pnb__param p = {.name = "w", .n_dims = 2, .shape = {2, 2}, .n = 4, .data = data};
    p.trainable = true;
    pnb__param *const params[1] = {&p};
    const pnb_optim_opts o = pnb_optim_opts_default();
    pnb_status status = PNB_NOMEM;
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb__optim *optim = NULL;
        pnb__alloc_fail_after(n);
        status = pnb__optim_create(&optim, f->ctx, PNB__F32, params, 1, &o, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && optim == NULL));
        pnb__optim_free(optim);
        assert_true(n < 100);
    }
}

/* A run of one step has thousands of allocations: every 1/POINTS of them fails once. */
static void fail_each(const fixture *f, pnb_train_opts o, const char *stem)
{
    enum { POINTS = 80 };
    pnb_train_result r;
    char counted[32];
    snprintf(counted, sizeof counted, "%s-count", stem);
    o.name = counted;
    long before = pnb__alloc_count();
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    long total = pnb__alloc_count() - before;
    int n_failed = 0;
    for (long point = 0; point < POINTS; point++) {
        pnb_error err = PNB_ERROR_INIT;
        char name[32];
        snprintf(name, sizeof name, "%s%ld", stem, point);
        o.name = name;
        pnb__alloc_fail_after(total * point / POINTS);
        pnb_status status = pnb_train(f->ctx, &o, &r, &err);
        pnb__alloc_fail_after(-1);
        if (status != PNB_OK && err.text[0] == '\0')
            fail_msg("point %ld: %s without a text", point, pnb_status_name(status));
        n_failed += status != PNB_OK;
        if (status != PNB_OK && point % 8 == 0) { /* what is left behind does no harm */
            o.resume = r.checkpoint_dir[0] != '\0' ? "latest" : NULL;
            pnb_error again = PNB_ERROR_INIT;
            status = pnb_train(f->ctx, &o, &r, &again);
            if (status != PNB_OK)
                fail_msg("after point %ld: %s", point, again.text);
            o.resume = NULL;
        }
    }
    assert_true(n_failed > POINTS / 2);
}

static void test_train(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, NULL);
    o.max_steps = 1;
    o.workers = 0;
    o.val_data = f->val;
    o.loss.weight[PNB_LOSS_INCLUSION] = 0;
    o.loss.weight[PNB_LOSS_PCMEPP_PSEUDO] = 0.1;
    o.mix_share = 0.5;
    fail_each(f, o, "fault");
}

/* Factors of a trained model, and the model that is made of both. */
static void test_adapted(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, "base");
    pnb_train_result base, r;
    o.max_steps = 1;
    o.workers = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &base, &err));
    o.model = base.checkpoint_dir;
    o.lora_rank = 2;
    fail_each(f, o, "lora");
    o.name = "adapter";
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    pnb_status status = PNB_NOMEM;
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_model *merged = NULL;
        pnb__alloc_fail_after(n);
        status = pnb_model_merge_lora(&merged, f->ctx, base.checkpoint_dir, r.checkpoint_dir, &err);
        pnb__alloc_fail_after(-1);
        assert_true((status == PNB_OK) == (merged != NULL) && (merged != NULL || err.text[0] != 0));
        pnb_model_free(merged);
        assert_true(n < 100000);
    }
}

/* A set of a row per picture, or per caption ("KEY#k"), of the training data; returns its path. */
static char *save_teacher(const fixture *f, const pnb_dataset *data, bool is_text)
{
    size_t n = pnb_dataset_size(data), n_rows = 0, at = 0;
    pnb_embeddings *set = NULL;
    for (int pass = 0; pass < 2; pass++) { /* counts, then names */
        for (size_t i = 0; i < n; i++) {
            pnb_sample s = {0};
            ASSERT_OK(pnb_dataset_get(data, i, &s, &err));
            const char *slash = strrchr(s.key, '/'), *id = slash != NULL ? slash + 1 : s.key;
            for (size_t k = 0; pass == 1 && k < (is_text ? s.n_texts : 1); k++) {
                char name[64];
                snprintf(name, sizeof name, "%s#%zu", id, k);
                ASSERT_OK(pnb_embeddings_set_id(set, at++, is_text ? name : id, &err));
            }
            n_rows += pass == 1 ? 0 : is_text ? s.n_texts : 1;
            pnb_sample_reset(&s);
        }
        if (pass == 0)
            ASSERT_OK(pnb_embeddings_create(&set, PNB_POINT, n_rows, 4, &err));
    }
    assert_int_equal(at, n_rows);
    set->mean[0] = 1;
    char *path = pnb__path_join(f->dir, is_text ? "t.safetensors" : "i.safetensors");
    ASSERT_OK(pnb_embeddings_save(set, path, &err));
    pnb_embeddings_free(set);
    return path;
}

/* A teacher whose rows are found, and captions that fit nothing: the captions themselves. */
static void test_taught(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = fixture_opts(f, NULL);
    pnb_dataset *data = NULL;
    ASSERT_OK(pnb_dataset_open(&data, f->train, NULL, &err));
    char *paths[2] = {save_teacher(f, data, false), save_teacher(f, data, true)};
    o.max_steps = 1;
    o.workers = 0;
    o.distill_images = paths[0];
    o.distill_texts = paths[1];
    o.loss.weight[PNB_LOSS_DISTILL] = 1;
    o.dataset.negatives_key = "captions";
    o.n_negatives = 1;
    o.batch_size = 4;
    o.accum_freq = 2;
    o.grad_cache_bf16 = true;
    fail_each(f, o, "taught");
    pnb_dataset_free(data);
    pnb__free(paths[0]);
    pnb__free(paths[1]);
}

#else

static void test_needs_faults(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef PNB_FAULTS
        cmocka_unit_test(test_loss_compute), cmocka_unit_test(test_optim_create),
        cmocka_unit_test(test_train),        cmocka_unit_test(test_adapted),
        cmocka_unit_test(test_taught),
#else
        cmocka_unit_test(test_needs_faults),
#endif
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
