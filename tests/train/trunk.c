/* The ResNet of a PCME in training: what it starts from, and the batches that its norms saw. Every
 * run is a narrow ResNet and a small GRU for an epoch of four steps. */
#include "models/model.h"
#include "penumbra/model.h"
#include "tests/train/pcme_run.h"

static int64_t batches_of(const fixture *f, const char *dir)
{
    pnb_model *m = NULL;
    ASSERT_OK(pnb_model_load(&m, f->ctx, dir, &err));
    int64_t n = pnb__model_find_param(m, "visual.cnn.layer4.0.bn2.running_var")->n_moves;
    assert_int_equal(pnb__model_find_param(m, "visual.cnn.bn1.running_var")->n_moves, n);
    pnb_model_free(m);
    return n;
}

/* Steps of this run and of the one it goes on from; a frozen norm sees none, a mean of weights
 * those that made its moments. */
static void batches_are_counted(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcme_opts(f, "counted");
    pnb_train_result r;
    sig_atomic_t stop = 1;
    o.stop = &stop;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_INTERRUPTED, "");
    o.stop = NULL;
    o.resume = "latest";
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(batches_of(f, r.checkpoint_dir), 4);
    o.resume = NULL;
    o.name = "counted-on";
    char *model = pnb__strdup(r.checkpoint_dir);
    o.model = model;
    o.grad_checkpointing = true;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(batches_of(f, r.checkpoint_dir), 8);
    o.name = "counted-frozen";
    o.lock_image = true;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_int_equal(batches_of(f, r.checkpoint_dir), 4);
    pnb__free(model);
    o = pcme_opts(f, "counted-mean");
    o.epochs = 2;
    o.swa_start = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    char *mean = pnb__format("%s/counted-mean/checkpoints/swa", f->logs);
    assert_int_equal(batches_of(f, mean), 4);
    assert_int_equal(batches_of(f, r.checkpoint_dir), 8);
    pnb__free(mean);
}

/* A file of torchvision's: the trunk of a trained model under other names. */
static void a_trunk_starts_as_its_file(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcme_opts(f, "trunk");
    pnb_train_result r;
    pnb_model *from = NULL, *to = NULL;
    char *path = pnb__path_join(f->dir, "trunk.safetensors");
    pnb_array_view views[256];
    size_t n = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    ASSERT_OK(pnb_model_load(&from, f->ctx, r.checkpoint_dir, &err));
    for (size_t i = 0; i < pnb__model_n_params(from); i++) {
        const pnb__param *p = pnb__model_param(from, i);
        if (!pnb__starts_with(p->name, "visual.cnn."))
            continue;
        views[n] = (pnb_array_view){.name = p->name + strlen("visual.cnn."),
                                    .dtype = PNB_F32,
                                    .n_dims = p->n_dims,
                                    .data = p->data,
                                    .n_bytes = p->n * sizeof(float)};
        for (int d = 0; d < p->n_dims; d++)
            views[n].shape[d] = (int64_t)p->shape[d];
        n++;
    }
    ASSERT_OK(pnb_safetensors_write(path, views, n, NULL, &err));
    o.image_trunk = path;
    o.name = "trunk-taken";
    o.seed = 8;
    o.optim.lr = 0;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(log_holds(f, "trunk-taken", "Image trunk: "));
    ASSERT_OK(pnb_model_load(&to, f->ctx, r.checkpoint_dir, &err));
    static const char weight[] = "visual.cnn.layer2.0.conv1.weight";
    const pnb__param *p = pnb__model_find_param(from, weight);
    const pnb__param *q = pnb__model_find_param(to, weight);
    assert_memory_equal(p->data, q->data, p->n * sizeof(float));
    o.resume = "latest";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "has a trunk of its own");
    pnb_train_opts other = fixture_opts(f, "trunk-of-prolip");
    ASSERT_OK(pnb__write_file(f->config, micro_config, strlen(micro_config), &err));
    other.image_trunk = path;
    ASSERT_FAILS(pnb_train(f->ctx, &other, &r, &err), PNB_ARG, "--image-trunk: a prolip model has");
    pnb_model_free(from);
    pnb_model_free(to);
    pnb__free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_are_counted),
                                       cmocka_unit_test(a_trunk_starts_as_its_file)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
