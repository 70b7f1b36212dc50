/* Shared by the tests of the loader: 53 samples of four captions, one of them a corrupt picture in
 * a second set, and a small tokenizer. */
#ifndef PNB_TESTS_DATA_LOADER_BATCHES_H
#define PNB_TESTS_DATA_LOADER_BATCHES_H

#include "io/tables/tar.h"
#include "tests/data/fixture.h"

enum { N_SAMPLES = 53, SIDE = 16, BATCH = 8 };

static const char *const BAD_KEY = "s017";
static char *scratch;
static pnb_dataset *ds;     /* all good */
static pnb_dataset *ds_bad; /* s017 is a corrupt picture */
static pnb_tokenizer *tokenizer;

static inline void write_tar(const char *name, bool with_bad)
{
    pnb__tar_writer w;
    char *path = pnb__path_join(scratch, name);
    ASSERT_OK(pnb__tar_writer_open(&w, path, &err));
    pnb__free(path);
    for (int i = 0; i < N_SAMPLES; i++) {
        char member[32], json[256];
        size_t n;
        unsigned char *png = make_png(20 + i % 5, 18, i * 3, &n);
        snprintf(member, sizeof member, "s%03d.png", i);
        if (with_bad && pnb__starts_with(member, BAD_KEY))
            memset(png + n / 2, 0x55, n - n / 2);
        ASSERT_OK(pnb__tar_writer_add(&w, member, png, n, &err));
        pnb_image_bytes_free(png);
        snprintf(member, sizeof member, "s%03d.json", i);
        snprintf(json, sizeof json,
                 "{\"captions\": [\"thing\", \"colour %d\", \"blue thing\", \"thing number %d of "
                 "many\"], \"levels\": [0, 1, 1, 3], \"group\": \"g\"}",
                 i % 4, i);
        ASSERT_OK(pnb__tar_writer_add(&w, member, json, strlen(json), &err));
    }
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
}

static inline int setup(void **state)
{
    static const char *const TEXTS[] = {"thing", "colour number of many blue",
                                        "0 1 2 3 4 5 6 7 8 9", "a picture of"};
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    (void)state;
    scratch = scratch_create();
    write_tar("good.tar", false);
    write_tar("bad.tar", true);
    char *path = pnb__path_join(scratch, "good.tar");
    ASSERT_OK(pnb_dataset_open(&ds, path, NULL, &err));
    pnb__free(path);
    path = pnb__path_join(scratch, "bad.tar");
    ASSERT_OK(pnb_dataset_open(&ds_bad, path, NULL, &err));
    pnb__free(path);
    ASSERT_OK(pnb_tokenizer_train(&tokenizer, TEXTS, PNB_COUNT(TEXTS), &opts, &err));
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    pnb_tokenizer_free(tokenizer);
    pnb_dataset_free(ds);
    pnb_dataset_free(ds_bad);
    scratch_remove(scratch);
    return 0;
}

static inline pnb_loader_opts opts_of(int n_workers)
{
    pnb_loader_opts o = pnb_loader_opts_default();
    o.batch_size = BATCH;
    o.n_workers = n_workers;
    o.n_prefetch = 3;
    o.seed = 11;
    o.preprocess.width = o.preprocess.height = SIDE;
    o.augment = pnb_augment_small();
    o.tokenizer = tokenizer;
    o.context_length = 6;
    return o;
}

static inline const pnb_batch *next_of(pnb_loader *l)
{
    const pnb_batch *b = NULL;
    ASSERT_OK(pnb_loader_next(l, &b, &err));
    return b;
}

#endif
