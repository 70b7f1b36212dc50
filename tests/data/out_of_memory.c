/* Fails allocation 0, 1, 2, ... of whole scenarios until they pass: every failure is reported as
 * such, leaks nothing (the sanitizers look) and leaves no half-written folder. Needs a PNB_FAULTS
 * build. */
#include "tests/data/fixture.h"

#include "data/synth/emoji.h"
#include "penumbra/ambiguous.h"

#ifdef PNB_FAULTS

static char *scratch;

static int setup(void **state)
{
    (void)state;
    scratch = scratch_create();
    put_png(scratch, "dir/a.png", 10);
    put_text(scratch, "dir/a.json", "{\"captions\": [\"x\", \"y\"], \"levels\": [0, 1]}");
    put_png(scratch, "dir/sub/b.png", 10);
    put_text(scratch, "dir/sub/b.txt", "z");
    put_png(scratch, "dir/c.png", 10); /* no caption: a warning */
    put_text(scratch, "t.csv", "filepath\ttitle\ndir/a.png\tone\ndir/c.png\ttwo\n");
    put_text(scratch, "l.jsonl", "{\"image\": \"dir/a.png\", \"caption\": \"one\"}\n");
    put_text(scratch, "c.csv", "filepath\ttitle\tlabel\ndir/a.png\tone\tx\ndir/c.png\ttwo\ty\n");
    char *records = pnb__alloc_zero(2, 3073);
    put_file(scratch, "cifar/test_batch.bin", records, 2 * 3073);
    put_text(scratch, "cifar/batches.meta.txt", "airplane\nautomobile\n");
    pnb__free(records);
    pnb_shapes_opts o = pnb_shapes_opts_default();
    char *out = pnb__path_join(scratch, "shapes");
    o.n_scenes = 6;
    o.width = o.height = 16;
    ASSERT_OK(pnb_synth_shapes(NULL, &o, out, NULL, &err));
    pnb__free(out);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

typedef pnb_status (*scenario)(const char *path, pnb_error *err);

/* Runs until the failing allocation lies behind the scenario's last one. `other` is a second status
 * that may come back: libspng tells zlib's lack of memory as an error of zlib. */
static void run_with_failures(scenario run, const char *path, pnb_status other)
{
    long n = 0;
    for (;; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = run(path, &error);
        pnb__alloc_fail_after(-1);
        if (status == PNB_OK)
            break;
        if (status != PNB_NOMEM && status != other)
            fail_msg("allocation %ld: %s: %s", n, pnb_status_name(status), error.text);
        assert_int_equal(error.status, status);
        assert_true(n < 20000);
    }
    print_message("%ld allocations failed in turn\n", n);
    assert_true(n > 5);
}

static pnb_status use_dataset(const char *path, pnb_error *err)
{
    pnb_dataset *ds = NULL;
    pnb_loader *l = NULL;
    const pnb_batch *batch;
    pnb_sample s = {0};
    pnb_loader_opts o = pnb_loader_opts_default();
    pnb_status status = PNB_OK;
    o.batch_size = 1;
    o.n_workers = 0;
    o.preprocess.width = o.preprocess.height = 8;
    o.augment = pnb_augment_small();
    PNB_TRY(pnb_dataset_open(&ds, path, NULL, err));
    PNB_TRY(pnb_dataset_get(ds, 0, &s, err));
    PNB_TRY(pnb_loader_create(&l, ds, &o, err));
    for (int i = 0; i < 3; i++)
        PNB_TRY(pnb_loader_next(l, &batch, err));
done:
    pnb_loader_free(l);
    pnb_sample_reset(&s);
    pnb_dataset_free(ds);
    return status;
}

static void test_sources(void **state)
{
    static const char *const NAMES[] = {"dir",
                                        "t.csv",
                                        "c.csv",
                                        "l.jsonl",
                                        "cifar/test_batch.bin",
                                        "shapes/train/{00000,00000}.tar"};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(NAMES); i++) {
        char *path = pnb__path_join(scratch, NAMES[i]);
        run_with_failures(use_dataset, path, PNB_NOMEM);
        pnb__free(path);
    }
}

static pnb_status make_shapes(const char *path, pnb_error *err)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb_status status = PNB_OK;
    ctx_opts.n_threads = 1;
    o.n_scenes = 5;
    o.width = o.height = 16;
    o.blur_p = o.occlude_p = o.grey_p = 0.5;
    o.shard_size = 2;
    PNB_TRY(pnb_ctx_create(&ctx, &ctx_opts, err));
    status = pnb_synth_shapes(ctx, &o, path, NULL, err);
done:
    pnb_ctx_free(ctx);
    if (status != PNB_OK && access(path, F_OK) == 0)
        return PNB_EXISTS; /* a failed run must leave nothing */
    return status;
}

static void test_shapes(void **state)
{
    char *path = pnb__path_join(scratch, "made");
    (void)state;
    run_with_failures(make_shapes, path, PNB_IO);
    pnb__free(path);
}

static pnb_status read_emoji(const char *path, pnb_error *err)
{
    pnb__emoji_list list = {0};
    pnb_status status = PNB_OK;
    char *file = pnb__path_join(path, "emoji-test.txt");
    if (!file)
        return pnb__fail_nomem(err, 1);
    PNB_TRY(pnb__emoji_read(&list, file, true, err));
    PNB_TRY(pnb__emoji_add_words(&list, path, err));
done:
    pnb__emoji_free(&list);
    pnb__free(file);
    return status;
}

static void test_emoji(void **state)
{
    (void)state;
    put_text(scratch, "emoji-test.txt",
             "# group: a\n# subgroup: b-c\n1F34E ; fully-qualified # x E0.6 apple\n");
    put_text(scratch, "annotations/en.xml",
             "<annotation cp=\"\xf0\x9f\x8d\x8e\">fruit | red</annotation>");
    put_text(scratch, "annotationsDerived/en.xml", "");
    run_with_failures(read_emoji, scratch, PNB_NOMEM);
}

static pnb_status make_ambiguous(const char *path, pnb_error *err)
{
    pnb_ambiguous_opts o = pnb_ambiguous_opts_default();
    o.n_images = 6;
    o.dim = 4;
    o.text_dim = 3;
    o.n_roots = o.n_levels = o.n_branches = 2;
    o.n_texts = 1;
    o.family = PNB_GEN_GAUSSIAN;
    pnb_status status = pnb_synth_ambiguous(NULL, &o, path, NULL, err);
    if (status != PNB_OK && access(path, F_OK) == 0)
        return PNB_EXISTS;
    return status;
}

static void test_ambiguous(void **state)
{
    char *path = pnb__path_join(scratch, "ambiguous");
    (void)state;
    run_with_failures(make_ambiguous, path, PNB_IO);
    pnb__free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources),
                                       cmocka_unit_test(test_shapes), cmocka_unit_test(test_emoji),
                                       cmocka_unit_test(test_ambiguous)};
    return cmocka_run_group_tests(tests, setup, teardown);
}

#else

int main(void)
{
    print_message("skipped: built without PNB_FAULTS\n");
    return 0;
}

#endif
