/* Batches by class: one sample of each, every sample in its turn, the same bits however they are
 * read, and a replacement of the same class. */
#include "data/loader/loader_internal.h"
#include "tests/data/fixture.h"

enum { N_CLASSES = 5, SIDE = 8 };
static const int n_of[N_CLASSES] = {1, 2, 3, 7, 4}; /* 17 samples */
static char *scratch;
static pnb_dataset *ds;

static int setup(void **state)
{
    (void)state;
    scratch = scratch_create();
    for (int k = 0; k < N_CLASSES; k++)
        for (int i = 0; i < n_of[k]; i++) {
            char name[64];
            snprintf(name, sizeof name, "c%d/s%d.png", k, i);
            put_png(scratch, name, 10 * k + i);
            if (k == 3 && i == 4) /* no picture */
                put_text(scratch, name, "nothing");
            snprintf(name, sizeof name, "c%d/s%d.txt", k, i);
            put_text(scratch, name, "a bird");
        }
    ASSERT_OK(pnb_dataset_open(&ds, scratch, NULL, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pnb_dataset_free(ds);
    scratch_remove(scratch);
    return 0;
}

static pnb_loader_opts opts_of(size_t batch_size, int n_workers)
{
    pnb_loader_opts o = pnb_loader_opts_default();
    o.by_class = true;
    o.batch_size = batch_size;
    o.n_workers = n_workers;
    o.seed = 3;
    o.preprocess.width = o.preprocess.height = SIDE;
    return o;
}

static int64_t class_of(int64_t sample)
{
    pnb_sample s = {0};
    ASSERT_OK(pnb_dataset_get(ds, (size_t)sample, &s, &err));
    int64_t label = s.label;
    pnb_sample_reset(&s);
    return label;
}

/* Samples of n batches from `start` on, (n, batch_size). */
static void read_batches(const pnb_loader_opts *o, pnb_loader_position start, size_t n,
                         int64_t *out)
{
    pnb_loader *l = NULL;
    const pnb_batch *b = NULL;
    ASSERT_OK(pnb_loader_create(&l, ds, o, &err));
    assert_int_equal(pnb_loader_batches_per_epoch(l), 17 / o->batch_size);
    ASSERT_OK(pnb_loader_set_position(l, start, &err));
    for (size_t i = 0; i < n; i++) {
        ASSERT_OK(pnb_loader_next(l, &b, &err));
        assert_int_equal(b->n, o->batch_size);
        memcpy(out + i * o->batch_size, b->samples, o->batch_size * sizeof *out);
    }
    pnb_loader_free(l);
}

/* Also where a sample cannot be read. With fewer places than classes they are different ones. */
static void a_batch_has_a_class_once(void **state)
{
    (void)state;
    for (size_t batch = 3; batch <= N_CLASSES; batch += 2) {
        int64_t samples[40 * N_CLASSES];
        const pnb_loader_opts o = opts_of(batch, 1);
        read_batches(&o, (pnb_loader_position){0, 0}, 40, samples);
        for (size_t b = 0; b < 40; b++) {
            int seen[N_CLASSES] = {0};
            for (size_t i = 0; i < batch; i++)
                assert_int_equal(seen[class_of(samples[b * batch + i])]++, 0);
        }
    }
}

/* Classes go through their samples: of 3 batches an epoch each of three samples comes once, and one
 * alone comes always. Where in a batch a class stands says nothing of it. */
static void samples_take_turns(void **state)
{
    int64_t samples[3 * N_CLASSES];
    int first[N_CLASSES] = {0};
    (void)state;
    for (uint64_t epoch = 0; epoch < 40; epoch++) {
        const pnb_loader_opts o = opts_of(N_CLASSES, 0);
        int times[17] = {0};
        read_batches(&o, (pnb_loader_position){epoch, 0}, 3, samples);
        for (size_t i = 0; i < 3 * N_CLASSES; i++)
            times[samples[i]]++;
        assert_int_equal(times[0], 3);
        assert_int_equal(times[1] + times[2], 3);
        for (int i = 3; i < 6; i++)
            assert_int_equal(times[i], 1);
        first[class_of(samples[0])]++;
    }
    for (int k = 0; k < N_CLASSES; k++)
        assert_in_range(first[k], 1, 20);
}

static void the_order_is_of_seed_and_epoch(void **state)
{
    int64_t whole[20 * N_CLASSES], again[20 * N_CLASSES];
    (void)state;
    pnb_loader_opts o = opts_of(N_CLASSES, 0);
    read_batches(&o, (pnb_loader_position){0, 0}, 20, whole);
    o.n_workers = 3;
    read_batches(&o, (pnb_loader_position){0, 0}, 20, again);
    assert_memory_equal(whole, again, sizeof whole);
    /* in the middle of epoch 2, as a run goes on */
    read_batches(&o, (pnb_loader_position){2, 1}, 13, again);
    assert_memory_equal(whole + (size_t)7 * N_CLASSES, again, 13 * N_CLASSES * sizeof *whole);
    assert_memory_not_equal(whole, whole + (size_t)3 * N_CLASSES, 3 * N_CLASSES * sizeof *whole);
    o.seed = 4;
    read_batches(&o, (pnb_loader_position){0, 0}, 20, again);
    assert_memory_not_equal(whole, again, sizeof whole);
}

static void create_fails(const pnb_dataset *data, const pnb_loader_opts *o, pnb_status wanted,
                         const char *part)
{
    pnb_loader *l = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_loader_create(&l, data, o, &err), wanted);
    assert_null(l);
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

static void refused(void **state)
{
    pnb_loader_opts o = opts_of(N_CLASSES + 1, 0);
    pnb_dataset *plain = NULL;
    size_t n = 0;
    (void)state;
    create_fails(ds, &o, PNB_SHAPE, "there are 5");
    o.batch_size = N_CLASSES;
    o.resample = true;
    create_fails(ds, &o, PNB_ARG, "order of their own");
    o.resample = o.shuffle = false;
    create_fails(ds, &o, PNB_ARG, "order of their own");
    ASSERT_OK(pnb_loader_count_classes(ds, &n, &err));
    assert_int_equal(n, N_CLASSES);
    char *root = pnb__path_join(scratch, "c3"); /* pictures in the root have no class */
    ASSERT_OK(pnb_dataset_open(&plain, root, NULL, &err));
    o.shuffle = true;
    create_fails(plain, &o, PNB_ARG, "s0.png has no class");
    pnb__free(root);
    pnb_dataset_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_a_class_once),
        cmocka_unit_test(samples_take_turns),
        cmocka_unit_test(the_order_is_of_seed_and_epoch),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
