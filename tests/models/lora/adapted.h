/* A model of two small towers with heads of a variance, and factors asked for of all its matrices:
 * for the tests of LoRA. */
#ifndef PNB_TESTS_MODELS_LORA_ADAPTED_H
#define PNB_TESTS_MODELS_LORA_ADAPTED_H

#include "models/lora/lora.h"
#include "tests/models/scratch.h"

static const char config[] =
    "{\"embed_dim\": 8,"
    " \"vision_cfg\": {\"image_size\": 8, \"layers\": 2, \"width\": 8, \"head_width\": 4,"
    "   \"patch_size\": 4, \"embed_unc\": true, \"mlp_ratio\": 2.0},"
    " \"text_cfg\": {\"context_length\": 6, \"vocab_size\": 20, \"width\": 8, \"heads\": 2,"
    "   \"layers\": 1, \"no_causal_mask\": true, \"proj_bias\": true, \"pool_type\": \"last\","
    "   \"embed_cls\": true, \"embed_unc\": true, \"mlp_ratio\": 2.0}}";

enum { RANK = 3 };
static const char sha[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const pnb__lora_spec usual = {
    .rank = RANK, .alpha = 6, .targets = "all", .image = true, .text = true, .seed = 4};

static pnb_model *make_model(void)
{
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_model_init_json(&m, ctx, config, 1, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return m;
}

#endif
