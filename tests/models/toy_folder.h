/* A folder with a model of the toy family (toy_family.h) and what belongs beside it: a tokenizer
 * that pads with 0, and preprocessing to its size. */
#ifndef PNB_TESTS_MODELS_TOY_FOLDER_H
#define PNB_TESTS_MODELS_TOY_FOLDER_H

#include "models/model.h"
#include "penumbra/tokenizer.h"
#include "tests/models/toy_family.h"
#include "tests/prob/support.h"

enum { TOY_DIM = 6, TOY_SIDE = 8, TOY_CONTEXT = 12 };

static const char *const toy_texts[] = {"a red star", "two green bars", "a blue ring",
                                        "a red star above a blue ring"};

/* Makes `dir` if it is missing; a folder of before is written over. */
static inline void make_toy_folder(const pnb_ctx *ctx, const char *dir, const char *image_ends_in,
                                   const char *text_ends_in)
{
    char json[320], path[160];
    pnb_model *model = NULL;
    pnb_tokenizer *tokenizer = NULL;
    pnb_preprocess pp = pnb_preprocess_default();
    pnb_tokenizer_opts words = pnb_tokenizer_opts_default();
    words.vocab_size = 40;
    assert_ok(pnb_tokenizer_train(&tokenizer, toy_texts, PNB_COUNT(toy_texts), &words, err));
    assert_int_equal(pnb_tokenizer_pad_id(tokenizer), 0);
    snprintf(
        json, sizeof json,
        "{\"model_type\":\"toy\",\"embed_dim\":%d,\"width\":5,\"image_size\":%d,\"context\":%d,"
        "\"words\":%d,\"image_ends_in\":\"%s\",\"text_ends_in\":\"%s\"}",
        TOY_DIM, TOY_SIDE, TOY_CONTEXT, (int)pnb_tokenizer_vocab_size(tokenizer), image_ends_in,
        text_ends_in);
    assert_ok(pnb_model_init_json(&model, ctx, json, 3, err));
    assert_ok(pnb_model_save(model, dir, err));
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    assert_ok(pnb_tokenizer_save(tokenizer, path, err));
    pp.width = pp.height = TOY_SIDE;
    snprintf(path, sizeof path, "%s/preprocessor_config.json", dir);
    assert_ok(pnb_preprocess_save(&pp, path, err));
    pnb_tokenizer_free(tokenizer);
    pnb_model_free(model);
}

/* Pictures that differ: ramps of another slope each. */
static inline void draw_toy_image(pnb_image *image, size_t number)
{
    assert_ok(pnb_image_create(image, 14, 10, 3, err));
    for (size_t k = 0; k < 14 * 10 * 3; k++)
        image->pixels[k] = (unsigned char)(k * (2 * number + 3) + 40 * number * (k % 3));
}

#endif
