/* A small model folder with everything in it, and inputs for it. */
#ifndef PNB_TESTS_ENCODE_MODEL_FOLDER_H
#define PNB_TESTS_ENCODE_MODEL_FOLDER_H

#include <unistd.h>

#include "models/model.h"
#include "penumbra/encode.h"
#include "tests/prob/support.h"

enum { N_TEXTS = 5, N_IMAGES = 3, SIDE = 64 };

static const char overrides[] =
    "{\"embed_dim\":16,\"vision_cfg\":{\"layers\":2,\"width\":32,\"head_width\":16,\"image_size\":"
    "64,\"patch_size\":16},\"text_cfg\":{\"layers\":2,\"width\":32,\"heads\":2,\"vocab_size\":40,"
    "\"context_length\":16}}";
static const char *const texts[N_TEXTS] = {"a red star", "two green bars", "", "a blue ring",
                                           "a red star above a blue ring"};

typedef struct fixture {
    char dir[64];
    pnb_ctx *ctx;
    pnb_image images[N_IMAGES];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_tokenizer_opts words = pnb_tokenizer_opts_default();
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_tokenizer *tokenizer = NULL;
    pnb_model *model = NULL;
    char *json = NULL, path[96];
    assert_non_null(f);
    snprintf(f->dir, sizeof f->dir, "/tmp/pnb-threads-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    opts.n_threads = 2;
    assert_ok(pnb_ctx_create(&f->ctx, &opts, err));
    assert_ok(pnb_model_config_merge("tiny", overrides, &json, err));
    assert_ok(pnb_model_init_json(&model, f->ctx, json, 5, err));
    assert_ok(pnb_model_save(model, f->dir, err));
    words.vocab_size = 40;
    assert_ok(pnb_tokenizer_train(&tokenizer, texts, N_TEXTS, &words, err));
    snprintf(path, sizeof path, "%s/tokenizer.json", f->dir);
    assert_ok(pnb_tokenizer_save(tokenizer, path, err));
    pp.width = pp.height = SIDE;
    snprintf(path, sizeof path, "%s/preprocessor_config.json", f->dir);
    assert_ok(pnb_preprocess_save(&pp, path, err));
    for (size_t i = 0; i < N_IMAGES; i++) {
        assert_ok(pnb_image_create(&f->images[i], 70 + (int)i, 90, 3, err));
        for (size_t k = 0; k < (size_t)(70 + (int)i) * 90 * 3; k++)
            f->images[i].pixels[k] = (unsigned char)(k * (i + 7) >> 4);
    }
    pnb_tokenizer_free(tokenizer);
    pnb_model_free(model);
    pnb_text_free(json);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "model.safetensors.sha256", "tokenizer.json",
                                        "preprocessor_config.json"};
    fixture *f = *state;
    char path[96];
    for (size_t i = 0; i < N_IMAGES; i++)
        pnb_image_free(&f->images[i]);
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", f->dir, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(f->dir), 0);
    pnb_ctx_free(f->ctx);
    free(f);
    return 0;
}

#endif
