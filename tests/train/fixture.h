/* Shared by the tests of this folder: a scratch folder, a few rendered scenes, a model of a few
 * thousand weights, and options of a run that lasts a second. */
#ifndef PNB_TESTS_TRAIN_FIXTURE_H
#define PNB_TESTS_TRAIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ftw.h>
#include <unistd.h>

#include "base/base.h"
#include "penumbra/synth.h"
#include "penumbra/train.h"

/* Fails the test with the error's text unless `call`, which fills `err`, returns PNB_OK. */
#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        if ((call) != PNB_OK)                                                                      \
            fail_msg("%s", err.text);                                                              \
    } while (0)

/* Expects `call`, which fills `err`, to fail with this status and a text that holds `part`. */
#define ASSERT_FAILS(call, wanted, part)                                                           \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        pnb_status got = (call);                                                                   \
        if (got != (wanted) || strstr(err.text, part) == NULL)                                     \
            fail_msg("got %s \"%s\", wanted %s with \"%s\"", pnb_status_name(got), err.text,       \
                     pnb_status_name(wanted), part);                                               \
    } while (0)

/* *state of tests that need a context and no files. */
static inline int ctx_setup(void **state)
{
    pnb_ctx *ctx = NULL;
    const pnb_ctx_opts opts = {.n_threads = 2};
    ASSERT_OK(pnb_ctx_create(&ctx, &opts, &err));
    *state = ctx;
    return 0;
}

static inline int ctx_teardown(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

static inline char *scratch_create(void)
{
    const char *base = getenv("TMPDIR");
    char *path = pnb__format("%s/pnb-train-XXXXXX", base ? base : "/tmp");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int scratch_remove_one(const char *path, const struct stat *info, int flag,
                                     struct FTW *ftw)
{
    (void)info;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void scratch_remove(char *path)
{
    assert_int_equal(nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    pnb__free(path);
}

/* What every test of training starts from. */
typedef struct fixture {
    pnb_ctx *ctx;
    char *dir, *train, *val, *logs, *config;
} fixture;

static const char micro_config[] =
    "{\"embed_dim\": 16, \"init_logit_bias\": -2, \"init_logit_scale\": 2.302585092994046,\n"
    " \"text_uncertainty_source\": \"unc_token\",\n"
    " \"vision_cfg\": {\"image_size\": 16, \"layers\": 1, \"width\": 16, \"head_width\": 8,\n"
    "   \"patch_size\": 4, \"embed_unc\": true, \"init_unc_bias\": -6, \"mlp_ratio\": 2.0},\n"
    " \"text_cfg\": {\"context_length\": 12, \"vocab_size\": 100, \"width\": 16, \"heads\": 2,\n"
    "   \"layers\": 1, \"no_causal_mask\": true, \"proj_bias\": true, \"pool_type\": \"last\",\n"
    "   \"embed_cls\": true, \"embed_unc\": true, \"init_unc_bias\": -6, \"mlp_ratio\": 2.0}}\n";

static inline int fixture_setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    const pnb_ctx_opts ctx_opts = {.n_threads = 2};
    ASSERT_OK(pnb_ctx_create(&f->ctx, &ctx_opts, &err));
    f->dir = scratch_create();
    char *shapes = pnb__path_join(f->dir, "shapes");
    pnb_shapes_opts opts = pnb_shapes_opts_default();
    opts.n_scenes = 60;
    opts.width = opts.height = 16;
    opts.val_share = 0.2;
    opts.test_share = 0.1;
    ASSERT_OK(pnb_synth_shapes(f->ctx, &opts, shapes, NULL, &err));
    f->train = pnb__path_join(shapes, "train");
    f->val = pnb__path_join(shapes, "val");
    f->logs = pnb__path_join(f->dir, "logs");
    f->config = pnb__path_join(f->dir, "micro.json");
    ASSERT_OK(pnb__write_file(f->config, micro_config, strlen(micro_config), &err));
    pnb__free(shapes);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture *f = *state;
    pnb__free(f->train);
    pnb__free(f->val);
    pnb__free(f->logs);
    pnb__free(f->config);
    scratch_remove(f->dir);
    pnb_ctx_free(f->ctx);
    free(f);
    return 0;
}

/* 10 steps of batch 8, an epoch of 5 steps, everything logged, no validation. */
static inline pnb_train_opts fixture_opts(const fixture *f, const char *name)
{
    pnb_train_opts o = pnb_train_opts_default();
    o.train_data = f->train;
    o.model = f->config;
    o.tokenizer_vocab_size = 400;
    o.logs = f->logs;
    o.name = name;
    o.batch_size = 8;
    o.train_num_samples = 40; /* of 42: shards would round up to six steps */
    o.epochs = 2;
    o.warmup = 2;
    o.seed = 7;
    o.log_every_n_steps = 1;
    return o;
}

#endif
